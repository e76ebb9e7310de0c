//! What is under way: who waits for which answer of the executor.

use super::ClientSettings;
use crate::executor_client::errors::ToolRefusal;
use crate::executor_client::link::{Link, LinkState};
use crate::executor_client::snapshots::Snapshots;
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::limits::{
    DEFERRED_MAX, EXECUTOR_CALL_MS, EXECUTOR_CALLS_MAX, EXECUTOR_LINE_BYTES_MAX,
    EXECUTOR_PROGRESS_MS, EXECUTOR_WAITS_MAX,
};
use crate::mcp::delegate::RequestHandle;
use crate::task::id::TaskId;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink};

/// Why the executor is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A call of `larry_submit_task`.
    Submit,
    /// A call of `larry_task_status`, which waits for a final state until a time.
    Status {
        /// When it is answered in any case; 0 if it does not wait.
        wait_until_ms: u64,
    },
    /// A call of `larry_task_status` without a task.
    List,
    /// A call of `larry_task_result`.
    Page(PageRequest),
    /// A call of `larry_cancel_task`.
    Cancel,
    /// `tasks/get`.
    TaskGet,
    /// `tasks/update`.
    TaskUpdate,
    /// `tasks/cancel`.
    TaskCancel,
}

/// Which page was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Of what.
    pub part: &'static str,
    /// From where.
    pub offset: u64,
}

/// Somebody who waits.
#[derive(Debug, Clone, Copy)]
pub struct PendingCall {
    /// The number of the line that asks for it.
    pub serial: u64,
    /// For what.
    pub purpose: Purpose,
    /// Who.
    pub handle: RequestHandle,
    /// For which task.
    pub task: Option<TaskId>,
    /// On what.
    pub stage: Stage,
    /// Before when nothing is said of progress.
    pub quiet_until_ms: u64,
    /// When something is said though nothing has happened.
    pub alive_at_ms: u64,
}

impl PendingCall {
    /// Whether it is asked how a task stands.
    pub fn wants_state_of(&self, task: TaskId) -> bool {
        let wants = matches!(self.purpose, Purpose::Status { .. } | Purpose::TaskGet);
        wants && self.task == Some(task) && !matches!(self.stage, Stage::Refused(_))
    }
}

/// On what somebody waits.
#[derive(Debug, Clone, Copy)]
pub enum Stage {
    /// On an answer of the executor, until a time. While a first connection is opened, there is
    /// none but that of the greeting.
    Asked {
        /// When an answer must be there.
        until_ms: Option<u64>,
    },
    /// On the client to read, since it is refused.
    Refused(RefusalReason),
    /// On the end of the task.
    Waiting {
        /// Whether something has happened that was not said.
        changed: bool,
        /// When the executor is asked again, if it tells nothing by itself.
        look_at_ms: Option<u64>,
    },
}

/// Why somebody is refused who was taken on before.
#[derive(Debug, Clone, Copy)]
pub enum RefusalReason {
    /// There is no connection.
    Absent,
    /// The executor has no list of tasks.
    NoList,
    /// The executor has no pages of results.
    NoPages,
}

/// The state of the client but for its input buffers, so that a line and it can be borrowed side by
/// side.
#[derive(Debug)]
pub struct Dispatcher {
    pub(super) settings: ClientSettings,
    pub(super) link: Link,
    pub(super) pending: Vec<PendingCall>,
    pub(super) snapshots: Snapshots,
    pub(super) now_ms: u64,
    /// When everything under way is answered, since the client says no more.
    pub(super) ending_ms: Option<u64>,
    pub(super) scratch: Outbox,
    next_serial: u64,
}

/// Where a line is composed.
pub fn scratch() -> Outbox {
    Outbox::with_bytes(EXECUTOR_LINE_BYTES_MAX + 1)
}

