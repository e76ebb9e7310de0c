//! Gates: what the operator has defined to decide whether a task is done. No I/O.

use std::path::{Component, Path};

use crate::executor::json;
use crate::limits::{GATE_TIMEOUT_S, GATES_MAX, TASK_TIMEOUT_S_MAX};
use crate::wire::json::{Object, Value};

/// A gate as the operator defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// What `acceptance` calls it.
    pub name: String,
    /// What is run, without a shell.
    pub argv: Vec<String>,
    /// How long it may run.
    pub timeout_s: u64,
    /// How the tests in its output are counted, if they are.
    pub runner: Option<Runner>,
    /// What it runs of the repository: a task that changes it is told of.
    pub files: Vec<String>,
    /// What it is given of the executor's environment.
    pub pass_env: Vec<String>,
}

/// A test runner whose output is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// `cargo test`.
    Cargo,
    /// `pytest`.
    Pytest,
    /// Python's `unittest`.
    Unittest,
    /// `go test`, which must be given `-v` to say what it ran.
    Go,
    /// `node --test`.
    Node,
}

/// How many tests a gate ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestCount {
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
}

const RUNNERS: [(&str, Runner); 5] = [
    ("cargo", Runner::Cargo),
    ("pytest", Runner::Pytest),
    ("unittest", Runner::Unittest),
    ("go", Runner::Go),
    ("node", Runner::Node),
];

/// Reads the text of a gates file: an object with a member for each gate.
///
/// # Errors
///
/// What is wrong with it, in words.
pub fn read(text: &[u8]) -> Result<Vec<Gate>, String> {
    let gates = json::with(text, |object| {
        let gates: Result<Vec<Gate>, String> = object
            .iter()
            .map(|(name, value)| gate(name, value))
            .collect();
        gates
    });
    let gates = gates.ok_or("it is not one JSON object")??;
    if gates.len() > GATES_MAX {
        return Err(format!("it has more than {GATES_MAX} gates"));
    }
    let mut names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("the gate {:?} is defined twice", pair[0])),
        None => Ok(gates),
    }
}

fn gate(name: &str, value: Value<'_>) -> Result<Gate, String> {
    let wrong = |what: &str| format!("the gate {name:?} {what}");
    let object = value.as_object().ok_or_else(|| wrong("is not an object"))?;
    for (member, _) in object.iter() {
        if !["argv", "timeout_s", "counts", "files", "pass_env"].contains(&member) {
            return Err(wrong(&format!("has an unknown member {member:?}")));
        }
    }
    let argv = texts(object, "argv").map_err(|what| wrong(&what))?;
    if argv.first().is_none_or(String::is_empty) {
        return Err(wrong("needs argv, a list of the program and its arguments"));
    }
    cannot_work(name, &argv).map_err(wrong)?;
    let timeout_s = match object.get("timeout_s") {
        None => GATE_TIMEOUT_S,
        Some(Value::Unsigned(seconds @ 1..=TASK_TIMEOUT_S_MAX)) => seconds,
        Some(_) => return Err(wrong("has a timeout_s that is not a number of seconds")),
    };
    let runner = match object.get("counts") {
        None => recognised(&argv),
        Some(Value::String("nothing")) => None,
        Some(counts) => {
            let known = counts.as_str();
            let named = RUNNERS.iter().find(|(name, _)| Some(*name) == known);
            let what = "counts what is not known: cargo, pytest, unittest, go, node or nothing";
            Some(named.ok_or_else(|| wrong(what))?.1)
        }
    };
    let files = texts(object, "files").map_err(|what| wrong(&what))?;
    if let Some(file) = files.iter().find(|file| !is_inner(file)) {
        let what = "which is not a path within the repository";
        return Err(wrong(&format!("has {file:?} in files, {what}")));
    }
    if let Some(file) = files.iter().find(|file| file.contains(['*', '?'])) {
        let what = "which is a pattern, and matches nothing: name the files, or their directory";
        return Err(wrong(&format!("has {file:?} in files, {what}")));
    }
    let pass_env = texts(object, "pass_env").map_err(|what| wrong(&what))?;
    if let Some(variable) = pass_env.iter().find(|name| !is_variable(name)) {
        let what = "which is not the name of a variable";
        return Err(wrong(&format!("has {variable:?} in pass_env, {what}")));
    }
    Ok(Gate {
        name: name.to_owned(),
        argv,
        timeout_s,
        runner,
        files,
        pass_env,
    })
}

