//! Lines to an executor that were not answered yet: to be sent, and to be sent again when a
//! connection is lost.

use std::collections::VecDeque;
use std::ops::Range;

use crate::limits::{
    EXECUTOR_SHORT_LINE_BYTES_MAX, EXECUTOR_SHORT_LINES_RESERVE_BYTES,
    EXECUTOR_UNANSWERED_BYTES_MAX, EXECUTOR_UNANSWERED_MAX,
};

/// The lines, in one buffer that is claimed once.
///
/// ```text
///   |  line 1  |  line 2  |  line 3  |  line 4  |
///                   ^ sent
/// ```
///
/// A line that was answered goes when all of it was sent and nothing before it is left; what stands
/// behind one that is not answered is taken out when room is needed. One that was given up before
/// any of it was sent on this connection goes at once, and is never sent.
#[derive(Debug)]
pub struct ResendQueue {
    bytes: Vec<u8>,
    lines: VecDeque<QueuedLine>,
    /// How many bytes of the buffer were sent on this connection.
    sent: usize,
}

#[derive(Debug)]
struct QueuedLine {
    serial: u64,
    bytes: usize,
    answered: bool,
    /// Whether some of it was ever sent.
    left: bool,
}

/// The queue has no room for a further line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Default for ResendQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl ResendQueue {
    /// Claims the buffer.
    pub fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(EXECUTOR_UNANSWERED_BYTES_MAX),
            lines: VecDeque::with_capacity(EXECUTOR_UNANSWERED_MAX),
            sent: 0,
        }
    }

    /// Adds a line, its LF included, under the number that its answer will carry.
    ///
    /// # Errors
    ///
    /// The queue is full. Some room is kept for short lines.
    pub fn push(&mut self, serial: u64, line: &[u8]) -> Result<(), Full> {
        let short = line.len() <= EXECUTOR_SHORT_LINE_BYTES_MAX;
        let reserve = if short {
            0
        } else {
            EXECUTOR_SHORT_LINES_RESERVE_BYTES
        };
        let room = EXECUTOR_UNANSWERED_BYTES_MAX - reserve;
        let fits = |lines: &Self| {
            lines.bytes.len() + line.len() <= room && lines.lines.len() < EXECUTOR_UNANSWERED_MAX
        };
        if !fits(self) {
            self.compact();
        }
        if !fits(self) {
            return Err(Full);
        }
        self.bytes.extend_from_slice(line);
        self.lines.push_back(QueuedLine {
            serial,
            bytes: line.len(),
            answered: false,
            left: false,
        });
        Ok(())
    }

    /// What is to be sent.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Takes note that the first `count` pending bytes were sent.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.sent);
        self.sent += count;
        let mut start = 0;
        for line in &mut self.lines {
            if start >= self.sent {
                break;
            }
            line.left = true;
            start += line.bytes;
        }
        self.release();
    }

    /// Takes note that a line was answered, or that nobody waits for its answer any more.
    pub fn answer(&mut self, serial: u64) {
        let Some((index, range)) = self.find(serial) else {
            return;
        };
        if self.sent <= range.start {
            self.lines.remove(index);
            self.bytes.drain(range);
        } else {
            self.lines[index].answered = true;
            self.release();
        }
    }

    /// Whether a line is here of which nothing was sent on this connection.
    pub fn is_unsent(&self, serial: u64) -> bool {
        self.find(serial)
            .is_some_and(|(_, range)| self.sent <= range.start)
    }

    /// Which line has a number, and where it stands in the buffer.
    fn find(&self, serial: u64) -> Option<(usize, Range<usize>)> {
        let mut start = 0;
        for (index, line) in self.lines.iter().enumerate() {
            let end = start + line.bytes;
            if line.serial == serial {
                return Some((index, start..end));
            }
            start = end;
        }
        None
    }

    /// Whether a line, or a part of it, was ever sent.
    pub fn has_left(&self, serial: u64) -> bool {
        let mut lines = self.lines.iter();
        lines.any(|line| line.serial == serial && line.left)
    }

    /// Begins anew on another connection: what was not answered is to be sent, from its start.
    pub fn restart(&mut self) {
        self.sent = 0;
        self.compact();
    }

    /// Lets go of answered lines at the front.
    fn release(&mut self) {
        let mut released = 0;
        while let Some(line) = self.lines.front() {
            if !line.answered || released + line.bytes > self.sent {
                break;
            }
            released += line.bytes;
            self.lines.pop_front();
        }
        self.bytes.drain(..released);
        self.sent -= released;
    }

    /// Takes out every answered line, but one of which a part was sent and a part was not.
    fn compact(&mut self) {
        let (bytes, sent) = (&mut self.bytes, self.sent);
        let (mut from, mut to, mut kept_sent) = (0, 0, 0);
        self.lines.retain(|line| {
            let range = from..from + line.bytes;
            from = range.end;
            let torn = range.start < sent && sent < range.end;
            if line.answered && !torn {
                return false;
            }
            kept_sent += sent.clamp(range.start, range.end) - range.start;
            bytes.copy_within(range, to);
            to += line.bytes;
            true
        });
        self.bytes.truncate(to);
        self.sent = kept_sent;
    }

    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: u64) -> ResendQueue {
        let mut lines = ResendQueue::new();
        for serial in 0..count {
            lines
                .push(serial, format!("{serial}\n").as_bytes())
                .unwrap();
        }
        lines
    }

    #[test]
    fn what_was_answered_is_not_sent_again() {
        let mut lines = lines(4);
        lines.consume(5);
        lines.answer(1);
        assert_eq!(lines.pending(), b"\n3\n");
        assert!(lines.has_left(2) && !lines.has_left(3));
        lines.restart();
        assert_eq!(lines.pending(), b"0\n2\n3\n");
        assert!(lines.has_left(2) && !lines.has_left(3));
    }

    #[test]
    fn an_answered_line_that_was_sent_in_part_is_sent_to_its_end() {
        let mut lines = lines(3);
        lines.consume(3);
        lines.answer(1);
        lines.answer(0);
        assert_eq!(lines.pending(), b"\n2\n");
        lines.compact();
        assert_eq!(lines.pending(), b"\n2\n");
        lines.restart();
        assert_eq!(lines.pending(), b"2\n");
    }

    #[test]
    fn what_was_given_up_before_it_was_sent_is_never_sent() {
        let mut lines = lines(4);
        lines.consume(3);
        assert!(!lines.is_unsent(1) && lines.is_unsent(2));
        lines.answer(2);
        assert_eq!(lines.pending(), b"\n3\n");
        lines.restart();
        assert!(lines.has_left(1) && lines.is_unsent(1));
        lines.answer(1);
        assert_eq!(lines.pending(), b"0\n3\n");
    }

    #[test]
    fn room_is_made_behind_a_line_that_stays_unanswered() {
        let mut lines = lines(1);
        let line = [b'x'; EXECUTOR_SHORT_LINE_BYTES_MAX];
        for serial in 1..100_000 {
            lines.push(serial, &line).unwrap();
            lines.consume(lines.pending().len());
            lines.answer(serial);
        }
        lines.restart();
        assert_eq!(lines.pending(), b"0\n");
        assert_eq!(lines.capacity(), EXECUTOR_UNANSWERED_BYTES_MAX);
    }

    #[test]
    fn long_lines_leave_room_for_short_ones() {
        let mut lines = ResendQueue::new();
        let long = vec![b'x'; 100_000];
        let mut serial = 0;
        while lines.push(serial, &long).is_ok() {
            serial += 1;
        }
        assert!(lines.push(serial, b"short\n").is_ok());
        assert_eq!(serial, 9);
    }
}
