//! A message is classified as the rules of README say, and so is the envelope of a request.

use rocco::internals::mcp::envelope::Envelope;
use rocco::internals::wire::message::{Id, Message};

use super::naive::{self, Json, Members, all};
use super::parsed;
use super::parser::same;

/// What a message is, in plain values.
#[derive(Debug, PartialEq)]
pub enum Kind {
    Request(Json),
    Notification,
    Response,
    Invalid(Option<Json>),
}

pub fn body(data: &[u8]) {
    let Some(read) = naive::read(data) else {
        return;
    };
    let checked = parsed(data, b'}', |value| {
        let message = Message::from_value(value);
        assert_eq!(kind(&message), classify(&read.json));
        if let (Message::Request(request), Json::Object(members)) = (message, &read.json) {
            assert_eq!(Some(request.method), all(members, "method")[0].as_str());
            let params = all(members, "params");
            match (request.params, params.first()) {
                (None, None) => {}
                (Some(params), Some(json)) => same(params, json),
                (found, wanted) => panic!("{found:?} is not {wanted:?}"),
            }
            let envelope = Envelope::parse(&request);
            let found = envelope.map(|envelope| {
                envelope.map(|envelope| PROBES.map(|name| envelope.has_capability(name)))
            });
            let found = found.map_err(|error| error.code as i64);
            assert_eq!(found, envelope_of(request.method, params.first().copied()));
        }
    });
    assert!(checked.is_ok(), "JSON is not taken for JSON");
}

fn kind(message: &Message<'_>) -> Kind {
    match message {
        Message::Request(request) => Kind::Request(owned(request.id)),
        Message::Notification(_) => Kind::Notification,
        Message::Response => Kind::Response,
        Message::Invalid { id, fault } => {
            assert!(!fault.is_empty());
            Kind::Invalid(id.map(owned))
        }
    }
}

fn owned(id: Id<'_>) -> Json {
    match id {
        Id::String(text) => Json::String(text.to_owned()),
        Id::Unsigned(number) => Json::Unsigned(number),
        Id::Signed(number) => Json::Signed(number),
    }
}

/// The rules, each in a line or two.
pub fn classify(json: &Json) -> Kind {
    let Json::Object(members) = json else {
        return Kind::Invalid(None);
    };
    let (ids, methods) = (all(members, "id"), all(members, "method"));
    let answers = !all(members, "result").is_empty() || !all(members, "error").is_empty();
    let readable = ids.len() == 1 && ids[0].is_id();
    // An error never carries an id that may be one of the server's own making.
    let shown = (readable && !(answers && methods.is_empty())).then(|| ids[0].clone());
    let repeats = ["jsonrpc", "id", "method", "params"]
        .iter()
        .any(|name| all(members, name).len() > 1);
    if repeats || all(members, "jsonrpc") != [&Json::String("2.0".into())] {
        return Kind::Invalid(shown);
    }
    match methods.first() {
        Some(Json::String(_)) if readable => Kind::Request(ids[0].clone()),
        Some(Json::String(_)) if ids.is_empty() => Kind::Notification,
        None if answers && (readable || ids.is_empty() || ids == [&Json::Null]) => Kind::Response,
        _ => Kind::Invalid(shown),
    }
}

/// Capabilities that are asked for, one of them an extension.
const PROBES: [&str; 3] = ["roots", "sampling", "com.example/panels"];

const PREFIX: &str = "io.modelcontextprotocol/";
const LOG_LEVELS: &str = "debug info notice warning error critical alert emergency";

const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Which of the probed capabilities an envelope declares; none without an envelope.
fn envelope_of(method: &str, params: Option<&Json>) -> Result<Option<[bool; 3]>, i64> {
    let Some(Json::Object(params)) = params else {
        return Ok(None);
    };
    let (metas, versions) = (all(params, "_meta"), all(params, "protocolVersion"));
    if metas.len() > 1 || versions.len() > 1 {
        return Err(INVALID_PARAMS);
    }
    let Some(Json::Object(meta)) = metas.first() else {
        return Ok(None);
    };
    if method == "initialize" && !versions.is_empty() {
        return Ok(None);
    }
    let member = |name: &str| all(meta, &format!("{PREFIX}{name}"));
    let (version, capabilities) = (member("protocolVersion"), member("clientCapabilities"));
    let (client, level) = (member("clientInfo"), member("logLevel"));
    if [&version, &capabilities, &client, &level]
        .iter()
        .any(|found| found.len() > 1)
    {
        return Err(INVALID_PARAMS);
    }
    match version.first() {
        None if capabilities.is_empty() && client.is_empty() => return Ok(None),
        Some(Json::String(version)) if version == "2026-07-28" => {}
        Some(Json::String(_)) => return Err(UNSUPPORTED_VERSION),
        _ => return Err(INVALID_PARAMS),
    }
    let known = |level: &Json| {
        let level = level.as_str();
        level.is_some_and(|level| LOG_LEVELS.split(' ').any(|known| known == level))
    };
    match capabilities.first() {
        Some(Json::Object(capabilities)) if level.iter().all(|level| known(level)) => {
            Ok(Some(PROBES.map(|name| can(capabilities, name))))
        }
        _ => Err(INVALID_PARAMS),
    }
}

fn can(capabilities: &Members, name: &str) -> bool {
    let first = |members: &Members, name: &str| all(members, name).first().copied().cloned();
    let found = match (name.contains('/'), first(capabilities, "extensions")) {
        (false, _) => first(capabilities, name),
        (true, Some(Json::Object(extensions))) => first(&extensions, name),
        (true, _) => None,
    };
    matches!(found, Some(Json::Object(_)))
}
