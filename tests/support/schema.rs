//! Checks what a server wrote against the official schemas of the protocol.
//!
//! The schemas leave their objects open: a member that only a newer revision knows passes under an
//! older one. So they are closed before they are compiled, and each object of a reply may carry
//! exactly the members that its revision names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::skip::leave_out;

/// The revisions that are opened by `initialize`, oldest first.
pub(crate) const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision that an unknown one is answered with, and the first whose errors may lack an id.
pub(crate) const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// The one revision with batches.
pub(crate) const BATCHING: &str = "2025-03-26";
/// The revision without a handshake, in which each request carries its own envelope.
pub(crate) const STATELESS: &str = "2026-07-28";

/// The tasks extension of that revision, whose schema stands beside those of the revisions.
const TASKS: &str = "ext-tasks-draft";

/// All revisions, oldest first.
pub(crate) fn revisions() -> impl Iterator<Item = &'static str> {
    HANDSHAKE.into_iter().chain([STATELESS])
}

/// JSON-RPC's own error codes. A server has no business with any other, but for the two below.
const CODES: [i64; 5] = [-32700, -32600, -32601, -32602, -32603];
/// The codes that came with the stateless revision, with the definition of the whole error.
const STATELESS_CODES: [(i64, &str); 2] = [
    (-32021, "MissingRequiredClientCapabilityError"),
    (UNSUPPORTED_VERSION, "UnsupportedProtocolVersionError"),
];
const UNSUPPORTED_VERSION: i64 = -32022;

/// Members that hold a caller's own schema or metadata, which the protocol leaves open on purpose.
const OPEN: [&str; 3] = ["_meta", "inputSchema", "outputSchema"];

/// The schemas of all revisions, compiled once.
pub(crate) struct Schemas {
    validators: HashMap<(&'static str, String), Validator>,
}

/// The schemas, loaded once for a test binary. Where they are absent their checks are left out.
pub(crate) fn schemas() -> Option<&'static Schemas> {
    static SCHEMAS: LazyLock<Option<Schemas>> = LazyLock::new(|| {
        let schemas = Schemas::load();
        if schemas.is_none() {
            leave_out("SPEC", "no protocol schemas: nothing is held against them");
        }
        schemas
    });
    SCHEMAS.as_ref()
}

