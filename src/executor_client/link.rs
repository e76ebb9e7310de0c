//! The connection to an executor: its buffers, its greeting, and its faults. It knows no tool.

use crate::executor_client::errors::{Absence, ToolRefusal};
use crate::executor_client::resend_queue::ResendQueue;
use crate::executor_protocol::PROTOCOL;
use crate::limits::{
    EXECUTOR_HELLO_MS, EXECUTOR_LINE_BYTES_MAX, EXECUTOR_RETRY_MS, EXECUTOR_RETRY_MS_MAX,
    EXECUTOR_RING_BYTES, EXECUTOR_VIOLATIONS_MAX,
};
use crate::wire::framer::{Framer, NextFrame};
use crate::wire::json::{Array, Object};
use crate::wire::ring::Ring;

/// What an executor offers beyond what it must.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// It sends `task/update`.
    pub progress: bool,
    /// It has pages of diff, log and gates.
    pub page: bool,
    /// It lists tasks.
    pub list: bool,
}

impl Features {
    fn from_names(names: Array<'_>) -> Self {
        let has = |name| names.iter().any(|feature| feature.as_str() == Some(name));
        Self {
            progress: has("progress"),
            page: has("page"),
            list: has("list"),
        }
    }
}

/// The state of the connection.
#[derive(Debug, Clone, Copy)]
pub enum LinkState {
    /// No connection is open.
    Down {
        /// When the next one may be opened.
        retry_at_ms: u64,
    },
    /// The connection is open, and hello is not answered yet.
    Greeting {
        /// When hello must be answered.
        until_ms: u64,
    },
    /// The executor has answered hello, and takes calls.
    Up(Features),
}

/// The one connection to the executor, open or not.
#[derive(Debug)]
pub struct Link {
    state: LinkState,
    /// Why no connection is open.
    absence: ToolRefusal,
    /// How many connections were opened.
    connection: u64,
    /// How long to wait after the next failure.
    backoff_ms: u64,
    faults: u32,
    /// What is left to send of hello.
    hello: Vec<u8>,
    hello_serial: u64,
    /// The calls that are not answered.
    pub unanswered: ResendQueue,
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl Link {
    /// A link that was never open.
    pub fn new() -> Self {
        Self {
            state: LinkState::Down { retry_at_ms: 0 },
            absence: ToolRefusal::absent(
                Absence::Lost,
                format_args!("no connection was opened yet"),
            ),
            connection: 0,
            backoff_ms: EXECUTOR_RETRY_MS,
            faults: 0,
            hello: Vec::new(),
            hello_serial: 0,
            unanswered: ResendQueue::new(),
        }
    }

    /// The state of the connection.
    pub fn state(&self) -> LinkState {
        self.state
    }

    /// Why no connection is open.
    pub fn absence(&self) -> ToolRefusal {
        self.absence
    }

    /// Which connection this is, counted from 1.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Whether a connection is open, greeted or not.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, LinkState::Down { .. })
    }

    /// What the executor offers, if calls can be made.
    pub fn features(&self) -> Option<Features> {
        match self.state {
            LinkState::Up(features) => Some(features),
            _ => None,
        }
    }

    /// Notes that a connection was opened. The line is the hello to send on it.
    pub fn open(&mut self, hello: &[u8], serial: u64, now_ms: u64) {
        self.connection += 1;
        self.faults = 0;
        self.hello = hello.to_vec();
        self.hello_serial = serial;
        let until_ms = now_ms + EXECUTOR_HELLO_MS;
        self.state = LinkState::Greeting { until_ms };
    }

    /// Notes that the connection has ended, or could not be opened.
    pub fn close(&mut self, absence: ToolRefusal, now_ms: u64) {
        let retry_at_ms = now_ms + self.backoff_ms;
        self.backoff_ms = EXECUTOR_RETRY_MS_MAX.min(2 * self.backoff_ms);
        self.absence = absence;
        self.state = LinkState::Down { retry_at_ms };
        self.unanswered.restart();
    }

