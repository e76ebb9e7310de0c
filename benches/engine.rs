//! The engine in process: bytes in, bytes out, without a system call.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use rocco::internals::engine::Engine;
use rocco::internals::task::submit::SubmitTask;
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

const PIPELINED: usize = 64;

/// An engine with an open session.
fn engine() -> Engine {
    let server = Server::new(Info::new("rocco", "0")).tool(SubmitTask::new());
    let mut engine = server.into_engine();
    put(&mut engine, INITIALIZE.as_bytes());
    take(&mut engine, b"}}\n");
    engine
}

/// Fills the engine with input, as much at a time as it has room for, and serves it.
fn put(engine: &mut Engine, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let space = engine.space();
        let count = bytes.len().min(space.len());
        assert!(count > 0, "there is room for input");
        space[..count].copy_from_slice(&bytes[..count]);
        engine.fill(count);
        engine.serve();
        bytes = &bytes[count..];
    }
}

/// Takes the replies out of the engine. Every bench checks them.
fn take(engine: &mut Engine, wanted_end: &[u8]) {
    let reply = black_box(engine.pending());
    assert!(
        reply.ends_with(wanted_end),
        "{}",
        String::from_utf8_lossy(reply)
    );
    engine.consume(reply.len());
}

/// Measures one input after the other, from the bytes in to the bytes out.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, input: &[u8], wanted_end: &[u8]) {
    let mut engine = engine();
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            put(&mut engine, input);
            take(&mut engine, wanted_end);
        });
    });
}

fn kinds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    for (name, frame, wanted_end) in FRAMES {
        group.throughput(Throughput::Bytes(frame.len() as u64));
        measure(&mut group, name, frame.as_bytes(), wanted_end.as_bytes());
    }
    group.finish();
}

/// A ping whose line has `bytes` bytes, LF included: one long string fills it.
fn ping_of(bytes: usize) -> String {
    let (head, tail) = (
        r#"{"id":7,"method":"ping","params":{"_":""#,
        "\"},\"jsonrpc\":\"2.0\"}\n",
    );
    let padding = bytes.saturating_sub(head.len() + tail.len());
    format!("{head}{}{tail}", "x".repeat(padding))
}

fn sizes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine/frame_bytes");
    for bytes in [64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20] {
        let frame = ping_of(bytes);
        group.throughput(Throughput::Bytes(frame.len() as u64));
        measure(&mut group, &bytes.to_string(), frame.as_bytes(), b"{}}\n");
    }
    group.finish();
}

/// The most favourable arrival, 64 frames in one read, and the least favourable, byte by byte.
fn arrivals(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    let (_, list, list_end) = FRAMES[1];
    group.throughput(Throughput::Elements(PIPELINED as u64));
    let frames = list.repeat(PIPELINED);
    measure(
        &mut group,
        "tools_list_64_pipelined",
        frames.as_bytes(),
        list_end.as_bytes(),
    );

    let (_, call, call_end) = FRAMES[2];
    group.throughput(Throughput::Elements(1));
    let mut engine = engine();
    group.bench_function("tools_call_byte_by_byte", |bencher| {
        bencher.iter(|| {
            for byte in call.as_bytes().chunks(1) {
                put(&mut engine, byte);
            }
            take(&mut engine, call_end.as_bytes());
        });
    });
    group.finish();
}

criterion_group!(benches, kinds, sizes, arrivals);
criterion_main!(benches);
