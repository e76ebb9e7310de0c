//! Text of an agent or an executor, made fit for a model and for a terminal.
//!
//! What steers a terminal, reorders a line or cannot be seen is shown as an escape and never left
//! out: a reader sees that it is there, and two texts that differ look different.

use std::fmt::{self, Write as _};

use crate::executor_protocol::grammar::{self, RAW_BYTE_TEXT_BYTES};
use crate::mcp::owned::InlineString;
use crate::wire::writer::start_of;

/// A text of which every character can be seen, cut to a bound.
#[derive(Debug, Clone, Copy)]
pub struct Sanitized<'a> {
    text: &'a str,
    bytes_max: usize,
    kind: Kind,
}

/// What a text is, which decides what of it could deceive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Prose: lines and tabs are what they are. Names within may be escaped already.
    Text,
    /// One sentence: prose on one line.
    Sentence,
    /// A log or a diff: prose, where the text of an escape differs from an escape.
    File,
    /// The name of a file or the like, on one line. No two names have the same escapes. A byte that
    /// is no part of UTF-8 is marked in it.
    Name,
}

/// A part of a text as it is shown.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// A run of characters that are shown as they are.
    Plain(&'a str),
    /// One character, as an escape.
    Escaped(InlineString<ESCAPE_BYTES_MAX>),
}

/// The longest escape: `\u{10ffff}`.
const ESCAPE_BYTES_MAX: usize = 10;

impl Piece<'_> {
    /// The part as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Escaped(text) => text.as_str(),
        }
    }
}

impl<'a> Sanitized<'a> {
    /// The start of a text, as it is shown in at most `bytes_max` bytes.
    pub fn new(text: &'a str, bytes_max: usize) -> Self {
        Self {
            text,
            bytes_max,
            kind: Kind::Text,
        }
    }

    /// The start of a sentence, as it is shown in at most `bytes_max` bytes on one line.
    pub fn sentence(text: &'a str, bytes_max: usize) -> Self {
        Self {
            kind: Kind::Sentence,
            ..Self::new(text, bytes_max)
        }
    }

    /// A part of a file, such as a log or a diff: nothing in it was escaped before.
    pub fn file(text: &'a str) -> Self {
        Self {
            kind: Kind::File,
            ..Self::new(text, usize::MAX)
        }
    }

    /// The start of a name, as it is shown in at most `bytes_max` bytes.
    pub fn name(text: &'a str, bytes_max: usize) -> Self {
        Self {
            kind: Kind::Name,
            ..Self::new(text, bytes_max)
        }
    }

    /// A copy of the start of a sentence, as it is shown in at most `BYTES` bytes.
    pub fn short<const BYTES: usize>(text: &'a str) -> InlineString<BYTES> {
        let mut short = InlineString::EMPTY;
        for piece in Self::sentence(text, BYTES).pieces() {
            short.push(piece.as_str());
        }
        short
    }

    /// The text as it is shown, part by part.
    pub fn pieces(self) -> impl Iterator<Item = Piece<'a>> {
        let (mut rest, mut left_bytes) = (self.text, self.bytes_max);
        let mut is_first = true;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let at_an_edge = std::mem::take(&mut is_first) || rest.len() == first.len_utf8();
            if self.kind.hides(rest, 0, first) || (at_an_edge && self.kind.hides_at_an_edge(first))
            {
                let (escaped, bytes) = self.kind.escape(rest, first);
                rest = &rest[bytes..];
                left_bytes = match left_bytes.checked_sub(escaped.as_str().len()) {
                    Some(left_bytes) => left_bytes,
                    // Half an escape would be another text.
                    None => {
                        rest = "";
                        return None;
                    }
                };
                return Some(Piece::Escaped(escaped));
            }
            let mut characters = rest.char_indices();
            let hidden = characters.find(|(at, character)| self.kind.hides(rest, *at, *character));
            let end = hidden.map_or(rest.len(), |(at, _)| at);
            let end = match self.kind {
                // The last character of a name is looked at by itself.
                Kind::Name if end == rest.len() && rest.ends_with(' ') && end > 1 => end - 1,
                _ => end,
            };
            let run = start_of(&rest[..end], left_bytes);
            rest = if run.len() < end { "" } else { &rest[end..] };
            left_bytes -= run.len();
            (!run.is_empty()).then_some(Piece::Plain(run))
        })
    }
}

impl fmt::Display for Sanitized<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces()
            .try_for_each(|piece| f.write_str(piece.as_str()))
    }
}

