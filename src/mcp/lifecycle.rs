//! `initialize`: opens a handshake session and negotiates its revision.

use super::errors::RpcError;
use super::revision::RevisionId;
use crate::wire::json::{Object, Value};

/// Reads the parameters of `initialize`: returns the negotiated revision, and the client's name and
/// version.
///
/// # Errors
///
/// If a required member is missing or of the wrong type. Optional members are not looked at, so
/// that members of later revisions do no harm.
pub fn initialize<'a>(
    params: Option<Object<'a>>,
) -> Result<(RevisionId, (&'a str, &'a str)), RpcError<'static>> {
    let params = params.ok_or(RpcError::invalid_params("initialize needs params"))?;
    let [version, capabilities, client] = params
        .take(["protocolVersion", "capabilities", "clientInfo"])
        .map_err(|_| RpcError::invalid_params("a member of params is given more than once"))?;
    let version = version
        .and_then(|value| value.as_str())
        .ok_or(RpcError::invalid_params("protocolVersion must be a string"))?;
    capabilities
        .and_then(|value| value.as_object())
        .ok_or(RpcError::invalid_params("capabilities must be an object"))?;
    let client = client
        .and_then(|value| value.as_object())
        .ok_or(RpcError::invalid_params("clientInfo must be an object"))?;
    match client.take(["name", "version"]) {
        Ok(
            [
                Some(Value::String(name)),
                Some(Value::String(client_version)),
            ],
        ) => Ok((RevisionId::negotiated(version), (name, client_version))),
        Ok([Some(Value::String(_)), _]) => Err(RpcError::invalid_params(
            "clientInfo.version must be a string",
        )),
        Ok(_) => Err(RpcError::invalid_params("clientInfo.name must be a string")),
        Err(_) => Err(RpcError::invalid_params(
            "a member of clientInfo is given more than once",
        )),
    }
}
