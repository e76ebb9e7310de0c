//! A steady load in process, to point a profiler at: one kind of frame, so many times.
//!
//! `cargo run --release --example steady -- tools_call 1000000`; without arguments it names the
//! kinds. The engine is the whole server but for its system calls.

use std::hint::black_box;
use std::process::ExitCode;

use rocco::internals::task::submit::SubmitTask;
use rocco::{Engine, Info, Server};

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
);

const ENVELOPE: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#,
);

const CALL: &str = concat!(
    r#""name":"larry_submit_task","arguments":{"goal":"Stop after five attempts.","#,
    r#""repo":"/srv/uploader","files":["src/upload.rs"],"acceptance":["the tests pass"]}"#,
);

/// A frame of a kind, if there is such a kind.
fn frame(kind: &str) -> Option<String> {
    let request = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#) + "\n"
    };
    Some(match kind {
        "ping" => "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n".into(),
        "tools_list" => "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}\n".into(),
        "tools_call" => request("tools/call", CALL),
        "initialize" => INITIALIZE.into(),
        "discover" => request("server/discover", ENVELOPE),
        "stateless_list" => request("tools/list", ENVELOPE),
        "stateless_call" => request("tools/call", &format!("{CALL},{ENVELOPE}")),
        "parse_error" => "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\n".into(),
        _ => return None,
    })
}

fn exchange(engine: &mut Engine, frame: &[u8]) {
    engine.space()[..frame.len()].copy_from_slice(frame);
    engine.fill(frame.len());
    engine.serve();
    let replied_bytes = black_box(engine.pending()).len();
    assert!(replied_bytes > 0);
    engine.consume(replied_bytes);
}

fn opened() -> Engine {
    let server = Server::new(Info::new("rocco", "0")).tool(SubmitTask::new());
    let mut engine = server.into_engine();
    exchange(&mut engine, INITIALIZE.as_bytes());
    engine
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let frame = arguments.next().and_then(|kind| frame(&kind));
    let count = arguments.next().and_then(|count| count.parse::<u64>().ok());
    let (Some(frame), Some(count)) = (frame, count) else {
        eprintln!(
            "steady KIND COUNT; kinds: ping tools_list tools_call initialize discover \
             stateless_list stateless_call parse_error"
        );
        return ExitCode::from(2);
    };
    let mut engine = opened();
    for _ in 0..count {
        exchange(&mut engine, frame.as_bytes());
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::{exchange, frame, opened};

    #[test]
    fn every_kind_is_answered() {
        let kinds = "ping tools_list tools_call initialize discover stateless_list stateless_call \
                     parse_error";
        for kind in kinds.split(' ') {
            let frame = frame(kind).unwrap_or_else(|| panic!("{kind} is not a kind"));
            let mut engine = opened();
            for _ in 0..2 {
                exchange(&mut engine, frame.as_bytes());
            }
        }
        assert_eq!(frame("other"), None);
    }
}
