//! The record of a task that has ended: which members of it reach the client, and what each of them
//! must look like. It is the table of rocco-exec/1, "The record", as data.

use std::fmt::{self, Write as _};

use crate::executor_protocol::grammar;
use crate::executor_protocol::sanitize::Sanitized;
use crate::executor_protocol::state::TaskState;
use crate::limits::{
    GATE_TAIL_BYTES_MAX, GATES_MAX, RECORD_ARGUMENTS_MAX, RECORD_PATH_BYTES_MAX,
    RECORD_SENTENCE_BYTES_MAX, RECORD_WARNINGS_MAX, RECORD_WORD_BYTES_MAX, TASK_PATHS_LISTED_MAX,
    TASK_SUMMARY_BYTES_MAX,
};
use crate::mcp::owned::InlineString;
use crate::task::id::TaskId;
use crate::wire::json::{Object, Value};
use crate::wire::writer::{ObjectWriter, Sink};

/// What a member may be.
#[derive(Debug)]
enum Shape {
    /// Any text, which is escaped and cut.
    Text {
        bytes_max: usize,
    },
    /// A text on one line, which is escaped.
    Sentence,
    /// A name on one line, which is escaped and never cut: two names never look the same.
    Name {
        bytes_max: usize,
    },
    /// A path within the repository.
    InnerPath,
    /// A path to a file of the executor's.
    AbsolutePath,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The word of the state that the task is in.
    State,
    /// The ref of this task's result, and of no other.
    ResultRef,
    /// A text with a grammar of its own, and the words for it.
    Of(fn(&str) -> bool, &'static str),
    /// A number between two others.
    Integer {
        min: i64,
        max: i64,
    },
    /// A number from 0 on.
    Count,
    Boolean,
    Object(&'static [(&'static str, Shape)]),
    List {
        entries_max: usize,
        of: &'static Shape,
    },
}

const WORD: Shape = Shape::Name {
    bytes_max: RECORD_WORD_BYTES_MAX,
};
const SENTENCE: Shape = Shape::Sentence;
const SPEECH: Shape = Shape::Text {
    bytes_max: TASK_SUMMARY_BYTES_MAX,
};
const COMMIT: Shape = Shape::Of(
    grammar::is_commit,
    "the name of a commit, of 40 or 64 hexadecimal digits",
);
const EXIT_CODE: Shape = Shape::Integer {
    min: i32::MIN as i64,
    max: i32::MAX as i64,
};
const SIGNAL: Shape = Shape::Integer { min: 1, max: 127 };

const MEMBERS: &[(&str, Shape)] = &[
    ("outcome", Shape::State),
    ("verification", Shape::Word(&["passed", "failed", "none"])),
    (
        "sandbox",
        Shape::Word(&["bubblewrap+landlock", "landlock", "bubblewrap", "none"]),
    ),
    ("bounds", Shape::Object(BOUNDS)),
    ("summary", SPEECH),
    ("question", SPEECH),
    ("base_commit", COMMIT),
    ("head_commit", COMMIT),
    ("ref", Shape::ResultRef),
    (
        "diffstat",
        Shape::Of(grammar::is_diffstat, "a count of changes as git has it"),
    ),
    (
        "files",
        Shape::List {
            entries_max: TASK_PATHS_LISTED_MAX,
            of: &Shape::Object(&[
                ("path", Shape::InnerPath),
                ("status", Shape::Word(&["A", "M", "D", "T"])),
                ("added", Shape::Count),
                ("removed", Shape::Count),
            ]),
        },
    ),
    (
        "out_of_scope",
        Shape::List {
            entries_max: TASK_PATHS_LISTED_MAX,
            of: &Shape::InnerPath,
        },
    ),
    (
        "gates",
        Shape::List {
            entries_max: GATES_MAX,
            of: &Shape::Object(GATE),
        },
    ),
    (
        "agent",
        Shape::Object(&[
            ("exit_code", EXIT_CODE),
            ("signal", SIGNAL),
            ("duration_ms", Shape::Count),
        ]),
    ),
    (
        "artifacts",
        Shape::Object(&[
            ("dir", Shape::AbsolutePath),
            ("diff", Shape::AbsolutePath),
            ("log", Shape::AbsolutePath),
        ]),
    ),
    (
        "error",
        Shape::Object(&[
            (
                "code",
                Shape::Of(grammar::is_code, "a word of small letters and underscores"),
            ),
            ("message", SENTENCE),
        ]),
    ),
    (
        "warnings",
        Shape::List {
            entries_max: RECORD_WARNINGS_MAX,
            of: &SENTENCE,
        },
    ),
];

