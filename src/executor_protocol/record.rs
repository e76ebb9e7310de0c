//! The record of a task that has ended: which members of it reach the client, and how long each
//! may be. It is the table of rocco-exec/1, "The record", as data.

use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::{
    GATE_TAIL_BYTES_MAX, GATES_MAX, RECORD_ARGUMENTS_MAX, RECORD_PATH_BYTES_MAX,
    RECORD_SENTENCE_BYTES_MAX, RECORD_WARNINGS_MAX, RECORD_WORD_BYTES_MAX, TASK_PATHS_LISTED_MAX,
    TASK_SUMMARY_BYTES_MAX,
};
use crate::wire::json::{Object, Value};
use crate::wire::writer::{ObjectWriter, Sink};

/// What a member may be.
#[derive(Debug)]
enum Shape {
    Text {
        bytes_max: usize,
    },
    Integer,
    Boolean,
    Object(&'static [(&'static str, Shape)]),
    List {
        entries_max: usize,
        of: &'static Shape,
    },
}

const WORD: Shape = Shape::Text {
    bytes_max: RECORD_WORD_BYTES_MAX,
};
const PATH: Shape = Shape::Text {
    bytes_max: RECORD_PATH_BYTES_MAX,
};
const SENTENCE: Shape = Shape::Text {
    bytes_max: RECORD_SENTENCE_BYTES_MAX,
};
const SPEECH: Shape = Shape::Text {
    bytes_max: TASK_SUMMARY_BYTES_MAX,
};

const MEMBERS: &[(&str, Shape)] = &[
    ("outcome", WORD),
    ("verification", WORD),
    ("sandbox", WORD),
    ("bounds", Shape::Object(BOUNDS)),
    ("summary", SPEECH),
    ("question", SPEECH),
    ("base_commit", WORD),
    ("head_commit", WORD),
    ("ref", WORD),
    ("diffstat", WORD),
    (
        "files",
        Shape::List {
            entries_max: TASK_PATHS_LISTED_MAX,
            of: &Shape::Object(&[
                ("path", PATH),
                ("status", WORD),
                ("added", Shape::Integer),
                ("removed", Shape::Integer),
            ]),
        },
    ),
    (
        "out_of_scope",
        Shape::List {
            entries_max: TASK_PATHS_LISTED_MAX,
            of: &PATH,
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
            ("exit_code", Shape::Integer),
            ("signal", Shape::Integer),
            ("duration_ms", Shape::Integer),
        ]),
    ),
    (
        "artifacts",
        Shape::Object(&[("dir", PATH), ("diff", PATH), ("log", PATH)]),
    ),
    (
        "error",
        Shape::Object(&[("code", WORD), ("message", SENTENCE)]),
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
    ("memory", WORD),
    ("processes", WORD),
    ("open_files", WORD),
    ("file_size", WORD),
    ("disk", WORD),
];

const GATE: &[(&str, Shape)] = &[
    ("name", WORD),
    (
        "argv",
        Shape::List {
            entries_max: RECORD_ARGUMENTS_MAX,
            of: &PATH,
        },
    ),
    ("exit_code", Shape::Integer),
    ("signal", Shape::Integer),
    ("duration_ms", Shape::Integer),
    ("passed", Shape::Boolean),
    (
        "tests",
        Shape::Object(&[("passed", Shape::Integer), ("failed", Shape::Integer)]),
    ),
    (
        "tail",
        Shape::Text {
            bytes_max: GATE_TAIL_BYTES_MAX,
        },
    ),
];

impl Shape {
    /// Whether a value is of this shape at its top.
    fn fits(&self, value: &Value<'_>) -> bool {
        matches!(
            (self, value),
            (Self::Text { .. }, Value::String(_))
                | (Self::Integer, Value::Unsigned(_) | Value::Signed(_))
                | (Self::Boolean, Value::Bool(_))
                | (Self::Object(_), Value::Object(_))
                | (Self::List { .. }, Value::Array(_))
        )
    }

