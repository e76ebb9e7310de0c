//! The description and the schemas of the tool, as `tools/list` publishes them.
//!
//! Hosts convert the schemas for their models, and some converters refuse a whole tool for a word
//! that they do not know. So the schemas of arguments say types, members, values to choose from and
//! bounds of numbers, and no more:
//!
//! - `additionalProperties: false` crashes google-genai, and `uniqueItems` is refused there.
//! - llama.cpp's grammars refuse patterns without both anchors, and lengths over 2,000.
//! - OpenAI's strict mode refuses lengths and defaults. It has a model give every member, so that
//!   an optional one may be `null`. A list of types says so, since google-genai drops the
//!   description beside `anyOf`.
//! - `$schema` is refused by validators of older dialects; the protocol's default is 2020-12.
//!
//! What is left out stands in the descriptions, and [`super::arguments`] checks all of it.
//! `tests/clients/converters/run.sh` has the converters themselves take the schemas.

/// The tool's name.
pub const NAME: &str = "larry_submit_task";

/// The tool's name for people.
pub const TITLE: &str = "Submit a coding task";

/// The description for a model, while no executor is configured.
pub const DESCRIPTION: &str = "Hands one bounded coding task to an executor that works on its \
own in a local repository. Give it a goal, the repository, what decides that the task is done, \
and, if you can, the files that may change. Every argument is checked before anything is \
submitted: invalid_arguments names each fault, so correct them all and call again. \
executor_not_connected means that nothing was submitted.";

/// The description for a model, if an executor is configured.
pub const CONNECTED_DESCRIPTION: &str = "Hands one bounded coding task to an executor that works on \
its own in a copy of a local repository, and returns at once with a task_id. Give it a goal, the \
repository, what decides that the task is done, and, if you can, the files that may change. \
Follow it with larry_task_status. An acceptance entry gate:<name> runs the check of that name that \
the operator has defined; any other entry is told to the agent as it is. The result is a commit \
under a ref and a diff: your working tree is never touched.";

/// The schema of the arguments, with further properties. An unknown member is a fault though the
/// schema does not say so, so that a misspelt member is never silently dropped.
macro_rules! input {
    ($more:literal) => {
        concat!(
            r#"{
  "type": "object",
  "properties": {
    "goal": {
      "type": "string",
      "description": "What is to be achieved, in full sentences, with all that the executor needs to know. It sees nothing else of this conversation. Not blank, at most 65536 bytes."
    },
    "repo": {
      "type": "string",
      "description": "The local repository to work in: its absolute path, such as /home/me/project. No control characters, at most 4096 bytes."
    },
    "files": {
      "type": ["array", "null"],
      "items": { "type": "string" },
      "description": "The files that may be changed, each relative to the repository, such as src/upload.rs. No absolute path, no .. component, no leading -, no control characters, no duplicates, none blank, each at most 4096 bytes, at most 1024 of them. Leave it out, or null, to declare no scope; an empty list says that nothing may be changed."
    },
    "acceptance": {
      "type": "array",
      "items": { "type": "string" },
      "description": "What decides that the task is done: checks that can be seen to pass or fail, such as 'cargo test passes'. 1 to 64 of them, none blank, each at most 4096 bytes."
    }"#,
            $more,
            r#"
  },
  "required": ["goal", "repo", "acceptance"]
}"#
        )
    };
}

/// The schema of the arguments, while no executor is configured.
pub const INPUT: &str = input!("");

/// The schema of the arguments, if an executor is configured.
pub const INPUT_WITH_OPTIONS: &str = input!(
    r#",
    "idempotency_key": {
      "type": ["string", "null"],
      "description": "A name of your own for this task, at most 128 bytes. Calling again with the same key and the same arguments gives the same task instead of a second one."
    },
    "follow_up_to": {
      "type": ["string", "null"],
      "description": "The task_id of an ended task that this one continues, such as one that needed input."
    },
    "timeout_s": {
      "type": ["integer", "null"],
      "minimum": 1,
      "maximum": 86400,
      "description": "How long the task may run, in seconds, at most 86400. Left out: as long as the executor allows."
    }"#
);

/// The schema of `structuredContent`: an accepted task, or a typed error.
pub const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "task_id": { "type": "string", "description": "The name of the accepted task." },
    "state": { "type": "string", "enum": ["queued", "running"] },
    "error": {
      "type": "object",
      "description": "Why nothing was submitted.",
      "properties": {
        "code": { "type": "string", "description": "invalid_arguments or executor_not_connected." },
        "message": { "type": "string", "description": "What happened and what to do." },
        "retryable": { "type": "boolean", "description": "Whether the same call may succeed later." },
        "details": { "type": "object" }
      },
      "required": ["code", "message", "retryable", "details"]
    }
  },
  "anyOf": [
    { "required": ["task_id", "state"] },
    { "required": ["error"] }
  ]
}"#;
