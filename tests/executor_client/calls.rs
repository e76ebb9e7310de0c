//! What the four tools do when all is well, and each of their typed errors.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::front::{Era, ExecutorAddr, Front, NEWEST, Place, TASKS, WAYS, submission};
use super::support::schema::{STATELESS, revisions};
use super::support::wait::wait_for;

/// Holds what a tool said against the schema that it publishes, closed.
fn conforms(tools: &Value, name: &str, said: &Value) {
    let mut tools = tools.as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == name).unwrap();
    let mut schema = tool["outputSchema"].clone();
    schema["additionalProperties"] = json!(false);
    let validator = jsonschema::validator_for(&schema).unwrap();
    if let Err(fault) = validator.validate(said) {
        panic!("{name}: {fault}: {said}");
    }
}

fn strings_of(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(entries) => entries.iter().for_each(|entry| strings_of(entry, found)),
        Value::Object(members) => members.values().for_each(|value| strings_of(value, found)),
        _ => {}
    }
}

/// Each tool once, and again after the end.
fn session(front: &mut Front) -> Vec<(&'static str, Value)> {
    let mut said = Vec::new();
    let accepted = front.submit("finish");
    // On a busy machine the answer may be late, which another test is about.
    let task = match accepted["task_id"].as_str() {
        Some(task) => {
            let task = task.to_owned();
            said.push(("larry_submit_task", accepted));
            task
        }
        None => front.submit_surely("finish"),
    };
    let ended = front.status_surely(&task, 45);
    assert_eq!(ended["state"], "succeeded");
    assert_eq!(ended["record"]["outcome"], "succeeded");
    assert!(
        ended["record"].get("padding").is_none(),
        "not a member of the table"
    );
    said.push(("larry_task_status", ended));
    for part in ["diff", "log", "gates"] {
        said.extend(
            pages(front, &task, part)
                .into_iter()
                .map(|page| ("larry_task_result", page)),
        );
    }
    for _ in 0..2 {
        let cancelled = front.call("larry_cancel_task", json!({"task_id": task}));
        assert_eq!(cancelled, json!({"task_id": task, "state": "succeeded"}));
        said.push(("larry_cancel_task", cancelled));
    }
    let list = front.call("larry_task_status", json!({}));
    assert_eq!(list["tasks"][0]["task_id"], task);
    assert_eq!(list["tasks"][0]["goal"], "finish");
    said.push(("larry_task_status", list));
    let running = front.submit_surely("stay running");
    front.await_state(&running, "running");
    said.push(("larry_task_status", front.status(&running, 0)));
    said
}

/// A text is read to its end in pages.
fn pages(front: &mut Front, task: &str, part: &str) -> Vec<Value> {
    let (mut offset, mut text, mut pages) = (0, String::new(), Vec::new());
    loop {
        let page = front.call(
            "larry_task_result",
            json!({"task_id": task, "part": part,
            "offset": offset}),
        );
        text += page["text"].as_str().unwrap();
        let next = page["next_offset"].as_u64();
        let total = page["total"].as_u64();
        pages.push(page);
        match next {
            Some(next) => offset = next,
            None => {
                assert_eq!(text, format!("{part} of {task}\n").repeat(2000));
                assert_eq!(total, Some(text.len() as u64));
                return pages;
            }
        }
    }
}

#[test]
fn four_tools_in_every_revision_and_both_ways() {
    for way in WAYS {
        for revision in revisions() {
            let mut place = Place::new();
            let mut front = place.front(way, "", Era::of(revision));
            let tools = front.request("tools/list", json!({}))["result"]["tools"].clone();
            for (tool, said) in session(&mut front) {
                if revision >= "2025-06-18" {
                    conforms(&tools, tool, &said);
                }
            }
            front.close();
            place.nothing_is_left();
        }
    }
}

