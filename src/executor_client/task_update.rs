//! What an executor tells of a task, and what is remembered of it.

use crate::executor_protocol::grammar;
use crate::executor_protocol::sanitize::Sanitized;
use crate::executor_protocol::state::TaskState;
use crate::limits::{EXECUTOR_FIELD_BYTES_MAX, EXECUTOR_MESSAGE_BYTES_MAX};
use crate::mcp::owned::InlineString;
use crate::task::id::TaskId;
use crate::wire::json::{Object, Value};

/// A short word of an executor's.
pub type ShortWord = InlineString<EXECUTOR_FIELD_BYTES_MAX>;

/// What an executor says of a task to people.
pub type ShortMessage = InlineString<EXECUTOR_MESSAGE_BYTES_MAX>;

/// What an executor tells of a task, in an answer or in an update.
#[derive(Debug, Clone, Copy)]
pub struct TaskUpdate<'a> {
    /// Which task.
    pub task: TaskId,
    /// Its state.
    pub state: TaskState,
    /// How many updates there were, where it is said.
    pub seq: Option<u64>,
    /// Its place among those that wait, from 1.
    pub position: Option<u64>,
    /// How much of it is done, from 0 to 1.
    pub progress: Option<f64>,
    /// What the agent is doing.
    pub phase: &'a str,
    /// More of that.
    pub message: &'a str,
    /// When it was accepted. Empty in an update.
    pub created_at: &'a str,
    /// When its state changed.
    pub updated_at: &'a str,
    /// When its agent said something.
    pub last_output_at: &'a str,
    /// Whether it is an older task that does what a new one should.
    pub duplicate: bool,
    /// How it ended.
    pub record: Option<Object<'a>>,
}

impl<'a> TaskUpdate<'a> {
    /// What an object tells; none if the task or its state is not there, or the record is not an
    /// object.
    pub fn parse(object: Object<'a>) -> Option<Self> {
        let text = |name| object.get(name).and_then(|value| value.as_str());
        // What is no point in time is not said.
        let time = |name| {
            text(name)
                .filter(|text| grammar::is_timestamp(text))
                .unwrap_or_default()
        };
        let number = |name| match object.get(name) {
            Some(Value::Unsigned(number)) => Some(number),
            _ => None,
        };
        let record = match object.get("record") {
            None | Some(Value::Null) => None,
            Some(record) => Some(record.as_object()?),
        };
        Some(Self {
            task: TaskId::parse(text("task_id")?)?,
            state: TaskState::parse(text("state")?)?,
            seq: number("seq"),
            position: number("position"),
            progress: match object.get("progress") {
                Some(Value::Float(part)) => Some(part.clamp(0.0, 1.0)),
                Some(Value::Unsigned(whole)) => Some(whole.min(1) as f64),
                _ => None,
            },
            phase: text("phase").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            created_at: time("created_at"),
            updated_at: time("updated_at"),
            last_output_at: time("last_output_at"),
            duplicate: matches!(object.get("duplicate"), Some(Value::Bool(true))),
            record,
        })
    }
}

/// What is remembered of a task.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    /// Which task.
    pub task: TaskId,
    /// On which connection the executor sends updates of it; 0 if on none.
    pub connection: u64,
    /// When the front heard of it first.
    pub since_ms: u64,
    /// Its state.
    pub state: TaskState,
    /// How many updates there were, as far as it was said.
    pub seq: Option<u64>,
    /// Its place among those that wait, from 1.
    pub position: Option<u64>,
    /// How much of it is done, from 0 to 1.
    pub progress: Option<f64>,
    /// What the agent is doing.
    pub phase: ShortWord,
    /// More of that.
    pub message: ShortMessage,
    /// When it was accepted.
    pub created_at: ShortWord,
    /// When its state changed.
    pub updated_at: ShortWord,
    /// When its agent said something.
    pub last_output_at: ShortWord,
}

impl Snapshot {
    /// The snapshot of a task that had none.
    pub fn new(update: &TaskUpdate<'_>, connection: u64, now_ms: u64) -> Self {
        let mut snapshot = Self {
            task: update.task,
            connection,
            since_ms: now_ms,
            state: update.state,
            seq: None,
            position: None,
            progress: None,
            phase: ShortWord::EMPTY,
            message: ShortMessage::EMPTY,
            created_at: ShortWord::EMPTY,
            updated_at: ShortWord::EMPTY,
            last_output_at: ShortWord::EMPTY,
        };
        snapshot.take(update);
        snapshot
    }

    /// Takes in a later update.
    pub fn take(&mut self, update: &TaskUpdate<'_>) {
        self.state = update.state;
        self.seq = update.seq.or(self.seq);
        self.position = update.position;
        self.progress = update.progress.or(self.progress);
        self.phase = Sanitized::short(update.phase);
        self.message = Sanitized::short(update.message);
        self.take_start(update);
        let keep = |word: &mut ShortWord, text: &str| {
            if !text.is_empty() {
                *word = Sanitized::short(text);
            }
        };
        keep(&mut self.updated_at, update.updated_at);
        keep(&mut self.last_output_at, update.last_output_at);
    }

    /// Takes in when the task was accepted, which nothing that comes late can change.
    pub fn take_start(&mut self, update: &TaskUpdate<'_>) {
        if self.created_at.is_empty() {
            self.created_at = Sanitized::short(update.created_at);
        }
        if self.updated_at.is_empty() {
            self.updated_at = self.created_at;
        }
    }

    /// The state in words, for people.
    fn shown(&self) -> (TaskState, Option<u64>, Option<f64>, ShortWord, ShortMessage) {
        (
            self.state,
            self.position,
            self.progress,
            self.phase,
            self.message,
        )
    }

    /// Whether it says the same to people as it did before.
    pub fn says_what(&self, before: &Self) -> bool {
        self.shown() == before.shown()
    }
}
