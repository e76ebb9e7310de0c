//! Bytes to messages and back. No I/O, and no word of MCP.
//!
//! In the order in which a frame meets them: [`ring`] holds what was read, [`framer`] finds the
//! frames in it, [`json`] parses one in place, [`message`] tells what kind of JSON-RPC message it
//! is, [`writer`] writes JSON, [`outbox`] holds the replies until they are sent.

pub mod framer;
pub mod json;
pub mod message;
pub mod outbox;
pub mod ring;
pub mod writer;
