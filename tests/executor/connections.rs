//! Clients that connect and do nothing, or not to the end, and a system that is short of threads or
//! whose disk is slow.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bench::{Bench, new_id, task, wait_for};

/// What one process may have, and all together.
const PER_PEER: usize = 16;
const ALL: usize = 64;

const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":"rocco-exec/1"}}"#;

/// A process that connects so many times, says that it has, and is silent.
fn silent(bench: &Bench, connections: usize) -> Child {
    let script = "import socket, sys, time\n\
                  all = []\n\
                  for _ in range(int(sys.argv[2])):\n\
                  \x20   all.append(socket.socket(socket.AF_UNIX))\n\
                  \x20   all[-1].connect(sys.argv[1])\n\
                  print('connected', flush=True)\n\
                  sys.stdin.read()\n";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(bench.socket())
        .arg(connections.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let said = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line);
    assert!(said.is_ok() && line == "connected\n", "{line}");
    child
}

/// What a client is told that says hello.
fn greet(bench: &Bench) -> Value {
    greet_on(UnixStream::connect(bench.socket()).unwrap())
}

fn greet_on(mut stream: UnixStream) -> Value {
    // One that is refused may be closed by now.
    let _ = writeln!(stream, "{HELLO}");
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    serde_json::from_str(&line).unwrap_or(Value::Null)
}

/// 64 connections that said nothing locked everybody out for as long as they liked.
#[test]
fn silent_connections_lock_nobody_out() {
    let bench = Bench::new("silent");
    let daemon = bench.daemon(&[]);
    // One process has its share and no more, and others are served at once.
    let mut peers = vec![silent(&bench, PER_PEER + 4)];
    assert!(greet(&bench)["result"].is_object());
    // Many processes have all places, and whoever comes is told so.
    peers.extend((0..ALL / PER_PEER).map(|_| silent(&bench, PER_PEER)));
    let refused = greet(&bench);
    assert_eq!(refused["error"]["data"]["code"], "queue_full", "{refused}");
    assert_eq!(refused["id"], Value::Null);
    // Until it is clear that they will not say hello.
    let started = Instant::now();
    wait_for("a place", || {
        greet(&bench)["result"].is_object().then_some(())
    });
    assert!(started.elapsed() < Duration::from_secs(60));
    for peer in &mut peers {
        peer.kill().unwrap();
        peer.wait().unwrap();
    }
    drop(daemon);
}

