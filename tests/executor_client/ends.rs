//! How it ends: by a signal, by the end of input, and by SIGKILL of anybody in any state.

use std::time::{Duration, Instant};

use serde_json::json;

use super::front::{ExecutorAddr, Front, NEWEST, Place, ROCCO, WAYS};
use crate::support::wait::{signal, wait_until};

/// What an executor is doing when the end comes.
const SCENES: [&str; 6] = ["idle", "greeted", "waited on", "silent", "deaf", "stubborn"];

fn scene(place: &mut Place, way: ExecutorAddr, scene: &str) -> Front {
    let modes = match scene {
        "deaf" => "deaf",
        "stubborn" => "ignores-term",
        _ => "",
    };
    let mut front = place.front(way, modes, NEWEST);
    match scene {
        "idle" => {}
        "greeted" | "stubborn" => {
            front.submit_surely("stay running");
        }
        "waited on" => {
            let task = front.submit_surely("stay running");
            front.begin_wait(place, &task);
        }
        "silent" => {
            front.begin_submit("silent");
            place.wait_for("taken", 1);
        }
        _ => {
            front.begin_submit("finish");
            place.wait_for("hello", 1);
        }
    }
    front
}

/// The end by a signal or by the end of input: exit code 0, and no process is left. The times are
/// printed, and are no matter of this test.
#[test]
fn every_end_is_clean() {
    for way in WAYS {
        for what in SCENES {
            for end in [
                Some(libc::SIGINT),
                Some(libc::SIGTERM),
                Some(libc::SIGHUP),
                None,
            ] {
                let mut place = Place::new();
                let mut front = scene(&mut place, way, what);
                let start = Instant::now();
                match end {
                    None => front.close_input(),
                    Some(number) => signal(front.id(), number),
                }
                let silent_call = front.ended_well();
                println!("{way:?} {what} {end:?}: {:?}", start.elapsed());
                let owed = end.is_none() && matches!(what, "waited on" | "silent" | "deaf");
                assert!(
                    !owed || silent_call,
                    "{way:?} {what}: a call was not answered"
                );
                place.nothing_is_left();
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Front,
    Executor,
}

/// SIGKILL of one of three, in each state of a task.
fn kill(way: ExecutorAddr, victim: Victim, state: &str) {
    let mut place = Place::new();
    if way == ExecutorAddr::Socket {
        place.start_daemon("");
    }
    let options = place.options(way, "");
    let mut front = match victim {
        Victim::Client => place.front_of_client(&options, NEWEST),
        _ => place.front_with(&options, NEWEST),
    };
    let goal = format!("stay {state}");
    let task = front.submit_surely(&goal);
    if state == "cancelling" {
        front.await_state(&task, "running");
        front.call("larry_cancel_task", json!({"task_id": task}));
    }
    front.await_state(&task, state);
    match (victim, way) {
        (Victim::Executor, ExecutorAddr::Child) => signal(place.child(), libc::SIGKILL),
        (Victim::Executor, ExecutorAddr::Socket) => {
            place.kill_daemon();
            place.start_daemon("");
        }
        // Killing the test's own child ends the client, where there is one, else the front.
        (Victim::Client | Victim::Front, _) => {}
    }
    // What ran in a process that has died is interrupted; a daemon that lives knows better.
    let died = way == ExecutorAddr::Child || victim == Victim::Executor;
    let expected = if died && state != "queued" {
        "interrupted"
    } else {
        state
    };
    if victim == Victim::Executor {
        front.await_state(&task, expected);
        front.close();
    } else {
        front.kill();
    }
    place.nothing_is_left();
    let mut next = place.front_with(&options, NEWEST);
    assert_eq!(
        next.status_surely(&task, 0)["state"],
        expected,
        "{way:?} {victim:?} {state}"
    );
    next.close();
    place.nothing_is_left();
    let goals = |at: &str| {
        let journal = place.journal();
        let events = journal.into_iter().filter(|event| event["at"] == at);
        events.filter(|event| event["goal"] == goal).count()
    };
    assert_eq!(goals("taken"), 1, "{way:?} {victim:?} {state}");
    let runs = usize::from(state != "queued");
    assert_eq!(goals("running"), runs, "{way:?} {victim:?} {state}");
}

#[test]
fn the_kill_matrix_leaves_no_orphan_and_runs_nothing_twice() {
    for way in WAYS {
        for victim in [Victim::Client, Victim::Front, Victim::Executor] {
            for state in ["queued", "running", "verifying", "cancelling"] {
                kill(way, victim, state);
            }
        }
    }
}

/// A front that waits hears at once that its daemon was killed, and finds the next one.
#[test]
fn a_wait_survives_the_death_of_its_executor() {
    for way in WAYS {
        let mut place = Place::new();
        let mut front = place.front(way, "", NEWEST);
        let task = front.submit_surely("stay running");
        front.await_state(&task, "running");
        let id = front.begin_wait(&place, &task);
        match way {
            ExecutorAddr::Child => signal(place.child(), libc::SIGKILL),
            ExecutorAddr::Socket => {
                place.kill_daemon();
                place.start_daemon("");
            }
        }
        let said = front.answer(id);
        // On a busy machine the next one may have come too late for this call.
        assert!(
            said["state"] == "interrupted" || said["error"]["retryable"] == true,
            "{said}"
        );
        assert_eq!(front.status_surely(&task, 0)["state"], "interrupted");
        front.close();
        place.nothing_is_left();
    }
}

/// An idle front that has lost its executor opens no other by itself.
#[test]
fn nobody_is_started_unasked() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", NEWEST);
    front.submit_surely("stay running");
    signal(place.child(), libc::SIGKILL);
    wait_until("the child is gone", || place.processes().len() == 1);
    std::thread::sleep(Duration::from_millis(500));
    front.serves_others();
    assert_eq!(place.count("start"), 1);
    front.close();
}

/// An executor, and the tracer that keeps it from being waited for.
fn held(place: &Place) -> (u32, u32) {
    place.wait_for("held", 1);
    let journal = place.journal();
    let held = journal.iter().find(|event| event["at"] == "held").unwrap();
    let number = |name: &str| u32::try_from(held[name].as_u64().unwrap()).unwrap();
    (number("pid"), number("tracer"))
}

/// Whether a process is dead, and its parent was not yet told.
fn is_zombie(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/status"))
        .unwrap()
        .contains("\nState:\tZ")
}

/// SIGKILL does not always end a process at once: it may be in the middle of a system call. Here
/// it is traced by somebody who does not wait for it, which its parent cannot tell apart.
#[test]
fn a_child_that_does_not_die_holds_nobody() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "held", NEWEST);
    let task = front.submit_surely("stay running");
    front.await_state(&task, "running");
    let (executor, tracer) = held(&place);
    signal(executor, libc::SIGKILL);
    // The signal takes a while, and the front goes on with what the executor said until then.
    wait_until("the executor is dead", || is_zombie(executor));
    // The next one is not started before the last one has gone.
    let starts = place.count("start");
    for _ in 0..3 {
        front.begin("larry_task_status", json!({"task_id": task}));
        front.serves_others();
    }
    assert_eq!(place.count("start"), starts);
    signal(tracer, libc::SIGKILL);
    assert_eq!(front.status_surely(&task, 0)["state"], "interrupted");
    front.close();
    place.nothing_is_left();
}

