//! A task as it was accepted: what `task.json` holds.

use std::path::PathBuf;

use bumpalo::Bump;

use crate::executor::{clock, json};
use crate::limits::{TASK_KEY_BYTES_MAX, TASK_TIMEOUT_S_MAX};
use crate::task::arguments::TaskRequest;
use crate::task::id::TaskId;
use crate::wire::json::{Object, Value};

/// What asks for an operator's gate in `acceptance`.
const GATE_PREFIX: &str = "gate:";

/// A task that was accepted, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name, which the front made.
    pub id: TaskId,
    /// The client's own name for it.
    pub key: Option<String>,
    /// What the client wants.
    pub content: Content,
    /// How long it may run; none for the executor's own bound.
    pub deadline_s: Option<u64>,
    /// Which client it came from, as it says.
    pub client: Option<(String, String)>,
    /// The repository with every symbolic link resolved.
    pub repo_real: PathBuf,
    /// The commit that the work starts from.
    pub base: String,
    /// The commit that the first of the tasks that it continues started from: what the task is
    /// judged by is what changed since.
    pub origin: String,
    /// When it was accepted.
    pub created_ms: u64,
}

/// What makes two tasks the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// What is to be achieved.
    pub goal: String,
    /// The repository, as the client names it.
    pub repo: String,
    /// The declared scope; none if it was not declared.
    pub files: Option<Vec<String>>,
    /// What decides that it is done.
    pub acceptance: Vec<String>,
    /// The task that it continues.
    pub follow_up_to: Option<TaskId>,
}

impl Content {
    /// The gates that are asked for, each once, in order.
    pub fn gates(&self) -> Vec<&str> {
        let mut gates: Vec<&str> = Vec::new();
        for (_, name) in self.named_gates() {
            if !gates.contains(&name) {
                gates.push(name);
            }
        }
        gates
    }

    /// The entries of the acceptance list that name a gate, by their places in it.
    pub fn named_gates(&self) -> impl Iterator<Item = (usize, &str)> {
        let entries = self.acceptance.iter().enumerate();
        entries.filter_map(|(at, text)| Some((at, gate(text)?)))
    }

    /// What is to be true in words, for the agent.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.acceptance.iter().filter(|text| gate(text).is_none());
        words.map(String::as_str)
    }
}

fn gate(text: &str) -> Option<&str> {
    text.strip_prefix(GATE_PREFIX).map(str::trim)
}

impl Task {
    /// Reads the parameters of `task/submit`. The repository is not looked at.
    ///
    /// # Errors
    ///
    /// What is wrong with them, in words.
    pub fn submitted(params: Object<'_>, now_ms: u64) -> Result<Self, String> {
        let id = json::text(params, "task_id").and_then(TaskId::parse);
        let id = id.ok_or("/task_id must be tsk_ and 26 capital letters and digits")?;
        let task = Self {
            id,
            key: text_if_given(params, "key")?,
            content: content(params)?,
            deadline_s: deadline_s(params)?,
            client: client(params),
            repo_real: PathBuf::new(),
            base: String::new(),
            origin: String::new(),
            created_ms: now_ms,
        };
        match &task.key {
            Some(key) if key.len() > TASK_KEY_BYTES_MAX => {
                Err(format!("/key must have at most {TASK_KEY_BYTES_MAX} bytes"))
            }
            _ => Ok(task),
        }
    }

    /// What `task.json` holds.
    pub fn to_json(&self) -> String {
        json::object(|object| {
            object.formatted("task_id", format_args!("{}", self.id));
            object.string("created_at", &clock::stamp(self.created_ms));
            json::text_or_null(object, "key", self.key.as_deref());
            object.string("goal", &self.content.goal);
            object.string("repo", &self.content.repo);
            match &self.content.files {
                Some(files) => json::list(object, "files", files),
                None => object.raw("files", "null"),
            }
            json::list(object, "acceptance", &self.content.acceptance);
            match self.deadline_s {
                Some(seconds) => object.unsigned("deadline_s", seconds),
                None => object.raw("deadline_s", "null"),
            }
            match self.content.follow_up_to {
                Some(id) => object.formatted("follow_up_to", format_args!("{id}")),
                None => object.raw("follow_up_to", "null"),
            }
            if let Some((name, version)) = &self.client {
                object.object("client", |client| {
                    client.string("name", name);
                    client.string("version", version);
                });
            }
            object.string("repo_real", &self.repo_real.to_string_lossy());
            object.string("base_commit", &self.base);
            object.string("origin_commit", &self.origin);
        })
    }

    /// Reads what [`Task::to_json`] wrote.
    pub fn of_json(text: &[u8]) -> Option<Self> {
        json::with(text, |object| {
            let created_ms = clock::parse(json::text(object, "created_at")?)?;
            let mut task = Self::submitted(object, created_ms).ok()?;
            task.repo_real = json::text(object, "repo_real")?.into();
            task.base = json::text(object, "base_commit")?.into();
            let origin = json::text(object, "origin_commit");
            task.origin = origin.map_or_else(|| task.base.clone(), Into::into);
            Some(task)
        })?
    }
}

