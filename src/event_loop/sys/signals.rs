//! SIGTERM, SIGINT and SIGHUP as something to wait for, and SIGPIPE as nothing.
//!
//! A handler may do next to nothing, so it writes one byte into a pipe that the loop waits on. A
//! flag alone would be missed when the signal comes right before the loop falls asleep.
//!
//! What a signal does belongs to the whole process, so one server of a process watches at a time.
//! Every way out, also out of the middle of [`Signals::watch`], puts back what was there before.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::unix::pipe::{self, Receiver, Sender};
use rustix::process::Signal;

#[cfg(target_os = "linux")]
use libc::__errno_location as errno_location;
#[cfg(target_os = "macos")]
use libc::__error as errno_location;

const WATCHED: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];

/// What the handler writes to. It is opened once and never closed: a handler that another thread
/// is in the middle of would otherwise write into whatever file got the number next.
static PIPE: OnceLock<WakePipe> = OnceLock::new();

/// Somebody watches.
static WATCHING: AtomicBool = AtomicBool::new(false);

/// Signals are watched while this lives, and handled as before afterwards.
#[derive(Debug)]
pub struct Signals {
    pipe: &'static WakePipe,
    // In the order in which they are put back: what was blocked must not meet another action.
    _mask: Unblocked,
    actions: Actions,
    _turn: Turn,
}

impl Signals {
    /// Starts to watch.
    ///
    /// # Errors
    ///
    /// `ResourceBusy` if somebody in this process watches already, and what the system says if no
    /// pipe can be had.
    pub fn watch() -> io::Result<Self> {
        Self::watch_these(&WATCHED)
    }

    fn watch_these(watched: &[Signal]) -> io::Result<Self> {
        let turn = Turn::take()?;
        let pipe = WakePipe::of_process()?;
        // What came after the last server had ended was not for this one.
        while pipe.drain() {}
        let mut actions = Actions::default();
        actions.set(Signal::PIPE, libc::SIG_IGN)?;
        for signal in watched.iter().copied() {
            // Under nohup a hang-up is to be survived.
            if signal != Signal::HUP || !is_ignored(signal)? {
                actions.set(signal, wake as *const () as libc::sighandler_t)?;
            }
        }
        Ok(Self {
            pipe,
            _mask: Unblocked::new()?,
            actions,
            _turn: turn,
        })
    }

    /// What to wait on.
    pub fn source(&self) -> BorrowedFd<'static> {
        self.pipe.reader.as_fd()
    }

    /// Ignores what was watched, from now on and for good.
    pub fn ignore(&mut self) {
        self.actions.0.clear();
        for signal in WATCHED {
            // It cannot fail for a signal that was set before, and whoever ends has nobody to tell.
            let _ = exchange(signal, Some(&action(libc::SIG_IGN)));
        }
    }

    /// Takes in what has come.
    pub fn drain(&mut self) -> bool {
        self.pipe.drain()
    }
}

/// The right to watch, which one server of a process has at a time.
#[derive(Debug)]
struct Turn;

impl Turn {
    fn take() -> io::Result<Self> {
        match WATCHING.swap(true, Ordering::AcqRel) {
            false => Ok(Self),
            true => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        WATCHING.store(false, Ordering::Release);
    }
}

#[derive(Debug)]
struct WakePipe {
    reader: Receiver,
    writer: Sender,
}

impl WakePipe {
    fn of_process() -> io::Result<&'static Self> {
        if let Some(pipe) = PIPE.get() {
            return Ok(pipe);
        }
        let (writer, reader) = pipe::new()?;
        Ok(PIPE.get_or_init(|| Self { reader, writer }))
    }

    /// Tells whether something was in it.
    fn drain(&self) -> bool {
        matches!(rustix::io::read(&self.reader, &mut [0; 16]), Ok(1..))
    }
}

/// What signals did before. It is put back when this goes.
#[derive(Default)]
struct Actions(Vec<(Signal, libc::sigaction)>);

impl Actions {
    fn set(&mut self, signal: Signal, handler: libc::sighandler_t) -> io::Result<()> {
        let before = exchange(signal, Some(&action(handler)))?;
        self.0.push((signal, before));
        Ok(())
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // It cannot fail for a signal that was set before.
            let _ = exchange(*signal, Some(before));
        }
    }
}

impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} actions", self.0.len())
    }
}

/// What sets a handler. Calls are not restarted, so that one that waits returns.
fn action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: a `sigaction` of zeros is valid: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action
}

