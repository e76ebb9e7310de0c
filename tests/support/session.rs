//! Follows a session to know what each line of its stdout answers, and checks it as that.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde_json::Value;

use super::schema::{BATCHING, HANDSHAKE, NEWEST_HANDSHAKE, STATELESS, Schemas};

/// Longer frames are thrown away unread by the server, so they are here.
const FRAME_SIZE_MAX: usize = 1 << 20;

/// How many messages of a stdout were checked, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) results: usize,
    pub(crate) errors: usize,
    pub(crate) notifications: usize,
    /// Results whose request could not be told, so that only their envelope was checked.
    pub(crate) envelopes: usize,
}

/// A request that was read on stdin, with the revision that its answer has to obey.
struct Asked {
    /// `None` where a line that might have been an `initialize` could not be read.
    revision: Option<&'static str>,
    method: String,
}

/// What the requests of a session say about the answers.
struct Session {
    /// The ids that got a result: an `initialize` that was refused changes nothing.
    served: HashSet<String>,
    revision: Option<&'static str>,
    /// An id may be used more than once; each answer has to fit one of its requests.
    asked: HashMap<String, Vec<Asked>>,
    /// The revisions in use, for messages that answer nothing.
    seen: BTreeSet<&'static str>,
}

/// Checks each line of a stdout as the answer to what was read on stdin.
///
/// Every byte of stdin is allowed; stdout has to be flawless. The faults name their line.
pub(crate) fn replies_of(
    schemas: &Schemas,
    stdin: &[u8],
    stdout: &[u8],
) -> Result<Tally, Vec<String>> {
    let mut faults = Vec::new();
    let mut lines: Vec<&[u8]> = stdout.split(|byte| *byte == b'\n').collect();
    if lines.pop().is_some_and(|rest| !rest.is_empty()) {
        faults.push("stdout does not end in a line feed".to_owned());
    }
    let values: Vec<Result<Value, _>> = lines
        .iter()
        .map(|line| serde_json::from_slice(line))
        .collect();
    let session = Session::follow(stdin, values.iter().flatten());
    let mut tally = Tally::default();
    for (index, value) in values.iter().enumerate() {
        let outcome = match value {
            Ok(value) => session.check_line(schemas, value, &mut tally),
            Err(error) => Err(format!("not JSON: {error}")),
        };
        if let Err(fault) = outcome {
            let line: String = String::from_utf8_lossy(lines[index])
                .chars()
                .take(200)
                .collect();
            faults.push(format!("line {}: {fault}: {line}", index + 1));
        }
    }
    if faults.is_empty() {
        Ok(tally)
    } else {
        Err(faults)
    }
}

/// Checks a recording: a file of lines `{"id", "stdin_b64", "stdout_b64"}`, one for each run.
///
/// Returns the number of runs; the faults name their run.
pub(crate) fn check_recording(schemas: &Schemas, path: &Path) -> Result<usize, Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|error| vec![error.to_string()])?;
    let mut faults = Vec::new();
    let mut runs = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        runs += 1;
        if let Err(found) = check_run(schemas, line) {
            faults.extend(found);
        }
    }
    if faults.is_empty() {
        Ok(runs)
    } else {
        Err(faults)
    }
}

fn check_run(schemas: &Schemas, line: &str) -> Result<Tally, Vec<String>> {
    let run: Value = serde_json::from_str(line).map_err(|error| vec![error.to_string()])?;
    let id = run["id"].as_str().unwrap_or("a run without id");
    let bytes = |member: &str| {
        let decoded = run[member].as_str().and_then(base64);
        decoded.ok_or_else(|| vec![format!("{id}: {member} is not base64")])
    };
    let (stdin, mut stdout) = (bytes("stdin_b64")?, bytes("stdout_b64")?);
    // A run that ends in a signal may have been cut within a line.
    stdout.truncate(
        stdout
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1),
    );
    replies_of(schemas, &stdin, &stdout).map_err(|faults| {
        faults
            .iter()
            .map(|fault| format!("{id}: {fault}"))
            .collect()
    })
}

/// The bytes behind standard base64, padded or not.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for letter in text.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

