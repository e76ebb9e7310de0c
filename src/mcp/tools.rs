//! `tools/list` and `tools/call`.

use super::catalog::Catalog;
use super::errors::{Code, Error};
use super::revision::Handshake;
use super::tool::{Call, Reply, Tool};
use crate::wire::json::{Object, Value};
use crate::wire::outbox::Outbox;
use bumpalo::Bump;

/// The page of `tools/list` that is asked for.
///
/// # Errors
///
/// A cursor that was never handed out is refused: a client that pages on with it would loop.
pub fn list<'c>(
    catalog: &'c Catalog,
    era: Handshake,
    params: Option<Object<'_>>,
) -> Result<&'c str, Error<'static>> {
    let [cursor] = params
        .unwrap_or(Object::EMPTY)
        .take(["cursor"])
        .map_err(|_| Error::params("cursor is given more than once"))?;
    let cursor = match cursor {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => return Err(Error::params("cursor must be a string")),
    };
    catalog
        .page(era, cursor)
        .ok_or(Error::params("cursor is not one that was handed out"))
}

/// Calls a tool, which writes its result into the outbox.
///
/// # Errors
///
/// A call of no known shape, or of an unknown tool. What is wrong with a tool's arguments is for
/// the tool to say, as a result that the model sees (2025-11-25, Tools, Error Handling).
pub fn call<'a>(
    tools: &mut [Box<dyn Tool>],
    names: &[Box<str>],
    arena: &'a Bump,
    era: Handshake,
    params: Option<Object<'a>>,
    outbox: &mut Outbox,
) -> Result<(), Error<'a>> {
    let [name, arguments] = params
        .unwrap_or(Object::EMPTY)
        .take(["name", "arguments"])
        .map_err(|_| Error::params("a member of params is given more than once"))?;
    let name = name
        .and_then(|value| value.as_str())
        .ok_or(Error::params("name must be a string"))?;
    let arguments = match arguments {
        None | Some(Value::Null) => Object::EMPTY,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(Error::params("arguments must be an object")),
    };
    let index = names
        .iter()
        .position(|known| **known == *name)
        .ok_or(Error::quoting(Code::InvalidParams, "unknown tool", name))?;
    let reply = Reply::new(outbox, era.revision());
    tools[index].call(Call { arguments, arena }, reply);
    Ok(())
}
