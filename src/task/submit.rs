//! The tool `larry_submit_task` while no executor is configured. It never accepts a task.

use super::arguments::TaskRequest;
use super::fault::Faults;
use super::schema;
use crate::mcp::prepared::Prepared;
use crate::mcp::tool::{Annotations, Answered, Call, Reply, Tool, ToolError, ToolSpec};

/// The tool while no executor is configured: it checks a task and refuses it.
#[derive(Debug, Clone)]
pub struct SubmitTask {
    refusal: Prepared,
}

impl Default for SubmitTask {
    fn default() -> Self {
        Self::new()
    }
}

impl SubmitTask {
    /// The tool.
    pub fn new() -> Self {
        Self {
            refusal: Prepared::new(not_connected),
        }
    }
}

impl Tool for SubmitTask {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(schema::NAME, schema::DESCRIPTION, schema::INPUT)
            .title(schema::TITLE)
            .output_schema(schema::OUTPUT)
            .annotations(Annotations::new().destructive(false))
    }

    fn call<'r>(&mut self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
        match TaskRequest::parse(call.arguments, call.arena) {
            Ok(_) => reply.prepared(&self.refusal),
            Err(faults) => invalid_arguments(&faults, reply),
        }
    }
}

fn not_connected(reply: Reply<'_>) -> Answered<'_> {
    let what = format_args!("no executor is connected, so the task was not submitted");
    let error = ToolError::new("executor_not_connected", what).advice(
        "Do the task yourself or tell the user, who can start rocco mcp with --executor or \
         --executor-socket, and do not submit it again",
    );
    reply.error_with(error, |details| details.string("reason", "not_configured"))
}

/// What to do about arguments that break the rules.
const CORRECT: &str = "Correct every argument that is named and call larry_submit_task again";

/// The same, if one of them is unknown: a model cannot leave out what its host adds.
const CORRECT_OR_TELL: &str = "Correct every argument that is named and call larry_submit_task \
again. If you did not give the one that is not an argument of this tool, your host adds it: tell \
the user, who can have the host leave it out";

/// Refuses a task whose arguments break the rules.
pub fn invalid_arguments<'r>(faults: &Faults<'_>, reply: Reply<'r>) -> Answered<'r> {
    let what = format_args!("the task was not submitted, because {faults}");
    let advice = if faults.has_unknown() {
        CORRECT_OR_TELL
    } else {
        CORRECT
    };
    let error = ToolError::new("invalid_arguments", what).advice(advice);
    reply.error_with(error, |details| {
        details.array("faults", |list| {
            for fault in faults.listed() {
                list.object(|object| {
                    object.formatted("pointer", format_args!("{}", fault.pointer));
                    object.formatted("reason", format_args!("{}", fault.reason));
                });
            }
        });
        details.unsigned("unlisted", faults.unlisted() as u64);
    })
}
