//! The test runners whose output is known, and how each of them tells of its tests. No I/O.

use crate::executor::run::counts::TestCount;

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

const RUNNERS: [(&str, Runner); 5] = [
    ("cargo", Runner::Cargo),
    ("pytest", Runner::Pytest),
    ("unittest", Runner::Unittest),
    ("go", Runner::Go),
    ("node", Runner::Node),
];

impl Runner {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        let named = RUNNERS.iter().find(|(known, _)| *known == name);
        named.map(|(_, runner)| *runner)
    }

    /// The one that a command starts, if it is a known one.
    pub fn recognised(argv: &[String]) -> Option<Self> {
        let program = argv[0].rsplit('/').next().unwrap_or_default();
        let has = |word: &str| argv[1..].iter().any(|argument| argument == word);
        match program {
            "cargo" if has("test") => Some(Self::Cargo),
            "pytest" => Some(Self::Pytest),
            "go" if has("test") => Some(Self::Go),
            "node" if has("--test") => Some(Self::Node),
            _ if program.starts_with("python") && has("pytest") => Some(Self::Pytest),
            _ if program.starts_with("python") && has("unittest") => Some(Self::Unittest),
            _ => None,
        }
    }

    /// Counts the tests that a line of the output tells of.
    pub fn count_line(self, line: &str, tests: &mut TestCount) {
        let line = line.trim();
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        match self {
            Self::Cargo => {
                if let Some(rest) = line.strip_prefix("test result: ") {
                    passed = before(rest, " passed");
                    failed = before(rest, " failed");
                    skipped = before(rest, " ignored");
                }
            }
            Self::Pytest => {
                let summary = line.trim_matches('=').trim();
                if summary.contains(" in ") && summary.ends_with('s') {
                    passed = before(summary, " passed");
                    failed = before(summary, " failed").saturating_add(before(summary, " error"));
                    skipped = before(summary, " skipped");
                }
            }
            Self::Unittest => {
                if line.starts_with("Ran ") {
                    passed = before(line, " test");
                } else if line.starts_with("FAILED (") {
                    failed = after(line, "failures=").saturating_add(after(line, "errors="));
                    skipped = after(line, "skipped=");
                } else if line.starts_with("OK (") {
                    skipped = after(line, "skipped=");
                }
                let others = failed.saturating_add(skipped);
                tests.passed = tests.passed.saturating_sub(others);
            }
            Self::Go => {
                passed = u64::from(line.starts_with("--- PASS"));
                failed = u64::from(line.starts_with("--- FAIL"));
                skipped = u64::from(line.starts_with("--- SKIP"));
            }
            Self::Node => {
                let line = line.trim_start_matches(['#', '\u{2139}', ' ']);
                passed = line.strip_prefix("pass ").map_or(0, number);
                failed = line.strip_prefix("fail ").map_or(0, number);
                skipped = line.strip_prefix("skipped ").map_or(0, number);
            }
        }
        // The code under test prints what it likes.
        tests.passed = tests.passed.saturating_add(passed);
        tests.failed = tests.failed.saturating_add(failed);
        tests.skipped = tests.skipped.saturating_add(skipped);
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
    fn tests_are_counted_as_each_runner_tells_them() {
        for (runner, output, passed, failed, skipped) in [
            (
                Runner::Cargo,
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured",
                3,
                0,
                1,
            ),
            (
                Runner::Cargo,
                "test result: ok. 12 passed; 0 failed;\ntest result: FAILED. 1 passed; 2 failed;",
                13,
                2,
                0,
            ),
            (
                Runner::Cargo,
                "test result: ok. 0 passed; 0 failed;",
                0,
                0,
                0,
            ),
            (
                Runner::Pytest,
                "===== 5 passed, 3 skipped, 1 warning in 0.02s =====",
                5,
                0,
                3,
            ),
            (
                Runner::Pytest,
                "=== 1 failed, 4 passed, 2 errors in 1.5s ===",
                4,
                3,
                0,
            ),
            (Runner::Pytest, "no tests ran in 0.01s", 0, 0, 0),
            (Runner::Unittest, "Ran 4 tests in 0.000s\n\nOK", 4, 0, 0),
            (
                Runner::Unittest,
                "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=4)",
                2,
                3,
                4,
            ),
            (
                Runner::Unittest,
                "Ran 2 tests in 0.0s\n\nOK (skipped=2)",
                0,
                0,
                2,
            ),
            (
                Runner::Go,
                "--- PASS: A (0s)\n    --- PASS: A/b\n--- FAIL: C\n--- SKIP: D",
                2,
                1,
                1,
            ),
            (Runner::Node, "# pass 3\n# fail 1\n# skipped 2", 3, 1, 2),
            (Runner::Node, "\u{2139} pass 7\n\u{2139} fail 0", 7, 0, 0),
        ] {
            let mut tests = TestCount::default();
            for line in output.lines() {
                runner.count_line(line, &mut tests);
            }
            let wanted = TestCount {
                passed,
                failed,
                skipped,
            };
            assert_eq!(tests, wanted, "{output}");
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
            assert_eq!(Runner::recognised(&argv), runner, "{line}");
        }
    }
}
