//! Executors that misbehave: it costs their own callers a typed error, and nobody else a reply.

use serde_json::{Value, json};

use super::front::{ExecutorAddr, NEWEST, Place, WAYS};
use crate::support::wait::{signal, wait_until};

/// A line that is wrong here and there does no harm, and the third on a connection costs it. What
/// was asked is asked again on the next.
#[test]
fn wrong_lines_cost_a_connection_and_no_call() {
    for way in WAYS {
        for mode in ["garbage", "over-long", "unasked", "requests", "one-fault"] {
            let mut place = Place::new();
            let mut front = place.front(way, mode, NEWEST);
            let task = front.submit_surely("finish");
            for _ in 0..6 {
                let id = front.begin("larry_task_status", json!({"task_id": task, "wait_s": 45}));
                front.serves_others();
                let said = front.answer(id);
                assert!(
                    said["state"] == "succeeded" || said["error"]["retryable"] == true,
                    "{mode}: {said}"
                );
            }
            assert_eq!(
                front.status_surely(&task, 45)["state"],
                "succeeded",
                "{mode}"
            );
            let connections = place.count("hello");
            assert!(
                (mode == "one-fault") == (connections == 1),
                "{mode}: {connections}"
            );
            assert_eq!(
                (place.count("taken"), place.count("running")),
                (1, 1),
                "{mode}"
            );
            front.close();
            place.nothing_is_left();
        }
    }
}

/// The executor takes a task and dies without a word. The same line is sent to the next, which
/// knows the task: it runs once.
#[test]
fn a_submit_whose_answer_was_lost_runs_once() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", NEWEST);
    let id = front.begin_submit("die before ack");
    front.serves_others();
    let said = front.answer(id);
    let task = match said["task_id"].as_str() {
        Some(task) => task.to_owned(),
        None => {
            // The machine was too busy for the second process to be there in time.
            assert_eq!(said["code"], "executor_timeout", "{said}");
            said["error"]["details"]["task_id"]
                .as_str()
                .unwrap()
                .to_owned()
        }
    };
    front.await_state(
        &task,
        if said["task_id"].is_string() {
            "succeeded"
        } else {
            "queued"
        },
    );
    let journal = place.journal();
    let submits: Vec<_> = journal
        .iter()
        .filter(|event| event["at"] == "task/submit")
        .collect();
    assert!(submits.iter().all(|event| event["task"] == json!(task)));
    assert_eq!(place.count("taken"), 1);
    assert!(place.count("running") <= 1);
    front.close();
    place.nothing_is_left();
}

#[test]
fn a_task_whose_executor_died_is_interrupted_and_not_run_again() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", NEWEST);
    let task = front.submit_surely("die mid");
    let said = front.status_surely(&task, 45);
    assert_eq!(said["state"], "interrupted", "{said}");
    assert_eq!((place.count("taken"), place.count("running")), (1, 1));
    front.close();
    place.nothing_is_left();
}

/// It takes the task and answers after the client was told that the outcome is unknown.
#[test]
fn an_answer_that_is_late_does_no_harm() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", NEWEST);
    let id = front.begin_submit("slow");
    front.serves_others();
    let said = front.answer(id);
    assert_eq!(said["code"], "executor_timeout", "{said}");
    let text = said["text"].as_str().unwrap();
    assert!(text.contains("do not submit the task again"), "{text}");
    let task = said["error"]["details"]["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.contains(&task), "{text}");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(front.status_surely(&task, 0)["state"], "queued");
    assert_eq!((place.count("taken"), place.count("hello")), (1, 1));
    front.close();
}

/// An executor that is there and never answers, reads nothing, or leaves at once. They are waited
/// for side by side.
#[test]
fn silence_costs_a_typed_error() {
    std::thread::scope(|scope| {
        for (modes, codes) in [
            ("deaf", &["executor_timeout"][..]),
            (
                "hello-exit",
                &["executor_not_connected", "executor_timeout"],
            ),
            (
                "closes-output",
                &["executor_not_connected", "executor_timeout"],
            ),
            (
                "grandchild",
                &["executor_not_connected", "executor_timeout"],
            ),
            ("grandchild ignores-term", &["executor_timeout"]),
        ] {
            scope.spawn(move || costs_a_typed_error(modes, codes));
        }
    });
}

fn costs_a_typed_error(modes: &str, codes: &[&str]) {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, modes, NEWEST);
    for _ in 0..2 {
        let id = front.begin_submit("finish");
        front.serves_others();
        let said = front.answer(id);
        assert!(
            codes.contains(&said["code"].as_str().unwrap()),
            "{modes}: {said}"
        );
    }
    front.close();
    place.nothing_is_left();
}

