//! Protocol errors: JSON-RPC error replies.
//!
//! An error whose request could not be read has no `id` member. The schemas since 2025-11-25 make
//! it optional there; `null` is valid in none of them, and an invented id would name another
//! request.

use crate::limits::QUOTE_BYTES_MAX;
use crate::wire::message::Id;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{Sink, start_of};

/// The error codes that are used (2025-11-25, Base Protocol, and JSON-RPC 2.0, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum Code {
    /// The line is not JSON.
    Parse = -32700,
    /// The JSON is not a message, or the message may not come now.
    InvalidRequest = -32600,
    /// The method is not served.
    MethodNotFound = -32601,
    /// The parameters are not what the method takes.
    InvalidParams = -32602,
    /// The reply cannot be given.
    Internal = -32603,
}

/// A protocol error: a code, what is wrong, and a word of the client's own to point at.
#[derive(Debug, Clone, Copy)]
pub struct Error<'a> {
    /// Which kind of error.
    pub code: Code,
    /// What is wrong, in words.
    pub message: &'static str,
    /// What of the client's own text is meant; its start is repeated behind the message.
    pub quote: Option<&'a str>,
}

impl<'a> Error<'a> {
    /// An error that a fixed sentence says in full.
    pub fn new(code: Code, message: &'static str) -> Self {
        Self {
            code,
            message,
            quote: None,
        }
    }

    /// An error that repeats the start of a client's word.
    pub fn quoting(code: Code, message: &'static str, quote: &'a str) -> Self {
        Self {
            code,
            message,
            quote: Some(quote),
        }
    }

    /// Parameters that are not what the method takes.
    pub fn params(message: &'static str) -> Self {
        Self::new(Code::InvalidParams, message)
    }
}

/// Writes an error reply without the LF behind it.
pub fn write(outbox: &mut Outbox, id: Option<Id<'_>>, error: Error<'_>) {
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        sink.raw("\"id\":");
        sink.id(id);
        sink.raw(",");
    }
    sink.raw("\"error\":{\"code\":");
    sink.signed(error.code as i64);
    sink.raw(",\"message\":\"");
    sink.string_part(error.message);
    if let Some(quote) = error.quote {
        let start = start_of(quote, QUOTE_BYTES_MAX);
        sink.string_part(": ");
        sink.string_part(start);
        if start.len() < quote.len() {
            sink.string_part("...");
        }
    }
    sink.raw("\"}}");
}