#[test]
fn a_child_that_does_not_die_does_not_hold_the_end() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "held", NEWEST);
    front.submit_surely("stay running");
    let (_, tracer) = held(&place);
    front.close_input();
    front.ended_well();
    signal(tracer, libc::SIGKILL);
    place.nothing_is_left();
}

/// Nobody calls, and the number of a child that was killed is free again all the same.
#[test]
fn a_child_that_was_killed_is_no_zombie() {
    let mut place = Place::new();
    let mut front = place.front(ExecutorAddr::Child, "", NEWEST);
    front.submit_surely("stay running");
    let child = place.child();
    signal(child, libc::SIGKILL);
    wait_until("its number is free", || {
        !std::fs::exists(format!("/proc/{child}")).unwrap()
    });
    front.close();
    place.nothing_is_left();
}

/// A process can inherit that SIGCHLD is ignored. Then the system itself waits for its children.
#[test]
fn a_child_that_the_system_has_waited_for_is_followed_by_the_next() {
    let place = Place::new();
    let mut command = place.command("sh");
    command.args(["-c", "trap '' CHLD; exec \"$0\" \"$@\"", ROCCO, "mcp"]);
    command.args(place.options(ExecutorAddr::Child, ""));
    let mut front = Front::start(command, NEWEST);
    let task = front.submit_surely("stay running");
    front.await_state(&task, "running");
    signal(place.child(), libc::SIGKILL);
    front.await_state(&task, "interrupted");
    front.close();
    place.nothing_is_left();
}