const BOUNDS: &[(&str, Shape)] = &[
    ("memory", COUNTED_OVER),
    ("processes", COUNTED_OVER),
    ("open_files", COUNTED_OVER),
    ("file_size", COUNTED_OVER),
    ("disk", COUNTED_OVER),
];

/// Over what a bound is counted.
const COUNTED_OVER: Shape = Shape::Word(&["task", "program", "process", "user", "none"]);

const GATE: &[(&str, Shape)] = &[
    ("name", WORD),
    (
        "argv",
        Shape::List {
            entries_max: RECORD_ARGUMENTS_MAX,
            of: &Shape::Name {
                bytes_max: RECORD_PATH_BYTES_MAX,
            },
        },
    ),
    ("exit_code", EXIT_CODE),
    ("signal", SIGNAL),
    ("duration_ms", Shape::Count),
    ("passed", Shape::Boolean),
    (
        "tests",
        Shape::Object(&[
            ("passed", Shape::Count),
            ("failed", Shape::Count),
            ("skipped", Shape::Count),
        ]),
    ),
    (
        "tail",
        Shape::Text {
            bytes_max: GATE_TAIL_BYTES_MAX,
        },
    ),
];

/// Members without which there is no record.
const REQUIRED: [&str; 2] = ["outcome", "verification"];

/// Which task a record is of, and which state the task is in.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The task.
    pub task: TaskId,
    /// Its state.
    pub state: TaskState,
}

/// A member of a record that breaks its grammar. The value itself is not told: nobody knows what it
/// says.
#[derive(Debug, Clone, Copy)]
pub struct BadField {
    /// Where it is, such as `files[3].path`.
    pub field: InlineString<64>,
    /// What it must be.
    pub must_be: &'static str,
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {}", self.field.as_str(), self.must_be)
    }
}

impl BadField {
    fn new(must_be: &'static str) -> Self {
        Self {
            field: InlineString::EMPTY,
            must_be,
        }
    }

    /// The same field, seen from the one that it is in.
    fn within(self, outer: fmt::Arguments<'_>) -> Self {
        let mut field = InlineString::EMPTY;
        let separator = match self.field.as_str() {
            "" => "",
            inner if inner.starts_with('[') => "",
            _ => ".",
        };
        let written = write!(field, "{outer}{separator}{}", self.field.as_str());
        debug_assert!(written.is_ok());
        Self { field, ..self }
    }
}

