//! The ring: the fixed buffer that input is read into.

use crate::limits::{
    FRAME_PADDING_BYTES, READ_BYTES_MAX, RESTING_BYTES_MAX, RING_BYTES, RING_COMPACT_BYTES_MAX,
};

/// A ring whose content is always one contiguous slice, since the parser needs one.
///
/// ```text
///   0        head            tail                   size      + padding
///   |  free  |   received    |       space       |           |
/// ```
///
/// The cursors go back to 0 whenever the ring is empty, so that steady traffic stays in a few hot
/// pages. A frame that reaches the end is moved to the front, at most once a lap:
///
/// ```text
///   |                 head | part of a frame | tail = size
///   | part of a frame | tail           space            |
/// ```
///
/// Invariant: `head <= tail <= size_bytes`.
#[derive(Debug)]
pub struct Ring {
    bytes: Box<[u8]>,
    size_bytes: usize,
    head: usize,
    tail: usize,
    touched_bytes: usize,
}

impl Default for Ring {
    fn default() -> Self {
        Self::new()
    }
}

impl Ring {
    /// Claims the ring. Zeroed memory of this size comes from the system untouched, so only the
    /// pages that traffic reaches become resident.
    pub fn new() -> Self {
        Self::with_bytes(RING_BYTES)
    }

    /// A ring of `size_bytes` bytes, the padding not counted.
    pub fn with_bytes(size_bytes: usize) -> Self {
        Self {
            bytes: vec![0; size_bytes + FRAME_PADDING_BYTES].into_boxed_slice(),
            size_bytes,
            head: 0,
            tail: 0,
            touched_bytes: 0,
        }
    }

    /// The bytes that were received and not yet consumed.
    pub fn received(&self) -> &[u8] {
        &self.bytes[self.head..self.tail]
    }

    /// Whether there is no room to read into.
    pub fn is_full(&self) -> bool {
        self.tail - self.head == self.size_bytes
    }

    /// The slice that the next read fills, at most [`READ_BYTES_MAX`] bytes. It is empty only if
    /// the ring is full.
    pub fn space(&mut self) -> &mut [u8] {
        let held_bytes = self.tail - self.head;
        let compact = held_bytes <= RING_COMPACT_BYTES_MAX || self.tail == self.size_bytes;
        if compact && self.head > 0 {
            self.bytes.copy_within(self.head..self.tail, 0);
            self.head = 0;
            self.tail = held_bytes;
        }
        let end = self.size_bytes.min(self.tail + READ_BYTES_MAX);
        &mut self.bytes[self.tail..end]
    }

    /// Takes in `count` bytes that were put at the start of [`Ring::space`].
    pub fn fill(&mut self, count: usize) {
        assert!(count <= self.size_bytes - self.tail);
        self.tail += count;
        self.touched_bytes = self.touched_bytes.max(self.tail);
    }

    /// The first `count` received bytes and the padding behind them, to be parsed in place. The
    /// padding may hold the start of the next frame.
    pub fn frame_mut(&mut self, count: usize) -> &mut [u8] {
        assert!(count <= self.tail - self.head);
        &mut self.bytes[self.head..self.head + count + FRAME_PADDING_BYTES]
    }

    /// Drops the first `count` received bytes.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.tail - self.head);
        self.head += count;
        if self.head == self.tail {
            self.head = 0;
            self.tail = 0;
        }
    }

    /// Frees the memory that a burst has touched, if the ring is empty.
    pub fn rest(&mut self) {
        if self.touched_bytes > RESTING_BYTES_MAX && self.head == self.tail {
            *self = Self::with_bytes(self.size_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(ring: &mut Ring, bytes: &[u8]) {
        let space = ring.space();
        space[..bytes.len()].copy_from_slice(bytes);
        ring.fill(bytes.len());
    }

    #[test]
    fn cursors_return_to_the_start_when_all_is_consumed() {
        let mut ring = Ring::new();
        put(&mut ring, b"abc");
        ring.consume(3);
        assert_eq!((ring.head, ring.tail), (0, 0));
    }

    #[test]
    fn a_small_remainder_is_moved_to_the_front() {
        let mut ring = Ring::new();
        put(&mut ring, b"abcdef");
        ring.consume(4);
        ring.space();
        assert_eq!((ring.head, ring.tail), (0, 2));
        assert_eq!(ring.received(), b"ef");
    }

    #[test]
    fn a_long_remainder_is_moved_only_at_the_end() {
        let mut ring = Ring::new();
        let block = [7; READ_BYTES_MAX];
        for _ in 0..RING_BYTES / READ_BYTES_MAX {
            put(&mut ring, &block);
        }
        assert!(ring.is_full());
        assert!(ring.space().is_empty());
        ring.consume(READ_BYTES_MAX + 1);
        assert_eq!(ring.space().len(), READ_BYTES_MAX);
        assert_eq!(ring.head, 0);
        assert_eq!(ring.received().len(), RING_BYTES - READ_BYTES_MAX - 1);
    }

    #[test]
    fn a_frame_comes_with_its_padding() {
        let mut ring = Ring::new();
        put(&mut ring, b"12345\n");
        assert_eq!(ring.frame_mut(5).len(), 5 + FRAME_PADDING_BYTES);
    }

    #[test]
    fn rest_gives_back_only_an_empty_large_ring() {
        let mut ring = Ring::new();
        put(&mut ring, &[1; READ_BYTES_MAX]);
        put(&mut ring, b"x");
        ring.rest();
        assert_eq!(ring.received().len(), READ_BYTES_MAX + 1);
        ring.consume(READ_BYTES_MAX + 1);
        ring.rest();
        assert_eq!(ring.touched_bytes, 0);
    }
}