/// Why no task can ask for a gate of this name, or why no system starts its program.
fn cannot_work(name: &str, argv: &[String]) -> Result<(), &'static str> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err("needs a name without control characters");
    }
    match argv.iter().any(|argument| argument.contains('\0')) {
        true => Err("has a NUL character in argv, which no program can be given"),
        false => Ok(()),
    }
}

/// Whether a path names something within a repository, if anything.
fn is_inner(path: &str) -> bool {
    let inner = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && !path.contains('\0') && Path::new(path).components().all(inner)
}

/// Whether an environment can have a variable of this name.
pub fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn texts(object: Object<'_>, name: &str) -> Result<Vec<String>, String> {
    match object.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) if list.iter().all(|entry| entry.as_str().is_some()) => {
            Ok(json::strings(list))
        }
        Some(_) => Err(format!("has {name} that is not a list of strings")),
    }
}

/// The runner that a command starts, if it is a known one.
fn recognised(argv: &[String]) -> Option<Runner> {
    let program = argv[0].rsplit('/').next().unwrap_or_default();
    let has = |word: &str| argv[1..].iter().any(|argument| argument == word);
    match program {
        "cargo" if has("test") => Some(Runner::Cargo),
        "pytest" => Some(Runner::Pytest),
        "go" if has("test") => Some(Runner::Go),
        "node" if has("--test") => Some(Runner::Node),
        _ if program.starts_with("python") && has("pytest") => Some(Runner::Pytest),
        _ if program.starts_with("python") && has("unittest") => Some(Runner::Unittest),
        _ => None,
    }
}

impl Runner {
    /// Counts the tests that a line of the output tells of.
    pub fn count_line(self, line: &str, tests: &mut TestCount) {
        let line = line.trim();
        let (mut passed, mut failed) = (0, 0);
        match self {
            Self::Cargo => {
                if let Some(rest) = line.strip_prefix("test result: ") {
                    passed = before(rest, " passed");
                    failed = before(rest, " failed");
                }
            }
            Self::Pytest => {
                let summary = line.trim_matches('=').trim();
                if summary.contains(" in ") && summary.ends_with('s') {
                    passed = before(summary, " passed");
                    failed = before(summary, " failed").saturating_add(before(summary, " error"));
                }
            }
            Self::Unittest => {
                if line.starts_with("Ran ") {
                    passed = before(line, " test");
                } else if line.starts_with("FAILED (") {
                    failed = after(line, "failures=").saturating_add(after(line, "errors="));
                    tests.passed = tests.passed.saturating_sub(failed);
                } else if line.contains("skipped=") {
                    tests.passed = tests.passed.saturating_sub(after(line, "skipped="));
                }
            }
            Self::Go => {
                passed = u64::from(line.starts_with("--- PASS"));
                failed = u64::from(line.starts_with("--- FAIL"));
            }
            Self::Node => {
                let line = line.trim_start_matches(['#', '\u{2139}', ' ']);
                passed = line.strip_prefix("pass ").map_or(0, number);
                failed = line.strip_prefix("fail ").map_or(0, number);
            }
        }
        // The code under test prints what it likes.
        tests.passed = tests.passed.saturating_add(passed);
        tests.failed = tests.failed.saturating_add(failed);
    }
}

fn number(text: &str) -> u64 {
    let digits = text.find(|character: char| !character.is_ascii_digit());
    text[..digits.unwrap_or(text.len())].parse().unwrap_or(0)
}

/// The number that stands before a word.
fn before(text: &str, word: &str) -> u64 {
    let Some(at) = text.find(word) else { return 0 };
    let digits = text[..at].rfind(|character: char| !character.is_ascii_digit());
    text[digits.map_or(0, |last| last + 1)..at]
        .parse()
        .unwrap_or(0)
}

