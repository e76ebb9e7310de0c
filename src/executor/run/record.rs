//! The record of a task that has ended, which never passes its bound: each text and each list has a
//! share of it. A text is cut to its share, a list ends where its share does, and what is left out
//! of lists is counted among the warnings. No I/O.
//!
//! What the texts leave over goes to the lists: each of them may take half of it, and the last, the
//! files, all that there is then.

use std::borrow::Cow;
use std::cell::Cell;

use crate::executor::json;
use crate::executor::run::result::FileChange;
use crate::executor::run::supervisor::Ending;
use crate::executor::run::verdict::{Findings, GateRun, Verdict};
use crate::executor_protocol::grammar::{RAW_BYTE_MARK, RAW_BYTE_TEXT_BYTES};
use crate::executor_protocol::state::TaskState;
use crate::limits::{
    EXECUTOR_RECORD_BYTES_MAX, GATE_TAIL_BYTES_MAX, GATES_MAX, RECORD_ARGUMENTS_MAX,
    RECORD_COUNTS_BYTES, RECORD_FILES_BYTES, RECORD_GATE_BYTES, RECORD_PATH_BYTES_MAX,
    RECORD_SCOPE_BYTES, RECORD_SENTENCE_BYTES_MAX, RECORD_TEXTS_BYTES, RECORD_WARNING_BYTES_MAX,
    RECORD_WARNINGS_BYTES, RECORD_WARNINGS_MAX, RECORD_WORD_BYTES_MAX, TASK_PATHS_LISTED_MAX,
    TASK_SUMMARY_BYTES_MAX,
};
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink};

/// Braces, brackets and the names of the lists.
const FRAME_BYTES: usize = 128;

/// What lists may take when all texts are as long as they may be.
const LISTS_BYTES: usize = GATES_MAX * RECORD_GATE_BYTES
    + RECORD_WARNINGS_BYTES
    + RECORD_COUNTS_BYTES
    + RECORD_SCOPE_BYTES
    + RECORD_FILES_BYTES;

const _: () = assert!(RECORD_TEXTS_BYTES + LISTS_BYTES + FRAME_BYTES <= EXECUTOR_RECORD_BYTES_MAX);

/// Sentences that count what was left out: one for each list, and one for the arguments of gates.
const COUNTS_MAX: usize = 5;

const _: () = assert!(COUNTS_MAX < RECORD_WARNINGS_MAX);

impl Findings {
    /// The record: one JSON object on one line.
    pub fn record(&self, verdict: &Verdict, dir: &str) -> String {
        let texts = json::object(|object| self.write_texts(object, verdict, dir));
        assert!(texts.len() <= RECORD_TEXTS_BYTES);
        let lists = Lists::fit(self, EXECUTOR_RECORD_BYTES_MAX - FRAME_BYTES - texts.len());
        let record = json::object(|object| {
            object.raw_members(&texts[1..texts.len() - 1]);
            lists.write(object);
        });
        assert!(record.len() <= EXECUTOR_RECORD_BYTES_MAX);
        record
    }

    fn write_texts(&self, object: &mut ObjectWriter<'_>, verdict: &Verdict, dir: &str) {
        object.string("outcome", TaskState::Ended(verdict.outcome).name());
        object.string("verification", self.verification());
        if !self.walls.is_empty() {
            object.string("sandbox", self.walls);
        }
        if let Some(reach) = self.reach {
            object.object("bounds", |bounds| reach.write(bounds));
        }
        if let Some((code, what)) = &verdict.error {
            object.object("error", |error| {
                error.string("code", code);
                error.string("message", encoded_start(what, RECORD_SENTENCE_BYTES_MAX));
            });
        }
        let claim = self.claim.clone().unwrap_or_default();
        if let Some(summary) = &claim.summary {
            object.string("summary", encoded_start(summary, TASK_SUMMARY_BYTES_MAX));
        }
        if claim.needs_input {
            let question = claim.question.as_deref().unwrap_or("it gave no question");
            object.string("question", encoded_start(question, TASK_SUMMARY_BYTES_MAX));
        }
        let mut word = |name, text| {
            object.string(name, encoded_start(text, RECORD_WORD_BYTES_MAX));
        };
        word("base_commit", &self.base);
        if let Some(head) = &self.head {
            word("head_commit", head);
        }
        if let Some(result_ref) = &self.result_ref {
            word("ref", result_ref);
        }
        if self.result_ref.is_some() && !self.diffstat.is_empty() {
            word("diffstat", &self.diffstat);
        }
        if let Some((ending, duration_ms)) = &self.agent {
            object.object("agent", |agent| write_ending(agent, ending, *duration_ms));
        }
        object.object("artifacts", |artifacts| {
            self.write_artifacts(artifacts, dir)
        });
    }

