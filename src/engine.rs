//! The engine: bytes in, bytes out.
//!
//! The engine owns the buffers and the session. It does not know file descriptors or a clock, so
//! that a test can drive it to the last byte. With an executor it has a second stream,
//! [`Engine::executor_client`], whose clock the caller sets.

use crate::executor_client::ExecutorClient;
use crate::mcp::catalog::Info;
use crate::mcp::session::Session;
use crate::mcp::tool::Tool;
use crate::wire::framer::{Framer, NextFrame};
use crate::wire::outbox::Outbox;
use crate::wire::ring::Ring;

/// A server without a transport, for tests and for transports of your own. It is made by
/// [`Server::into_engine`](crate::Server::into_engine).
///
/// # The contract
///
/// 1. Put what was read at the start of [`space`](Self::space), and say how much that was with
///    [`fill`](Self::fill).
/// 2. Call [`serve`](Self::serve).
/// 3. Send [`pending`](Self::pending), and say how much was sent with [`consume`](Self::consume).
///    A client that does not read stops the serving, so that memory stays bounded: serve again
///    while [`can_serve`](Self::can_serve) says so.
/// 4. At the end of input, call [`end_of_input`](Self::end_of_input) once, and serve and send until
///    [`is_drained`](Self::is_drained).
///
/// ```
/// use rocco::{Info, Server};
///
/// let mut engine = Server::new(Info::new("bare", "1.0.0")).into_engine();
/// let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
/// engine.space()[..request.len()].copy_from_slice(request);
/// engine.fill(request.len());
/// engine.serve();
/// assert_eq!(engine.pending(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// engine.consume(engine.pending().len());
///
/// engine.end_of_input();
/// engine.serve();
/// assert!(engine.is_drained());
/// ```
///
/// Nothing that a client sends makes it panic. It reads no clock, makes no system call, and claims
/// memory while it is built, for long lines, and in the tools.
#[derive(Debug)]
#[must_use = "an engine serves what it is driven to"]
pub struct Engine {
    ring: Ring,
    framer: Framer,
    session: Session<Option<Box<ExecutorClient>>>,
    outbox: Outbox,
    /// [`Engine::end_of_input`] was called.
    input_ended: bool,
    /// The last look found no whole frame, and no byte has come since.
    needs_input: bool,
}

impl Engine {
    /// An engine that no byte has reached, with the client of an executor if one is configured.
    /// `page_tools` is how many tools a page of `tools/list` holds.
    ///
    /// # Panics
    ///
    /// As [`Session::new`].
    #[doc(hidden)]
    pub fn with_executor_client(
        info: &Info,
        tools: Vec<Box<dyn Tool>>,
        page_tools: usize,
        client: Option<ExecutorClient>,
    ) -> Self {
        let client = client.map(Box::new);
        let mut outbox = Outbox::new();
        Self {
            ring: Ring::new(),
            framer: Framer::new(),
            session: Session::new(info, tools, client, page_tools, &mut outbox),
            outbox,
            input_ended: false,
            needs_input: true,
        }
    }

    /// The slice that the next input fills: at most 65,536 bytes, and empty while the buffer is
    /// full of lines that wait for the client to read.
    pub fn space(&mut self) -> &mut [u8] {
        self.ring.space()
    }

    /// Whether [`Engine::space`] has room for a byte.
    pub fn has_space(&self) -> bool {
        !self.ring.is_full()
    }

    /// Takes in `count` bytes that were put at the start of [`Engine::space`].
    ///
    /// # Panics
    ///
    /// If `count` is more than the space, or not zero after [`Engine::end_of_input`].
    pub fn fill(&mut self, count: usize) {
        assert!(!self.input_ended || count == 0, "input after its end");
        self.ring.fill(count);
        self.needs_input &= count == 0;
    }

    /// Ends the input: no further byte will come, and a last line without LF is served.
    pub fn end_of_input(&mut self) {
        self.input_ended = true;
        self.needs_input = false;
        if let Some(client) = self.executor_client() {
            client.end_of_input();
        }
    }

    /// The client of the executor, if an executor is configured.
    #[doc(hidden)]
    pub fn executor_client(&mut self) -> Option<&mut ExecutorClient> {
        let (client, _) = self.session.delegate(&mut self.outbox);
        client.as_deref_mut()
    }

    /// Whether an executor is configured.
    pub(crate) fn has_executor_client(&self) -> bool {
        self.session.delegate_ref().is_some()
    }

    /// The time at which to set the clock and serve even if no byte comes.
    #[doc(hidden)]
    pub fn deadline_ms(&self) -> Option<u64> {
        let client = self.session.delegate_ref().as_ref()?;
        // While the client does not read, no request can be answered.
        client.deadline_ms().filter(|_| self.outbox.is_open())
    }

    /// Serves the received lines, until no whole line is left, or until 262,144 bytes or more wait
    /// to be sent.
    pub fn serve(&mut self) {
        self.serve_frames();
        if self.has_executor_client() {
            self.serve_executor_client();
        }
    }

    #[inline(never)]
    fn serve_executor_client(&mut self) {
        let (client, mut replies) = self.session.delegate(&mut self.outbox);
        if let Some(client) = client {
            client.serve(&mut replies);
        }
    }

    fn serve_frames(&mut self) {
        while !self.needs_input && self.outbox.is_open() {
            let next = if self.input_ended {
                self.framer.next_at_end(&mut self.ring)
            } else {
                self.framer.next(&mut self.ring)
            };
            match next {
                NextFrame::Complete { bytes } => {
                    let frame = self.ring.frame_mut(bytes);
                    self.session.serve_frame(frame, bytes, &mut self.outbox);
                    self.framer.consume(&mut self.ring, bytes);
                    self.needs_input = !self.input_ended && self.ring.received().is_empty();
                }
                NextFrame::Oversized => self.session.refuse_oversized(&mut self.outbox),
                NextFrame::Partial => {
                    self.needs_input = !self.input_ended
                        || !self.session.close_first_subscription(&mut self.outbox);
                }
            }
        }
    }

    /// Whether replies may be written: the outbox is below its high-water mark.
    pub(crate) fn is_open(&self) -> bool {
        self.outbox.is_open()
    }

    /// Whether [`Engine::serve`] would serve a line or look for one.
    pub fn can_serve(&self) -> bool {
        let client = self.session.delegate_ref().as_ref();
        let has_lines = client.is_some_and(|client| client.has_lines());
        (!self.needs_input || has_lines) && self.outbox.is_open()
    }

    /// The bytes that wait to be sent: replies, each with its LF.
    pub fn pending(&self) -> &[u8] {
        self.outbox.pending()
    }

    /// Drops the first `count` pending bytes, which were sent.
    ///
    /// # Panics
    ///
    /// If `count` is more than is pending.
    pub fn consume(&mut self, count: usize) {
        self.outbox.consume(count);
    }

    /// Whether the input has ended, all input is served and every reply is sent.
    pub fn is_drained(&self) -> bool {
        let drained = self.input_ended && self.needs_input && self.outbox.pending().is_empty();
        drained && !self.session.has_pending_replies()
    }

    /// Frees the memory that a burst has claimed. Call it while no bytes come; it may be called at
    /// any time and any number of times.
    pub fn rest(&mut self) {
        self.ring.rest();
        self.outbox.rest();
        if let Some(client) = self.executor_client() {
            client.rest();
        }
    }
}
