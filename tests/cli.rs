//! The command line of the real program.

mod support;

use std::process::{Command, Stdio};

use support::program::{rocco, text};

/// The lines of the commands that this build has.
fn commands() -> Vec<&'static str> {
    let all = ["", "mcp", "completions", "man", "help"];
    let executor = [
        "executor",
        "task",
        "task list",
        "task show",
        "task log",
        "task diff",
    ];
    let has_executor = cfg!(all(feature = "executor", target_os = "linux"));
    let executor = executor.into_iter().chain(["task cancel"]);
    all.into_iter()
        .chain(executor.filter(|_| has_executor))
        .collect()
}

fn words<'a>(line: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    line.split_whitespace()
        .chain(more.iter().copied())
        .collect()
}

/// What a command prints that succeeds and has nothing to complain of.
fn printed(arguments: &[&str]) -> String {
    let output = rocco(arguments, "");
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{arguments:?}: {said}"
    );
    text(&output.stdout).to_owned()
}

/// What a command line is refused with.
fn refused(arguments: &[&str]) -> String {
    let output = rocco(arguments, "");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    said.trim_end().to_owned()
}

#[test]
fn help_is_the_same_by_every_way_and_fits_in_80_columns() {
    for line in commands() {
        let help = printed(&words(line, &["--help"]));
        assert!(help.starts_with("rocco "), "{line}: {help}");
        assert!(
            help.contains(format!("Usage: rocco {line}").trim_end()),
            "{line}: {help}"
        );
        for row in help.lines() {
            assert!(row.chars().count() <= 80, "{line}: {row}");
        }
        assert_eq!(printed(&words(line, &["-h"])), help, "{line}");
        assert_eq!(printed(&words("help", &words(line, &[]))), help, "{line}");
    }
    assert_eq!(printed(&[]), printed(&["help"]));
}

#[test]
fn the_version_is_told_behind_every_command() {
    for line in commands() {
        for flag in ["--version", "-V"] {
            let version = concat!("rocco ", env!("CARGO_PKG_VERSION"), "\n");
            assert_eq!(printed(&words(line, &[flag])), version, "{line} {flag}");
        }
    }
}

#[test]
fn misuse_is_one_line_that_names_the_nearest_word_and_the_right_help() {
    for (line, wanted) in [
        (
            "mpc",
            r#"unknown argument "mpc"; did you mean "mcp"? Try: rocco help"#,
        ),
        (
            "hlep",
            r#"unknown argument "hlep"; did you mean "help"? Try: rocco help"#,
        ),
        (
            "--verison",
            r#"unknown argument "--verison"; did you mean "--version"? Try: rocco help"#,
        ),
        (
            "mcp --chekc",
            r#"unknown argument "--chekc"; did you mean "--check"? Try: rocco help mcp"#,
        ),
        (
            "--check",
            r#"unknown argument "--check"; did you mean "rocco mcp --check"? Try: rocco help"#,
        ),
        (
            "mcp --check x",
            r#"unknown argument "x". Try: rocco help mcp"#,
        ),
        (
            "mcp --zzzzzz",
            r#"unknown argument "--zzzzzz". Try: rocco help mcp"#,
        ),
        (
            "mcp --check=yes",
            "--check takes no value, such as \"yes\". Try: rocco help mcp",
        ),
        (
            "mcp --busy-poll",
            "--busy-poll needs a value. Try: rocco help mcp",
        ),
        (
            "mcp --busy-poll=0",
            r#"--busy-poll takes 1 to 1000 microseconds, not "0". Try: rocco help mcp"#,
        ),
        (
            "mcp --executor=",
            r#"--executor takes a program with its arguments as one word, with each quote closed, not "". Try: rocco help mcp"#,
        ),
        (
            "mcp --executor a --executor-socket b",
            "more than one --executor or --executor-socket is given. Try: rocco help mcp",
        ),
        (
            "help mpc",
            r#"unknown argument "mpc"; did you mean "mcp"? Try: rocco help"#,
        ),
        (
            "completions",
            "SHELL is missing. Try: rocco help completions",
        ),
    ] {
        assert_eq!(
            refused(&words(line, &[])),
            format!("rocco: {wanted}"),
            "{line}"
        );
    }
}

