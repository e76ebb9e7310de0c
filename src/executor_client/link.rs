//! The connection to an executor: its buffers, its greeting, and its faults. It knows no tool.

use crate::executor_client::errors::{Absence, ToolRefusal};
use crate::executor_client::resend_queue::ResendQueue;
use crate::limits::{
    EXECUTOR_HELLO_MS, EXECUTOR_LINE_BYTES_MAX, EXECUTOR_RETRY_MS, EXECUTOR_RETRY_MS_MAX,
    EXECUTOR_RING_BYTES, EXECUTOR_VIOLATIONS_MAX,
};
use crate::wire::framer::{Framer, NextFrame};
use crate::wire::json::{Array, Object};
use crate::wire::ring::Ring;

/// The name of the protocol.
pub const PROTOCOL: &str = "rocco-exec/1";

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

/// Where the connection stands.
#[derive(Debug, Clone, Copy)]
pub enum LinkState {
    /// There is none. Another one may be opened from a time on.
    Down {
        /// When.
        retry_at_ms: u64,
    },
    /// It is open, and hello was not answered yet.
    Greeting {
        /// When it must be.
        until_ms: u64,
    },
    /// Calls can be made.
    Up(Features),
}

/// A connection, or the want of one.
#[derive(Debug)]
pub struct Link {
    stand: LinkState,
    /// Why there is none.
    absence: ToolRefusal,
    /// How many there were.
    connection: u64,
    /// How long to wait when the next one fails.
    backoff_ms: u64,
    faults: u32,
    /// What is left to send of hello.
    hello: Vec<u8>,
    hello_serial: u64,
    /// The calls.
    pub unanswered: ResendQueue,
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl Link {
    /// No connection was tried.
    pub fn new() -> Self {
        Self {
            stand: LinkState::Down { retry_at_ms: 0 },
            absence: ToolRefusal::absent(
                Absence::Lost,
                format_args!("nobody has asked for it yet"),
            ),
            connection: 0,
            backoff_ms: EXECUTOR_RETRY_MS,
            faults: 0,
            hello: Vec::new(),
            hello_serial: 0,
            unanswered: ResendQueue::new(),
        }
    }

    /// Where it stands.
    pub fn stand(&self) -> LinkState {
        self.stand
    }

    /// Why there is none.
    pub fn absence(&self) -> ToolRefusal {
        self.absence
    }

    /// Which connection this is, counted from 1.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Whether there is one, greeted or not.
    pub fn is_open(&self) -> bool {
        !matches!(self.stand, LinkState::Down { .. })
    }

    /// What the executor offers, if calls can be made.
    pub fn features(&self) -> Option<Features> {
        match self.stand {
            LinkState::Up(features) => Some(features),
            _ => None,
        }
    }

    /// A connection was opened, and is greeted by a line.
    pub fn open(&mut self, hello: &[u8], serial: u64, now_ms: u64) {
        self.connection += 1;
        self.faults = 0;
        self.hello = hello.to_vec();
        self.hello_serial = serial;
        let until_ms = now_ms + EXECUTOR_HELLO_MS;
        self.stand = LinkState::Greeting { until_ms };
    }

    /// The connection has ended, or none could be had.
    pub fn close(&mut self, absence: ToolRefusal, now_ms: u64) {
        let retry_at_ms = now_ms + self.backoff_ms;
        self.backoff_ms = EXECUTOR_RETRY_MS_MAX.min(2 * self.backoff_ms);
        self.absence = absence;
        self.stand = LinkState::Down { retry_at_ms };
        self.unanswered.restart();
    }

    /// Whether a line of a number can have been answered: it was sent on this connection, or
    /// nobody waits for its answer any more.
    pub fn can_be_answered(&self, serial: u64) -> bool {
        match self.stand {
            LinkState::Down { .. } => false,
            LinkState::Greeting { .. } => serial == self.hello_serial && self.hello.is_empty(),
            LinkState::Up(_) => !self.unanswered.is_unsent(serial),
        }
    }

    /// Whether hello is not answered yet.
    pub fn is_greeting(&self) -> bool {
        matches!(self.stand, LinkState::Greeting { .. })
    }

    /// Whether an answer is that to hello.
    pub fn is_hello(&self, serial: u64) -> bool {
        matches!(self.stand, LinkState::Greeting { .. }) && serial == self.hello_serial
    }

    /// Reads the answer to hello.
    ///
    /// # Errors
    ///
    /// If it is not one, or names another protocol: this executor cannot be talked to.
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
            None => return refuse(format_args!("the executor's hello names no protocol")),
        }
        let executor = result
            .get("executor")
            .and_then(|executor| executor.as_object());
        if executor
            .and_then(|executor| executor.get("name")?.as_str())
            .is_none()
        {
            return refuse(format_args!("the executor's hello does not name it"));
        }
        let features = result
            .get("features")
            .and_then(|features| features.as_array());
        self.stand = LinkState::Up(features.map(Features::from_names).unwrap_or_default());
        Ok(())
    }

    /// A call was answered, so the next failure is not one of many.
    pub fn is_well(&mut self) {
        self.backoff_ms = EXECUTOR_RETRY_MS;
    }

    /// Counts a line that is not as it must be, and tells whether it was one too many.
    pub fn record_violation(&mut self) -> bool {
        self.faults += 1;
        self.faults >= EXECUTOR_VIOLATIONS_MAX
    }

    /// What is to be sent.
    pub fn pending(&self) -> &[u8] {
        match self.stand {
            LinkState::Down { .. } => &[],
            LinkState::Greeting { .. } => &self.hello,
            LinkState::Up(_) => self.unanswered.pending(),
        }
    }

    /// Lets go of the first `count` pending bytes, which were sent.
    pub fn consume(&mut self, count: usize) {
        match self.stand {
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
