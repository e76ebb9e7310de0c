//! A whole session: whatever the bytes, every line that comes out is one that the protocol allows,
//! each request gets its one reply, and how the input is cut does not matter.

use rocco::internals::limits::{FRAME_BYTES_MAX, SUBSCRIPTIONS_MAX};
use rocco::internals::task::submit::SubmitTask;
use rocco::{Engine, Info, Server, ToolSpec};
use serde_json::Value;

use super::Dice;
use super::framer::split;
use super::message::{Kind, classify};
use super::naive::{self, Json, Members, all};

pub fn body(data: &[u8]) {
    let whole = said(&[data]);
    let pieces = Dice::of(data).pieces(data, 1 + data.len() / 4);
    assert!(
        said(&pieces) == whole,
        "the same bytes in pieces give another output"
    );
    line_by_line(data, &whole);
}

/// The server of the program, and two tools that send back what they got.
fn engine() -> Engine {
    let spec = |name| ToolSpec::new(name, "Says it again.", r#"{"type":"object"}"#);
    Server::new(Info::new("rocco", "0").title("R"))
        .tool(SubmitTask::new())
        .tool_fn(spec("echo"), |call, reply| {
            let text = call.arguments.get("text").and_then(|text| text.as_str());
            reply.text(text.unwrap_or("nothing"))
        })
        .tool_fn(
            spec("names").needs_client_capability("roots"),
            |call, reply| {
                reply.structured(|object| {
                    for (name, value) in call.arguments.iter() {
                        object.string(name, value.type_name());
                    }
                })
            },
        )
        .page_size(2)
        .into_engine()
}

/// All that a session says to bytes that come in pieces, and to their end.
fn said(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut engine, mut said) = (engine(), Vec::new());
    for piece in pieces {
        feed(&mut engine, piece, &mut said);
    }
    engine.end_of_input();
    drain(&mut engine, &mut said);
    assert!(engine.is_drained());
    said
}

fn feed(engine: &mut Engine, mut piece: &[u8], said: &mut Vec<u8>) {
    while !piece.is_empty() {
        let space = engine.space();
        let count = piece.len().min(space.len());
        assert!(count > 0, "an engine that is read has room");
        space[..count].copy_from_slice(&piece[..count]);
        engine.fill(count);
        piece = &piece[count..];
        drain(engine, said);
    }
}

fn drain(engine: &mut Engine, said: &mut Vec<u8>) {
    while engine.can_serve() {
        engine.serve();
        said.extend_from_slice(engine.pending());
        engine.consume(engine.pending().len());
    }
}

/// Each line of input alone, with what is said to it; last the end of input, as an empty line. A
/// line over the bound is left out.
pub fn exchanges(data: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut engine, mut exchanges) = (engine(), Vec::new());
    for (index, line) in split(data).into_iter().enumerate() {
        let Some(line) = line else { continue };
        // The split has dropped a mark, and a second one would count as the first.
        let mark: &[u8] = if index == 0 { b"\xEF\xBB\xBF" } else { b"" };
        let mut said = Vec::new();
        feed(&mut engine, &[mark, &line, b"\n"].concat(), &mut said);
        exchanges.push((line, said));
    }
    let mut said = Vec::new();
    engine.end_of_input();
    drain(&mut engine, &mut said);
    exchanges.push((Vec::new(), said));
    exchanges
}

/// Each reply is one that its line may get, and together they are what came out at once.
fn line_by_line(data: &[u8], whole: &[u8]) {
    let (mut exchanges, mut open, mut all_said) = (exchanges(data), Vec::new(), Vec::new());
    let (_, last) = exchanges.pop().expect("the end is always there");
    for (line, said) in exchanges {
        answers(&line, &said, &mut open);
        assert!(open.len() <= SUBSCRIPTIONS_MAX);
        all_said.extend(said);
    }
    let closed: Vec<Json> = lines(&last).map(|line| shape(line).id()).collect();
    assert_eq!(closed, open, "the end of input ends what is open");
    all_said.extend(last);
    let oversized = split(data).iter().any(Option::is_none);
    assert!(
        oversized || all_said == whole,
        "line by line gives another output"
    );
}

fn lines(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    assert!(
        said.is_empty() || said.ends_with(b"\n"),
        "a line has no end"
    );
    let ended = said.strip_suffix(b"\n").unwrap_or(said);
    let lines = ended.split(|&byte| byte == b'\n');
    lines.take(if said.is_empty() { 0 } else { usize::MAX })
}

/// What a line of the server is.
#[derive(Debug, PartialEq)]
enum Said {
    Result(Json),
    Error(Option<Json>, i64),
    Acknowledged(Json),
    Batch(Vec<Said>),
}

impl Said {
    fn id(self) -> Json {
        match self {
            Self::Result(id) => id,
            other => panic!("{other:?} is no result"),
        }
    }
}

