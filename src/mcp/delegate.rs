//! Requests that are answered later: by whom, and how.
//!
//! A server may hand some of its tools, and the methods of the tasks extension, to a [`Delegate`].
//! The session keeps what a reply needs (whose id, which revision) under a [`RequestHandle`], and
//! the delegate keeps the handle. When it knows the answer, at once or much later, it gives it to
//! [`Replies`]. A handle is answered once; one whose request was cancelled is answered by nothing.

use super::catalog::Catalog;
use super::errors::{self, RpcError, RpcErrorCode};
use super::revision::RevisionId;
use super::tool::{Answered, Call, Reply, ToolSpec};
use crate::limits::DEFERRED_MAX;
use crate::mcp::owned::OwnedId;
use crate::wire::message::Id;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink};

/// The extension by which a call becomes a task of the client's.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// One that answers some requests when it can.
pub trait Delegate {
    /// The tools that it serves. Asked once, when the server is built.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Whether it serves the tasks extension.
    fn has_tasks(&self) -> bool;

    /// Takes a request on. It may answer this handle at once, and no other.
    fn ask(
        &mut self,
        request: DelegatedRequest<'_>,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    );

    /// Hears that nobody waits for a handle any more.
    fn forget(&mut self, handle: RequestHandle);
}

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestHandle(u64);

/// A request for a delegate. All of it is borrowed from the frame.
#[derive(Debug, Clone, Copy)]
pub struct DelegatedRequest<'a> {
    /// What is asked.
    pub ask: RequestKind<'a>,
    /// The name and version of the client, as it says.
    pub client: Option<(&'a str, &'a str)>,
    /// Whether the request declares the tasks extension.
    pub tasks: bool,
}

