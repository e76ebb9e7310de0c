//! Processes and the trees that grow from them: started without a shell, ended to the last leaf.
//! The only file of the executor that talks to the system without the standard library.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, kill_process_group, prlimit,
    set_child_subreaper, waitpid,
};

use crate::event_loop::sys::child::{self, Step};
use crate::event_loop::sys::signals::{self, SignalSet};

/// Children that this process has started itself. Those that it has come by, as the reaper of what
/// its tasks leave behind, are not among them.
static OWN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn own() -> std::sync::MutexGuard<'static, Vec<u32>> {
    OWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Starts a child that is known to be one's own.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut own = own();
    let child = command.spawn()?;
    own.push(child.id());
    Ok(child)
}

/// Bounds the memory that a child, and each process that it starts, may claim for itself.
pub fn bound_memory(child: &Child, bytes_max: u64) -> io::Result<()> {
    let bound = Rlimit {
        current: Some(bytes_max),
        maximum: Some(bytes_max),
    };
    match prlimit(Some(Pid::from_child(child)), Resource::Data, bound) {
        // It has ended already.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        // A lower bound was set on this process.
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits for a child's end, and lets go of it.
pub fn wait(child: &mut Child) -> io::Result<std::process::ExitStatus> {
    let status = child.wait()?;
    own().retain(|pid| *pid != child.id());
    Ok(status)
}

/// Puts the child that a command starts into a session of its own.
pub fn in_own_session(command: &mut Command) {
    child::before_exec(command, &[Step::OwnSession]);
}

/// Has the child that a command starts killed when this thread ends.
pub fn dying_with_this(command: &mut Command) {
    child::before_exec(command, &[Step::SignalledWithParent(Signal::KILL)]);
}

/// Whether this process comes by children that it has not started.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Has processes whose parent dies become children of this one, if they descend from it.
pub fn adopt_orphans() -> io::Result<()> {
    ADOPTS.store(true, Ordering::SeqCst);
    // Any process stands for "yes".
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// A number of a process that may be signalled: not of none, of all, and of the first.
fn signallable(pid: u32) -> Option<Pid> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1)?;
    Pid::from_raw(pid)
}

/// Sends a signal to a process. One that is gone needs none.
pub fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = signallable(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to a process group. One that is gone needs none.
pub fn kill_group(pid: u32, signal: Signal) {
    if let Some(pid) = signallable(pid) {
        let _ = kill_process_group(pid, signal);
    }
}

/// How a child ended: its exit code, or the signal that ended it.
pub type Status = Result<i32, i32>;

/// Waits for the end of any child, or, without patience, looks for one. None if there is none.
pub fn reap(patient: bool) -> Option<(u32, Status)> {
    let options = match patient {
        true => WaitOptions::empty(),
        false => WaitOptions::NOHANG,
    };
    let (pid, status) = retry_on_intr(|| rustix::process::wait(options)).ok()??;
    let pid = u32::try_from(pid.as_raw_nonzero().get()).ok()?;
    let ended = match status.terminating_signal() {
        Some(signal) => Err(signal),
        None => Ok(status.exit_status().unwrap_or_default()),
    };
    Some((pid, ended))
}

fn reap_one(pid: u32) {
    if let Some(pid) = signallable(pid) {
        // One that has not ended is left, and so is one that is not a child.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Signals that end the executor, kept from every thread so that one of them can wait for them.
#[derive(Debug, Clone, Copy)]
pub struct EndSignals(SignalSet);

impl EndSignals {
    /// Keeps them from this thread and those that it starts.
    pub fn block() -> io::Result<Self> {
        let mut signals = vec![Signal::TERM, Signal::INT];
        // Under nohup a hang-up is to be survived. A signal that is waited for is not ignored.
        if !signals::is_ignored(Signal::HUP)? {
            signals.push(Signal::HUP);
        }
        let signals = SignalSet::of(&signals);
        signals.block()?;
        Ok(Self(signals))
    }

    /// Waits for one of them.
    pub fn wait(&self) {
        self.0.wait();
    }
}

/// The parent of every process that has not ended.
fn parents() -> HashMap<u32, u32> {
    parents_by(parent)
}

fn parents_by(parent: fn(u32) -> Option<u32>) -> HashMap<u32, u32> {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(pid) = pid
            && let Some(parent) = parent(pid)
        {
            parents.insert(pid, parent);
        }
    }
    parents
}

/// The parent of a process that has not ended.
pub fn parent(pid: u32) -> Option<u32> {
    let (parent, has_ended) = parent_and_end(pid)?;
    (!has_ended).then_some(parent)
}

/// The parent of a process, also of one that has ended and is not waited for yet.
fn parent_of_any(pid: u32) -> Option<u32> {
    Some(parent_and_end(pid)?.0)
}

/// The parent of a process, and whether the process has ended (proc_pid_stat(5)).
fn parent_and_end(pid: u32) -> Option<(u32, bool)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in brackets and may hold some itself.
    let behind = &stat[memchr::memrchr(b')', &stat)? + 1..];
    let mut words = std::str::from_utf8(behind).ok()?.split_whitespace();
    let has_ended = matches!(words.next()?, "Z" | "X");
    Some((words.next()?.parse().ok()?, has_ended))
}

/// All that descends from this process and has not ended, parents before their children.
pub fn descendants() -> Vec<u32> {
    let mut rest = parents();
    let mut found = vec![std::process::id()];
    let mut looked = 0;
    while looked < found.len() {
        let parent = found[looked];
        found.extend(
            rest.iter()
                .filter(|(_, of)| **of == parent)
                .map(|(pid, _)| *pid),
        );
        rest.retain(|_, of| *of != parent);
        looked += 1;
    }
    found.remove(0);
    found
}

/// Kills all that descends from this process, until nothing is left or the time is up. Tells how
/// many there were at first.
pub fn kill_descendants(limit: Duration, reaping: bool) -> usize {
    kill_descendants_but(&[], limit, reaping)
}

/// The same, but for some.
pub fn kill_descendants_but(spared: &[u32], limit: Duration, reaping: bool) -> usize {
    let started = Instant::now();
    let mut first = None;
    loop {
        let mut found = descendants();
        found.retain(|pid| !spared.contains(pid));
        let first = *first.get_or_insert(found.len());
        if reaping {
            while reap(false).is_some() {}
        }
        if found.is_empty() || started.elapsed() > limit {
            return first;
        }
        for pid in found {
            kill(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills children that this process has come by and not started: what a task has left behind whose
/// guard was killed, and what a command has that left its process group. Those that have ended are
/// waited for.
pub fn kill_strays(limit: Duration) {
    if !ADOPTS.load(Ordering::SeqCst) {
        return;
    }
    let this = std::process::id();
    let started = Instant::now();
    loop {
        // While this is held, no number that was found passes to a child of one's own.
        let own = own();
        let all = parents_by(parent_of_any).into_iter();
        let of_this = all.filter(|(_, parent)| *parent == this);
        let strays = of_this.map(|(pid, _)| pid).filter(|pid| !own.contains(pid));
        let strays: Vec<u32> = strays.collect();
        for pid in &strays {
            kill(*pid, Signal::KILL);
            reap_one(*pid);
        }
        drop(own);
        if strays.is_empty() || started.elapsed() > limit {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes back what this process inherited of signals. Every signal is let through and does what it
/// does by default, so that a program that is started can rely on it.
pub fn default_signals() {
    let highest = libc::SIGRTMAX();
    // SAFETY: a set of zeros is valid and is emptied; the numbers are those of signals, and for
    // those that cannot be set (SIGKILL, SIGSTOP, the C library's own) the call changes nothing.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for signal in 1..=highest {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Keeps every descriptor but the first three from the programs that this process starts: whoever
/// started it may have left anything open.
///
/// # Errors
///
/// The system does not tell which descriptors there are.
pub fn keep_descriptors() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|it| it.parse().ok());
        if let Some(number) = number.filter(|number| *number > libc::STDERR_FILENO) {
            // SAFETY: a flag of a descriptor's number changes no memory, and a number that is not
            // in use any more, such as that of the directory that is read, is refused.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}
