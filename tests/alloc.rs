//! In the steady state no frame claims heap memory, and hostile frames stay within the budget.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rocco::internals::limits::{
    ARENA_BYTES_MAX, FRAME_BYTES_MAX, FRAME_BYTES_WARM, OUTBOX_BYTES, PARSER_BYTES_PER_FRAME_BYTE,
    RESULTS_BYTES_MAX, RING_BYTES, memory_budget_bytes,
};
use rocco::internals::task::submit::SubmitTask;
use rocco::{Engine, Info, Server};

struct Counting;

thread_local! {
    /// Of this thread alone, since the test harness has threads of its own.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<usize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<usize> = const { Cell::new(0) };
}

fn claimed(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
    PEAK_BYTES.set(PEAK_BYTES.get().max(LIVE_BYTES.get()));
}

// SAFETY: every call is handed to the system's allocator as it came; only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        claimed(layout.size());
        // SAFETY: the caller keeps the conditions of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        claimed(layout.size());
        // SAFETY: the caller keeps the conditions of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // What the harness has claimed elsewhere may be freed here.
        LIVE_BYTES.set(LIVE_BYTES.get().saturating_sub(layout.size()));
        // SAFETY: the caller keeps the conditions of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn engine() -> Engine {
    let server = Server::new(Info::new("rocco", "0")).tool(SubmitTask::new());
    let mut engine = server.into_engine();
    exchange(&mut engine, INITIALIZE.as_bytes());
    engine
}

/// Feeds input as the loop does, and lets go of the replies; how many bytes they had.
fn exchange(engine: &mut Engine, mut input: &[u8]) -> usize {
    let mut replied_bytes = 0;
    while !input.is_empty() {
        let space = engine.space();
        let count = input.len().min(space.len());
        space[..count].copy_from_slice(&input[..count]);
        engine.fill(count);
        input = &input[count..];
        engine.serve();
        replied_bytes += engine.pending().len();
        engine.consume(engine.pending().len());
    }
    replied_bytes
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
);

const TRAFFIC: [&str; 10] = [
    INITIALIZE,
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":\"a\\n\",\"method\":\"ping\"}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n",
    concat!(
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"larry_submit_task","#,
        r#""arguments":{"goal":"Stop after five attempts.","repo":"/srv/uploader","#,
        r#""files":["src/upload.rs","tests/upload.rs"],"acceptance":["cargo test passes"]}}}"#,
        "\n",
    ),
    concat!(
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"larry_submit_task","#,
        r#""arguments":{"goal":"","repo":"x","files":["..","a","a"],"acceptance":[]}}}"#,
        "\n",
    ),
    concat!(
        r#"{"jsonrpc":"2.0","id":6,"method":"server/discover","params":{"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        "\n",
    ),
    "not json\n",
    "[]\n",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"}}\n",
];

/// The two tests share the counters, so they are one.
#[test]
fn the_heap_is_left_alone_and_the_budget_is_kept() {
    steady_state_claims_no_heap();
    hostile_frames_stay_within_the_budget();
}

fn steady_state_claims_no_heap() {
    let mut engine = engine();
    let round = |engine: &mut Engine| {
        let replied = TRAFFIC.map(|frame| exchange(engine, frame.as_bytes()));
        assert!(replied.iter().filter(|bytes| **bytes > 0).count() == 9);
    };
    round(&mut engine);
    round(&mut engine);
    let before = CALLS.get();
    for _ in 0..1_000 {
        round(&mut engine);
    }
    let calls = CALLS.get() - before;
    assert_eq!(
        calls,
        0,
        "allocations over {} frames",
        1_000 * TRAFFIC.len()
    );
}

/// Each message of a batch has the whole arena: what the one before it used is free again.
fn batches_share_one_arena() {
    let mut engine = engine();
    exchange(
        &mut engine,
        INITIALIZE.replace("2025-11-25", "2025-03-26").as_bytes(),
    );
    let files = vec!["\"a\""; 1000].join(",");
    let call = format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"#,
            r#""name":"larry_submit_task","arguments":{{"files":[{}]}}}}}}"#
        ),
        files
    );
    let batch = vec![call; 250].join(",");
    let frame = format!("[{batch}]\n");
    let held = LIVE_BYTES.get();
    PEAK_BYTES.set(held);
    let replied_bytes = exchange(&mut engine, frame.as_bytes());
    assert!(replied_bytes > RESULTS_BYTES_MAX / 2, "{replied_bytes}");
    let peak = PEAK_BYTES.get() - held;
    let parser = frame.len() * PARSER_BYTES_PER_FRAME_BYTE;
    assert!(peak <= parser + ARENA_BYTES_MAX, "{peak} bytes");
}

fn hostile_frames_stay_within_the_budget() {
    let mut engine = engine();
    let buffers_bytes = RING_BYTES + OUTBOX_BYTES;
    let resting_bytes = LIVE_BYTES.get();
    let repeated = |unit: &str, bytes: usize| {
        let mut frame = unit.repeat(bytes / unit.len());
        frame.push('\n');
        frame
    };
    for unit in [
        "[",
        "1,",
        "{\"a\":",
        "\\n",
        "\"",
        "a",
        "[],",
        "{\"\":{}},",
        "\"\\\"\",",
        " ",
    ] {
        for bytes in [FRAME_BYTES_WARM, FRAME_BYTES_WARM + 1, FRAME_BYTES_MAX] {
            let (open, array) = (
                repeated(unit, bytes),
                format!("[{}1]\n", repeated(unit, bytes - 8)),
            );
            for frame in [open, array.replacen('\n', "", 1)] {
                let held = LIVE_BYTES.get();
                PEAK_BYTES.set(held);
                exchange(&mut engine, frame.as_bytes());
                let peak = PEAK_BYTES.get() - held + buffers_bytes;
                assert!(
                    peak <= memory_budget_bytes(),
                    "{unit:?} of {bytes}: {peak} bytes"
                );
            }
        }
    }
    batches_share_one_arena();
    let kept = LIVE_BYTES.get() - resting_bytes;
    assert!(
        kept <= 1 << 20,
        "{kept} bytes are kept after hostile frames"
    );
}
