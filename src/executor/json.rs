//! JSON texts, made and read with the writer and the parser of the wire.

use crate::limits::{FRAME_PADDING_BYTES, TASK_JSON_BYTES_MAX};
use crate::wire::json::{Array, Object, Parser, Value};
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink};

/// An object on one line, without a line feed. What it is filled with must be bounded: all that
/// comes from outside came in one line of the protocol, or is cut.
pub fn object(fill: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut outbox = Outbox::with_bytes(TASK_JSON_BYTES_MAX);
    Sink::plain(&mut outbox).object(fill);
    String::from_utf8_lossy(outbox.pending()).into_owned()
}

/// Reads a text that is one object, and shows the object to a function. None if the text is
/// anything else.
pub fn with<T>(text: &[u8], look: impl FnOnce(Object<'_>) -> T) -> Option<T> {
    let mut frame = text.to_vec();
    frame.resize(text.len() + FRAME_PADDING_BYTES, b' ');
    let document = Parser::new().parse(&mut frame, text.len()).ok()?;
    document.root().as_object().map(look)
}

/// A member that is a string.
pub fn text<'a>(object: Object<'a>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

/// A member that is an integer without a sign.
pub fn unsigned(object: Object<'_>, name: &str) -> Option<u64> {
    match object.get(name)? {
        Value::Unsigned(number) => Some(number),
        _ => None,
    }
}

/// The strings of an array.
pub fn strings(list: Array<'_>) -> Vec<String> {
    list.iter()
        .filter_map(|entry| entry.as_str().map(str::to_owned))
        .collect()
}

/// A member that is a list of strings.
pub fn texts(object: Object<'_>, name: &str) -> Option<Vec<String>> {
    object.get(name)?.as_array().map(strings)
}

/// Writes a text, or null.
pub fn text_or_null(object: &mut ObjectWriter<'_>, name: &str, text: Option<&str>) {
    match text {
        Some(text) => object.string(name, text),
        None => object.raw(name, "null"),
    }
}

/// Writes a list of strings.
pub fn list<'t>(
    object: &mut ObjectWriter<'_>,
    name: &str,
    texts: impl IntoIterator<Item = &'t String>,
) {
    object.array(name, |list| {
        for text in texts {
            list.string(text);
        }
    });
}
