//! The framer: finds the frames in the ring. A frame is one line, ended by LF alone.
//!
//! No byte is searched twice, and a line over the bound costs no memory. The framer does not look
//! at what a frame says.

use memchr::memchr;

use super::ring::Ring;
use crate::limits::FRAME_BYTES_MAX;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The frame at the front of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextFrame {
    /// A whole frame stands at the front of the ring.
    Complete {
        /// The length of the frame, its LF not counted.
        bytes: usize,
    },
    /// The frame is longer than the bound. It is dropped as it streams in, and reported once.
    Oversized,
    /// The frame has not come as a whole.
    Partial,
}

/// The state of framing over short reads.
///
/// Invariant: `scanned <= ring.received().len()`. No byte is searched twice, so a frame that
/// drips in costs no more than one that comes whole.
#[derive(Debug)]
pub struct Framer {
    frame_bytes_max: usize,
    /// How many received bytes were searched and hold no LF.
    scanned: usize,
    /// The ring is inside a frame over the bound: all bytes up to the next LF are dropped.
    skipping: bool,
    /// The stream may still start with a byte order mark.
    at_start: bool,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// A framer at the start of a stream.
    pub fn new() -> Self {
        Self::with_bound(FRAME_BYTES_MAX)
    }

    /// A framer with another bound, for a ring that holds more than one frame of that length.
    pub fn with_bound(frame_bytes_max: usize) -> Self {
        Self {
            frame_bytes_max,
            scanned: 0,
            skipping: false,
            at_start: true,
        }
    }

    /// Looks for the next frame. A frame that is found stays until [`Framer::consume`].
    pub fn next(&mut self, ring: &mut Ring) -> NextFrame {
        if self.at_start && !self.drop_byte_order_mark(ring) {
            return NextFrame::Partial;
        }
        if self.skipping && !self.skip(ring) {
            return NextFrame::Partial;
        }
        let received = ring.received();
        match memchr(b'\n', &received[self.scanned..]) {
            Some(offset) => {
                let bytes = self.scanned + offset;
                if bytes > self.frame_bytes_max {
                    self.consume(ring, bytes);
                    return NextFrame::Oversized;
                }
                self.scanned = bytes;
                NextFrame::Complete { bytes }
            }
            None if received.len() > self.frame_bytes_max => {
                self.scanned = 0;
                self.skipping = true;
                ring.consume(ring.received().len());
                NextFrame::Oversized
            }
            None => {
                self.scanned = received.len();
                NextFrame::Partial
            }
        }
    }

    /// As [`Framer::next`], at the end of input: a last line without LF is a frame.
    pub fn next_at_end(&mut self, ring: &mut Ring) -> NextFrame {
        match self.next(ring) {
            NextFrame::Partial if !self.skipping && !ring.received().is_empty() => {
                NextFrame::Complete {
                    bytes: ring.received().len(),
                }
            }
            other => other,
        }
    }

    /// Drops a frame of `bytes` bytes and its LF, if it has one.
    pub fn consume(&mut self, ring: &mut Ring, bytes: usize) {
        let lf = usize::from(bytes < ring.received().len());
        ring.consume(bytes + lf);
        self.scanned = 0;
    }

    /// Drops a byte order mark at the start of the stream. Returns false while too few bytes have
    /// come to tell whether there is one.
    fn drop_byte_order_mark(&mut self, ring: &mut Ring) -> bool {
        let received = ring.received();
        if received.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(received) {
            return false;
        }
        if received.starts_with(BYTE_ORDER_MARK) {
            ring.consume(BYTE_ORDER_MARK.len());
        }
        self.at_start = false;
        true
    }

    /// Drops the bytes of an oversized frame. Returns whether its end has come.
    fn skip(&mut self, ring: &mut Ring) -> bool {
        let received = ring.received();
        let end = memchr(b'\n', received);
        ring.consume(end.map_or(received.len(), |offset| offset + 1));
        self.skipping = end.is_none();
        end.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every frame of a stream that comes in pieces of `step` bytes.
    fn frames(stream: &[u8], step: usize) -> Vec<Vec<u8>> {
        let (mut ring, mut framer, mut found) = (Ring::new(), Framer::new(), Vec::new());
        let mut drain = |ring: &mut Ring, framer: &mut Framer, at_end: bool| {
            loop {
                let next = if at_end {
                    framer.next_at_end(ring)
                } else {
                    framer.next(ring)
                };
                match next {
                    NextFrame::Complete { bytes } => {
                        found.push(ring.received()[..bytes].to_vec());
                        framer.consume(ring, bytes);
                    }
                    NextFrame::Oversized => found.push(b"oversized".to_vec()),
                    NextFrame::Partial => break,
                }
            }
        };
        for piece in stream.chunks(step) {
            let mut rest = piece;
            while !rest.is_empty() {
                let space = ring.space();
                let count = rest.len().min(space.len());
                space[..count].copy_from_slice(&rest[..count]);
                ring.fill(count);
                rest = &rest[count..];
                drain(&mut ring, &mut framer, false);
            }
        }
        drain(&mut ring, &mut framer, true);
        found
    }

    /// The oracle: split on LF, drop a byte order mark at the start and an empty last line.
    fn split(stream: &[u8]) -> Vec<Vec<u8>> {
        let stream = stream.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stream);
        let mut lines: Vec<Vec<u8>> = stream
            .split(|&byte| byte == b'\n')
            .map(|line| match line.len() {
                0..=FRAME_BYTES_MAX => line.to_vec(),
                _ => b"oversized".to_vec(),
            })
            .collect();
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        lines
    }

    #[test]
    fn every_step_finds_what_a_split_finds() {
        let streams: [&[u8]; 9] = [
            b"",
            b"\n",
            b"a",
            b"a\nbc\n\ndef",
            b"\xEF\xBB\xBFa\nb\n",
            b"\xEF\xBB\nb\n",
            b"\xEF\xBB\xBF\xEF\xBB\xBFa\n",
            b"\r\n\n \n{}\r\n",
            b"\xEF",
        ];
        for stream in streams {
            for step in 1..=stream.len().max(1) {
                assert_eq!(frames(stream, step), split(stream), "{stream:?} by {step}");
            }
        }
    }

    #[test]
    fn the_bound_is_exact_and_reported_once() {
        for extra in [0, 1, 2, FRAME_BYTES_MAX, 3 * FRAME_BYTES_MAX] {
            for end in [&b""[..], b"\n", b"\nnext\n"] {
                let mut stream = vec![b'a'; FRAME_BYTES_MAX + extra];
                stream.extend_from_slice(end);
                for step in [4096, 65_536, 100_000] {
                    assert_eq!(
                        frames(&stream, step),
                        split(&stream),
                        "{extra} {end:?} {step}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_byte_order_mark_does_not_count_to_the_bound() {
        let mut stream = BYTE_ORDER_MARK.to_vec();
        stream.resize(BYTE_ORDER_MARK.len() + FRAME_BYTES_MAX, b'a');
        stream.push(b'\n');
        assert_eq!(frames(&stream, 4096), split(&stream));
    }
}
