//! Moves bytes between an engine's executor client and the channel to an executor.

use std::io::ErrorKind;
use std::time::Duration;

use super::{Transport, Wakeup};
use crate::engine::Engine;

/// What is known of the channel.
#[derive(Debug, Default)]
pub struct ExecutorIo {
    /// It is open.
    open: bool,
    /// A read may find something.
    ready: bool,
    /// The last write met no room.
    blocked: bool,
    /// The executor has left, so that nothing more comes than what is there.
    gone: bool,
}

impl ExecutorIo {
    /// Takes in what a wait has found.
    pub fn note(&mut self, wakeup: Wakeup) {
        // A short read is not always the end of what is there, so a pause is a reason to look.
        self.ready |= wakeup.executor_input || wakeup.executor_gone || wakeup.timed_out;
        self.gone |= wakeup.executor_gone;
        self.blocked &= !wakeup.executor_output;
    }

    /// Sets the time, by which what this turn brings is judged.
    pub fn set_time<T: Transport>(&self, engine: &mut Engine, transport: &T) {
        if let Some(client) = engine.executor_client() {
            let now_ms = transport.now().as_millis();
            client.set_time(u64::try_from(now_ms).unwrap_or(u64::MAX));
        }
    }

    /// Reads once, if there is something to read and room for what it may lead to. Tells whether
    /// something came.
    pub fn hear<T: Transport>(&mut self, engine: &mut Engine, transport: &mut T) -> bool {
        let is_open = engine.is_open();
        let (Some(client), Some(channel)) = (engine.executor_client(), transport.executor()) else {
            return false;
        };
        if !self.open || !self.ready || !is_open || !client.has_space() {
            return false;
        }
        let space = client.space();
        let space_bytes = space.len();
        match channel.read(space) {
            Ok(0) => client.end(&channel.fate()),
            Ok(count) => {
                client.fill(count);
                // A short read has emptied it: what comes later is a new edge.
                self.ready = count == space_bytes || self.gone;
                return true;
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => return false,
                ErrorKind::WouldBlock if !self.gone => {}
                _ => client.end(&channel.fate()),
            },
        }
        self.ready = false;
        false
    }

    /// Opens the channel if the client wants it, writes once, and closes the channel if the client
    /// is through with it.
    pub fn tell<T: Transport>(&mut self, engine: &mut Engine, transport: &mut T) {
        let (Some(client), Some(channel)) = (engine.executor_client(), transport.executor()) else {
            return;
        };
        if self.open && !client.is_open() {
            channel.close();
            *self = Self::default();
        }
        if client.wants_open() {
            match channel.open() {
                Ok(()) => {
                    client.opened();
                    self.open = true;
                    self.ready = true;
                }
                Err((absence, why)) => client.absent(absence, &why),
            }
        }
        if !self.open || self.blocked || client.pending().is_empty() {
            return;
        }
        let pending_bytes = client.pending().len();
        match channel.write(client.pending()) {
            Ok(count) => {
                client.consume(count);
                self.blocked = count < pending_bytes;
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => self.blocked = true,
                // What it wrote before it left is still to be read.
                _ => {
                    self.blocked = true;
                    self.ready = true;
                    self.gone = true;
                }
            },
        }
    }

    /// How long until something is due: nothing if there is something to read or to write.
    pub fn due<T: Transport>(&self, engine: &mut Engine, transport: &T) -> Option<Duration> {
        let (is_open, deadline_ms) = (engine.is_open(), engine.deadline_ms());
        let client = engine.executor_client()?;
        let can_read = self.open && self.ready && is_open && client.has_space();
        let can_write = self.open && !self.blocked && !client.pending().is_empty();
        if can_read || can_write || self.open != client.is_open() {
            return Some(Duration::ZERO);
        }
        let deadline = Duration::from_millis(deadline_ms?);
        // The client's clock is in whole milliseconds, so a wait to the end of one suffices.
        Some(deadline.saturating_sub(transport.now()))
    }
}