impl Schemas {
    /// Reads the schemas in place. `None` where their folder is absent.
    pub(crate) fn load() -> Option<Self> {
        let folder = std::env::var_os("ROCCO_SPEC").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/spec"),
            PathBuf::from,
        );
        if !folder.is_dir() {
            return None;
        }
        let mut validators = HashMap::new();
        for revision in revisions() {
            let path = folder.join(format!("{revision}.json"));
            let text = std::fs::read(&path)
                .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
            let document = serde_json::from_slice(&text).expect("a schema is JSON");
            for (name, validator) in compile(document) {
                validators.insert((revision, name), validator);
            }
        }
        match std::fs::read(folder.join(format!("{TASKS}.json"))) {
            Ok(text) => {
                let document = serde_json::from_slice(&text).expect("a schema is JSON");
                for (name, validator) in compile(document) {
                    validators.insert((TASKS, name), validator);
                }
            }
            Err(error) => leave_out(
                "SPEC",
                &format!("no schema of the tasks extension: {error}"),
            ),
        }
        Some(Self { validators })
    }

    /// Checks one line of the server, as the answer to a request of `method` where that is known.
    ///
    /// Without a method only the envelope of a result can be checked. An error and a notification
    /// are checked whole in any case.
    pub(crate) fn check(
        &self,
        revision: &str,
        method: Option<&str>,
        line: &Value,
    ) -> Result<(), String> {
        match line {
            Value::Array(replies) => self.check_batch(revision, replies),
            Value::Object(members) => self.check_message(revision, method, members),
            _ => Err("neither an object nor an array".to_owned()),
        }
    }

    /// An element without an id has no valid form in the one revision that has batches (see
    /// `check_error`), so the array is held against its definition without those.
    fn check_batch(&self, revision: &str, replies: &[Value]) -> Result<(), String> {
        if revision != BATCHING {
            return Err(format!("an array, which {revision} does not have"));
        }
        if replies.is_empty() {
            return Err("an empty array".to_owned());
        }
        let with_id = replies
            .iter()
            .filter(|reply| reply.get("id").is_some())
            .cloned()
            .collect();
        self.conforms(revision, "JSONRPCBatchResponse", &Value::Array(with_id))?;
        for reply in replies {
            let members = reply.as_object().ok_or("an element is not an object")?;
            // A request whose envelope names an unknown version is told so in the only words that
            // there are for it.
            let spoken = match reply["error"]["code"].as_i64() {
                Some(UNSUPPORTED_VERSION) => STATELESS,
                _ => revision,
            };
            self.check_message(spoken, None, members)?;
        }
        Ok(())
    }

    fn check_message(
        &self,
        revision: &str,
        method: Option<&str>,
        members: &Map<String, Value>,
    ) -> Result<(), String> {
        let line = Value::Object(members.clone());
        if members.contains_key("method") {
            self.check_notification(revision, &line)
        } else if members.contains_key("error") {
            self.check_error(revision, &line)
        } else {
            self.check_result(revision, method, &line)
        }
    }

    /// The method picks the definition, which must be one that servers may send.
    fn check_notification(&self, revision: &str, line: &Value) -> Result<(), String> {
        if line.get("id").is_some() {
            return Err("a request, and this server sends none".to_owned());
        }
        let name = match line["method"].as_str() {
            Some("notifications/cancelled") => "CancelledNotification",
            Some("notifications/message") => "LoggingMessageNotification",
            Some("notifications/progress") => "ProgressNotification",
            Some("notifications/subscriptions/acknowledged") => {
                "SubscriptionsAcknowledgedNotification"
            }
            Some("notifications/tools/list_changed") => "ToolListChangedNotification",
            _ => {
                return Err(format!(
                    "{} is no notification of this server",
                    line["method"]
                ));
            }
        };
        self.conforms(revision, "JSONRPCNotification", line)?;
        self.conforms(revision, name, line)
    }

    /// An error to a request whose id could not be read has no `id`. Revisions before 2025-11-25
    /// have no valid form for it, and JSON-RPC's own `null` is valid in none, so the form of
    /// 2025-11-25 is used in all.
    fn check_error(&self, revision: &str, line: &Value) -> Result<(), String> {
        let code = line["error"]["code"].as_i64().unwrap_or_default();
        let mut revision = revision;
        if line.get("id").is_none() {
            if !matches!(code, -32700 | -32600) {
                return Err(format!(
                    "error {code} without id, though its request could be read"
                ));
            }
            revision = revision.max(NEWEST_HANDSHAKE);
        }
        let envelope = if revision < NEWEST_HANDSHAKE {
            "JSONRPCError"
        } else {
            "JSONRPCErrorResponse"
        };
        self.conforms(revision, envelope, line)?;
        if CODES.contains(&code) {
            return Ok(());
        }
        match STATELESS_CODES
            .iter()
            .find(|(known, _)| revision == STATELESS && *known == code)
        {
            Some((_, name)) => self.conforms(revision, name, line),
            None => Err(format!("error code {code} is not one of {revision}")),
        }
    }

    fn check_result(
        &self,
        revision: &str,
        method: Option<&str>,
        line: &Value,
    ) -> Result<(), String> {
        let envelope = if revision < NEWEST_HANDSHAKE {
            "JSONRPCResponse"
        } else {
            "JSONRPCResultResponse"
        };
        self.conforms(revision, envelope, line)?;
        let Some(method) = method else { return Ok(()) };
        let created = method == "tools/call" && line["result"]["resultType"] == "task";
        if revision == STATELESS && (created || method.starts_with("tasks/")) {
            return self.check_task(method, &line["result"]);
        }
        let name = result_of(revision, method)
            .ok_or_else(|| format!("a result, but {method} has none in {revision}"))?;
        let result = &line["result"];
        self.conforms(revision, name, result)?;
        match method {
            "initialize" if result["protocolVersion"] != revision => {
                Err(format!("protocolVersion is to be {revision}"))
            }
            "tools/list" => check_tool_schemas(result),
            _ => Ok(()),
        }
    }

    /// A result of the tasks extension. That of a task that is completed is the result of a call.
    fn check_task(&self, method: &str, result: &Value) -> Result<(), String> {
        if !self.validators.keys().any(|(from, _)| *from == TASKS) {
            return Ok(());
        }
        let name = match method {
            "tools/call" => "CreateTaskResult",
            "tasks/get" => "GetTaskResult",
            "tasks/update" => "UpdateTaskResult",
            "tasks/cancel" => "CancelTaskResult",
            _ => return Err(format!("{method} has no result")),
        };
        self.conforms(TASKS, name, result)?;
        let mut task = result.clone();
        let members = task.as_object_mut().ok_or("a result is an object")?;
        let kind = members.remove("resultType");
        members.remove("_meta");
        if (method != "tools/call") && kind != Some("complete".into()) {
            return Err(format!("{method} is not complete"));
        }
        let name = match (method, result["status"].as_str()) {
            ("tasks/update" | "tasks/cancel", _) if members.is_empty() => return Ok(()),
            (_, Some("working")) => "WorkingTask",
            ("tasks/get", Some("completed")) => "CompletedTask",
            ("tasks/get", Some("failed")) => "FailedTask",
            ("tasks/get", Some("cancelled")) => "CancelledTask",
            _ => return Err(format!("not a result of {method}: {result}")),
        };
        self.conforms(TASKS, name, &task)?;
        match task.get("result") {
            Some(called) => self.conforms(STATELESS, "CallToolResult", called),
            None => Ok(()),
        }
    }

    fn conforms(&self, revision: &str, name: &str, value: &Value) -> Result<(), String> {
        let validator = revisions()
            .chain([TASKS])
            .find(|known| *known == revision)
            .and_then(|revision| self.validators.get(&(revision, name.to_owned())))
            .ok_or_else(|| format!("{revision} does not know {name}"))?;
        let mut faults = validator.iter_errors(value).map(|error| {
            let fault: String = error.to_string().chars().take(200).collect();
            format!("{name}{} of {revision}: {fault}", error.instance_path())
        });
        faults.next().map_or(Ok(()), Err)
    }
}

