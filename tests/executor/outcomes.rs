//! What becomes of a task, and what is shown of it.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::bench::{Bench, git, new_id, task, task_with};
use crate::support::wait::output;

#[test]
fn a_task_is_done_in_a_clone_and_its_result_is_a_ref() {
    let bench = Bench::new("done");
    let head = git(&bench.repo, &["rev-parse", "HEAD"]);
    let mut executor = bench.child(&[]);
    let id = new_id();
    let goal =
        "write a.txt changed\ncommit\nwrite new/c.txt made\nsay working\noutcome done all is well";
    let record = executor.done(task(&id, &bench.repo, goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(record["verification"], "none");
    assert_eq!(record["summary"], "all is well");
    assert_eq!(record["base_commit"], head.as_str());
    assert_eq!(record["ref"], format!("refs/rocco/{id}"));
    assert_eq!(record["agent"]["exit_code"], 0);
    let paths: Vec<&str> = record["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["a.txt", "new/c.txt"]);
    // The user's own files and branches are as they were.
    assert_eq!(git(&bench.repo, &["status", "--porcelain"]), "");
    assert_eq!(git(&bench.repo, &["rev-parse", "HEAD"]), head);
    assert_eq!(
        git(&bench.repo, &["rev-parse", &format!("refs/rocco/{id}^")]),
        head
    );
    assert_eq!(
        git(&bench.repo, &["show", &format!("refs/rocco/{id}:a.txt")]),
        "changed"
    );
    let refs = git(&bench.repo, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, format!("refs/heads/main\nrefs/rocco/{id}"));
    assert_eq!(executor.part(&id, "log"), "working\n");
    let diff = executor.part(&id, "diff");
    assert!(
        diff.contains("+changed") && diff.contains("b/new/c.txt"),
        "{diff}"
    );
    // The diff can be applied as it is.
    git(
        &bench.repo,
        &[
            "apply",
            "--check",
            &bench.task_dir(&id).join("diff.patch").to_string_lossy(),
        ],
    );
    assert_eq!(
        bench.states(&id),
        ["queued", "running", "verifying", "succeeded"]
    );
    assert!(!bench.task_dir(&id).join("work").exists());
    let states: Vec<&Value> = executor
        .updates
        .iter()
        .map(|update| &update["state"])
        .collect();
    assert_eq!(states.last(), Some(&&json!("succeeded")));
    let seqs: Vec<u64> = executor
        .updates
        .iter()
        .map(|update| update["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    executor.close();
}

#[test]
fn success_needs_what_the_executor_has_seen() {
    let bench = Bench::new("judged");
    let mut executor = bench.child(&[]);
    let rows = [
        (
            "say Done: a.txt written.",
            json!(["ok"]),
            "failed",
            "no_changes",
            "none",
        ),
        (
            "outcome done all is well",
            json!(["ok"]),
            "failed",
            "no_changes",
            "none",
        ),
        (
            "outcome no_change_needed it is so",
            json!(["ok"]),
            "succeeded",
            "",
            "none",
        ),
        (
            "outcome needs_input which one?",
            json!(["ok"]),
            "needs_input",
            "needs_input",
            "none",
        ),
        (
            "write a.txt x\nexit 3",
            json!(["ok"]),
            "failed",
            "agent_failed",
            "none",
        ),
        (
            "write a.txt x\ndie",
            json!(["ok"]),
            "failed",
            "agent_failed",
            "none",
        ),
        (
            "write a.txt right",
            json!(["gate:holds"]),
            "succeeded",
            "",
            "passed",
        ),
        (
            "write a.txt wrong",
            json!(["gate:holds"]),
            "failed",
            "gate_failed",
            "failed",
        ),
        (
            "write a.txt 1",
            json!(["gate:empty"]),
            "failed",
            "gate_failed",
            "failed",
        ),
        (
            "write a.txt 2",
            json!(["gate:slow"]),
            "failed",
            "gate_failed",
            "failed",
        ),
        (
            "write a.txt 3",
            json!(["gate:inner"]),
            "failed",
            "gate_failed",
            "failed",
        ),
        (
            "outcome no_change_needed",
            json!(["gate:holds"]),
            "failed",
            "gate_failed",
            "failed",
        ),
        (
            "write a.txt right\nsay 2",
            json!(["gate:holds", "gate:empty"]),
            "failed",
            "gate_failed",
            "failed",
        ),
    ];
    for (goal, acceptance, outcome, code, verification) in rows {
        let record = executor.done(task_with(
            &bench.repo,
            goal,
            json!({"acceptance": acceptance}),
        ));
        let found = record["error"]["code"].as_str().unwrap_or("");
        assert_eq!(record["outcome"], outcome, "{goal}: {record}");
        assert_eq!(
            (found, &record["verification"]),
            (code, &json!(verification)),
            "{goal}"
        );
    }
}

#[test]
fn gates_leave_evidence() {
    let bench = Bench::new("evidence");
    let mut executor = bench.child(&[]);
    let acceptance = json!({"acceptance": ["gate:holds", "gate:touchy", "be brief"]});
    let goal = "write a.txt right\nwrite src/b.txt too";
    let task = task_with(&bench.repo, goal, acceptance);
    let id = task["task_id"].as_str().unwrap().to_owned();
    let record = executor.done(task);
    let gate = &record["gates"][0];
    assert_eq!(
        (&gate["name"], &gate["passed"]),
        (&json!("holds"), &json!(true)),
        "{record}"
    );
    assert_eq!(
        gate["tests"],
        json!({"passed": 1, "failed": 0, "skipped": 0})
    );
    assert!(gate["tail"].as_str().unwrap().contains("Ran 1 test"));
    let warnings = record["warnings"].to_string();
    assert!(
        warnings.contains("touchy runs what the task changed: a.txt, src/b.txt"),
        "{warnings}"
    );
    let text = executor.part(&id, "gates");
    assert!(
        text.contains("== holds: ") && text.contains("== touchy: passed"),
        "{text}"
    );
    // What decides in words is the agent's to read.
    let goal = fs::read_to_string(bench.task_dir(&id).join("goal")).unwrap();
    assert!(
        goal.contains("- be brief") && goal.contains("holds, touchy"),
        "{goal}"
    );
    assert!(!goal.contains("gate:"), "{goal}");
}

/// A gate with a summary or a report that the result itself had brought along passed.
#[test]
fn a_false_summary_or_report_does_not_pass_a_gate() {
    let bench = Bench::new("counts");
    let mut executor = bench.child(&[]);
    let report = "<testsuite><testcase/></testsuite>";
    let leaves = |what: &str| format!("write a.txt import os, sys; {what}");
    let rows = [
        ("summary", "write a.txt echo 2 passed, 0 failed".into(), ""),
        (
            "summary",
            "write a.txt echo 1 passed, 1 failed".into(),
            "tests that failed",
        ),
        (
            "summary",
            "write a.txt echo 0 passed, 0 failed".into(),
            "no test at all",
        ),
        ("summary", "write a.txt exit 0".into(), "no summary"),
        (
            "summary",
            "write a.txt echo 9 passed, 0 failed; echo 2 passed, 0 failed".into(),
            "more than one summary",
        ),
        ("reports", leaves("right = True"), ""),
        (
            "reports",
            leaves("print('Ran 3 tests', 'OK', sep=chr(10))"),
            "tests that failed",
        ),
        (
            "reports",
            format!(
                "{}\nwrite out/report.xml {report}",
                leaves("sys.stdout.flush(); os._exit(0)")
            ),
            "no report",
        ),
        (
            "reports",
            leaves("os.mkfifo('out/report.xml'); os._exit(0)"),
            "something else than a plain file",
        ),
        (
            "reports",
            leaves(
                "os.truncate(os.open('out/report.xml', os.O_CREAT | os.O_RDWR), 1 << 25); os._exit(0)",
            ),
            "more than",
        ),
    ];
    for (gate, goal, why) in rows {
        let acceptance = json!({"acceptance": [format!("gate:{gate}")]});
        let record = executor.done(task_with(&bench.repo, &goal, acceptance));
        let message = record["error"]["message"].as_str().unwrap_or("");
        assert_eq!(message.is_empty(), why.is_empty(), "{goal}: {record}");
        assert!(message.contains(why), "{goal}: {record}");
        let warns = record["warnings"]
            .to_string()
            .contains("was removed before");
        assert_eq!(warns, goal.contains("report.xml <"), "{record}");
    }
}

#[test]
fn a_gate_gets_its_words_as_they_stand() {
    let bench = Bench::new("words");
    let mut executor = bench.child(&[]);
    let task = task_with(
        &bench.repo,
        "write a.txt x",
        json!({"acceptance": ["gate:words"]}),
    );
    let record = executor.done(task);
    let tail = record["gates"][0]["tail"].as_str().unwrap();
    assert!(
        tail.contains("words ['$(id) `id`; id && id | id > id', '*']"),
        "{tail}"
    );
}

#[test]
fn a_task_stands_on_its_commit_whatever_the_user_does_meanwhile() {
    let bench = Bench::new("pinned");
    let mut executor = bench.child(&[]);
    let (pids, go) = (bench.show("agent.pids"), bench.show("go"));
    let goal = format!("sleep 0 {pids}\nwait {go}\nwrite src/b.txt mine");
    let id = executor.start(&bench.repo, &goal);
    bench.pids("agent.pids", 1);
    let base = git(&bench.repo, &["rev-parse", "HEAD"]);
    // The commit is gone from every branch and every log of the user's.
    fs::write(bench.repo.join("a.txt"), "amended\n").unwrap();
    git(
        &bench.repo,
        &["commit", "-q", "-a", "--amend", "-m", "amended"],
    );
    git(&bench.repo, &["reflog", "expire", "--expire=now", "--all"]);
    git(&bench.repo, &["gc", "-q", "--prune=now"]);
    fs::write(&go, "").unwrap();
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(
        git(&bench.repo, &["rev-parse", &format!("refs/rocco/{id}^")]),
        base
    );
    let refs = git(&bench.repo, &["for-each-ref", "--format=%(refname)"]);
    assert!(!refs.contains("refs/rocco/base/"), "{refs}");
}

/// A repository that converts its files has no changes for that, and one whose filter fails has its
/// changes told all the same: the filter is not run.
#[test]
fn what_a_repository_converts_is_no_change() {
    let bench = Bench::new("converts");
    git(&bench.repo, &["config", "core.autocrlf", "true"]);
    fs::write(bench.repo.join("lines.txt"), "one\r\ntwo\r\n").unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "lines"]);
    let mut executor = bench.child(&["--sandbox", "off"]);
    let record = executor.done(task(&new_id(), &bench.repo, "write a.txt x"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(
        !record["warnings"].to_string().contains("working tree"),
        "{record}"
    );
    let other = bench.add_repo("other");
    fs::write(other.join(".gitattributes"), "*.txt filter=absent\n").unwrap();
    git(&other, &["add", "."]);
    git(&other, &["commit", "-q", "-m", "filter"]);
    git(&other, &["config", "filter.absent.required", "true"]);
    git(&other, &["config", "filter.absent.clean", "false"]);
    fs::write(other.join("a.txt"), "other\n").unwrap();
    let record = executor.done(task(&new_id(), &other, "write a.txt x"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(
        record["warnings"]
            .to_string()
            .contains("the working tree has changes"),
        "{record}"
    );
}

/// What a partial clone does not have would be taken for what the agent has removed.
#[test]
fn a_repository_without_all_of_its_commit_is_not_worked_in() {
    let bench = Bench::new("partial");
    git(&bench.repo, &["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", bench.repo.display());
    let partial = bench.path("partial");
    let to = partial.to_string_lossy().into_owned();
    git(
        &bench.root,
        &["clone", "-q", "--filter=blob:none", "--sparse", &from, &to],
    );
    let mut executor = bench.child(&[]);
    let id = new_id();
    let record = executor.done(task(&id, &partial, "write a.txt x"));
    assert_eq!(record["error"]["code"], "workspace_failed", "{record}");
    assert!(record.to_string().contains("src/b.txt"), "{record}");
    assert!(!git(&partial, &["for-each-ref"]).contains(&format!("refs/rocco/{id}")));
    git(&partial, &["sparse-checkout", "disable"]);
    let record = executor.done(task(&new_id(), &partial, "write a.txt y"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
}

/// What an agent meant to say is not passed over, and neither is a bound that cannot be kept.
#[test]
fn what_is_not_understood_is_told() {
    let bench = Bench::new("meant");
    let mut executor = bench.child(&[]);
    let goal = "write ../home/outcome.json nope\nwrite a.txt x";
    let record = executor.done(task(&new_id(), &bench.repo, goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(
        record["warnings"].to_string().contains("is not understood"),
        "{record}"
    );
    executor.close();
    let refused = bench.refused(&["--writable", "/no/such/place"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--writable /no/such/place"));
}

/// The agent worked for an hour, and then the program of its gate was not there.
#[test]
fn a_gate_whose_program_is_not_there_is_told_before_the_agent_starts() {
    let bench = Bench::new("absent");
    let mut executor = bench.child(&[]);
    for (gate, why) in [
        (
            "absent",
            "rocco-no-such-program cannot be found in the directories of PATH, and may be named by \
             its path",
        ),
        ("plain", "/etc/passwd is not executable"),
        ("inner", ""),
        ("passed-path", ""),
    ] {
        let acceptance = json!({"acceptance": ["gate:holds", format!("gate:{gate}")]});
        let answer = executor.call("task/submit", task_with(&bench.repo, "say", acceptance));
        let error = &answer["error"];
        if why.is_empty() {
            assert!(error.is_null(), "{answer}");
            continue;
        }
        assert_eq!(error["data"]["code"], "unsupported", "{answer}");
        let said = format!("the gate \"{gate}\" cannot be started: {why}");
        assert_eq!(error["message"], said.as_str());
    }
}

/// An agent worked, and all that it did was out of a scope that covered nothing.
#[test]
fn a_scope_with_a_pattern_is_told_before_the_agent_starts() {
    let bench = Bench::new("patterns");
    fs::write(bench.repo.join("what?"), "").unwrap();
    let mut executor = bench.child(&[]);
    let files = json!({"files": ["src/*.rs", "what?", "src", "[id].js"]});
    let answer = executor.call("task/submit", task_with(&bench.repo, "say", files));
    let data = &answer["error"]["data"];
    assert_eq!(data["code"], "invalid_arguments", "{answer}");
    let why = "is a pattern, and covers nothing (name the files, or their directory)";
    let fault = json!({"pointer": "/files/0", "reason": format!("{why}: \"src/*.rs\"")});
    assert_eq!(data["faults"], json!([fault]));
}

/// Of several gates that are not defined only the first was named.
#[test]
fn every_gate_that_is_not_defined_is_named_at_once() {
    let bench = Bench::new("undefined");
    let mut executor = bench.child(&[]);
    let acceptance = json!({"acceptance": ["gate:zzz", "in words", "gate:yyy", "gate:"]});
    let answer = executor.call("task/submit", task_with(&bench.repo, "say", acceptance));
    assert_eq!(answer["error"]["data"]["code"], "invalid_arguments");
    let said = answer["error"]["message"].as_str().unwrap();
    for fault in [
        "/acceptance/0 the gate \"zzz\" is not defined",
        "/acceptance/2 the gate \"yyy\" is not defined",
        "/acceptance/3 the gate \"\" is not defined",
    ] {
        assert!(said.contains(fault), "{answer}");
    }
    let fault = |at, name: &str| {
        let reason = format!("the gate {name:?} is not defined");
        json!({"pointer": format!("/acceptance/{at}"), "reason": reason})
    };
    let data = &answer["error"]["data"];
    let listed = json!([fault(0, "zzz"), fault(2, "yyy"), fault(3, "")]);
    assert_eq!((&data["faults"], &data["unlisted"]), (&listed, &json!(0)));
    // What has no room in the list is counted.
    symlink("/", bench.repo.join("out")).unwrap();
    let files: Vec<String> = (0..70).map(|number| format!("out/{number}")).collect();
    let task = task_with(&bench.repo, "say", json!({"files": files}));
    let data = executor.call("task/submit", task)["error"]["data"].clone();
    assert_eq!(data["code"], "path_not_allowed", "{data}");
    assert_eq!(data["faults"].as_array().unwrap().len(), 64, "{data}");
    assert_eq!(
        (&data["faults"][9]["pointer"], &data["unlisted"]),
        (&json!("/files/9"), &json!(6))
    );
}

/// Git's rules for `.gitmodules` are for what a task changes.
#[test]
fn submodules_that_were_there_are_no_fault_of_a_task() {
    let bench = Bench::new("modules");
    let modules = "[submodule \"x\"]\n\tpath = n\n\turl = -bad\n";
    fs::write(bench.repo.join(".gitmodules"), modules).unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "modules"]);
    let mut executor = bench.child(&[]);
    let record = executor.done(task(&new_id(), &bench.repo, "write a.txt x"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let record = executor.done(task(
        &new_id(),
        &bench.repo,
        "remove .gitmodules\nlink a.txt .gitmodules",
    ));
    assert_eq!(record["error"]["code"], "result_failed", "{record}");
}

#[test]
fn changes_outside_of_the_scope_are_told_or_fail() {
    let bench = Bench::new("scope");
    let goal = "write a.txt x\nwrite src/b.txt y\nwrite src/deep/c.txt z";
    let task = |files: Value| task_with(&bench.repo, goal, json!({"files": files}));
    let mut executor = bench.child(&[]);
    for (files, outside) in [
        (json!(["src"]), json!(["a.txt"])),
        (json!(["a.txt", "src/b.txt"]), json!(["src/deep/c.txt"])),
        (json!([]), json!(["a.txt", "src/b.txt", "src/deep/c.txt"])),
        (json!(["a.txt", "src/"]), json!([])),
    ] {
        let record = executor.done(task(files));
        assert_eq!(record["out_of_scope"], outside);
        assert_eq!(record["outcome"], "succeeded");
    }
    executor.close();
    let mut strict = bench.child(&["--strict-scope"]);
    let record = strict.done(task(json!(["src"])));
    assert_eq!(record["error"]["code"], "out_of_scope", "{record}");
    assert_eq!(record["out_of_scope"], json!(["a.txt"]));
    assert_eq!(strict.done(task(json!(["."])))["outcome"], "succeeded");
}

/// A `unittest.py` in the root, and a makefile that is read before the one that was there, passed
/// as successes without a word.
#[test]
fn what_decides_a_gate_is_told_or_fails() {
    let bench = Bench::new("decides");
    let task = |goal: &str| {
        let acceptance = json!({"acceptance": ["gate:module"]});
        task_with(&bench.repo, goal, acceptance)
    };
    let mut executor = bench.child(&[]);
    let planted = "write unittest.py print('Ran 3 tests')";
    let record = executor.done(task(planted));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(
        record["warnings"][0],
        "gate_touched: the gate module runs what the task changed: unittest.py"
    );
    executor.close();
    let mut strict = bench.child(&["--strict-gates"]);
    let record = strict.done(task(planted));
    assert_eq!(record["error"]["code"], "gate_touched", "{record}");
    assert_eq!(record["verification"], "none");
    // A gate that the task was not to pass decides nothing.
    let record = strict.done(task_with(&bench.repo, planted, json!({})));
    assert_eq!(record["outcome"], "succeeded", "{record}");
}

#[test]
fn a_task_is_continued_from_where_the_earlier_one_ended() {
    let bench = Bench::new("follow");
    let mut executor = bench.child(&[]);
    let first = new_id();
    let goal = "write a.txt begun\noutcome needs_input blue or red?";
    let record = executor.done(task(&first, &bench.repo, goal));
    assert_eq!(record["question"], "blue or red?");
    let next = task_with(
        &bench.repo,
        "write src/b.txt blue",
        json!({"follow_up_to": first}),
    );
    let id = next["task_id"].as_str().unwrap().to_owned();
    let record = executor.done(next);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(
        git(&bench.repo, &["show", &format!("refs/rocco/{id}:a.txt")]),
        "begun"
    );
    let goal = fs::read_to_string(bench.task_dir(&id).join("goal")).unwrap();
    assert!(goal.contains("blue or red?"), "{goal}");
    let elsewhere = task_with(
        &bench.add_repo("elsewhere"),
        "say",
        json!({"follow_up_to": first}),
    );
    let answer = executor.call("task/submit", elsewhere);
    assert_eq!(
        answer["error"]["data"]["code"], "invalid_arguments",
        "{answer}"
    );
    let running = executor.start(&bench.repo, "sleep 600");
    let early = task_with(&bench.repo, "say", json!({"follow_up_to": running}));
    let refused = executor.call("task/submit", early);
    let data = &refused["error"]["data"];
    assert_eq!(data["code"], "not_finished", "{refused}");
    assert_eq!(data["retryable"], true, "{refused}");
    executor.call("task/cancel", json!({"task_id": running}));
    let unknown = task_with(&bench.repo, "say", json!({"follow_up_to": new_id()}));
    assert_eq!(
        executor.call("task/submit", unknown)["error"]["data"]["code"],
        "not_found"
    );
}

#[test]
fn a_person_sees_the_tasks_in_short_or_as_json() {
    let bench = Bench::new("terminal");
    let mut executor = bench.child(&[]);
    let id = new_id();
    let goal = "write a.txt right\nsay \u{1b}[31mred";
    let mut task = task(&id, &bench.repo, goal);
    task["acceptance"] = json!(["gate:holds"]);
    executor.done(task);
    let said = |words: &[&str]| {
        let output = bench.task(words);
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let list = said(&["list"]);
    assert_eq!(list.lines().count(), 1);
    assert!(list.starts_with(&format!("{id}  succeeded    ")), "{list}");
    assert!(
        list.ends_with("write a.txt right\n") && !list.contains('\u{1b}'),
        "{list}"
    );
    let line: Value = serde_json::from_str(&said(&["list", "--json"])).unwrap();
    assert_eq!(
        (&line["task_id"], &line["state"]),
        (&json!(id), &json!("succeeded"))
    );
    let show = said(&["show", &id[..]]);
    for row in [
        "state        succeeded",
        "verification passed",
        "gates        holds passed in ",
    ] {
        assert!(show.contains(row), "{row}: {show}");
    }
    let whole: Value = serde_json::from_str(&said(&["--json", "show", &id[4..]])).unwrap();
    assert_eq!(whole["record"]["outcome"], "succeeded");
    assert_eq!(whole["task"]["goal"], goal);
    assert_eq!(said(&["diff", &id]), executor.part(&id, "diff"));
    // What is text has no form as JSON, and is not passed on as if it were some.
    for command in ["log", "diff"] {
        assert!(!bench.task(&[command, &id, "--json"]).status.success());
    }
    let ended: Value = serde_json::from_str(&said(&["cancel", &id, "--json"])).unwrap();
    assert_eq!(
        (&ended["task_id"], &ended["state"]),
        (&json!(id), &json!("succeeded"))
    );
    let log = said(&["log", &id]);
    assert!(log.contains("red"), "{log:?}");
    let unknown = bench.task(&["show", "tsk_ZZZ"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(unknown.stderr).unwrap().lines().count(),
        1
    );
    // What is damaged is named, and is not passed on as JSON.
    let dir = bench.task_dir(&id);
    fs::write(dir.join("result.json"), "{\"outcome\"").unwrap();
    let shown: Value = serde_json::from_str(&said(&["show", &id, "--json"])).unwrap();
    assert_eq!(shown["record"], Value::Null);
    fs::remove_file(dir.join("log")).unwrap();
    fs::create_dir(dir.join("log")).unwrap();
    let unreadable = bench.task(&["log", &id]);
    assert_eq!(unreadable.status.code(), Some(1));
    let complaint = String::from_utf8(unreadable.stderr).unwrap();
    assert!(complaint.contains("log cannot be read"), "{complaint}");
}

#[test]
fn a_task_is_cancelled_from_the_terminal_whether_it_runs_or_waits() {
    let bench = Bench::new("marker");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let running = executor.start(&bench.repo, &format!("sleep 3600 {pids}"));
    let waiting = executor.start(&bench.repo, "write a.txt never");
    let pids = bench.pids("agent.pids", 1);
    for id in [&waiting, &running] {
        let output = bench.task(&["cancel", id]);
        assert!(output.status.success());
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("cancelled")
        );
        assert_eq!(executor.record(id)["outcome"], "cancelled");
    }
    super::bench::wait_for_end(&pids);
    assert_eq!(bench.states(&waiting), ["queued", "cancelled"]);
    assert_eq!(
        bench.states(&running),
        ["queued", "running", "cancelling", "cancelled"]
    );
    executor.close();
}

/// README shows how to come from nothing to a finished task, with what is printed. It is run here
/// as it stands there, and ids, times and places may differ.
#[test]
fn the_quick_start_of_the_readme_is_true() {
    let readme = include_str!("../../README.md");
    let (_, start) = readme.split_once("```sh\ngit init -q demo").unwrap();
    let (script, rest) = start.split_once("```").unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let bench = Bench::new("readme");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_rocco"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let script = format!(
        "git init -q demo{}\nuntil rocco task show tsk | grep -q verification; do sleep 1; done\n\
         rocco task show tsk > ../shown\nkill %1 || kill $!",
        script.replace("rocco task show tsk", "")
    );
    let mut command = std::process::Command::new("sh");
    command
        .arg("-ec")
        .arg(script)
        .current_dir(&bench.root)
        .env("PATH", path);
    command
        .env("HOME", &bench.root)
        .env_remove("XDG_STATE_HOME")
        .env_remove("ROCCO_DEPTH");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A User");
        command.env(format!("GIT_{who}_EMAIL"), "user@localhost");
    }
    let output = output(&mut command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let came = fs::read_to_string(bench.path("shown")).unwrap();
    let rows = |text: &str| {
        let rows = text.lines().filter(|line| !line.starts_with("warnings"));
        let rows = rows.map(|line| {
            let (name, value) = line.split_at(12);
            let varies = [
                "task",
                "created",
                "updated",
                "repository",
                "base",
                "result",
                "directory",
            ];
            let name = name.trim().to_owned();
            let value = match name.as_str() {
                varying if varies.contains(&varying) => "",
                "gates" => value.split(" in ").next().unwrap().trim(),
                _ => value.trim(),
            };
            (name, value.to_owned())
        });
        rows.collect::<Vec<_>>()
    };
    assert_eq!(rows(&came), rows(shown));
}
