//! What is kept of tasks that have ended, and what makes room for others.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use super::bench::{Bench, Executor, new_id, task};
use crate::support::skip::leave_out;
use crate::support::wait::wait_for;

/// Makes a task look as if it had ended years ago.
fn age(bench: &Bench, id: &str) {
    let old = "{\"at\":\"2019-12-01T09:00:00.000Z\",\"state\":\"succeeded\"}\n";
    fs::write(bench.task_dir(id).join("state.ndjson"), old).unwrap();
}

/// Waits until an executor has looked for what is past keeping: this task is.
fn wait_for_expiry(executor: &mut Executor, old: &str) {
    wait_for("expiry", || {
        let answer = executor.call("task/get", json!({"task_id": old, "part": "summary"}));
        (answer["error"]["data"]["code"] == "expired").then_some(())
    });
}

/// A file of three terabytes that takes no block on the disk made every older record expire.
#[test]
fn a_sparse_file_in_one_clone_costs_no_task_its_record() {
    let bench = Bench::new("sparse");
    let mut executor = bench.child(&[]);
    let done = |executor: &mut Executor, goal: &str| {
        let id = executor.start(&bench.repo, goal);
        executor.record(&id);
        id
    };
    let old = done(&mut executor, "write a.txt old");
    let older = done(&mut executor, "write a.txt older");
    let failed = done(&mut executor, "say nothing\nexit 1");
    let newer = done(&mut executor, "write a.txt newer");
    executor.close();
    age(&bench, &old);
    let sparse = bench.task_dir(&failed).join("work/sparse");
    let made = fs::File::create(&sparse).and_then(|file| file.set_len(3 << 40));
    made.unwrap();
    let mut next = bench.child(&[]);
    wait_for_expiry(&mut next, &old);
    for id in [&older, &failed, &newer] {
        assert!(next.summary(id)["record"].is_object(), "{id}");
    }
    assert!(sparse.exists());
}

/// A mistyped directory looked as if there were no tasks.
#[test]
fn a_state_directory_that_is_not_there_is_told() {
    let bench = Bench::new("mistyped");
    let state = bench.show("state");
    for words in [
        &["list"][..],
        &["show", "x"],
        &["log", "x"],
        &["cancel", "x"],
    ] {
        let output = bench.task(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(1), 0),
            "{said}"
        );
        assert!(
            said.starts_with(&format!("rocco: {state} cannot be read: ")),
            "{said}"
        );
    }
    std::fs::create_dir(bench.path("state")).unwrap();
    assert_eq!(bench.task(&["list"]).status.code(), Some(0));
    let said = bench.task(&["show", "x"]).stderr;
    let hint = format!("see: rocco task list --state {state}");
    assert!(String::from_utf8_lossy(&said).contains(&hint));
}

/// The state directory was named where what is in it is in the way.
#[test]
fn what_is_in_the_way_in_a_state_directory_is_named() {
    let bench = Bench::new("in-the-way");
    let (tasks, lock) = (bench.path("state/tasks"), bench.path("state/lock"));
    let said = |output: Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let seen = (output.status.code(), said.lines().count());
        assert_eq!(seen, (Some(1), 1), "{said}");
        said
    };
    fs::create_dir_all(&lock).unwrap();
    fs::set_permissions(bench.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
    let refused = said(bench.refused(&[]));
    assert!(
        refused.starts_with(&format!("rocco: {}: ", lock.display())),
        "{refused}"
    );
    assert!(refused.contains("--state"), "{refused}");
    fs::remove_dir(&tasks).unwrap();
    fs::write(&tasks, "").unwrap();
    let refused = said(bench.refused(&[]));
    assert!(
        refused.starts_with(&format!("rocco: {}: ", tasks.display())),
        "{refused}"
    );
    let beneath = tasks.join("state");
    let refused = said(bench.refused(&["--state", beneath.to_str().unwrap()]));
    let wanted = format!("rocco: {}: not a directory; ", tasks.display());
    assert!(refused.starts_with(&wanted), "{refused}");
    for words in [&["list"][..], &["show", "x"]] {
        let refused = said(bench.task(words));
        let wanted = format!("rocco: {} cannot be read: ", tasks.display());
        assert!(refused.starts_with(&wanted), "{refused}");
    }
}

/// Two `rocco task list` at once: one of them took the other for an executor.
#[test]
fn whoever_looks_at_tasks_at_once_sees_the_same() {
    let bench = Bench::new("looks");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, &format!("sleep 3600 {}", bench.show("pids")));
    bench.pids("pids", 1);
    let listed = || String::from_utf8(bench.task(&["list"]).stdout).unwrap();
    let another = fs::File::open(bench.path("state/lock")).unwrap();
    assert!(listed().contains("running"));
    let other = executor.start(&bench.repo, "say");
    executor.call("task/cancel", json!({"task_id": other}));
    let many = String::from_utf8(bench.task(&["show", "tsk_"]).stderr).unwrap();
    assert!(
        many.contains("give more of it; see: rocco task list --state /"),
        "{many}"
    );
    executor.kill();
    another.lock_shared().unwrap();
    assert!(listed().contains("interrupted"));
    drop(another);
    let mut next = bench.child(&[]);
    assert_eq!(next.record(&id)["outcome"], "interrupted");
}

