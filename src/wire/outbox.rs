//! The outbox: the fixed buffer that replies are written into and sent from.
//!
//! Error replies always fit, whatever the results of a frame take. The outbox does not know what it
//! holds.

use std::ops::Range;

use crate::limits::{
    BATCH_MESSAGES_MAX, ERROR_BYTES_MAX, IDS_BYTES_MAX, OUTBOX_BYTES, OUTBOX_HIGH_WATER_BYTES,
    RESTING_BYTES_MAX,
};

/// Bytes that stay free for the ids and errors of a frame while its results are written.
const ERRORS_RESERVE_BYTES: usize = IDS_BYTES_MAX + BATCH_MESSAGES_MAX * ERROR_BYTES_MAX;

/// Replies that were not sent yet, as one contiguous slice.
///
/// ```text
///   0        head            tail                           OUTBOX_BYTES
///   |  sent  |    pending    |  the reply being written  ->  |
/// ```
///
/// Invariant: `head <= tail <= bytes.len()`, and [`Outbox::is_open`] before a frame is served.
/// Bytes that do not fit are not written at all, and the reply counts as spoilt until
/// [`Outbox::rewind`] undoes it.
#[derive(Debug)]
pub struct Outbox {
    bytes: Box<[u8]>,
    head: usize,
    tail: usize,
    touched_bytes: usize,
    limit: usize,
    spoilt: bool,
}

/// A position in the outbox, which [`Outbox::rewind`] goes back to.
#[derive(Debug, Clone, Copy)]
pub struct Mark(usize);

impl Mark {
    /// The bytes between this mark and a later one.
    pub(super) fn range_to(self, end: Self) -> Range<usize> {
        self.0..end.0
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Outbox {
    /// Claims the outbox; its pages become resident as replies reach them.
    pub fn new() -> Self {
        Self::with_bytes(OUTBOX_BYTES)
    }

    /// An outbox of another size, for text that is composed and not sent.
    pub fn with_bytes(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes].into_boxed_slice(),
            head: 0,
            tail: 0,
            touched_bytes: 0,
            limit: bytes,
            spoilt: false,
        }
    }

    /// The bytes that wait to be sent.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.head..self.tail]
    }

    /// Whether a further frame may be served: the unsent bytes are below the high-water mark.
    pub fn is_open(&self) -> bool {
        self.tail - self.head < OUTBOX_HIGH_WATER_BYTES
    }

    /// Drops the first `count` pending bytes, which were sent.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.tail - self.head);
        self.head += count;
        if self.head == self.tail {
            self.touched_bytes = self.touched_bytes.max(self.tail);
            self.head = 0;
            self.tail = 0;
        }
    }

    /// Makes room for all that one frame may add.
    pub fn begin_frame(&mut self) {
        assert!(self.is_open());
        if self.tail > OUTBOX_HIGH_WATER_BYTES {
            self.touched_bytes = self.touched_bytes.max(self.tail);
            self.bytes.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
        }
    }

    /// The position of the next byte.
    pub fn mark(&self) -> Mark {
        Mark(self.tail)
    }

    /// Whether nothing was written since the mark.
    pub fn is_at(&self, mark: Mark) -> bool {
        self.tail == mark.0
    }

    /// Whether something was written since the mark, and its line is not ended.
    pub fn is_mid_line(&self, mark: Mark) -> bool {
        self.tail > mark.0 && self.bytes[self.tail - 1] != b'\n'
    }

    /// Undoes all that was written since the mark. The reply is no longer spoilt.
    pub fn rewind(&mut self, mark: Mark) {
        assert!(mark.0 <= self.tail);
        self.tail = mark.0;
        self.spoilt = false;
    }

    /// Begins a result, which may not use the bytes that are kept for errors.
    pub fn begin_result(&mut self) {
        self.limit = OUTBOX_BYTES - ERRORS_RESERVE_BYTES;
    }

    /// Marks the result that is being written as one that cannot be completed.
    #[cold]
    pub fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Ends a result. Returns whether it was written as a whole.
    pub fn end_result(&mut self) -> bool {
        self.limit = self.bytes.len();
        !self.spoilt
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.tail + bytes.len();
        if end <= self.limit {
            self.bytes[self.tail..end].copy_from_slice(bytes);
            self.tail = end;
        } else {
            self.spoilt = true;
        }
    }

    /// The bytes of a range that was written earlier.
    pub(super) fn written(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Appends a copy of a range that was written earlier.
    pub(super) fn put_again(&mut self, range: Range<usize>) {
        let end = self.tail + range.len();
        if end <= self.limit {
            self.bytes.copy_within(range, self.tail);
            self.tail = end;
        } else {
            self.spoilt = true;
        }
    }

    /// Frees the memory that a burst has touched, if no byte is pending.
    pub fn rest(&mut self) {
        if self.touched_bytes > RESTING_BYTES_MAX && self.head == self.tail {
            *self = Self::with_bytes(self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_bytes_are_dropped() {
        let mut outbox = Outbox::new();
        outbox.put(b"abcdef");
        outbox.consume(2);
        assert_eq!(outbox.pending(), b"cdef");
        outbox.consume(4);
        assert_eq!((outbox.head, outbox.tail), (0, 0));
    }

    #[test]
    fn a_reply_that_overflows_leaves_no_byte() {
        let mut outbox = Outbox::new();
        outbox.put(b"kept\n");
        let mark = outbox.mark();
        outbox.begin_result();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..8 {
            outbox.put(&block);
        }
        assert!(!outbox.end_result());
        outbox.rewind(mark);
        assert_eq!(outbox.pending(), b"kept\n");
        assert!(outbox.end_result());
    }

    #[test]
    fn a_copy_that_overflows_leaves_no_byte() {
        let mut outbox = Outbox::new();
        outbox.begin_result();
        outbox.put(b"copied");
        let room = outbox.limit - outbox.tail;
        outbox.put(&vec![b'x'; room - 6]);
        outbox.put_again(0..6);
        assert!(outbox.pending().ends_with(b"xcopied"));
        let tail = outbox.tail;
        outbox.put_again(0..1);
        assert_eq!(outbox.tail, tail);
        assert!(!outbox.end_result(), "the copy went into what errors need");
    }

    #[test]
    fn errors_fit_behind_the_largest_results() {
        let mut outbox = Outbox::new();
        outbox.put(&vec![b'u'; OUTBOX_HIGH_WATER_BYTES - 1]);
        outbox.consume(1);
        outbox.begin_frame();
        outbox.begin_result();
        let room = OUTBOX_BYTES - ERRORS_RESERVE_BYTES - outbox.tail;
        outbox.put(&vec![b'r'; room]);
        assert!(outbox.end_result());
        outbox.put(&vec![b'e'; ERRORS_RESERVE_BYTES]);
        assert!(outbox.end_result());
    }

    #[test]
    fn unsent_bytes_move_to_the_front_before_a_frame() {
        let mut outbox = Outbox::new();
        outbox.put(&vec![b'a'; OUTBOX_HIGH_WATER_BYTES]);
        outbox.put(b"tail");
        outbox.consume(OUTBOX_HIGH_WATER_BYTES);
        outbox.begin_frame();
        assert_eq!((outbox.head, outbox.tail), (0, 4));
        assert_eq!(outbox.pending(), b"tail");
    }
}
