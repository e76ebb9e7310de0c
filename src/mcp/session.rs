//! The session: one message in, at most one reply out.

use bumpalo::Bump;

use super::catalog::{Catalog, Info};
use super::errors::{self, Code, Error};
use super::revision::Handshake;
use super::tool::Tool;
use super::{lifecycle, tools};
use crate::limits::{
    ARENA_BYTES_MAX, ARENA_BYTES_WARM, BATCH_MESSAGES_MAX, FRAME_BYTES_MAX, RESTING_BYTES_MAX,
};
use crate::wire::json::{Array, Object, Parser, Value};
use crate::wire::message::{Id, Message, Request};
use crate::wire::outbox::Outbox;
use crate::wire::writer::Sink;

const OVERSIZED: &str = "the line is longer than 1048576 bytes and was dropped";
const _: () = assert!(FRAME_BYTES_MAX == 1_048_576);

const NO_JSON: &str = "the line is not JSON";
const HEADERS: &str = "the line is not JSON: messages are one JSON text a line, without headers";

/// A server's side of one conversation.
///
/// It answers at once and remembers nothing of a request, so a cancellation always comes too late
/// and is ignored, as the protocol allows.
pub struct Session {
    parser: Parser,
    arena: Bump,
    server: Server,
}

/// All but the buffers, so that a frame's values and the server can be borrowed side by side.
struct Server {
    catalog: Catalog,
    names: Vec<Box<str>>,
    tools: Vec<Box<dyn Tool>>,
    /// The revision that was agreed on; none before the first good `initialize`.
    era: Option<Handshake>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("era", &self.server.era)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session that no message has reached. `page_tools` is how many tools a page of
    /// `tools/list` holds.
    ///
    /// # Panics
    ///
    /// If a tool's spec is not what [`ToolSpec::new`](super::tool::ToolSpec::new) asks for.
    pub fn new(info: &Info, tools: Vec<Box<dyn Tool>>, page_tools: usize) -> Self {
        let specs: Vec<_> = tools.iter().map(|tool| tool.spec()).collect();
        Self {
            parser: Parser::new(),
            arena: new_arena(),
            server: Server {
                catalog: Catalog::new(info, &specs, page_tools),
                names: specs.iter().map(|spec| (*spec.name).into()).collect(),
                tools,
                era: None,
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
                self.server.handle(document.root(), &self.arena, outbox);
                self.parser.recycle(document);
                self.reset_arena();
            }
            Err(_) => {
                errors::write(outbox, None, Error::new(Code::Parse, no_json));
                outbox.put(b"\n");
            }
        }
    }

    /// Answers a frame that passed the bound and was not kept.
    pub fn handle_oversized(&mut self, outbox: &mut Outbox) {
        outbox.begin_frame();
        errors::write(outbox, None, Error::new(Code::InvalidRequest, OVERSIZED));
        outbox.put(b"\n");
    }

    /// Frees what a frame has put into the arena, and the chunks that a large one has added.
    fn reset_arena(&mut self) {
        if self.arena.allocated_bytes() > RESTING_BYTES_MAX {
            self.arena = new_arena();
        } else {
            self.arena.reset();
        }
    }
}

fn new_arena() -> Bump {
    let arena = Bump::with_capacity(ARENA_BYTES_WARM);
    arena.set_allocation_limit(Some(ARENA_BYTES_MAX));
    arena
}

fn is_blank(frame: &[u8]) -> bool {
    frame
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Whether a line looks like the framing of the Language Server Protocol.
fn has_headers(frame: &[u8]) -> bool {
    const HEADER: &[u8] = b"content-";
    frame.len() >= HEADER.len() && frame[..HEADER.len()].eq_ignore_ascii_case(HEADER)
}

/// How a message that stands in a batch differs from one that stands alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Line,
    Batch,
}

