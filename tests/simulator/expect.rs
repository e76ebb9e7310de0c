//! What one line is owed, and whether a reply is that.

use rocco::internals::limits::RESULTS_BYTES_MAX;
use serde_json::Value;

use super::schemas;
use super::server::{CURSOR, TOOLS};
use super::text::{self, Members};

/// What is wrong, in words.
pub type Fault = String;

pub const STATELESS: &str = "2026-07-28";
pub const NEWEST_HANDSHAKE: &str = "2025-11-25";
const BATCHING: &str = "2025-03-26";

/// An id: its text unescaped, or its digits as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Id {
    Text(String),
    Digits(String),
}

impl Id {
    /// The id that a JSON text is: a string, or an integer of 64 bits with or without a sign.
    pub fn of(value: &str) -> Option<Self> {
        let fits = value.parse::<u64>().is_ok() || value.parse::<i64>().is_ok();
        match text::string(value) {
            Some(text) => Some(Self::Text(text)),
            None => fits.then(|| Self::Digits(value.to_owned())),
        }
    }
}

/// What a line is owed.
#[derive(Debug, Clone)]
pub enum Expect {
    Error {
        id: Option<Id>,
        code: i64,
    },
    Result {
        id: Id,
        revision: &'static str,
        kind: Kind,
    },
    /// The notification that a subscription is open.
    Acknowledged {
        id: Id,
    },
    Batch(Vec<Expect>),
}

/// What a result has to say.
#[derive(Debug, Clone)]
pub enum Kind {
    Initialize,
    Ping,
    /// Which page.
    List(usize),
    /// Which error, if that is known.
    Task(Option<&'static str>),
    /// Which text.
    Text(String),
    /// How many bytes.
    Fill(usize),
    Discover,
    /// The end of a subscription.
    Listen,
}

impl Expect {
    pub fn error(id: Option<Id>, code: i64) -> Self {
        Self::Error { id, code }
    }

    /// Holds a reply, without its LF, against what is owed.
    pub fn check(&self, line: &[u8], validates: bool) -> Result<(), Fault> {
        let value: Value =
            serde_json::from_slice(line).map_err(|error| format!("no JSON: {error}"))?;
        let line = std::str::from_utf8(line).expect("serde_json has read it");
        let Self::Batch(owed) = self else {
            return self.check_one(line, &value, line.len(), validates);
        };
        let replies = value.as_array().ok_or("no array")?;
        if replies.len() != owed.len() {
            return Err(format!("{} replies, not {}", replies.len(), owed.len()));
        }
        if validates {
            schemas::check(BATCHING, None, &value)?;
        }
        for ((owed, text), value) in owed.iter().zip(text::parts(line)).zip(replies) {
            owed.check_one(text, value, line.len(), validates)?;
        }
        Ok(())
    }

    fn check_one(
        &self,
        text: &str,
        value: &Value,
        line_bytes: usize,
        validates: bool,
    ) -> Result<(), Fault> {
        let members = Members::of(text).ok_or("no object")?;
        demand(members.get("jsonrpc") == Some("\"2.0\""), "jsonrpc")?;
        let id = members.get("id").map(|id| Id::of(id).ok_or("no id"));
        let id = id.transpose()?;
        let mut revision = NEWEST_HANDSHAKE;
        let mut method = None;
        match self {
            Self::Error { id: owed, code } => {
                demand(id == *owed, "the id")?;
                demand(value["error"]["code"] == *code, "the code")?;
                if matches!(code, -32022 | -32021) {
                    revision = STATELESS;
                }
            }
            Self::Result { id: owed, kind, .. } if value.get("error").is_some() => {
                demand(id.as_ref() == Some(owed), "the id")?;
                demand(value["error"]["code"] == -32603, "an error")?;
                let bytes = line_bytes + kind.bytes_max();
                demand(bytes >= RESULTS_BYTES_MAX, "an error, though it fits")?;
            }
            Self::Result {
                id: owed,
                revision: spoken,
                kind,
            } => {
                demand(id.as_ref() == Some(owed), "the id")?;
                (revision, method) = (spoken, Some(kind.method()));
                kind.check(&value["result"], spoken)?;
            }
            Self::Acknowledged { id: owed } => {
                demand(id.is_none(), "an id")?;
                let meta = Members::of(members.get("params").ok_or("no params")?)
                    .and_then(|params| Members::of(params.get("_meta")?))
                    .ok_or("no _meta")?;
                let echoed = meta.get("io.modelcontextprotocol/subscriptionId");
                demand(echoed.and_then(Id::of).as_ref() == Some(owed), "the id")?;
                revision = STATELESS;
            }
            Self::Batch(_) => return Err("a batch within a batch".to_owned()),
        }
        if validates {
            schemas::check(revision, method, value)?;
        }
        Ok(())
    }
}

impl Kind {
    fn method(&self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::List(_) => "tools/list",
            Self::Task(_) | Self::Text(_) | Self::Fill(_) => "tools/call",
            Self::Discover => "server/discover",
            Self::Listen => "subscriptions/listen",
        }
    }

    /// More than any result of this kind takes, so that one that is taken back for its length must
    /// have been this close to the bound.
    fn bytes_max(&self) -> usize {
        match self {
            Self::Fill(bytes) => bytes + (64 << 10),
            Self::Text(text) => 6 * text.len() + (64 << 10),
            Self::Task(_) => 1 << 20,
            _ => 64 << 10,
        }
    }

    fn check(&self, result: &Value, revision: &str) -> Result<(), Fault> {
        let text = result["content"][0]["text"].as_str();
        match self {
            Self::Initialize => demand(result["protocolVersion"] == revision, "the version"),
            Self::Ping => demand(result.as_object().is_some_and(|it| it.is_empty()), "{}"),
            Self::List(page) => {
                let names = TOOLS.chunks(2).nth(*page).unwrap_or_default();
                let tools = result["tools"].as_array().ok_or("no tools")?;
                let same = tools.iter().map(|tool| &tool["name"]).eq(names);
                demand(same, "the tools")?;
                let cursor = result.get("nextCursor").and_then(|cursor| cursor.as_str());
                demand(cursor == (*page == 0).then_some(CURSOR), "the cursor")
            }
            Self::Task(code) => {
                demand(result["isError"] == true, "isError")?;
                let text = text.ok_or("no text")?;
                let codes = ["executor_not_connected", "invalid_arguments"];
                let mut said = codes.iter().filter(|known| text.starts_with(**known));
                let said = said.next().ok_or("no known code")?;
                demand(code.is_none_or(|code| code == *said), "the tool's code")
            }
            Self::Text(owed) => demand(text == Some(owed), "the text"),
            Self::Fill(bytes) => demand(
                text.is_some_and(|text| text.len() == *bytes && text.bytes().all(|it| it == b'x')),
                "the filling",
            ),
            Self::Discover => demand(result["supportedVersions"][0] == STATELESS, "the versions"),
            Self::Listen => demand(result["resultType"] == "complete", "the type"),
        }
    }
}

fn demand(holds: bool, what: &str) -> Result<(), Fault> {
    holds
        .then_some(())
        .ok_or_else(|| format!("{what} is wrong"))
}
