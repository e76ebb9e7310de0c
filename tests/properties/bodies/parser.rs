//! The parser takes what serde_json takes, and holds the same values.

use rocco::internals::wire::json::{Object, Value, minified};
use serde_json::Value as Serde;

use super::naive::{self, Json, Members};
use super::parsed;

/// serde_json refuses what nests deeper. Beyond, up to our own bound, the naive reader judges
/// alone.
const SERDE_DEPTH_MAX: usize = 127;

/// Names that are short enough for a fuzzer to hit.
const NAMES: [&str; 4] = ["a", "id", "", "method"];

pub fn body(data: &[u8]) {
    let read = naive::read(data);
    let serde = serde_json::from_slice::<Serde>(data);
    let depth_is_common = read
        .as_ref()
        .is_some_and(|read| read.depth <= SERDE_DEPTH_MAX);
    assert_eq!(
        depth_is_common,
        serde.is_ok(),
        "the naive reader errs: {serde:?}"
    );
    if let (Some(read), Ok(serde)) = (&read, &serde) {
        assert!(alike(&read.json, serde), "the naive reader errs: {read:?}");
    }
    // What stands behind a frame must not matter: it is the next one.
    for padding in *b" ]}\"\\,0" {
        let same = parsed(data, padding, |value| match &read {
            Some(read) => same(value, &read.json),
            None => panic!("no JSON is taken for JSON: {value:?}"),
        });
        assert_eq!(
            same.is_ok(),
            read.is_some(),
            "before {}",
            char::from(padding)
        );
    }
    if let Ok(text) = std::str::from_utf8(data) {
        minifying(text, read.as_ref().map(|read| &read.json));
    }
}

/// Asserts that a value is what the naive reader has read, to the last digit. It does not recurse,
/// since a frame may nest deeper than a stack.
pub fn same(value: Value<'_>, json: &Json) {
    let mut due = vec![(value, json)];
    while let Some((value, json)) = due.pop() {
        match (value, json) {
            (Value::Null, Json::Null) => {}
            (Value::Bool(left), Json::Bool(right)) => assert_eq!(left, *right),
            (Value::Unsigned(left), Json::Unsigned(right)) => assert_eq!(left, *right),
            (Value::Signed(left), Json::Signed(right)) => assert_eq!(left, *right),
            (Value::Float(left), Json::Float(right)) => {
                assert_eq!(left.to_bits(), right.to_bits(), "{left:?} is not {right:?}");
            }
            (Value::String(left), Json::String(right)) => assert_eq!(left, right),
            (Value::Array(array), Json::Array(elements)) => {
                assert_eq!(array.len(), elements.len());
                assert_eq!(array.iter().count(), elements.len());
                assert_eq!(array.is_empty(), elements.is_empty());
                due.extend(array.iter().zip(elements));
            }
            (Value::Object(object), Json::Object(members)) => {
                assert_eq!(object.len(), members.len());
                assert_eq!(object.iter().count(), members.len());
                assert_eq!(object.is_empty(), members.is_empty());
                taking(object, members);
                for ((left, value), (right, json)) in object.iter().zip(members) {
                    assert_eq!(left, right);
                    due.push((value, json));
                }
            }
            _ => panic!("{value:?} is not {json:?}"),
        }
    }
}

/// `take` tells the first name that comes a second time, and else hands out what `get` does.
fn taking(object: Object<'_>, members: &Members) {
    let repeated = members.iter().enumerate().find_map(|(index, (name, _))| {
        let wanted = NAMES.into_iter().find(|wanted| wanted == name)?;
        let before = members[..index].iter().any(|(earlier, _)| earlier == name);
        before.then_some(wanted)
    });
    let there = NAMES.map(|name| !naive::all(members, name).is_empty());
    let taken = object.take(NAMES);
    let taken = taken.map(|values| values.map(|value| value.is_some()));
    let taken = taken.map_err(|twice| twice.name());
    assert_eq!(taken, repeated.map_or(Ok(there), Err));
    for name in NAMES {
        match (object.get(name), naive::all(members, name).first()) {
            (None, None) => {}
            (Some(value), Some(json)) => same_kind(value, json),
            (found, wanted) => panic!("{name}: {found:?} is not {wanted:?}"),
        }
    }
}

/// Enough to tell one member from another; their insides are compared by the walk.
fn same_kind(value: Value<'_>, json: &Json) {
    match (value, json) {
        (Value::Array(array), Json::Array(elements)) => assert_eq!(array.len(), elements.len()),
        (Value::Object(object), Json::Object(members)) => assert_eq!(object.len(), members.len()),
        scalar => same(scalar.0, scalar.1),
    }
}

/// A minified text is there for JSON alone, says the same, and cannot be made any smaller.
fn minifying(text: &str, json: Option<&Json>) {
    let minified_text = minified(text).ok();
    assert_eq!(minified_text.is_some(), json.is_some());
    if let (Some(minified_text), Some(json)) = (minified_text, json) {
        let again = naive::read(minified_text.as_bytes()).expect("it is JSON still");
        assert_eq!(again.json, *json);
        // A separator that some take for the end of a line grows to its escape.
        let separators = text.matches(['\u{2028}', '\u{2029}']).count();
        assert!(minified_text.len() <= text.len() + 3 * separators);
        assert!(!minified_text.contains(['\n', '\r', '\u{2028}', '\u{2029}']));
        assert_eq!(minified(&minified_text), Ok(minified_text));
    }
}

/// Whether serde_json has read the same. It keeps the last of equal names, and rounds some numbers
/// one step wrong.
fn alike(json: &Json, serde: &Serde) -> bool {
    let near = |float: f64| {
        let other = serde.as_f64();
        other.is_some_and(|other| (float - other).abs() <= float.abs() * 1e-15 + f64::MIN_POSITIVE)
    };
    match (json, serde) {
        (Json::Null, Serde::Null) => true,
        (Json::Bool(left), Serde::Bool(right)) => left == right,
        (Json::Signed(0), Serde::Number(_)) => serde.as_f64() == Some(0.0),
        (Json::Unsigned(number), Serde::Number(_)) => serde.as_u64() == Some(*number),
        (Json::Signed(number), Serde::Number(_)) => serde.as_i64() == Some(*number),
        (Json::Float(number), Serde::Number(_)) => near(*number),
        (Json::String(left), Serde::String(right)) => left == right,
        (Json::Array(left), Serde::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| alike(l, r))
        }
        (Json::Object(left), Serde::Object(right)) => {
            right.iter().all(|(name, value)| {
                let last = naive::all(left, name).pop();
                last.is_some_and(|last| alike(last, value))
            }) && left.iter().all(|(name, _)| right.contains_key(name))
        }
        _ => false,
    }
}