impl Session {
    fn follow<'a>(stdin: &[u8], replies: impl Iterator<Item = &'a Value>) -> Self {
        let mut session = Self {
            served: replies.flat_map(elements).filter_map(served_id).collect(),
            revision: Some(NEWEST_HANDSHAKE),
            asked: HashMap::new(),
            seen: BTreeSet::from([NEWEST_HANDSHAKE, STATELESS]),
        };
        let stdin = stdin.strip_prefix("\u{feff}".as_bytes()).unwrap_or(stdin);
        for frame in stdin.split(|byte| *byte == b'\n') {
            if frame.len() <= FRAME_SIZE_MAX {
                session.read_frame(frame);
            }
        }
        session
    }

    fn read_frame(&mut self, frame: &[u8]) {
        match serde_json::from_slice(frame) {
            Ok(Value::Array(messages)) if self.revision.is_none_or(|it| it == BATCHING) => {
                for message in &messages {
                    self.read_message(message, true);
                }
            }
            Ok(message) => self.read_message(&message, false),
            // The server's parser may have read what this one could not.
            Err(_) if mentions_initialize(frame) => self.revision = None,
            Err(_) => {}
        }
    }

    fn read_message(&mut self, message: &Value, in_batch: bool) {
        let (Some(method), Some(id)) = (message["method"].as_str(), id_of(message)) else {
            return;
        };
        let handshake = method == "initialize" && !is_stateless(message);
        let revision = if is_stateless(message) {
            Some(STATELESS)
        } else if handshake {
            Some(agreed(message))
        } else {
            self.revision
        };
        if handshake && opens(message) && !in_batch && self.served.contains(&id) {
            self.revision = revision;
            self.seen.extend(revision);
        }
        self.asked.entry(id).or_default().push(Asked {
            revision,
            method: method.to_owned(),
        });
    }

    /// The elements of a batch are checked as the array first, then each by its request.
    fn check_line(
        &self,
        schemas: &Schemas,
        value: &Value,
        tally: &mut Tally,
    ) -> Result<(), String> {
        if value.is_array() {
            if !self.seen.contains(BATCHING) {
                return Err(format!("an array without {BATCHING}"));
            }
            schemas.check(BATCHING, None, value)?;
        }
        elements(value).try_for_each(|reply| self.check_reply(schemas, reply, tally))
    }

    fn check_reply(
        &self,
        schemas: &Schemas,
        reply: &Value,
        tally: &mut Tally,
    ) -> Result<(), String> {
        if reply.get("method").is_some() {
            tally.notifications += 1;
            return any(self
                .seen
                .iter()
                .map(|revision| schemas.check(revision, None, reply)));
        }
        let asked = id_of(reply).and_then(|id| self.asked.get(&id));
        let known = asked.is_some_and(|all| all.iter().all(|one| one.revision.is_some()));
        match (reply.get("error").is_some(), known) {
            (true, _) => tally.errors += 1,
            (false, true) => tally.results += 1,
            (false, false) => tally.envelopes += 1,
        }
        let Some(asked) = asked else {
            return schemas.check(NEWEST_HANDSHAKE, None, reply);
        };
        any(asked.iter().map(|one| match one.revision {
            Some(revision) => schemas.check(revision, Some(&one.method), reply),
            None => schemas.check(NEWEST_HANDSHAKE, None, reply),
        }))
    }
}

/// Whether any outcome is good; else the first fault.
fn any(outcomes: impl Iterator<Item = Result<(), String>>) -> Result<(), String> {
    let mut first = None;
    for outcome in outcomes {
        match outcome {
            Ok(()) => return Ok(()),
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    first.map_or(Ok(()), Err)
}

/// A line as its messages: the elements of a batch, or itself.
fn elements(line: &Value) -> std::slice::Iter<'_, Value> {
    line.as_array()
        .map_or(std::slice::from_ref(line), Vec::as_slice)
        .iter()
}

/// An id as its JSON text, so that `1` and `"1"` stay two.
fn id_of(message: &Value) -> Option<String> {
    message
        .get("id")
        .filter(|id| id.is_string() || id.is_number())
        .map(Value::to_string)
}

fn served_id(reply: &Value) -> Option<String> {
    reply.get("result").and_then(|_| id_of(reply))
}

/// Whether an `initialize` has what it needs. Its id alone tells too little of how it was answered:
/// the result may be that of another request with the same id.
fn opens(message: &Value) -> bool {
    let params = &message["params"];
    let client = &params["clientInfo"];
    params["protocolVersion"].is_string()
        && params["capabilities"].is_object()
        && client["name"].is_string()
        && client["version"].is_string()
}

/// A request claims the stateless revision by a key of its envelope, or by a method that only that
/// revision has. An `initialize` that names a version of its own is a handshake in any case.
fn is_stateless(message: &Value) -> bool {
    let params = &message["params"];
    let claimed = ["protocolVersion", "clientCapabilities", "clientInfo"]
        .iter()
        .any(|key| {
            params["_meta"]
                .get(format!("io.modelcontextprotocol/{key}"))
                .is_some()
        });
    match message["method"].as_str() {
        Some("initialize") => claimed && params.get("protocolVersion").is_none(),
        Some("server/discover" | "subscriptions/listen") => true,
        _ => claimed,
    }
}

/// The revision that the answer to an `initialize` has to name.
fn agreed(initialize: &Value) -> &'static str {
    let asked = &initialize["params"]["protocolVersion"];
    HANDSHAKE
        .into_iter()
        .find(|known| asked.as_str() == Some(*known))
        .unwrap_or(NEWEST_HANDSHAKE)
}

fn mentions_initialize(frame: &[u8]) -> bool {
    let needle = b"\"initialize\"";
    frame.windows(needle.len()).any(|window| window == needle)
}
