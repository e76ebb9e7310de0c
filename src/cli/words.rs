//! The words of a command as a shell takes them: split from one text, and quoted in another.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Splits a text as a shell splits words, and does nothing else that a shell does: white space
/// parts them, single quotes keep all, double quotes all but a backslash before a quote, a
/// backslash, a dollar sign or a back quote, and a backslash keeps what follows it. The text need
/// not be UTF-8: it is split at ASCII characters, and they are never a part of another one.
///
/// None if there is no program in it, or a quote is not closed.
pub(super) fn words(text: &OsStr) -> Option<Vec<OsString>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<Vec<u8>>, None);
    let mut bytes = text.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b' ' | b'\t' | b'\n') => words.extend(word.take()),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (Some(open), close) if open == close => quote = None,
            (None, b'\\') => word.get_or_insert_default().push(bytes.next()?),
            (Some(b'"'), b'\\') => {
                let word = word.get_or_insert_default();
                match bytes.next()? {
                    kept @ (b'"' | b'\\' | b'$' | b'`') => word.push(kept),
                    other => word.extend([b'\\', other]),
                }
            }
            (_, kept) => word.get_or_insert_default().push(kept),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if quote.is_none() && !program.is_empty() => {
            Some(words.into_iter().map(OsString::from_vec).collect())
        }
        _ => None,
    }
}

/// A word as a shell takes it. One that is not UTF-8, or that would steer a terminal, is escaped as
/// bash and zsh read it.
#[cfg(feature = "cli")]
pub(super) fn quoted(word: &OsStr) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,".contains(&byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(plain) => text.to_owned(),
        Some(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => format!("$'{}'", word.as_bytes().escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        for (text, wanted) in [
            ("a", Some(vec!["a"])),
            ("  a  b\t", Some(vec!["a", "b"])),
            ("'a b' \"c d\" e'f'\"g\"", Some(vec!["a b", "c d", "efg"])),
            ("a '' \"\"", Some(vec!["a", "", ""])),
            (r"a\ b \'c", Some(vec!["a b", "'c"])),
            (r"a\ä", Some(vec!["aä"])),
            (r#"a "\"\\\$\n" '\'"#, Some(vec!["a", r#""\$\n"#, r"\"])),
            (
                "a $(b) ; c | d > e *",
                Some(vec!["a", "$(b)", ";", "c", "|", "d", ">", "e", "*"]),
            ),
            ("", None),
            (" ", None),
            ("''", None),
            ("a 'b", None),
            ("a \"b", None),
            (r"a \", None),
            (r#"a "\"#, None),
        ] {
            let wanted = wanted.map(|words| words.into_iter().map(OsString::from).collect());
            assert_eq!(words(OsStr::new(text)), wanted, "{text}");
        }
    }

    #[test]
    fn a_word_that_is_not_utf_8_stays_as_it_is() {
        let split = words(OsStr::from_bytes(b"a\xff '\xfe b'")).unwrap();
        let bytes: Vec<&[u8]> = split.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(bytes, [b"a\xff".as_slice(), b"\xfe b"]);
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_command_is_shown_as_a_shell_takes_it() {
        for (word, shown) in [
            ("mcp", "mcp"),
            ("--executor", "--executor"),
            ("rocco executor -- sed", "'rocco executor -- sed'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), shown);
        }
        let odd = OsStr::from_bytes(b"/a\xff'\x1b");
        assert_eq!(quoted(odd), r"$'/a\xff\'\x1b'");
    }
}
