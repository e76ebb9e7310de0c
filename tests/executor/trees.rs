//! Processes of a task end with it, all of them, however it ends.

use std::fs;

use serde_json::json;

use super::bench::{Bench, task_with, wait_for_end};

#[test]
fn cancelling_ends_the_whole_tree_also_what_does_not_want_to() {
    let bench = Bench::new("cancel");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let id = executor.start(
        &bench.repo,
        &format!("write a.txt x\ndaemon {pids}\nstubborn {pids}"),
    );
    let pids = bench.pids("agent.pids", 2);
    for _ in 0..2 {
        let answer = executor.call("task/cancel", json!({"task_id": id, "reason": "user"}));
        assert_eq!(answer["result"]["state"], "cancelling");
    }
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "cancelled", "{record}");
    wait_for_end(&pids);
    // What it had done until then is not lost, and not delivered.
    assert_eq!(record["ref"], serde_json::Value::Null, "{record}");
    assert!(record["warnings"].to_string().contains("/work"), "{record}");
    let left = fs::read_to_string(bench.task_dir(&id).join("work/a.txt")).unwrap();
    assert_eq!(left, "x\n");
    let after = executor.call("task/cancel", json!({"task_id": id}));
    assert_eq!(after["result"]["state"], "cancelled");
}

#[test]
fn a_deadline_and_silence_end_the_whole_tree() {
    let bench = Bench::new("time");
    let other = bench.add_repo("other");
    let mut executor = bench.child(&["--silence", "3"]);
    let (loud, quiet) = (bench.show("loud.pids"), bench.show("quiet.pids"));
    let loud = task_with(
        &bench.repo,
        &format!("daemon {loud}\nchatter {loud}"),
        json!({"deadline_s": 6}),
    );
    let quiet = task_with(
        &other,
        &format!("daemon {quiet}\nsleep 3600 {quiet}"),
        json!({}),
    );
    executor.submit(loud.clone());
    executor.submit(quiet.clone());
    for (task, code, pids) in [
        (quiet, "silence", "quiet.pids"),
        (loud, "deadline", "loud.pids"),
    ] {
        let record = executor.record(task["task_id"].as_str().unwrap());
        assert_eq!(record["outcome"], "timed_out", "{record}");
        assert_eq!(record["error"]["code"], code);
        wait_for_end(&bench.pids(pids, 1));
    }
}

#[test]
fn what_an_agent_leaves_behind_ends_with_it() {
    let bench = Bench::new("daemon");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let id = executor.start(&bench.repo, &format!("write a.txt x\ndaemon {pids}"));
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(
        record["warnings"]
            .to_string()
            .contains("left 1 processes behind"),
        "{record}"
    );
    wait_for_end(&bench.pids("agent.pids", 1));
}

#[test]
fn an_agent_that_kills_its_guard_takes_its_tree_with_it() {
    let bench = Bench::new("guard");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let goal = format!("write a.txt x\ndaemon {pids}\nkill-guard\nsleep 3600");
    let id = executor.start(&bench.repo, &goal);
    let record = executor.record(&id);
    assert_eq!(record["error"]["code"], "agent_lost", "{record}");
    wait_for_end(&bench.pids("agent.pids", 1));
    executor.close();
}

#[test]
fn an_agent_that_stops_its_guard_is_ended_all_the_same() {
    let bench = Bench::new("stopped");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let id = executor.start(&bench.repo, &format!("stop-guard\nstubborn {pids}"));
    let pids = bench.pids("agent.pids", 1);
    executor.call("task/cancel", json!({"task_id": id}));
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "cancelled", "{record}");
    wait_for_end(&pids);
    executor.close();
}

#[test]
fn an_agent_that_keeps_its_guard_stopped_does_not_hold_a_worker() {
    let bench = Bench::new("held");
    let mut executor = bench.child(&["--running", "1"]);
    let pids = bench.show("agent.pids");
    let id = executor.start(&bench.repo, &format!("hold-guard {pids}"));
    let pids = bench.pids("agent.pids", 1);
    executor.call("task/cancel", json!({"task_id": id}));
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "cancelled", "{record}");
    wait_for_end(&pids);
    let next = executor.done(task_with(&bench.repo, "write a.txt x", json!({})));
    assert_eq!(next["outcome"], "succeeded", "{next}");
}

#[test]
fn the_end_of_the_input_and_signals_and_sigkill_end_every_tree() {
    let bench = Bench::new("ends");
    for (round, end) in ["close", "terminate", "kill"].into_iter().enumerate() {
        let mut executor = bench.child(&[]);
        let name = format!("{round}.pids");
        let pids = bench.show(&name);
        let id = executor.start(&bench.repo, &format!("daemon {pids}\nstubborn {pids}"));
        let pids = bench.pids(&name, 2);
        match end {
            "close" => executor.close(),
            "terminate" => executor.terminate(),
            _ => executor.kill(),
        }
        wait_for_end(&pids);
        if end == "kill" {
            assert_eq!(bench.states(&id).last().unwrap(), "running");
        } else {
            assert_eq!(bench.states(&id).last().unwrap(), "interrupted", "{end}");
        }
        let mut next = bench.child(&[]);
        let record = next.record(&id);
        assert_eq!(record["outcome"], "interrupted", "{end}: {record}");
        assert!(bench.task_dir(&id).join("work/a.txt").exists());
        next.close();
    }
}

#[test]
fn a_gate_that_hangs_ends_with_its_task() {
    let bench = Bench::new("gate");
    let mut executor = bench.child(&[]);
    let task = task_with(
        &bench.repo,
        "write a.txt x",
        json!({"acceptance": ["gate:hangs"]}),
    );
    let id = task["task_id"].as_str().unwrap().to_owned();
    executor.submit(task);
    let pids = bench.pids("gate.pids", 1);
    assert_eq!(executor.summary(&id)["state"], "verifying");
    executor.call("task/cancel", json!({"task_id": id}));
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "cancelled", "{record}");
    assert_ne!(record["verification"], "passed");
    wait_for_end(&pids);
    assert!(!fs::exists(bench.task_dir(&id).join("gate")).unwrap());
}
