//! SIGKILL of the executor in every state: nothing is lost, and nothing runs twice.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, git, new_id, task, task_with, wait_for_end};
use crate::support::wait::wait_for;

#[test]
fn a_task_that_waits_waits_again_and_one_that_ran_is_interrupted() {
    let bench = Bench::new("crash");
    let other = bench.add_repo("other");
    let mut executor = bench.child(&["--running", "2"]);
    let pids = bench.show("agent.pids");
    let running = executor.start(&bench.repo, &format!("write a.txt x\nsleep 3600 {pids}"));
    let verifying = task_with(
        &other,
        "write a.txt x",
        json!({"acceptance": ["gate:hangs"]}),
    );
    let verifying_id = verifying["task_id"].as_str().unwrap().to_owned();
    executor.submit(verifying);
    let agents = bench.pids("agent.pids", 1);
    let gates = bench.pids("gate.pids", 1);
    let waiting = executor.start(&bench.repo, "write a.txt waited");
    executor.kill();
    wait_for_end(&agents);
    wait_for_end(&gates);
    // A person sees what became of them before the next executor does.
    let list = String::from_utf8(bench.task(&["list"]).stdout).unwrap();
    assert_eq!(list.matches("interrupted").count(), 2, "{list}");
    assert_eq!(list.matches("queued").count(), 1, "{list}");
    let mut next = bench.child(&[]);
    for id in [&running, &verifying_id] {
        let record = next.record(id);
        assert_eq!(record["error"]["code"], "interrupted", "{record}");
    }
    assert_eq!(next.record(&waiting)["outcome"], "succeeded");
    for (name, kept) in [
        ("work", true),
        ("home", false),
        ("git", false),
        ("gate", false),
    ] {
        assert_eq!(
            bench.task_dir(&verifying_id).join(name).exists(),
            kept,
            "{name}"
        );
    }
    assert_eq!(bench.states(&running), ["queued", "running", "interrupted"]);
    assert_eq!(
        bench.states(&waiting),
        ["queued", "running", "verifying", "succeeded"]
    );
    // A result that no record tells of is taken back.
    let refs = git(
        &other,
        &["for-each-ref", "--format=%(refname)", "refs/rocco"],
    );
    assert_eq!(refs, format!("refs/rocco/base/{verifying_id}"));
    // Neither the agent nor the gate has run again.
    assert_eq!(bench.pids("agent.pids", 1), agents);
    assert_eq!(bench.pids("gate.pids", 1), gates);
    // The commit that the interrupted work stands on is kept for whoever looks at it.
    git(
        &bench.repo,
        &["rev-parse", &format!("refs/rocco/base/{running}")],
    );
    // The same submission is still the same task.
    let again = next.submit(task(&running, &bench.repo, "anything"));
    assert_eq!(again["state"], "interrupted");
}

/// Git ran what an agent had configured in its clone, for whoever looked at it before the next
/// executor had started.
#[test]
fn the_clone_of_an_executor_that_was_killed_is_disarmed_at_once() {
    let bench = Bench::new("crash-clone");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let goal = format!(
        "sh git config core.fsmonitor false; git init -q --bare bare; git init -q inner\n\
         sleep 3600 {pids}"
    );
    let id = executor.start(&bench.repo, &goal);
    let agents = bench.pids("agent.pids", 1);
    let work = bench.task_dir(&id).join("work");
    let is_armed = || [".git", "inner/.git", "bare/HEAD"].map(|name| work.join(name).exists());
    assert_eq!(is_armed(), [true; 3]);
    executor.kill();
    wait_for_end(&agents);
    wait_for("a clone that is disarmed", || {
        (is_armed() == [false; 3]).then_some(())
    });
    assert!(work.join("bare/HEAD.disarmed").exists());
}

/// An executor that was about to end had ended its watchmen before it made the clones safe, and was
/// killed in between.
#[test]
fn the_clone_of_an_executor_that_was_killed_while_it_ended_is_disarmed() {
    const FILES: usize = 3_000;
    let bench = Bench::new("crash-ending");
    for after_ms in [1, 2, 3, 4, 6, 8, 12] {
        let mut executor = bench.child(&[]);
        let pids = format!("agent.{after_ms}.pids");
        let goal = format!(
            "sh git config core.fsmonitor false; mkdir many; cd many; \
             touch $(seq {FILES}); git init -q inner\n\
             sleep 3600 {}",
            bench.show(&pids)
        );
        let id = executor.start(&bench.repo, &goal);
        let agents = bench.pids(&pids, 1);
        executor.terminate_and_kill(Duration::from_millis(after_ms));
        wait_for_end(&agents);
        let work = bench.task_dir(&id).join("work");
        wait_for("a clone that is disarmed", || {
            let mut dirs = [".git", "many/inner/.git"].iter();
            (!dirs.any(|dir| work.join(dir).join("config").exists())).then_some(())
        });
    }
}

