//! An executor's words, made fit for a model and for a terminal.

use std::fmt;

use crate::mcp::owned::InlineString;
use crate::wire::writer::start_of;

const ESCAPE: char = '\u{1B}';

/// The start of a text without control characters, but for line feeds and tabs, and without the
/// sequences by which terminals are steered.
#[derive(Debug, Clone, Copy)]
pub struct Sanitized<'a> {
    text: &'a str,
}

impl<'a> Sanitized<'a> {
    /// At most the first `bytes_max` bytes.
    pub fn new(text: &'a str, bytes_max: usize) -> Self {
        let text = start_of(text, bytes_max);
        Self { text }
    }

    /// A copy, cut to what fits.
    pub fn short<const BYTES: usize>(text: &'a str) -> InlineString<BYTES> {
        let mut short = InlineString::EMPTY;
        for run in Self::new(text, BYTES).runs() {
            short.push(run);
        }
        short
    }

    /// The parts that may be shown, in order.
    pub fn runs(self) -> impl Iterator<Item = &'a str> {
        let mut rest = self.text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(is_hidden).unwrap_or(rest.len());
            let (run, behind) = rest.split_at(end);
            rest = skip(behind);
            Some(run)
        })
    }
}

impl fmt::Display for Sanitized<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runs().try_for_each(|run| f.write_str(run))
    }
}

fn is_hidden(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
}

/// What comes behind one hidden character, or behind the sequence that it begins (ECMA-48, 5.4).
fn skip(text: &str) -> &str {
    let mut characters = text.chars();
    if characters.next() != Some(ESCAPE) || !characters.as_str().starts_with('[') {
        return characters.as_str();
    }
    let sequence = &characters.as_str()[1..];
    match sequence.find(|character: char| !matches!(character, ' '..='?')) {
        Some(end) if sequence[end..].starts_with(|last: char| matches!(last, '@'..='~')) => {
            &sequence[end + 1..]
        }
        Some(end) => &sequence[end..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_shown_is_left() {
        for (text, shown) in [
            ("", ""),
            ("two\nlines\tand a tab\r\n", "two\nlines\tand a tab\n"),
            ("\u{1B}[1;31mred\u{1B}[0m", "red"),
            ("\u{1B}]0;title\u{7}after", "]0;titleafter"),
            ("cut \u{1B}[1", "cut "),
            ("\u{1B}", ""),
            ("\u{1B}[é", "é"),
            ("a\0b\u{9B}31mc\u{85}", "ab31mc"),
            ("é€😀", "é€😀"),
        ] {
            assert_eq!(Sanitized::new(text, 99).to_string(), shown, "{text:?}");
        }
        assert_eq!(Sanitized::new("aé", 2).to_string(), "a");
        assert_eq!(Sanitized::short::<3>("\0ab€").as_str(), "ab");
    }
}
