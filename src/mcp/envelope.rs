//! The envelope of a stateless request: which revision it speaks, and what its client can do.
//!
//! The era is decided by each request alone (2026-07-28, Base Protocol, Versioning): what has an
//! envelope is served by it, what has none by the handshake. Neither pins the process.

use super::errors::{RpcError, RpcErrorCode, RpcErrorData};
use super::revision::RevisionId;
use crate::wire::json::{DuplicateMember, Object, Value};
use crate::wire::message::Request;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of an envelope in which a client says who it is.
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

/// What a stateless request says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The revision that it speaks.
    pub revision_id: RevisionId,
    /// What its client can do.
    pub capabilities: Object<'a>,
}

impl<'a> Envelope<'a> {
    /// The envelope of a request, if it has one.
    ///
    /// An `initialize` that names a version in its parameters is a handshake, whatever its
    /// metadata says: clients that know both eras send both.
    ///
    /// # Errors
    ///
    /// The version is judged first, so that a client of a later revision learns which ones are
    /// served, even if its envelope looks otherwise. Who the client is may be left out.
    pub fn parse(request: &Request<'a>) -> Result<Option<Self>, RpcError<'a>> {
        let Some(Value::Object(params)) = request.params else {
            return Ok(None);
        };
        if request.method == "initialize" && params.get("protocolVersion").is_some() {
            return Ok(None);
        }
        match params.take(["_meta"]).map_err(twice)? {
            [Some(Value::Object(meta))] => Self::within(meta),
            _ => Ok(None),
        }
    }

    fn within(meta: Object<'a>) -> Result<Option<Self>, RpcError<'a>> {
        let [version, capabilities, client, log_level] = meta
            .take([VERSION, CAPABILITIES, CLIENT, LOG_LEVEL])
            .map_err(twice)?;
        let version = match version {
            Some(Value::String(version)) => version,
            None if capabilities.is_none() && client.is_none() => return Ok(None),
            _ => {
                return Err(RpcError::params(
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
                .ok_or(RpcError::params(
                    "the envelope's clientCapabilities must be an object",
                ))?;
        if let Some(level) = log_level
            && !level
                .as_str()
                .is_some_and(|level| LOG_LEVELS.contains(&level))
        {
            return Err(RpcError::params("the envelope's logLevel is unknown"));
        }
        Ok(Some(Self {
            revision_id,
            capabilities,
        }))
    }

    /// Whether the client has a capability, or an extension if the name has a slash.
    pub fn can(&self, name: &str) -> bool {
        let found = if name.contains('/') {
            let extensions = self.capabilities.get("extensions");
            extensions.and_then(|value| value.as_object()?.get(name))
        } else {
            self.capabilities.get(name)
        };
        matches!(found, Some(Value::Object(_)))
    }
}

fn twice(_: DuplicateMember) -> RpcError<'static> {
    RpcError::params("a member of params or of the envelope is given more than once")
}
