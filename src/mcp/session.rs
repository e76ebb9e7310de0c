//! The session: one message in, at most one reply out.

use bumpalo::Bump;

use super::catalog::{Catalog, Info};
use super::delegate::{Deferred, Delegate, DelegatedRequest, Replies, RequestKind, TASKS};
use super::envelope::{self, Envelope};
use super::errors::{self, RpcError, RpcErrorCode, RpcErrorData, begin_result};
use super::lifecycle;
use super::revision::RevisionId;
use super::subscriptions::{self, Subscriptions};
use super::tool::{Call, Tool};
use super::tools::{self, Called, Served, Tools};
use crate::limits::{
    ARENA_BYTES_MAX, ARENA_BYTES_WARM, BATCH_MESSAGES_MAX, CLIENT_INFO_BYTES_MAX, FRAME_BYTES_MAX,
    RESTING_BYTES_MAX,
};
use crate::mcp::owned::InlineString;
use crate::wire::json::{Array, Object, Parser, Value};
use crate::wire::message::{Id, Message, Notification, Request};
use crate::wire::outbox::Outbox;
use crate::wire::writer::Sink;

const OVERSIZED: &str = "the line is longer than 1048576 bytes and was dropped";
const _: () = assert!(FRAME_BYTES_MAX == 1_048_576);

const NO_JSON: &str = "the line is not JSON";
const HEADERS: &str = "the line is not JSON: messages are one JSON text a line, without headers";

/// A server's side of one conversation.
///
/// It answers at once, but for what a delegate answers later. It remembers nothing of a request but
/// the id of an open subscription and what the reply of a delegate needs, so any other cancellation
/// comes too late and is ignored, as the protocol allows.
pub struct Session<D> {
    parser: Parser,
    arena: Bump,
    server: SessionCore<D>,
}

/// All but the buffers, so that a frame's values and the server can be borrowed side by side.
struct SessionCore<D> {
    catalog: Catalog,
    tools: Tools,
    /// The revision that was agreed on; none before the first good `initialize`.
    agreed: Option<RevisionId>,
    /// The name and version of the client of the last good `initialize`, for the delegate.
    client: (ClientWord, ClientWord),
    subscriptions: Subscriptions,
    deferred: Deferred,
    delegate: D,
}

/// What a client says of itself.
type ClientWord = InlineString<CLIENT_INFO_BYTES_MAX>;

impl<D> std::fmt::Debug for Session<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("agreed", &self.server.agreed)
            .finish_non_exhaustive()
    }
}

impl<D: Delegate> Session<D> {
    /// A session that no message has reached. `page_tools` is how many tools a page of
    /// `tools/list` holds. The outbox is used while building, and empty again afterwards.
    ///
    /// # Panics
    ///
    /// If a tool's spec is not what [`ToolSpec::new`](super::tool::ToolSpec::new) asks for.
    pub fn new(
        info: &Info,
        tools: Vec<Box<dyn Tool>>,
        delegate: D,
        page_tools: usize,
        scratch: &mut Outbox,
    ) -> Self {
        let (tools, specs) = Tools::new(tools, delegate.tools());
        let extensions: &[&'static str] = if delegate.has_tasks() { &[TASKS] } else { &[] };
        Self {
            parser: Parser::new(),
            arena: new_arena(),
            server: SessionCore {
                catalog: Catalog::new(info, &specs, page_tools, extensions, scratch),
                tools,
                agreed: None,
                client: (ClientWord::EMPTY, ClientWord::EMPTY),
                subscriptions: Subscriptions::new(),
                deferred: Deferred::new(),
                delegate,
            },
        }
    }

    /// Serves one frame: the first `bytes` bytes of `frame`, with the parser's padding behind
    /// them. The frame is parsed in place. Writes at most one line into the outbox.
    pub fn handle_frame(&mut self, frame: &mut [u8], bytes: usize, outbox: &mut Outbox) {
        if is_blank(&frame[..bytes]) {
            return;
        }
        let no_json = if has_headers(&frame[..bytes]) {
            HEADERS
        } else {
            NO_JSON
        };
        outbox.begin_frame();
        match self.parser.parse(frame, bytes) {
            Ok(document) => {
                self.server.handle(document.root(), &mut self.arena, outbox);
                self.parser.recycle(document);
            }
            Err(_) => {
                errors::write(outbox, None, RpcError::new(RpcErrorCode::Parse, no_json));
                outbox.put(b"\n");
            }
        }
    }

    /// Answers a frame that passed the bound and was not kept.
    pub fn handle_oversized(&mut self, outbox: &mut Outbox) {
        outbox.begin_frame();
        errors::write(
            outbox,
            None,
            RpcError::new(RpcErrorCode::InvalidRequest, OVERSIZED),
        );
        outbox.put(b"\n");
    }

    /// Who answers later, and where the answers go.
    pub fn delegate<'s>(&'s mut self, outbox: &'s mut Outbox) -> (&'s mut D, Replies<'s>) {
        let SessionCore {
            catalog,
            deferred,
            delegate,
            ..
        } = &mut self.server;
        (delegate, Replies::new(deferred, catalog, outbox))
    }