/// Holds what is said to one line against what that line is. `open` is what is subscribed to.
fn answers(line: &[u8], said: &[u8], open: &mut Vec<Json>) {
    let mut said: Vec<Said> = lines(said).map(shape).collect();
    assert!(said.len() <= 1, "more than one line to one: {said:?}");
    if line.iter().all(|byte| b" \t\r".contains(byte)) {
        assert_eq!(said, []);
        return;
    }
    let said = said.pop();
    match naive::read(line).map(|read| read.json) {
        None => assert_eq!(said, Some(Said::Error(None, -32700))),
        Some(Json::Array(batch)) => match said {
            Some(Said::Batch(replies)) => batch_answers(&batch, replies, open),
            Some(said) => assert_eq!(said, Said::Error(None, -32600)),
            None => batch_answers(&batch, Vec::new(), open),
        },
        Some(json) => message_answers(&json, said, open),
    }
}

fn batch_answers(batch: &[Json], replies: Vec<Said>, open: &mut Vec<Json>) {
    let mut replies = replies.into_iter();
    for message in batch {
        let silent = matches!(classify(message), Kind::Notification | Kind::Response);
        let reply = if silent { None } else { replies.next() };
        message_answers(message, reply, open);
    }
    assert_eq!(replies.next(), None);
}

fn message_answers(message: &Json, said: Option<Said>, open: &mut Vec<Json>) {
    match (classify(message), said) {
        (Kind::Notification, None) => cancel(message, open),
        (Kind::Response, None) => {}
        (Kind::Invalid(id), Some(said)) => assert_eq!(said, Said::Error(id, -32600)),
        (Kind::Request(id), Some(Said::Result(other))) => assert_eq!(id, other),
        (Kind::Request(id), Some(Said::Error(other, code))) => {
            assert_eq!(Some(id), other);
            assert_ne!(code, -32700);
        }
        (Kind::Request(id), Some(Said::Acknowledged(other))) => {
            assert_eq!(id, other);
            assert!(!open.contains(&id), "an id is open already");
            open.push(id);
        }
        (kind, said) => panic!("{said:?} to {kind:?}"),
    }
}

/// A cancellation with one id closes what has it.
fn cancel(message: &Json, open: &mut Vec<Json>) {
    let members = message.as_object().expect("a notification is an object");
    let named = all(members, "method")[0].as_str() == Some("notifications/cancelled");
    let params = all(members, "params")
        .first()
        .and_then(|params| params.as_object());
    if let (true, Some(params)) = (named, params)
        && let [id] = all(params, "requestId")[..]
    {
        open.retain(|open| open != id);
    }
}

const CODES: [i64; 7] = [-32700, -32600, -32601, -32602, -32603, -32021, -32022];

/// A line of the server, which must have one of the shapes that JSON-RPC and MCP allow.
fn shape(line: &[u8]) -> Said {
    assert!(line.len() <= 8 * FRAME_BYTES_MAX);
    let serde = serde_json::from_slice::<Value>(line);
    assert!(serde.is_ok(), "{} is not JSON", line.escape_ascii());
    match naive::read(line).expect("both readers agree").json {
        Json::Array(replies) => {
            assert!(!replies.is_empty(), "an empty batch");
            let said: Vec<Said> = replies.iter().map(one_shape).collect();
            assert!(
                !said
                    .iter()
                    .any(|said| matches!(said, Said::Acknowledged(_)))
            );
            Said::Batch(said)
        }
        one => one_shape(&one),
    }
}

fn one_shape(reply: &Json) -> Said {
    let members = reply.as_object().expect("a reply is an object");
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(members[0], ("jsonrpc".into(), Json::String("2.0".into())));
    let id = all(members, "id").first().map(|id| (*id).clone());
    assert!(id.iter().all(Json::is_id), "{id:?} is no id");
    match names[1..] {
        ["id", "result"] => {
            assert!(members[2].1.as_object().is_some(), "a result is an object");
            Said::Result(id.expect("it is named"))
        }
        ["error"] | ["id", "error"] => Said::Error(id, error_code(all(members, "error")[0])),
        ["method", "params"] => acknowledged(members),
        _ => panic!("{names:?} are not the members of a reply"),
    }
}

fn error_code(error: &Json) -> i64 {
    let members = error.as_object().expect("an error is an object");
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert!(matches!(
        names[..],
        ["code", "message"] | ["code", "message", "data"]
    ));
    match members[..2] {
        [(_, Json::Signed(code)), (_, Json::String(ref message))] => {
            assert!(CODES.contains(&code) && !message.is_empty());
            assert!(!message.contains(char::is_control), "{message:?}");
            code
        }
        ref other => panic!("{other:?} are not of their types"),
    }
}

/// The one notification that is ever sent.
fn acknowledged(members: &Members) -> Said {
    let method = "notifications/subscriptions/acknowledged";
    assert_eq!(members[1].1.as_str(), Some(method));
    let params = members[2].1.as_object().expect("params are an object");
    let meta = all(params, "_meta")[0]
        .as_object()
        .expect("there is metadata");
    let id = all(meta, "io.modelcontextprotocol/subscriptionId")[0];
    assert!(id.is_id());
    Said::Acknowledged(id.clone())
}