/// The number that stands behind a word.
fn after(text: &str, word: &str) -> u64 {
    text.split_once(word).map_or(0, |(_, rest)| number(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gates_file_is_read_or_refused_with_the_reason() {
        let read = |text: &str| read(text.as_bytes());
        let gates = read(
            r#"{"test":{"argv":["cargo","test"],"files":["tests/"]},
                "x":{"argv":["./x"],"counts":"go","timeout_s":5,"pass_env":["HOME"]}}"#,
        )
        .unwrap();
        assert_eq!(gates[0].runner, Some(Runner::Cargo));
        assert_eq!(gates[0].timeout_s, GATE_TIMEOUT_S);
        assert_eq!((gates[1].runner, gates[1].timeout_s), (Some(Runner::Go), 5));
        assert_eq!(read("{}"), Ok(Vec::new()));
        for (text, wanted) in [
            ("[]", "it is not one JSON object"),
            (r#"{"a":1}"#, "the gate \"a\" is not an object"),
            (r#"{"a":{}}"#, "the gate \"a\" needs argv"),
            (
                r#"{"a":{"argv":"cargo test"}}"#,
                "the gate \"a\" has argv that is not a list",
            ),
            (
                r#"{"a":{"argv":["x"],"shell":true}}"#,
                "the gate \"a\" has an unknown member",
            ),
            (
                r#"{"a":{"argv":["x"],"counts":"x"}}"#,
                "the gate \"a\" counts what is not known",
            ),
            (
                r#"{"a":{"argv":["x"]},"a":{"argv":["x"]}}"#,
                "the gate \"a\" is defined twice",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(wanted), "{said}");
        }
    }

    /// Each of these was taken at the start, and then failed every task or did nothing.
    #[test]
    fn a_gate_that_cannot_work_is_refused_at_the_start() {
        for (text, wanted) in [
            (r#"{"":{"argv":["x"]}}"#, "needs a name"),
            (r#"{"a\u001b":{"argv":["x"]}}"#, "needs a name"),
            (
                r#"{"a":{"argv":["x","\u0000"]}}"#,
                "a NUL character in argv",
            ),
            (
                r#"{"a":{"argv":["x"],"files":["/etc"]}}"#,
                "\"/etc\" in files",
            ),
            (r#"{"a":{"argv":["x"],"files":["b/../../c"]}}"#, "in files"),
            (r#"{"a":{"argv":["x"],"files":[""]}}"#, "in files"),
            (
                r#"{"a":{"argv":["x"],"pass_env":["A=B"]}}"#,
                "\"A=B\" in pass_env",
            ),
            (r#"{"a":{"argv":["x"],"pass_env":[""]}}"#, "in pass_env"),
        ] {
            let said = read(text.as_bytes()).unwrap_err();
            assert!(said.contains(wanted), "{said}");
        }
    }

    #[test]
    fn tests_are_counted_as_each_runner_tells_them() {
        for (runner, output, passed, failed) in [
            (
                Runner::Cargo,
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured",
                3,
                0,
            ),
            (
                Runner::Cargo,
                "test result: ok. 12 passed; 0 failed;\ntest result: FAILED. 1 passed; 2 failed;",
                13,
                2,
            ),
            (Runner::Cargo, "test result: ok. 0 passed; 0 failed;", 0, 0),
            (
                Runner::Pytest,
                "===== 5 passed, 1 warning in 0.02s =====",
                5,
                0,
            ),
            (
                Runner::Pytest,
                "=== 1 failed, 4 passed, 2 errors in 1.5s ===",
                4,
                3,
            ),
            (Runner::Pytest, "no tests ran in 0.01s", 0, 0),
            (Runner::Unittest, "Ran 4 tests in 0.000s\n\nOK", 4, 0),
            (
                Runner::Unittest,
                "Ran 4 tests in 0.1s\n\nFAILED (failures=1, errors=2)",
                1,
                3,
            ),
            (
                Runner::Unittest,
                "Ran 2 tests in 0.0s\n\nOK (skipped=2)",
                0,
                0,
            ),
            (
                Runner::Go,
                "--- PASS: A (0s)\n    --- PASS: A/b\n--- FAIL: C",
                2,
                1,
            ),
            (Runner::Node, "# pass 3\n# fail 1", 3, 1),
            (Runner::Node, "\u{2139} pass 7\n\u{2139} fail 0", 7, 0),
        ] {
            let mut tests = TestCount::default();
            for line in output.lines() {
                runner.count_line(line, &mut tests);
            }
            assert_eq!(tests, TestCount { passed, failed }, "{output}");
        }
    }

    #[test]
    fn known_runners_are_recognised() {
        for (line, runner) in [
            ("cargo test --locked", Some(Runner::Cargo)),
            ("cargo build", None),
            ("/usr/bin/python3 -m pytest", Some(Runner::Pytest)),
            ("python3 -m unittest discover", Some(Runner::Unittest)),
            ("go test -v ./...", Some(Runner::Go)),
            ("node --test", Some(Runner::Node)),
            ("make", None),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(recognised(&argv), runner, "{line}");
        }
    }
}
