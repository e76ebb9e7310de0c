//! The session: one frame in, at most one line out.
//!
//! A request gets one reply, now or later; a notification and a response get none. The session does
//! not know where frames come from, nor when.

use bumpalo::Bump;

use super::catalog::{Catalog, Info};
use super::delegate::{DeferredRequests, Delegate, DelegatedRequest, Replies, RequestKind, TASKS};
use super::envelope::{self, Envelope};
use super::errors::{self, RpcError, RpcErrorCode, RpcErrorData, begin_reply};
use super::lifecycle;
use super::revision::RevisionId;
use super::subscriptions::{self, Subscriptions};
use super::tool::{Call, Tool};
use super::tools::{self, CallContext, CallOutcome, Tools};
use crate::limits::{
    ARENA_BYTES_MAX, ARENA_BYTES_WARM, BATCH_MESSAGES_MAX, CLIENT_INFO_BYTES_MAX, DEPTH_MAX,
    FRAME_BYTES_MAX, RESTING_BYTES_MAX,
};
use crate::mcp::owned::InlineString;
use crate::wire::json::{Array, Object, Parser, Value};
use crate::wire::message::{Id, Message, Notification, Request};
use crate::wire::outbox::Outbox;
use crate::wire::writer::Sink;

const OVERSIZED: &str = "the line is longer than 1048576 bytes and was dropped";
const _: () = assert!(FRAME_BYTES_MAX == 1_048_576);

const NOT_JSON: &str = "the line is not JSON";
const TOO_DEEP: &str = "the line nests objects and arrays deeper than 1024 levels";
const _: () = assert!(DEPTH_MAX == 1024);

const HEADERS: &str = "the line is not JSON: messages are one JSON text a line, without headers";

/// The server's side of one connection.
///
/// A request is answered at once, unless the delegate answers it later. The session remembers only
/// the ids of open subscriptions and the requests of the delegate, so any other cancellation comes
/// too late and is ignored, as the protocol allows.
pub struct Session<D> {
    parser: Parser,
    arena: Bump,
    server: SessionCore<D>,
}

/// The session without its buffers, so that the values of a frame and the session can be borrowed
/// side by side.
struct SessionCore<D> {
    catalog: Catalog,
    tools: Tools,
    /// The revision that was negotiated; none before the first valid `initialize`.
    agreed: Option<RevisionId>,
    /// The client's name and version from the last valid `initialize`, for the delegate.
    client: (ClientText, ClientText),
    subscriptions: Subscriptions,
    deferred: DeferredRequests,
    delegate: D,
}

/// A client's name or version.
type ClientText = InlineString<CLIENT_INFO_BYTES_MAX>;

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
                client: (ClientText::EMPTY, ClientText::EMPTY),
                subscriptions: Subscriptions::new(),
                deferred: DeferredRequests::new(),
                delegate,
            },
        }
    }

    /// Serves one frame: the first `bytes` bytes of `frame`. The parser's padding follows them. The
    /// frame is parsed in place. Writes at most one line into the outbox.
    pub fn serve_frame(&mut self, frame: &mut [u8], bytes: usize, outbox: &mut Outbox) {
        if is_blank(&frame[..bytes]) {
            return;
        }
        let fault = if has_headers(&frame[..bytes]) {
            HEADERS
        } else {
            NOT_JSON
        };
        outbox.begin_frame();
        match self.parser.parse(frame, bytes) {
            Ok(document) => {
                self.server
                    .serve_document(document.root(), &mut self.arena, outbox);
                self.parser.recycle(document);
            }
            Err(refused) => {
                let fault = if refused.is_too_deep() {
                    TOO_DEEP
                } else {
                    fault
                };
                errors::write(outbox, None, RpcError::new(RpcErrorCode::Parse, fault));
                outbox.put(b"\n");
            }
        }
    }

    /// Answers a frame that was dropped because it is longer than the bound.
    pub fn refuse_oversized(&mut self, outbox: &mut Outbox) {
        outbox.begin_frame();
        errors::write(
            outbox,
            None,
            RpcError::new(RpcErrorCode::InvalidRequest, OVERSIZED),
        );
        outbox.put(b"\n");
    }

    /// The delegate, and the replies that it writes to.
    pub fn delegate<'s>(&'s mut self, outbox: &'s mut Outbox) -> (&'s mut D, Replies<'s>) {
        let SessionCore {
            catalog,
            deferred,
            delegate,
            ..
        } = &mut self.server;
        (delegate, Replies::new(deferred, catalog, outbox))
    }

    /// The delegate.
    pub fn delegate_ref(&self) -> &D {
        &self.server.delegate
    }

    /// Whether the delegate has requests that were not answered yet.
    pub fn has_pending_replies(&self) -> bool {
        !self.server.deferred.is_empty()
    }

    /// At the end of input: closes the subscription that was opened first and writes its result.
    /// Returns false if none is open.
    pub fn close_first_subscription(&mut self, outbox: &mut Outbox) -> bool {
        outbox.begin_frame();
        let (subscriptions, catalog) = (&mut self.server.subscriptions, &self.server.catalog);
        subscriptions.close_first(|id, revision_id| {
            write_subscription_result(outbox, id, catalog.identity(revision_id))
        })
    }
}

