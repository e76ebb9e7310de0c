//! The framer finds what a split finds, wherever the input is cut.

use rocco::internals::limits::FRAME_BYTES_MAX;
use rocco::internals::wire::framer::{Framer, NextFrame};
use rocco::internals::wire::ring::Ring;

use super::Dice;

/// Stands for half of the longest frame, since no fuzzer finds a mebibyte. It is no byte of UTF-8.
const HALF: u8 = 0xFE;
const HALVES_MAX: usize = 3;
/// Streams up to this length are cut at every place.
const EVERY_CUT_BYTES_MAX: usize = 48;

/// Every byte is a byte of the stream, but for the first [`HALVES_MAX`] of [`HALF`].
pub fn body(data: &[u8]) {
    let stream = grown(data);
    let (wanted, mut ring) = (split(&stream), Ring::new());
    if stream.len() <= EVERY_CUT_BYTES_MAX {
        for cut in 0..=stream.len() {
            let (before, behind) = stream.split_at(cut);
            assert_eq!(frames(&mut ring, &[before, behind]), wanted, "cut at {cut}");
        }
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(frames(&mut ring, &single), wanted, "cut everywhere");
        return;
    }
    let mut dice = Dice::of(data);
    for bytes_max in [1 + stream.len() / 8, 70_000] {
        let pieces = dice.pieces(&stream, bytes_max);
        assert!(
            frames(&mut ring, &pieces) == wanted,
            "pieces of {bytes_max}"
        );
    }
}

fn grown(data: &[u8]) -> Vec<u8> {
    let (mut stream, mut halves) = (Vec::new(), 0);
    for &byte in data {
        if byte == HALF && halves < HALVES_MAX {
            halves += 1;
            stream.resize(stream.len() + FRAME_BYTES_MAX / 2, b'a');
        } else {
            stream.push(byte);
        }
    }
    stream
}

/// A frame, or none for one that passed the bound.
type Frame = Option<Vec<u8>>;

/// The oracle: split on LF, drop a mark at the start and an empty last line.
pub fn split(stream: &[u8]) -> Vec<Frame> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut lines: Vec<Frame> = stream
        .split(|&byte| byte == b'\n')
        .map(|line| (line.len() <= FRAME_BYTES_MAX).then(|| line.to_vec()))
        .collect();
    if lines
        .last()
        .is_some_and(|last| last.as_deref() == Some(b""))
    {
        lines.pop();
    }
    lines
}

/// What is found in an empty ring, which is empty again afterwards.
fn frames(ring: &mut Ring, pieces: &[&[u8]]) -> Vec<Frame> {
    let (mut framer, mut found) = (Framer::new(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let space = ring.space();
            let count = rest.len().min(space.len());
            assert!(count > 0, "a ring without a whole frame has room");
            space[..count].copy_from_slice(&rest[..count]);
            ring.fill(count);
            rest = &rest[count..];
            drain(ring, &mut framer, Framer::next, &mut found);
        }
    }
    drain(ring, &mut framer, Framer::next_at_end, &mut found);
    assert!(ring.received().is_empty(), "bytes are left behind");
    found
}

fn drain(
    ring: &mut Ring,
    framer: &mut Framer,
    next: fn(&mut Framer, &mut Ring) -> NextFrame,
    found: &mut Vec<Frame>,
) {
    loop {
        match next(framer, ring) {
            NextFrame::Complete { bytes } => {
                found.push(Some(ring.received()[..bytes].to_vec()));
                framer.consume(ring, bytes);
            }
            NextFrame::Oversized => found.push(None),
            NextFrame::Partial => return,
        }
    }
}
