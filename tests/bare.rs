//! The command line that every build of the program reads, with whatever features.

mod support;

use support::program::{rocco, text};

#[test]
fn the_version_goes_to_stdout() {
    for flag in ["--version", "-V"] {
        let output = rocco(&[flag], "");
        let version = concat!("rocco ", env!("CARGO_PKG_VERSION"), "\n");
        assert_eq!(text(&output.stdout), version);
        assert!(output.status.success() && output.stderr.is_empty());
    }
}

#[test]
fn misuse_is_one_line_on_stderr_and_exit_code_2() {
    for arguments in [
        &["mpc"][..],
        &["mcp", "--chekc"],
        &["mcp", "x"],
        &["mcp", "--executor"],
        &["mcp", "--executor", "a", "--executor-socket", "b"],
        &["mcp", "--busy-poll", "0"],
        &["", "\n"],
        &["a\nb\u{1b}[1m"],
    ] {
        let output = rocco(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{arguments:?}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
}

#[test]
fn a_command_that_this_build_lacks_is_refused_with_what_to_do() {
    let wanted = if cfg!(all(feature = "executor", target_os = "linux")) {
        return;
    } else if cfg!(not(feature = "cli")) {
        "build it with the feature cli"
    } else if cfg!(target_os = "linux") {
        "build rocco with the feature executor"
    } else {
        "rocco executor needs Linux"
    };
    let output = rocco(&["executor", "--", "agent"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(wanted), "{output:?}");
}

#[test]
fn it_serves_with_each_option_of_a_clients_configuration() {
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    for options in [
        &[][..],
        &["--busy-poll", "50"],
        &["--executor", "'a program' that --is 'not started'"],
        &["--executor-socket", "/no/such/socket", "--busy-poll", "1"],
    ] {
        let output = rocco(&[&["mcp"], options].concat(), ping);
        assert!(output.status.success(), "{options:?}: {output:?}");
        let reply = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        assert_eq!(text(&output.stdout), reply, "{options:?}");
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