/// A request as a line with its LF; none if it is too long.
pub fn compose<'s>(
    scratch: &'s mut Outbox,
    serial: u64,
    method: &str,
    fill: impl FnOnce(&mut ObjectWriter<'_>),
) -> Option<&'s [u8]> {
    scratch.consume(scratch.pending().len());
    let start = scratch.mark();
    Sink::plain(scratch).object(|request| {
        request.string("jsonrpc", "2.0");
        request.unsigned("id", serial);
        request.string("method", method);
        request.object("params", fill);
    });
    scratch.put(b"\n");
    if scratch.end_result() {
        return Some(scratch.pending());
    }
    scratch.rewind(start);
    None
}

impl Dispatcher {
    /// Nothing is under way.
    pub fn new(settings: ClientSettings) -> Self {
        Self {
            settings,
            link: Link::new(),
            pending: Vec::with_capacity(DEFERRED_MAX),
            snapshots: Snapshots::new(),
            now_ms: 0,
            ending_ms: None,
            scratch: scratch(),
            next_serial: 1,
        }
    }

    /// Whether a number was given to a line that the executor has seen.
    pub fn is_asked(&self, serial: u64) -> bool {
        (1..self.next_serial).contains(&serial) && self.link.can_be_answered(serial)
    }

    /// A number for a line.
    pub fn serial(&mut self) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        serial
    }

    /// Asks the executor for somebody.
    ///
    /// # Errors
    ///
    /// If it cannot be asked now, or the line is too long.
    pub fn begin(
        &mut self,
        purpose: Purpose,
        handle: RequestHandle,
        task: Option<TaskId>,
        method: &str,
        fill: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<(), ToolRefusal> {
        if let LinkState::Down { retry_at_ms } = self.link.state()
            && self.now_ms < retry_at_ms
        {
            return Err(self.link.absence());
        }
        self.admit(purpose)?;
        let serial = self.serial();
        let line = compose(&mut self.scratch, serial, method, fill).ok_or_else(|| {
            let what = "/goal, /files and /acceptance together must have at most 262144 bytes as \
                        one line of JSON";
            ToolRefusal::new(TaskErrorCode::InvalidArguments, format_args!("{what}"))
        })?;
        let pushed = self.link.unanswered.push(serial, line);
        pushed.map_err(|_| full("too much waits to be sent to the executor"))?;
        self.pending.push(PendingCall {
            serial,
            purpose,
            handle,
            task,
            stage: Stage::Asked {
                until_ms: self.call_deadline(),
            },
            quiet_until_ms: self.now_ms,
            alive_at_ms: self.now_ms + EXECUTOR_PROGRESS_MS,
        });
        Ok(())
    }

    /// When a line that is added now must be answered.
    pub fn call_deadline(&self) -> Option<u64> {
        let up = self.link.features().is_some();
        up.then_some(self.now_ms + EXECUTOR_CALL_MS)
    }

    fn admit(&self, purpose: Purpose) -> Result<(), ToolRefusal> {
        let waits = |purpose| matches!(purpose, Purpose::Status { wait_until_ms: 1.. });
        let (of_kind, kind_max, what) = if waits(purpose) {
            (true, EXECUTOR_WAITS_MAX, "32 calls wait for tasks already")
        } else {
            (
                false,
                EXECUTOR_CALLS_MAX,
                "64 calls wait for the executor already",
            )
        };
        let same = |pending: &&PendingCall| waits(pending.purpose) == of_kind;
        if self.pending.iter().filter(same).count() < kind_max {
            Ok(())
        } else {
            Err(full(what))
        }
    }
}

fn full(what: &str) -> ToolRefusal {
    ToolRefusal {
        retry_after_ms: Some(1000),
        ..ToolRefusal::new(TaskErrorCode::QueueFull, format_args!("{what}"))
    }
}

const _: () = assert!(EXECUTOR_WAITS_MAX == 32 && EXECUTOR_CALLS_MAX == 64);
const _: () = assert!(EXECUTOR_LINE_BYTES_MAX == 262_144);