    /// Paths to files. One that is too long is left out, since a part of it leads nowhere.
    fn write_artifacts(&self, artifacts: &mut ObjectWriter<'_>, dir: &str) {
        let mut path = |name: &str, path: &str| {
            if encoded_start(path, RECORD_PATH_BYTES_MAX) == path {
                artifacts.string(name, path);
            }
        };
        path("dir", dir);
        if self.result_ref.is_some() {
            path("diff", &format!("{dir}/diff.patch"));
        }
        path("log", &format!("{dir}/log"));
    }
}

/// A list of a record: its first entries, each as it stands there.
struct List {
    entries: Vec<String>,
    bytes: usize,
    left_out: usize,
}

impl List {
    /// As many entries as fit, each with a comma. A list has no gaps: what comes behind an entry
    /// that does not fit is left out as well.
    fn fit(
        mut entries: impl ExactSizeIterator<Item = String>,
        entries_max: usize,
        bytes_max: usize,
    ) -> Self {
        let mut list = Self {
            entries: Vec::new(),
            bytes: 0,
            left_out: entries.len(),
        };
        while list.entries.len() < entries_max
            && let Some(entry) = entries.next()
            && list.bytes + entry.len() < bytes_max
        {
            list.bytes += entry.len() + 1;
            list.left_out -= 1;
            list.entries.push(entry);
        }
        list
    }

    fn write(&self, name: &str, object: &mut ObjectWriter<'_>) {
        object.array(name, |array| {
            for entry in &self.entries {
                array.element(|sink| sink.raw(entry));
            }
        });
    }

    /// A sentence that counts what was left out.
    fn count(&self, what: &str) -> Option<String> {
        counted(self.left_out, what)
    }
}

