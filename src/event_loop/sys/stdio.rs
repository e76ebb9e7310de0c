//! The transport of production: stdin and stdout, whatever they are.
//!
//! Pipes, sockets and terminals are waited on by mio. Regular files and devices such as /dev/null
//! cannot be, and never need to: they are always ready.

use std::io::{self, ErrorKind, IsTerminal as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::io::Errno;

use super::pidfd;
use crate::event_loop::sys::descriptor::{Access, Descriptor};
use crate::event_loop::sys::executor_channel::{self, ExecutorAddr, ExecutorChannel};
use crate::event_loop::sys::idle_timer::IdleTimer;
use crate::event_loop::sys::signals::Signals;
use crate::event_loop::{Channel, Failure, Transport, Wakeup, Want};
use crate::limits::REST_AFTER_MS;

const INPUT: Token = Token(0);
const OUTPUT: Token = Token(1);
const SIGNAL: Token = Token(2);
const PARENT: Token = Token(3);
const IDLE: Token = Token(7);
const TOKENS: usize = 9;

/// What is asked of the output while there is room: nothing, since that its reader is gone is
/// reported unasked. Interest in room would cost a wake-up for each reply that a socket delivers.
#[cfg(target_os = "linux")]
const OUTPUT_IDLE: Interest = Interest::PRIORITY;
#[cfg(not(target_os = "linux"))]
const OUTPUT_IDLE: Interest = Interest::WRITABLE;

/// An inherited descriptor, and whether it can be waited on.
#[derive(Debug)]
struct StdioEnd {
    descriptor: Descriptor,
    pollable: bool,
    terminal: bool,
}

impl StdioEnd {
    fn open(
        registry: &Registry,
        fd: BorrowedFd<'static>,
        access: Access,
        token: Token,
        interest: Interest,
    ) -> io::Result<Self> {
        let descriptor = Descriptor::new(fd, access);
        match register(registry, descriptor.fd(), token, interest) {
            Ok(()) => Ok(Self {
                descriptor,
                pollable: true,
                terminal: fd.is_terminal(),
            }),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => Ok(Self {
                descriptor: Descriptor::always_ready(fd),
                pollable: false,
                terminal: false,
            }),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let outcome = self.descriptor.read(into);
        outcome.map_err(|error| self.hangup_or(error))
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let outcome = self.descriptor.write(from);
        outcome.map_err(|error| self.hangup_or(error))
    }

    /// A terminal that hung up says EIO, which means a failure anywhere else.
    fn hangup_or(&self, error: io::Error) -> io::Error {
        if self.terminal && Errno::from_io_error(&error) == Some(Errno::IO) {
            ErrorKind::BrokenPipe.into()
        } else {
            error
        }
    }
}

/// Has something waited on, whatever it is.
fn register(
    registry: &Registry,
    source: impl AsFd,
    token: Token,
    interest: Interest,
) -> io::Result<()> {
    registry.register(&mut SourceFd(&source.as_fd().as_raw_fd()), token, interest)
}

/// Stdin and stdout of this process, its signals, its parent and a clock.
#[derive(Debug)]
pub struct Stdio {
    poll: Poll,
    events: Events,
    input: StdioEnd,
    output: StdioEnd,
    /// Whether room to write is being waited for.
    output_wanted: bool,
    signals: Signals,
    /// A timer for rest, where the system has one.
    idle_timer: Option<IdleTimer>,
    /// Whether any input has come.
    heard: bool,
    parent: Option<OwnedFd>,
    executor: Option<ExecutorChannel>,
    start: Instant,
}

impl Stdio {
    /// Opens the transport, with a way to an executor that is opened later. Nothing about the
    /// inherited descriptors is changed.
    ///
    /// # Errors
    ///
    /// If another server of this process has opened it, or the system has no descriptor or no
    /// memory left.
    pub fn open(executor: Option<ExecutorAddr>) -> Result<Self, Failure> {
        Self::try_open(executor).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => Failure::Busy,
            _ => Failure::Wait(error),
        })
    }

    fn try_open(executor: Option<ExecutorAddr>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let signals = Signals::watch()?;
        register(registry, signals.source(), SIGNAL, Interest::READABLE)?;
        let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        let input = StdioEnd::open(registry, stdin, Access::Read, INPUT, Interest::READABLE)?;
        let output = StdioEnd::open(registry, stdout, Access::Write, OUTPUT, OUTPUT_IDLE)?;
        let idle_timer = IdleTimer::new(Duration::from_millis(REST_AFTER_MS));
        if let Some(idle_timer) = &idle_timer {
            register(registry, idle_timer.timer(), IDLE, Interest::READABLE)?;
        }
        let executor = match executor {
            Some(way) => Some(ExecutorChannel::new(way, registry.try_clone()?)),
            None => None,
        };
        Ok(Self {
            poll,
            events: Events::with_capacity(TOKENS),
            input,
            output,
            output_wanted: false,
            signals,
            idle_timer,
            heard: false,
            parent: None,
            executor,
            start: Instant::now(),
        })
    }

    /// Ignores the signals that were watched, from now on and for good.
    pub fn ignore_signals(&mut self) {
        self.signals.ignore();
    }

    /// Asks for room to write, or no longer. It is asked for anew before each wait, since that also
    /// tells of room that is there already: no edge comes for that.
    fn want_output(&mut self, wanted: bool) -> io::Result<()> {
        if (!wanted && !self.output_wanted) || !self.output.pollable {
            return Ok(());
        }
        let interest = if wanted {
            Interest::WRITABLE
        } else {
            OUTPUT_IDLE
        };
        let fd = self.output.descriptor.fd().as_raw_fd();
        self.poll
            .registry()
            .reregister(&mut SourceFd(&fd), OUTPUT, interest)?;
        self.output_wanted = wanted;
        Ok(())
    }

    /// Watches the process that is the parent when the first input comes. One that was gone before
    /// was a launcher, and its end does not tell of the client's.
    ///
    /// It is one sign among others: where it cannot be had, service goes on without.
    fn watch_parent(&mut self) {
        self.heard = true;
        let registry = self.poll.registry();
        self.parent = pidfd::watch()
            .filter(|watch| register(registry, watch, PARENT, Interest::READABLE).is_ok());
    }

    /// The timeout that a wait needs beside the timer for rest.
    fn without_idle_timer(
        &mut self,
        timeout: Option<Duration>,
        rest: bool,
    ) -> io::Result<Option<Duration>> {
        match &mut self.idle_timer {
            Some(idle_timer) if rest => idle_timer.arm().map(|()| None),
            _ => Ok(timeout),
        }
    }

    fn disturb(&mut self) {
        if let Some(idle_timer) = &mut self.idle_timer {
            idle_timer.disturb();
        }
    }

    /// Takes in what has happened, and tells whether the idle time is up.
    fn note(&mut self, wakeup: &mut Wakeup) -> bool {
        let mut idle_over = false;
        for event in &self.events {
            match event.token() {
                INPUT => {
                    wakeup.input |= event.is_readable();
                    wakeup.input_closed |= event.is_read_closed() || event.is_error();
                }
                OUTPUT => {
                    wakeup.output |= event.is_writable();
                    wakeup.output_gone |= is_gone(event);
                }
                SIGNAL => wakeup.signal |= self.signals.drain(),
                PARENT => wakeup.parent_gone = true,
                IDLE => {
                    let idle_timer = self.idle_timer.as_mut();
                    idle_over = idle_timer.is_some_and(|idle_timer| idle_timer.is_over());
                }
                executor_channel::INPUT => {
                    wakeup.executor_input |= event.is_readable() || event.is_read_closed();
                    wakeup.executor_output |= event.is_writable();
                }
                executor_channel::OUTPUT => wakeup.executor_output = true,
                executor_channel::CHILD => wakeup.executor_gone = true,
                executor_channel::LEAVING => {
                    let executor = self.executor.as_mut();
                    wakeup.executor_gone |=
                        executor.is_some_and(|executor| executor.look_after_leaving());
                }
                _ => unreachable!("a token that was never registered"),
            }
        }
        if wakeup.parent_gone
            && let Some(file) = self.parent.take()
        {
            let fd = file.as_raw_fd();
            let gone = self.poll.registry().deregister(&mut SourceFd(&fd));
            debug_assert!(gone.is_ok());
        }
        idle_over
    }
}

