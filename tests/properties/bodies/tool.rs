//! Whatever a tool does with what it is given, its request gets one reply: one line of valid JSON.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocco::internals::mcp::revision::{REVISIONS, Revision};
use rocco::{
    Answered, ArrayWriter, Call, Engine, Info, ObjectWriter, Prepared, RawJson, Reply, Server,
    ToolError, ToolSpec,
};
use serde_json::{Value, json};

use super::Dice;
use super::naive;

/// How deep a tool nests what it writes.
const DEPTH_MAX: u32 = 4;

pub fn body(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let mut dice = Dice::of(data);
    let revision = &REVISIONS[dice.roll(REVISIONS.len())];
    let seed = dice.0;
    let failed = Arc::new(Mutex::new(false));
    let told = Arc::clone(&failed);
    let spec = ToolSpec::new("wild", "Does anything.", r#"{"type":"object"}"#);
    let server = Server::new(Info::new("wild", "0")).tool_fn(spec, move |call, reply| {
        let deeds = Deeds::new(&text, seed);
        let answered = deeds.answer(call, reply);
        *told.lock().unwrap() = deeds.failed.get();
        answered
    });
    let reply = called(&mut server.into_engine(), revision);
    let failed = *failed.lock().unwrap();
    assert_eq!(reply["id"], 7);
    assert_eq!(reply["error"]["code"] == -32603, failed, "{reply}");
    assert_eq!(reply["result"].is_object(), !failed, "{reply}");
    mirrored(&reply["result"], revision);
}

/// The reply to a call, which is one line.
fn called(engine: &mut Engine, revision: &Revision) -> Value {
    let mut params = json!({"name": "wild"});
    if revision.stateless {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision.version,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    } else {
        let client = json!({"name": "t", "version": "0"});
        let version = revision.version;
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        exchanged(engine, "initialize", &params);
    }
    exchanged(engine, "tools/call", &params)
}

fn exchanged(engine: &mut Engine, method: &str, params: &Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let request = format!("{request}\n");
    engine.space()[..request.len()].copy_from_slice(request.as_bytes());
    engine.fill(request.len());
    engine.serve();
    let said = std::str::from_utf8(engine.pending())
        .expect("UTF-8")
        .to_owned();
    engine.consume(said.len());
    let line = said.strip_suffix('\n').expect("a line has its end");
    let breaks = |c: char| c < ' ' || matches!(c, '\u{2028}' | '\u{2029}');
    assert!(!line.contains(breaks), "{line:?}");
    assert!(naive::read(line.as_bytes()).is_some(), "{line:?}");
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

/// Structured content stands in the text as well, and of equal names the same one counts.
fn mirrored(result: &Value, revision: &Revision) {
    let structured = result.get("structuredContent");
    assert!(structured.is_none() || revision.structured_results);
    if let Some(structured) = structured.filter(|_| result.get("isError").is_none()) {
        let text = result["content"][0]["text"]
            .as_str()
            .expect("there is a text");
        assert_eq!(
            serde_json::from_str::<Value>(text).expect("JSON"),
            *structured
        );
    }
}

/// Ends in the middle of a text.
struct Fails;

impl fmt::Display for Fails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half\"")?;
        Err(fmt::Error)
    }
}

/// What a tool does, by dice. It writes pieces of a text.
struct Deeds<'t> {
    pieces: Vec<&'t str>,
    dice: Cell<u64>,
    failed: Rc<Cell<bool>>,
}

impl<'t> Deeds<'t> {
    fn new(text: &'t str, seed: u64) -> Self {
        Self {
            pieces: text.split(['a', 'e', ',']).collect(),
            dice: Cell::new(seed),
            failed: Rc::default(),
        }
    }

    fn roll(&self, below: usize) -> usize {
        let mut dice = Dice(self.dice.get());
        let rolled = dice.roll(below);
        self.dice.set(dice.0);
        rolled
    }

    fn piece(&self) -> &'t str {
        self.pieces[self.roll(self.pieces.len())]
    }

    fn answer<'r>(&self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
        let scratch = call.scratch(self.roll(64), b'x').expect("it is little");
        let scratch = std::str::from_utf8(scratch).expect("it is text");
        let what = format_args!("{scratch}");
        let error = ToolError::new(self.piece(), what).advice(self.piece());
        match self.roll(6) {
            0 => reply.text(self.piece()),
            1 => reply.error(error),
            2 => reply.error_with(error.retry_after(Duration::MAX), |details| {
                self.object(details, 0);
            }),
            3 => {
                let again = Deeds::new(self.piece(), self.dice.get());
                let prepared = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    Prepared::new(|reply| reply.structured(|object| again.object(object, 0)))
                }));
                match prepared {
                    Ok(prepared) => reply.prepared(&prepared),
                    Err(_) => {
                        assert!(again.failed.get(), "what fits is prepared");
                        reply.error(error.retryable())
                    }
                }
            }
            _ => reply.structured(|object| self.object(object, 0)),
        }
    }

    fn object(&self, object: &mut ObjectWriter<'_>, depth: u32) {
        for _ in 0..self.roll(5) {
            let name = self.piece();
            match self.roll(10) {
                0 => object.string(name, self.piece()),
                1 => object.unsigned(name, self.dice.get()),
                2 => object.signed(name, self.dice.get() as i64),
                3 => object.float(name, f64::from_bits(self.dice.get())),
                4 => object.boolean(name, true),
                5 => object.null(name),
                6 => object.json(name, &self.json()),
                7 if self.roll(8) == 0 => {
                    self.failed.set(true);
                    object.formatted(name, format_args!("{}{Fails}", self.piece()));
                }
                8 if depth < DEPTH_MAX => object.array(name, |list| self.array(list, depth + 1)),
                9 if depth < DEPTH_MAX => {
                    object.object(name, |inner| self.object(inner, depth + 1))
                }
                _ => object.formatted(name, format_args!("{}{name}", self.piece())),
            }
        }
    }

    fn array(&self, list: &mut ArrayWriter<'_>, depth: u32) {
        for _ in 0..self.roll(5) {
            match self.roll(10) {
                0 => list.string(self.piece()),
                1 => list.unsigned(self.dice.get()),
                2 => list.signed(self.dice.get() as i64),
                3 => list.float(f64::from_bits(self.dice.get())),
                4 => list.boolean(false),
                5 => list.null(),
                6 => list.json(&self.json()),
                8 if depth < DEPTH_MAX => list.array(|inner| self.array(inner, depth + 1)),
                9 if depth < DEPTH_MAX => list.object(|inner| self.object(inner, depth + 1)),
                _ => list.formatted(format_args!("{}\n", self.piece())),
            }
        }
    }

    /// JSON on as many lines as it likes; the piece itself where it happens to be JSON.
    fn json(&self) -> RawJson {
        let piece = self.piece();
        RawJson::new(piece).unwrap_or_else(|_| {
            let string = serde_json::to_string(piece).expect("a text has a JSON form");
            let text = format!("\n{{ {string} :\t[ {string},\r\n 1e3 , null ] }} ");
            RawJson::new(&text).expect("it is JSON")
        })
    }
}
