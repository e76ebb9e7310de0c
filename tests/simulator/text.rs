//! JSON as text: whether it is JSON says serde_json; its parts are found by counting brackets.
//!
//! A parsed value would not do: serde_json forgets duplicate members and how a number was written.

use rocco::internals::limits::DEPTH_MAX;

/// serde_json gives up at 128 levels.
const SHALLOW: usize = 100;

/// Whether a line is one JSON text that nests no deeper than the bound. What is deep is checked
/// from the inside out: each deep container alone, and a zero in its place.
pub fn is_json(line: &[u8]) -> bool {
    let mut flat = Vec::with_capacity(line.len());
    let mut starts = Vec::new();
    let mut walk = Walk::default();
    for &byte in line {
        flat.push(byte);
        match walk.step(byte) {
            Some(b'[' | b'{') if starts.len() == DEPTH_MAX => return false,
            Some(b'[' | b'{') => starts.push(flat.len() - 1),
            Some(b']' | b'}') => {
                let Some(start) = starts.pop() else {
                    return false;
                };
                if starts.len() >= SHALLOW {
                    if !is_shallow_json(&flat[start..]) {
                        return false;
                    }
                    flat.truncate(start);
                    flat.push(b'0');
                }
            }
            _ => {}
        }
    }
    is_shallow_json(&flat)
}

fn is_shallow_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(text).is_ok()
}

/// Tells the bytes of a text's structure from those of its strings.
#[derive(Default)]
struct Walk {
    in_string: bool,
    escaped: bool,
}

impl Walk {
    /// The byte, if it stands outside of strings.
    fn step(&mut self, byte: u8) -> Option<u8> {
        if !self.in_string {
            self.in_string = byte == b'"';
            return Some(byte);
        }
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            _ => {}
        }
        None
    }
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The texts between the commas of an array or object that is known to be JSON.
pub fn parts(container: &str) -> Vec<&str> {
    let container = container.trim_matches(SPACE);
    let inner = &container[1..container.len() - 1];
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    let mut walk = Walk::default();
    for (at, byte) in inner.bytes().enumerate() {
        match walk.step(byte) {
            Some(b'[' | b'{') => depth += 1,
            Some(b']' | b'}') => depth -= 1,
            Some(b',') if depth == 0 => {
                parts.push(inner[start..at].trim_matches(SPACE));
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = inner[start..].trim_matches(SPACE);
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

/// The members of an object, each as its name and the text of its value, duplicates and all.
#[derive(Debug)]
pub struct Members<'a>(Vec<(String, &'a str)>);

impl<'a> Members<'a> {
    /// None if the text is that of another kind of value.
    pub fn of(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(SPACE);
        let member = |part: &'a str| {
            let mut walk = Walk::default();
            let colon = part
                .bytes()
                .position(|byte| walk.step(byte) == Some(b':'))
                .unwrap();
            let value = part[colon + 1..].trim_matches(SPACE);
            (string(&part[..colon]).unwrap(), value)
        };
        text.starts_with('{')
            .then(|| Self(parts(text).into_iter().map(member).collect()))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// The first of a name.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Whether any of some names is there twice.
    pub fn repeats(&self, names: &[&str]) -> bool {
        names
            .iter()
            .any(|name| self.iter().filter(|(known, _)| known == name).count() > 1)
    }
}

/// The string that a text is, if it is one.
pub fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

pub fn is_null(value: &str) -> bool {
    value == "null"
}

pub fn is_array(value: &str) -> bool {
    value.starts_with('[')
}

pub fn is_bool(value: &str) -> bool {
    value == "true" || value == "false"
}
