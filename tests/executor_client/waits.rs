//! Calls that wait: progress, cancellation, ids in use, batches and bounds.

use serde_json::json;

use super::front::{Era, ExecutorAddr, NEWEST, Place};
use super::support::schema::{STATELESS, revisions};

#[test]
fn a_wait_tells_of_changes_and_ends_with_the_task() {
    for revision in revisions() {
        let mut place = Place::new();
        let mut front = place.front(ExecutorAddr::Socket, "", Era::of(revision));
        let task = front.submit_surely("stay cancelling");
        front.await_state(&task, "running");
        let gets = place.count("task/get");
        let id = front.ask(
            "tools/call",
            json!({"name": "larry_task_status",
            "arguments": {"task_id": task, "wait_s": 45}, "_meta": {"progressToken": "t"}}),
        );
        place.wait_for("task/get", gets + 1);
        front.serves_others();
        front.call("larry_cancel_task", json!({"task_id": task}));
        let progress = front.notification("notifications/progress");
        let params = &progress["params"];
        assert_eq!(
            (&params["progressToken"], &params["progress"]),
            (&json!("t"), &json!(1))
        );
        match revision {
            "2024-11-05" => assert!(params.get("message").is_none(), "{progress}"),
            _ => assert_eq!(params["message"], "cancelling: edit: at work"),
        }
        front.submit_surely("release");
        let said = front.answer(id);
        // A busy machine may have let the time of the wait pass.
        if said["state"] != "cancelling" {
            assert_eq!(said["state"], "succeeded", "{said}");
            assert_eq!(said["record"]["outcome"], "succeeded", "{said}");
        }
        front.close();
    }
}

#[test]
fn a_wait_ends_with_its_time_and_says_how_it_stands() {
    for modes in ["", "no-progress"] {
        let mut place = Place::new();
        let mut front = place.front(ExecutorAddr::Socket, modes, NEWEST);
        let task = front.submit_surely("stay running");
        front.await_state(&task, "running");
        let said = front.status(&task, 1);
        assert_eq!(
            (&said["state"], said.get("record")),
            (&json!("running"), None)
        );
        front.close();
    }
}

/// An executor that sends no updates is asked again, and the end is not slept over.
#[test]
fn a_wait_on_an_executor_without_updates_ends_with_the_task() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "no-progress", NEWEST);
    let task = front.submit_surely("stay running");
    let gets = place.count("task/get");
    let id = front.begin("larry_task_status", json!({"task_id": task, "wait_s": 45}));
    place.wait_for("task/get", gets + 3);
    front.submit_surely("release");
    let said = front.answer(id);
    assert_eq!(
        (&said["state"], &said["record"]["outcome"]),
        (&json!("succeeded"), &json!("succeeded"))
    );
    front.close();
}

#[test]
fn a_cancelled_wait_is_not_answered_and_cancels_no_task() {
    for revision in revisions() {
        let mut place = Place::new();
        let mut front = place.front(ExecutorAddr::Socket, "", Era::of(revision));
        let task = front.submit_surely("stay running");
        let id = front.begin_wait(&place, &task);
        let params = json!({"requestId": id});
        let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        front.write(&line.to_string());
        front.serves_others();
        front.submit_surely("release");
        assert_eq!(front.status_surely(&task, 45)["state"], "succeeded");
        assert_eq!(place.count("task/cancel"), 0);
        assert!(front.has_no_reply(id));
        front.close();
    }
}

#[test]
fn an_id_is_in_use_until_its_call_is_answered() {
    for revision in revisions() {
        let mut place = Place::new();
        let mut front = place.front(ExecutorAddr::Socket, "", Era::of(revision));
        let task = front.submit_surely("stay running");
        let id = front.begin_wait(&place, &task);
        front.repeat_id();
        front.ask("tools/list", json!({}));
        let refused = front.reply(id);
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        front.submit_surely("release");
        assert!(front.answer(id)["state"].is_string());
        front.repeat_id_of(id);
        let tools = front.request("tools/list", json!({}));
        assert!(
            tools["result"]["tools"].is_array(),
            "an answered id is free: {tools}"
        );
        front.close();
    }
}

