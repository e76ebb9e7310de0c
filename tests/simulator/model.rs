//! The protocol as a table: what a line is owed, and the two things that a session remembers.

use rocco::internals::limits::{BATCH_MESSAGES_MAX, OWNED_ID_BYTES_MAX, SUBSCRIPTIONS_MAX};

use super::expect::{Expect, Id, Kind, NEWEST_HANDSHAKE, STATELESS};
use super::server::{CURSOR, FILL_BYTES_MAX, NEEDED, WORDLESS};
use super::text::{self, Members, is_array, is_bool, is_null};
use super::traffic::{BAD_TASK, GOOD_TASK};

const PARSE: i64 = -32700;
const INVALID: i64 = -32600;
const NOT_FOUND: i64 = -32601;
const PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NEEDS_CAPABILITY: i64 = -32021;
const UNKNOWN_VERSION: i64 = -32022;

const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const BATCHING: &str = "2025-03-26";

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const LOG_LEVELS: &str = "debug info notice warning error critical alert emergency";

/// All that a session remembers.
#[derive(Debug, Default)]
pub struct Model {
    agreed: Option<&'static str>,
    open: Vec<Id>,
}

/// A call with an id.
struct Request<'a> {
    id: Id,
    method: String,
    params: Option<&'a str>,
    in_batch: bool,
}

