//! How the tests that a gate ran are counted, as the operator says. No I/O.

use std::fmt;

use regex_lite::{Captures, Regex, RegexBuilder};

use crate::executor::run::report::{ReportFault, ReportPath};
use crate::executor::run::runners::Runner;
use crate::limits::{GATE_LINE_BYTES_MAX, GATE_PATTERN_BYTES_MAX};
use crate::wire::json::Value;

/// How many tests a gate ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestCount {
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were left out.
    pub skipped: u64,
}

/// What the tests of a gate are counted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counts {
    /// They are not counted.
    Nothing,
    /// What a known runner prints.
    Runner(Runner),
    /// The one summary in the output that a pattern matches.
    Pattern(SummaryPattern),
    /// A report in the form of JUnit's XML that the run writes.
    Report(ReportPath),
}

/// Why the tests of a gate that says how they are counted were not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountFault {
    /// The pattern matches nothing that was printed.
    NoSummary,
    /// It matches more than once, and nobody knows which summary is the run's own.
    SeveralSummaries,
    /// A line is too long to be looked through, and the run's own summary may stand on it.
    LongLine,
    /// What a group of it matches is not a number, or is a larger one than can be counted.
    Number(&'static str),
    /// The report at this path does not count.
    Report(ReportPath, ReportFault),
}

impl fmt::Display for CountFault {
    /// Goes on after the name of the gate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Report(path, fault) => f.write_str(&fault.told(path)),
            Self::NoSummary => f.write_str("printed no summary that its pattern matches"),
            Self::SeveralSummaries => f.write_str(
                "printed more than one summary that its pattern matches, and any of them may be \
                 false",
            ),
            Self::LongLine => write!(
                f,
                "printed a line of more than {GATE_LINE_BYTES_MAX} bytes, on which its summary may \
                 stand: have it counted by a report"
            ),
            Self::Number(group) => {
                write!(
                    f,
                    "printed a summary whose {group} is not a number within 64 bits"
                )
            }
        }
    }
}