    /// Writes a value that fits. How deep this goes is a matter of the table, not of the value.
    fn write(&self, value: Value<'_>, sink: &mut Sink<'_>) {
        match (self, value) {
            (Self::Text { bytes_max }, Value::String(text)) => {
                sink.raw("\"");
                for piece in Sanitized::new(text, *bytes_max).pieces() {
                    sink.string_part(piece.as_str());
                }
                sink.raw("\"");
            }
            (_, Value::Unsigned(number)) => sink.unsigned(number),
            (_, Value::Signed(number)) => sink.signed(number),
            (_, Value::Bool(truth)) => sink.raw(if truth { "true" } else { "false" }),
            (Self::Object(shapes), Value::Object(object)) => {
                sink.object(|writer| members(object, shapes, writer));
            }
            (Self::List { entries_max, of }, Value::Array(list)) => sink.array(|writer| {
                let fitting = list.iter().filter(|entry| of.fits(entry));
                for entry in fitting.take(*entries_max) {
                    writer.element(|sink| of.write(entry, sink));
                }
            }),
            _ => unreachable!("only a value that fits is written"),
        }
    }
}

/// Writes the members that the table has, in its order. What does not fit is left out.
fn members(object: Object<'_>, shapes: &[(&str, Shape)], writer: &mut ObjectWriter<'_>) {
    for (name, shape) in shapes {
        if let Some(value) = object.get(name)
            && shape.fits(&value)
        {
            writer.member(name, |sink| shape.write(value, sink));
        }
    }
}

/// Writes a record's members.
pub fn write(record: Object<'_>, writer: &mut ObjectWriter<'_>) {
    members(record, MEMBERS, writer);
}

/// Why a task did not succeed, in the executor's words: its error, its question or its summary.
pub fn reason<'a>(record: Object<'a>) -> Sanitized<'a> {
    let text = |value: Option<Value<'a>>| value.and_then(|value| value.as_str());
    let error = record.get("error").and_then(|error| error.as_object());
    let message = text(error.and_then(|error| error.get("message")))
        .or_else(|| text(record.get("question")))
        .or_else(|| text(record.get("summary")))
        .unwrap_or("it gave no reason");
    Sanitized::new(message, RECORD_SENTENCE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_PADDING_BYTES;
    use crate::wire::json::Parser;
    use crate::wire::outbox::Outbox;

    fn written(record: &str) -> String {
        let mut frame = record.as_bytes().to_vec();
        frame.resize(record.len() + FRAME_PADDING_BYTES, b' ');
        let document = Parser::new().parse(&mut frame, record.len()).unwrap();
        let mut outbox = Outbox::with_bytes(1 << 20);
        let object = document.root().as_object().unwrap();
        Sink::plain(&mut outbox).object(|writer| write(object, writer));
        String::from_utf8(outbox.pending().to_vec()).unwrap()
    }

    #[test]
    fn members_of_the_table_come_through_and_no_others() {
        let whole = concat!(
            r#"{"outcome":"failed","verification":"failed","summary":"s","base_commit":"b","#,
            r#""files":[{"path":"a","status":"M","added":1,"removed":2}],"out_of_scope":["x"],"#,
            r#""gates":[{"name":"test","argv":["cargo","test"],"exit_code":101,"duration_ms":5,"#,
            r#""passed":false,"tests":{"passed":1,"failed":2},"tail":"t"}],"#,
            r#""agent":{"signal":9,"duration_ms":7},"artifacts":{"dir":"/d"},"#,
            r#""error":{"code":"gate_failed","message":"m"},"warnings":["w"]}"#,
        );
        assert_eq!(written(whole), whole);
        assert_eq!(
            written(r#"{"other":1,"outcome":"failed","summary":5,"files":[1,{"path":[]}]}"#),
            r#"{"outcome":"failed","files":[{}]}"#
        );
    }

    #[test]
    fn texts_are_escaped_and_cut() {
        let long = "x".repeat(5000);
        let record =
            format!(r#"{{"outcome":"failed","question":"\u001b[1mX\u0000","summary":"{long}"}}"#);
        let cut = &long[..4096];
        assert_eq!(
            written(&record),
            format!(r#"{{"outcome":"failed","summary":"{cut}","question":"\\x1b[1mX\\x00"}}"#)
        );
    }
}