#[cfg(all(feature = "executor", target_os = "linux"))]
#[test]
fn misuse_of_the_executor_and_its_tasks_is_told_as_well() {
    for (line, wanted) in [
        (
            "help executr",
            r#"unknown argument "executr"; did you mean "executor"? Try: rocco help"#,
        ),
        (
            "executor",
            "an agent is needed behind --. Try: rocco help executor",
        ),
        (
            "executor --sokcet /x -- a",
            r#"unknown argument "--sokcet"; did you mean "--socket"? Try: rocco help executor"#,
        ),
        (
            "executor --running=0 -- a",
            "--running takes 1 to 64, not \"0\". Try: rocco help executor",
        ),
        (
            "executor --deadline 1h -- a",
            "--deadline takes 1 to 86400 seconds, not \"1h\". Try: rocco help executor",
        ),
        (
            "executor --disk 1G -- a",
            "--disk takes 1 to 1073741824 MiB, not \"1G\". Try: rocco help executor",
        ),
        (
            "executor claude",
            r#"unknown argument "claude"; the agent and its arguments stand behind --. Try: rocco help executor"#,
        ),
        (
            "executor --sandbox on -- a",
            "--sandbox takes one of auto, require, landlock, bubblewrap, off, not \"on\". Try: rocco help executor",
        ),
        (
            "executor --socket",
            "--socket needs a value. Try: rocco help executor",
        ),
        (
            "task shwo x",
            r#"unknown argument "shwo"; did you mean "show"? Try: rocco help task"#,
        ),
        ("task show", "TASK is missing. Try: rocco help task show"),
        // One of two counted, and the other was passed over without a word.
        (
            "task --state /a list --state /b",
            "--state is given more than once. Try: rocco help task",
        ),
        (
            "task --json show x --json",
            "--json is given more than once. Try: rocco help task",
        ),
        (
            "task list --state",
            "--state needs a value. Try: rocco help task list",
        ),
        (
            "task list x",
            r#"unknown argument "x". Try: rocco help task list"#,
        ),
        (
            "mcp --stat x",
            r#"unknown argument "--stat"; did you mean "rocco executor --state"? Try: rocco help mcp"#,
        ),
    ] {
        assert_eq!(
            refused(&words(line, &[])),
            format!("rocco: {wanted}"),
            "{line}"
        );
    }
}

/// It answered `unknown argument "--help"; did you mean "--help"?`.
#[cfg(all(feature = "executor", target_os = "linux"))]
#[test]
fn help_is_shown_behind_any_option() {
    let help = printed(&["help", "executor"]);
    for line in [
        "executor --socket x --help",
        "executor --socket --help",
        "executor --socket=x -h",
        "executor --running 0 --help",
        "executor --sokcet x --help",
    ] {
        assert_eq!(printed(&words(line, &[])), help, "{line}");
    }
    // Behind -- stands the agent, and its options are its own.
    let output = rocco(
        &[
            "executor",
            "--state",
            "/proc/no",
            "--",
            "no-such-agent",
            "--help",
        ],
        "",
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// Two spellings of one option, and one of them was refused.
#[cfg(all(feature = "executor", target_os = "linux"))]
#[test]
fn a_value_may_stand_behind_an_equals_sign() {
    for line in ["--running=3", "--running 3"] {
        let line = format!("executor {line} --state=/proc/no -- no-such-agent");
        let output = rocco(&words(&line, &[]), "");
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        assert!(
            text(&output.stderr).contains("no-such-agent"),
            "{line}: {output:?}"
        );
    }
}

#[test]
fn a_reader_that_leaves_early_is_not_complained_of() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rocco"))
        .args(["help"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn completions_and_manuals_know_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for word in ["mcp", "completions", "executor-socket", "busy-poll"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        assert!(!script.contains("executor-guard"), "{shell}");
    }
    for line in commands() {
        let page = printed(&words("man", &words(line, &[])));
        let name = words("rocco", &words(line, &[])).join("-");
        let version = env!("CARGO_PKG_VERSION");
        let title = format!(".TH {name} 1  \"rocco {version}\"");
        assert!(page.contains(&title), "{line}: {page}");
        assert!(!page.contains("rocco rocco"), "{page}");
        // Tables and JSON stand in the last section, and were filled and justified as a text.
        let (extra, end) = (
            page.find(".SH EXTRA\n.nf\n"),
            page.find("\n.fi\n.SH VERSION"),
        );
        assert_eq!(
            extra.is_some(),
            page.contains(".SH EXTRA"),
            "{line}: {page}"
        );
        assert!(extra.is_none() || extra < end, "{line}: {page}");
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
