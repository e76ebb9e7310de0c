//! A task that is to end does not go on: no agent, no gate and no delivery after that.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bench::{Bench, Executor, git, task_with, wait_for};
use crate::support::wait::{end_of, signal};

/// Less than a command of git may take.
const SOON: Duration = Duration::from_secs(60);

/// Has every further git that looks at the objects of a repository wait for ever.
fn hold_git(repo: &Path) {
    let held = Command::new("mkfifo")
        .arg(repo.join(".git/objects/pack/multi-pack-index"))
        .status();
    assert!(held.unwrap().success());
}

fn wait_for_phase(executor: &mut Executor, id: &str, phase: &str) {
    wait_for(phase, || {
        let summary = executor.summary(id);
        (summary["phase"] == phase).then_some(())
    });
}

/// Starts a task whose clone takes for ever.
fn start_held(bench: &Bench, executor: &mut Executor, members: Value) -> String {
    let other = bench.add_repo("other");
    let go = bench.show("go");
    executor.submit(task_with(&other, &format!("wait {go}"), json!({})));
    let goal = format!("say {go} >> {}", bench.show("agent.pids"));
    let task = task_with(&bench.repo, &goal, members);
    let id = task["task_id"].as_str().unwrap().to_owned();
    executor.submit(task);
    hold_git(&bench.repo);
    std::fs::write(&go, "").unwrap();
    wait_for_phase(executor, &id, "clone");
    id
}

#[test]
fn a_task_that_is_cancelled_while_it_is_cloned_starts_no_agent() {
    let bench = Bench::new("cloned");
    let mut executor = bench.child(&["--running", "1"]);
    let id = start_held(&bench, &mut executor, json!({}));
    let cancelled = Instant::now();
    executor.call("task/cancel", json!({"task_id": id}));
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "cancelled", "{record}");
    assert!(cancelled.elapsed() < SOON, "{:?}", cancelled.elapsed());
    assert_eq!(record["agent"], Value::Null, "{record}");
    assert!(!bench.task_dir(&id).join("log").exists());
    executor.close();
}

#[test]
fn a_deadline_ends_a_clone() {
    let bench = Bench::new("late");
    let mut executor = bench.child(&["--running", "1"]);
    let started = Instant::now();
    let id = start_held(&bench, &mut executor, json!({"deadline_s": 1}));
    let record = executor.record(&id);
    assert_eq!(record["error"]["code"], "deadline", "{record}");
    assert_eq!(record["agent"], Value::Null, "{record}");
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    executor.close();
}