#[test]
fn a_call_that_is_answered_later_stands_alone() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", Era::Handshake("2025-03-26"));
    let batch = json!([
        {"jsonrpc": "2.0", "id": 70, "method": "ping"},
        {"jsonrpc": "2.0", "id": 71, "method": "tools/call",
         "params": {"name": "larry_task_status", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 72, "method": "tools/list"},
    ]);
    front.write(&batch.to_string());
    let replies = front.batch();
    let [pong, call, list] = &replies[..] else {
        panic!("{replies:?}")
    };
    assert_eq!((&pong["id"], &pong["result"]), (&json!(70), &json!({})));
    assert_eq!(
        (&call["id"], &call["error"]["code"]),
        (&json!(71), &json!(-32600))
    );
    assert!(list["result"]["tools"].is_array());
    assert_eq!(place.count("start"), 0);
    front.close();
}

/// An executor that reads nothing more: calls and waits fill up to their bounds, and one more is
/// told so at once. Each of the others gets its error in its time.
#[test]
fn calls_and_waits_have_bounds() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "deaf", NEWEST);
    let task = "tsk_00000000000000000000000000";
    let call = json!({});
    let wait = json!({"task_id": task, "wait_s": 45});
    let mut full = [0, 0];
    let mut open = Vec::new();
    for (kind, (arguments, count)) in [(call, 100), (wait, 50)].into_iter().enumerate() {
        for _ in 0..count {
            open.push((kind, front.begin("larry_task_status", arguments.clone())));
        }
    }
    front.serves_others();
    for (kind, id) in open {
        let said = front.answer(id);
        match said["code"].as_str() {
            Some("queue_full") => full[kind] += 1,
            Some("executor_timeout" | "executor_not_connected") => {}
            _ => panic!("{said}"),
        }
    }
    // On a busy machine the first may have had their time before the last were asked.
    assert!(full[0] <= 36 && full[1] <= 18, "{full:?}");
    front.close();
    place.nothing_is_left();
}

/// What waits to be sent is bounded as well, and leaves others alone.
#[test]
fn what_waits_to_be_sent_has_a_bound() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "deaf", NEWEST);
    let goal = "\n".repeat(60_000) + "g";
    let open: Vec<u64> = (0..20).map(|_| front.begin_submit(&goal)).collect();
    front.serves_others();
    let said: Vec<_> = open.into_iter().map(|id| front.answer(id)).collect();
    let full = said
        .iter()
        .filter(|said| said["code"] == "queue_full")
        .count();
    assert!((1..=14).contains(&full), "{said:?}");
    for said in said {
        let known = ["queue_full", "executor_timeout", "executor_not_connected"];
        assert!(known.contains(&said["code"].as_str().unwrap()), "{said}");
    }
    front.close();
    place.nothing_is_left();
}

#[test]
fn a_feature_that_is_not_offered_is_unsupported() {
    let mut place = Place::new();
    for revision in ["2025-11-25", STATELESS] {
        let mut front = place.front(ExecutorAddr::Child, "plain", Era::of(revision));
        // The first is asked before hello, and the second after it.
        for _ in 0..2 {
            let id = front.begin("larry_task_status", json!({}));
            assert_eq!(front.answer(id)["code"], "unsupported");
            let page = json!({"task_id": "tsk_00000000000000000000000000", "part": "log"});
            assert_eq!(front.call("larry_task_result", page)["code"], "unsupported");
        }
        let task = front.submit_surely("finish");
        assert_eq!(front.status_surely(&task, 45)["state"], "succeeded");
        assert_eq!(place.count("task/list"), 0);
        front.close();
    }
}
