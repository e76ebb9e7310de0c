//! `tools/list` and `tools/call`.

use super::catalog::Catalog;
use super::envelope::Envelope;
use super::errors::{Code, Data, Error};
use super::revision::Known;
use super::tool::{Call, Reply, Text, Tool, ToolSpec};
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
    known: Known,
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
        .page(known, cursor)
        .ok_or(Error::params("cursor is not one that was handed out"))
}

/// The tools of a server.
pub struct Tools {
    entries: Vec<Entry>,
}

struct Entry {
    name: Text,
    needs: Option<&'static str>,
    tool: Box<dyn Tool>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.entries.iter().map(|entry| &entry.name);
        f.debug_list().entries(names).finish()
    }
}

/// What a call is served with, beside the tools.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The revision that is spoken.
    pub known: Known,
    /// What a stateless request says of itself.
    pub envelope: Option<Envelope<'a>>,
    /// What the result starts with.
    pub preamble: &'a str,
    /// Scratch memory of the frame.
    pub arena: &'a Bump,
}

impl Tools {
    /// Tools and what each says of itself.
    pub fn new(tools: Vec<Box<dyn Tool>>) -> (Self, Vec<ToolSpec>) {
        let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        let entries = tools.into_iter().zip(&specs).map(|(tool, spec)| Entry {
            name: spec.name.clone(),
            needs: spec.needs,
            tool,
        });
        let entries = entries.collect();
        (Self { entries }, specs)
    }

    /// Calls a tool, which writes its result into the outbox.
    ///
    /// # Errors
    ///
    /// A call of no known shape, or of an unknown tool, or without what the tool needs. What is
    /// wrong with a tool's arguments is for the tool to say, as a result that the model sees
    /// (2025-11-25, Tools, Error Handling).
    pub fn call<'a>(
        &mut self,
        served: Served<'_>,
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
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        let entry = entry.ok_or(Error::quoting(Code::InvalidParams, "unknown tool", name))?;
        if let (Some(envelope), Some(needs)) = (served.envelope, entry.needs)
            && !envelope.can(needs)
        {
            return Err(Error {
                data: Some(Data::MissingCapability(needs)),
                ..Error::new(Code::MissingCapability, "the client lacks a capability")
            });
        }
        let revision = served.known.revision();
        let reply = Reply::new(outbox, revision, served.preamble);
        let arena = served.arena;
        entry.tool.call(Call { arguments, arena }, reply);
        Ok(())
    }
}
