//! The wire: bytes to messages, and messages to bytes. It does no I/O and does not know MCP.
//!
//! In the order in which a frame meets them: [`ring`] holds the bytes that were read, [`framer`]
//! finds the frames in the ring, [`json`] parses a frame in place, [`message`] tells the kind of a
//! JSON-RPC message, [`writer`] writes JSON, [`outbox`] holds the replies until they are sent.

pub mod framer;
pub mod json;
pub mod message;
pub mod outbox;
pub mod ring;
pub mod writer;