/// What a delegate is asked.
#[derive(Debug, Clone, Copy)]
pub enum RequestKind<'a> {
    /// A call of one of its tools, by their order.
    Call(usize, Call<'a>),
    /// `tasks/get` of a task id.
    TaskGet(&'a str),
    /// `tasks/update` of a task id, whose inputs nobody has asked for.
    TaskUpdate(&'a str),
    /// `tasks/cancel` of a task id.
    TaskCancel(&'a str),
}

/// The requests that were taken on and not answered yet, in memory that is claimed once.
#[derive(Debug)]
pub struct Deferred {
    open: Vec<Waiting>,
    next: u64,
}

/// What a later reply needs of its request.
#[derive(Debug)]
struct Waiting {
    handle: RequestHandle,
    id: OwnedId,
    revision_id: RevisionId,
    tasks: bool,
    progress: Option<Progress>,
}

/// What a client wants to hear while it waits (2025-11-25, Base Protocol, Utilities, Progress).
#[derive(Debug)]
struct Progress {
    token: OwnedId,
    /// How many notifications were sent. It is what they count, since it must grow with each.
    said: u64,
}

impl Default for Deferred {
    fn default() -> Self {
        Self::new()
    }
}

impl Deferred {
    /// Nothing is open.
    pub fn new() -> Self {
        Self {
            open: Vec::with_capacity(DEFERRED_MAX),
            next: 0,
        }
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether somebody waits under an id.
    #[inline]
    pub fn holds(&self, id: Id<'_>) -> bool {
        !self.open.is_empty() && self.finds(id)
    }

    #[inline(never)]
    fn finds(&self, id: Id<'_>) -> bool {
        self.open.iter().any(|waiting| waiting.id.id() == id)
    }

    /// Remembers a request. A progress token that is too long to be kept is taken for none.
    ///
    /// # Errors
    ///
    /// If there are too many, or the id is too long to be kept.
    pub fn open(
        &mut self,
        id: Id<'_>,
        revision_id: RevisionId,
        tasks: bool,
        token: Option<Id<'_>>,
    ) -> Result<RequestHandle, RpcError<'static>> {
        assert!(!self.holds(id), "an id in use is refused before");
        if self.open.len() == DEFERRED_MAX {
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
        let handle = RequestHandle(self.next);
        self.next += 1;
        self.open.push(Waiting {
            handle,
            id,
            revision_id,
            tasks,
            progress: token.map(|token| Progress { token, said: 0 }),
        });
        Ok(handle)
    }

    /// Forgets a request that was cancelled.
    pub fn cancel(&mut self, id: Id<'_>) -> Option<RequestHandle> {
        let index = self.open.iter().position(|waiting| waiting.id.id() == id)?;
        Some(self.open.swap_remove(index).handle)
    }

    fn take(&mut self, handle: RequestHandle) -> Option<Waiting> {
        let index = self
            .open
            .iter()
            .position(|waiting| waiting.handle == handle)?;
        Some(self.open.swap_remove(index))
    }

    fn find(&self, handle: RequestHandle) -> Option<&Waiting> {
        self.open.iter().find(|waiting| waiting.handle == handle)
    }
}

/// Where a delegate's answers go: each becomes one line, as its request's revision has it.
#[derive(Debug)]
pub struct Replies<'s> {
    deferred: &'s mut Deferred,
    catalog: &'s Catalog,
    outbox: &'s mut Outbox,
}

impl<'s> Replies<'s> {
    pub(super) fn new(
        deferred: &'s mut Deferred,
        catalog: &'s Catalog,
        outbox: &'s mut Outbox,
    ) -> Self {
        Self {
            deferred,
            catalog,
            outbox,
        }
    }

    /// Whether there is room for a line. While there is none, nothing may be answered.
    pub fn is_open(&self) -> bool {
        self.outbox.is_open()
    }

    /// Whether the request behind a handle declares the tasks extension.
    pub fn wants_tasks(&self, handle: RequestHandle) -> bool {
        self.deferred
            .find(handle)
            .is_some_and(|waiting| waiting.tasks)
    }

    /// Whether the request behind a handle wants to hear of progress.
    pub fn wants_progress(&self, handle: RequestHandle) -> bool {
        let waiting = self.deferred.find(handle);
        waiting.is_some_and(|waiting| waiting.progress.is_some())
    }

    /// Answers a call of a tool.
    pub fn answer(&mut self, handle: RequestHandle, write: impl FnOnce(Reply<'_>) -> Answered<'_>) {
        self.line(handle, |outbox, waiting, catalog| {
            let preamble = catalog.preamble(waiting.revision_id);
            let _: Answered<'_> =
                write(Reply::new(outbox, waiting.revision_id.revision(), preamble));
            Ok(())
        });
    }

    /// Answers a method of the tasks extension with an object of `resultType` "complete".
    pub fn complete(&mut self, handle: RequestHandle, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(handle, "complete", fill);
    }

    /// Answers a call with a task that was created for it.
    pub fn task(&mut self, handle: RequestHandle, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(handle, "task", fill);
    }

    /// Answers a method of the tasks extension with what a call would have been answered with, as
    /// the member `result` behind others.
    pub fn complete_with(
        &mut self,
        handle: RequestHandle,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
        write: impl FnOnce(Reply<'_>) -> Answered<'_>,
    ) {
        self.line(handle, |outbox, waiting, catalog| {
            let preamble = catalog.preamble(waiting.revision_id);
            Sink::plain(outbox).object(|object| {
                object.raw_members(preamble.trim_end_matches(','));
                fill(object);
                object.member("result", |sink| {
                    let revision = waiting.revision_id.revision();
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
        self.line(handle, |outbox, waiting, catalog| {
            Sink::plain(outbox).object(|object| {
                object.string("resultType", result_type);
                object.object("_meta", |meta| {
                    meta.raw_members(catalog.identity(waiting.revision_id));
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

    /// Writes a reply and its LF. A result that does not fit is taken back.
    fn line<'e>(
        &mut self,
        handle: RequestHandle,
        write: impl FnOnce(&mut Outbox, &Waiting, &Catalog) -> Result<(), RpcError<'e>>,
    ) {
        let Some(waiting) = self.deferred.take(handle) else {
            return;
        };
        let outbox = &mut *self.outbox;
        outbox.begin_frame();
        let start = outbox.mark();
        outbox.begin_result();
        errors::begin_result(outbox, waiting.id.id());
        let mut written = write(outbox, &waiting, self.catalog);
        outbox.put(b"}\n");
        if !outbox.end_result() && written.is_ok() {
            written = Err(RpcError::new(RpcErrorCode::Internal, errors::SPOILT_RESULT));
        }
        if let Err(error) = written {
            outbox.rewind(start);
            errors::write(outbox, Some(waiting.id.id()), error);
            outbox.put(b"\n");
        }
    }

    /// Tells a client that waits, and wants to hear of it, that the work goes on.
    pub fn progress(&mut self, handle: RequestHandle, message: &str) {
        let waiting = self.deferred.open.iter_mut();
        let mut waiting = waiting.filter(|waiting| waiting.handle == handle);
        let Some(waiting) = waiting.next() else {
            return;
        };
        let Some(progress) = &mut waiting.progress else {
            return;
        };
        progress.said += 1;
        self.outbox.begin_frame();
        let mut sink = Sink::plain(self.outbox);
        sink.raw("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":");
        sink.object(|params| {
            params.member("progressToken", |sink| sink.id(progress.token.id()));
            params.unsigned("progress", progress.said);
            if waiting.revision_id.revision().progress_messages {
                params.string("message", message);
            }
        });
        sink.raw("}\n");
    }
}