fn new_arena() -> Bump {
    let arena = Bump::with_capacity(ARENA_BYTES_WARM);
    arena.set_allocation_limit(Some(ARENA_BYTES_MAX));
    arena
}

/// Empties the arena after a message, and frees the chunks that a large message has added.
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

/// Whether a message is a line or an element of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessagePlace {
    Line,
    Batch,
}

/// How a request is answered.
enum RequestOutcome<'a> {
    /// Its result is written.
    Written,
    /// It opened a subscription, whose result is written when the subscription ends.
    Subscribed,
    /// The delegate answers it.
    Delegated(&'a RequestToDelegate<'a>),
}

/// A request that goes to the delegate. It lives in the arena, so that the outcome of every other
/// request stays small.
struct RequestToDelegate<'a> {
    kind: RequestKind<'a>,
    revision_id: RevisionId,
    envelope: Option<Envelope<'a>>,
}

impl<D: Delegate> SessionCore<D> {
    fn serve_document(&mut self, root: Value<'_>, arena: &mut Bump, outbox: &mut Outbox) {
        let start = outbox.mark();
        match root {
            Value::Array(batch) => self.serve_batch(batch, arena, outbox),
            message => self.serve_message(message, MessagePlace::Line, arena, outbox),
        }
        if outbox.is_mid_line(start) {
            outbox.put(b"\n");
        }
    }

