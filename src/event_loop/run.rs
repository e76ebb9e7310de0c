//! The loop itself. It knows no system call, only a [`Transport`].
//!
//! One turn: read once, serve every whole frame, write once, wait; and the same for an executor, if
//! there is one. Readiness is edge-triggered:
//! it comes once, so a turn that stops early remembers that there is more.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::{Ended, Failure, Transport, Wakeup, Want};
use crate::engine::Engine;
use crate::event_loop::executor_io::ExecutorIo;
use crate::limits::{
    BUSY_TURNS_MAX, FLUSH_RETRY_MS, FLUSH_SIGNAL_MS, FLUSH_STALL_MS, FLUSH_TOTAL_MS, REST_AFTER_MS,
};

/// Serves until the end.
///
/// # Errors
///
/// See [`Failure`].
pub fn drive<T: Transport>(engine: &mut Engine, transport: &mut T) -> Result<Ended, Failure> {
    drive_busily(engine, transport, Duration::ZERO)
}

/// As [`drive`], but looks for input for so long before it sleeps. That saves the wake-up where a
/// CPU can be spared for it, and costs that CPU.
///
/// # Errors
///
/// See [`Failure`].
pub fn drive_busily<T: Transport>(
    engine: &mut Engine,
    transport: &mut T,
    busy_poll: Duration,
) -> Result<Ended, Failure> {
    let mut driver = Driver {
        engine,
        transport,
        input: Input {
            ready: true,
            closed: false,
            orphaned: false,
            ended: false,
        },
        output_blocked: false,
        rested: false,
        flush: None,
        busy_poll,
        busy_turns: 0,
        executor_io: ExecutorIo::default(),
    };
    driver.run()
}

struct Driver<'d, T> {
    engine: &'d mut Engine,
    transport: &'d mut T,
    input: Input,
    /// The last write met no room.
    output_blocked: bool,
    /// Nothing has happened since the last rest.
    rested: bool,
    /// Replies are being flushed against a deadline, since no more input will come.
    flush: Option<Flush>,
    /// How long to look for input before sleeping.
    busy_poll: Duration,
    /// Turns since the last wait.
    busy_turns: u32,
    /// The way to an executor, if the engine has an executor client.
    executor_io: ExecutorIo,
}

struct Input {
    /// A read may find something.
    ready: bool,
    /// The other end was closed, so a short read does not mean that all was read.
    closed: bool,
    /// The parent is gone: what is there is served, and then it is the end.
    orphaned: bool,
    /// A read has met the end.
    ended: bool,
}

#[derive(Clone, Copy)]
struct Flush {
    started: Duration,
    progressed: Duration,
    /// When the output is tried again, whether or not there was word of room.
    retry: Duration,
}

/// How long the next wait may take, and whether that is the time after which a server is at rest.
struct Patience {
    timeout: Option<Duration>,
    rest: bool,
}

impl Patience {
    fn until(timeout: Option<Duration>) -> Self {
        Self {
            timeout,
            rest: false,
        }
    }
}

