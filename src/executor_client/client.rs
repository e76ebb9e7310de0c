//! The client as a whole, with its input buffer.
//!
//! It knows no descriptor and no clock. The contract: ask
//! [`ExecutorClient::wants_open`], open a connection and say so with [`ExecutorClient::opened`] or
//! [`ExecutorClient::absent`]; put what was read into [`ExecutorClient::space`] and say so with
//! [`ExecutorClient::fill`], send [`ExecutorClient::pending`] and say so with
//! [`ExecutorClient::consume`]; say when the connection has ended with [`ExecutorClient::end`]; and
//! close it when [`ExecutorClient::is_open`] says that there is none any more.

use super::dispatcher::{self, Dispatcher};
use super::errors::{Absence, ToolRefusal};
use super::link::{self, Inbox};
use super::tools;
use crate::executor_protocol::PROTOCOL;
use crate::limits::FRAME_PADDING_BYTES;
use crate::mcp::delegate::{Delegate, DelegatedRequest, Replies, RequestHandle};
use crate::mcp::tool::ToolSpec;
use crate::wire::framer::NextFrame;
use crate::wire::json::{Object, Parser};

/// What the client is told once.
pub struct ClientSettings {
    /// The front's version, for the executor.
    pub version: &'static str,
    /// How many tasks the front is inside of.
    pub depth: u64,
    /// 128 random bits, of which nobody can guess the next.
    pub random: Box<dyn FnMut() -> u128 + Send>,
}

impl std::fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("version", &self.version)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

/// The way to an executor.
#[derive(Debug)]
pub struct ExecutorClient {
    inbox: Inbox,
    parser: Parser,
    dispatcher: Dispatcher,
    /// Why the connection has ended, when what came before is served.
    end: Option<ToolRefusal>,
    /// The last look found no whole line, and nothing has come since.
    needs_input: bool,
}

impl ExecutorClient {
    /// A client that has no connection and was asked nothing.
    pub fn new(settings: ClientSettings) -> Self {
        Self {
            inbox: Inbox::new(),
            parser: Parser::new(),
            dispatcher: Dispatcher::new(settings),
            end: None,
            needs_input: true,
        }
    }

    /// Sets the time since some start. It never goes back.
    pub fn set_time(&mut self, now_ms: u64) {
        self.dispatcher.set_time(now_ms);
    }

    /// When something happens even if nothing comes.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.dispatcher.deadline_ms()
    }

    /// Whether a connection is to be opened now.
    pub fn wants_open(&self) -> bool {
        self.dispatcher.wants_open()
    }

    /// A connection was opened.
    pub fn opened(&mut self) {
        self.inbox = Inbox::new();
        self.end = None;
        self.dispatcher.opened();
    }

    /// No connection could be opened, for a reason in words.
    pub fn absent(&mut self, absence: Absence, why: &str) {
        let refusal = ToolRefusal::absent(absence, format_args!("{why}"));
        self.dispatcher.lost(refusal);
    }

    /// Whether there is a connection. If there is none, a transport that has one closes it.
    pub fn is_open(&self) -> bool {
        self.dispatcher.link.is_open()
    }

    /// Where the next bytes from the executor go.
    pub fn space(&mut self) -> &mut [u8] {
        self.inbox.space()
    }

    /// Whether there is room for them.
    pub fn has_space(&self) -> bool {
        self.inbox.has_space() && self.end.is_none()
    }

    /// Takes in `count` bytes that were put at the start of [`ExecutorClient::space`].
    pub fn fill(&mut self, count: usize) {
        self.inbox.fill(count);
        self.needs_input &= count == 0;
    }

    /// Whether there are lines, or an end, that were not looked at.
    pub fn has_lines(&self) -> bool {
        self.is_open() && !self.needs_input
    }

    /// The connection has ended, with what became of the executor in words.
    pub fn end(&mut self, why: &str) {
        let refusal = ToolRefusal::absent(Absence::Lost, format_args!("{why}"));
        self.end = Some(refusal);
        self.needs_input = false;
    }

    /// What is to be sent to the executor.
    pub fn pending(&self) -> &[u8] {
        self.dispatcher.link.pending()
    }

    /// Lets go of the first `count` pending bytes, which were sent.
    pub fn consume(&mut self, count: usize) {
        self.dispatcher.link.consume(count);
    }

    /// The client says no more: what is under way has a short time left.
    pub fn end_of_input(&mut self) {
        self.dispatcher.end_of_input();
    }

    /// Serves the lines that came and the time that has passed, while the client reads.
    pub fn serve(&mut self, replies: &mut Replies<'_>) {
        while self.is_open() && replies.is_open() {
            match self.inbox.next_line() {
                NextFrame::Complete { bytes } => self.line(bytes, replies),
                NextFrame::Oversized => self.dispatcher.record_violation("a line was too long"),
                NextFrame::Partial => {
                    self.needs_input = true;
                    match self.end.take() {
                        Some(refusal) => self.dispatcher.lost(refusal),
                        None => break,
                    }
                }
            }
        }
        self.dispatcher.advance(replies);
    }

    fn line(&mut self, bytes: usize, replies: &mut Replies<'_>) {
        match self.parser.parse(self.inbox.line_mut(bytes), bytes) {
            Ok(document) => {
                self.dispatcher.line(document.root(), bytes, replies);
                self.parser.recycle(document);
            }
            Err(_) => self
                .dispatcher
                .record_violation("a line that is not valid JSON"),
        }
        self.inbox.consume_line(bytes);
    }

    /// Gives back the memory that a burst has claimed.
    pub fn rest(&mut self) {
        self.inbox.rest();
    }
}

