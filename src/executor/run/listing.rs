//! Names in a sentence of a record. An agent chooses them: none of them reads as more than a name,
//! and none hides that there are others. No I/O.

use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::{LISTED_NAME_BYTES_MAX, LISTED_NAMES_BYTES_MAX};

/// A name as a sentence has it: in quotes where it could be read as anything else.
pub fn shown(name: &str) -> String {
    let bytes = name.len();
    let whole = Sanitized::name(name, usize::MAX).to_string();
    let name = Sanitized::name(name, LISTED_NAME_BYTES_MAX).to_string();
    let end = match name == whole {
        true => String::new(),
        false => format!(" (cut: {bytes} bytes)"),
    };
    let is_plain = |character: char| !character.is_whitespace() && !",()\"".contains(character);
    match !name.is_empty() && end.is_empty() && name.chars().all(is_plain) {
        true => name,
        false => format!("\"{}\"{end}", name.replace('"', "\\u{22}")),
    }
}

/// Names, or what else was made of some, one behind the other: as many as a sentence has room for,
/// and how many more there are.
pub fn listed<T: AsRef<str>>(entries: &[T]) -> String {
    let mut list = String::new();
    let mut bytes = 0;
    for (at, entry) in entries.iter().map(AsRef::as_ref).enumerate() {
        bytes += encoded_bytes(entry);
        if at > 0 && bytes > LISTED_NAMES_BYTES_MAX {
            return format!("{list}, and {} more", entries.len() - at);
        }
        if at > 0 {
            list.push_str(", ");
        }
        list.push_str(entry);
    }
    list
}

/// What an entry takes as JSON, with what stands in front of it.
fn encoded_bytes(entry: &str) -> usize {
    let escaped = entry.bytes().filter(|byte| b"\"\\".contains(byte));
    entry.len() + escaped.count() + ", ".len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_as_nothing_but_a_name() {
        for (name, wanted) in [
            ("src/a.rs", "src/a.rs"),
            ("a (no tool at all), b", "\"a (no tool at all), b\""),
            ("a\" b", "\"a\\u{22} b\""),
            ("", "\"\""),
        ] {
            assert_eq!(shown(name), wanted);
        }
        let long = shown(&"x".repeat(LISTED_NAME_BYTES_MAX + 1));
        let end = format!("x\" (cut: {} bytes)", LISTED_NAME_BYTES_MAX + 1);
        assert!(long.ends_with(&end), "{long}");
    }

    /// What one long name, or many, left out was not even counted.
    #[test]
    fn names_that_find_no_room_are_counted() {
        let names: Vec<String> = (0..61)
            .map(|number| shown(&format!(".vscode/settings{number}.json")))
            .collect();
        let list = listed(&names);
        let named = list.matches(".vscode").count();
        assert!(
            list.ends_with(&format!(", and {} more", 61 - named)),
            "{list}"
        );
        let long = shown(&"\\".repeat(600));
        let list = listed(&[&long, ".zed/tasks.json", "b"].map(shown));
        assert!(list.ends_with(", b") || list.ends_with(" more"), "{list}");
        assert!(list.len() < LISTED_NAMES_BYTES_MAX + LISTED_NAME_BYTES_MAX);
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(listed(&["a", "b"]), "a, b");
    }
}