impl Shape {
    /// What a value of this shape is, in words.
    fn name(&self) -> &'static str {
        match self {
            Self::Text { .. } | Self::Sentence => "a text within its length",
            Self::Name { .. } => "a name within its length",
            Self::InnerPath => "a path within the repository",
            Self::AbsolutePath => "an absolute path without detours",
            Self::Word(_) => "one of the words that it may be",
            Self::State => "the state of the task",
            Self::ResultRef => "refs/rocco/ and the name of the task",
            Self::Of(_, name) => name,
            Self::Integer { .. } => "a number within its bounds",
            Self::Count => "a number from 0 on",
            Self::Boolean => "true or false",
            Self::Object(_) => "an object",
            Self::List { .. } => "a list within its length",
        }
    }

    /// Whether a value is of this shape at its top.
    fn fits(&self, value: &Value<'_>, subject: &Subject) -> bool {
        match (self, value) {
            (Self::Text { bytes_max } | Self::Name { bytes_max }, Value::String(text)) => {
                text.len() <= *bytes_max
            }
            (Self::Sentence, Value::String(text)) => text.len() <= RECORD_SENTENCE_BYTES_MAX,
            (Self::InnerPath, Value::String(path)) => {
                path.len() <= RECORD_PATH_BYTES_MAX && grammar::is_inner_path(path)
            }
            (Self::AbsolutePath, Value::String(path)) => {
                path.len() <= RECORD_PATH_BYTES_MAX && grammar::is_absolute_path(path)
            }
            (Self::Word(words), Value::String(word)) => words.contains(word),
            (Self::State, Value::String(word)) => *word == subject.state.name(),
            (Self::ResultRef, Value::String(text)) => {
                let id = text.strip_prefix("refs/rocco/").and_then(TaskId::parse);
                id == Some(subject.task)
            }
            (Self::Of(is, _), Value::String(text)) => {
                text.len() <= RECORD_WORD_BYTES_MAX && is(text)
            }
            (Self::Integer { min, max }, Value::Signed(number)) => (min..=max).contains(&number),
            (Self::Integer { max, .. }, Value::Unsigned(number)) => {
                *number <= max.unsigned_abs() && (*number > 0 || self.takes_zero())
            }
            (Self::Count, Value::Unsigned(_)) => true,
            (Self::Boolean, Value::Bool(_)) | (Self::Object(_), Value::Object(_)) => true,
            (Self::List { entries_max, .. }, Value::Array(list)) => {
                list.iter().take(*entries_max + 1).count() <= *entries_max
            }
            _ => false,
        }
    }

    fn takes_zero(&self) -> bool {
        matches!(self, Self::Integer { min, .. } if *min <= 0)
    }

    /// Checks a value and all that is in it. How deep this goes is a matter of the table, not of
    /// the value.
    fn check(&self, value: Value<'_>, subject: &Subject) -> Result<(), BadField> {
        if !self.fits(&value, subject) {
            return Err(BadField::new(self.name()));
        }
        match (self, value) {
            (Self::Object(shapes), Value::Object(object)) => check_members(object, shapes, subject),
            (Self::List { of, .. }, Value::Array(list)) => {
                for (index, entry) in list.iter().enumerate() {
                    let checked = of.check(entry, subject);
                    checked.map_err(|bad| bad.within(format_args!("[{index}]")))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes a value that was checked.
    fn write(&self, value: Value<'_>, sink: &mut Sink<'_>) {
        match (self, value) {
            (Self::Text { bytes_max }, Value::String(text)) => {
                write_text(Sanitized::new(text, *bytes_max), "", sink);
            }
            (Self::Sentence, Value::String(text)) => {
                write_text(
                    Sanitized::sentence(text, RECORD_SENTENCE_BYTES_MAX),
                    "",
                    sink,
                );
            }
            // A name that begins like an option is shown so that no program takes it for one.
            (Self::InnerPath, Value::String(path)) => {
                let start = if path.starts_with('-') { "./" } else { "" };
                write_text(Sanitized::name(path, usize::MAX), start, sink);
            }
            (_, Value::String(text)) => write_text(Sanitized::name(text, usize::MAX), "", sink),
            (_, Value::Unsigned(number)) => sink.unsigned(number),
            (_, Value::Signed(number)) => sink.signed(number),
            (_, Value::Bool(truth)) => sink.raw(if truth { "true" } else { "false" }),
            (Self::Object(shapes), Value::Object(object)) => {
                sink.object(|writer| write_members(object, shapes, writer));
            }
            (Self::List { of, .. }, Value::Array(list)) => sink.array(|writer| {
                for entry in list.iter() {
                    writer.element(|sink| of.write(entry, sink));
                }
            }),
            _ => unreachable!("only a value that was checked is written"),
        }
    }
}

fn write_text(text: Sanitized<'_>, start: &str, sink: &mut Sink<'_>) {
    sink.raw("\"");
    sink.string_part(start);
    for piece in text.pieces() {
        sink.string_part(piece.as_str());
    }
    sink.raw("\"");
}

/// A member that is there. One that is null is not.
fn member<'a>(object: Object<'a>, name: &str) -> Option<Value<'a>> {
    object
        .get(name)
        .filter(|value| !matches!(value, Value::Null))
}

fn check_members(
    object: Object<'_>,
    shapes: &[(&str, Shape)],
    subject: &Subject,
) -> Result<(), BadField> {
    for (name, shape) in shapes {
        if let Some(value) = member(object, name) {
            let checked = shape.check(value, subject);
            checked.map_err(|bad| bad.within(format_args!("{name}")))?;
        }
    }
    Ok(())
}

/// Writes the members that the table has, in its order.
fn write_members(object: Object<'_>, shapes: &[(&str, Shape)], writer: &mut ObjectWriter<'_>) {
    for (name, shape) in shapes {
        if let Some(value) = member(object, name) {
            writer.member(name, |sink| shape.write(value, sink));
        }
    }
}

/// Checks that gates ran, and that none of them failed, where a record says so.
fn check_verification(record: Object<'_>) -> Result<(), BadField> {
    if member(record, "verification").and_then(|word| word.as_str()) != Some("passed") {
        return Ok(());
    }
    let has_failed = |gate: Value<'_>| {
        let passed = gate.as_object().and_then(|gate| member(gate, "passed"));
        !matches!(passed, Some(Value::Bool(true)))
    };
    let mut gates = match member(record, "gates") {
        Some(Value::Array(gates)) => gates.iter().peekable(),
        _ => return Err(BadField::new("what the gates say").within(format_args!("verification"))),
    };
    if gates.peek().is_none() || gates.any(has_failed) {
        return Err(BadField::new("what the gates say").within(format_args!("verification")));
    }
    Ok(())
}

