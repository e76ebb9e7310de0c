//! Random sessions of all revisions, valid and broken, against a model so plain that it can be
//! checked by reading: a table of what each request gets, and two words of state.

mod support;

use proptest::prelude::*;
use rocco::internals::mcp::revision::REVISIONS;
use rocco::internals::task::submit::SubmitTask;
use rocco::{Engine, Info, Server};

/// What is sent, but for its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Initialize(&'static str),
    InitializeWithoutClient,
    Ping,
    List,
    ListAtBogusCursor,
    CallWell,
    CallBadly,
    CallUnknown,
    CallNameless,
    Discover,
    Listen,
    ListenWithoutFilter,
    Nonsense,
    ParamsArray,
    Cancelled,
    UnknownNotification,
    Response,
    Garbage,
    NoMessage,
    WrongVersion,
    Batch,
}

/// How a request names its revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Envelope {
    Absent,
    Progress,
    Good,
    Unknown,
    Handshake,
    NoCapabilities,
    NoVersion,
}

const VERSIONS: [&str; 6] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    "1999-01-01",
];

const VERSION: &str = "\"io.modelcontextprotocol/protocolVersion\":";
const CAPABILITIES: &str = "\"io.modelcontextprotocol/clientCapabilities\":{}";

impl Envelope {
    fn meta(self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Progress => Some("\"progressToken\":1".into()),
            Self::Good => Some(format!("{VERSION}\"2026-07-28\",{CAPABILITIES}")),
            Self::Unknown => Some(format!("{VERSION}\"2030-01-01\",{CAPABILITIES}")),
            Self::Handshake => Some(format!("{VERSION}\"2025-11-25\",{CAPABILITIES}")),
            Self::NoCapabilities => Some(format!("{VERSION}\"2026-07-28\"")),
            Self::NoVersion => Some(CAPABILITIES.into()),
        }
    }
}

const GOOD_CALL: &str =
    r#""name":"larry_submit_task","arguments":{"goal":"g","repo":"/r","acceptance":["a"]}"#;
const BAD_CALL: &str = r#""name":"larry_submit_task","arguments":{"goal":""}"#;

impl Kind {
    fn method(self) -> &'static str {
        match self {
            Self::Initialize(_) | Self::InitializeWithoutClient => "initialize",
            Self::Ping | Self::ParamsArray => "ping",
            Self::List | Self::ListAtBogusCursor => "tools/list",
            Self::CallWell | Self::CallBadly | Self::CallUnknown | Self::CallNameless => {
                "tools/call"
            }
            Self::Discover => "server/discover",
            Self::Listen | Self::ListenWithoutFilter => "subscriptions/listen",
            Self::Cancelled => "notifications/cancelled",
            Self::UnknownNotification => "notifications/nonsense",
            _ => "nonsense",
        }
    }

    fn params(self, id: &str) -> String {
        match self {
            Self::Initialize(version) => format!(
                r#""protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"0"}}"#
            ),
            Self::InitializeWithoutClient => {
                r#""protocolVersion":"2025-11-25","capabilities":{}"#.into()
            }
            Self::ListAtBogusCursor => r#""cursor":"bogus""#.into(),
            Self::CallWell => GOOD_CALL.into(),
            Self::CallBadly => BAD_CALL.into(),
            Self::CallUnknown => r#""name":"nope""#.into(),
            Self::Listen => r#""notifications":{}"#.into(),
            Self::Cancelled => format!("\"requestId\":{id}"),
            _ => String::new(),
        }
    }

    fn line(self, id: &str, envelope: Envelope) -> String {
        let method = self.method();
        match self {
            Self::Garbage => return "{\"jsonrpc\":".into(),
            Self::NoMessage => return format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}"),
            Self::WrongVersion => {
                return format!("{{\"jsonrpc\":\"1.0\",\"id\":{id},\"method\":\"ping\"}}");
            }
            Self::Response => {
                return format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
            }
            Self::Batch => {
                let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
                return format!("[{ping},{{\"jsonrpc\":\"2.0\",\"method\":\"x\"}},0]");
            }
            Self::ParamsArray => {
                return format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":[]}}"
                );
            }
            _ => {}
        }
        let meta = envelope.meta().map(|meta| format!("\"_meta\":{{{meta}}}"));
        let members: Vec<String> = [Some(self.params(id)), meta]
            .into_iter()
            .flatten()
            .filter(|members| !members.is_empty())
            .collect();
        let id = match self {
            Self::Cancelled | Self::UnknownNotification => String::new(),
            _ => format!("\"id\":{id},"),
        };
        let params = members.join(",");
        format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{method}\",\"params\":{{{params}}}}}")
    }
}

