//! Whatever is written comes out as one line of valid JSON, and reads back as what it was.

use std::cell::RefCell;

use rocco::internals::wire::outbox::Outbox;
use rocco::internals::wire::writer::{ObjectWriter, Sink, quote_between, start_of};

use super::Dice;
use super::naive::{self, Json, Members};

pub fn body(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    string(&text);
    object(&text, &mut Dice::of(data));
    starts(&text);
}

/// What is written by a function, checked to be one line that any client takes.
fn line(write: impl FnOnce(&mut Outbox)) -> String {
    thread_local!(static OUTBOX: RefCell<Outbox> = RefCell::new(Outbox::new()));
    let written = OUTBOX.with_borrow_mut(|outbox| {
        // To claim an outbox for each line would cost more than all the writing.
        outbox.consume(outbox.pending().len());
        write(outbox);
        outbox.pending().to_vec()
    });
    let line = String::from_utf8(written).expect("UTF-8");
    let breaks = |c: char| c < ' ' || matches!(c, '\u{2028}' | '\u{2029}');
    assert!(!line.contains(breaks), "{line:?}");
    line
}

fn read(line: &str) -> Json {
    let read = naive::read(line.as_bytes());
    read.unwrap_or_else(|| panic!("{line:?} is not JSON")).json
}

fn read_text(line: &str) -> String {
    match read(line) {
        Json::String(text) => text,
        other => panic!("{other:?} is no string"),
    }
}

/// A quoted sink leaves the quotes around its text to the caller.
fn in_quotes(write: impl FnOnce(&mut Sink<'_>)) -> String {
    line(|outbox| {
        outbox.put(b"\"");
        write(&mut Sink::quoted(outbox));
        outbox.put(b"\"");
    })
}

/// Every way to write a text gives the same, and serde_json reads it as we do.
fn string(text: &str) {
    let plain = line(|outbox| Sink::plain(outbox).string(text));
    assert_eq!(read_text(&plain), text);
    assert_eq!(serde_json::from_str::<String>(&plain).expect("JSON"), text);

    let formatted = line(|outbox| {
        outbox.put(b"\"");
        Sink::plain(outbox).formatted(format_args!("{text}"));
        outbox.put(b"\"");
    });
    assert_eq!(formatted, plain);

    let quoted = in_quotes(|sink| sink.string(text));
    assert_eq!(read_text(&quoted), plain);

    let copied = line(|outbox| {
        let start = outbox.mark();
        Sink::plain(outbox).string(text);
        let end = outbox.mark();
        outbox.put(b",\"");
        quote_between(outbox, start, end);
        outbox.put(b"\"");
    });
    assert_eq!(copied, format!("{plain},{quoted}"));
}

/// An object of all kinds of members, plain and quoted.
fn object(text: &str, dice: &mut Dice) {
    let members = members(text, dice);
    let fill = |object: &mut ObjectWriter<'_>| {
        for (name, value) in &members {
            write_member(object, name, value);
        }
    };
    let plain = line(|outbox| Sink::plain(outbox).object(fill));
    assert_eq!(read(&plain), Json::Object(members.clone()));
    let quoted = in_quotes(|sink| sink.object(fill));
    assert_eq!(read_text(&quoted), plain);
    again(text);
}

/// A part that is written again is the same string.
fn again(text: &str) {
    let written = line(|outbox| {
        outbox.put(b"{\"first\":\"");
        let mut sink = Sink::plain(outbox);
        let part = sink.part(|sink| sink.string_part(text));
        sink.raw("\",\"second\":");
        sink.string_again(part);
        sink.raw("}");
    });
    let text = || Json::String(text.to_owned());
    let wanted = vec![("first".to_owned(), text()), ("second".to_owned(), text())];
    assert_eq!(read(&written), Json::Object(wanted));
}

/// A few pieces of the text as names and values, with numbers between them.
fn members(text: &str, dice: &mut Dice) -> Members {
    let pieces: Vec<&str> = text.splitn(6, [',', '\n', 'e']).collect();
    let mut next = || pieces[dice.roll(pieces.len())].to_owned();
    let mut members: Members = (0..4).map(|_| (next(), Json::String(next()))).collect();
    members.push((
        next(),
        Json::Array(vec![Json::String(next()), Json::Unsigned(7)]),
    ));
    members.push((next(), Json::Object(vec![(next(), Json::Bool(true))])));
    let bits = dice.0;
    members.push(("unsigned".to_owned(), Json::Unsigned(bits)));
    members.push(("signed".to_owned(), Json::Signed(-((bits >> 1) as i64) - 1)));
    let float = f64::from_bits(bits);
    let float = if float.is_finite() {
        Json::Float(float)
    } else {
        Json::Null
    };
    members.push(("float".to_owned(), float));
    members
}

fn write_member(object: &mut ObjectWriter<'_>, name: &str, value: &Json) {
    match value {
        Json::Null => object.float(name, f64::NAN),
        Json::Bool(truth) => object.boolean(name, *truth),
        Json::Unsigned(number) => object.unsigned(name, *number),
        Json::Signed(number) => object.signed(name, *number),
        Json::Float(number) => object.float(name, *number),
        Json::String(text) if text.len() % 2 == 0 => object.string(name, text),
        Json::String(text) => object.formatted(name, format_args!("{text}")),
        Json::Array(elements) => object.array(name, |array| {
            for element in elements {
                match element {
                    Json::String(text) => array.string(text),
                    _ => array.unsigned(7),
                }
            }
        }),
        Json::Object(members) => object.object(name, |object| {
            for (name, value) in members {
                write_member(object, name, value);
            }
        }),
    }
}

/// The start of a text is the longest that fits and ends between two characters.
fn starts(text: &str) {
    for bytes in 0..=text.len().min(200) {
        let start = start_of(text, bytes);
        assert!(text.starts_with(start) && start.len() <= bytes);
        let longer = text[start.len()..].chars().next().map(char::len_utf8);
        assert!(longer.is_none_or(|longer| start.len() + longer > bytes));
    }
}