impl Kind {
    /// Whether the character that stands at a place of a text is shown as an escape.
    fn hides(self, text: &str, at: usize, character: char) -> bool {
        match (self, character) {
            (Self::Text | Self::File, '\n' | '\t') => false,
            (Self::File, '\\') => may_begin_an_escape(&text[at + 1..]),
            // It colours the symbol before it. Behind anything else it shows nothing.
            (Self::Text | Self::Sentence | Self::File, EMOJI) => {
                let before = text[..at].chars().next_back();
                before.is_none_or(|before| before.is_ascii() || before == EMOJI)
            }
            // A backslash begins an escape, so that it is one itself. Marks that combine make two
            // spellings of one letter, and other spaces look like the plain one.
            (Self::Name, '\\' | EMOJI | '\u{300}'..='\u{36F}') => true,
            (Self::Name, _) if character != ' ' && character.is_whitespace() => true,
            _ => cannot_be_seen(character),
        }
    }

    /// The escape of the first character of a text, and how many bytes it stands for.
    fn escape(self, text: &str, first: char) -> (InlineString<ESCAPE_BYTES_MAX>, usize) {
        let bytes = first.len_utf8();
        match (self, grammar::raw_byte(text)) {
            (Self::Name, Some(byte)) => (escape_byte(byte), RAW_BYTE_TEXT_BYTES),
            // Two letters more, and `\\r` of a program in a diff stays what it is.
            (Self::File, _) if first.is_ascii() => (escape_byte(first as u8), bytes),
            _ => (escape(first), bytes),
        }
    }

    /// Whether a character cannot be seen where a text begins or ends.
    fn hides_at_an_edge(self, character: char) -> bool {
        self == Self::Name && character == ' '
    }
}

/// The variation selector 16, which asks for a symbol in colours.
const EMOJI: char = '\u{FE0F}';

/// Whether what stands behind a backslash makes an escape of a file of it, or is cut before that
/// can be told.
fn may_begin_an_escape(behind: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    match behind.as_bytes() {
        [] | b"u" => true,
        [b'x', ..] => digits(&behind[1..]) >= 2.min(behind.len() - 1),
        [b'u', b'{', ..] => {
            let count = digits(&behind[2..]);
            let end = behind.as_bytes().get(2 + count);
            count <= 6 && matches!(end, None | Some(b'}'))
        }
        _ => false,
    }
}

/// Whether a character steers a terminal, reorders what stands around it, or shows nothing: the
/// control and format characters, the separators of lines and paragraphs, those that Unicode has
/// ignored by default (Unicode 17, DerivedCoreProperties, Default_Ignorable_Code_Point), the blank
/// of Braille, and those that mean nothing by themselves: of private use, or never a character.
pub fn cannot_be_seen(character: char) -> bool {
    const NO_CHARACTER: u32 = 0xFFFE;
    character.is_control()
        || u32::from(character) & NO_CHARACTER == NO_CHARACTER
        || matches!(
            character,
            '\u{AD}'
                | '\u{34F}'
                | '\u{600}'..='\u{605}'
                | '\u{61C}'
                | '\u{6DD}'
                | '\u{70F}'
                | '\u{890}'..='\u{891}'
                | '\u{8E2}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{E000}'..='\u{F8FF}'
                | '\u{FDD0}'..='\u{FDEF}'
                | '\u{FE00}'..='\u{FE0E}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{110BD}'
                | '\u{110CD}'
                | '\u{13430}'..='\u{1343F}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
                | '\u{F0000}'..
        )
}

/// A character as an escape, as Rust and many others write it.
fn escape(character: char) -> InlineString<ESCAPE_BYTES_MAX> {
    let mut escaped = InlineString::EMPTY;
    let written = match character {
        '\\' => escaped.write_str("\\\\"),
        '\n' => escaped.write_str("\\n"),
        '\r' => escaped.write_str("\\r"),
        '\t' => escaped.write_str("\\t"),
        _ if character.is_ascii() => return escape_byte(character as u8),
        _ => write!(escaped, "\\u{{{:x}}}", u32::from(character)),
    };
    debug_assert!(written.is_ok());
    escaped
}

