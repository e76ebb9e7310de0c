//! Counts the tests in a report in the form of JUnit's XML. No I/O of its own.
//!
//! Code under test may have written the report, in whatever form: it is read event by event, with
//! neither recursion nor entities, and to bounds.

use std::fmt;
use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::executor::run::counts::TestCount;
use crate::limits::GATE_REPORT_LEVELS_MAX;

/// Why a report does not count. What it says itself is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JunitFault {
    /// It is not well-formed, from this byte on.
    Xml(u64),
    /// It declares a document type, and with that what its entities stand for.
    DocumentType,
    /// Its root is another element.
    Root,
    /// It nests deeper than reports do.
    TooDeep,
    /// A test lies within a test.
    NestedCase,
    /// How many tests failed is not a number, or is a larger one than can be counted.
    Number,
}

impl fmt::Display for JunitFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xml(at) => write!(f, "it is not well-formed at byte {at}"),
            Self::DocumentType => f.write_str("it has a document type"),
            Self::Root => f.write_str("its root is neither testsuites nor testsuite"),
            Self::TooDeep => write!(f, "it nests deeper than {GATE_REPORT_LEVELS_MAX} levels"),
            Self::NestedCase => f.write_str("it has a testcase within a testcase"),
            Self::Number => f.write_str("its failures or errors are not a number within 64 bits"),
        }
    }
}

/// A test that has begun.
#[derive(Debug, Clone, Copy)]
struct Case {
    /// How many elements it lies in.
    level: usize,
    failed: bool,
    skipped: bool,
}

/// What was read of a report so far.
#[derive(Debug, Default)]
struct Report {
    level: usize,
    has_root: bool,
    case: Option<Case>,
    tests: TestCount,
    /// The most failures that a suite tells of, all that lie in it included.
    failures_told: u64,
}

/// Counts the tests of a report. Each `testcase` is one, wherever it lies, so that suites within
/// suites count nothing twice. What a suite says of itself can only add failures.
pub fn count(text: impl BufRead) -> Result<TestCount, JunitFault> {
    let mut reader = Reader::from_reader(text);
    reader.config_mut().expand_empty_elements = true;
    let mut report = Report::default();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = match reader.read_event_into(&mut buffer) {
            Ok(event) => event,
            Err(_) => return Err(JunitFault::Xml(reader.error_position())),
        };
        let is_blank = |text: &str| text.trim_ascii().is_empty();
        let malformed = Err(JunitFault::Xml(reader.buffer_position()));
        match event {
            Event::Start(_) if report.level == 0 && report.has_root => return malformed,
            Event::Start(element) => report.begin(&element)?,
            Event::End(_) => report.end(),
            Event::DocType(_) => return Err(JunitFault::DocumentType),
            Event::Text(text) if report.level == 0 && !is_blank(&text) => return malformed,
            Event::CData(_) | Event::GeneralRef(_) if report.level == 0 => return malformed,
            Event::Eof if report.level > 0 => return malformed,
            Event::Eof if !report.has_root => return Err(JunitFault::Root),
            Event::Eof => return Ok(report.counted()),
            _ => {}
        }
    }
}

impl Report {
    fn begin(&mut self, element: &BytesStart<'_>) -> Result<(), JunitFault> {
        let name = element.local_name();
        let name = name.as_ref();
        let is_suite = matches!(name, "testsuites" | "testsuite");
        if self.level == 0 && !is_suite {
            return Err(JunitFault::Root);
        }
        if self.level == GATE_REPORT_LEVELS_MAX {
            return Err(JunitFault::TooDeep);
        }
        match (name, &mut self.case) {
            _ if is_suite => self.hear_suite(element)?,
            ("testcase", Some(_)) => return Err(JunitFault::NestedCase),
            ("testcase", case @ None) => {
                *case = Some(Case {
                    level: self.level,
                    failed: false,
                    skipped: is_left_out(element),
                });
            }
            ("failure" | "error", Some(case)) => case.failed = true,
            ("failure" | "error", None) => {
                self.tests.failed = self.tests.failed.saturating_add(1);
            }
            ("skipped", Some(case)) => case.skipped = true,
            _ => {}
        }
        self.has_root = true;
        self.level += 1;
        Ok(())
    }

    /// Takes in how many failures a suite tells of. An attribute that stands twice counts twice.
    fn hear_suite(&mut self, suite: &BytesStart<'_>) -> Result<(), JunitFault> {
        let mut failures: u64 = 0;
        let mut attributes = suite.attributes();
        // Each would be compared with all others.
        for attribute in attributes.with_checks(false) {
            let attribute = attribute.map_err(|_| JunitFault::Number)?;
            if matches!(attribute.key.as_ref(), "failures" | "errors") {
                let number = attribute.value.trim_ascii().parse();
                let number: u64 = number.map_err(|_| JunitFault::Number)?;
                failures = failures.checked_add(number).ok_or(JunitFault::Number)?;
            }
        }
        self.failures_told = self.failures_told.max(failures);
        Ok(())
    }

    fn end(&mut self) {
        // The reader lets no element end that has not begun.
        self.level -= 1;
        let Some(case) = self.case.take_if(|case| case.level == self.level) else {
            return;
        };
        let count = match case {
            Case { failed: true, .. } => &mut self.tests.failed,
            Case { skipped: true, .. } => &mut self.tests.skipped,
            _ => &mut self.tests.passed,
        };
        *count = count.saturating_add(1);
    }

    fn counted(self) -> TestCount {
        TestCount {
            failed: self.tests.failed.max(self.failures_told),
            ..self.tests
        }
    }
}

