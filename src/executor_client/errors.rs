//! The typed errors of the executor's tools, and what each advises.

use std::fmt;

use crate::executor_protocol::error_code::TaskErrorCode;
use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::{EXECUTOR_FAULT_BYTES_MAX, EXECUTOR_FAULTS_MAX};
use crate::mcp::owned::InlineString;
use crate::mcp::tool::{Answered, Reply, ToolError};
use crate::task::id::TaskId;
use crate::wire::json::{Array, Object, Value};
use crate::wire::writer::ObjectWriter;

/// Why no executor can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// Its program could not be started.
    SpawnFailed,
    /// Nobody listens on its socket.
    ConnectFailed,
    /// It did not say hello as it should.
    HandshakeFailed,
    /// Its connection has ended.
    Lost,
}

impl Absence {
    fn name(self) -> &'static str {
        match self {
            Self::SpawnFailed => "spawn_failed",
            Self::ConnectFailed => "connect_failed",
            Self::HandshakeFailed => "handshake_failed",
            Self::Lost => "lost",
        }
    }
}

/// What went wrong, in at most so many bytes.
pub type ErrorText = InlineString<512>;

/// Why a call was not done.
#[derive(Debug, Clone, Copy)]
pub struct ToolRefusal {
    /// Its code.
    pub code: TaskErrorCode,
    /// What happened, without a full stop.
    pub what: ErrorText,
    /// Why no executor can be asked, if that is it.
    pub absence: Option<Absence>,
    /// When the same call may succeed.
    pub retry_after_ms: Option<u64>,
    /// The task that is meant.
    pub task: Option<TaskId>,
}

/// The faults of a submission that an executor names in its refusal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedFaults<'a> {
    list: Option<Array<'a>>,
    unlisted: u64,
}

impl<'a> NamedFaults<'a> {
    /// Those of an error.
    pub fn of(error: Object<'a>) -> Self {
        let data = error.get("data").and_then(|data| data.as_object());
        let data = data.unwrap_or(Object::EMPTY);
        Self {
            list: data.get("faults").and_then(|list| list.as_array()),
            unlisted: match data.get("unlisted") {
                Some(Value::Unsigned(count)) => count,
                _ => 0,
            },
        }
    }

    /// Each with its pointer and its reason. What has not both is passed over.
    fn pairs(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let entries = self.list.into_iter().flat_map(|list| list.iter());
        entries.filter_map(|fault| {
            let fault = fault.as_object()?;
            let text = |name| fault.get(name)?.as_str();
            let pointer = text("pointer").filter(|pointer| pointer.starts_with('/'))?;
            Some((pointer, text("reason")?))
        })
    }

    /// Writes them as the server writes its own.
    fn write(self, details: &mut ObjectWriter<'_>) {
        let count = self.pairs().count();
        if count == 0 {
            return;
        }
        let shown = |text| Sanitized::sentence(text, EXECUTOR_FAULT_BYTES_MAX);
        details.array("faults", |list| {
            for (pointer, reason) in self.pairs().take(EXECUTOR_FAULTS_MAX) {
                list.object(|object| {
                    object.formatted("pointer", format_args!("{}", shown(pointer)));
                    object.formatted("reason", format_args!("{}", shown(reason)));
                });
            }
        });
        let beyond = count.saturating_sub(EXECUTOR_FAULTS_MAX) as u64;
        details.unsigned("unlisted", self.unlisted.saturating_add(beyond));
    }
}

/// What to do about an error, without a full stop. The end of a task makes no room where a time
/// must pass, so that a time that is known comes first.
fn advice(code: TaskErrorCode, retry_after_ms: Option<u64>) -> &'static str {
    match code {
        TaskErrorCode::QueueFull if retry_after_ms.is_some() => {
            "Call again after retry_after_ms milliseconds, and not before"
        }
        TaskErrorCode::InvalidArguments => "Correct every argument that is named and call again",
        TaskErrorCode::ExecutorNotConnected => {
            "Do the task yourself or tell the user, who can look for the cause with rocco mcp --check \
             and the --executor or --executor-socket that this server has"
        }
        TaskErrorCode::ExecutorTimeout => {
            "Ask with larry_task_status before anything else, and do not submit the task again"
        }
        TaskErrorCode::ExecutorProtocol => {
            "Tell the user that the executor does not work as it should"
        }
        TaskErrorCode::QueueFull => "Wait for one of the running tasks to end, then call again",
        TaskErrorCode::KeyConflict => "Use another idempotency_key for another task",
        TaskErrorCode::NotFound => {
            "Call larry_task_status without a task_id for the tasks that there are"
        }
        TaskErrorCode::Expired => {
            "Call larry_task_status without a task_id for the tasks that there are"
        }
        TaskErrorCode::RepoNotAllowed => "Name a repository that is allowed, or tell the user",
        TaskErrorCode::PathNotAllowed => "Name files inside of the repository",
        TaskErrorCode::NotFinished => "Call larry_task_status with wait_s first",
        TaskErrorCode::DepthExceeded => {
            "Do the work yourself, as a part of the task that you are doing"
        }
        TaskErrorCode::ShuttingDown => "Call again later",
        TaskErrorCode::Unsupported => "Do without it, or tell the user",
        TaskErrorCode::Storage => "Tell the user what could not be written before you call again",
    }
}