    /// Who answers later.
    pub fn delegate_ref(&self) -> &D {
        &self.server.delegate
    }

    /// Whether a request was taken on and not answered yet.
    pub fn has_pending_replies(&self) -> bool {
        !self.server.deferred.is_empty()
    }

    /// Ends one of what is still open when no further message will come, and tells whether there
    /// was anything.
    pub fn conclude(&mut self, outbox: &mut Outbox) -> bool {
        outbox.begin_frame();
        let (subscriptions, catalog) = (&mut self.server.subscriptions, &self.server.catalog);
        subscriptions
            .close_first(|id, revision_id| conclude(outbox, id, catalog.identity(revision_id)))
    }
}

fn new_arena() -> Bump {
    let arena = Bump::with_capacity(ARENA_BYTES_WARM);
    arena.set_allocation_limit(Some(ARENA_BYTES_MAX));
    arena
}

/// Frees what a message has put into the arena, and the chunks that a large one has added.
fn reset(arena: &mut Bump) {
    if arena.allocated_bytes() > RESTING_BYTES_MAX {
        *arena = new_arena();
    } else {
        arena.reset();
    }
}

fn is_blank(frame: &[u8]) -> bool {
    frame
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Whether a line looks like the framing of the Language Server Protocol.
fn has_headers(frame: &[u8]) -> bool {
    const HEADER: &[u8] = b"content-";
    matches!(frame.first(), Some(b'C' | b'c'))
        && frame.len() >= HEADER.len()
        && frame[..HEADER.len()].eq_ignore_ascii_case(HEADER)
}

/// How a message that stands in a batch differs from one that stands alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessagePlace {
    Line,
    Batch,
}

/// What has become of a request.
enum RequestAnswer<'a> {
    /// Its result is written.
    Result,
    /// It was acknowledged, and its result comes when it ends.
    Open,
    /// It is for the delegate.
    Delegated(&'a Delegation<'a>),
}

/// A request for the delegate, and how it is spoken. It lives in the arena, so that the replies
/// that need none of it do not carry its size.
struct Delegation<'a> {
    ask: RequestKind<'a>,
    revision_id: RevisionId,
    envelope: Option<Envelope<'a>>,
}

impl<D: Delegate> SessionCore<D> {
    fn handle(&mut self, root: Value<'_>, arena: &mut Bump, outbox: &mut Outbox) {
        let start = outbox.mark();
        match root {
            Value::Array(batch) => self.batch(batch, arena, outbox),
            message => self.message(message, MessagePlace::Line, arena, outbox),
        }
        if outbox.is_mid_line(start) {
            outbox.put(b"\n");
        }
    }