    /// Whether an answer to the line of a number may come: the line was sent on this connection, or
    /// no caller waits for its answer any more.
    pub fn can_be_answered(&self, serial: u64) -> bool {
        match self.state {
            LinkState::Down { .. } => false,
            LinkState::Greeting { .. } => serial == self.hello_serial && self.hello.is_empty(),
            LinkState::Up(_) => !self.unanswered.is_unsent(serial),
        }
    }

    /// Whether hello is not answered yet.
    pub fn is_greeting(&self) -> bool {
        matches!(self.state, LinkState::Greeting { .. })
    }

    /// Whether an answer is that to hello.
    pub fn is_hello(&self, serial: u64) -> bool {
        matches!(self.state, LinkState::Greeting { .. }) && serial == self.hello_serial
    }

    /// Reads the answer to hello.
    ///
    /// # Errors
    ///
    /// The answer is not one to hello, or names another protocol.
    pub fn greeted(&mut self, result: Object<'_>) -> Result<(), ToolRefusal> {
        let refuse = |what| Err(ToolRefusal::absent(Absence::HandshakeFailed, what));
        match result
            .get("protocol")
            .and_then(|protocol| protocol.as_str())
        {
            Some(PROTOCOL) => {}
            Some(other) => {
                let what = format_args!("the executor speaks {other} and not {PROTOCOL}");
                return refuse(what);
            }
            None => {
                return refuse(format_args!(
                    "the executor's answer to hello does not name a protocol"
                ));
            }
        }
        let executor = result
            .get("executor")
            .and_then(|executor| executor.as_object());
        if executor
            .and_then(|executor| executor.get("name")?.as_str())
            .is_none()
        {
            return refuse(format_args!(
                "the executor's answer to hello does not name the executor"
            ));
        }
        let features = result
            .get("features")
            .and_then(|features| features.as_array());
        self.state = LinkState::Up(features.map(Features::from_names).unwrap_or_default());
        Ok(())
    }

    /// Notes that a call was answered, so that the next failure is the first of its kind.
    pub fn is_well(&mut self) {
        self.backoff_ms = EXECUTOR_RETRY_MS;
    }

    /// Counts a line that violates the protocol. Returns whether the connection must be closed.
    pub fn record_violation(&mut self) -> bool {
        self.faults += 1;
        self.faults >= EXECUTOR_VIOLATIONS_MAX
    }

    /// What is to be sent.
    pub fn pending(&self) -> &[u8] {
        match self.state {
            LinkState::Down { .. } => &[],
            LinkState::Greeting { .. } => &self.hello,
            LinkState::Up(_) => self.unanswered.pending(),
        }
    }

    /// Lets go of the first `count` pending bytes, which were sent.
    pub fn consume(&mut self, count: usize) {
        match self.state {
            LinkState::Up(_) => self.unanswered.consume(count),
            _ => drop(self.hello.drain(..count)),
        }
    }
}

/// The lines that an executor sends.
#[derive(Debug)]
pub struct Inbox {
    ring: Ring,
    framer: Framer,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    /// An inbox at the start of a stream.
    pub fn new() -> Self {
        Self {
            ring: Ring::with_bytes(EXECUTOR_RING_BYTES),
            framer: Framer::with_bound(EXECUTOR_LINE_BYTES_MAX),
        }
    }

    /// Where what is read goes. Empty while it is full of lines that wait for the client to read.
    pub fn space(&mut self) -> &mut [u8] {
        self.ring.space()
    }

    /// Whether there is room for what is read.
    pub fn has_space(&self) -> bool {
        !self.ring.is_full()
    }

    /// Takes in `count` bytes that were put at the start of [`Inbox::space`].
    pub fn fill(&mut self, count: usize) {
        self.ring.fill(count);
    }

    /// Looks for the next line.
    pub fn next_line(&mut self) -> NextFrame {
        self.framer.next(&mut self.ring)
    }

    /// A line that was found, with the parser's padding behind it.
    pub fn line_mut(&mut self, bytes: usize) -> &mut [u8] {
        self.ring.frame_mut(bytes)
    }

    /// Lets go of a line.
    pub fn consume_line(&mut self, bytes: usize) {
        self.framer.consume(&mut self.ring, bytes);
    }

    /// Gives back the memory that a burst has claimed.
    pub fn rest(&mut self) {
        self.ring.rest();
    }
}