/// Holds what the client wants to the rules of `larry_submit_task`, whoever sent it.
fn content(params: Object<'_>) -> Result<Content, String> {
    let wanted = json::object(|object| {
        for name in ["goal", "repo", "acceptance", "files"] {
            match params.get(name) {
                None => {}
                Some(Value::Null) if name == "files" => {}
                Some(Value::String(text)) => object.string(name, text),
                Some(Value::Array(list)) => object.array(name, |writer| {
                    for entry in list.iter() {
                        match entry {
                            Value::String(text) => writer.string(text),
                            _ => writer.unsigned(0),
                        }
                    }
                }),
                Some(_) => object.unsigned(name, 0),
            }
        }
    });
    let follow_up_to = match text_if_given(params, "follow_up_to")? {
        None => None,
        Some(text) => Some(TaskId::parse(&text).ok_or("/follow_up_to must be a task_id")?),
    };
    let arena = Bump::new();
    let read = json::with(wanted.as_bytes(), |arguments| {
        let request = TaskRequest::parse(arguments, &arena).map_err(|faults| faults.to_string())?;
        Ok(Content {
            goal: request.goal.to_owned(),
            repo: request.repo.to_owned(),
            files: request.files.map(json::strings),
            acceptance: json::strings(request.acceptance),
            follow_up_to,
        })
    });
    read.unwrap_or_else(|| Err("the task cannot be read".into()))
}

fn text_if_given(params: Object<'_>, name: &str) -> Result<Option<String>, String> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.to_owned())),
        Some(_) => Err(format!("/{name} must be a string or null")),
    }
}

fn deadline_s(params: Object<'_>) -> Result<Option<u64>, String> {
    match params.get("deadline_s") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Unsigned(seconds @ 1..=TASK_TIMEOUT_S_MAX)) => Ok(Some(seconds)),
        Some(_) => Err(format!(
            "/deadline_s must be 1 to {TASK_TIMEOUT_S_MAX}, or null"
        )),
    }
}

fn client(params: Object<'_>) -> Option<(String, String)> {
    let client = params.get("client")?.as_object()?;
    let word = |name| {
        let word = json::text(client, name).unwrap_or_default();
        crate::wire::writer::start_of(word, crate::limits::CLIENT_INFO_BYTES_MAX).to_owned()
    };
    Some((word("name"), word("version")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "tsk_01234567890123456789012345";

    fn submitted(rest: &str) -> Result<Task, String> {
        let text = format!(r#"{{"task_id":"{ID}",{rest}}}"#);
        json::with(text.as_bytes(), |params| Task::submitted(params, 7)).unwrap()
    }

    const PLAIN: &str = r#""goal":"g","repo":"/r","acceptance":["gate:test","gate: test","quiet"]"#;

    #[test]
    fn a_task_reads_back_as_it_was_written() {
        let rest = format!(
            r#"{PLAIN},"files":["a"],"key":"k","deadline_s":5,"follow_up_to":"{ID}","client":{{"name":"c"}}"#
        );
        let mut task = submitted(&rest).unwrap();
        task.base = "abc".into();
        task.origin = "ab".into();
        task.repo_real = "/r".into();
        assert_eq!(Task::of_json(task.to_json().as_bytes()), Some(task));
        let plain = submitted(PLAIN).unwrap();
        assert_eq!(Task::of_json(plain.to_json().as_bytes()), Some(plain));
        assert_eq!(Task::of_json(b"{}"), None);
    }

    #[test]
    fn gates_are_told_from_words() {
        let task = submitted(PLAIN).unwrap();
        assert_eq!(task.content.gates(), ["test"]);
        assert_eq!(task.content.words().collect::<Vec<_>>(), ["quiet"]);
    }

    #[test]
    fn the_rules_hold_for_every_front() {
        for (rest, wanted) in [
            (
                r#""goal":"","repo":"/r","acceptance":["a"]"#,
                "/goal must not be blank",
            ),
            (
                r#""goal":"g","repo":"r","acceptance":["a"]"#,
                "/repo must be an absolute path",
            ),
            (
                r#""goal":"g","repo":"/r","acceptance":[]"#,
                "/acceptance must have at least one",
            ),
            (
                r#""goal":"g","repo":"/r","acceptance":["a"],"files":["../x"]"#,
                "/files/0 must not have a .. component",
            ),
            (
                r#""goal":"g","repo":"/r","acceptance":["a"],"deadline_s":0"#,
                "/deadline_s must be 1 to",
            ),
            (
                r#""goal":"g","repo":"/r","acceptance":["a"],"key":1"#,
                "/key must be a string",
            ),
        ] {
            let said = submitted(rest).unwrap_err();
            assert!(said.starts_with(wanted), "{said}");
        }
    }
}
