//! A timer for the time without traffic. It runs on across waits, since to arm one for each of
//! them would cost more than it is for.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A timer, and what has happened since it was armed.
#[derive(Debug)]
pub struct IdleTimer {
    timer: OwnedFd,
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
    pub fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
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
fn open() -> io::Result<OwnedFd> {
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    Ok(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

#[cfg(target_os = "linux")]
fn arm(timer: &OwnedFd, time: Duration) -> io::Result<()> {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?,
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn open() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn arm(_: &OwnedFd, _: Duration) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
