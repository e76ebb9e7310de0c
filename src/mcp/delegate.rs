//! Requests that are answered later: by whom, and how.
//!
//! A server may hand some of its tools, and the methods of the tasks extension, to a [`Delegate`].
//! The session keeps what a reply needs (whose id, which revision) under a [`Ticket`], and the
//! delegate keeps the ticket. When it knows the answer, at once or much later, it gives it to
//! [`Replies`]. A ticket is answered once; one whose request was cancelled is answered by nothing.

use super::catalog::Catalog;
use super::errors::{self, Code, Error};
use super::kept::Kept;
use super::revision::Known;
use super::tool::{Answered, Call, Reply, ToolSpec};
use crate::limits::DEFERRED_MAX;
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

    /// Takes a request on. It may answer this ticket at once, and no other.
    fn ask(&mut self, order: Order<'_>, ticket: Ticket, replies: &mut Replies<'_>);

    /// Hears that nobody waits for a ticket any more.
    fn forget(&mut self, ticket: Ticket);
}

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// A request for a delegate. All of it is borrowed from the frame.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// What is asked.
    pub ask: Ask<'a>,
    /// The name and version of the client, as it says.
    pub client: Option<(&'a str, &'a str)>,
    /// Whether the request declares the tasks extension.
    pub tasks: bool,
}

/// What a delegate is asked.
#[derive(Debug, Clone, Copy)]
pub enum Ask<'a> {
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
    ticket: Ticket,
    id: Kept,
    known: Known,
    tasks: bool,
    progress: Option<Progress>,
}

/// What a client wants to hear while it waits (2025-11-25, Base Protocol, Utilities, Progress).
#[derive(Debug)]
struct Progress {
    token: Kept,
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
        known: Known,
        tasks: bool,
        token: Option<Id<'_>>,
    ) -> Result<Ticket, Error<'static>> {
        assert!(!self.holds(id), "an id in use is refused before");
        if self.open.len() == DEFERRED_MAX {
            return Err(Error::new(Code::Internal, "too many requests are open"));
        }
        let id = Kept::of(id).ok_or(Error::new(
            Code::InvalidRequest,
            "the id is too long for a request that is answered later",
        ))?;
        let token = token.and_then(Kept::of);
        let ticket = Ticket(self.next);
        self.next += 1;
        self.open.push(Waiting {
            ticket,
            id,
            known,
            tasks,
            progress: token.map(|token| Progress { token, said: 0 }),
        });
        Ok(ticket)
    }

    /// Forgets a request that was cancelled.
    pub fn cancel(&mut self, id: Id<'_>) -> Option<Ticket> {
        let index = self.open.iter().position(|waiting| waiting.id.id() == id)?;
        Some(self.open.swap_remove(index).ticket)
    }

    fn take(&mut self, ticket: Ticket) -> Option<Waiting> {
        let index = self
            .open
            .iter()
            .position(|waiting| waiting.ticket == ticket)?;
        Some(self.open.swap_remove(index))
    }

    fn find(&self, ticket: Ticket) -> Option<&Waiting> {
        self.open.iter().find(|waiting| waiting.ticket == ticket)
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

    /// Whether the request behind a ticket declares the tasks extension.
    pub fn wants_tasks(&self, ticket: Ticket) -> bool {
        self.deferred
            .find(ticket)
            .is_some_and(|waiting| waiting.tasks)
    }

    /// Whether the request behind a ticket wants to hear of progress.
    pub fn wants_progress(&self, ticket: Ticket) -> bool {
        let waiting = self.deferred.find(ticket);
        waiting.is_some_and(|waiting| waiting.progress.is_some())
    }

    /// Answers a call of a tool.
    pub fn answer(&mut self, ticket: Ticket, write: impl FnOnce(Reply<'_>) -> Answered) {
        self.line(ticket, |outbox, waiting, catalog| {
            let preamble = catalog.preamble(waiting.known);
            write(Reply::new(outbox, waiting.known.revision(), preamble));
            Ok(())
        });
    }

    /// Answers a method of the tasks extension with an object of `resultType` "complete".
    pub fn complete(&mut self, ticket: Ticket, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(ticket, "complete", fill);
    }

    /// Answers a call with a task that was created for it.
    pub fn task(&mut self, ticket: Ticket, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(ticket, "task", fill);
    }

    /// Answers a method of the tasks extension with what a call would have been answered with, as
    /// the member `result` behind others.
    pub fn complete_with(
        &mut self,
        ticket: Ticket,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
        write: impl FnOnce(Reply<'_>) -> Answered,
    ) {
        self.line(ticket, |outbox, waiting, catalog| {
            let preamble = catalog.preamble(waiting.known);
            Sink::plain(outbox).object(|object| {
                object.raw_members(preamble.trim_end_matches(','));
                fill(object);
                object.member("result", |sink| {
                    let revision = waiting.known.revision();
                    write(Reply::new(sink.outbox(), revision, preamble));
                });
            });
            Ok(())
        });
    }

    fn result(
        &mut self,
        ticket: Ticket,
        result_type: &str,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.line(ticket, |outbox, waiting, catalog| {
            Sink::plain(outbox).object(|object| {
                object.string("resultType", result_type);
                object.object("_meta", |meta| {
                    meta.raw_members(catalog.identity(waiting.known));
                });
                fill(object);
            });
            Ok(())
        });
    }

    /// Answers with a protocol error.
    pub fn refuse(&mut self, ticket: Ticket, error: Error<'_>) {
        self.line(ticket, |_, _, _| Err(error));
    }

    /// Writes a reply and its LF. A result that does not fit is taken back.
    fn line<'e>(
        &mut self,
        ticket: Ticket,
        write: impl FnOnce(&mut Outbox, &Waiting, &Catalog) -> Result<(), Error<'e>>,
    ) {
        let Some(waiting) = self.deferred.take(ticket) else {
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
            written = Err(Error::new(Code::Internal, "the result is too long"));
        }
        if let Err(error) = written {
            outbox.rewind(start);
            errors::write(outbox, Some(waiting.id.id()), error);
            outbox.put(b"\n");
        }
    }

    /// Tells a client that waits, and wants to hear of it, that the work goes on.
    pub fn progress(&mut self, ticket: Ticket, message: &str) {
        let waiting = self.deferred.open.iter_mut();
        let mut waiting = waiting.filter(|waiting| waiting.ticket == ticket);
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
            if waiting.known.revision().progress_messages {
                params.string("message", message);
            }
        });
        sink.raw("}\n");
    }
}