/// What becomes of a request: the code of an error, or what its result says in which revision.
type Answer = Result<(&'static str, Kind), i64>;

impl Model {
    /// What a line is owed, if anything.
    pub fn line(&mut self, line: &[u8]) -> Option<Expect> {
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            return None;
        }
        if !text::is_json(line) {
            return Some(Expect::error(None, PARSE));
        }
        let line = std::str::from_utf8(line)
            .expect("it is JSON")
            .trim_matches([' ', '\t', '\r']);
        if is_array(line) {
            self.batch(line)
        } else {
            self.message(line, false)
        }
    }

    /// What is owed when no further line will come: an end to each subscription.
    pub fn end(&mut self) -> Vec<Expect> {
        let ended = self.open.drain(..).map(|id| Expect::Result {
            id,
            revision: STATELESS,
            kind: Kind::Listen,
        });
        ended.collect()
    }

    fn batch(&mut self, line: &str) -> Option<Expect> {
        let messages = text::parts(line);
        let served = self.agreed == Some(BATCHING);
        if !served || messages.is_empty() || messages.len() > BATCH_MESSAGES_MAX {
            return Some(Expect::error(None, INVALID));
        }
        let owed = messages.into_iter().filter_map(|it| self.message(it, true));
        let owed: Vec<Expect> = owed.collect();
        (!owed.is_empty()).then_some(Expect::Batch(owed))
    }

    fn message(&mut self, text: &str, in_batch: bool) -> Option<Expect> {
        let invalid = |id| Some(Expect::error(id, INVALID));
        let Some(members) = Members::of(text) else {
            return invalid(None);
        };
        let (method, params) = (members.get("method"), members.get("params"));
        let answers = members.get("result").or(members.get("error")).is_some();
        let given = members.get("id");
        let id = given.and_then(Id::of);
        if members.repeats(&["id"]) {
            return invalid(None);
        }
        let broken = members.repeats(&["jsonrpc", "method", "params"])
            || members.get("jsonrpc").and_then(text::string).as_deref() != Some("2.0");
        match (method, answers) {
            // An answer's id is of the server's own making, and is never sent back.
            (None, true) if broken => invalid(None),
            (None, true) if given.is_none_or(is_null) || id.is_some() => None,
            (None, true) => invalid(None),
            (None, false) => invalid(id),
            (Some(_), _) if broken => invalid(id),
            (Some(method), _) => match (text::string(method), id) {
                (None, id) => invalid(id),
                (Some(method), None) if given.is_none() => {
                    self.notification(&method, params);
                    None
                }
                (Some(_), None) => invalid(None),
                (Some(method), Some(id)) => Some(self.request(Request {
                    id,
                    method,
                    params,
                    in_batch,
                })),
            },
        }
    }

    fn notification(&mut self, method: &str, params: Option<&str>) {
        let params = params.and_then(Members::of);
        if method == "notifications/cancelled"
            && let Some(params) = params
            && !params.repeats(&["requestId"])
            && let Some(id) = params.get("requestId").and_then(Id::of)
        {
            self.open.retain(|open| *open != id);
        }
    }

    fn request(&mut self, request: Request<'_>) -> Expect {
        let answer = if self.open.contains(&request.id) {
            Err(INVALID)
        } else {
            match envelope(&request) {
                Err(code) => Err(code),
                Ok(None) => self.handshake(&request),
                Ok(Some(_)) if request.in_batch => Err(INVALID),
                Ok(Some(_)) if request.method == "subscriptions/listen" => {
                    match self.listen(&request) {
                        Ok(()) => return Expect::Acknowledged { id: request.id },
                        Err(code) => Err(code),
                    }
                }
                Ok(Some(capabilities)) => stateless(&request, &capabilities),
            }
        };
        match answer {
            Ok((revision, kind)) => Expect::Result {
                id: request.id,
                revision,
                kind,
            },
            Err(code) => Expect::error(Some(request.id), code),
        }
    }

    fn handshake(&mut self, request: &Request<'_>) -> Answer {
        match (request.method.as_str(), self.agreed) {
            ("initialize", _) if request.in_batch => Err(INVALID),
            ("initialize", _) => {
                let agreed = initialize(request.params)?;
                self.agreed = Some(agreed);
                Ok((agreed, Kind::Initialize))
            }
            ("ping", _) => {
                named(request.params)?;
                Ok((self.agreed.unwrap_or(NEWEST_HANDSHAKE), Kind::Ping))
            }
            ("server/discover" | "subscriptions/listen", _) => Err(PARAMS),
            (_, None) => Err(INVALID),
            (_, Some(agreed)) => Ok((agreed, served(request, None)?)),
        }
    }

    fn listen(&mut self, request: &Request<'_>) -> Result<(), i64> {
        let params = named(request.params)?.ok_or(PARAMS)?;
        let filter = params.get("notifications").and_then(Members::of);
        for (name, value) in filter.ok_or(PARAMS)?.iter() {
            let fits = match name {
                "toolsListChanged" | "promptsListChanged" | "resourcesListChanged" => {
                    is_bool(value)
                }
                "resourceSubscriptions" => is_array(value),
                _ => true,
            };
            fits.then_some(()).ok_or(PARAMS)?;
        }
        if self.open.len() == SUBSCRIPTIONS_MAX {
            return Err(INTERNAL);
        }
        if matches!(&request.id, Id::Text(text) if text.len() > OWNED_ID_BYTES_MAX) {
            return Err(INVALID);
        }
        self.open.push(request.id.clone());
        Ok(())
    }
}

/// The parameters by name; `null` counts as none.
fn named(params: Option<&str>) -> Result<Option<Members<'_>>, i64> {
    match params.filter(|params| !is_null(params)) {
        None => Ok(None),
        Some(params) => Members::of(params).map(Some).ok_or(PARAMS),
    }
}

/// The client's capabilities as the request's envelope has them, if it has one.
fn envelope<'a>(request: &Request<'a>) -> Result<Option<Members<'a>>, i64> {
    let Some(params) = request.params.and_then(Members::of) else {
        return Ok(None);
    };
    if params.repeats(&["_meta", "protocolVersion"]) {
        return Err(PARAMS);
    }
    let handshake = request.method == "initialize" && params.get("protocolVersion").is_some();
    let Some(meta) = params.get("_meta").and_then(Members::of) else {
        return Ok(None);
    };
    if handshake {
        return Ok(None);
    }
    if meta.repeats(&[VERSION, CAPABILITIES, CLIENT, LOG_LEVEL]) {
        return Err(PARAMS);
    }
    let version = match meta.get(VERSION) {
        None if meta.get(CAPABILITIES).or(meta.get(CLIENT)).is_none() => return Ok(None),
        version => version.and_then(text::string).ok_or(PARAMS)?,
    };
    if version != STATELESS {
        return Err(UNKNOWN_VERSION);
    }
    let capabilities = meta.get(CAPABILITIES).and_then(Members::of);
    let capabilities = capabilities.ok_or(PARAMS)?;
    let level = meta.get(LOG_LEVEL).map(text::string);
    let known = |level: Option<String>| {
        level.is_some_and(|level| LOG_LEVELS.split(' ').any(|known| known == level))
    };
    if level.is_some_and(|level| !known(level)) {
        return Err(PARAMS);
    }
    Ok(Some(capabilities))
}