/// The system forgot how each child of the executor had ended, and the executor hung at its start.
#[test]
fn an_executor_that_was_started_with_sigchld_ignored_works() {
    let bench = Bench::new("sigchld");
    let executor = bench.command(&[]);
    let mut command = std::process::Command::new("python3");
    let start = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); \
                 os.execv(sys.argv[1], sys.argv[1:])";
    command.args(["-c", start]).arg(executor.get_program());
    command.args(executor.get_args()).current_dir(&bench.root);
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut executor = bench.started(&mut command);
    let id = executor.start(&bench.repo, "write a.txt new");
    assert_eq!(executor.record(&id)["outcome"], "succeeded");
    executor.close();
}

#[test]
fn a_task_that_was_being_cancelled_is_cancelled() {
    let bench = Bench::new("crash-cancel");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let id = executor.start(&bench.repo, &format!("stubborn {pids}"));
    let pids = bench.pids("agent.pids", 1);
    executor.call("task/cancel", json!({"task_id": id}));
    executor.kill();
    wait_for_end(&pids);
    assert_eq!(bench.child(&[]).record(&id)["outcome"], "cancelled");
}

#[test]
fn an_accepted_task_survives_a_kill_at_any_moment() {
    let bench = Bench::new("crash-any");
    let mut accepted = Vec::new();
    for round in 0..12_u64 {
        let mut executor =
            bench.child(&["--durable", if round % 2 == 0 { "crash" } else { "power" }]);
        let goal = format!("write a.txt {round}");
        accepted.push((executor.start(&bench.repo, &goal), goal));
        // A task takes some hundred milliseconds: the kills fall into all of its parts.
        std::thread::sleep(std::time::Duration::from_millis(round * 40));
        executor.kill();
    }
    let mut executor = bench.child(&[]);
    for (id, goal) in &accepted {
        let record = executor.record(id);
        let outcome = record["outcome"].as_str().unwrap();
        assert!(["succeeded", "interrupted"].contains(&outcome), "{record}");
        let states = bench.states(id);
        let runs = states.iter().filter(|state| *state == "running").count();
        assert!(runs <= 1, "{states:?}");
        let kept = fs::read_to_string(bench.task_dir(id).join("task.json")).unwrap();
        assert!(kept.contains(goal.as_str()));
        if outcome == "succeeded" {
            git(&bench.repo, &["rev-parse", &format!("refs/rocco/{id}")]);
        }
    }
}

/// An executor that a server has started as its child ends with it, and with every client's way to
/// end a server.
#[test]
fn a_child_of_a_server_ends_with_it_and_its_task_is_interrupted() {
    let bench = Bench::new("child");
    let executor = format!(
        "'{}' executor --sandbox off --state '{}' --allow-repo '{}' -- '{}'",
        env!("CARGO_BIN_EXE_rocco"),
        bench.path("state").display(),
        bench.root.display(),
        super::bench::script("agent.py").display(),
    );
    let client = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rocco"));
        command
            .args(["mcp", "--executor", &executor])
            .env_remove("ROCCO_DEPTH");
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        bench.client(&mut command)
    };
    for (round, end) in ["close", "terminate", "kill"].into_iter().enumerate() {
        let mut server = client();
        let name = format!("{round}.pids");
        let pids = bench.show(&name);
        let goal = format!("daemon {pids}\nstubborn {pids}");
        let arguments = json!({"goal": goal, "repo": bench.repo, "acceptance": ["it is done"]});
        let submitted = wait_for("the executor before", || {
            let answer = server.tool("larry_submit_task", arguments.clone());
            answer["task_id"].is_string().then_some(answer)
        });
        let pids = bench.pids(&name, 2);
        match end {
            "close" => server.close(),
            "terminate" => server.terminate(),
            _ => server.kill(),
        }
        wait_for_end(&pids);
        let mut next = client();
        let status = wait_for("the record", || {
            let id = &submitted["task_id"];
            let status = next.tool("larry_task_status", json!({"task_id": id}));
            status["state"].is_string().then_some(status)
        });
        assert_eq!(status["state"], "interrupted", "{end}: {status}");
        next.close();
    }
}

