//! The command line of the real program.

mod support;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn rocco(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rocco"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_and_version_go_to_stdout() {
    for (arguments, start) in [
        (&[][..], "rocco hands bounded coding tasks"),
        (&["help"], "rocco hands bounded coding tasks"),
        (&["--help"], "rocco hands bounded coding tasks"),
        (&["mcp", "--help"], "rocco mcp serves"),
        (&["help", "mcp"], "rocco mcp serves"),
        #[cfg(target_os = "linux")]
        (&["help", "executor"], "rocco executor does the tasks"),
        #[cfg(target_os = "linux")]
        (&["executor", "--help"], "rocco executor does the tasks"),
        #[cfg(target_os = "linux")]
        (&["task", "--help"], "rocco task shows"),
        (
            &["--version"],
            concat!("rocco ", env!("CARGO_PKG_VERSION"), "\n"),
        ),
    ] {
        let output = rocco(arguments, "");
        assert!(text(&output.stdout).starts_with(start), "{arguments:?}");
        assert!(
            output.stderr.is_empty() && output.status.success(),
            "{arguments:?}"
        );
    }
}

#[test]
fn misuse_is_one_line_on_stderr_and_exit_code_2() {
    for arguments in [
        &["mpc"][..],
        &["mcp", "--chekc"],
        &["mcp", "--check", "x"],
        &["", "\n"],
        #[cfg(target_os = "linux")]
        &["executor"],
        #[cfg(target_os = "linux")]
        &["executor", "--sokcet", "x", "--", "a"],
        #[cfg(target_os = "linux")]
        &["task", "shwo"],
    ] {
        let output = rocco(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
}

#[test]
fn check_shows_what_a_client_sees() {
    let output = rocco(&["mcp", "--check"], "");
    let said = text(&output.stdout);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{said}"
    );
    for step in [
        "initialize  revision 2025-11-25, server rocco",
        "tools/list  larry_submit_task(goal, repo, files, acceptance)",
        "tools/call  executor_not_connected: ",
        "end         it left by itself",
        "All is well",
    ] {
        assert!(said.contains(step), "{step:?} is missing in {said}");
    }
}

/// README shows a session with its output. It is run here as it stands there.
#[test]
fn the_session_of_the_readme_is_true() {
    let readme = include_str!("../README.md");
    let (_, session) = readme.split_once("cat > session.jsonl <<'END'\n").unwrap();
    let (session, _) = session.split_once("END\n").unwrap();
    let output = rocco(&["mcp"], session);
    assert!(output.status.success() && output.stderr.is_empty());
    let wanted: Vec<&str> = readme
        .lines()
        .filter(|line| {
            line.starts_with("{\"jsonrpc\":\"2.0\",\"id\":") && line.contains("\"result\":")
        })
        .collect();
    let came: Vec<&str> = text(&output.stdout).lines().collect();
    assert!(!wanted.is_empty());
    assert_eq!(came.len(), wanted.len());
    for (came, wanted) in came.iter().zip(wanted) {
        // README cuts a long line with an ellipsis.
        match wanted.split_once(" ... ") {
            None => assert_eq!(*came, wanted),
            Some((start, end)) => assert!(came.starts_with(start) && came.ends_with(end)),
        }
    }
}
