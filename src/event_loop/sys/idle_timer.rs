//! A timer for the time without traffic. It runs on across waits, since to arm one for each of
//! them would cost more than it is for.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// A timer, and what has happened since it was armed.
#[derive(Debug)]
pub struct IdleTimer {
    timer: File,
    time: Duration,
    armed: bool,
    busy: bool,
}

impl IdleTimer {
    /// A timer that is not armed. None where the system has no such thing: then each wait has a
    /// time of its own.
    pub fn new(time: Duration) -> Option<Self> {
        let timer = open().ok()?;
        Some(Self {
            timer,
            time,
            armed: false,
            busy: false,
        })
    }

    /// What to wait on.
    pub fn timer(&self) -> &File {
        &self.timer
    }

    /// Whether this is the time that it waits for.
    pub fn is_of(&self, time: Duration) -> bool {
        self.time == time
    }

    /// Arms it, if it is not.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn arm(&mut self) -> io::Result<()> {
        if !self.armed {
            arm(&self.timer, self.time)?;
            self.armed = true;
            self.busy = false;
        }
        Ok(())
    }

    /// Takes note that something has happened.
    pub fn disturb(&mut self) {
        self.busy = true;
    }

    /// The time is up: tells whether nothing has happened in it. If something has, the next wait
    /// arms it again, so that idleness is seen after once to twice its time.
    pub fn is_over(&mut self) -> bool {
        self.armed = false;
        !self.busy
    }
}

#[cfg(target_os = "linux")]
fn open() -> io::Result<File> {
    use std::os::fd::FromRawFd as _;
    let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
    // SAFETY: timerfd_create(2) takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

#[cfg(target_os = "linux")]
fn arm(timer: &File, time: Duration) -> io::Result<()> {
    let never = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let setting = libc::itimerspec {
        it_interval: never,
        it_value: libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos() as libc::c_long,
        },
    };
    let before = std::ptr::null_mut();
    // SAFETY: the descriptor is a timer that lives, the setting is a live value that is only read,
    // and the setting before is not asked for.
    match unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const setting, before) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn arm(_: &File, _: Duration) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
