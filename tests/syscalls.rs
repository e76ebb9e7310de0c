//! System calls per request, counted by strace on the real program.
//!
//! Where strace is not installed the counting is left out, unless ROCCO_REQUIRE_STRACE is set.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use support::wait::{Patient, end_of};
use tempfile::NamedTempFile;

type Stdout = BufReader<Patient<ChildStdout>>;

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";

/// A frame of each kind that a client waits for, by its name.
const FRAMES: [(&str, &str); 5] = [
    ("ping", r#""method":"ping""#),
    (
        "initialize",
        concat!(
            r#""method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#
        ),
    ),
    ("list", r#""method":"tools/list""#),
    (
        "call",
        concat!(
            r#""method":"tools/call","params":{"name":"larry_submit_task","arguments":{"#,
            r#""goal":"Stop after five attempts.","repo":"/srv/uploader","#,
            r#""acceptance":["the tests pass"]}}"#
        ),
    ),
    (
        "discover",
        concat!(
            r#""method":"server/discover","params":{"_meta":{"#,
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientCapabilities":{}}}"#
        ),
    ),
];

fn strace_is_there() -> bool {
    let there = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    if !there {
        support::skip::leave_out("STRACE", "strace is not installed");
    }
    there
}

/// Runs a session under strace; the names of the calls between two `getppid` are not singled out,
/// so a session of no traffic is counted beside it.
fn calls(session: impl FnOnce(&mut ChildStdin, &mut Stdout)) -> usize {
    calls_with(&[], session)
}

fn calls_with(options: &[&str], session: impl FnOnce(&mut ChildStdin, &mut Stdout)) -> usize {
    let session = |stdin: &mut ChildStdin, stdout: &mut Stdout, _: &Path| session(stdin, stdout);
    trace_of(options, session).lines().count()
}

/// The trace of a session, which is told where it is written.
fn trace_of(options: &[&str], session: impl FnOnce(&mut ChildStdin, &mut Stdout, &Path)) -> String {
    let trace = NamedTempFile::new().unwrap();
    let mut child = Command::new("strace")
        .args(["-qq", "-e", "signal=none", "-o"])
        .arg(trace.path())
        .args([env!("CARGO_BIN_EXE_rocco"), "mcp"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(Patient(child.stdout.take().unwrap()));
    // The first reply is behind all that a start needs.
    ping(&mut stdin, &mut stdout);
    session(&mut stdin, &mut stdout, trace.path());
    drop(stdin);
    assert!(end_of(&mut child).success());
    std::fs::read_to_string(trace.path()).unwrap()
}

/// How many calls were written down so far.
fn traced(trace: &Path) -> usize {
    std::fs::read_to_string(trace).unwrap().lines().count()
}

/// How often each call occurs in a trace. A wait that brings no word of the input, which is
/// registered as 0, goes by a name of its own: it is the timer's.
fn by_name(trace: &str) -> BTreeMap<&str, isize> {
    let mut names = BTreeMap::new();
    for line in trace.lines() {
        let name = line.split_once('(').map_or(line, |(name, _)| name);
        let rests = name == "epoll_wait" && !line.contains("u64=0}");
        *names.entry(if rests { "rest" } else { name }).or_default() += 1;
    }
    names
}

fn ping(stdin: &mut ChildStdin, stdout: &mut Stdout) {
    stdin.write_all(PING).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.ends_with("\"result\":{}}\n"), "{line}");
}

fn exchange(stdin: &mut ChildStdin, stdout: &mut Stdout, request: &str) {
    stdin.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("\"result\":{"), "{request}{line}");
}

/// A pause on a busy machine lets the server come to rest: a timer that is armed, a wait that ends,
/// a read and a wait. Traffic without a pause arms it ten times a second. Few of a thousand
/// requests may see that.
const RESTS_MAX: usize = 200;
const CALLS_OF_A_REST: usize = 4;

/// The budget is exact for each kind: what is beyond it can only be the timer for rest.
#[test]
fn a_request_takes_a_wait_a_read_and_a_write() {
    if !strace_is_there() {
        return;
    }
    const REQUESTS: usize = 500;
    let line_of = |frame: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":7,{frame}}}\n");
    let opening = line_of(FRAMES[1].1);
    let idle_trace = trace_of(&[], |stdin, stdout, _| {
        exchange(stdin, stdout, &opening);
    });
    let idle = by_name(&idle_trace);
    for (kind, frame) in FRAMES {
        let busy_trace = trace_of(&[], |stdin, stdout, _| {
            exchange(stdin, stdout, &opening);
            for _ in 0..REQUESTS {
                exchange(stdin, stdout, &line_of(frame));
            }
        });
        let mut spent = by_name(&busy_trace);
        for (name, count) in &idle {
            *spent.entry(name).or_default() -= count;
        }
        for name in ["epoll_wait", "read", "write"] {
            let count = spent.remove(name).unwrap_or_default();
            assert_eq!(count, REQUESTS as isize, "{name} for {kind}");
        }
        for name in ["rest", "timerfd_settime"] {
            let count = spent.remove(name).unwrap_or_default();
            assert!(count <= RESTS_MAX as isize, "{count} of {name} for {kind}");
        }
        spent.retain(|_, count| *count != 0);
        assert!(spent.is_empty(), "beside these for {kind}: {spent:?}");
    }
}

#[test]
fn requests_of_one_write_share_a_read_and_a_write() {
    if !strace_is_there() {
        return;
    }
    const REQUESTS: usize = 64;
    let idle = calls(|_, _| {});
    let burst = calls(|stdin, stdout| {
        stdin.write_all(&PING.repeat(REQUESTS)).unwrap();
        for _ in 0..REQUESTS {
            stdout.read_line(&mut String::new()).unwrap();
        }
    });
    let all = burst.saturating_sub(idle);
    assert!(
        all <= 3 + CALLS_OF_A_REST,
        "{all} calls for {REQUESTS} requests in one write"
    );
}

const EXECUTOR: [&str; 2] = [
    "--executor",
    concat!(
        "python3 ",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/executor_client/fake.py"
    ),
];

const SUBMIT: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"larry_submit_task","#,
    r#""arguments":{"goal":"stay queued","repo":"/r","acceptance":["a"]},"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    "\n"
)
.as_bytes();

fn submit(stdin: &mut ChildStdin, stdout: &mut Stdout) {
    stdin.write_all(SUBMIT).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("tsk_"), "{line}");
}

/// A wait, a read and a write for the client, the same for the executor, and one for the random
/// bits of the task's name.
#[test]
fn a_submit_takes_seven_calls() {
    if !strace_is_there() {
        return;
    }
    const SUBMITS: usize = 200;
    let one = calls_with(&EXECUTOR, submit);
    let many = calls_with(&EXECUTOR, |stdin, stdout| {
        for _ in 0..=SUBMITS {
            submit(stdin, stdout);
        }
    });
    let each = many.saturating_sub(one);
    assert!(
        each <= 7 * SUBMITS + 4 * RESTS_MAX,
        "{each} calls for {SUBMITS} submits"
    );
}

/// Neither the client nor the executor says anything, and nothing is due: sooner or later a second
/// passes without a call.
#[test]
fn a_server_with_an_idle_executor_rests() {
    if !strace_is_there() {
        return;
    }
    trace_of(&EXECUTOR, |stdin, stdout, trace| {
        submit(stdin, stdout);
        let rests = (0..60).any(|_| {
            let before = traced(trace);
            std::thread::sleep(std::time::Duration::from_secs(1));
            traced(trace) == before
        });
        assert!(rests, "a call in each of 60 seconds");
    });
}
