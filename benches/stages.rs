//! The stages of a frame, each measured alone: framing, parsing, dispatch and writing of a call
//! with a typical task. The engine takes about the sum of them.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rocco::internals::engine::Engine;
use rocco::internals::limits::FRAME_PADDING_BYTES;
use rocco::internals::wire::framer::{Framer, NextFrame};
use rocco::internals::wire::json::{Parser, Value};
use rocco::internals::wire::message::Message;
use rocco::internals::wire::outbox::Outbox;
use rocco::internals::wire::ring::Ring;
use rocco::internals::wire::writer::Sink;
use rocco::{Answered, Call, Info, Reply, Server, Tool, ToolSpec};

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
);

const CALL: &str = concat!(
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"larry_submit_task","#,
    r#""arguments":{"goal":"Stop after five attempts.","repo":"/srv/uploader","#,
    r#""files":["src/upload.rs"],"acceptance":["the tests pass"]}}}"#,
    "\n"
);

const ANSWER: &str = "No executor is connected, so the task was not submitted. Do the task yourself \
                      or tell the user, who can start rocco mcp with \"--executor\".";

/// A tool of the same name that does nothing.
struct Empty;

impl Tool for Empty {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("larry_submit_task", "Nothing.", r#"{"type":"object"}"#)
    }

    fn call<'r>(&mut self, _: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
        reply.text("")
    }
}

fn framing(criterion: &mut Criterion) {
    let (mut ring, mut framer) = (Ring::new(), Framer::new());
    criterion.bench_function("stages/framing", |bencher| {
        bencher.iter(|| {
            ring.space()[..CALL.len()].copy_from_slice(CALL.as_bytes());
            ring.fill(CALL.len());
            let NextFrame::Complete { bytes } = framer.next(&mut ring) else {
                panic!("a frame is there");
            };
            assert_eq!(
                black_box(ring.frame_mut(bytes)).len(),
                bytes + FRAME_PADDING_BYTES
            );
            framer.consume(&mut ring, bytes);
        });
    });
}

/// Parsing changes the frame, so each measurement begins with a copy.
fn parsing(criterion: &mut Criterion) {
    let mut parser = Parser::new();
    let mut frame = vec![0; CALL.len() + FRAME_PADDING_BYTES];
    criterion.bench_function("stages/parsing", |bencher| {
        bencher.iter(|| {
            frame[..CALL.len()].copy_from_slice(CALL.as_bytes());
            let document = parser.parse(&mut frame, CALL.len()).expect("it is JSON");
            assert!(matches!(black_box(document.root()), Value::Object(_)));
            parser.recycle(document);
        });
    });
}

/// Tells the kind of a message, from a frame that was parsed once.
fn taking_apart(criterion: &mut Criterion) {
    let mut parser = Parser::new();
    let mut frame = vec![0; CALL.len() + FRAME_PADDING_BYTES];
    frame[..CALL.len()].copy_from_slice(CALL.as_bytes());
    let document = parser.parse(&mut frame, CALL.len()).expect("it is JSON");
    criterion.bench_function("stages/taking_apart", |bencher| {
        bencher.iter(|| {
            let message = Message::from_value(black_box(document.root()));
            assert!(matches!(message, Message::Request(_)));
        });
    });
}

/// The whole way to a tool that does nothing, and back. Dispatch is this time without framing and
/// parsing.
fn way_to_a_tool(criterion: &mut Criterion) {
    let mut engine: Engine = Server::new(Info::new("rocco", "0"))
        .tool(Empty)
        .into_engine();
    let mut exchange = |line: &str| {
        engine.space()[..line.len()].copy_from_slice(line.as_bytes());
        engine.fill(line.len());
        engine.serve();
        let count = black_box(engine.pending()).len();
        assert!(count > 0);
        engine.consume(count);
    };
    exchange(INITIALIZE);
    criterion.bench_function("stages/way_to_a_tool", |bencher| {
        bencher.iter(|| exchange(CALL));
    });
}

fn writing(criterion: &mut Criterion) {
    let mut outbox = Outbox::new();
    criterion.bench_function("stages/writing", |bencher| {
        bencher.iter(|| {
            outbox.begin_frame();
            Sink::plain(&mut outbox).object(|object| {
                object.unsigned("id", 7);
                object.string("text", black_box(ANSWER));
            });
            let count = black_box(outbox.pending()).len();
            assert!(count > ANSWER.len());
            outbox.consume(count);
        });
    });
}

criterion_group!(
    benches,
    framing,
    parsing,
    taking_apart,
    way_to_a_tool,
    writing
);
criterion_main!(benches);