impl<T: Transport> Driver<'_, T> {
    fn run(&mut self) -> Result<Ended, Failure> {
        loop {
            if self.engine.has_executor_client() {
                self.executor_io.set_time(self.engine, self.transport);
            }
            self.read()?;
            if self.engine.has_executor_client()
                && self.executor_io.hear(self.engine, self.transport)
            {
                self.rested = false;
            }
            self.engine.serve();
            if self.engine.has_executor_client() {
                self.executor_io.tell(self.engine, self.transport);
            }
            if self.write()? {
                return Ok(Ended::Reader);
            }
            if self.engine.is_drained() {
                return Ok(Ended::Input);
            }
            if self.spin()? {
                continue;
            }
            let Patience { timeout, rest } = self.patience()?;
            let want = Want {
                input: !self.input.ended && self.engine.has_space(),
                output: self.output_blocked,
                rest,
            };
            let wakeup = self.transport.wait(timeout, want);
            let wakeup = wakeup.map_err(Failure::Wait)?;
            if wakeup.output_gone {
                return Ok(Ended::Reader);
            }
            if wakeup.signal {
                return Ok(self.leave());
            }
            self.note(wakeup);
        }
    }

    /// Reads once, if there is something to read and room for it.
    fn read(&mut self) -> Result<(), Failure> {
        if !self.input.ready || self.input.ended || !self.engine.has_space() {
            return Ok(());
        }
        let space = self.engine.space();
        let space_bytes = space.len();
        match self.transport.read(space) {
            Ok(0) => self.end_of_input(),
            Ok(count) => {
                self.engine.fill(count);
                self.rested = false;
                // A short read has emptied the pipe: what comes later is a new edge. Where that
                // does not hold, the read before resting finds the rest.
                let drained = count < space_bytes && self.transport.short_read_drains();
                self.input.ready = !drained || self.input.closed || self.input.orphaned;
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock if self.input.orphaned => self.end_of_input(),
                ErrorKind::WouldBlock => self.input.ready = false,
                // A socket that was closed with replies unread says so once, after its data.
                _ if is_hangup(&error) => self.end_of_input(),
                _ => return Err(Failure::Read(error)),
            },
        }
        Ok(())
    }

    fn end_of_input(&mut self) {
        self.input.ended = true;
        self.input.ready = false;
        self.engine.end_of_input();
        // The last line may have become a frame just now.
        self.engine.serve();
    }

    /// Writes once, if there is something to write. Tells whether the reader is gone.
    fn write(&mut self) -> Result<bool, Failure> {
        if self.output_blocked || self.engine.pending().is_empty() {
            return Ok(false);
        }
        let pending = self.engine.pending();
        let pending_bytes = pending.len();
        match self.transport.write(pending) {
            Ok(count) => {
                self.engine.consume(count);
                self.output_blocked = count < pending_bytes;
                self.rested = false;
                if let Some(flush) = &mut self.flush {
                    flush.progressed = self.transport.now();
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => self.output_blocked = true,
                _ if is_hangup(&error) => return Ok(true),
                _ => return Err(Failure::Write(error)),
            },
        }
        Ok(false)
    }

    /// Looks for input for a while instead of sleeping, giving the CPU to whoever wants it between
    /// two looks. Tells whether there was some.
    fn spin(&mut self) -> Result<bool, Failure> {
        let idle = !self.input.ready && !self.input.ended && !self.output_blocked;
        if self.busy_poll.is_zero() || !idle || self.engine.can_serve() {
            return Ok(false);
        }
        self.busy_turns += 1;
        if self.busy_turns > BUSY_TURNS_MAX {
            self.busy_turns = 0;
            return Ok(false);
        }
        let until = self.transport.now() + self.busy_poll;
        while self.transport.now() < until {
            self.input.ready = true;
            self.read()?;
            if self.engine.can_serve() || self.input.ended {
                return Ok(true);
            }
            self.transport.relax();
        }
        self.input.ready = false;
        self.busy_turns = 0;
        Ok(false)
    }

    /// How long the next wait may take.
    fn patience(&mut self) -> Result<Patience, Failure> {
        let can_read = self.input.ready && !self.input.ended && self.engine.has_space();
        let can_write = !self.output_blocked && !self.engine.pending().is_empty();
        if can_read || can_write || self.engine.can_serve() {
            return Ok(Patience::until(Some(Duration::ZERO)));
        }
        let due = match self.engine.has_executor_client() {
            true => self.executor_io.due(self.engine, self.transport),
            false => None,
        };
        let no_more_input = self.input.ended || self.input.closed || self.input.orphaned;
        let flush = match no_more_input && self.output_blocked {
            true => Some(self.flush_patience()?),
            false => None,
        };
        let rest = Duration::from_millis(REST_AFTER_MS);
        if flush.is_none() && !self.rested && due.is_none_or(|due| rest <= due) {
            return Ok(Patience {
                timeout: Some(rest),
                rest: true,
            });
        }
        Ok(Patience::until(due.into_iter().chain(flush).min()))
    }

    /// How long to wait before the output is tried again, within the time for flushing.
    fn flush_patience(&mut self) -> Result<Duration, Failure> {
        let now = self.transport.now();
        let flush = *self.flush.get_or_insert(Flush {
            started: now,
            progressed: now,
            retry: now + Duration::from_millis(FLUSH_RETRY_MS),
        });
        let stalled = flush.progressed + Duration::from_millis(FLUSH_STALL_MS);
        let overdue = flush.started + Duration::from_millis(FLUSH_TOTAL_MS);
        let end = stalled.min(overdue);
        if end <= now {
            let unsent_bytes = self.engine.pending().len();
            return Err(Failure::Stalled { unsent_bytes });
        }
        Ok(end.min(flush.retry).saturating_sub(now))
    }

    fn note(&mut self, wakeup: Wakeup) {
        self.executor_io.note(wakeup);
        self.input.ready |= wakeup.input || wakeup.input_closed;
        self.input.closed |= wakeup.input_closed;
        if wakeup.parent_gone {
            self.input.orphaned = true;
            self.input.ready = true;
        }
        if wakeup.output || self.is_retry_due() {
            self.output_blocked = false;
        } else if wakeup.timed_out && !self.rested {
            self.rest();
        }
    }

    /// Whether the output is to be tried again without word of room. The next time is set then.
    fn is_retry_due(&mut self) -> bool {
        let Some(flush) = &mut self.flush else {
            return false;
        };
        let now = self.transport.now();
        let due = flush.retry <= now;
        if due {
            flush.retry = now + Duration::from_millis(FLUSH_RETRY_MS);
        }
        due
    }

    /// Comes to rest: looks once more whether the last short read was right about the end of what
    /// is there, and gives memory back. A pipe of packets and a socket that carries ancillary data
    /// end a read early.
    fn rest(&mut self) {
        self.rested = true;
        self.engine.rest();
        if !self.input.ended {
            self.input.ready = true;
        }
    }

    /// The end on a signal: what is written already is flushed, for a short while.
    fn leave(&mut self) -> Ended {
        let deadline = self.transport.now() + Duration::from_millis(FLUSH_SIGNAL_MS);
        loop {
            self.output_blocked = false;
            match self.write() {
                Ok(false) if !self.engine.pending().is_empty() => {}
                _ => return Ended::Signal,
            }
            let left = deadline.saturating_sub(self.transport.now());
            if left.is_zero() {
                return Ended::Signal;
            }
            if !self.output_blocked {
                // It was interrupted, so no edge would come for the room that there is.
                continue;
            }
            let want = Want {
                input: false,
                output: true,
                rest: false,
            };
            match self.transport.wait(Some(left), want) {
                Ok(wakeup) if !wakeup.signal && !wakeup.output_gone => {}
                _ => return Ended::Signal,
            }
        }
    }
}

/// Errors by which a system says that the other end is gone.
fn is_hangup(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected
    )
}
