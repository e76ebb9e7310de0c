//! The executor's four tools: what a model is told of them, and their arguments.

use crate::executor_client::errors::ToolRefusal;
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::limits::{EXECUTOR_MESSAGE_BYTES_MAX, EXECUTOR_PAGE_BYTES_MAX, EXECUTOR_WAIT_S_MAX};
use crate::mcp::tool::{Annotations, ToolSpec};
use crate::task::arguments::{given, is_of_host};
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

// What these may say is told at the top of `crate::task::schema`.

const STATUS_INPUT: &str = r#"{ "type": "object", "properties": { "task_id": { "type": ["string", "null"], "description": "The id that larry_submit_task gave. Left out: the newest tasks are listed." }, "wait_s": { "type": ["integer", "null"], "minimum": 0, "maximum": 45, "description": "How many seconds to wait for the task to end, at most 45. Left out: 0." } } }"#;

const RESULT_INPUT: &str = r#"{ "type": "object", "properties": { "task_id": { "type": "string", "description": "The id that larry_submit_task gave." }, "part": { "type": "string", "enum": ["diff", "log", "gates"], "description": "What to read. The log is there while the task runs, the others when it has ended." }, "offset": { "type": ["integer", "null"], "minimum": 0, "description": "Where to begin, in bytes. Left out: 0." }, "limit": { "type": ["integer", "null"], "minimum": 1, "maximum": 24576, "description": "How much to read, in bytes, at most 24576, as it is when left out." } }, "required": ["task_id", "part"] }"#;

const CANCEL_INPUT: &str = r#"{ "type": "object", "properties": { "task_id": { "type": "string", "description": "The id that larry_submit_task gave." }, "reason": { "type": ["string", "null"], "description": "Why, in a few words, for the task's log. At most 200 bytes." } }, "required": ["task_id"] }"#;

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

/// The members of a closed object. `null` is absence, and what a known host adds is ignored.
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
    let is_unknown = |name: &str| !names.contains(&name) && !is_of_host(name);
    let mut unknown = arguments.iter().filter(|(name, _)| is_unknown(name));
    if let Some((name, _)) = unknown.next() {
        let what = "is not an argument of this tool. If you did not give it, your host adds it: \
                    tell the user, who can have the host leave it out";
        return Err(refuse(name, what));
    }
    match arguments.take(names) {
        Ok(taken) => Ok(taken.map(given)),
        Err(twice) => Err(refuse(twice.name(), "is given more than once")),
    }
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
    let Some(value) = value else {
        return Ok(usual);
    };
    match value.as_whole_u64() {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(ToolRefusal::new(
            TaskErrorCode::InvalidArguments,
            format_args!("/{name} must be an integer of {min} to {max}"),
        )),
    }
}

const _: () = assert!(EXECUTOR_WAIT_S_MAX == 45 && EXECUTOR_PAGE_BYTES_MAX == 24_576);
const _: () = assert!(EXECUTOR_MESSAGE_BYTES_MAX == 200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_PADDING_BYTES;
    use crate::wire::json::Parser;

    const TASK: &str = r#""task_id":"tsk_00000000000000000000000000""#;

    /// What becomes of the arguments of a tool, in short.
    fn check(tool: ExecutorTool, members: &str) -> String {
        let arguments = format!("{{{members}}}");
        let mut frame = arguments.as_bytes().to_vec();
        frame.resize(arguments.len() + FRAME_PADDING_BYTES, b' ');
        let document = Parser::new().parse(&mut frame, arguments.len()).unwrap();
        let arguments = document.root().as_object().unwrap();
        let checked = match tool {
            ExecutorTool::Status => StatusArguments::parse(arguments)
                .map(|status| format!("{} {}", status.task.is_some(), status.wait_s)),
            ExecutorTool::Result => ResultArguments::parse(arguments)
                .map(|page| format!("{} {} {}", page.part, page.offset, page.limit)),
            ExecutorTool::Cancel => {
                CancelArguments::parse(arguments).map(|cancel| format!("{:?}", cancel.reason))
            }
            ExecutorTool::Submit => unreachable!("its arguments are those of a task"),
        };
        checked.unwrap_or_else(|refusal| refusal.what.as_str().to_owned())
    }

    #[test]
    fn null_in_an_optional_member_is_its_absence() {
        let null = r#""task_id":null,"wait_s":null"#;
        assert_eq!(check(ExecutorTool::Status, null), "false 0");
        let page = format!(r#"{TASK},"part":"log","offset":null,"limit":null"#);
        assert_eq!(check(ExecutorTool::Result, &page), "log 0 24576");
        let cancel = format!(r#"{TASK},"reason":null"#);
        assert_eq!(check(ExecutorTool::Cancel, &cancel), "None");
        let none = r#""task_id":null"#;
        assert_eq!(check(ExecutorTool::Cancel, none), "/task_id is required");
    }

    #[test]
    fn an_integral_number_is_an_integer() {
        assert_eq!(check(ExecutorTool::Status, r#""wait_s":0.0"#), "false 0");
        assert_eq!(check(ExecutorTool::Status, r#""wait_s":4.5e1"#), "false 45");
        let refused = "/wait_s must be an integer of 0 to 45";
        assert_eq!(check(ExecutorTool::Status, r#""wait_s":0.5"#), refused);
        assert_eq!(check(ExecutorTool::Status, r#""wait_s":46.0"#), refused);
        let page = format!(r#"{TASK},"part":"log","offset":0.0,"limit":100.0"#);
        assert_eq!(check(ExecutorTool::Result, &page), "log 0 100");
    }

    #[test]
    fn what_a_host_adds_is_ignored_if_it_is_known_and_named_if_not() {
        let known = r#""toolCallId":"call_1","wait_for_previous":false"#;
        assert_eq!(check(ExecutorTool::Status, known), "false 0");
        let said = check(ExecutorTool::Status, r#""sessionId":"5""#);
        assert!(said.starts_with("/sessionId is not an argument of this tool. If you did not"));
        assert!(said.ends_with("who can have the host leave it out"));
    }

    const MEMBER_WORDS: [&str; 6] = ["type", "description", "enum", "items", "minimum", "maximum"];

    fn assert_words(schema: &serde_json::Value, words: &[&str]) {
        for word in schema.as_object().unwrap().keys() {
            assert!(words.contains(&word.as_str()), "{word}: {schema}");
        }
    }

    /// Converters of hosts refuse a whole tool for a word that they do not know, and those in
    /// strict mode give every member.
    #[test]
    fn the_schemas_say_nothing_that_a_converter_refuses() {
        let submit = [schema::INPUT, schema::INPUT_WITH_OPTIONS];
        let inputs = [STATUS_INPUT, RESULT_INPUT, CANCEL_INPUT];
        for text in inputs.into_iter().chain(submit) {
            let schema: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_words(&schema, &["type", "properties", "required"]);
            let required = schema["required"].as_array();
            for (name, member) in schema["properties"].as_object().unwrap() {
                assert_words(member, &MEMBER_WORDS);
                let names = required.into_iter().flatten();
                let is_required = names
                    .filter_map(|name| name.as_str())
                    .any(|one| one == name);
                let takes_null = member["type"].to_string().contains("null");
                assert_ne!(is_required, takes_null, "{name}");
                if let Some(items) = member.get("items") {
                    assert_eq!(*items, serde_json::json!({ "type": "string" }), "{name}");
                }
            }
        }
    }
}