/// It has ended, and something that it has started holds its pipe open.
#[test]
fn an_executor_is_known_to_have_ended_though_its_pipe_is_held() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "grandchild session", NEWEST);
    // It is started again, though no end of its pipe is ever read.
    wait_until("a second start", || {
        let said = front.submit("finish");
        let codes = ["executor_not_connected", "executor_timeout"];
        assert!(codes.contains(&said["code"].as_str().unwrap()), "{said}");
        place.count("start") > 1
    });
    front.close();
    // What has made itself a session of its own is not the front's to end. It may be on its way to
    // become what it is.
    wait_until("nothing but sleep is left", || {
        let mut left = place.processes().into_iter();
        left.all(|(_, line)| line.starts_with("sleep"))
    });
    for (process, _) in place.processes() {
        signal(process, libc::SIGKILL);
    }
    place.nothing_is_left();
}

#[test]
fn answers_of_a_wrong_shape_are_protocol_errors() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", NEWEST);
    let not_understood = |said: Value, shape: &str| {
        assert_eq!(said["code"], "executor_protocol", "{shape}: {said}");
    };
    for shape in ["empty", "list", "null", "other", "stateless", "timeless"] {
        not_understood(front.submit(&format!("shape:task/submit {shape}")), shape);
        let task = front.submit_surely_of(&format!("shape:task/cancel {shape} stay queued"));
        if shape != "timeless" {
            not_understood(
                front.call("larry_cancel_task", json!({"task_id": task})),
                shape,
            );
        }
    }
    for shape in ["empty", "list", "null", "other", "stateless", "textless"] {
        let task = front.submit_surely_of(&format!("shape:task/get {shape}"));
        let page = json!({"task_id": task, "part": "log"});
        not_understood(front.call("larry_task_result", page), shape);
        if shape != "textless" {
            not_understood(front.status(&task, 45), shape);
        }
    }
    front.close();
}

#[test]
fn records_and_pages_have_bounds() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", NEWEST);
    let task = front.submit_surely_of("record 30000");
    assert_eq!(
        front.status_surely(&task, 45)["record"]["outcome"],
        "succeeded"
    );
    for bytes in [37_000, 200_000, 300_000] {
        let task = front.submit_surely_of(&format!("record {bytes}"));
        let said = front.status(&task, 45);
        let codes = ["executor_protocol", "executor_timeout"];
        assert!(
            codes.contains(&said["code"].as_str().unwrap()),
            "{bytes}: {said}"
        );
    }
    let task = front.submit_surely_of("page 24577");
    let page = json!({"task_id": task, "part": "log"});
    assert_eq!(
        front.call("larry_task_result", page)["code"],
        "executor_protocol"
    );
    let task = front.submit_surely_of("page 24576");
    let page = json!({"task_id": task, "part": "log"});
    assert_eq!(
        front.call("larry_task_result", page)["text"]
            .as_str()
            .unwrap()
            .len(),
        24_576
    );
    front.close();
}

#[test]
fn stale_updates_are_dropped() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Socket, "", NEWEST);
    let task = front.submit_surely("stale stay verifying");
    place.wait_for("verifying", 1);
    // The connection is in order: what comes after the stale ones is known when this is answered.
    front.call("larry_task_status", json!({}));
    assert_eq!(front.status_surely(&task, 0)["state"], "verifying");
    front.close();
}

/// The example in README's and the protocol's words, from the first call to the last.
#[test]
fn the_example_executor_does_a_task() {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/executor_client/executor.py"
    );
    let place = Place::new();
    let options = ["--executor".into(), format!("python3 {example}")];
    let mut front = place.front_with(&options, NEWEST);
    let task = front.submit_surely("Write it down.");
    let said = front.status_surely(&task, 45);
    assert_eq!(said["state"], "succeeded", "{said}");
    assert_eq!(said["record"]["summary"], "Write it down.");
    let unknown = front.status("tsk_00000000000000000000000000", 0);
    assert_eq!(unknown["code"], "not_found");
    assert_eq!(
        front.call("larry_task_status", json!({}))["code"],
        "unsupported"
    );
    front.close();
    place.nothing_is_left();
    let lines = include_str!("executor.py")
        .lines()
        .filter(|line| !line.trim().is_empty());
    assert!(lines.count() <= 40);
}