/// The definition of a method's result, for the methods that this server can answer with one.
fn result_of(revision: &str, method: &str) -> Option<&'static str> {
    match (method, revision == STATELESS) {
        ("initialize", false) => Some("InitializeResult"),
        ("ping", false) => Some("EmptyResult"),
        ("tools/list", _) => Some("ListToolsResult"),
        ("tools/call", _) => Some("CallToolResult"),
        ("server/discover", true) => Some("DiscoverResult"),
        ("subscriptions/listen", true) => Some("SubscriptionsListenResult"),
        _ => None,
    }
}

/// The schemas that a tool hands out have to be schemas themselves.
fn check_tool_schemas(result: &Value) -> Result<(), String> {
    for tool in result["tools"].as_array().into_iter().flatten() {
        for member in ["inputSchema", "outputSchema"] {
            let schema = tool.get(member).unwrap_or(&Value::Bool(true));
            jsonschema::draft202012::meta::validate(schema)
                .map_err(|error| format!("{member} of {}: {error}", tool["name"]))?;
        }
    }
    Ok(())
}

/// Compiles each definition of a document that `check` may ask for.
fn compile(mut document: Value) -> Vec<(String, Validator)> {
    let pool = if document.get("$defs").is_some() {
        "$defs"
    } else {
        "definitions"
    };
    let definitions = document[pool]
        .as_object_mut()
        .expect("a schema has definitions");
    // `Result` is open, because all others build on it. An empty result is not.
    let mut empty = definitions["Result"].clone();
    empty["additionalProperties"] = json!(false);
    definitions.insert("EmptyResult".to_owned(), empty);
    for (name, definition) in definitions.iter_mut() {
        if !name.ends_with("MetaObject") {
            close(definition);
        }
    }
    let wanted = ["Result", "Response", "Error", "Notification", "Task"];
    let names: Vec<String> = definitions
        .keys()
        .filter(|name| wanted.iter().any(|end| name.ends_with(end)))
        .cloned()
        .collect();
    names
        .into_iter()
        .map(|name| {
            document["$ref"] = json!(format!("#/{pool}/{name}"));
            let validator = jsonschema::validator_for(&document).expect("a schema compiles");
            (name, validator)
        })
        .collect()
}

/// Forbids the members that a definition does not list, at every depth.
///
/// Left open are the objects that say so themselves, those of `OPEN`, and the top level of
/// notifications, whose older definitions leave out the `jsonrpc` of their envelope. References
/// lead to definitions, which are closed as such.
fn close(schema: &mut Value) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties.iter_mut() {
        if !OPEN.contains(&name.as_str()) {
            close(property);
        }
    }
    let listed = !properties.is_empty() && !properties.contains_key("method");
    if listed && schema.get("additionalProperties").is_none() {
        schema["additionalProperties"] = json!(false);
    }
}