fn initialize(params: Option<&str>) -> Result<&'static str, i64> {
    let params = named(params)?.ok_or(PARAMS)?;
    if params.repeats(&["protocolVersion", "capabilities", "clientInfo"]) {
        return Err(PARAMS);
    }
    let version = params.get("protocolVersion").and_then(text::string);
    let version = version.ok_or(PARAMS)?;
    params
        .get("capabilities")
        .and_then(Members::of)
        .ok_or(PARAMS)?;
    let client = params
        .get("clientInfo")
        .and_then(Members::of)
        .ok_or(PARAMS)?;
    if client.repeats(&["name", "version"]) {
        return Err(PARAMS);
    }
    for name in ["name", "version"] {
        client.get(name).and_then(text::string).ok_or(PARAMS)?;
    }
    let known = HANDSHAKES.into_iter().find(|known| *known == version);
    Ok(known.unwrap_or(NEWEST_HANDSHAKE))
}

fn stateless(request: &Request<'_>, capabilities: &Members<'_>) -> Answer {
    let kind = match request.method.as_str() {
        "server/discover" => Kind::Discover,
        "initialize" => return Err(NOT_FOUND),
        _ => served(request, Some(capabilities))?,
    };
    Ok((STATELESS, kind))
}

/// What both eras have.
fn served(request: &Request<'_>, capabilities: Option<&Members<'_>>) -> Result<Kind, i64> {
    match request.method.as_str() {
        "tools/list" => {
            let params = named(request.params)?;
            if params.as_ref().is_some_and(|it| it.repeats(&["cursor"])) {
                return Err(PARAMS);
            }
            let cursor = params.and_then(|params| params.get("cursor"));
            match cursor.filter(|cursor| !is_null(cursor)) {
                None => Ok(Kind::List(0)),
                Some(cursor) if text::string(cursor).as_deref() == Some(CURSOR) => {
                    Ok(Kind::List(1))
                }
                Some(_) => Err(PARAMS),
            }
        }
        "tools/call" => call(request.params, capabilities),
        _ => Err(NOT_FOUND),
    }
}

fn call(params: Option<&str>, capabilities: Option<&Members<'_>>) -> Result<Kind, i64> {
    let params = named(params)?.ok_or(PARAMS)?;
    if params.repeats(&["name", "arguments"]) {
        return Err(PARAMS);
    }
    let name = params.get("name").and_then(text::string).ok_or(PARAMS)?;
    let arguments = params.get("arguments").filter(|it| !is_null(it));
    let arguments = arguments.unwrap_or("{}");
    let members = Members::of(arguments).ok_or(PARAMS)?;
    match name.as_str() {
        "larry_submit_task" => Ok(Kind::Task(match arguments {
            GOOD_TASK => Some("executor_not_connected"),
            "{}" | BAD_TASK => Some("invalid_arguments"),
            _ => None,
        })),
        "echo" => {
            let text = members.get("text").and_then(text::string);
            Ok(Kind::Text(text.unwrap_or(WORDLESS.to_owned())))
        }
        "fill" => {
            let bytes = members.get("bytes").and_then(|bytes| bytes.parse().ok());
            Ok(Kind::Fill(bytes.unwrap_or(0).min(FILL_BYTES_MAX)))
        }
        "needy" => match capabilities {
            Some(able) if able.get(NEEDED).and_then(Members::of).is_none() => Err(NEEDS_CAPABILITY),
            _ => Ok(Kind::Text(WORDLESS.to_owned())),
        },
        _ => Err(PARAMS),
    }
}