/// A server with an executor, or without one.
impl Delegate for Option<Box<ExecutorClient>> {
    fn tools(&self) -> Vec<ToolSpec> {
        let tools = self.iter().flat_map(|_| tools::TOOLS);
        tools.map(tools::ExecutorTool::spec).collect()
    }

    fn has_tasks(&self) -> bool {
        self.is_some()
    }

    fn begin(
        &mut self,
        request: DelegatedRequest<'_>,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    ) {
        let client = self.as_mut();
        let client = client.expect("only a server with an executor has its tools");
        client.dispatcher.ask(request, handle, replies);
    }

    fn forget(&mut self, handle: RequestHandle) {
        if let Some(client) = self {
            client.dispatcher.forget(handle);
        }
    }
}

/// The request that opens a connection, as a line.
pub fn hello(serial: u64, version: &str, depth: u64) -> Vec<u8> {
    let mut scratch = dispatcher::scratch();
    let line = dispatcher::compose(&mut scratch, serial, "hello", |params| {
        params.string("protocol", PROTOCOL);
        params.object("front", |front| {
            front.string("name", "rocco");
            front.string("version", version);
        });
        params.unsigned("max_line", crate::limits::EXECUTOR_LINE_BYTES_MAX as u64);
        params.unsigned("depth", depth);
    });
    line.expect("a greeting is short").to_vec()
}

/// Reads a line that answers [`hello`], and shows its result to a function.
///
/// # Errors
///
/// What is wrong with it, in words.
pub fn read_hello<T>(line: &str, look: impl FnOnce(Object<'_>) -> T) -> Result<T, String> {
    let mut frame = line.as_bytes().to_vec();
    frame.resize(line.len() + FRAME_PADDING_BYTES, b' ');
    let document = Parser::new().parse(&mut frame, line.len());
    let document = document.map_err(|_| "the executor's answer to hello is not valid JSON")?;
    let answer = document.root().as_object();
    let answer = answer.ok_or("the executor's answer to hello is not a JSON object")?;
    if let Some(error) = answer.get("error").and_then(|error| error.as_object()) {
        return Err(ToolRefusal::from_executor(error).what.as_str().to_owned());
    }
    let result = answer.get("result").and_then(|result| result.as_object());
    let result = result.ok_or("the executor's answer to hello has no result")?;
    let greeted = link::Link::new().greeted(result);
    greeted.map_err(|refusal| refusal.what.as_str().to_owned())?;
    Ok(look(result))
}
