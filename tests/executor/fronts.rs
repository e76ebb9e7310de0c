//! What fronts ask, and what they are answered.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::bench::{Bench, Front, mode, new_id, task, task_with};
use crate::support::skip::leave_out;
use crate::support::wait::{Patient, end_of, output, wait_for};

fn code(front: &mut Front, task: Value) -> String {
    let answer = front.call("task/submit", task);
    answer["error"]["data"]["code"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

#[test]
fn a_submission_is_one_task_however_often_it_comes() {
    let bench = Bench::new("again");
    let mut executor = bench.child(&[]);
    let pids = bench.show("agent.pids");
    let blocker = executor.start(&bench.repo, &format!("sleep 3600 {pids}"));
    bench.pids("agent.pids", 1);
    let goal = "write a.txt once";
    let first = task_with(&bench.repo, goal, json!({"key": "mine"}));
    let id = first["task_id"].clone();
    let accepted = executor.submit(first.clone());
    assert_eq!(
        (&accepted["state"], &accepted["position"]),
        (&json!("queued"), &json!(1))
    );
    let again = executor.submit(first);
    assert_eq!(
        (&again["task_id"], &again["duplicate"]),
        (&id, &json!(false))
    );
    let keyed = executor.submit(task_with(&bench.repo, goal, json!({"key": "mine"})));
    assert_eq!(
        (&keyed["task_id"], &keyed["duplicate"]),
        (&id, &json!(true))
    );
    let equal = executor.submit(task(&new_id(), &bench.repo, &format!("sleep 3600 {pids}")));
    assert_eq!(
        (&equal["task_id"], &equal["duplicate"]),
        (&json!(blocker), &json!(true))
    );
    let other = task_with(&bench.repo, "write a.txt twice", json!({"key": "mine"}));
    assert_eq!(code(&mut executor, other), "key_conflict");
    let list = executor.call("task/list", json!({"repo": null, "limit": 20}));
    assert_eq!(list["result"]["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(fs::read_dir(bench.path("state/tasks")).unwrap().count(), 2);
}

#[test]
fn what_the_operator_does_not_allow_is_refused() {
    let bench = Bench::new("refused");
    let outside = Bench::new("outside");
    symlink(&outside.repo, bench.path("link")).unwrap();
    symlink("/etc", bench.repo.join("etc")).unwrap();
    symlink("nowhere", bench.repo.join("dangling")).unwrap();
    let mut executor = bench.child(&[]);
    let mut refused = |repo: &std::path::Path, members: Value| {
        code(&mut executor, task_with(repo, "say no", members))
    };
    let none = json!({});
    assert_eq!(refused(&outside.repo, none.clone()), "repo_not_allowed");
    assert_eq!(
        refused(&bench.path("link"), none.clone()),
        "repo_not_allowed"
    );
    assert_eq!(refused("/".as_ref(), none.clone()), "repo_not_allowed");
    assert_eq!(
        refused(&bench.path("absent"), none.clone()),
        "invalid_arguments"
    );
    assert_eq!(refused(&bench.repo.join("src"), none), "invalid_arguments");
    for (files, wanted) in [
        (json!(["etc/passwd"]), "path_not_allowed"),
        (json!(["dangling"]), "path_not_allowed"),
        (json!(["../outside"]), "invalid_arguments"),
        (json!(["/etc/passwd"]), "invalid_arguments"),
        (json!(["-x"]), "invalid_arguments"),
    ] {
        assert_eq!(
            refused(&bench.repo, json!({"files": files})),
            wanted,
            "{files}"
        );
    }
    assert_eq!(
        refused(&bench.repo, json!({"acceptance": ["gate:rm"]})),
        "invalid_arguments"
    );
    assert_eq!(fs::read_dir(bench.path("state/tasks")).unwrap().count(), 0);
}

#[test]
fn without_a_word_only_the_repository_of_the_start_is_allowed() {
    let bench = Bench::new("default");
    let other = bench.add_repo("other");
    let start = |dir: &std::path::Path, home: &std::path::Path| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rocco"));
        command
            .args(["executor", "--sandbox", "off", "--state"])
            .arg(bench.path("state"));
        command.arg("--").arg(super::bench::script("agent.py"));
        command
            .current_dir(dir)
            .env("HOME", home)
            .stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped());
        command
    };
    let none = output(&mut start(&bench.root, &bench.root));
    assert_eq!(none.status.code(), Some(1));
    let home = output(&mut start(&bench.repo, &bench.repo));
    assert_eq!(home.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&home.stderr).contains("--allow-repo"));
    let mut command = start(&bench.repo.join("src"), &bench.root);
    let mut executor = bench.started(&mut command);
    assert_eq!(
        code(&mut executor, task(&new_id(), &other, "say no")),
        "repo_not_allowed"
    );
    let record = executor.done(task(&new_id(), &bench.repo, "write a.txt x"));
    assert_eq!(record["outcome"], "succeeded");
}

#[test]
fn a_full_queue_is_told() {
    let bench = Bench::new("full");
    let mut executor = bench.child(&["--running", "1", "--queued", "2"]);
    let pids = bench.show("agent.pids");
    executor.start(&bench.repo, &format!("sleep 3600 {pids}"));
    bench.pids("agent.pids", 1);
    executor.start(&bench.repo, "say one");
    executor.start(&bench.repo, "say two");
    let answer = executor.call("task/submit", task(&new_id(), &bench.repo, "say three"));
    let data = &answer["error"]["data"];
    assert_eq!(
        (&data["code"], &data["retryable"]),
        (&json!("queue_full"), &json!(true))
    );
    assert!(data["retry_after_ms"].as_u64().unwrap() > 0);
}

#[test]
fn a_front_that_errs_is_answered_and_one_that_babbles_is_left() {
    let bench = Bench::new("errs");
    let mut executor = bench.child(&[]);
    let id = new_id();
    assert_eq!(
        executor.call("task/forget", json!({}))["error"]["code"],
        -32_601
    );
    for (method, params, wanted) in [
        ("task/get", json!({"task_id": "x"}), "invalid_arguments"),
        ("task/get", json!({"task_id": id}), "not_found"),
        ("task/cancel", json!({"task_id": id}), "not_found"),
        ("task/submit", json!({}), "invalid_arguments"),
    ] {
        let answer = executor.call(method, params);
        assert_eq!(answer["error"]["data"]["code"], wanted, "{answer}");
    }
    let pids = bench.show("agent.pids");
    let running = executor.start(&bench.repo, &format!("sleep 3600 {pids}"));
    let diff = executor.call("task/get", json!({"task_id": running, "part": "diff"}));
    assert_eq!(diff["error"]["data"]["code"], "not_finished");
    // What is no request is dropped, and two faults are forgiven.
    executor.say(r#"{"jsonrpc":"2.0","method":"task/unknown"}"#);
    executor.say("no json");
    executor.say(&format!("\"{}\"", "x".repeat(300_000)));
    assert_eq!(executor.summary(&running)["task_id"], json!(running));
    executor.say("[]");
    executor.hear_to_the_end();
    assert_eq!(end_of(&mut executor.child).code(), Some(0));
}

#[test]
fn hello_comes_first_and_names_the_protocol() {
    let bench = Bench::new("hello");
    let _daemon = bench.daemon(&[]);
    let mut front = bench.silent_front();
    assert_eq!(front.call("task/list", json!({}))["error"]["code"], -32_600);
    let other = front.call("hello", json!({"protocol": "rocco-exec/2"}));
    assert_eq!(other["error"]["code"], -32_602);
    // A front that is part of a task says so, and submits nothing.
    let hello = front.call("hello", json!({"protocol": "rocco-exec/1", "depth": 1}));
    assert_eq!(hello["result"]["durable"], "crash");
    assert_eq!(
        code(&mut front, task(&new_id(), &bench.repo, "say no")),
        "depth_exceeded"
    );
}

#[test]
fn two_fronts_share_a_daemon_and_leave_it_running() {
    let bench = Bench::new("two");
    let mut daemon = bench.daemon(&[]);
    assert_eq!(mode(&bench.socket()), 0o600);
    assert_eq!(mode(bench.socket().parent().unwrap()), 0o700);
    assert_eq!(mode(&bench.path("state")), 0o700);
    let second = bench.refused(&[]);
    assert_eq!(second.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&second.stderr).lines().count(), 1);
    let other = bench.add_repo("other");
    let (mut one, mut two) = (bench.front(), bench.front());
    let first = one.start(&bench.repo, "sleep 1\nwrite a.txt one");
    let next = two.start(&other, "sleep 1\nwrite a.txt two");
    let listed = two.call("task/list", json!({"repo": bench.repo, "limit": 5}));
    assert_eq!(listed["result"]["tasks"][0]["task_id"], json!(first));
    // A task does not end because a front left, and another can ask for it.
    drop(one);
    assert_eq!(two.record(&first)["outcome"], "succeeded");
    assert_eq!(two.record(&next)["outcome"], "succeeded");
    assert!(
        two.updates
            .iter()
            .any(|update| update["state"] == "succeeded")
    );
    daemon.terminate();
    assert!(!bench.socket().exists());
}

#[test]
fn a_socket_that_was_left_is_replaced_and_one_that_others_reach_is_refused() {
    let bench = Bench::new("stale");
    let mut daemon = bench.daemon(&[]);
    daemon.kill();
    assert!(bench.socket().exists());
    drop(bench.daemon(&[]));
    // What else is there is nobody's to remove.
    let precious = bench.path("precious");
    fs::write(&precious, "precious").unwrap();
    let link = bench.path("link");
    symlink(&precious, &link).unwrap();
    for path in [&precious, &link] {
        let refused = bench.refused(&["--socket", &path.to_string_lossy()]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("is not a socket"));
    }
    assert!(link.is_symlink() && fs::read(&precious).unwrap() == b"precious");
    let public = bench.path("public");
    fs::create_dir(&public).unwrap();
    fs::set_permissions(&public, fs::Permissions::from_mode(0o755)).unwrap();
    let state = bench.path("shared");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = bench.refused(&["--state", &state.to_string_lossy()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("mode 0700"));
    let refused = bench.refused(&["--socket", &public.join("socket").to_string_lossy()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("mode 0700"));
}

/// The modes of the files keep others out, and so does the executor where somebody has loosened
/// them.
#[test]
fn another_user_is_not_heard() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        leave_out("ROOT", "only root can act as another user");
        return;
    }
    let bench = Bench::new("stranger");
    let _daemon = bench.daemon(&[]);
    let socket = bench.socket();
    let loosen = |path: &std::path::Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    };
    let inside = socket
        .ancestors()
        .take_while(|path| path.starts_with(&bench.root));
    inside.for_each(loosen);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":"rocco-exec/1"}}"#;
    let ask = move || {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let mut line = String::new();
        // Whoever is not heard may find the socket closed before having written.
        let _ = stream.write_all(format!("{hello}\n").as_bytes());
        let _ = BufReader::new(Patient(stream)).read_line(&mut line);
        line
    };
    assert!(ask().contains("rocco-exec/1"));
    let stranger = std::thread::spawn(move || {
        // The call itself changes this thread alone, where the library's would change them all.
        // SAFETY: setresuid(2) takes three integers.
        let outcome = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) };
        assert_eq!(outcome, 0);
        ask()
    });
    assert_eq!(stranger.join().unwrap(), "");
}

/// The whole way: a client of `rocco mcp`, which is a front of the daemon.
#[test]
fn a_client_submits_through_the_server_and_sees_the_record() {
    let bench = Bench::new("whole");
    let _daemon = bench.daemon(&[]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rocco"));
    command
        .args(["mcp", "--executor-socket"])
        .arg(bench.socket())
        .env_remove("ROCCO_DEPTH");
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut client = bench.client(&mut command);
    let arguments = json!({"goal": "write a.txt right", "repo": bench.repo,
                           "acceptance": ["gate:holds"]});
    let submitted = client.tool("larry_submit_task", arguments);
    let id = submitted["task_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{submitted}"))
        .to_owned();
    let status = wait_for("the record", || {
        let status = client.tool("larry_task_status", json!({"task_id": id, "wait_s": 5}));
        (status["state"] == "succeeded").then_some(status)
    });
    let text = status.to_string();
    assert!(
        text.contains("refs/rocco/tsk_") && text.contains("\"passed\""),
        "{text}"
    );
    let diff = client.tool("larry_task_result", json!({"task_id": id, "part": "diff"}));
    assert!(diff["text"].as_str().unwrap().contains("+right"), "{diff}");
}
