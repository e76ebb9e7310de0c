//! Paths and arguments that are not UTF-8, of which `rocco mcp` made other ones: each byte arrives.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use super::bench::{Bench, task_with};

fn odd(bench: &Bench, name: &[u8]) -> PathBuf {
    bench.root.join(OsStr::from_bytes(name))
}

fn rocco(bench: &Bench, command: &str) -> Command {
    let mut rocco = Command::new(env!("CARGO_BIN_EXE_rocco"));
    rocco
        .arg(command)
        .env_remove("ROCCO_DEPTH")
        .current_dir(&bench.root);
    rocco
}

#[test]
fn a_state_directory_and_an_agent_that_are_not_utf_8_are_used_as_they_are() {
    let bench = Bench::new("odd-state");
    let state = odd(&bench, b"state-\xff");
    let mut command = rocco(&bench, "executor");
    command
        .arg("--state")
        .arg(&state)
        .arg("--allow-repo")
        .arg(&bench.root);
    command.args([
        "--sandbox",
        "off",
        "--",
        "sh",
        "-c",
        "printf %s \"$1\" > a.txt",
        "agent",
    ]);
    command.arg(OsStr::from_bytes(b"\xff\xfe"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut executor = bench.started(&mut command);
    let id = executor.start(&bench.repo, "write what the agent is given");
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(state.join("tasks").join(&id).exists());
    let result = format!("refs/rocco/{id}:a.txt");
    let shown = Command::new("git")
        .arg("-C")
        .arg(&bench.repo)
        .args(["show", &result])
        .output();
    assert_eq!(shown.unwrap().stdout, b"\xff\xfe");
    let listed = rocco(&bench, "task")
        .arg("--state")
        .arg(&state)
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&listed.stdout).contains(&id),
        "{listed:?}"
    );
    executor.close();
}

#[test]
fn a_socket_that_is_not_utf_8_is_listened_on_and_connected_to() {
    let bench = Bench::new("odd-socket");
    let socket = odd(&bench, b"run-\xff").join(OsStr::from_bytes(b"\xfe"));
    let mut command = rocco(&bench, "executor");
    command
        .arg("--state")
        .arg(bench.path("state"))
        .arg("--socket")
        .arg(&socket);
    command
        .args(["--sandbox", "off", "--allow-repo"])
        .arg(&bench.root)
        .args(["--", "true"]);
    let _daemon = bench.listening(command.stdin(Stdio::null()), &socket);
    let mut check = rocco(&bench, "mcp");
    let checked = check
        .arg("--check")
        .arg("--executor-socket")
        .arg(&socket)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success() && said.contains("executor    rocco"),
        "{checked:?}"
    );
    assert!(
        said.contains(r"run-\xff/\xfe'"),
        "the command can be pasted: {said}"
    );
}

/// Three files whose names are not UTF-8, or are U+FFFD itself, had one and the same name in a
/// record, and a scope of one of them covered all.
#[test]
fn names_that_are_not_utf_8_are_kept_apart_in_a_record() {
    let bench = Bench::new("odd-names");
    let mut executor = bench.child(&["--sandbox", "off"]);
    let write = "import os; [open(os.fsencode(chr(0xdc00 + b)), 'w') for b in (0xff, 0xfe)]";
    let goal = format!("sh python3 -c \"{write}\"\nwrite \u{FFFD} x");
    let record = executor.done(task_with(
        &bench.repo,
        &goal,
        json!({"files": ["\u{FFFD}"]}),
    ));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let paths = record["files"].as_array().expect("files").iter();
    let mut paths: Vec<&str> = paths.filter_map(|file| file["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["\0fe", "\0ff", "\u{FFFD}"]);
    assert_eq!(record["out_of_scope"], json!(["\0fe", "\0ff"]), "{record}");
}