/// Sets what a signal does, if that is given, and tells what it did before.
fn exchange(signal: Signal, action: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let mut before = self::action(libc::SIG_DFL);
    let new = action.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointers are to live values of the right type, the first also null. The handler
    // is the default, to ignore, `wake`, or one that the system has told of.
    match unsafe { libc::sigaction(signal.as_raw(), new, &raw mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process ignores a signal, as it may have been started to.
///
/// # Errors
///
/// What the system says, for a number that is not a signal's.
pub fn is_ignored(signal: Signal) -> io::Result<bool> {
    Ok(exchange(signal, None)?.sa_sigaction == libc::SIG_IGN)
}

/// Has the ends of children kept until somebody waits for them. Where SIGCHLD is ignored, as a
/// process may have been started to, the system forgets how they ended.
///
/// # Errors
///
/// What the system says.
pub fn keep_ends_of_children() -> io::Result<()> {
    exchange(Signal::CHILD, Some(&action(libc::SIG_DFL))).map(drop)
}

extern "C" fn wake(_: libc::c_int) {
    let Some(pipe) = PIPE.get() else { return };
    // SAFETY: `errno_location` and write(2) may be called in a handler, the first gives a pointer
    // to this thread's errno, and the second reads one live byte. The pipe does not block. A full
    // pipe is fine: it wakes as well.
    unsafe {
        let errno = errno_location();
        let saved = *errno;
        libc::write(pipe.writer.as_raw_fd(), c"!".as_ptr().cast(), 1);
        *errno = saved;
    }
}

/// Lets the watched signals through to this thread: a parent may have blocked what it means to
/// send later. The mask that was inherited is put back when this goes.
struct Unblocked(SignalSet);

impl Unblocked {
    fn new() -> io::Result<Self> {
        SignalSet::of(&WATCHED).apply(libc::SIG_UNBLOCK).map(Self)
    }
}

impl Drop for Unblocked {
    fn drop(&mut self) {
        // It cannot fail for a set that the system has told of.
        let _ = self.0.apply(libc::SIG_SETMASK);
    }
}

impl fmt::Debug for Unblocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unblocked")
    }
}

/// A set of signals.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of these.
    pub fn of(signals: &[Signal]) -> Self {
        // SAFETY: a set of zeros is a value of the type, which is emptied right away; the pointers
        // are to it, and a number that is not a signal's changes nothing.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, signal.as_raw());
            }
            Self(set)
        }
    }

    /// Keeps them from this thread, and from those that it starts from now on.
    ///
    /// # Errors
    ///
    /// What the system says, which has no reason to.
    pub fn block(&self) -> io::Result<()> {
        self.apply(libc::SIG_BLOCK).map(drop)
    }

    /// Changes what is blocked in one of the ways of pthread_sigmask(3). Gives what was before.
    fn apply(&self, how: libc::c_int) -> io::Result<Self> {
        let mut before = Self::of(&[]);
        // SAFETY: the pointers are to live sets.
        let outcome = unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) };
        match outcome {
            0 => Ok(before),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Waits for one of them. They must be blocked for every thread.
    pub fn wait(&self) {
        let mut signal = 0;
        // SAFETY: the pointers are to a live set and a live integer.
        unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
    }
}

impl fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignalSet")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Mutex, MutexGuard};

    use rustix::process::{getpid, kill_process};

    use super::*;

    /// What a signal does belongs to the process, and so to one test at a time.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What the watched signals do, which is never ours where nobody watches.
    fn handlers() -> [libc::sighandler_t; 3] {
        let handlers = WATCHED.map(|signal| exchange(signal, None).unwrap().sa_sigaction);
        assert!(!handlers.contains(&(wake as *const () as libc::sighandler_t)));
        handlers
    }

    #[test]
    fn a_second_server_is_refused_and_takes_nothing_from_the_first() {
        let _alone = alone();
        let mut first = Signals::watch().unwrap();
        let second = Signals::watch().map(drop).map_err(|error| error.kind());
        assert_eq!(second, Err(io::ErrorKind::ResourceBusy));
        let threaded = std::thread::spawn(|| Signals::watch().is_err());
        assert!(threaded.join().unwrap());
        kill_process(getpid(), Signal::TERM).unwrap();
        assert!(comes(&mut first));
    }

    #[test]
    fn servers_that_follow_one_another_hear_of_their_own_signals_alone() {
        let _alone = alone();
        let before = handlers();
        for _ in 0..3 {
            let mut signals = Signals::watch().unwrap();
            assert!(!signals.drain(), "a signal of the last one's");
            for _ in 0..2 {
                kill_process(getpid(), Signal::TERM).unwrap();
                assert!(comes(&mut signals));
            }
            kill_process(getpid(), Signal::INT).unwrap();
            // It is left in the pipe.
            std::thread::sleep(std::time::Duration::from_millis(1));
            drop(signals);
            assert_eq!(handlers(), before);
        }
    }

    #[test]
    fn a_failure_half_way_puts_back_what_was_there() {
        let _alone = alone();
        let before = handlers();
        // Nobody can watch SIGKILL.
        let outcome = Signals::watch_these(&[Signal::TERM, Signal::KILL]);
        assert!(outcome.is_err());
        drop(outcome);
        assert_eq!(handlers(), before);
        assert!(Signals::watch().is_ok(), "the next one may watch");
    }

    /// The handler may run in another thread, a moment later.
    fn comes(signals: &mut Signals) -> bool {
        (0..60_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            signals.drain()
        })
    }
}