fn counted(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

/// The lists of a record.
struct Lists {
    gates: List,
    warnings: List,
    out_of_scope: List,
    files: List,
}

impl Lists {
    fn fit(findings: &Findings, bytes: usize) -> Self {
        let mut spare = bytes - LISTS_BYTES;
        let mut share = |bytes: usize, of_spare: usize, list: &dyn Fn(usize) -> List| {
            let list = list(bytes + spare / of_spare);
            spare = spare + bytes - list.bytes;
            list
        };
        let gates_bytes = GATES_MAX * RECORD_GATE_BYTES;
        let arguments = Cell::new(0);
        let gates = share(gates_bytes, 2, &|bytes_max| {
            let gate_bytes_max = bytes_max / findings.gates.len().clamp(1, GATES_MAX) - 1;
            let gates = findings.gates.iter();
            let gates = gates.map(|gate| gate_text(gate, gate_bytes_max, &arguments));
            List::fit(gates, GATES_MAX, bytes_max)
        });
        let mut warnings = share(RECORD_WARNINGS_BYTES, 2, &|bytes_max| {
            let texts = findings.warnings.iter();
            let texts = texts.map(|text| string(text, RECORD_WARNING_BYTES_MAX));
            List::fit(texts, RECORD_WARNINGS_MAX - COUNTS_MAX, bytes_max)
        });
        let out_of_scope = share(RECORD_SCOPE_BYTES, 2, &|bytes_max| {
            let paths = findings.out_of_scope.iter();
            let paths = paths.map(|path| {
                let at = || findings.changes.iter().position(|it| it.path == *path);
                composed(|sink| sink.string(&path_start(path, at)))
            });
            List::fit(paths, TASK_PATHS_LISTED_MAX, bytes_max)
        });
        let files = share(RECORD_FILES_BYTES, 1, &|bytes_max| {
            let files = findings.changes.iter().enumerate();
            let files = files.map(|(at, change)| file_text(change, at));
            List::fit(files, TASK_PATHS_LISTED_MAX, bytes_max)
        });
        let counts = [
            files.count("more files were changed"),
            out_of_scope.count("more paths outside of the declared scope were changed"),
            gates.count("more gates ran"),
            counted(arguments.get(), "arguments of gates are not listed"),
            warnings.count("more warnings are not listed"),
        ];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        let texts = counts.iter().map(|count| string(count, count.len()));
        let counts = List::fit(texts, COUNTS_MAX, RECORD_COUNTS_BYTES);
        assert!(counts.left_out == 0);
        warnings.entries.extend(counts.entries);
        Self {
            gates,
            warnings,
            out_of_scope,
            files,
        }
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        self.files.write("files", object);
        self.out_of_scope.write("out_of_scope", object);
        self.gates.write("gates", object);
        self.warnings.write("warnings", object);
    }
}

/// A gate within its share: its name and how it ended in any case, then as many of its arguments as
/// fit into half of what is left, and the end of its output in the rest.
fn gate_text(gate: &GateRun, bytes_max: usize, left_out: &Cell<usize>) -> String {
    let name = encoded_start(&gate.name, RECORD_WORD_BYTES_MAX);
    let text = |arguments: &List, tail: &str| {
        composed(|sink| {
            sink.object(|object| {
                object.string("name", name);
                arguments.write("argv", object);
                write_ending(object, &gate.ending, gate.duration_ms);
                object.boolean("passed", gate.refusal.is_none());
                if let Some(tests) = gate.tests {
                    object.object("tests", |object| {
                        object.unsigned("passed", tests.passed);
                        object.unsigned("failed", tests.failed);
                        object.unsigned("skipped", tests.skipped);
                    });
                }
                object.string("tail", tail);
            });
        })
    };
    let fit = |bytes_max| {
        let arguments = gate.argv.iter();
        let arguments = arguments.map(|argument| string(argument, RECORD_PATH_BYTES_MAX));
        List::fit(arguments, RECORD_ARGUMENTS_MAX, bytes_max)
    };
    let none = List::fit(std::iter::empty(), 0, 0);
    let left = bytes_max - text(&none, "").len();
    let arguments = fit(left / 2);
    left_out.set(left_out.get() + arguments.left_out);
    let tail_bytes = (left - arguments.bytes).min(GATE_TAIL_BYTES_MAX);
    text(&arguments, encoded_end(&gate.tail, tail_bytes))
}

fn file_text(change: &FileChange, at: usize) -> String {
    composed(|sink| {
        sink.object(|file| {
            file.string("path", &path_start(&change.path, || Some(at)));
            file.string(
                "status",
                encoded_start(&change.status, RECORD_WORD_BYTES_MAX),
            );
            if let Some(added) = change.added {
                file.unsigned("added", added);
            }
            if let Some(removed) = change.removed {
                file.unsigned("removed", removed);
            }
        });
    })
}

fn write_ending(object: &mut ObjectWriter<'_>, ending: &Ending, duration_ms: u64) {
    match ending {
        Ending::Exited(code) => object.signed("exit_code", i64::from(*code)),
        Ending::Signalled(signal) => object.signed("signal", i64::from(*signal)),
        Ending::NotStarted(_) | Ending::Unknown => {}
    }
    object.unsigned("duration_ms", duration_ms);
}

/// The longest start of a path that a record holds. What was cut says so, which file of the result
/// it is, counted from 1, and how long its path is: no two paths are the same in a record. A path
/// that looks as if it had been cut is written in the same way.
fn path_start(path: &str, at: impl FnOnce() -> Option<usize>) -> Cow<'_, str> {
    let is_whole = encoded_start(path, RECORD_PATH_BYTES_MAX) == path;
    if is_whole && !path.contains(CUT) {
        return Cow::Borrowed(path);
    }
    let number = at().map_or(0, |at| at + 1);
    let end = format!("{CUT}{number} of the result, {} bytes)", path.len());
    let start = encoded_start(path, RECORD_PATH_BYTES_MAX - end.len());
    // A part of a marked byte is none.
    let mark = start.rfind(RAW_BYTE_MARK);
    let cut_mark = mark.filter(|at| at + RAW_BYTE_TEXT_BYTES > start.len());
    let start = &start[..cut_mark.unwrap_or(start.len())];
    Cow::Owned(format!("{start}{end}"))
}

/// Between the start of a path that was cut and the number of its file.
const CUT: &str = "...(cut: file ";

/// A string as it stands in a record, cut to so many bytes between its quotes.
fn string(text: &str, bytes_max: usize) -> String {
    composed(|sink| sink.string(encoded_start(text, bytes_max)))
}