impl Server {
    fn handle(&mut self, root: Value<'_>, arena: &Bump, outbox: &mut Outbox) {
        let start = outbox.mark();
        match root {
            Value::Array(batch) => self.batch(batch, arena, outbox),
            message => self.message(message, Place::Line, arena, outbox),
        }
        if !outbox.is_at(start) {
            outbox.put(b"\n");
        }
    }

    /// A batch is answered by one array, of one reply to each request (JSON-RPC 2.0, section 6).
    fn batch(&mut self, batch: Array<'_>, arena: &Bump, outbox: &mut Outbox) {
        let refuse = |outbox: &mut Outbox, fault| {
            errors::write(outbox, None, Error::new(Code::InvalidRequest, fault));
        };
        match self.era {
            Some(era) if era.revision().batches => {}
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
            let separated = !outbox.is_at(first);
            if separated {
                outbox.put(b",");
            }
            let behind = outbox.mark();
            self.message(message, Place::Batch, arena, outbox);
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

    fn message(&mut self, value: Value<'_>, place: Place, arena: &Bump, outbox: &mut Outbox) {
        match Message::of(value) {
            Message::Request(request) => self.request(request, place, arena, outbox),
            Message::Notification(_) | Message::Response => {}
            Message::Invalid { id, fault } => {
                errors::write(outbox, id, Error::new(Code::InvalidRequest, fault));
            }
        }
    }

    /// Writes one reply. A result that does not fit, or that turns out to be an error on the way,
    /// is taken back.
    fn request(&mut self, request: Request<'_>, place: Place, arena: &Bump, outbox: &mut Outbox) {
        let start = outbox.mark();
        outbox.begin_result();
        begin_result(outbox, request.id);
        let answered = self.answer(request, place, arena, outbox);
        outbox.put(b"}");
        let fitted = outbox.end_result();
        let answered = match answered {
            Ok(()) if !fitted => Err(Error::new(Code::Internal, "the result is too long")),
            answered => answered,
        };
        if let Err(error) = answered {
            outbox.rewind(start);
            errors::write(outbox, Some(request.id), error);
        }
    }

    /// Writes the result of a request.
    fn answer<'a>(
        &mut self,
        request: Request<'a>,
        place: Place,
        arena: &'a Bump,
        outbox: &mut Outbox,
    ) -> Result<(), Error<'a>> {
        match (request.method, self.era) {
            ("initialize", _) if place == Place::Batch => Err(Error::new(
                Code::InvalidRequest,
                "initialize must not be part of a batch",
            )),
            ("initialize", _) => {
                let era = lifecycle::initialize(params(&request)?)?;
                self.era = Some(era);
                outbox.put(self.catalog.initialize(era).as_bytes());
                Ok(())
            }
            ("ping", _) => {
                params(&request)?;
                outbox.put(b"{}");
                Ok(())
            }
            ("tools/list", Some(era)) => {
                let page = tools::list(&self.catalog, era, params(&request)?)?;
                outbox.put(page.as_bytes());
                Ok(())
            }
            ("tools/call", Some(era)) => {
                let params = params(&request)?;
                let (tools, names) = (&mut self.tools, &self.names);
                tools::call(tools, names, arena, era, params, outbox)
            }
            ("server/discover", _) | (_, Some(_)) => Err(Error::quoting(
                Code::MethodNotFound,
                "method not found",
                request.method,
            )),
            (_, None) => Err(Error::new(
                Code::InvalidRequest,
                "the session is not open: send initialize first",
            )),
        }
    }
}

fn begin_result(outbox: &mut Outbox, id: Id<'_>) {
    let mut sink = Sink::plain(outbox);
    sink.raw("{\"jsonrpc\":\"2.0\",\"id\":");
    sink.id(id);
    sink.raw(",\"result\":");
}

/// The parameters by name. `null` counts as none.
fn params<'a>(request: &Request<'a>) -> Result<Option<Object<'a>>, Error<'static>> {
    match request.params {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(params)) => Ok(Some(params)),
        Some(_) => Err(Error::params("params must be an object")),
    }
}
