//! Protocol errors: JSON-RPC error replies.
//!
//! An error whose request could not be read has no `id` member. The schemas since 2025-11-25 make
//! it optional there; `null` is valid in none of them, and an invented id would name another
//! request.

use super::revision::stateless_versions;
use crate::wire::message::Id;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{self, ObjectWriter, Sink};

/// The error codes that are used (2025-11-25, Base Protocol, and JSON-RPC 2.0, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum RpcErrorCode {
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
    /// The request needs a capability that its client did not declare (2026-07-28).
    MissingCapability = -32021,
    /// The envelope names a revision that is not served (2026-07-28).
    UnsupportedVersion = -32022,
}

/// Why a result that a tool has begun is not sent.
pub const SPOILT_RESULT: &str = "the result is too long or cannot be formatted";

/// What an error says to a program.
#[derive(Debug, Clone, Copy)]
pub enum RpcErrorData<'a> {
    /// The versions that an envelope may name.
    SupportedVersions,
    /// Those, and the one that was named.
    UnsupportedVersion {
        /// As the client has it.
        requested: &'a str,
    },
    /// The capability that is needed; the extension, if its name has a slash.
    MissingCapability(&'a str),
}

impl RpcErrorData<'_> {
    fn write(self, object: &mut ObjectWriter<'_>) {
        match self {
            Self::SupportedVersions => supported(object),
            Self::UnsupportedVersion { requested } => {
                supported(object);
                object.string("requested", requested);
            }
            Self::MissingCapability(name) => object.object("requiredCapabilities", |needed| {
                if name.contains('/') {
                    needed.object("extensions", |extensions| extensions.object(name, |_| {}));
                } else {
                    needed.object(name, |_| {});
                }
            }),
        }
    }
}

fn supported(object: &mut ObjectWriter<'_>) {
    object.array("supported", |list| {
        for version in stateless_versions() {
            list.string(version);
        }
    });
}

/// A protocol error: a code, what is wrong, and a word of the client's own to point at.
#[derive(Debug, Clone, Copy)]
pub struct RpcError<'a> {
    /// Which kind of error.
    pub code: RpcErrorCode,
    /// What is wrong, in words.
    pub message: &'static str,
    /// What of the client's own text is meant; its start is repeated behind the message, without
    /// control characters.
    pub quote: Option<&'a str>,
    /// What is said to a program.
    pub data: Option<RpcErrorData<'a>>,
}

impl<'a> RpcError<'a> {
    /// An error that a fixed sentence says in full.
    pub fn new(code: RpcErrorCode, message: &'static str) -> Self {
        Self {
            code,
            message,
            quote: None,
            data: None,
        }
    }

    /// An error that repeats the start of a client's word.
    pub fn quoting(code: RpcErrorCode, message: &'static str, quote: &'a str) -> Self {
        Self {
            quote: Some(quote),
            ..Self::new(code, message)
        }
    }

    /// A capability, or an extension, that the client did not declare.
    pub fn lacking(name: &'static str) -> Self {
        Self {
            data: Some(RpcErrorData::MissingCapability(name)),
            ..Self::new(
                RpcErrorCode::MissingCapability,
                "the client lacks a capability",
            )
        }
    }

    /// Parameters that are not what the method takes.
    pub fn params(message: &'static str) -> Self {
        Self::new(RpcErrorCode::InvalidParams, message)
    }
}

/// Begins a reply, up to its result.
pub fn begin_result(outbox: &mut Outbox, id: Id<'_>) {
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"jsonrpc\":\"2.0\",\"id\":");
    sink.id(id);
    sink.raw(",\"result\":");
}

/// Writes an error reply without the LF behind it.
pub fn write(outbox: &mut Outbox, id: Option<Id<'_>>, error: RpcError<'_>) {
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
        sink.string_part(": ");
        for character in writer::quote(quote) {
            sink.string_part(character.encode_utf8(&mut [0; 4]));
        }
    }
    sink.raw("\"");
    if let Some(data) = error.data {
        sink.raw(",\"data\":");
        sink.object(|object| data.write(object));
    }
    sink.raw("}}");
}