fn composed(write: impl FnOnce(&mut Sink<'_>)) -> String {
    let mut outbox = Outbox::with_bytes(EXECUTOR_RECORD_BYTES_MAX);
    write(&mut Sink::plain(&mut outbox));
    String::from_utf8_lossy(outbox.pending()).into_owned()
}

/// How many bytes a character takes in a string of a record.
fn encoded_bytes(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{C}' => 2,
        '\0'..='\u{1F}' | '\u{2028}' | '\u{2029}' => 6,
        _ => character.len_utf8(),
    }
}

/// The longest start of a text that takes at most so many bytes in a string.
fn encoded_start(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 0;
    let end = text.char_indices().find(|(_, character)| {
        bytes += encoded_bytes(*character);
        bytes > bytes_max
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The longest end of a text that takes at most so many bytes in a string.
fn encoded_end(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 0;
    let start = text.char_indices().rev().find(|(_, character)| {
        bytes += encoded_bytes(*character);
        bytes > bytes_max
    });
    &text[start.map_or(0, |(at, character)| at + character.len_utf8())..]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::executor::run::claim::Claim;
    use crate::executor::run::counts::TestCount;
    use crate::executor::run::result::TreeEntry;
    use crate::executor_protocol::record::{Record, Subject};
    use crate::executor_protocol::state::Outcome;
    use crate::task::id::TaskId;

    /// Texts whose bytes double or more, of any length, and plain ones.
    fn text() -> impl Strategy<Value = String> {
        let characters = prop_oneof![
            Just("x"),
            Just("\""),
            Just("\\"),
            Just("\u{1}"),
            Just("\n"),
            Just("\u{2028}"),
            Just("\u{1F600}"),
        ];
        let count = prop_oneof![Just(0_usize), 1..40_usize, Just(600), Just(1100)];
        (characters, count).prop_map(|(text, count)| text.repeat(count))
    }

    fn ending() -> impl Strategy<Value = Ending> {
        prop_oneof![
            Just(Ending::Exited(i32::MIN)),
            Just(Ending::Signalled(9)),
            Just(Ending::Unknown),
        ]
    }

    fn gate() -> impl Strategy<Value = GateRun> {
        let tests = option::of(Just(TestCount {
            passed: u64::MAX,
            failed: u64::MAX,
            skipped: u64::MAX,
        }));
        let argv = prop_oneof![vec(text(), 0..3), vec(text(), 70)];
        let parts = (text(), argv, ending(), tests, text());
        parts.prop_map(|(name, argv, ending, tests, tail)| GateRun {
            name,
            argv,
            ending,
            duration_ms: u64::MAX,
            tests,
            refusal: None,
            tail,
        })
    }

    fn change() -> impl Strategy<Value = FileChange> {
        (text(), text()).prop_map(|(path, status)| FileChange {
            path,
            status,
            added: Some(u64::MAX),
            removed: Some(u64::MAX),
            before: TreeEntry::default(),
            after: TreeEntry::default(),
            other_names: Vec::new(),
            new_dir: None,
            may_be_made: false,
        })
    }

    fn claim() -> impl Strategy<Value = Claim> {
        (option::of(text()), option::of(text())).prop_map(|(summary, question)| Claim {
            no_change_needed: false,
            needs_input: true,
            summary,
            question,
        })
    }

    fn findings() -> impl Strategy<Value = Findings> {
        let lists = (
            prop_oneof![vec(gate(), 0..4), vec(gate(), GATES_MAX)],
            prop_oneof![vec(change(), 0..4), vec(change(), 300)],
            prop_oneof![vec(text(), 0..4), vec(text(), 300)],
            vec(text(), 0..40),
        );
        let texts = (option::of(claim()), text(), text(), text(), text());
        (lists, texts, ending()).prop_map(|(lists, texts, ending)| Findings {
            gates: lists.0,
            changes: lists.1,
            out_of_scope: lists.2,
            warnings: lists.3,
            claim: texts.0,
            base: texts.1,
            head: Some(texts.2),
            result_ref: Some(texts.3),
            diffstat: texts.4,
            agent: Some((ending, u64::MAX)),
            ..Findings::default()
        })
    }

    /// A path that git takes, of any length.
    fn path() -> impl Strategy<Value = String> {
        let component = prop_oneof![
            Just("a"),
            Just("-rf"),
            Just("..."),
            Just("..x"),
            Just(".gitignore"),
            Just("\u{1}\n\u{202E}\"\\"),
            Just("\u{1F600}"),
            Just("\0ff"),
        ];
        let count = prop_oneof![1..6_usize, Just(300), Just(900)];
        (vec(component, 1..7), count).prop_map(|(parts, count)| {
            let parts: Vec<&str> = parts.into_iter().cycle().take(count).collect();
            parts.join("/")
        })
    }

    /// What a task may have come to whose names are those that git gives.
    fn named(findings: Findings, paths: Vec<String>) -> Findings {
        let change = |path: &String| FileChange {
            path: path.clone(),
            status: "T".into(),
            added: Some(u64::MAX),
            removed: None,
            before: TreeEntry::default(),
            after: TreeEntry::default(),
            other_names: Vec::new(),
            new_dir: None,
            may_be_made: false,
        };
        Findings {
            changes: paths.iter().map(change).collect(),
            out_of_scope: paths,
            base: "0a".repeat(20),
            head: Some("0a".repeat(32)),
            result_ref: Some(format!("refs/rocco/{TASK}")),
            diffstat: "2 files changed, 10 insertions(+)".into(),
            walls: "none",
            ..findings
        }
    }

    const TASK: &str = "tsk_0123456789ABCDEFGHJKMNPQRS";

    fn is_taken_by_the_front(record: &str) -> Result<(), String> {
        let subject = Subject {
            task: TaskId::parse(TASK).expect("it is a name"),
            state: TaskState::Ended(Outcome::Interrupted),
        };
        let checked = json::with(record.as_bytes(), |record| {
            let checked = Record::check(record, subject);
            checked.map(drop).map_err(|bad| bad.to_string())
        });
        checked.expect("it is an object")
    }

    fn checked(findings: &Findings, message: &str, dir: &str) -> serde_json::Value {
        let verdict = Verdict {
            outcome: Outcome::Interrupted,
            error: Some(("agent_not_started", message.to_owned())),
        };
        let record = findings.record(&verdict, dir);
        assert!(record.len() <= EXECUTOR_RECORD_BYTES_MAX);
        assert!(!record.contains('\n'));
        let read: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let count = |name: &str| read[name].as_array().expect(name).len();
        assert_eq!(count("gates"), findings.gates.len());
        assert!(count("warnings") <= RECORD_WARNINGS_MAX);
        let sentences = read["warnings"].to_string();
        for (name, whole, what) in [
            ("files", findings.changes.len(), "more files were changed"),
            ("out_of_scope", findings.out_of_scope.len(), "more paths"),
        ] {
            let told = format!("{} {what}", whole - count(name));
            assert!(count(name) == whole || sentences.contains(&told), "{told}");
        }
        read
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 24,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_record_never_passes_its_bound(
            findings in findings(),
            message in text(),
            dir in text(),
        ) {
            checked(&findings, &message, &dir);
        }

        /// A front that refused what an executor says would never learn how a task ended.
        #[test]
        fn no_record_of_this_executor_is_refused_by_the_front(
            findings in findings(),
            paths in vec(path(), 0..40),
            message in text(),
        ) {
            let verdict = Verdict {
                outcome: Outcome::Interrupted,
                error: Some(("agent_not_started", message)),
            };
            let record = named(findings, paths).record(&verdict, "/state/tasks/x");
            prop_assert_eq!(is_taken_by_the_front(&record), Ok(()));
        }

        #[test]
        fn a_text_is_cut_to_what_it_takes(text in "(?s).*", bytes_max in 0..99_usize) {
            let cuts = [encoded_start(&text, bytes_max), encoded_end(&text, bytes_max)];
            for cut in cuts {
                let written = composed(|sink| sink.string(cut)).len() - 2;
                let counted: usize = cut.chars().map(encoded_bytes).sum();
                prop_assert_eq!(written, counted);
                prop_assert!(written <= bytes_max);
                let is_whole = text.chars().map(encoded_bytes).sum::<usize>() <= bytes_max;
                prop_assert_eq!(is_whole, cut == text);
            }
        }
    }

    #[test]
    fn the_worst_record_keeps_its_bound() {
        for character in ["x", "\"", "\u{1}", "\u{2028}"] {
            let long = character.repeat(5000);
            let gate = GateRun {
                name: long.clone(),
                argv: vec![long.clone(); 70],
                ending: Ending::Exited(i32::MIN),
                duration_ms: u64::MAX,
                tests: Some(TestCount {
                    passed: u64::MAX,
                    failed: u64::MAX,
                    skipped: u64::MAX,
                }),
                refusal: None,
                tail: long.clone(),
            };
            let change = FileChange {
                path: long.clone(),
                status: long.clone(),
                added: Some(u64::MAX),
                removed: Some(u64::MAX),
                before: TreeEntry::default(),
                after: TreeEntry::default(),
                other_names: Vec::new(),
                new_dir: None,
                may_be_made: false,
            };
            let findings = Findings {
                gates: vec![gate; GATES_MAX],
                changes: vec![change; 1000],
                out_of_scope: vec![long.clone(); 1000],
                warnings: vec![long.clone(); 1000],
                claim: Some(Claim {
                    no_change_needed: false,
                    needs_input: true,
                    summary: Some(long.clone()),
                    question: Some(long.clone()),
                }),
                base: long.clone(),
                head: Some(long.clone()),
                result_ref: Some(long.clone()),
                diffstat: long.clone(),
                agent: Some((Ending::Exited(i32::MIN), u64::MAX)),
                ..Findings::default()
            };
            checked(&findings, &long, "/state");
        }
    }

    /// Files with a common start of a KiB had the same name in a record.
    #[test]
    fn paths_that_are_cut_are_told_apart() {
        let start = "d/".repeat(600);
        let mut paths = vec![
            format!("{start}a"),
            format!("{start}b"),
            format!("{start}b/c"),
        ];
        let cut = |paths: &[String]| -> Vec<String> {
            let numbered = paths.iter().enumerate();
            let cut = numbered.map(|(at, path)| path_start(path, || Some(at)).into_owned());
            cut.collect()
        };
        // Names that a file may have as well.
        paths.extend(cut(&paths));
        paths.push("short".into());
        let findings = named(Findings::default(), paths.clone());
        let record = checked(&findings, "m", "/state");
        let of_files = record["files"].as_array().expect("a list");
        let files: Vec<_> = of_files.iter().map(|file| &file["path"]).collect();
        let out_of_scope = record["out_of_scope"].as_array().expect("a list");
        for (at, path) in out_of_scope.iter().enumerate() {
            assert_eq!(files[at], path);
            assert!(!out_of_scope[..at].contains(path), "{path}");
            let is_cut = format!("{path}").contains(&format!("file {} of the result", at + 1));
            assert!(is_cut || path == "short", "{path}");
        }
        assert_eq!((files.len(), out_of_scope.len()), (7, 7));
    }

    #[test]
    fn a_path_is_not_cut_within_a_byte_that_is_not_utf_8() {
        for start in 0..12 {
            let path = format!("{}{}", "x".repeat(start), "\0ff".repeat(500));
            let cut = path_start(&path, || Some(6));
            assert!(
                crate::executor_protocol::grammar::is_inner_path(&cut),
                "{cut:?}"
            );
            let end = format!("ff...(cut: file 7 of the result, {} bytes)", path.len());
            assert!(cut.ends_with(&end), "{cut:?}");
        }
    }

    #[test]
    fn many_gates_with_long_arguments_are_all_in_the_record() {
        let gate = GateRun {
            name: "test".into(),
            argv: vec!["a".repeat(50); 10],
            ending: Ending::Exited(1),
            duration_ms: 1,
            tests: None,
            refusal: Some("ended with exit code 1".into()),
            tail: "t".repeat(5000),
        };
        let findings = Findings {
            gates: vec![gate; GATES_MAX],
            ..Findings::default()
        };
        let record = checked(&findings, "m", "/state");
        let warnings = record["warnings"].to_string();
        assert!(
            warnings.contains("arguments of gates are not listed"),
            "{warnings}"
        );
        assert_ne!(record["gates"][31]["tail"], "");
    }

    #[test]
    fn a_small_record_is_whole() {
        let paths: Vec<String> = (0..200)
            .map(|at| format!("src/module{at}/file.rs"))
            .collect();
        let change = |path: &String| FileChange {
            path: path.clone(),
            status: "M".into(),
            added: Some(10),
            removed: None,
            before: TreeEntry::default(),
            after: TreeEntry::default(),
            other_names: Vec::new(),
            new_dir: None,
            may_be_made: false,
        };
        let findings = Findings {
            changes: paths.iter().map(change).collect(),
            out_of_scope: paths[..9].to_vec(),
            warnings: vec!["w".into(); 9],
            ..Findings::default()
        };
        let record = checked(&findings, "m", "/state");
        assert_eq!(record["files"].as_array().map(Vec::len), Some(200));
        assert_eq!(record["out_of_scope"].as_array().map(Vec::len), Some(9));
        assert_eq!(record["warnings"].as_array().map(Vec::len), Some(9));
    }
}