/// A record that was checked.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a>(Object<'a>);

impl<'a> Record<'a> {
    /// Checks each member of a record.
    ///
    /// # Errors
    ///
    /// The first member that breaks its grammar. Nothing of such a record is shown.
    pub fn check(record: Object<'a>, subject: Subject) -> Result<Self, BadField> {
        for name in REQUIRED {
            if member(record, name).is_none() {
                return Err(BadField::new("there, as it must be").within(format_args!("{name}")));
            }
        }
        check_members(record, MEMBERS, &subject)?;
        check_verification(record).map(|()| Self(record))
    }

    /// Writes the record's members.
    pub fn write(self, writer: &mut ObjectWriter<'_>) {
        write_members(self.0, MEMBERS, writer);
    }

    /// Why a task did not succeed, in the executor's words: its error, its question or its summary.
    pub fn reason(self) -> Sanitized<'a> {
        let text = |value: Option<Value<'a>>| value.and_then(|value| value.as_str());
        let error = self.0.get("error").and_then(|error| error.as_object());
        let message = text(error.and_then(|error| error.get("message")))
            .or_else(|| text(self.0.get("question")))
            .or_else(|| text(self.0.get("summary")))
            .unwrap_or("it gave no reason");
        Sanitized::sentence(message, RECORD_SENTENCE_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::executor_protocol::state::Outcome;
    use crate::limits::FRAME_PADDING_BYTES;
    use crate::wire::json::Parser;
    use crate::wire::outbox::Outbox;

    const TASK: &str = "tsk_0123456789ABCDEFGHJKMNPQRS";

    /// What is shown of a record of a task that failed, or which field of it is bad.
    fn shown(record: &Json) -> Result<Json, String> {
        let subject = Subject {
            task: TaskId::parse(TASK).unwrap(),
            state: TaskState::Ended(Outcome::Failed),
        };
        let mut frame = record.to_string().into_bytes();
        let bytes = frame.len();
        frame.resize(bytes + FRAME_PADDING_BYTES, b' ');
        let document = Parser::new().parse(&mut frame, bytes).unwrap();
        let object = document.root().as_object().unwrap();
        let record = Record::check(object, subject).map_err(|bad| bad.to_string())?;
        let mut outbox = Outbox::with_bytes(1 << 20);
        Sink::plain(&mut outbox).object(|writer| record.write(writer));
        Ok(serde_json::from_slice(outbox.pending()).unwrap())
    }

    /// A record with every member of the table.
    fn whole() -> Json {
        json!({
            "outcome": "failed", "verification": "failed", "sandbox": "bubblewrap+landlock",
            "bounds": {"memory": "program", "processes": "user", "open_files": "process",
                       "file_size": "none", "disk": "task"},
            "summary": "s", "question": "q", "base_commit": "0a".repeat(20),
            "head_commit": "0b".repeat(32), "ref": format!("refs/rocco/{TASK}"),
            "diffstat": "1 file changed, 1 insertion(+)",
            "files": [{"path": "a", "status": "M", "added": 1, "removed": 2}],
            "out_of_scope": ["x/y"],
            "gates": [{"name": "test", "argv": ["cargo", "test"], "exit_code": 101, "signal": 9,
                       "duration_ms": 5, "passed": false, "tail": "t",
                       "tests": {"passed": 1, "failed": 2, "skipped": 3}}],
            "agent": {"exit_code": -1, "signal": 9, "duration_ms": 7},
            "artifacts": {"dir": "/d", "diff": "/d/diff.patch", "log": "/d/log"},
            "error": {"code": "gate_failed", "message": "m"}, "warnings": ["w"],
        })
    }

    #[test]
    fn members_of_the_table_come_through_and_no_others() {
        assert_eq!(shown(&whole()), Ok(whole()));
        let mut more = whole();
        more["other"] = json!(1);
        more["files"][0]["other"] = json!({"path": "/"});
        assert_eq!(shown(&more), Ok(whole()));
        // What is null is not there.
        let least = json!({"outcome": "failed", "verification": "none"});
        let mut nulls = least.clone();
        nulls["question"] = Json::Null;
        nulls["files"] = Json::Null;
        assert_eq!(shown(&nulls), Ok(least));
    }

    /// Each member of the table has values that break its grammar, and this list has each member.
    /// A record said that gates had passed where none had run, or one had failed.
    #[test]
    fn a_record_whose_gates_say_otherwise_has_not_passed() {
        let with =
            |gates: Json| json!({"outcome": "failed", "verification": "passed", "gates": gates});
        let (good, bad) = (json!({"passed": true}), json!({"passed": false}));
        assert!(shown(&with(json!([good]))).is_ok());
        for gates in [
            json!([]),
            Json::Null,
            json!([good, bad]),
            json!([{"name": "x"}]),
        ] {
            let refused = shown(&with(gates)).unwrap_err();
            assert_eq!(refused, "verification is not what the gates say");
        }
    }

    #[test]
    fn what_breaks_the_grammar_of_a_field_is_refused_by_name() {
        let long = |bytes: usize| json!("x".repeat(bytes));
        let list = |count: usize, entry: Json| json!(vec![entry; count]);
        let upward = || {
            vec![
                json!("../a"),
                json!("/a"),
                json!("a/../../b"),
                json!(".git/config"),
            ]
        };
        let paths = || {
            [
                upward(),
                vec![json!(""), json!("a\0"), long(1025), json!(1)],
            ]
            .concat()
        };
        let absolute = || {
            vec![
                json!("a"),
                json!("/a/../b"),
                json!("-a"),
                json!("//machine/a"),
                long(1025),
                json!([]),
            ]
        };
        let commits = || vec![json!("b"), json!("--upload-pack=x"), json!("A".repeat(40))];
        let words = || vec![json!("perhaps"), json!("failed\u{1B}[2J"), json!(1)];
        let counts = || vec![json!(-1), json!(0.5), json!("1")];
        let codes = || vec![json!(1_i64 << 31), json!(-(1_i64 << 31) - 1), json!("0")];
        let signals = || vec![json!(0), json!(-9), json!(128)];
        let other = "refs/rocco/tsk_00000000000000000000000000";
        let file = json!({"path": "a"});
        let table: Vec<(&str, Vec<Json>)> = vec![
            (
                "/outcome",
                [words(), vec![json!("succeeded"), Json::Null]].concat(),
            ),
            ("/verification", [words(), vec![Json::Null]].concat()),
            ("/sandbox", words()),
            ("/bounds", vec![json!([]), json!("task")]),
            ("/bounds/memory", words()),
            ("/bounds/processes", words()),
            ("/bounds/open_files", words()),
            ("/bounds/file_size", words()),
            ("/bounds/disk", words()),
            ("/summary", vec![long(4097), json!(1)]),
            ("/question", vec![long(4097), json!({})]),
            ("/base_commit", commits()),
            ("/head_commit", commits()),
            (
                "/ref",
                vec![
                    json!("--upload-pack=x"),
                    json!("refs/heads/main"),
                    json!(other),
                ],
            ),
            (
                "/diffstat",
                vec![json!("much"), json!("1 file changed\n"), json!(1)],
            ),
            ("/files", vec![list(201, file), json!("a"), json!([1])]),
            ("/files/0/path", paths()),
            ("/files/0/status", vec![json!("X"), json!("M\n"), json!("")]),
            ("/files/0/added", counts()),
            ("/files/0/removed", counts()),
            ("/out_of_scope", vec![list(201, json!("a")), json!({})]),
            ("/out_of_scope/0", paths()),
            ("/gates", vec![list(33, json!({})), json!([[]])]),
            ("/gates/0/name", vec![long(129), json!(1)]),
            ("/gates/0/argv", vec![list(65, json!("a")), json!("a")]),
            ("/gates/0/argv/0", vec![long(1025), json!(1)]),
            ("/gates/0/exit_code", codes()),
            ("/gates/0/signal", signals()),
            ("/gates/0/duration_ms", counts()),
            ("/gates/0/passed", vec![json!("true"), json!(1)]),
            ("/gates/0/tests", vec![json!([]), json!("1")]),
            ("/gates/0/tests/passed", counts()),
            ("/gates/0/tests/failed", counts()),
            ("/gates/0/tests/skipped", counts()),
            ("/gates/0/tail", vec![long(2049), json!(1)]),
            ("/agent", vec![json!([]), json!(1)]),
            ("/agent/exit_code", codes()),
            ("/agent/signal", signals()),
            ("/agent/duration_ms", counts()),
            ("/artifacts", vec![json!("/")]),
            ("/artifacts/dir", absolute()),
            ("/artifacts/diff", absolute()),
            ("/artifacts/log", absolute()),
            ("/error", vec![json!("m")]),
            (
                "/error/code",
                vec![json!("Gate Failed"), json!("a\u{1B}[m"), long(129)],
            ),
            ("/error/message", vec![long(1025), json!(1)]),
            ("/warnings", vec![list(17, json!("a")), json!("a")]),
            ("/warnings/0", vec![long(1025), json!(1)]),
        ];
        let mut rows: Vec<&str> = table.iter().map(|(pointer, _)| *pointer).collect();
        for (pointer, values) in &table {
            for value in values {
                let mut record = whole();
                *record.pointer_mut(pointer).unwrap() = value.clone();
                let said = shown(&record).expect_err(&format!("{pointer} {value}"));
                let field = pointer[1..].replace("/0", "[0]").replace('/', ".");
                assert!(
                    said.starts_with(&field) && said.contains(" is not "),
                    "{said}"
                );
            }
        }
        let mut all = pointers(&whole());
        rows.sort_unstable();
        all.sort_unstable();
        assert_eq!(rows, all);
    }

    /// Where each value of a record is, but the second and further entries of a list.
    fn pointers(record: &Json) -> Vec<String> {
        let mut found = Vec::new();
        let mut rest = vec![(String::new(), record)];
        while let Some((pointer, value)) = rest.pop() {
            match value {
                Json::Object(members) => {
                    let members = members.iter();
                    rest.extend(members.map(|(name, value)| (format!("{pointer}/{name}"), value)));
                }
                Json::Array(list) if list[0].is_object() => {
                    rest.push((format!("{pointer}/0"), &list[0]));
                }
                Json::Array(list) => rest.push((format!("{pointer}/0"), &list[0])),
                _ => {}
            }
            found.push(pointer);
        }
        // The record itself, and the entries that are objects, have no row of their own.
        found.retain(|pointer| !matches!(&**pointer, "" | "/files/0" | "/gates/0"));
        found
    }

    #[test]
    fn texts_are_escaped_and_names_are_never_cut() {
        let mut record = whole();
        record["question"] = json!("\u{1B}[1mX\u{0}");
        record["summary"] = json!("\u{1B}".repeat(4096));
        record["files"][0]["path"] = json!("-rf\n\u{202E}");
        record["out_of_scope"][0] = json!("\u{1B}".repeat(1024));
        record["gates"][0]["argv"][0] = json!("a\\n\nb");
        let shown = shown(&record).unwrap();
        assert_eq!(shown["question"], "\\x1b[1mX\\x00");
        assert_eq!(shown["summary"], "\\x1b".repeat(1024));
        assert_eq!(shown["files"][0]["path"], "./-rf\\n\\u{202e}");
        assert_eq!(shown["out_of_scope"][0], "\\x1b".repeat(1024));
        assert_eq!(shown["gates"][0]["argv"][0], "a\\\\n\\nb");
    }
}
