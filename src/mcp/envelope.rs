//! The envelope of a stateless request: its revision, and the capabilities of its client.
//!
//! Each request alone decides its era (2026-07-28, Base Protocol, Versioning): a request with an
//! envelope is stateless, a request without one belongs to the handshake session. Neither kind
//! influences the other.

use super::errors::{RpcError, RpcErrorCode, RpcErrorData};
use super::revision::RevisionId;
use crate::wire::json::{DuplicateMember, Object, Value};
use crate::wire::message::Request;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of an envelope that names the client.
pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The `_meta` members that every stateless request carries.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The revision of the request.
    pub revision_id: RevisionId,
    /// The capabilities of the client.
    pub capabilities: Object<'a>,
}

impl<'a> Envelope<'a> {
    /// The envelope of a request, if it has one.
    ///
    /// An `initialize` that names a version in its parameters opens a handshake session, whatever
    /// its metadata says: clients that know both eras send both.
    ///
    /// # Errors
    ///
    /// If a member of the envelope is missing, repeated or not valid. The version is checked first,
    /// so that a client of a later revision learns which versions are served, whatever the rest of
    /// its envelope looks like. The client's name may be left out.
    pub fn parse(request: &Request<'a>) -> Result<Option<Self>, RpcError<'a>> {
        let Some(Value::Object(params)) = request.params else {
            return Ok(None);
        };
        if request.method == "initialize" && params.get("protocolVersion").is_some() {
            return Ok(None);
        }
        match params.take(["_meta"]).map_err(repeated_member)? {
            [Some(Value::Object(meta))] => Self::from_meta(meta),
            _ => Ok(None),
        }
    }

    fn from_meta(meta: Object<'a>) -> Result<Option<Self>, RpcError<'a>> {
        let [version, capabilities, client, log_level] = meta
            .take([VERSION, CAPABILITIES, CLIENT, LOG_LEVEL])
            .map_err(repeated_member)?;
        let version = match version {
            Some(Value::String(version)) => version,
            None if capabilities.is_none() && client.is_none() => return Ok(None),
            _ => {
                return Err(RpcError::invalid_params(
                    "the envelope's protocolVersion must be a string",
                ));
            }
        };
        let revision_id = RevisionId::stateless(version).ok_or(RpcError {
            data: Some(RpcErrorData::UnsupportedVersion { requested: version }),
            ..RpcError::new(
                RpcErrorCode::UnsupportedVersion,
                "the protocol version is not served",
            )
        })?;
        let capabilities =
            capabilities
                .and_then(|value| value.as_object())
                .ok_or(RpcError::invalid_params(
                    "the envelope's clientCapabilities must be an object",
                ))?;
        if let Some(level) = log_level
            && !level
                .as_str()
                .is_some_and(|level| LOG_LEVELS.contains(&level))
        {
            return Err(RpcError::invalid_params(
                "the envelope's logLevel is unknown",
            ));
        }
        Ok(Some(Self {
            revision_id,
            capabilities,
        }))
    }

    /// Whether the client declares a capability. A name with a slash is that of an extension.
    pub fn has_capability(&self, name: &str) -> bool {
        let found = if name.contains('/') {
            let extensions = self.capabilities.get("extensions");
            extensions.and_then(|value| value.as_object()?.get(name))
        } else {
            self.capabilities.get(name)
        };
        matches!(found, Some(Value::Object(_)))
    }
}

fn repeated_member(_: DuplicateMember) -> RpcError<'static> {
    RpcError::invalid_params("a member of params or of the envelope is given more than once")
}