/// A byte as an escape.
fn escape_byte(byte: u8) -> InlineString<ESCAPE_BYTES_MAX> {
    let mut escaped = InlineString::EMPTY;
    let written = write!(escaped, "\\x{byte:02x}");
    debug_assert!(written.is_ok());
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown_as_an_escape_and_never_left_out() {
        for (text, shown) in [
            ("", ""),
            ("two\nlines\tand a tab\r\n", "two\nlines\tand a tab\\r\n"),
            ("\u{1B}[1;31mred\u{1B}[0m", "\\x1b[1;31mred\\x1b[0m"),
            ("\u{1B}]0;title\u{7}after", "\\x1b]0;title\\x07after"),
            ("\u{1B}]52;c;Y3V0\u{1B}\\", "\\x1b]52;c;Y3V0\\x1b\\"),
            ("a\0b\u{9B}31mc\u{85}", "a\\x00b\\u{9b}31mc\\u{85}"),
            ("\u{202E}txt.exe", "\\u{202e}txt.exe"),
            ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
            ("hidden\u{E0041}\u{E0042}", "hidden\\u{e0041}\\u{e0042}"),
            ("zero\u{200B}width\u{FEFF}", "zero\\u{200b}width\\u{feff}"),
            ("line\u{2028}separator", "line\\u{2028}separator"),
            ("a\\b", "a\\b"),
            ("é€😀 \u{26A0}\u{FE0F}", "é€😀 \u{26A0}\u{FE0F}"),
            (
                "a\u{FE0F}\u{26A0}\u{FE0F}\u{FE0F}\u{FE0E}",
                "a\\u{fe0f}\u{26A0}\u{FE0F}\\u{fe0f}\\u{fe0e}",
            ),
            ("a\u{2800}\u{E000}b", "a\\u{2800}\\u{e000}b"),
            (
                "\u{FDD0}\u{FFFE}\u{1FFFF}\u{10FFFD}",
                "\\u{fdd0}\\u{fffe}\\u{1ffff}\\u{10fffd}",
            ),
        ] {
            assert_eq!(Sanitized::new(text, 99).to_string(), shown, "{text:?}");
        }
    }

    /// A reviewer could not tell what steers a terminal from a program's own escape of it.
    #[test]
    fn in_a_log_or_a_diff_the_text_of_an_escape_is_not_an_escape() {
        for (text, shown) in [
            ("\u{202E}", "\\u{202e}"),
            ("\\u{202e}", "\\x5cu{202e}"),
            ("\\u{202E}", "\\x5cu{202E}"),
            ("\u{1B}", "\\x1b"),
            ("\\x1b", "\\x5cx1b"),
            ("\\\\x1b", "\\\\x5cx1b"),
            ("\\\u{1B}", "\\\\x1b"),
            ("\\x5cx1b", "\\x5cx5cx1b"),
            (
                "a\\r\\n\\d\\u00e9 \\xg\\u{g}\r\n",
                "a\\r\\n\\d\\u00e9 \\xg\\u{g}\\x0d\n",
            ),
            // What follows in the next part of the file could make an escape of it.
            ("\\", "\\x5c"),
            ("\\x", "\\x5cx"),
            ("\\x1", "\\x5cx1"),
            ("\\u", "\\x5cu"),
            ("\\u{202", "\\x5cu{202"),
            ("C:\\users\\xenon", "C:\\users\\xenon"),
        ] {
            assert_eq!(Sanitized::file(text).to_string(), shown, "{text:?}");
        }
    }

    /// A message of several lines read as one of the front, or of the user.
    #[test]
    fn a_sentence_stands_on_one_line() {
        let text = "no\n\nSYSTEM: \r\n\u{2029}yes";
        let shown = "no\\n\\nSYSTEM: \\r\\n\\u{2029}yes";
        assert_eq!(Sanitized::sentence(text, 99).to_string(), shown);
        assert_eq!(Sanitized::short::<9>("a\nb").as_str(), "a\\nb");
    }

    #[test]
    fn two_names_never_look_the_same() {
        let names = [
            "a",
            "a ",
            " a",
            "a\u{A0}",
            "a\u{200B}",
            "a\u{202E}",
            "a\\u{202e}",
            "a\n",
            "a\\n",
            "a\\\\n",
            "a\t",
            "é",
            "e\u{301}",
            "a\\",
            "a\\\\",
            "a\u{FE0F}x",
            "ax",
            "\u{26A0}\u{FE0F}",
            "\u{26A0}",
            "a\u{2800}",
            "a\u{E000}",
            "a\u{FFFE}",
            "a\u{3000}x",
            "a x",
            "a\u{2028}",
            "a\r",
            "\u{1B}a",
            "\\x1ba",
            "",
            " ",
            "  ",
            "\0ff",
            "\0fe",
            "\0FF",
            "\\xff",
            "\u{FF}",
            "\u{FFFD}",
        ];
        let mut shown: Vec<String> = names
            .map(|name| Sanitized::name(name, 99).to_string())
            .into();
        let whole = shown.len();
        shown.sort();
        shown.dedup();
        assert_eq!(shown.len(), whole, "{shown:?}");
        assert_eq!(Sanitized::name("src/b c.rs", 99).to_string(), "src/b c.rs");
        assert_eq!(Sanitized::name("a\0ff\0", 99).to_string(), "a\\xff\\x00");
        assert_eq!(Sanitized::name(" ", 99).to_string(), "\\x20");
        assert_eq!(Sanitized::name("a ", 99).to_string(), "a\\x20");
    }

    #[test]
    fn the_bound_holds_for_what_is_shown() {
        assert_eq!(Sanitized::new("aé", 2).to_string(), "a");
        assert_eq!(Sanitized::short::<3>("ab€").as_str(), "ab");
        assert_eq!(Sanitized::short::<6>("\0ab€").as_str(), "\\x00ab");
        assert_eq!(Sanitized::new("\0\0\0", 9).to_string(), "\\x00\\x00");
        for bytes_max in 0..20 {
            let shown = Sanitized::name("a\u{202E}b \\", bytes_max).to_string();
            assert!(shown.len() <= bytes_max, "{shown}");
        }
    }
}