/// Whether the reader of the output is gone.
fn is_gone(event: &Event) -> bool {
    event.is_error() || event.is_write_closed()
}

impl Transport for Stdio {
    fn wait(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<Wakeup> {
        self.want_output(want.output)?;
        // What cannot be waited on is ready as soon as it is wanted.
        let mut wakeup = Wakeup {
            input: want.input && !self.input.pollable,
            output: want.output && !self.output.pollable,
            ..Wakeup::default()
        };
        let timeout = if wakeup.input || wakeup.output {
            Some(Duration::ZERO)
        } else {
            self.without_idle_timer(timeout, want.rest)?
        };
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(wakeup),
            Err(error) => return Err(error),
        }
        wakeup.timed_out = self.events.is_empty() && timeout.is_some_and(|time| !time.is_zero());
        let before = wakeup;
        let idle_over = self.note(&mut wakeup);
        if wakeup != before {
            self.disturb();
        } else {
            wakeup.timed_out |= idle_over && want.rest;
        }
        if wakeup.timed_out
            && let Some(executor) = &mut self.executor
        {
            wakeup.executor_gone |= executor.has_ended_unseen() || executor.look_after_leaving();
        }
        Ok(wakeup)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        if !self.heard {
            self.watch_parent();
        }
        Ok(count)
    }

    fn short_read_drains(&self) -> bool {
        self.input.descriptor.short_read_drains()
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.output.write(from)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn relax(&mut self) {
        std::thread::yield_now();
    }

    fn executor(&mut self) -> Option<&mut dyn Channel> {
        let executor = self.executor.as_mut()?;
        Some(executor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::sys::signals::tests::alone;
    use crate::limits::FLUSH_RETRY_MS;

    #[test]
    fn a_wait_takes_the_time_of_what_it_is_for() {
        let _alone = alone();
        let mut stdio = Stdio::open(None).unwrap();
        let retry = Some(Duration::from_millis(FLUSH_RETRY_MS));
        assert_eq!(stdio.without_idle_timer(retry, false).unwrap(), retry);
        let rest = Some(Duration::from_millis(REST_AFTER_MS));
        let expected = rest.filter(|_| stdio.idle_timer.is_none());
        assert_eq!(stdio.without_idle_timer(rest, true).unwrap(), expected);
    }

    #[test]
    fn two_at_once_are_a_typed_error_and_the_next_one_is_served() {
        let _alone = alone();
        let first = Stdio::open(None).unwrap();
        assert!(matches!(Stdio::open(None), Err(Failure::Busy)));
        drop(first);
        assert!(Stdio::open(None).is_ok());
    }
}