/// All that a session remembers.
#[derive(Default)]
struct Model {
    agreed: Option<&'static str>,
    open: Vec<String>,
}

type Reply = Result<String, (i32, &'static str, &'static str)>;

const NOT_FOUND: i32 = -32601;
const PARAMS: i32 = -32602;
const INVALID: i32 = -32600;

impl Model {
    /// The line that comes back, if one does.
    fn predict(
        &mut self,
        kind: Kind,
        envelope: Envelope,
        id: &str,
        bodies: &Bodies,
    ) -> Option<String> {
        let bare = |code: i32, message: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}"
            )
        };
        let reply = match kind {
            Kind::Response | Kind::UnknownNotification => return None,
            Kind::Cancelled => {
                self.open.retain(|open| open != id);
                return None;
            }
            Kind::Garbage => return Some(bare(-32700, "the line is not JSON")),
            Kind::NoMessage => Err((INVALID, "\\\"method\\\" is missing", "")),
            Kind::WrongVersion => Err((INVALID, "\\\"jsonrpc\\\" must be \\\"2.0\\\"", "")),
            Kind::Batch if self.agreed == Some("2025-03-26") => {
                let ping = self
                    .predict(Kind::Ping, Envelope::Absent, id, bodies)
                    .unwrap();
                let zero = bare(INVALID, "a message must be a JSON object");
                return Some(format!("[{ping},{zero}]"));
            }
            Kind::Batch => return Some(bare(INVALID, "a batch is not served by this revision")),
            _ if self.open.iter().any(|open| open == id) => {
                Err((INVALID, "the id is that of an open subscription", ""))
            }
            Kind::ParamsArray => Err((PARAMS, "params must be an object", "")),
            Kind::Initialize(version) => Ok(self.initialize(version, bodies)),
            Kind::InitializeWithoutClient => Err((PARAMS, "clientInfo must be an object", "")),
            _ => match envelope {
                Envelope::Absent | Envelope::Progress => self.session(kind, bodies),
                Envelope::Good if kind == Kind::Listen => {
                    self.open.push(id.to_owned());
                    return Some(format!(
                        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\
                         \"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}},\
                         \"notifications\":{{}}}}}}"
                    ));
                }
                Envelope::Good => stateless(kind, bodies),
                Envelope::Unknown => Err((-32022, UNSERVED, UNKNOWN)),
                Envelope::Handshake => Err((-32022, UNSERVED, UNSHAKEN)),
                Envelope::NoCapabilities => Err((PARAMS, NO_CAPABILITIES, "")),
                Envelope::NoVersion => Err((PARAMS, NO_VERSION, "")),
            },
        };
        Some(match reply {
            Ok(body) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{body}}}"),
            Err((code, message, data)) => format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\
                 \"message\":\"{message}\"{data}}}}}"
            ),
        })
    }

    fn initialize(&mut self, version: &str, bodies: &Bodies) -> String {
        let agreed = match version {
            "2024-11-05" => "2024-11-05",
            "2025-03-26" => "2025-03-26",
            "2025-06-18" => "2025-06-18",
            _ => "2025-11-25",
        };
        self.agreed = Some(agreed);
        bodies.of(agreed).opening.clone()
    }

    /// A request without an envelope.
    fn session(&self, kind: Kind, bodies: &Bodies) -> Reply {
        match (kind, self.agreed) {
            (Kind::Ping, _) => Ok("{}".into()),
            (Kind::Discover | Kind::Listen | Kind::ListenWithoutFilter, _) => {
                Err((PARAMS, "the request needs an envelope in params._meta", ""))
            }
            (_, None) => Err((
                INVALID,
                "the session is not open: send initialize first",
                "",
            )),
            (_, Some(agreed)) => served(kind, bodies.of(agreed)),
        }
    }
}

const UNSERVED: &str = "the protocol version is not served";
const UNKNOWN: &str = r#","data":{"supported":["2026-07-28"],"requested":"2030-01-01"}"#;
const UNSHAKEN: &str = r#","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}"#;
const NO_CAPABILITIES: &str = "the envelope's clientCapabilities must be an object";
const NO_VERSION: &str = "the envelope's protocolVersion must be a string";