#[test]
fn an_executor_is_told_all_that_a_client_gives() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", NEWEST);
    assert_eq!(
        place.journal(),
        Vec::<Value>::new(),
        "it is started by the first call"
    );
    let first = front.submit_surely("stay queued");
    let arguments = json!({"goal": "goal \u{e9} \n two", "repo": "/srv/r", "files": ["a", "b/c"],
        "acceptance": ["x", "gate:test"], "idempotency_key": "k", "follow_up_to": first,
        "timeout_s": 60});
    front.call("larry_submit_task", arguments);
    place.wait_for("taken", 2);
    let journal = place.journal();
    let taken: Vec<_> = journal
        .iter()
        .filter(|event| event["at"] == "taken")
        .collect();
    let mut params = taken[1]["params"].clone();
    assert!(params["task_id"].as_str().unwrap().starts_with("tsk_"));
    params["task_id"].take();
    assert_eq!(
        params,
        json!({"task_id": null, "key": "k", "goal": "goal \u{e9} \n two",
        "repo": "/srv/r", "files": ["a", "b/c"], "acceptance": ["x", "gate:test"],
        "deadline_s": 60, "follow_up_to": first,
        "client": {"name": "tests", "version": "7"}})
    );
    let bare = &taken[0]["params"];
    for name in ["key", "files", "deadline_s", "follow_up_to"] {
        assert!(bare[name].is_null() && bare.get(name).is_some(), "{bare}");
    }
    front.close();
}

/// The manual's table of errors.
fn codes_of_the_manual() -> BTreeSet<String> {
    let manual = include_str!("../../src/executor_client/manual.md");
    let (_, table) = manual
        .split_once("| code | when | the same call may")
        .unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    cells
        .map(|cell| cell.trim().trim_matches('`').to_owned())
        .collect()
}

/// A model was told one sentence of all that an executor had found, cut where it was too long.
#[test]
fn the_faults_that_an_executor_names_are_listed() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", NEWEST);
    let said = front.submit("refuse invalid_arguments faults");
    let details = &said["error"]["details"];
    let faults = details["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 64, "{said}");
    assert_eq!(details["unlisted"], 36, "{said}");
    for (at, fault) in faults.iter().enumerate() {
        assert_eq!(fault["pointer"], format!("/files/{at}"));
        let reason = fault["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("is \\x1b") && reason.len() <= 200,
            "{reason}"
        );
        assert!(!reason.contains(char::is_control), "{reason:?}");
    }
    let said = front.submit("refuse invalid_arguments");
    assert!(said["error"]["details"]["faults"].is_null(), "{said}");
    front.close();
}

/// Every one of them is reached, and says in its text what it is.
#[test]
fn every_error_of_the_readme_is_reached() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", NEWEST);
    let mut reached = BTreeSet::new();
    let mut reach = |said: Value, code: &str, retryable: bool| {
        assert_eq!(said["code"], code, "{said}");
        assert_eq!(said["error"]["retryable"], retryable, "{said}");
        let text = said["text"].as_str().unwrap();
        assert!(text.ends_with('.') && !text.contains(".."), "{text}");
        reached.insert(code.to_owned());
    };
    for (code, retryable) in [
        ("queue_full", true),
        ("key_conflict", false),
        ("not_found", false),
        ("expired", false),
        ("repo_not_allowed", false),
        ("path_not_allowed", false),
        ("depth_exceeded", false),
        ("shutting_down", true),
        ("unsupported", false),
        ("storage", true),
    ] {
        let said = front.submit(&format!("refuse {code}"));
        assert_eq!(said["error"]["retry_after_ms"], 1234);
        let named = &said["error"]["details"]["task_id"];
        assert!(named.is_null(), "a task that was never accepted: {said}");
        reach(said, code, retryable);
    }
    reach(front.submit(" "), "invalid_arguments", false);
    // An executor cannot speak for the front, and what it invents is not passed on.
    for code in [
        "executor_timeout",
        "executor_not_connected",
        "my_own",
        "executor_protocol",
    ] {
        reach(
            front.submit(&format!("refuse {code}")),
            "executor_protocol",
            false,
        );
    }
    let said = front.submit("refuse invalid_arguments");
    assert_eq!(said["code"], "invalid_arguments");
    let task = front.submit_surely("stay running");
    let page = json!({"task_id": task, "part": "diff"});
    reach(front.call("larry_task_result", page), "not_finished", true);
    let said = front.submit("silent");
    let silent = said["error"]["details"]["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    reach(said, "executor_timeout", true);
    assert_eq!(
        front.status_surely(&silent, 0)["state"],
        "queued",
        "it was taken"
    );
    let mut nobody = place.front_with(&["--executor".into(), "/no/such/program".into()], NEWEST);
    reach(nobody.submit("finish"), "executor_not_connected", true);
    assert_eq!(reached, codes_of_the_manual());
    nobody.close();
    front.close();
}

