//! The executor's four tools: what a model is told of them, and their arguments.

use crate::executor_client::errors::ToolRefusal;
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::limits::{EXECUTOR_MESSAGE_BYTES_MAX, EXECUTOR_PAGE_BYTES_MAX, EXECUTOR_WAIT_S_MAX};
use crate::mcp::tool::{Annotations, ToolSpec};
use crate::task::id::TaskId;
use crate::task::schema;
use crate::wire::json::{Object, Value};

/// The tools, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorTool {
    /// `larry_submit_task`.
    Submit,
    /// `larry_task_status`.
    Status,
    /// `larry_task_result`.
    Result,
    /// `larry_cancel_task`.
    Cancel,
}

/// All of them.
pub const TOOLS: [ExecutorTool; 4] = [
    ExecutorTool::Submit,
    ExecutorTool::Status,
    ExecutorTool::Result,
    ExecutorTool::Cancel,
];

const STATUS: &str = "Says how a submitted task stands: its state while it works, and the whole \
record with summary, changed files and gates when it has ended. Without a task_id it lists the \
newest tasks, which finds one whose id was lost. Give wait_s to wait for the end instead of \
asking again and again.";

const RESULT: &str = "Reads a part of a task's result in pages: the diff, the agent's log, or what \
the gates said. Call again with offset set to next_offset until that is null.";

const CANCEL: &str = "Asks the executor to end a task. It is answered at once and does not wait for \
the end; ask larry_task_status what came of it. To cancel twice, or a task that has ended, does no \
harm.";

macro_rules! task_id {
    () => {
        r#""task_id": { "type": "string", "pattern": "^tsk_[0-9A-HJKMNP-TV-Z]{26}$", "description": "The id that larry_submit_task gave." }"#
    };
}

const STATUS_INPUT: &str = concat!(
    r#"{ "type": "object", "properties": { "#,
    task_id!(),
    r#", "wait_s": { "type": "integer", "minimum": 0, "maximum": 45, "default": 0, "description": "How many seconds to wait for the task to end, at most 45." } }, "additionalProperties": false }"#
);

const RESULT_INPUT: &str = concat!(
    r#"{ "type": "object", "properties": { "#,
    task_id!(),
    r#", "part": { "type": "string", "enum": ["diff", "log", "gates"], "description": "What to read. The log is there while the task runs, the others when it has ended." }, "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes." }, "limit": { "type": "integer", "minimum": 1, "maximum": 24576, "default": 24576, "description": "How much to read, in bytes." } }, "required": ["task_id", "part"], "additionalProperties": false }"#
);

const CANCEL_INPUT: &str = concat!(
    r#"{ "type": "object", "properties": { "#,
    task_id!(),
    r#", "reason": { "type": "string", "maxLength": 200, "description": "RefusalReason, in a few words, for the task's log." } }, "required": ["task_id"], "additionalProperties": false }"#
);

/// `error`, which every result may have instead of all else.
macro_rules! output {
    ($properties:literal) => {
        concat!(
            r#"{ "type": "object", "properties": { "#,
            $properties,
            r#", "error": { "type": "object", "properties": { "code": { "type": "string" }, "message": { "type": "string", "description": "What happened and what to do." }, "retryable": { "type": "boolean" }, "retry_after_ms": { "type": "integer" }, "details": { "type": "object" } }, "required": ["code", "message", "retryable", "details"] } } }"#
        )
    };
}

const SUBMIT_OUTPUT: &str = output!(
    r#""task_id": { "type": "string" }, "state": { "type": "string" }, "position": { "type": "integer", "description": "Its place among those that wait, from 1." }, "duplicate": { "type": "boolean", "description": "Whether it is an older, equal task." }, "created_at": { "type": "string" }, "poll_after_ms": { "type": "integer" }, "next": { "type": "string", "description": "What to do now." }"#
);

const STATUS_OUTPUT: &str = output!(
    r#""task_id": { "type": "string" }, "state": { "type": "string" }, "position": { "type": "integer" }, "phase": { "type": "string" }, "message": { "type": "string" }, "progress": { "type": "number" }, "created_at": { "type": "string" }, "updated_at": { "type": "string" }, "last_output_at": { "type": "string" }, "poll_after_ms": { "type": "integer" }, "next": { "type": "string" }, "record": { "type": "object", "description": "How it ended." }, "tasks": { "type": "array", "items": { "type": "object" } }"#
);

const RESULT_OUTPUT: &str = output!(
    r#""task_id": { "type": "string" }, "part": { "type": "string" }, "state": { "type": "string" }, "text": { "type": "string" }, "offset": { "type": "integer" }, "next_offset": { "type": ["integer", "null"] }, "total": { "type": "integer" }, "path": { "type": "string", "description": "The file that it was read from." }"#
);