/// A request with an envelope.
fn stateless(kind: Kind, bodies: &Bodies) -> Reply {
    match kind {
        Kind::Ping => Err((NOT_FOUND, "method not found: ping", "")),
        Kind::Discover => Ok(bodies.of("2026-07-28").opening.clone()),
        Kind::ListenWithoutFilter => Err((PARAMS, "notifications must be an object", "")),
        _ => served(kind, bodies.of("2026-07-28")),
    }
}

/// What both eras have.
fn served(kind: Kind, body: &Body) -> Reply {
    match kind {
        Kind::List => Ok(body.list.clone()),
        Kind::ListAtBogusCursor => Err((PARAMS, "cursor is not one that was handed out", "")),
        Kind::CallWell => Ok(body.good.clone()),
        Kind::CallBadly => Ok(body.bad.clone()),
        Kind::CallUnknown => Err((PARAMS, "unknown tool: nope", "")),
        Kind::CallNameless => Err((PARAMS, "name must be a string", "")),
        _ => Err((NOT_FOUND, "method not found: nonsense", "")),
    }
}

/// The results of one revision, as a session of its own gives them. That they are right is for the
/// transcripts and the schemas to say; here they have to be the same in every neighbourhood.
struct Body {
    opening: String,
    list: String,
    good: String,
    bad: String,
}

struct Bodies(Vec<(&'static str, Body)>);

impl Bodies {
    fn new() -> Self {
        let revisions = REVISIONS.iter().map(|revision| {
            let (envelope, first) = if revision.stateless {
                (Envelope::Good, Kind::Discover)
            } else {
                (Envelope::Absent, Kind::Initialize(revision.version))
            };
            let mut engine = engine();
            let mut result = |kind: Kind| {
                let line = say(&mut engine, &kind.line("1", envelope));
                let body = line.strip_prefix("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
                body.unwrap().strip_suffix("}\n").unwrap().to_owned()
            };
            let body = Body {
                opening: result(first),
                list: result(Kind::List),
                good: result(Kind::CallWell),
                bad: result(Kind::CallBadly),
            };
            (revision.version, body)
        });
        Self(revisions.collect())
    }

    fn of(&self, version: &str) -> &Body {
        let found = self.0.iter().find(|(known, _)| *known == version);
        &found.unwrap().1
    }
}

fn engine() -> Engine {
    Server::new(Info::new("rocco", "0").title("R"))
        .tool(SubmitTask::new())
        .into_engine()
}

fn say(engine: &mut Engine, line: &str) -> String {
    let line = format!("{line}\n");
    engine.space()[..line.len()].copy_from_slice(line.as_bytes());
    engine.fill(line.len());
    engine.serve();
    let said = String::from_utf8(engine.pending().to_vec()).unwrap();
    engine.consume(said.len());
    said
}

fn kinds() -> impl Strategy<Value = Kind> {
    use Kind::*;
    prop_oneof![
        3 => prop::sample::select(VERSIONS.to_vec()).prop_map(Initialize),
        20 => prop::sample::select(vec![
            InitializeWithoutClient, Ping, List, ListAtBogusCursor, CallWell, CallBadly,
            CallUnknown, CallNameless, Discover, Listen, ListenWithoutFilter, Nonsense,
            ParamsArray, Cancelled, UnknownNotification, Response, Garbage, NoMessage,
            WrongVersion, Batch,
        ]),
    ]
}

fn envelopes() -> impl Strategy<Value = Envelope> {
    use Envelope::*;
    prop_oneof![
        4 => Just(Absent),
        4 => Just(Good),
        1 => prop::sample::select(vec![Progress, Unknown, Handshake, NoCapabilities, NoVersion]),
    ]
}

const IDS: [&str; 7] = [
    "0",
    "1",
    "-1",
    "\"1\"",
    "\"\"",
    "18446744073709551615",
    "\"a\\\"b\\n\"",
];

proptest! {
    #![proptest_config(support::cases::config(1024))]

    #[test]
    fn every_byte_is_as_the_model_predicts(
        session in prop::collection::vec(
            (kinds(), envelopes(), prop::sample::select(IDS.to_vec())),
            1..60,
        ),
    ) {
        let bodies = Bodies::new();
        let (mut engine, mut model) = (engine(), Model::default());
        for (kind, envelope, id) in session {
            let line = kind.line(id, envelope);
            let wanted = model.predict(kind, envelope, id, &bodies);
            let wanted = wanted.map(|line| line + "\n").unwrap_or_default();
            prop_assert_eq!(say(&mut engine, &line), wanted, "to {}", line);
        }
    }
}