#[test]
fn who_cannot_be_asked_is_named_with_the_reason() {
    let socket = |path: String| ["--executor-socket".into(), path];
    let place = Place::new();
    let child = |modes: &str| place.options(ExecutorAddr::Child, modes);
    let cases = [
        (
            ["--executor".into(), "/no/such/program".into()],
            "spawn_failed",
            "No such file",
        ),
        (
            ["--executor".into(), "/etc/passwd".into()],
            "spawn_failed",
            "ermission denied",
        ),
        (
            socket(place.path("nobody")),
            "connect_failed",
            "No such file",
        ),
        (child("wrong-protocol"), "handshake_failed", "rocco-exec/2"),
        (
            child("nameless"),
            "handshake_failed",
            "does not name the executor",
        ),
        (child("refuses-hello"), "handshake_failed", "not today"),
        (child("exit"), "handshake_failed", "did not say hello"),
        (child("no-hello"), "handshake_failed", "within 5 seconds"),
        (child("late-hello"), "handshake_failed", "within 5 seconds"),
        (
            ["--executor".into(), "yes".into()],
            "handshake_failed",
            "violated rocco-exec/1",
        ),
        (
            ["--executor".into(), "sh -c 'exit 7'".into()],
            "handshake_failed",
            "exit status: 7",
        ),
    ];
    // Those that say nothing are waited for side by side.
    std::thread::scope(|scope| {
        for (options, reason, words) in &cases {
            let place = &place;
            scope.spawn(move || names_the_reason(place, options, reason, words));
        }
    });
    place.nothing_is_left();
}

fn names_the_reason(place: &Place, options: &[String; 2], reason: &str, words: &str) {
    let mut front = place.front_with(options, NEWEST);
    let id = front.begin_submit("finish");
    front.serves_others();
    let said = front.answer(id);
    assert_eq!(
        said["error"]["details"]["reason"], reason,
        "{options:?}: {said}"
    );
    assert!(
        said["text"].as_str().unwrap().contains(words),
        "{options:?}: {said}"
    );
    front.close();
}

#[test]
fn the_same_key_is_the_same_task() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", NEWEST);
    let with_key = |goal: &str| {
        let mut arguments = submission(goal);
        arguments["idempotency_key"] = "k".into();
        arguments
    };
    let first = front.call("larry_submit_task", with_key("stay running"));
    assert_eq!(first["duplicate"], false);
    let second = front.call("larry_submit_task", with_key("stay running"));
    assert_eq!(
        (&second["task_id"], &second["duplicate"]),
        (&first["task_id"], &json!(true))
    );
    let third = front.call("larry_submit_task", with_key("stay queued"));
    assert_eq!(third["code"], "key_conflict");
    assert_eq!(place.count("running"), 1);
    front.close();
}

#[test]
fn arguments_are_held_to_the_schema_before_anybody_is_asked() {
    let place = Place::new();
    let mut front = place.front_with(&place.options(ExecutorAddr::Child, ""), NEWEST);
    let task = "tsk_00000000000000000000000000";
    for (tool, arguments, pointer) in [
        ("larry_task_status", json!({"task_id": 5}), "/task_id"),
        ("larry_task_status", json!({"task_id": "tsk_0"}), "/task_id"),
        (
            "larry_task_status",
            json!({"task_id": task, "wait_s": 46}),
            "/wait_s",
        ),
        (
            "larry_task_status",
            json!({"task_id": task, "wait_s": -1}),
            "/wait_s",
        ),
        (
            "larry_task_status",
            json!({"task_id": task, "wait_s": "9"}),
            "/wait_s",
        ),
        ("larry_task_status", json!({"task": task}), "/task"),
        ("larry_task_result", json!({"part": "diff"}), "/task_id"),
        ("larry_task_result", json!({"task_id": task}), "/part"),
        (
            "larry_task_result",
            json!({"task_id": task, "part": "all"}),
            "/part",
        ),
        (
            "larry_task_result",
            json!({"task_id": task, "part": "log", "offset": -1}),
            "/offset",
        ),
        (
            "larry_task_result",
            json!({"task_id": task, "part": "log", "limit": 0}),
            "/limit",
        ),
        (
            "larry_task_result",
            json!({"task_id": task, "part": "log", "limit": 24577}),
            "/limit",
        ),
        ("larry_cancel_task", json!({}), "/task_id"),
        (
            "larry_cancel_task",
            json!({"task_id": task, "reason": "x".repeat(201)}),
            "/reason",
        ),
        (
            "larry_submit_task",
            json!({"goal": "g", "repo": "r", "acceptance": ["a"]}),
            "/repo",
        ),
    ] {
        let said = front.call(tool, arguments);
        assert_eq!(said["code"], "invalid_arguments", "{said}");
        assert!(
            said["text"].as_str().unwrap().contains(pointer),
            "{pointer}: {said}"
        );
    }
    // Each argument is within its bound, and the whole is over that of a line.
    let mut long = submission("g");
    long["acceptance"] = vec!["a".repeat(4096); 64].into();
    let said = front.call("larry_submit_task", long);
    assert_eq!(said["code"], "invalid_arguments");
    let text = said["text"].as_str().unwrap();
    assert!(
        text.contains("262144") && text.contains("/acceptance"),
        "{said}"
    );
    assert_eq!(place.count("task/submit"), 0);
    front.close();
}