/// Attack 17: git read a file without blocks to its end, two minutes after the deadline.
#[test]
fn a_deadline_ends_what_git_does_with_huge_files() {
    const SOON: Duration = Duration::from_secs(30);
    let bench = Bench::new("huge");
    let repos = ["one", "two"].map(|name| bench.add_repo(name));
    let unbounded = ["--file-size", "2000000", "--result-size", "900000000"];
    let mut executor = bench.child(&[&unbounded[..], &["--running", "2"]].concat());
    let started = Instant::now();
    let goals = [
        "sh truncate -s 1T big",
        "sh for i in $(seq 1 60); do truncate -s 30G $i; done",
    ];
    let tasks = goals.iter().zip(&repos).map(|(goal, repo)| {
        let task = task_with(repo, goal, json!({"deadline_s": 1}));
        executor.submit(task)["task_id"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    for id in tasks.collect::<Vec<_>>() {
        let record = executor.record(&id);
        assert_eq!(record["ref"], Value::Null, "{record}");
        assert_eq!(record["error"]["code"], "deadline", "{record}");
    }
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    executor.close();
}

#[test]
fn what_is_cancelled_before_its_delivery_is_not_delivered_and_meets_no_gate() {
    let bench = Bench::new("undelivered");
    let mut executor = bench.child(&[]);
    let refs = bench.repo.join(".git/packed-refs");
    let goal = format!("write a.txt right\nfifo {}", refs.display());
    let task = task_with(&bench.repo, &goal, json!({"acceptance": ["gate:holds"]}));
    let id = task["task_id"].as_str().unwrap().to_owned();
    executor.submit(task);
    wait_for_phase(&mut executor, &id, "collect");
    let cancelled = Instant::now();
    executor.call("task/cancel", json!({"task_id": id}));
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "cancelled", "{record}");
    assert!(cancelled.elapsed() < SOON, "{:?}", cancelled.elapsed());
    assert_eq!(
        (&record["ref"], &record["gates"]),
        (&Value::Null, &json!([])),
        "{record}"
    );
    assert!(bench.task_dir(&id).join("work/a.txt").exists());
    executor.close();
    std::fs::remove_file(refs).unwrap();
    let result = format!("refs/rocco/{id}");
    assert_eq!(git(&bench.repo, &["for-each-ref", &result]), "");
}

/// Whatever had ended a gate, it was told that the gate "did not end within 600 s".
#[test]
fn what_ended_a_gate_is_told_in_its_own_words() {
    let bench = Bench::new("gate-words");
    let mut executor = bench.child(&["--disk", "20", "--sandbox", "off"]);
    let mut told = |gate: &str, members: Value, cancels: bool| {
        let mut task = task_with(&bench.repo, "write a.txt new", members);
        task["acceptance"] = json!([format!("gate:{gate}")]);
        let id = task["task_id"].as_str().unwrap().to_owned();
        executor.submit(task);
        if cancels {
            let pids = bench.path("gate.pids");
            wait_for("the gate", || pids.exists().then_some(()));
            executor.call("task/cancel", json!({"task_id": id}));
            std::fs::remove_file(pids).unwrap();
        }
        executor.record(&id);
        executor.part(&id, "gates")
    };
    for (gate, members, cancels, wanted) in [
        (
            "hangs",
            json!({}),
            true,
            "== hangs: was ended, since the task was cancelled\n",
        ),
        (
            "slow",
            json!({}),
            false,
            "== slow: did not end within 1 s\n",
        ),
        (
            "hangs",
            json!({"deadline_s": 3}),
            false,
            "== hangs: was ended, since the task had run",
        ),
        (
            "fills",
            json!({}),
            false,
            "== fills: was ended, since the files of the task take more",
        ),
    ] {
        let said = told(gate, members, cancels);
        assert!(said.contains(wanted), "{gate}: {said}");
    }
    executor.close();
}

/// Runs a guard with these orders, and tells whether it has started its program.
fn guard_starts(bench: &Bench, orders: &[u8]) -> (bool, String) {
    let file = bench.path("started");
    let mut guard = Command::new(env!("CARGO_BIN_EXE_rocco"));
    guard
        .args(["executor-guard", "/dev/null", "/", "touch"])
        .arg(&file);
    guard.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut guard = guard.spawn().unwrap();
    let mut stdin = guard.stdin.take().unwrap();
    stdin.write_all(orders).unwrap();
    if !orders.is_empty() {
        wait_for("the end of a guard", || guard.try_wait().unwrap());
    }
    drop(stdin);
    let output = guard.wait_with_output().unwrap();
    let started = file.exists();
    let report = String::from_utf8(output.stdout).unwrap();
    (started, report)
}

#[test]
fn a_guard_starts_nothing_before_it_is_told_to() {
    let bench = Bench::new("told");
    for orders in ["", "T", "K"] {
        let (started, report) = guard_starts(&bench, orders.as_bytes());
        assert!(!started && report.starts_with("unstarted"), "{report}");
    }
    let (started, report) = guard_starts(&bench, b"S");
    assert!(started, "{report}");
    assert_eq!(report, "exited 0 0\n");
}

/// Under `nohup` the executor ended with its terminal all the same.
#[test]
fn an_executor_that_is_to_ignore_a_hang_up_goes_on() {
    let bench = Bench::new("nohup");
    let plain = bench.command(&[]);
    let mut ignoring = Command::new("sh");
    ignoring.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    ignoring.arg(plain.get_program()).args(plain.get_args());
    ignoring.current_dir(&bench.root).env_remove("ROCCO_DEPTH");
    ignoring.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut executor = bench.started(&mut ignoring);
    signal(executor.child.id(), libc::SIGHUP);
    let id = executor.start(&bench.repo, "write a.txt x");
    assert_eq!(executor.record(&id)["outcome"], "succeeded");
    signal(executor.child.id(), libc::SIGTERM);
    assert!(end_of(&mut executor.child).success());
}
