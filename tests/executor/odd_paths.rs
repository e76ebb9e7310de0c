//! Paths and arguments that are not UTF-8, of which `rocco mcp` made other ones: each byte arrives.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::bench::Bench;

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
