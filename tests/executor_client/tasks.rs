//! The tasks extension of revision 2026-07-28.

use serde_json::{Value, json};

use super::front::{Era, ExecutorAddr, Front, NEWEST, Place, TASKS};
use super::support::schema::STATELESS;
use crate::support::wait::wait_until;

const UNKNOWN: &str = "tsk_00000000000000000000000000";

fn get(front: &mut Front, task: &str) -> Value {
    front.request("tasks/get", json!({"taskId": task}))["result"].take()
}

#[test]
fn the_extension_is_announced_where_there_is_an_executor() {
    let place = Place::new();
    let capabilities = |options: &[String]| {
        let mut front = place.front_with(options, TASKS);
        let discovered = front.request("server/discover", json!({}));
        front.close();
        discovered["result"]["capabilities"].clone()
    };
    let extensions = json!({"io.modelcontextprotocol/tasks": {}});
    let connected = capabilities(&place.options(ExecutorAddr::Child, ""));
    assert_eq!(connected, json!({"tools": {}, "extensions": extensions}));
    assert_eq!(capabilities(&[]), json!({"tools": {}}));
}

#[test]
fn every_state_is_a_status_of_the_extension() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", TASKS);
    for state in ["queued", "running", "verifying", "cancelling"] {
        let task = front.submit_surely(&format!("stay {state}"));
        if state == "cancelling" {
            front.await_state(&task, "running");
            front.request("tasks/cancel", json!({"taskId": task}));
        }
        front.await_state(&task, state);
        let said = get(&mut front, &task);
        assert_eq!(
            (&said["taskId"], &said["status"]),
            (&json!(task), &json!("working"))
        );
        assert!(
            said["statusMessage"].as_str().unwrap().starts_with(state),
            "{said}"
        );
        let poll_ms = if state == "queued" { 5000 } else { 2000 };
        assert_eq!(said["pollIntervalMs"], poll_ms);
        assert_eq!(said["ttlMs"], 604_800_000);
    }
    for state in [
        "succeeded",
        "failed",
        "timed_out",
        "interrupted",
        "needs_input",
    ] {
        let task = front.submit_surely(&format!("end {state}"));
        front.await_state(&task, state);
        let said = get(&mut front, &task);
        assert_eq!(said["status"], "completed", "{said}");
        let (called, text) = (&said["result"], &said["result"]["content"][0]["text"]);
        assert_eq!(called["structuredContent"]["record"]["outcome"], state);
        assert_eq!(
            called["isError"].as_bool().unwrap_or(false),
            state != "succeeded"
        );
        let starts = text.as_str().unwrap().starts_with(&format!("{state}: "));
        assert_eq!(starts, state != "succeeded", "{text}");
    }
    let task = front.submit_surely("end cancelled");
    front.await_state(&task, "cancelled");
    let said = get(&mut front, &task);
    assert_eq!(said["status"], "cancelled");
    let task = front.submit_surely("end expired");
    front.await_state(&task, "expired");
    let refused = front.request("tasks/get", json!({"taskId": task}));
    assert_eq!(refused["error"]["code"], -32602);
    front.close();
}

#[test]
fn a_call_becomes_a_task_that_is_polled_and_cancelled() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", TASKS);
    let id = front.begin_submit("stay cancelling");
    let created = front.reply(id)["result"].take();
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working"))
    );
    let task = created["taskId"].as_str().unwrap().to_owned();
    front.await_state(&task, "running");
    // A real client sends it twice within a millisecond.
    let ids = [0, 1].map(|_| front.ask("tasks/cancel", json!({"taskId": task})));
    for id in ids {
        assert_eq!(front.reply(id)["result"]["resultType"], "complete");
    }
    front.await_state(&task, "cancelling");
    for _ in 0..2 {
        let updated = front.request(
            "tasks/update",
            json!({"taskId": task,
            "inputResponses": {}}),
        );
        assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
    }
    front.close();
    place.nothing_is_left();
}

#[test]
fn tasks_are_for_those_who_declare_them() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", TASKS);
    let task = front.submit_surely("stay running");
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        for unknown in [UNKNOWN, "tsk_", "", "7"] {
            let params = json!({"taskId": unknown, "inputResponses": {}});
            let refused = front.request(method, params);
            assert_eq!(
                refused["error"]["code"], -32602,
                "{method} {unknown}: {refused}"
            );
        }
        let refused = front.request(method, json!({}));
        assert_eq!(
            refused["error"]["code"], -32602,
            "{method} of nothing: {refused}"
        );
    }
    let mut undeclared = place.front(ExecutorAddr::Socket, "", Era::of(STATELESS));
    assert!(
        undeclared.submit("finish")["task_id"].is_string(),
        "a plain call stays one"
    );
    let mut handshake = place.front(ExecutorAddr::Socket, "", NEWEST);
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let refused = undeclared.request(method, json!({"taskId": task}));
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        let refused = handshake.request(method, json!({"taskId": task}));
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    for method in ["tasks/list", "tasks/result"] {
        for front in [&mut front, &mut undeclared, &mut handshake] {
            let refused = front.request(method, json!({"taskId": task}));
            assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
        }
    }
    let mut without = place.front_with(&[], TASKS);
    let refused = without.request("tasks/get", json!({"taskId": task}));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    for front in [front, undeclared, handshake, without] {
        front.close();
    }
}

/// A task does not fail because its executor is away, and goes on when it is back.
#[test]
fn a_task_stays_working_while_its_executor_is_away() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", TASKS);
    let task = front.submit_surely("stay running");
    front.await_state(&task, "running");
    place.kill_daemon();
    for _ in 0..3 {
        let said = get(&mut front, &task);
        assert_eq!(said["status"], "working", "{said}");
    }
    // The front may not have heard of the end yet when it was asked first.
    wait_until("the executor is known to be away", || {
        let message = get(&mut front, &task)["statusMessage"].clone();
        let message = message.as_str().unwrap().to_owned();
        message.contains("socket") || message.contains("ended the connection")
    });
    let mut stranger = place.front_with(&place.options(ExecutorAddr::Socket, ""), TASKS);
    let refused = stranger.request("tasks/get", json!({"taskId": task}));
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    place.start_daemon("");
    wait_until("the executor is asked again", || {
        get(&mut front, &task)["status"] == "completed"
    });
    let said = get(&mut front, &task);
    assert_eq!(
        said["result"]["structuredContent"]["state"], "interrupted",
        "{said}"
    );
    front.close();
    stranger.close();
}