/// A directory that nobody may enter, and residue of one, kept an executor from its start.
#[test]
fn what_cannot_be_entered_is_removed_and_keeps_no_executor_from_its_start() {
    let bench = Bench::new("residue");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, "say nothing\nexit 1");
    executor.record(&id);
    executor.close();
    let residue = bench.path("state/tasks/.new-residue");
    for dir in [bench.task_dir(&id).join("work/closed"), residue.clone()] {
        fs::create_dir_all(dir.join("inner")).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let half_written = bench.task_dir(&id).join(".new-result.json");
    fs::write(&half_written, "{").unwrap();
    age(&bench, &id);
    let mut next = bench.child(&[]);
    assert!(!residue.exists() && !half_written.exists());
    wait_for_expiry(&mut next, &id);
    wait_for("the end of its files", || {
        let left = fs::read_dir(bench.path("state/tasks")).unwrap().count();
        (left == 0).then_some(())
    });
}

/// The manual said that a failure of the disk is worth another call, and the wire that it is not.
#[test]
fn what_the_disk_does_not_give_is_worth_another_call() {
    let bench = Bench::new("storage");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, "write a.txt x");
    executor.record(&id);
    let log = bench.task_dir(&id).join("log");
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let answer = executor.call("task/get", json!({"task_id": id, "part": "log"}));
    let data = &answer["error"]["data"];
    assert_eq!(
        (&data["code"], &data["retryable"]),
        (&json!("storage"), &json!(true))
    );
}

/// A full disk was told as a fault of the repository, in the system's words without its place.
#[test]
fn a_full_disk_is_told_with_its_place() {
    let bench = Bench::new("no-room");
    let state = bench.path("state");
    fs::create_dir(&state).unwrap();
    let mount = "mount -t tmpfs -o size=1m,mode=700 none \"$0\" && exec \"$@\"";
    let apart = |words: &[&OsStr]| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", mount]).arg(&state);
        command.args(words).current_dir(&bench.root);
        command.env_remove("ROCCO_DEPTH");
        command
    };
    if !apart(&[OsStr::new("true")])
        .status()
        .is_ok_and(|status| status.success())
    {
        leave_out("NAMESPACES", "a disk that is full needs a mount of its own");
        return;
    }
    let executor = bench.command(&[]);
    let words: Vec<&OsStr> = [executor.get_program()]
        .into_iter()
        .chain(executor.get_args())
        .collect();
    let mut command = apart(&words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut executor = bench.started(&mut command);
    let inside = format!("/proc/{}/root{}/fill", executor.child.id(), state.display());
    let mut fill = fs::File::create(inside).unwrap();
    let bytes = [1; 4096];
    // No more than the file system has.
    let filled = (0..1024).find_map(|_| fill.write_all(&bytes).err());
    assert_eq!(filled.unwrap().kind(), ErrorKind::StorageFull);
    let answer = executor.call("task/submit", task(&new_id(), &bench.repo, "say"));
    assert_eq!(answer["error"]["data"]["code"], "storage", "{answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    let place = format!("no room on the file system of {}", state.display());
    assert!(
        said.contains(&place) && said.contains("make room there"),
        "{said}"
    );
}

/// The number of a change was made of the clock: after a step back of the clock, a front took what
/// the next executor told for old, and never heard of the end.
#[test]
fn changes_go_on_being_numbered_upwards_when_the_clock_was_set_back() {
    let bench = Bench::new("seq");
    let mut executor = bench.child(&[]);
    let id = executor.start(&bench.repo, &format!("sleep 3600 {}", bench.show("pids")));
    bench.pids("pids", 1);
    let before = executor.wait_state(&id, &["running"])["seq"]
        .as_u64()
        .unwrap();
    executor.kill();
    // As if all of it had happened an hour later than it is now.
    let task = bench.task_dir(&id).join("task.json");
    let text = fs::read_to_string(&task).unwrap();
    let at = text.find("\"created_at\":\"").unwrap() + 14;
    let later = format!("{}2999{}", &text[..at], &text[at + 4..]);
    fs::write(&task, later).unwrap();
    let after = bench.child(&[]).summary(&id);
    assert_eq!(after["state"], "interrupted");
    assert!(after["seq"].as_u64().unwrap() > before, "{before}: {after}");
}