impl Counts {
    /// Reads what a gates file says. The error goes on after the name of the gate.
    pub fn read(value: Value<'_>) -> Result<Self, String> {
        let read = match value {
            Value::String("nothing") => Some(Self::Nothing),
            Value::String(name) => Runner::named(name).map(Self::Runner),
            Value::Object(object) => {
                let mut members = object.iter();
                match (members.next(), members.next()) {
                    (Some(("pattern", Value::String(text))), None) => {
                        Some(Self::Pattern(SummaryPattern::read(text)?))
                    }
                    (Some(("junit", Value::String(path))), None) => {
                        let path = ReportPath::read(path);
                        let what = "has a report in counts that is not a file below its checkout";
                        Some(Self::Report(path.ok_or(what)?))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let what = "counts what is not known: it may be cargo, pytest, unittest, go, node, \
                    nothing, {\"pattern\": REGEX} or {\"junit\": PATH}";
        read.ok_or_else(|| what.to_owned())
    }
}

/// A regular expression for the line in which a run says how many tests it ran.
#[derive(Debug, Clone)]
pub struct SummaryPattern(Regex);

impl PartialEq for SummaryPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for SummaryPattern {}

/// The groups that count, the first of which a pattern needs.
const GROUPS: [&str; 3] = ["passed", "failed", "skipped"];

impl SummaryPattern {
    fn read(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        let built = builder.size_limit(GATE_PATTERN_BYTES_MAX).build();
        let regex = built.map_err(|error| {
            format!("has a pattern in counts that is not a regular expression: {error}")
        })?;
        let mut names = regex.capture_names().flatten();
        if let Some(name) = names.find(|name| !GROUPS.contains(name)) {
            return Err(format!(
                "has a group {name:?} in its pattern that counts nothing: passed, failed and \
                 skipped do"
            ));
        }
        match regex.capture_names().any(|name| name == Some(GROUPS[0])) {
            true => Ok(Self(regex)),
            false => Err("has a pattern in counts without a group (?<passed>...)".into()),
        }
    }

    /// Counts by a line, which must be the only one that matches, and match once.
    pub fn count_line(&self, line: &str, tests: &mut Result<TestCount, CountFault>) {
        for captures in self.0.captures_iter(line).take(2) {
            *tests = match tests {
                Err(CountFault::NoSummary) => count_of(&captures),
                _ => Err(CountFault::SeveralSummaries),
            };
        }
    }
}

/// A group that has no part in a match counts nothing.
fn count_of(captures: &Captures<'_>) -> Result<TestCount, CountFault> {
    let number = |group| match captures.name(group) {
        None => Ok(0),
        Some(found) => found
            .as_str()
            .parse()
            .map_err(|_| CountFault::Number(group)),
    };
    let [passed, failed, skipped] = GROUPS;
    Ok(TestCount {
        passed: number(passed)?,
        failed: number(failed)?,
        skipped: number(skipped)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::run::gate_output::GateOutput;
    use crate::executor::run::gates;

    const PATTERN: &str = r"^(?<passed>\d+) passed(, (?<failed>\d+) failed)?";

    fn counted(pattern: &str, output: &str) -> Result<Option<TestCount>, CountFault> {
        let counts = Counts::Pattern(SummaryPattern::read(pattern).expect("a pattern"));
        let mut heard = GateOutput::new(&counts);
        output
            .as_bytes()
            .chunks(7)
            .for_each(|part| heard.hear(part));
        heard.finish().0
    }

    /// A false summary that the code under test printed was counted beside the run's own, or
    /// instead of it.
    #[test]
    fn a_false_summary_before_or_behind_the_real_one_fails() {
        let several = Err(CountFault::SeveralSummaries);
        let count = |passed, failed| {
            let skipped = 0;
            let count = TestCount {
                passed,
                failed,
                skipped,
            };
            Ok(Some(count))
        };
        let padding = "x".repeat(GATE_LINE_BYTES_MAX);
        // The rest of the line that says how many failed is beyond what is kept of a line.
        let cut = format!("7 passed, {padding}2 failed\n");
        // What the code under test prints pushes the real one behind what is kept.
        let behind = format!("5 passed, 0 failed\n{padding}x1 passed, 1 failed\n");
        for (output, wanted) in [
            ("ok\n3 passed, 0 failed in 1 s\n", count(3, 0)),
            ("3 passed\r\n", count(3, 0)),
            ("2 passed, 1 failed", count(2, 1)),
            ("9 passed, 0 failed\n0 passed, 3 failed\n", several.clone()),
            ("3 passed, 0 failed\n9 passed, 0 failed\n", several.clone()),
            ("3 passed\n3 passed\n", several.clone()),
            ("no summary\n", Err(CountFault::NoSummary)),
            ("", Err(CountFault::NoSummary)),
            (&cut, Err(CountFault::LongLine)),
            (&behind, Err(CountFault::LongLine)),
            (
                "18446744073709551616 passed\n",
                Err(CountFault::Number("passed")),
            ),
            (
                "1 passed, 99999999999999999999 failed\n",
                Err(CountFault::Number("failed")),
            ),
        ] {
            assert_eq!(counted(PATTERN, output), wanted, "{output}");
        }
        let on_one_line = r"(?<passed>\d+) ok";
        assert_eq!(counted(on_one_line, "1 ok 2 ok"), several);
        let not_a_number = r"(?<passed>\w+) ok (?<skipped>\d+)";
        let fault = Err(CountFault::Number("passed"));
        assert_eq!(counted(not_a_number, "all ok 2"), fault);
    }

    /// The examples in the manual are taken, and say what it says of them.
    #[test]
    fn the_examples_of_the_manual_count() {
        let manual = include_str!("../manual.md");
        let examples: Vec<&str> = manual
            .lines()
            .filter_map(|line| line.strip_prefix("- `")?.split_once("` is a "))
            .map(|(example, _)| example)
            .collect();
        let read = |counts: &&str| {
            let text = format!(r#"{{"slow":{{"argv":["x"],"counts":{counts}}}}}"#);
            gates::read(text.as_bytes()).expect(counts).remove(0).counts
        };
        let counts: Vec<Counts> = examples.iter().map(read).collect();
        let [Counts::Pattern(pattern), Counts::Report(path)] = counts.as_slice() else {
            panic!("{examples:?}");
        };
        let summary = counted(pattern.0.as_str(), "12 passed, 3 failed\n");
        let summary = summary.expect("a summary").expect("it is counted");
        assert_eq!((summary.passed, summary.failed), (12, 3));
        let command = format!("`pytest --junitxml={path}`");
        assert!(manual.contains(&command), "{command}");
    }

    /// A setting that can never count is refused at the start, and names its gate.
    #[test]
    fn counts_that_cannot_work_are_refused_at_the_start() {
        let large = r#"{"pattern":"(?<passed>(\\w{100}){100})"}"#;
        for (counts, wanted) in [
            (r#"{"pattern":"(?<passed>"}"#, "not a regular expression"),
            (large, "not a regular expression"),
            (r#"{"pattern":"(\\d+) passed"}"#, "(?<passed>"),
            (r#"{"pattern":"(?<failed>\\d+)"}"#, "(?<passed>"),
            (r#"{"pattern":"(?<passed>1)(?<fail>2)"}"#, "\"fail\""),
            (r#"{"pattern":1}"#, "what is not known"),
            (r#"{"pattern":"(?<passed>1)","a":1}"#, "what is not known"),
            ("{}", "what is not known"),
            ("[]", "what is not known"),
            ("null", "what is not known"),
        ] {
            let text = format!(r#"{{"slow":{{"argv":["x"],"counts":{counts}}}}}"#);
            let said = gates::read(text.as_bytes()).expect_err(counts);
            assert!(said.starts_with("the gate \"slow\" "), "{said}");
            assert!(said.contains(wanted), "{counts}: {said}");
        }
    }
}
