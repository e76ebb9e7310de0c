//! The delegate: answers some requests later.
//!
//! A server may hand some of its tools, and the methods of the tasks extension, to a [`Delegate`].
//! The session keeps the parts of the request that a reply needs (the id, the revision) under a
//! [`RequestHandle`], and the delegate keeps the handle. When the delegate knows the answer, at
//! once or much later, it writes the answer to [`Replies`]. A handle is answered once; an answer to
//! a cancelled request is dropped. The session does not know what a delegate does.

use super::catalog::Catalog;
use super::errors::{self, RpcError, RpcErrorCode};
use super::revision::RevisionId;
use super::tool::{Answered, Call, Reply, ToolSpec};
use crate::limits::DEFERRED_MAX;
use crate::mcp::owned::OwnedId;
use crate::wire::message::Id;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink};

/// The extension by which a client gets a task as the answer to a call.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Answers some requests when it can.
pub trait Delegate {
    /// The tools that the delegate serves. Called once, when the server is built.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Whether the delegate serves the tasks extension.
    fn has_tasks(&self) -> bool;

    /// Begins a request. The delegate may answer this handle at once, and no other handle.
    fn begin(
        &mut self,
        request: DelegatedRequest<'_>,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    );

    /// Forgets a handle, whose request was cancelled.
    fn forget(&mut self, handle: RequestHandle);
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestHandle(u64);

/// A request for a delegate. All of it is borrowed from the frame.
#[derive(Debug, Clone, Copy)]
pub struct DelegatedRequest<'a> {
    /// The method, and its parameters.
    pub kind: RequestKind<'a>,
    /// The client's name and version, if the client gives them.
    pub client: Option<(&'a str, &'a str)>,
    /// Whether the request declares the tasks extension.
    pub tasks: bool,
}

/// The method of a delegated request, with its parameters.
#[derive(Debug, Clone, Copy)]
pub enum RequestKind<'a> {
    /// `tools/call` of a tool of the delegate: its index in [`Delegate::tools`], and the call.
    Call(usize, Call<'a>),
    /// `tasks/get` of a task id.
    TaskGet(&'a str),
    /// `tasks/update` of a task id. Its inputs are ignored, since no task asks for any.
    TaskUpdate(&'a str),
    /// `tasks/cancel` of a task id.
    TaskCancel(&'a str),
}

/// The delegate's requests that were not answered yet, in memory that is claimed once.
#[derive(Debug)]
pub struct DeferredRequests {
    requests: Vec<DeferredRequest>,
    next_handle: u64,
}

/// The parts of a request that its later reply needs.
#[derive(Debug)]
struct DeferredRequest {
    handle: RequestHandle,
    id: OwnedId,
    revision_id: RevisionId,
    tasks: bool,
    progress: Option<Progress>,
}

/// The progress notifications of a request (2025-11-25, Base Protocol, Utilities, Progress).
#[derive(Debug)]
struct Progress {
    token: OwnedId,
    /// How many notifications were sent. Each reports this count as its progress, which must grow.
    sent: u64,
}

impl Default for DeferredRequests {
    fn default() -> Self {
        Self::new()
    }
}

impl DeferredRequests {
    /// No requests.
    pub fn new() -> Self {
        Self {
            requests: Vec::with_capacity(DEFERRED_MAX),
            next_handle: 0,
        }
    }

    /// Whether no request waits for its answer.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether a request with this id waits for its answer.
    #[inline]
    pub fn contains(&self, id: Id<'_>) -> bool {
        !self.requests.is_empty() && self.search(id)
    }

    #[inline(never)]
    fn search(&self, id: Id<'_>) -> bool {
        self.requests.iter().any(|request| request.id.id() == id)
    }

    /// Adds a request. A progress token that is too long to be kept is ignored.
    ///
    /// # Errors
    ///
    /// If too many requests are open, or the id is too long to be kept.
    pub fn open(
        &mut self,
        id: Id<'_>,
        revision_id: RevisionId,
        tasks: bool,
        token: Option<Id<'_>>,
    ) -> Result<RequestHandle, RpcError<'static>> {
        assert!(!self.contains(id), "an id in use is refused before");
        if self.requests.len() == DEFERRED_MAX {
            return Err(RpcError::new(
                RpcErrorCode::Internal,
                "too many requests are open",
            ));
        }
        let id = OwnedId::new(id).ok_or(RpcError::new(
            RpcErrorCode::InvalidRequest,
            "the id is too long for a request that is answered later",
        ))?;
        let token = token.and_then(OwnedId::new);
        let handle = RequestHandle(self.next_handle);
        self.next_handle += 1;
        self.requests.push(DeferredRequest {
            handle,
            id,
            revision_id,
            tasks,
            progress: token.map(|token| Progress { token, sent: 0 }),
        });
        Ok(handle)
    }

    /// Removes a request that was cancelled.
    pub fn cancel(&mut self, id: Id<'_>) -> Option<RequestHandle> {
        let index = self
            .requests
            .iter()
            .position(|request| request.id.id() == id)?;
        Some(self.requests.swap_remove(index).handle)
    }

    fn remove(&mut self, handle: RequestHandle) -> Option<DeferredRequest> {
        let index = self
            .requests
            .iter()
            .position(|request| request.handle == handle)?;
        Some(self.requests.swap_remove(index))
    }

    fn find(&self, handle: RequestHandle) -> Option<&DeferredRequest> {
        self.requests
            .iter()
            .find(|request| request.handle == handle)
    }
}

/// Writes the answers of a delegate: each becomes one line, in the revision of its request.
#[derive(Debug)]
pub struct Replies<'s> {
    deferred: &'s mut DeferredRequests,
    catalog: &'s Catalog,
    outbox: &'s mut Outbox,
}

impl<'s> Replies<'s> {
    pub(super) fn new(
        deferred: &'s mut DeferredRequests,
        catalog: &'s Catalog,
        outbox: &'s mut Outbox,
    ) -> Self {
        Self {
            deferred,
            catalog,
            outbox,
        }
    }

    /// Whether the outbox has room for an answer. While it has none, nothing may be answered.
    pub fn is_open(&self) -> bool {
        self.outbox.is_open()
    }

    /// Whether the request behind a handle declares the tasks extension.
    pub fn wants_tasks(&self, handle: RequestHandle) -> bool {
        self.deferred
            .find(handle)
            .is_some_and(|request| request.tasks)
    }

    /// Whether the request behind a handle has a progress token.
    pub fn wants_progress(&self, handle: RequestHandle) -> bool {
        let request = self.deferred.find(handle);
        request.is_some_and(|request| request.progress.is_some())
    }

    /// Answers a call of a tool.
    pub fn answer(&mut self, handle: RequestHandle, write: impl FnOnce(Reply<'_>) -> Answered<'_>) {
        self.line(handle, |outbox, request, catalog| {
            let preamble = catalog.preamble(request.revision_id);
            let _: Answered<'_> =
                write(Reply::new(outbox, request.revision_id.revision(), preamble));
            Ok(())
        });
    }

    /// Answers a method of the tasks extension with an object of `resultType` "complete".
    pub fn complete(&mut self, handle: RequestHandle, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(handle, "complete", fill);
    }

    /// Answers a call with a task, in an object of `resultType` "task".
    pub fn task(&mut self, handle: RequestHandle, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(handle, "task", fill);
    }

    /// Answers a method of the tasks extension with an object whose last member, `result`, is the
    /// result of a tool call.
    pub fn complete_with(
        &mut self,
        handle: RequestHandle,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
        write: impl FnOnce(Reply<'_>) -> Answered<'_>,
    ) {
        self.line(handle, |outbox, request, catalog| {
            let preamble = catalog.preamble(request.revision_id);
            Sink::plain(outbox).object(|object| {
                object.raw_members(preamble.trim_end_matches(','));
                fill(object);
                object.member("result", |sink| {
                    let revision = request.revision_id.revision();
                    let _: Answered<'_> = write(Reply::new(sink.outbox(), revision, preamble));
                });
            });
            Ok(())
        });
    }

    fn result(
        &mut self,
        handle: RequestHandle,
        result_type: &str,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.line(handle, |outbox, request, catalog| {
            Sink::plain(outbox).object(|object| {
                object.string("resultType", result_type);
                object.object("_meta", |meta| {
                    meta.raw_members(catalog.identity(request.revision_id));
                });
                fill(object);
            });
            Ok(())
        });
    }

    /// Answers with a protocol error.
    pub fn refuse(&mut self, handle: RequestHandle, error: RpcError<'_>) {
        self.line(handle, |_, _, _| Err(error));
    }

    /// Writes a reply and its LF. A result that does not fit is undone and answered with an error.
    fn line<'e>(
        &mut self,
        handle: RequestHandle,
        write: impl FnOnce(&mut Outbox, &DeferredRequest, &Catalog) -> Result<(), RpcError<'e>>,
    ) {
        let Some(request) = self.deferred.remove(handle) else {
            return;
        };
        let outbox = &mut *self.outbox;
        outbox.begin_frame();
        let start = outbox.mark();
        outbox.begin_result();
        errors::begin_reply(outbox, request.id.id());
        let mut written = write(outbox, &request, self.catalog);
        outbox.put(b"}\n");
        if !outbox.end_result() && written.is_ok() {
            written = Err(RpcError::new(RpcErrorCode::Internal, errors::SPOILT_RESULT));
        }
        if let Err(error) = written {
            outbox.rewind(start);
            errors::write(outbox, Some(request.id.id()), error);
            outbox.put(b"\n");
        }
    }

    /// Sends a progress notification, if the request has a progress token.
    pub fn progress(&mut self, handle: RequestHandle, message: &str) {
        let mut requests = self.deferred.requests.iter_mut();
        let Some(request) = requests.find(|request| request.handle == handle) else {
            return;
        };
        let Some(progress) = &mut request.progress else {
            return;
        };
        progress.sent += 1;
        self.outbox.begin_frame();
        let mut sink = Sink::plain(self.outbox);
        sink.raw("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":");
        sink.object(|params| {
            params.member("progressToken", |sink| sink.id(progress.token.id()));
            params.unsigned("progress", progress.sent);
            if request.revision_id.revision().progress_messages {
                params.string("message", message);
            }
        });
        sink.raw("}\n");
    }
}
