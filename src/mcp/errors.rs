//! Protocol errors: JSON-RPC error replies.
//!
//! An error reply to a request whose id could not be read has no `id` member. The schemas since
//! 2025-11-25 make `id` optional in errors; `null` is not valid in any schema, and an invented id
//! would name another request.

use super::revision::stateless_versions;
use crate::wire::message::Id;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{self, ObjectWriter, Sink};

/// The error codes that this server sends (2025-11-25, Base Protocol, and JSON-RPC 2.0, section
/// 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum RpcErrorCode {
    /// The line is not JSON.
    Parse = -32700,
    /// The JSON is not a message, or the message may not come now.
    InvalidRequest = -32600,
    /// The server does not have the method.
    MethodNotFound = -32601,
    /// The parameters are not valid for the method.
    InvalidParams = -32602,
    /// The server could not complete the result.
    Internal = -32603,
    /// The request needs a capability that its client did not declare (2026-07-28).
    MissingCapability = -32021,
    /// The envelope names a revision that is not served (2026-07-28).
    UnsupportedVersion = -32022,
}

/// Why a result that a tool has begun is not sent.
pub const SPOILT_RESULT: &str = "the result is too long or cannot be formatted";

/// The `data` of an error, for programs.
#[derive(Debug, Clone, Copy)]
pub enum RpcErrorData<'a> {
    /// The versions that an envelope may name.
    SupportedVersions,
    /// The versions that an envelope may name, and the version that it names.
    UnsupportedVersion {
        /// The version that the envelope names.
        requested: &'a str,
    },
    /// The capability that is needed. A name with a slash is that of an extension.
    MissingCapability(&'a str),
}

impl RpcErrorData<'_> {
    fn write(self, object: &mut ObjectWriter<'_>) {
        match self {
            Self::SupportedVersions => supported_versions(object),
            Self::UnsupportedVersion { requested } => {
                supported_versions(object);
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

fn supported_versions(object: &mut ObjectWriter<'_>) {
    object.array("supported", |list| {
        for version in stateless_versions() {
            list.string(version);
        }
    });
}

/// A protocol error.
#[derive(Debug, Clone, Copy)]
pub struct RpcError<'a> {
    /// The kind of the error.
    pub code: RpcErrorCode,
    /// What is wrong, as a sentence.
    pub message: &'static str,
    /// The text of the client that is wrong. Its start is repeated behind the message, without
    /// control characters.
    pub quote: Option<&'a str>,
    /// The details for programs.
    pub data: Option<RpcErrorData<'a>>,
}

impl<'a> RpcError<'a> {
    /// An error without a quote and without data.
    pub fn new(code: RpcErrorCode, message: &'static str) -> Self {
        Self {
            code,
            message,
            quote: None,
            data: None,
        }
    }

    /// An error that repeats the start of a client's text.
    pub fn quoting(code: RpcErrorCode, message: &'static str, quote: &'a str) -> Self {
        Self {
            quote: Some(quote),
            ..Self::new(code, message)
        }
    }

    /// The client did not declare a capability or an extension.
    pub fn missing_capability(name: &'static str) -> Self {
        Self {
            data: Some(RpcErrorData::MissingCapability(name)),
            ..Self::new(
                RpcErrorCode::MissingCapability,
                "the client lacks a capability",
            )
        }
    }

    /// The parameters are not valid for the method.
    pub fn invalid_params(message: &'static str) -> Self {
        Self::new(RpcErrorCode::InvalidParams, message)
    }
}

/// Begins a reply: writes it up to its result.
pub fn begin_reply(outbox: &mut Outbox, id: Id<'_>) {
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
