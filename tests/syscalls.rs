//! System calls per request, counted by strace on the real program.
//!
//! Where strace is not installed the counting is skipped with a word, unless ROCCO_REQUIRE_STRACE
//! is set.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";

fn strace_is_there() -> bool {
    let there = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    assert!(
        there || std::env::var_os("ROCCO_REQUIRE_STRACE").is_none(),
        "strace is missing"
    );
    if !there {
        eprintln!("skipped: strace is not installed");
    }
    there
}

/// Runs a session under strace; the names of the calls between two `getppid` are not singled out,
/// so a session of no traffic is counted beside it.
fn calls(name: &str, session: impl FnOnce(&mut ChildStdin, &mut BufReader<ChildStdout>)) -> usize {
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.strace"));
    let mut child = Command::new("strace")
        .args(["-qq", "-e", "signal=none", "-o"])
        .arg(&trace)
        .args([env!("CARGO_BIN_EXE_rocco"), "mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // The first reply is behind all that a start needs.
    ping(&mut stdin, &mut stdout);
    session(&mut stdin, &mut stdout);
    drop(stdin);
    assert!(child.wait().unwrap().success());
    std::fs::read_to_string(trace).unwrap().lines().count()
}

fn ping(stdin: &mut ChildStdin, stdout: &mut BufReader<ChildStdout>) {
    stdin.write_all(PING).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.ends_with("\"result\":{}}\n"), "{line}");
}

/// A pause on a busy machine lets the server come to rest, which is three calls of its own: a
/// wait that ends, a read and a wait. Few of a thousand requests may see that.
const RESTS_MAX: usize = 30;

#[test]
fn a_request_takes_a_wait_a_read_and_a_write() {
    if !strace_is_there() {
        return;
    }
    const REQUESTS: usize = 1000;
    let idle = calls("idle", |_, _| {});
    let busy = calls("busy", |stdin, stdout| {
        for _ in 0..REQUESTS {
            ping(stdin, stdout);
        }
    });
    let each = busy - idle;
    assert!(
        each <= 3 * REQUESTS + 3 * RESTS_MAX,
        "{each} calls for {REQUESTS} requests"
    );
}

#[test]
fn requests_of_one_write_share_a_read_and_a_write() {
    if !strace_is_there() {
        return;
    }
    const REQUESTS: usize = 64;
    let idle = calls("idle-burst", |_, _| {});
    let burst = calls("burst", |stdin, stdout| {
        stdin.write_all(&PING.repeat(REQUESTS)).unwrap();
        for _ in 0..REQUESTS {
            stdout.read_line(&mut String::new()).unwrap();
        }
    });
    let all = burst.saturating_sub(idle);
    assert!(
        all <= 3 + 3,
        "{all} calls for {REQUESTS} requests in one write"
    );
}