/// Formats into a text, cut to what fits.
pub fn text(arguments: fmt::Arguments<'_>) -> ErrorText {
    struct Filler(ErrorText);
    impl fmt::Write for Filler {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            for piece in Sanitized::sentence(part, usize::MAX).pieces() {
                self.0.push(piece.as_str());
            }
            Ok(())
        }
    }
    let mut filler = Filler(ErrorText::EMPTY);
    let written = fmt::write(&mut filler, arguments);
    assert!(written.is_ok(), "a text takes all that it is given");
    filler.0
}

impl ToolRefusal {
    /// A refusal that a sentence says in full.
    pub fn new(code: TaskErrorCode, what: fmt::Arguments<'_>) -> Self {
        Self {
            code,
            what: text(what),
            absence: None,
            retry_after_ms: None,
            task: None,
        }
    }

    /// No executor can be asked.
    pub fn absent(absence: Absence, why: fmt::Arguments<'_>) -> Self {
        Self {
            absence: Some(absence),
            ..Self::new(TaskErrorCode::ExecutorNotConnected, why)
        }
    }

    /// What an executor refuses, as it says it.
    pub fn from_executor(error: Object<'_>) -> Self {
        let message = error.get("message").and_then(|message| message.as_str());
        let data = error.get("data").and_then(|data| data.as_object());
        let name = data.and_then(|data| data.get("code")?.as_str());
        let message = message.unwrap_or("it gave no reason").trim_end_matches('.');
        let code = name.and_then(TaskErrorCode::parse);
        match (
            code.filter(|code| code.is_for_executors()),
            error.get("code"),
        ) {
            (Some(code), _) => Self {
                retry_after_ms: match data.and_then(|data| data.get("retry_after_ms")) {
                    Some(Value::Unsigned(time)) => Some(time),
                    _ => None,
                },
                ..Self::new(code, format_args!("{message}"))
            },
            (None, Some(Value::Signed(-32601))) => {
                Self::new(TaskErrorCode::Unsupported, format_args!("{message}"))
            }
            (None, _) => Self::new(
                TaskErrorCode::ExecutorProtocol,
                format_args!("the executor answered with an error of no known code: {message}"),
            ),
        }
    }

    /// About a task.
    pub fn of_task(mut self, task: Option<TaskId>) -> Self {
        self.task = task;
        self
    }

    /// Writes it as the result of a call.
    pub fn write<'r>(&self, reply: Reply<'r>) -> Answered<'r> {
        self.write_with(NamedFaults::default(), reply)
    }

    /// Writes it as the result of a call, with the faults that it names.
    pub fn write_with<'r>(&self, faults: NamedFaults<'_>, reply: Reply<'r>) -> Answered<'r> {
        let (code, retryable) = (self.code.name(), self.code.is_retryable());
        let row = (code, retryable, advice(self.code, self.retry_after_ms));
        let what = format_args!("{}", self.what.as_str());
        let error = ToolError::of_row(row, what, self.retry_after_ms);
        reply.error_with(error, |details| {
            if let Some(absence) = self.absence {
                details.string("reason", absence.name());
            }
            if let Some(task) = self.task {
                details.formatted("task_id", format_args!("{task}"));
            }
            faults.write(details);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_advice_is_a_sentence_without_its_full_stop() {
        for code in crate::executor_protocol::error_code::all() {
            for time in [None, Some(1)] {
                let advice = advice(code, time);
                assert!(advice.starts_with(char::is_uppercase) && !advice.ends_with('.'));
            }
        }
    }

    /// Who had submitted too many tasks in a minute was told to wait for the end of one, which does
    /// not help.
    #[test]
    fn where_a_time_must_pass_that_time_is_named() {
        let advice = |time| advice(TaskErrorCode::QueueFull, time);
        assert!(advice(Some(15_000)).contains("retry_after_ms"));
        assert!(!advice(Some(15_000)).contains("running tasks"));
        assert!(advice(None).contains("running tasks"));
    }
}