/// Whether a test says that it did not run, as those of GoogleTest and CTest do without an element.
fn is_left_out(case: &BytesStart<'_>) -> bool {
    let mut attributes = case.attributes();
    let mut attributes = attributes.with_checks(false).flatten();
    attributes.any(|attribute| {
        let value = &*attribute.value;
        attribute.key.as_ref() == "status" && matches!(value, "notrun" | "disabled" | "skipped")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(report: &str) -> Result<(u64, u64, u64), JunitFault> {
        let tests = count(report.as_bytes())?;
        Ok((tests.passed, tests.failed, tests.skipped))
    }

    #[test]
    fn reports_of_every_form_are_counted() {
        for (report, wanted) in [
            ("<testsuites/>", (0, 0, 0)),
            (
                "<testsuite><testcase/><testcase></testcase></testsuite>",
                (2, 0, 0),
            ),
            (
                "\u{FEFF}<?xml version=\"1.0\"?>\n<!-- c --><testsuites>\n\
                 <testsuite tests=\"3\" failures=\"1\" errors=\"1\"><properties/>\
                 <testcase><failure>a &lt; b</failure></testcase><testcase><error/></testcase>\
                 <testcase name=\"a>b\"><system-out><![CDATA[<failure/>]]></system-out></testcase>\
                 </testsuite></testsuites>\n",
                (1, 2, 0),
            ),
            // Each suite counts those within as well, as Node's do.
            (
                "<testsuites><testsuite failures=\"1\"><testsuite failures=\"1\"><testcase>\
                 <failure/></testcase></testsuite><testcase/></testsuite></testsuites>",
                (1, 1, 0),
            ),
            (
                "<testsuite><testcase><skipped/></testcase><testcase status=\"notrun\"/>\
                 <testcase status=\"run\"/><testcase><skipped/><failure/></testcase></testsuite>",
                (1, 1, 2),
            ),
            // It passed when it was tried again.
            (
                "<testsuite><testcase><flakyFailure/></testcase></testsuite>",
                (1, 0, 0),
            ),
            // A suite that failed outside of its tests.
            ("<testsuite><error/><testcase/></testsuite>", (1, 1, 0)),
            ("<testsuite errors=\"2\"><testcase/></testsuite>", (1, 2, 0)),
            // Which of two attributes a reader takes is not known.
            (
                "<testsuite failures=\"0\" failures=\"1\"><testcase/></testsuite>",
                (1, 1, 0),
            ),
        ] {
            assert_eq!(counted(report), Ok(wanted), "{report}");
        }
    }

    #[test]
    fn what_is_not_a_report_does_not_count() {
        let bomb = "<!DOCTYPE x [<!ENTITY a \"xxxxxxxxxx\"><!ENTITY b \"&a;&a;&a;&a;\">]>\
                    <testsuite><testcase>&b;</testcase></testsuite>";
        let nested = |levels| "<testsuite>".repeat(levels) + &"</testsuite>".repeat(levels);
        assert_eq!(counted(&nested(GATE_REPORT_LEVELS_MAX)), Ok((0, 0, 0)));
        let deep = nested(GATE_REPORT_LEVELS_MAX + 1);
        let very_deep = "<testsuite>".repeat(1_000_000);
        for (report, wanted) in [
            (bomb, JunitFault::DocumentType),
            (
                "<!DOCTYPE testsuite SYSTEM \"/etc/passwd\"><testsuite/>",
                JunitFault::DocumentType,
            ),
            (&deep, JunitFault::TooDeep),
            (&very_deep, JunitFault::TooDeep),
            ("", JunitFault::Root),
            ("<html/>", JunitFault::Root),
            (
                "<testsuite><testcase><testcase/></testcase></testsuite>",
                JunitFault::NestedCase,
            ),
            (
                "<testsuite failures=\"18446744073709551616\"/>",
                JunitFault::Number,
            ),
            ("<testsuite failures=\"-1\"/>", JunitFault::Number),
            ("<testsuite failures=\"&#48;\"/>", JunitFault::Number),
            ("<testsuite failures=0/>", JunitFault::Number),
            (
                "<testsuite failures=\"18446744073709551615\" errors=\"1\"/>",
                JunitFault::Number,
            ),
        ] {
            assert_eq!(
                counted(report),
                Err(wanted),
                "{}",
                &report[..report.len().min(99)]
            );
        }
        for report in [
            "3 tests passed",
            "<testsuite><testcase/>",
            "<testsuite><testcase></testsuite>",
            "<testsuite></testsuite></testsuite>",
            "<testsuite/><testsuite/>",
            "<testsuite/>text",
            "<testsuite/>&amp;",
            "<testsuite/><![CDATA[x]]>",
            "<testsuite",
            "<testsuite><!-- ",
        ] {
            let fault = counted(report);
            assert!(
                matches!(fault, Err(JunitFault::Xml(_))),
                "{report}: {fault:?}"
            );
        }
        let latin = count(&b"<testsuite><testcase name=\"\xE4\"/></testsuite>"[..]);
        assert!(matches!(latin, Err(JunitFault::Xml(_))), "{latin:?}");
    }

    /// Each attribute was compared with all that stand before it.
    #[test]
    fn a_tag_of_many_attributes_takes_linear_time() {
        let attributes: String = (0..200_000).map(|at| format!(" a{at}=\"\"")).collect();
        let report = format!("<testsuite{attributes}><testcase{attributes}/></testsuite>");
        assert_eq!(counted(&report), Ok((1, 0, 0)));
    }
}