    /// Answers a batch with one array, which has one reply to each request (JSON-RPC 2.0,
    /// section 6).
    fn serve_batch(&mut self, batch: Array<'_>, arena: &mut Bump, outbox: &mut Outbox) {
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
            let before_comma = outbox.mark();
            if !outbox.is_at(first) {
                outbox.put(b",");
            }
            let after_comma = outbox.mark();
            self.serve_message(message, MessagePlace::Batch, arena, outbox);
            if outbox.is_at(after_comma) {
                outbox.rewind(before_comma);
            }
        }
        if outbox.is_at(first) {
            outbox.rewind(start);
        } else {
            outbox.put(b"]");
        }
    }

    fn serve_message(
        &mut self,
        value: Value<'_>,
        place: MessagePlace,
        arena: &mut Bump,
        outbox: &mut Outbox,
    ) {
        match Message::from_value(value) {
            Message::Request(request) => {
                self.serve_request(request, place, arena, outbox);
                reset(arena);
            }
            Message::Notification(notification) => self.receive_notification(notification),
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

    /// Takes a cancellation, of either era. A malformed cancellation, one of a request that is not
    /// open, and every other notification are ignored.
    fn receive_notification(&mut self, notification: Notification<'_>) {
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

    /// Writes one reply, or hands the request to the delegate. A result that does not fit is undone
    /// and answered with an error.
    fn serve_request(
        &mut self,
        request: Request<'_>,
        place: MessagePlace,
        arena: &Bump,
        outbox: &mut Outbox,
    ) {
        let start = outbox.mark();
        outbox.begin_result();
        begin_reply(outbox, request.id);
        let mut outcome = self.dispatch(request, place, arena, outbox);
        if let Ok(RequestOutcome::Written) = outcome {
            outbox.put(b"}");
        }
        if !outbox.end_result() && outcome.is_ok() {
            outcome = Err(RpcError::new(RpcErrorCode::Internal, errors::SPOILT_RESULT));
        }
        match outcome {
            Ok(RequestOutcome::Written) => {}
            Ok(RequestOutcome::Subscribed) => {
                outbox.rewind(start);
                acknowledge(outbox, request.id);
            }
            Ok(RequestOutcome::Delegated(delegation)) => {
                outbox.rewind(start);
                let delegated = self.delegate_request(&request, delegation, place, outbox);
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

    /// Hands a request to the delegate. Not inlined, to keep the path of other requests short.
    #[cold]
    #[inline(never)]
    fn delegate_request<'a>(
        &mut self,
        request: &Request<'a>,
        delegation: &RequestToDelegate<'a>,
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
        let tasks = envelope.is_some_and(|envelope| envelope.has_capability(TASKS));
        let handle = self.deferred.open(request.id, revision_id, tasks, token)?;
        let client = match envelope {
            Some(_) => meta.and_then(|meta| name_and_version(meta.get(envelope::CLIENT)?)),
            None => Some((self.client.0.as_str(), self.client.1.as_str())),
        };
        let kind = delegation.kind;
        let delegated = DelegatedRequest {
            kind,
            client,
            tasks,
        };
        let mut replies = Replies::new(&mut self.deferred, &self.catalog, outbox);
        self.delegate.begin(delegated, handle, &mut replies);
        Ok(())
    }

    /// Writes the result of a request. The request itself decides its era.
    fn dispatch<'a>(
        &mut self,
        request: Request<'a>,
        place: MessagePlace,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestOutcome<'a>, RpcError<'a>> {
        if self.subscriptions.contains(request.id) {
            let fault = "the id is that of an open subscription";
            return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
        }
        if self.deferred.contains(request.id) {
            let fault = "the id is that of a request that was not answered yet";
            return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
        }
        match (Envelope::parse(&request)?, place) {
            (None, _) => self.dispatch_handshake(request, place, arena, outbox),
            (Some(envelope), MessagePlace::Line) => {
                self.dispatch_stateless(request, envelope, arena, outbox)
            }
            (Some(_), MessagePlace::Batch) => Err(RpcError::new(
                RpcErrorCode::InvalidRequest,
                "a request with an envelope must stand alone on its line",
            )),
        }
    }

    /// Serves a request of a handshake session, or one that opens the session.
    fn dispatch_handshake<'a>(
        &mut self,
        request: Request<'a>,
        place: MessagePlace,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestOutcome<'a>, RpcError<'a>> {
        match (request.method, self.agreed) {
            ("initialize", _) if place == MessagePlace::Batch => {
                let fault = "initialize must not be part of a batch";
                return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
            }
            ("initialize", _) => {
                let (revision_id, (name, version)) = lifecycle::initialize(params(&request)?)?;
                self.agreed = Some(revision_id);
                if self.delegate.has_tasks() {
                    self.client = (ClientText::new(name), ClientText::new(version));
                }
                outbox.put(self.catalog.opening(revision_id).as_bytes());
            }
            ("ping", _) => {
                params(&request)?;
                outbox.put(b"{}");
            }
            ("server/discover" | "subscriptions/listen", _) => {
                return Err(RpcError::invalid_params(
                    "the request needs an envelope in params._meta",
                ));
            }
            (_, None) => {
                let fault = "the session is not open: send initialize first";
                return Err(RpcError::new(RpcErrorCode::InvalidRequest, fault));
            }
            (_, Some(revision_id)) => {
                return self.dispatch_shared(request, revision_id, None, arena, outbox);
            }
        }
        Ok(RequestOutcome::Written)
    }

    /// Serves a stateless request, which has an envelope.
    fn dispatch_stateless<'a>(
        &mut self,
        request: Request<'a>,
        envelope: Envelope<'a>,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestOutcome<'a>, RpcError<'a>> {
        let revision_id = envelope.revision_id;
        match request.method {
            "server/discover" => outbox.put(self.catalog.opening(revision_id).as_bytes()),
            "subscriptions/listen" => {
                subscriptions::check_filter(params(&request)?)?;
                self.subscriptions.open(request.id, revision_id)?;
                return Ok(RequestOutcome::Subscribed);
            }
            "initialize" => {
                return Err(RpcError {
                    data: Some(RpcErrorData::SupportedVersions),
                    ..not_found(request.method)
                });
            }
            _ => return self.dispatch_shared(request, revision_id, Some(envelope), arena, outbox),
        }
        Ok(RequestOutcome::Written)
    }

    /// Serves the methods that both eras have.
    fn dispatch_shared<'a>(
        &mut self,
        request: Request<'a>,
        revision_id: RevisionId,
        envelope: Option<Envelope<'a>>,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<RequestOutcome<'a>, RpcError<'a>> {
        match request.method {
            "tools/list" => {
                let page = tools::list(&self.catalog, revision_id, params(&request)?)?;
                outbox.put(page.as_bytes());
                Ok(RequestOutcome::Written)
            }
            "tools/call" => {
                let context = CallContext {
                    revision_id,
                    envelope,
                    preamble: self.catalog.preamble(revision_id),
                    arena,
                };
                match self.tools.call(context, params(&request)?, outbox)? {
                    CallOutcome::Written => Ok(RequestOutcome::Written),
                    CallOutcome::Delegated(index, arguments) => {
                        let kind = RequestKind::Call(index, Call { arguments, arena });
                        Ok(to_delegate(kind, revision_id, envelope, arena))
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

/// Reads a request of the tasks extension. The client must declare the extension with each request
/// (Tasks Extension, Capability Negotiation).
#[cold]
#[inline(never)]
fn task_method<'a>(
    request: &Request<'a>,
    envelope: Envelope<'a>,
    arena: &'a Bump,
) -> Result<RequestOutcome<'a>, RpcError<'a>> {
    let kind: fn(&'a str) -> RequestKind<'a> = match request.method {
        "tasks/get" => RequestKind::TaskGet,
        "tasks/update" => RequestKind::TaskUpdate,
        "tasks/cancel" => RequestKind::TaskCancel,
        method => return Err(not_found(method)),
    };
    if !envelope.has_capability(TASKS) {
        return Err(RpcError::missing_capability(TASKS));
    }
    let [task] = params(request)?
        .unwrap_or(Object::EMPTY)
        .take(["taskId"])
        .map_err(|_| RpcError::invalid_params("taskId is given more than once"))?;
    let task = task
        .and_then(|task| task.as_str())
        .ok_or(RpcError::invalid_params("taskId must be a string"))?;
    Ok(to_delegate(
        kind(task),
        envelope.revision_id,
        Some(envelope),
        arena,
    ))
}

#[cold]
#[inline(never)]
fn to_delegate<'a>(
    kind: RequestKind<'a>,
    revision_id: RevisionId,
    envelope: Option<Envelope<'a>>,
    arena: &'a Bump,
) -> RequestOutcome<'a> {
    RequestOutcome::Delegated(arena.alloc(RequestToDelegate {
        kind,
        revision_id,
        envelope,
    }))
}

/// The name and the version in a client's `clientInfo`.
fn name_and_version(client: Value<'_>) -> Option<(&str, &str)> {
    let client = client.as_object()?;
    Some((
        client.get("name")?.as_str()?,
        client.get("version")?.as_str()?,
    ))
}

fn not_found(method: &str) -> RpcError<'_> {
    RpcError::quoting(RpcErrorCode::MethodNotFound, "method not found", method)
}

/// Acknowledges a subscription to no notification at all: nothing that it could report changes.
fn acknowledge(outbox: &mut Outbox, id: Id<'_>) {
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",");
    sink.raw("\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    sink.id(id);
    sink.raw("},\"notifications\":{}}}");
}

/// Writes the result of a subscription that has ended. The catalog has checked that `identity`
/// fits.
fn write_subscription_result(outbox: &mut Outbox, id: Id<'_>, identity: &str) {
    begin_reply(outbox, id);
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"resultType\":\"complete\",");
    sink.raw("\"_meta\":{");
    sink.raw(identity);
    sink.raw(",\"io.modelcontextprotocol/subscriptionId\":");
    sink.id(id);
    sink.raw("}}}\n");
}

/// The parameters of a request. `null` counts as no parameters.
fn params<'a>(request: &Request<'a>) -> Result<Option<Object<'a>>, RpcError<'static>> {
    match request.params {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(params)) => Ok(Some(params)),
        Some(_) => Err(RpcError::invalid_params("params must be an object")),
    }
}
