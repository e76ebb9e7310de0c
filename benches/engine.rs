//! The engine in process: bytes in, bytes out, without a system call.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rocco::engine::Engine;
use rocco::task::submit::SubmitTask;
use rocco::{Info, Server};

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
);

const FRAMES: [(&str, &str, &str); 5] = [
    (
        "ping",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n",
        "{}}\n",
    ),
    (
        "tools_list",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}\n",
        "}]}}\n",
    ),
    (
        "tools_call",
        concat!(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"larry_submit_task","#,
            r#""arguments":{"goal":"Stop after five attempts.","repo":"/srv/uploader","#,
            r#""files":["src/upload.rs"],"acceptance":["the tests pass"]}}}"#,
            "\n"
        ),
        "\"not_configured\"}}},\"isError\":true}}\n",
    ),
    (
        "malformed_call",
        concat!(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"larry_submit_task","#,
            r#""arguments":{"goal":7,"files":[".."]}}}"#,
            "\n"
        ),
        "\"isError\":true}}\n",
    ),
    (
        "parse_error",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\n",
        "\"message\":\"the line is not JSON\"}}\n",
    ),
];

/// One frame through the engine. Every bench checks its answer.
fn exchange(engine: &mut Engine, frame: &[u8], wanted_end: &[u8]) {
    engine.space()[..frame.len()].copy_from_slice(frame);
    engine.fill(frame.len());
    engine.serve();
    let reply = black_box(engine.pending());
    assert!(
        reply.ends_with(wanted_end),
        "{}",
        String::from_utf8_lossy(reply)
    );
    engine.consume(reply.len());
}

fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    for (name, frame, wanted_end) in FRAMES {
        let server = Server::new(Info::new("rocco", "0")).tool(SubmitTask);
        let mut engine = server.into_engine();
        exchange(&mut engine, INITIALIZE.as_bytes(), b"}}\n");
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| exchange(&mut engine, frame.as_bytes(), wanted_end.as_bytes()));
        });
    }
    group.finish();
}

criterion_group!(benches, frames);
criterion_main!(benches);
