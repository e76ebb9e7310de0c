//! The engine: bytes in, bytes out.
//!
//! It owns the buffers and the session and knows no file descriptor and no clock, so that a test
//! can drive it to the last byte. The contract: put what was read into [`Engine::space`] and say
//! so with [`Engine::fill`], then [`Engine::serve`], then send [`Engine::pending`] and say so with
//! [`Engine::consume`]. At the end of input, [`Engine::end_of_input`] once, and serve and send
//! until [`Engine::is_drained`]. A server with an executor has a second stream,
//! [`Engine::executor_client`], and a clock that is set from outside.

use crate::executor_client::ExecutorClient;
use crate::mcp::catalog::Info;
use crate::mcp::session::Session;
use crate::mcp::tool::Tool;
use crate::wire::framer::{Framer, Next};
use crate::wire::outbox::Outbox;
use crate::wire::ring::Ring;

/// A server without a transport.
#[derive(Debug)]
pub struct Engine {
    ring: Ring,
    framer: Framer,
    session: Session<Option<Box<ExecutorClient>>>,
    outbox: Outbox,
    /// No further byte will come.
    ended: bool,
    /// The last look found no whole frame, and no byte has come since.
    starved: bool,
}

impl Engine {
    /// An engine that no byte has reached. `page_tools` is how many tools a page of `tools/list`
    /// holds.
    ///
    /// # Panics
    ///
    /// As [`Session::new`].
    pub fn new(info: &Info, tools: Vec<Box<dyn Tool>>, page_tools: usize) -> Self {
        Self::with_executor_client(info, tools, page_tools, None)
    }

    /// As [`Engine::new`], with the way to an executor.
    ///
    /// # Panics
    ///
    /// As [`Session::new`].
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
            ended: false,
            starved: true,
        }
    }

    /// Where the next input goes. Empty while the ring is full of frames that wait for the client
    /// to read.
    pub fn space(&mut self) -> &mut [u8] {
        self.ring.space()
    }

    /// Whether there is room for input.
    pub fn has_space(&self) -> bool {
        !self.ring.is_full()
    }

    /// Takes in `count` bytes that were put at the start of [`Engine::space`].
    pub fn fill(&mut self, count: usize) {
        assert!(!self.ended || count == 0, "input after its end");
        self.ring.fill(count);
        self.starved &= count == 0;
    }

    /// Says that no further byte will come, so that a last line without LF is a frame.
    pub fn end_of_input(&mut self) {
        self.ended = true;
        self.starved = false;
        if let Some(client) = self.executor_client() {
            client.end_of_input();
        }
    }

    /// The way to an executor, if there is one.
    pub fn executor_client(&mut self) -> Option<&mut ExecutorClient> {
        let (client, _) = self.session.delegate(&mut self.outbox);
        client.as_deref_mut()
    }

    /// Whether there is a way to an executor.
    pub fn has_executor_client(&self) -> bool {
        self.session.delegate_ref().is_some()
    }

    /// When something happens even if nothing comes: the time to set by then, and to serve at.
    pub fn deadline_ms(&self) -> Option<u64> {
        let client = self.session.delegate_ref().as_ref()?;
        // While the client does not read, nobody can be answered.
        client.deadline_ms().filter(|_| self.outbox.is_open())
    }

    /// Serves frames until there is none, or until the client has too much to read; then what has
    /// come from the executor.
    pub fn serve(&mut self) {
        self.serve_frames();
        if self.has_executor_client() {
            self.serve_port();
        }
    }

    #[inline(never)]
    fn serve_port(&mut self) {
        let (client, mut replies) = self.session.delegate(&mut self.outbox);
        if let Some(client) = client {
            client.serve(&mut replies);
        }
    }

    fn serve_frames(&mut self) {
        while !self.starved && self.outbox.is_open() {
            let next = if self.ended {
                self.framer.last(&mut self.ring)
            } else {
                self.framer.next(&mut self.ring)
            };
            match next {
                Next::Frame { bytes } => {
                    let frame = self.ring.frame_mut(bytes);
                    self.session.handle_frame(frame, bytes, &mut self.outbox);
                    self.framer.consume(&mut self.ring, bytes);
                    self.starved = !self.ended && self.ring.received().is_empty();
                }
                Next::Oversized => self.session.handle_oversized(&mut self.outbox),
                Next::Partial => {
                    self.starved = !self.ended || !self.session.conclude(&mut self.outbox);
                }
            }
        }
    }

    /// Whether replies may be written: the client has not too much to read.
    pub fn is_open(&self) -> bool {
        self.outbox.is_open()
    }

    /// Whether [`Engine::serve`] would serve a frame or look for one.
    pub fn can_serve(&self) -> bool {
        let client = self.session.delegate_ref().as_ref();
        let has_lines = client.is_some_and(|client| client.has_lines());
        (!self.starved || has_lines) && self.outbox.is_open()
    }

    /// What is to be sent.
    pub fn pending(&self) -> &[u8] {
        self.outbox.pending()
    }

    /// Lets go of the first `count` pending bytes, which were sent.
    pub fn consume(&mut self, count: usize) {
        self.outbox.consume(count);
    }

    /// Whether the input has ended, all of it is served and every reply is sent.
    pub fn is_drained(&self) -> bool {
        let drained = self.ended && self.starved && self.outbox.pending().is_empty();
        drained && !self.session.has_pending_replies()
    }

    /// Gives back the memory that a burst has claimed. For when nothing happens.
    pub fn rest(&mut self) {
        self.ring.rest();
        self.outbox.rest();
        if let Some(client) = self.executor_client() {
            client.rest();
        }
    }
}