/// How long it takes until the executor closes a connection on which this was said.
fn closed_after(bench: &Bench, said: &str) -> Duration {
    let mut stream = UnixStream::connect(bench.socket()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(said.as_bytes()).unwrap();
    let started = Instant::now();
    let mut heard = String::new();
    let end = stream.read_to_string(&mut heard);
    assert!(end.is_ok(), "{said:?} was kept: {end:?}");
    started.elapsed()
}

/// A line that was begun and not ended held a place for ever.
#[test]
fn a_line_that_does_not_come_to_its_end_costs_the_connection() {
    let bench = Bench::new("half");
    let _daemon = bench.daemon(&[]);
    let mut idle = bench.front();
    let (before, after) = std::thread::scope(|scope| {
        let before = scope.spawn(|| closed_after(&bench, &HELLO[..20]));
        let after = scope.spawn(|| closed_after(&bench, &format!("{HELLO}\n{{\"jsonrpc\"")));
        (before.join().unwrap(), after.join().unwrap())
    });
    assert!(before >= Duration::from_secs(4), "{before:?}");
    assert!(after >= Duration::from_secs(9), "{after:?}");
    // A front that has nothing to say is left alone.
    assert!(idle.call("task/list", json!({}))["result"].is_object());
}

/// The executor with some of its threads refused, the first being number 1.
fn without_threads(bench: &Bench, which: &str, flags: &[&str]) -> Command {
    traced(
        bench,
        "clone3",
        &format!("clone3:error=EAGAIN:when={which}"),
        flags,
    )
}

/// The executor with some of its system calls spoilt.
fn traced(bench: &Bench, calls: &str, fault: &str, flags: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace={calls}")])
        .args(["-e", &format!("inject={fault}")])
        .arg(env!("CARGO_BIN_EXE_rocco"))
        .args(["executor", "--sandbox", "off", "--allow-repo"])
        .arg(&bench.root)
        .arg("--state")
        .arg(bench.path("state"))
        .args(flags)
        .args(["--", "true"])
        .env_remove("ROCCO_DEPTH")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A thread that could not be started ended the executor and all its tasks by an abort.
#[test]
fn a_thread_that_cannot_be_started_is_told_and_ends_nothing() {
    let bench = Bench::new("threads");
    // To sync, states, signals, markers, expiry, two workers, accept.
    const AT_START: usize = 8;
    let socket = bench.socket();
    let flags = ["--socket", socket.to_str().unwrap()];
    for number in 1..=AT_START {
        let mut command = without_threads(&bench, &number.to_string(), &flags);
        let output = command.output().expect("strace is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{number}: {said}");
        assert!(said.contains("cannot be started"), "{number}: {said}");
        assert_eq!(said.lines().count(), 1, "{number}: {said}");
    }
    // Each thread counts those that it starts, so that only the ninth connection is refused one.
    let which = (AT_START + 1).to_string();
    let mut daemon = Traced(without_threads(&bench, &which, &flags).spawn().unwrap());
    // A socket has its name before it is listened on, so that only a connection tells that it is.
    let first = wait_for("the socket", || UnixStream::connect(&socket).ok());
    assert!(greet_on(first)["result"].is_object());
    for _ in 1..AT_START {
        assert!(greet(&bench)["result"].is_object());
    }
    let refused = greet(&bench);
    assert_eq!(refused["error"]["data"]["code"], "queue_full", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("cannot be started"), "{message}");
    assert!(greet(&bench)["result"].is_object());
    assert!(daemon.0.try_wait().unwrap().is_none());
}

/// An executor under a tracer. It is ended first, and the tracer ends with it, also when a test
/// fails.
struct Traced(Child);

impl Drop for Traced {
    fn drop(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        let executor = std::fs::read_to_string(children).unwrap_or_default();
        // Either of them may be gone.
        let _ = Command::new("kill").args(["-9", executor.trim()]).status();
        let _ = self.0.wait();
    }
}

/// While a disk took two seconds for each write that has to last, no front was answered in time.
#[test]
fn a_slow_disk_makes_no_other_front_wait() {
    let bench = Bench::new("slow-disk");
    let socket = bench.socket();
    let flags = ["--durable", "power", "--socket", socket.to_str().unwrap()];
    let fault = "fsync,fdatasync:delay_enter=2000000";
    let daemon = traced(&bench, "fsync,fdatasync", fault, &flags).spawn();
    let _daemon = Traced(daemon.expect("strace is installed"));
    wait_for("the socket", || UnixStream::connect(&socket).ok());
    let mut other = bench.front();
    let id = new_id();
    let submission = task(&id, &bench.repo, "anything");
    let (done, is_done) = std::sync::mpsc::channel();
    let mut slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        let (bench, id, submission) = (&bench, &id, &submission);
        scope.spawn(move || {
            let mut submitting = bench.front();
            let started = Instant::now();
            let answer = submitting.call("task/submit", submission.clone());
            assert_eq!(answer["result"]["task_id"], *id, "{answer}");
            // It is not answered before the disk has it: three files, and two directories.
            assert!(started.elapsed() >= Duration::from_secs(8));
            // The end of the task is as slow.
            submitting.wait_state(id, &["succeeded", "failed"]);
            done.send(()).unwrap();
        });
        let mut asked = 0;
        while is_done.recv_timeout(Duration::from_millis(20)).is_err() {
            let started = Instant::now();
            assert!(other.call("task/list", json!({}))["result"].is_object());
            other.call("task/get", json!({"task_id": id, "part": "summary"}));
            slowest = slowest.max(started.elapsed());
            asked += 1;
        }
        assert!(asked > 100, "{asked}");
    });
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    // Each state stands once and in its order, and the record before the last of them.
    let states = bench.states(&id);
    assert_eq!(states, ["queued", "running", "verifying", "failed"]);
}
