//! Ends a test binary in which one test takes too long, and tells where the test stood.
//!
//! The loader starts it before `main`, so that no test can forget it; all that a test binary needs
//! is this module. A test is a thread that has a name, which is how libtest runs it. The thread is
//! asked by a signal and prints its stack, then the processes below are listed and killed, and the
//! binary ends as one that failed: nothing else ends a thread that hangs.

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The name of the variable that sets another limit, in seconds.
pub(crate) const VARIABLE: &str = "ROCCO_TEST_SECONDS_MAX";

/// Ten times what the longest test takes on two processors that do nothing else.
const TEST_MS_MAX: u64 = 600_000;

/// How long a thread may take to print its stack, and, within the limit of a test, how long a test
/// may take to clean up when its processes have been killed.
const GRACE: Duration = Duration::from_secs(20);

static LIMIT_MS: AtomicU64 = AtomicU64::new(TEST_MS_MAX);

/// How many threads have answered, by whether they run a test.
static TESTS: AtomicUsize = AtomicUsize::new(0);
static HELPERS: AtomicUsize = AtomicUsize::new(0);

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static START: extern "C" fn() = start;

extern "C" fn start() {
    if let Some(seconds) = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
    {
        allow(Duration::from_secs(seconds));
    }
    handle(libc::SIGUSR2, tell);
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        if is_ignored(signal) {
            handle(signal, pass);
        }
    }
    let started = std::thread::Builder::new().spawn(watch);
    assert!(started.is_ok(), "no thread for the watchdog");
}

/// A signal that is ignored, as `nohup` and a shell's `&` have it, is ignored by the processes of
/// a test too, which are then not what a test means to look at. One that is handled is not
/// inherited, and does as little here.
extern "C" fn pass(_: libc::c_int) {}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an action of zeros is valid, and a live one is written.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: an action of zeros is valid, and the handler takes what a handler is given.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}

/// Sets the limit of every test of this process, for one that is asked to take its time.
pub(crate) fn allow(time: Duration) {
    LIMIT_MS.store(time.as_millis() as u64, Ordering::Relaxed);
}

/// A thread: its number, and when it began, since numbers are used again.
type Thread = (libc::pid_t, String);

fn watch() {
    // Until the runtime has opened what was closed of stdin, stdout and stderr, nothing is opened
    // here, which would take such a place.
    std::thread::sleep(Duration::from_millis(200));
    let mut seen: HashMap<Thread, Instant> = HashMap::new();
    // This thread, and the first one, which waits for the tests.
    // SAFETY: they take nothing.
    let own = unsafe { [libc::gettid(), libc::getpid()] };
    loop {
        let limit = Duration::from_millis(LIMIT_MS.load(Ordering::Relaxed));
        std::thread::sleep((limit / 20).min(Duration::from_secs(1)));
        let now = Instant::now();
        let there = threads();
        seen.retain(|thread, _| there.contains(thread));
        for thread in there.into_iter().filter(|thread| !own.contains(&thread.0)) {
            let since = *seen.entry(thread.clone()).or_insert(now);
            if now - since > limit {
                if runs_a_test(&thread) {
                    end(&thread, limit);
                }
                seen.insert(thread, now);
            }
        }
    }
}

fn threads() -> Vec<Thread> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten();
    let thread = |entry: fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let began = fields.split(' ').nth(19)?.to_owned();
        Some((entry.file_name().to_str()?.parse().ok()?, began))
    };
    entries.flatten().filter_map(thread).collect()
}

/// Asks a thread, which prints its stack if it runs a test.
fn runs_a_test(thread: &Thread) -> bool {
    let answers = || {
        let helpers = HELPERS.load(Ordering::SeqCst);
        (TESTS.load(Ordering::SeqCst), helpers)
    };
    let before = answers();
    // SAFETY: three integers.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread.0, libc::SIGUSR2) };
    wait(GRACE, || answers() != before || !threads().contains(thread));
    // One that is silent cannot be told from a test that hangs.
    answers().1 == before.1 && threads().contains(thread)
}

fn wait(time: Duration, holds: impl Fn() -> bool) {
    let until = Instant::now() + time;
    while !holds() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs on the thread that is asked. It does what a handler may not, such as to claim memory: the
/// process is about to end, and nobody relies on the answer.
extern "C" fn tell(_: libc::c_int) {
    let thread = std::thread::current();
    let Some(name) = thread.name() else {
        HELPERS.fetch_add(1, Ordering::SeqCst);
        return;
    };
    let limit = Duration::from_millis(LIMIT_MS.load(Ordering::Relaxed));
    say(&format!(
        "\ntest {name} HANGS: it has not ended within {limit:?}. It stands here:\n"
    ));
    say(&format!("{}\n", Backtrace::force_capture()));
    TESTS.fetch_add(1, Ordering::SeqCst);
}

/// Ends everything. The test is given the time to clean up, which it may when its processes have
/// gone, but not to pass.
fn end(thread: &Thread, limit: Duration) -> ! {
    let processes = descendants();
    say(&format!(
        "{} processes are below this one:\n",
        processes.len()
    ));
    for (process, words) in &processes {
        say(&format!("{process} {words}\n"));
    }
    for (process, _) in &processes {
        // SAFETY: two integers.
        unsafe { libc::kill(*process, libc::SIGKILL) };
    }
    wait(GRACE.min(limit), || !threads().contains(thread));
    say(&format!(
        "This test binary ends, since a test took longer than {limit:?}. If it was not stuck, set \
         {VARIABLE} to more seconds.\n"
    ));
    std::process::exit(101);
}

/// The processes that this one has started and those that they have, with what is known of each.
fn descendants() -> Vec<(libc::pid_t, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut parents: Vec<(libc::pid_t, libc::pid_t, String)> = Vec::new();
    for process in numbers {
        let read = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&read(name)).replace('\0', " ");
        let stat = text("stat");
        let Some((_, fields)) = stat.rsplit_once(") ") else {
            continue;
        };
        let mut fields = fields.split(' ');
        let (state, parent) = (fields.next().unwrap_or("?"), fields.next());
        let words = format!("in state {state} ({}): {}", text("wchan"), text("cmdline"));
        let parent = parent.and_then(|parent| parent.parse().ok()).unwrap_or(0);
        parents.push((process, parent, words));
    }
    let mut found = vec![(std::process::id() as libc::pid_t, String::new())];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].0;
        let below = parents.iter().filter(|(_, of, _)| *of == parent);
        found.extend(below.map(|(process, _, words)| (*process, words.clone())));
        next += 1;
    }
    found.split_off(1)
}

/// To the real stderr, whatever libtest captures.
pub(crate) fn say(text: &str) {
    // SAFETY: the descriptor is open as long as the process is, and it is not closed here.
    let mut stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    let _ = stderr.write_all(text.as_bytes());
}
