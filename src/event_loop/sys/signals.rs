//! SIGTERM, SIGINT and SIGHUP as something to wait for, and SIGPIPE as nothing.
//!
//! A handler may do next to nothing, so it writes one byte into a pipe that the loop waits on. A
//! flag alone would be missed when the signal comes right before the loop falls asleep.

use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicI32, Ordering};

use mio::unix::pipe;

/// Where the handler writes; -1 while nobody waits.
static WAKE_FD: AtomicI32 = AtomicI32::new(-1);

const WATCHED: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Signals are watched while this lives, and handled as before afterwards.
#[derive(Debug)]
pub struct Signals {
    receiver: pipe::Receiver,
    _sender: pipe::Sender,
    previous: Previous,
    mask: Mask,
}

struct Previous(Vec<(libc::c_int, libc::sigaction)>);

impl std::fmt::Debug for Previous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} actions", self.0.len())
    }
}

impl Signals {
    /// Starts to watch.
    ///
    /// # Errors
    ///
    /// If no pipe can be had.
    pub fn watch() -> io::Result<Self> {
        let (sender, receiver) = pipe::new()?;
        WAKE_FD.store(sender.as_raw_fd(), Ordering::SeqCst);
        let mut previous = Vec::with_capacity(WATCHED.len() + 1);
        previous.push((libc::SIGPIPE, set(libc::SIGPIPE, libc::SIG_IGN)?));
        for signal in WATCHED {
            // Under nohup a hang-up is to be survived.
            if signal != libc::SIGHUP || !is_ignored(signal)? {
                let handler = wake as *const () as libc::sighandler_t;
                previous.push((signal, set(signal, handler)?));
            }
        }
        Ok(Self {
            receiver,
            _sender: sender,
            previous: Previous(previous),
            mask: Mask::unblock()?,
        })
    }

    /// What to wait on.
    pub fn source(&mut self) -> &mut pipe::Receiver {
        &mut self.receiver
    }

    /// Ignores what was watched, from now on and for good.
    pub fn ignore(&mut self) {
        self.previous.0.clear();
        for signal in WATCHED {
            // It cannot fail for a signal that was set before, and an end is no time to complain.
            let _ = set(signal, libc::SIG_IGN);
        }
    }

    /// Takes in what has come.
    pub fn drain(&mut self) -> bool {
        let mut bytes = [0; 16];
        matches!(self.receiver.read(&mut bytes), Ok(1..))
    }
}

/// The mask that was inherited. A parent may have blocked what it means to send later.
struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// Lets the watched signals through to this thread.
    fn unblock() -> io::Result<Self> {
        // SAFETY: a set of zeros is a value of the type, and is emptied right away.
        let (mut watched, mut before): (libc::sigset_t, libc::sigset_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: the pointers are to live sets, and the numbers are those of signals.
        let outcome = unsafe {
            libc::sigemptyset(&raw mut watched);
            for signal in WATCHED {
                libc::sigaddset(&raw mut watched, signal);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const watched, &raw mut before)
        };
        match outcome {
            0 => Ok(Self(before)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn restore(&self) {
        // SAFETY: the set is one that the system gave.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.mask.restore();
        for (signal, action) in &self.previous.0 {
            // SAFETY: the action is one that the system gave for this signal.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        WAKE_FD.store(-1, Ordering::SeqCst);
    }
}

/// Sets what a signal does, and tells what it did before. Calls are not restarted, so that one
/// that waits returns.
fn set(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<libc::sigaction> {
    let (mut action, mut before) = (default_action(), default_action());
    action.sa_sigaction = handler;
    // SAFETY: both pointers are to live values of the right type, and the handler is either the
    // constant to ignore or a function that is safe in a handler.
    match unsafe { libc::sigaction(signal, &raw const action, &raw mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

fn default_action() -> libc::sigaction {
    // SAFETY: a `sigaction` of zeros is valid: no flags, an empty mask, the default action.
    unsafe { std::mem::zeroed() }
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    let mut action = default_action();
    // SAFETY: without a new action, the call only writes the present one to a live value.
    match unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } {
        0 => Ok(action.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn wake(_: libc::c_int) {
    // SAFETY: `__errno_location` and write(2) may be called in a handler, the pointer is to a live
    // byte, and the pipe does not block. A full pipe is fine: it wakes as well.
    unsafe {
        let errno = errno_location();
        let saved = *errno;
        libc::write(WAKE_FD.load(Ordering::SeqCst), c"!".as_ptr().cast(), 1);
        *errno = saved;
    }
}

#[cfg(any(target_os = "linux", target_os = "l4re", target_os = "hurd"))]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: it has no conditions; the pointer is to this thread's errno.
    unsafe { libc::__errno_location() }
}

#[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: it has no conditions; the pointer is to this thread's errno.
    unsafe { libc::__error() }
}
