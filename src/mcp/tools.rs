//! `tools/list` and `tools/call`.
//!
//! A tool checks its own arguments; this module checks the shape of the request alone.

use super::catalog::Catalog;
use super::envelope::Envelope;
use super::errors::{RpcError, RpcErrorCode};
use super::revision::RevisionId;
use super::tool::{Answered, Call, CowText, Reply, Tool, ToolSpec};
use crate::wire::json::{Object, Value};
use crate::wire::outbox::Outbox;
use bumpalo::Bump;

/// The requested page of `tools/list`.
///
/// # Errors
///
/// If the cursor is not one of this server. A client that went on from a wrong page would loop.
pub fn list<'c>(
    catalog: &'c Catalog,
    revision_id: RevisionId,
    params: Option<Object<'_>>,
) -> Result<&'c str, RpcError<'static>> {
    let [cursor] = params
        .unwrap_or(Object::EMPTY)
        .take(["cursor"])
        .map_err(|_| RpcError::invalid_params("cursor is given more than once"))?;
    let cursor = match cursor {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => return Err(RpcError::invalid_params("cursor must be a string")),
    };
    catalog
        .page(revision_id, cursor)
        .ok_or(RpcError::invalid_params(
            "cursor is not one that was handed out",
        ))
}

/// The tools of a server.
pub struct Tools {
    entries: Vec<ToolEntry>,
}

struct ToolEntry {
    name: CowText,
    needs: Option<&'static str>,
    handler: ToolHandler,
}

/// What answers the calls of a tool.
enum ToolHandler {
    /// The tool itself, at once.
    Tool(Box<dyn Tool>),
    /// The delegate, which knows the tool by this index.
    Delegate(usize),
}

/// How a call is answered.
#[derive(Debug)]
pub enum CallOutcome<'a> {
    /// The result is written.
    Written,
    /// The delegate answers: the index of its tool, and the arguments.
    Delegated(usize, Object<'a>),
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.entries.iter().map(|entry| &entry.name);
        f.debug_list().entries(names).finish()
    }
}

/// The request around a call.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// The revision of the request.
    pub revision_id: RevisionId,
    /// The envelope of a stateless request.
    pub envelope: Option<Envelope<'a>>,
    /// The members that the result starts with.
    pub preamble: &'a str,
    /// Scratch memory of the frame.
    pub arena: &'a Bump,
}

impl Tools {
    /// The tools of the server and then those of the delegate, and the specs of all of them.
    pub fn new(tools: Vec<Box<dyn Tool>>, delegated: Vec<ToolSpec>) -> (Self, Vec<ToolSpec>) {
        let mut specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        specs.extend(delegated.iter().cloned());
        let own = tools.into_iter().map(ToolHandler::Tool);
        let handlers = own.chain((0..delegated.len()).map(ToolHandler::Delegate));
        let entries = handlers.zip(&specs).map(|(handler, spec)| ToolEntry {
            name: spec.name.clone(),
            needs: spec.needs,
            handler,
        });
        let entries = entries.collect();
        (Self { entries }, specs)
    }

    /// Calls a tool, which writes its result into the outbox. A tool of the delegate is not called
    /// here: the outcome names it.
    ///
    /// # Errors
    ///
    /// If the parameters are malformed, the tool is unknown, or the client lacks a capability that
    /// the tool needs. Wrong arguments are not a protocol error: the tool reports them in a result
    /// that the model sees (2025-11-25, Tools, Error Handling).
    pub fn call<'a>(
        &mut self,
        context: CallContext<'_>,
        params: Option<Object<'a>>,
        outbox: &mut Outbox,
    ) -> Result<CallOutcome<'a>, RpcError<'a>> {
        let [name, arguments] = params
            .unwrap_or(Object::EMPTY)
            .take(["name", "arguments"])
            .map_err(|_| RpcError::invalid_params("a member of params is given more than once"))?;
        let name = name
            .and_then(|value| value.as_str())
            .ok_or(RpcError::invalid_params("name must be a string"))?;
        let arguments = match arguments {
            None | Some(Value::Null) => Object::EMPTY,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::invalid_params("arguments must be an object")),
        };
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        let entry = entry.ok_or(RpcError::quoting(
            RpcErrorCode::InvalidParams,
            "unknown tool",
            name,
        ))?;
        if let (Some(envelope), Some(needs)) = (context.envelope, entry.needs)
            && !envelope.has_capability(needs)
        {
            return Err(RpcError::missing_capability(needs));
        }
        match &mut entry.handler {
            ToolHandler::Tool(tool) => {
                let revision = context.revision_id.revision();
                let reply = Reply::new(outbox, revision, context.preamble);
                let _: Answered<'_> = tool.call(Call::new(arguments, context.arena), reply);
                Ok(CallOutcome::Written)
            }
            ToolHandler::Delegate(index) => Ok(CallOutcome::Delegated(*index, arguments)),
        }
    }
}
