//! What holds for any bytes. Each body takes bytes alone and decides all else by them, so that a
//! property test and a fuzz target that share a body cannot drift apart, and a file of bytes is
//! enough to replay a failure.

pub mod framer;
pub mod message;
pub mod naive;
pub mod parser;
pub mod session;
pub mod subscriptions;
pub mod task;
pub mod tool;
pub mod writer;

use rocco::internals::limits::FRAME_PADDING_BYTES;
use rocco::internals::wire::json::{Document, NotJson, Parser, Value};

/// What is tried with any bytes. It panics where something does not hold.
pub type Body = fn(&[u8]);

/// A body and the name of its folders of kept inputs.
pub const BODIES: [(&str, Body); 8] = [
    ("framer", framer::body),
    ("message", message::body),
    ("parser", parser::body),
    ("session", session::body),
    ("subscriptions", subscriptions::body),
    ("task", task::body),
    ("tool", tool::body),
    ("writer", writer::body),
];

/// Parses bytes as a frame that is followed by `padding`, and looks at the value in it.
fn parsed<T>(data: &[u8], padding: u8, look: impl FnOnce(Value<'_>) -> T) -> Result<T, NotJson> {
    let mut frame = data.to_vec();
    frame.resize(data.len() + FRAME_PADDING_BYTES, padding);
    let mut parser = Parser::new();
    let document: Document<'_> = parser.parse(&mut frame, data.len())?;
    let looked = look(document.root());
    parser.recycle(document);
    Ok(looked)
}

/// Numbers that depend on the bytes alone: where to cut, and what to choose.
struct Dice(u64);

impl Dice {
    /// FNV-1a seeds a xorshift, which must not start at zero.
    fn of(data: &[u8]) -> Self {
        let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self(data.iter().fold(0xcbf2_9ce4_8422_2325, fold) | 1)
    }

    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    /// The bytes in pieces of at most `bytes_max` bytes.
    fn pieces<'d>(&mut self, mut data: &'d [u8], bytes_max: usize) -> Vec<&'d [u8]> {
        let mut pieces = Vec::new();
        while !data.is_empty() {
            let (piece, rest) = data.split_at((1 + self.roll(bytes_max)).min(data.len()));
            pieces.push(piece);
            data = rest;
        }
        pieces
    }
}