#[test]
fn what_was_half_written_is_put_right() {
    let bench = Bench::new("torn");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, "write a.txt x");
    executor.record(&id);
    executor.close();
    let states = bench.task_dir(&id).join("state.ndjson");
    let whole = fs::read_to_string(&states).unwrap();
    // The record was in place, and its state was not written to the end.
    let torn = &whole[..whole.len() - 20];
    fs::write(&states, torn).unwrap();
    let half = bench.path("state/tasks").join(format!(".new-{}", new_id()));
    fs::create_dir(&half).unwrap();
    fs::File::create(half.join("task.json"))
        .unwrap()
        .write_all(b"{\"task")
        .unwrap();
    let mut next = bench.child(&[]);
    assert_eq!(next.summary(&id)["state"], "succeeded");
    assert!(!half.exists());
    assert_eq!(bench.states(&id).len(), 3);
    next.close();
    // What cannot be read is named, and not taken for nothing.
    fs::remove_file(&states).unwrap();
    fs::create_dir(&states).unwrap();
    let refused = bench.refused(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&*states.to_string_lossy()), "{said}");
}

/// A person cancels what waits while no executor is there, and it is not begun by the next.
#[test]
fn what_was_cancelled_meanwhile_is_not_begun() {
    let bench = Bench::new("meanwhile");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    executor.start(&bench.repo, &format!("sleep 3600 {pids}"));
    bench.pids("agent.pids", 1);
    let waiting = executor.start(&bench.repo, "write a.txt waited");
    executor.kill();
    assert!(bench.task(&["cancel", &waiting]).status.success());
    let mut next = bench.child(&[]);
    next.record(&waiting);
    assert_eq!(bench.states(&waiting), ["queued", "cancelled"]);
}

/// A record that somebody has damaged is told as none, to fronts and to people.
#[test]
fn a_damaged_record_is_none() {
    let bench = Bench::new("damaged");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, "write a.txt x");
    executor.record(&id);
    for text in ["", "{\"outc", "{\n\"outcome\": \"succeeded\"}", "[]"] {
        fs::write(bench.task_dir(&id).join("result.json"), text).unwrap();
        let summary = executor.summary(&id);
        assert_eq!(summary["state"], "succeeded", "{summary}");
        assert!(summary["record"].is_null(), "{summary}");
    }
    // A task that cannot be read at all is named.
    executor.close();
    fs::write(bench.task_dir(&id).join("task.json"), "").unwrap();
    let list = bench.task(&["list"]);
    let said = String::from_utf8(list.stderr).unwrap();
    assert!(list.stdout.is_empty() && list.status.code() == Some(1));
    assert!(said.contains(&id) && said.lines().count() == 1, "{said}");
}

/// A FIFO in the place of a file of the state was waited for, and a file was read whatever its
/// size.
#[test]
fn a_file_of_the_state_that_is_a_fifo_or_too_large_is_none() {
    let bench = Bench::new("fifo");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, "write a.txt x");
    executor.record(&id);
    let dir = bench.task_dir(&id);
    let record = fs::OpenOptions::new()
        .write(true)
        .open(dir.join("result.json"));
    record.unwrap().set_len(1 << 40).unwrap();
    assert!(executor.summary(&id)["record"].is_null());
    let make_fifo = |name: &str| {
        let path = dir.join(name);
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    make_fifo("result.json");
    assert!(executor.summary(&id)["record"].is_null());
    executor.close();
    make_fifo("log");
    let log = bench.task(&["log", &id]);
    let said = String::from_utf8(log.stderr).unwrap();
    assert!(said.contains("it is not a file"), "{said}");
    make_fifo("task.json");
    let said = String::from_utf8(bench.task(&["list"]).stderr).unwrap();
    assert!(said.contains(&id), "{said}");
    bench.child(&[]).close();
}

#[test]
fn a_record_past_its_keep_time_is_told_as_expired() {
    let bench = Bench::new("expired");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, "write a.txt x");
    executor.record(&id);
    executor.close();
    let states = bench.task_dir(&id).join("state.ndjson");
    let old = "{\"at\":\"2019-12-01T09:00:00.000Z\",\"state\":\"succeeded\"}\n";
    fs::write(&states, old).unwrap();
    let mut next = bench.child(&[]);
    let code = wait_for("expiry", || {
        let answer = next.call("task/get", json!({"task_id": id, "part": "summary"}));
        answer["error"]["data"]["code"].as_str().map(str::to_owned)
    });
    assert_eq!(code, "expired");
    assert!(!bench.task_dir(&id).exists());
    // The result is the user's.
    git(&bench.repo, &["rev-parse", &format!("refs/rocco/{id}")]);
}