    /// A batch is answered by one array, of one reply to each request (JSON-RPC 2.0, section 6).
    fn batch(&mut self, batch: Array<'_>, arena: &mut Bump, outbox: &mut Outbox) {
        let refuse = |outbox: &mut Outbox, fault| {
            errors::write(
                outbox,
                None,
                RpcError::new(RpcErrorCode::InvalidRequest, fault),
            );
        };
        match self.agreed {
            Some(revision_id) if revision_id.revision().batches => {}
            _ => return refuse(outbox, "a batch is not served by this revision"),
        }
        if batch.is_empty() {
            return refuse(outbox, "a batch must not be empty");
        }
        if batch.len() > BATCH_MESSAGES_MAX {
            return refuse(outbox, "a batch of more than 1024 messages is not served");
        }
        const { assert!(BATCH_MESSAGES_MAX == 1024) };
        let start = outbox.mark();
        outbox.put(b"[");
        let first = outbox.mark();
        for message in batch.iter() {
            let before = outbox.mark();
            if !outbox.is_at(first) {
                outbox.put(b",");
            }
            let behind = outbox.mark();
            self.message(message, MessagePlace::Batch, arena, outbox);
            if outbox.is_at(behind) {
                outbox.rewind(before);
            }
        }
        if outbox.is_at(first) {
            outbox.rewind(start);
        } else {
            outbox.put(b"]");
        }
    }

    fn message(
        &mut self,
        value: Value<'_>,
        place: MessagePlace,
        arena: &mut Bump,
        outbox: &mut Outbox,
    ) {
        match Message::from_value(value) {
            Message::Request(request) => {
                self.request(request, place, arena, outbox);
                reset(arena);
            }
            Message::Notification(notification) => self.notification(notification),
            Message::Response => {}
            Message::Invalid { id, fault } => {
                errors::write(
                    outbox,
                    id,
                    RpcError::new(RpcErrorCode::InvalidRequest, fault),
                );
            }
        }
    }

    /// A cancellation counts in whatever era it comes. One that is malformed or names nothing that
    /// is open is ignored, and remembered nowhere.
    fn notification(&mut self, notification: Notification<'_>) {
        if notification.method == "notifications/cancelled"
            && let Some(Value::Object(params)) = notification.params
            && let Ok([Some(id)]) = params.take(["requestId"])
            && let Some(id) = Id::from_value(id)
        {
            self.subscriptions.cancel(id);
            if let Some(handle) = self.deferred.cancel(id) {
                self.delegate.forget(handle);
            }
        }
    }

    /// Writes one reply, or has the delegate do so. A result that does not fit, or that turns out
    /// to be an error on the way, is taken back.
    fn request(
        &mut self,
        request: Request<'_>,
        place: MessagePlace,
        arena: &Bump,
        outbox: &mut Outbox,
    ) {
        let start = outbox.mark();
        outbox.begin_result();
        begin_result(outbox, request.id);
        let mut answered = self.answer(request, place, arena, outbox);
        if let Ok(RequestAnswer::Result) = answered {
            outbox.put(b"}");
        }
        if !outbox.end_result() && answered.is_ok() {
            answered = Err(RpcError::new(RpcErrorCode::Internal, errors::SPOILT_RESULT));
        }
        match answered {
            Ok(RequestAnswer::Result) => {}
            Ok(RequestAnswer::Open) => {
                outbox.rewind(start);
                acknowledge(outbox, request.id);
            }
            Ok(RequestAnswer::Delegated(delegation)) => {
                outbox.rewind(start);
                let delegated = self.delegate(&request, delegation, place, outbox);
                if let Err(error) = delegated {
                    errors::write(outbox, Some(request.id), error);
                }
            }
            Err(error) => {
                outbox.rewind(start);
                errors::write(outbox, Some(request.id), error);
            }
        }
    }