const CANCEL_OUTPUT: &str =
    output!(r#""task_id": { "type": "string" }, "state": { "type": "string" }"#);

/// The names of the tools, in the order of `tools/list`. The manual repeats them.
pub fn tool_names() -> impl Iterator<Item = String> {
    TOOLS.into_iter().map(|tool| tool.spec().name.into_owned())
}

impl ExecutorTool {
    /// What a model is told.
    pub fn spec(self) -> ToolSpec {
        let (name, title, description, input, output) = match self {
            Self::Submit => (
                schema::NAME,
                schema::TITLE,
                schema::CONNECTED_DESCRIPTION,
                schema::INPUT_WITH_OPTIONS,
                SUBMIT_OUTPUT,
            ),
            Self::Status => (
                "larry_task_status",
                "How a task stands",
                STATUS,
                STATUS_INPUT,
                STATUS_OUTPUT,
            ),
            Self::Result => (
                "larry_task_result",
                "Read a task's result",
                RESULT,
                RESULT_INPUT,
                RESULT_OUTPUT,
            ),
            Self::Cancel => (
                "larry_cancel_task",
                "Cancel a task",
                CANCEL,
                CANCEL_INPUT,
                CANCEL_OUTPUT,
            ),
        };
        let reads = matches!(self, Self::Status | Self::Result);
        ToolSpec::new(name, description, input)
            .title(title)
            .output_schema(output)
            .annotations(
                Annotations::new()
                    .read_only(reads)
                    .destructive(self == Self::Cancel)
                    .idempotent(self != Self::Submit)
                    .open_world(self == Self::Submit),
            )
    }
}

/// The arguments of `larry_task_status`.
#[derive(Debug, Clone, Copy)]
pub struct StatusArguments {
    /// The task; none for a list.
    pub task: Option<TaskId>,
    /// How long to wait for its end.
    pub wait_s: u64,
}

/// The arguments of `larry_task_result`.
#[derive(Debug, Clone, Copy)]
pub struct ResultArguments<'a> {
    /// The task.
    pub task: TaskId,
    /// What to read of it.
    pub part: &'a str,
    /// Where to begin, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub limit: u64,
}

/// The arguments of `larry_cancel_task`.
#[derive(Debug, Clone, Copy)]
pub struct CancelArguments<'a> {
    /// The task.
    pub task: TaskId,
    /// Why.
    pub reason: Option<&'a str>,
}

impl StatusArguments {
    /// Holds arguments to the rules.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn parse(arguments: Object<'_>) -> Result<Self, ToolRefusal> {
        let [task, wait_s] = take(arguments, ["task_id", "wait_s"])?;
        Ok(Self {
            task: task.map(task_id).transpose()?,
            wait_s: integer("wait_s", wait_s, 0, 0, EXECUTOR_WAIT_S_MAX)?,
        })
    }
}

impl<'a> ResultArguments<'a> {
    /// Holds arguments to the rules.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn parse(arguments: Object<'a>) -> Result<Self, ToolRefusal> {
        let names = ["task_id", "part", "offset", "limit"];
        let [task, part, offset, limit] = take(arguments, names)?;
        let page_bytes_max = EXECUTOR_PAGE_BYTES_MAX as u64;
        Ok(Self {
            task: task_id(task.ok_or_else(|| fault("/task_id is required"))?)?,
            part: match part.and_then(|part| part.as_str()) {
                Some(part @ ("diff" | "log" | "gates")) => part,
                _ => return Err(fault("/part must be diff, log or gates")),
            },
            offset: integer("offset", offset, 0, 0, u64::MAX >> 1)?,
            limit: integer("limit", limit, page_bytes_max, 1, page_bytes_max)?,
        })
    }
}

impl<'a> CancelArguments<'a> {
    /// Holds arguments to the rules.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn parse(arguments: Object<'a>) -> Result<Self, ToolRefusal> {
        let [task, reason] = take(arguments, ["task_id", "reason"])?;
        let reason = match reason {
            None => None,
            Some(Value::String(reason)) if reason.len() <= EXECUTOR_MESSAGE_BYTES_MAX => {
                Some(reason)
            }
            Some(_) => return Err(fault("/reason must be a string of at most 200 bytes")),
        };
        Ok(Self {
            task: task_id(task.ok_or_else(|| fault("/task_id is required"))?)?,
            reason,
        })
    }
}

fn fault(what: &str) -> ToolRefusal {
    ToolRefusal::new(TaskErrorCode::InvalidArguments, format_args!("{what}"))
}

/// The members of a closed object.
fn take<'a, const N: usize>(
    arguments: Object<'a>,
    names: [&'static str; N],
) -> Result<[Option<Value<'a>>; N], ToolRefusal> {
    let refuse = |name: &str, what| {
        let name = crate::executor_protocol::sanitize::Sanitized::new(name, 64);
        ToolRefusal::new(
            TaskErrorCode::InvalidArguments,
            format_args!("/{name} {what}"),
        )
    };
    let mut unknown = arguments.iter().filter(|(name, _)| !names.contains(name));
    if let Some((name, _)) = unknown.next() {
        return Err(refuse(name, "is not an argument of this tool"));
    }
    let taken = arguments.take(names);
    taken.map_err(|twice| refuse(twice.name(), "is given more than once"))
}

fn task_id(value: Value<'_>) -> Result<TaskId, ToolRefusal> {
    let task = value.as_str().and_then(TaskId::parse);
    task.ok_or_else(|| {
        fault(
            "/task_id must be what larry_submit_task gave: tsk_ and 26 capital letters and digits",
        )
    })
}

fn integer(
    name: &str,
    value: Option<Value<'_>>,
    usual: u64,
    min: u64,
    max: u64,
) -> Result<u64, ToolRefusal> {
    match value {
        None => Ok(usual),
        Some(Value::Unsigned(number)) if (min..=max).contains(&number) => Ok(number),
        Some(_) => Err(ToolRefusal::new(
            TaskErrorCode::InvalidArguments,
            format_args!("/{name} must be an integer of {min} to {max}"),
        )),
    }
}

const _: () = assert!(EXECUTOR_WAIT_S_MAX == 45 && EXECUTOR_PAGE_BYTES_MAX == 24_576);
const _: () = assert!(EXECUTOR_MESSAGE_BYTES_MAX == 200);