#[test]
fn a_task_cannot_submit_a_task() {
    let place = Place::new();
    for depth in ["1", "99", "deep"] {
        let mut command = place.command(env!("CARGO_BIN_EXE_rocco"));
        command
            .env("ROCCO_DEPTH", depth)
            .arg("mcp")
            .args(place.options(ExecutorAddr::Child, ""));
        let mut front = Front::start(command, NEWEST);
        assert_eq!(front.submit("finish")["code"], "depth_exceeded");
        assert_eq!(place.count("start"), 0);
        front.close();
    }
}

/// A model, or whoever it asks, would hand a ref of any form to a command of git's.
#[test]
fn a_record_that_breaks_its_grammar_is_not_shown() {
    let mut place = Place::new();
    for era in [NEWEST, TASKS] {
        let mut front = place.front(ExecutorAddr::Socket, "", era);
        let reply = front.reply_surely("larry_submit_task", submission("forged finish"));
        let result = &reply["result"];
        let known = [&result["taskId"], &result["structuredContent"]["task_id"]];
        let task = known.into_iter().find_map(Value::as_str).unwrap();
        let said = match era == TASKS {
            true => {
                front.submit_surely("release");
                wait_for("the end of the task", || {
                    let reply = front.request("tasks/get", json!({"taskId": task}));
                    let result = &reply["result"]["result"];
                    result.is_object().then(|| result.clone())
                })
            }
            false => {
                let arguments = json!({"task_id": task, "wait_s": 45});
                front.reply_surely("larry_task_status", arguments)["result"].clone()
            }
        };
        let error = &said["structuredContent"]["error"];
        assert_eq!(error["code"], "executor_protocol", "{said}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("ref is not refs/rocco/"), "{said}");
        assert!(!said.to_string().contains("upload-pack"), "{said}");
        front.close();
    }
}

/// Texts of an executor reach a model and a terminal without anything that steers them.
#[test]
fn no_control_characters_come_through() {
    let mut place = Place::new();
    for era in [NEWEST, TASKS, Era::of(STATELESS)] {
        let mut front = place.front(ExecutorAddr::Socket, "", era);
        let mut strings = Vec::new();
        let mut look =
            |reply: Value| strings_of(&reply["result"]["structuredContent"], &mut strings);
        let reply = front.reply_surely("larry_submit_task", submission("ansi stay queued"));
        let result = &reply["result"];
        let known = [
            &result["taskId"],
            &result["structuredContent"]["task_id"],
            &result["structuredContent"]["error"]["details"]["task_id"],
        ];
        let task = known.into_iter().find_map(Value::as_str).unwrap();
        let task = task.to_owned();
        look(json!({"result": {"structuredContent": result}}));
        front.await_state(&task, "queued");
        front.submit_surely("release");
        // The executor answers before it releases.
        front.await_state(&task, "succeeded");
        for (tool, arguments) in [
            ("larry_task_status", json!({"task_id": task})),
            ("larry_task_status", json!({})),
            (
                "larry_task_result",
                json!({"task_id": task, "part": "diff"}),
            ),
            ("larry_cancel_task", json!({"task_id": task})),
        ] {
            look(front.reply_surely(tool, arguments));
        }
        if era == TASKS {
            let reply = front.request("tasks/get", json!({"taskId": task}));
            look(json!({"result": {"structuredContent": reply["result"]}}));
        }
        let red = strings.iter().filter(|text| text.contains("red")).count();
        // On a busy machine the answer to the submit may be late, and has none then.
        assert!(red > 6, "the executor's texts are there: {red}");
        for text in strings {
            let steers = |character: char| character.is_control() && !"\n\t".contains(character);
            assert!(!text.contains(steers), "{text:?}");
        }
        front.close();
    }
}