    /// Hands a request to the delegate. It is kept out of the way of what is answered at once.
    #[cold]
    #[inline(never)]
    fn delegate<'a>(
        &mut self,
        request: &Request<'a>,
        delegation: &Delegation<'a>,
        place: MessagePlace,
        outbox: &mut Outbox,
    ) -> Result<(), RpcError<'static>> {
        if place == MessagePlace::Batch {
            let fault = "a request that is answered later must stand alone on its line";
            return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
        }
        let (revision_id, envelope) = (delegation.revision_id, delegation.envelope);
        let meta = params(request)?.and_then(|params| params.get("_meta")?.as_object());
        let token = meta.and_then(|meta| Id::from_value(meta.get("progressToken")?));
        let tasks = envelope.is_some_and(|envelope| envelope.can(TASKS));
        let handle = self.deferred.open(request.id, revision_id, tasks, token)?;
        let client = match envelope {
            Some(_) => meta.and_then(|meta| client_words(meta.get(envelope::CLIENT)?)),
            None => Some((self.client.0.as_str(), self.client.1.as_str())),
        };
        let ask = delegation.ask;
        let order = DelegatedRequest { ask, client, tasks };
        let mut replies = Replies::new(&mut self.deferred, &self.catalog, outbox);
        self.delegate.ask(order, handle, &mut replies);
        Ok(())
    }

    /// Writes the result of a request, in the era that the request itself decides.
    fn answer<'a>(
        &mut self,
        request: Request<'a>,
        place: MessagePlace,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestAnswer<'a>, RpcError<'a>> {
        if self.subscriptions.holds(request.id) {
            let fault = "the id is that of an open subscription";
            return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
        }
        if self.deferred.holds(request.id) {
            let fault = "the id is that of a request that was not answered yet";
            return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
        }
        match (Envelope::parse(&request)?, place) {
            (None, _) => self.answer_handshake(request, place, arena, outbox),
            (Some(envelope), MessagePlace::Line) => {
                self.answer_stateless(request, envelope, arena, outbox)
            }
            (Some(_), MessagePlace::Batch) => Err(RpcError::new(
                RpcErrorCode::InvalidRequest,
                "a request with an envelope must stand alone on its line",
            )),
        }
    }

    /// Serves a request that is part of a session, or opens one.
    fn answer_handshake<'a>(
        &mut self,
        request: Request<'a>,
        place: MessagePlace,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestAnswer<'a>, RpcError<'a>> {
        match (request.method, self.agreed) {
            ("initialize", _) if place == MessagePlace::Batch => {
                let fault = "initialize must not be part of a batch";
                return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
            }
            ("initialize", _) => {
                let (revision_id, (name, version)) = lifecycle::initialize(params(&request)?)?;
                self.agreed = Some(revision_id);
                if self.delegate.has_tasks() {
                    self.client = (ClientWord::new(name), ClientWord::new(version));
                }
                outbox.put(self.catalog.opening(revision_id).as_bytes());
            }
            ("ping", _) => {
                params(&request)?;
                outbox.put(b"{}");
            }
            ("server/discover" | "subscriptions/listen", _) => {
                return Err(RpcError::params(
                    "the request needs an envelope in params._meta",
                ));
            }
            (_, None) => {
                let fault = "the session is not open: send initialize first";
                return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
            }
            (_, Some(revision_id)) => return self.serve(request, revision_id, None, arena, outbox),
        }
        Ok(RequestAnswer::Result)
    }

    /// Serves a request that stands for itself.
    fn answer_stateless<'a>(
        &mut self,
        request: Request<'a>,
        envelope: Envelope<'a>,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestAnswer<'a>, RpcError<'a>> {
        let revision_id = envelope.revision_id;
        match request.method {
            "server/discover" => outbox.put(self.catalog.opening(revision_id).as_bytes()),
            "subscriptions/listen" => {
                subscriptions::wanted(params(&request)?)?;
                self.subscriptions.open(request.id, revision_id)?;
                return Ok(RequestAnswer::Open);
            }
            "initialize" => {
                return Err(RpcError {
                    data: Some(RpcErrorData::SupportedVersions),
                    ..not_found(request.method)
                });
            }
            _ => return self.serve(request, revision_id, Some(envelope), arena, outbox),
        }
        Ok(RequestAnswer::Result)
    }

    /// Serves what both eras have.
    fn serve<'a>(
        &mut self,
        request: Request<'a>,
        revision_id: RevisionId,
        envelope: Option<Envelope<'a>>,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestAnswer<'a>, RpcError<'a>> {
        match request.method {
            "tools/list" => {
                let page = tools::list(&self.catalog, revision_id, params(&request)?)?;
                outbox.put(page.as_bytes());
                Ok(RequestAnswer::Result)
            }
            "tools/call" => {
                let served = Served {
                    revision_id,
                    envelope,
                    preamble: self.catalog.preamble(revision_id),
                    arena,
                };
                match self.tools.call(served, params(&request)?, outbox)? {
                    Called::Written => Ok(RequestAnswer::Result),
                    Called::Delegated(number, arguments) => {
                        let ask = RequestKind::Call(number, Call { arguments, arena });
                        Ok(delegated(ask, revision_id, envelope, arena))
                    }
                }
            }
            method => match envelope {
                Some(envelope) if self.delegate.has_tasks() => {
                    task_method(&request, envelope, arena)
                }
                _ => Err(not_found(method)),
            },
        }
    }
}

