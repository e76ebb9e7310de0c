//! `tools/list` and `tools/call`.

use super::catalog::Catalog;
use super::envelope::Envelope;
use super::errors::{RpcError, RpcErrorCode};
use super::revision::RevisionId;
use super::tool::{Answered, Call, CowText, Reply, Tool, ToolSpec};
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
    revision_id: RevisionId,
    params: Option<Object<'_>>,
) -> Result<&'c str, RpcError<'static>> {
    let [cursor] = params
        .unwrap_or(Object::EMPTY)
        .take(["cursor"])
        .map_err(|_| RpcError::params("cursor is given more than once"))?;
    let cursor = match cursor {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => return Err(RpcError::params("cursor must be a string")),
    };
    catalog
        .page(revision_id, cursor)
        .ok_or(RpcError::params("cursor is not one that was handed out"))
}

/// The tools of a server.
pub struct Tools {
    entries: Vec<ToolEntry>,
}

struct ToolEntry {
    name: CowText,
    needs: Option<&'static str>,
    server: By,
}

/// By whom a tool is served.
enum By {
    /// By itself, at once.
    Tool(Box<dyn Tool>),
    /// By the delegate, who knows it by this number.
    Delegate(usize),
}

/// What has become of a call.
#[derive(Debug)]
pub enum Called<'a> {
    /// Its result is written.
    Written,
    /// It is for the delegate.
    Delegated(usize, Object<'a>),
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
    pub revision_id: RevisionId,
    /// What a stateless request says of itself.
    pub envelope: Option<Envelope<'a>>,
    /// What the result starts with.
    pub preamble: &'a str,
    /// Scratch memory of the frame.
    pub arena: &'a Bump,
}

impl Tools {
    /// Tools, those of the delegate behind them, and what each says of itself.
    pub fn new(tools: Vec<Box<dyn Tool>>, delegated: Vec<ToolSpec>) -> (Self, Vec<ToolSpec>) {
        let mut specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        specs.extend(delegated.iter().cloned());
        let own = tools.into_iter().map(By::Tool);
        let servers = own.chain((0..delegated.len()).map(By::Delegate));
        let entries = servers.zip(&specs).map(|(server, spec)| ToolEntry {
            name: spec.name.clone(),
            needs: spec.needs,
            server,
        });
        let entries = entries.collect();
        (Self { entries }, specs)
    }

    /// Calls a tool, which writes its result into the outbox, unless it is the delegate's.
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
    ) -> Result<Called<'a>, RpcError<'a>> {
        let [name, arguments] = params
            .unwrap_or(Object::EMPTY)
            .take(["name", "arguments"])
            .map_err(|_| RpcError::params("a member of params is given more than once"))?;
        let name = name
            .and_then(|value| value.as_str())
            .ok_or(RpcError::params("name must be a string"))?;
        let arguments = match arguments {
            None | Some(Value::Null) => Object::EMPTY,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::params("arguments must be an object")),
        };
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        let entry = entry.ok_or(RpcError::quoting(
            RpcErrorCode::InvalidParams,
            "unknown tool",
            name,
        ))?;
        if let (Some(envelope), Some(needs)) = (served.envelope, entry.needs)
            && !envelope.can(needs)
        {
            return Err(RpcError::lacking(needs));
        }
        match &mut entry.server {
            By::Tool(tool) => {
                let revision = served.revision_id.revision();
                let reply = Reply::new(outbox, revision, served.preamble);
                let _: Answered<'_> = tool.call(Call::new(arguments, served.arena), reply);
                Ok(Called::Written)
            }
            By::Delegate(number) => Ok(Called::Delegated(*number, arguments)),
        }
    }
}