/// A method of the tasks extension, which its client must declare with each request
/// (Tasks Extension, Capability Negotiation).
#[cold]
#[inline(never)]
fn task_method<'a>(
    request: &Request<'a>,
    envelope: Envelope<'a>,
    arena: &'a Bump,
) -> Result<RequestAnswer<'a>, RpcError<'a>> {
    let ask: fn(&'a str) -> RequestKind<'a> = match request.method {
        "tasks/get" => RequestKind::TaskGet,
        "tasks/update" => RequestKind::TaskUpdate,
        "tasks/cancel" => RequestKind::TaskCancel,
        method => return Err(not_found(method)),
    };
    if !envelope.can(TASKS) {
        return Err(RpcError::lacking(TASKS));
    }
    let [task] = params(request)?
        .unwrap_or(Object::EMPTY)
        .take(["taskId"])
        .map_err(|_| RpcError::params("taskId is given more than once"))?;
    let task = task
        .and_then(|task| task.as_str())
        .ok_or(RpcError::params("taskId must be a string"))?;
    Ok(delegated(
        ask(task),
        envelope.revision_id,
        Some(envelope),
        arena,
    ))
}

#[cold]
#[inline(never)]
fn delegated<'a>(
    ask: RequestKind<'a>,
    revision_id: RevisionId,
    envelope: Option<Envelope<'a>>,
    arena: &'a Bump,
) -> RequestAnswer<'a> {
    RequestAnswer::Delegated(arena.alloc(Delegation {
        ask,
        revision_id,
        envelope,
    }))
}

/// The name and version of a client's own description.
fn client_words(client: Value<'_>) -> Option<(&str, &str)> {
    let client = client.as_object()?;
    Some((
        client.get("name")?.as_str()?,
        client.get("version")?.as_str()?,
    ))
}

fn not_found(method: &str) -> RpcError<'_> {
    RpcError::quoting(RpcErrorCode::MethodNotFound, "method not found", method)
}

/// Says which of the wanted notifications will come: none, since nothing ever changes.
fn acknowledge(outbox: &mut Outbox, id: Id<'_>) {
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",");
    sink.raw("\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    sink.id(id);
    sink.raw("},\"notifications\":{}}}");
}

/// Ends a subscription. Its result says nothing but which one. What the server says of itself was
/// found to fit when the catalog was built.
fn conclude(outbox: &mut Outbox, id: Id<'_>, identity: &str) {
    begin_result(outbox, id);
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"resultType\":\"complete\",");
    sink.raw("\"_meta\":{");
    sink.raw(identity);
    sink.raw(",\"io.modelcontextprotocol/subscriptionId\":");
    sink.id(id);
    sink.raw("}}}\n");
}

/// The parameters by name. `null` counts as none.
fn params<'a>(request: &Request<'a>) -> Result<Option<Object<'a>>, RpcError<'static>> {
    match request.params {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(params)) => Ok(Some(params)),
        Some(_) => Err(RpcError::params("params must be an object")),
    }
}
