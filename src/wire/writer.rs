//! Writes JSON into the outbox, straight and without heap.
//!
//! The writers are scoped: an object or an array is filled by a function and closed behind it, so
//! what comes out is always one well-formed value on one line.

use std::fmt::{self, Write as _};
use std::ops::Range;

use super::json::RawJson;
use super::message::Id;
use super::outbox::{Mark, Outbox};
use crate::limits::QUOTE_BYTES_MAX;

/// Where JSON goes: into the outbox as it is, or, inside a JSON string, escaped once more.
#[derive(Debug)]
pub struct Sink<'o> {
    outbox: &'o mut Outbox,
    quoted: bool,
}

impl<'o> Sink<'o> {
    /// A sink that writes JSON as it is.
    pub fn plain(outbox: &'o mut Outbox) -> Self {
        Self {
            outbox,
            quoted: false,
        }
    }

    /// A sink that writes JSON as the content of a JSON string.
    pub fn quoted(outbox: &'o mut Outbox) -> Self {
        Self {
            outbox,
            quoted: true,
        }
    }

    /// The outbox itself, for what writes a value of its own.
    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        assert!(!self.quoted, "what is written is not to be escaped");
        self.outbox
    }

    fn again(&mut self) -> Sink<'_> {
        Sink {
            outbox: self.outbox,
            quoted: self.quoted,
        }
    }

    /// Text that is JSON already.
    #[inline]
    pub fn raw(&mut self, json: &str) {
        self.put(json.as_bytes());
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.quoted {
            escape(bytes, |run| self.outbox.put(run));
        } else {
            self.outbox.put(bytes);
        }
    }

    /// A string with its quotes.
    pub fn string(&mut self, text: &str) {
        self.put(b"\"");
        self.string_part(text);
        self.put(b"\"");
    }

    /// A part of a string whose quotes are written apart.
    pub fn string_part(&mut self, text: &str) {
        escape(text.as_bytes(), |run| self.put(run));
    }

    /// A part of a string that can be written again.
    pub fn part(&mut self, write: impl FnOnce(&mut Self)) -> Part {
        let start = self.outbox.mark();
        write(self);
        Part(start.range_to(self.outbox.mark()))
    }

    /// An integer.
    pub fn unsigned(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.put(&digits[start..]);
    }

    /// An integer.
    pub fn signed(&mut self, number: i64) {
        if number < 0 {
            self.put(b"-");
        }
        self.unsigned(number.unsigned_abs());
    }

    /// A number; what JSON has no form for becomes null.
    pub fn float(&mut self, number: f64) {
        if number.is_finite() {
            self.formatted(format_args!("{number:?}"));
        } else {
            self.raw("null");
        }
    }

    /// A string that was written before as a part of another.
    pub fn string_again(&mut self, part: Part) {
        assert!(!self.quoted, "a part is escaped once");
        self.raw("\"");
        self.outbox.put_again(part.0);
        self.raw("\"");
    }

    /// A string from format arguments.
    pub fn formatted_string(&mut self, text: fmt::Arguments<'_>) {
        self.raw("\"");
        self.formatted(text);
        self.raw("\"");
    }

    /// A truth value.
    pub fn boolean(&mut self, truth: bool) {
        self.raw(if truth { "true" } else { "false" });
    }

    /// Text from format arguments, inside a string whose quotes are written apart. A `Display` that
    /// fails spoils the outbox, so that its request gets an error and no half of a text.
    pub fn formatted(&mut self, text: fmt::Arguments<'_>) {
        if let Some(text) = text.as_str() {
            return self.string_part(text);
        }
        struct Parts<'s, 'o>(&'s mut Sink<'o>);
        impl fmt::Write for Parts<'_, '_> {
            fn write_str(&mut self, part: &str) -> fmt::Result {
                self.0.string_part(part);
                Ok(())
            }
        }
        if Parts(self).write_fmt(text).is_err() {
            self.outbox.spoil();
        }
    }

    /// A request's id.
    #[inline]
    pub fn id(&mut self, id: Id<'_>) {
        match id {
            Id::String(text) => self.string(text),
            Id::Unsigned(number) => self.unsigned(number),
            // A minus sign was there even before a zero.
            Id::Signed(0) => self.raw("-0"),
            Id::Signed(number) => self.signed(number),
        }
    }

    /// An object that is filled by a function.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.raw("{");
        fill(&mut ObjectWriter {
            sink: self.again(),
            first: true,
        });
        self.raw("}");
    }

    /// An array that is filled by a function.
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayWriter<'_>)) {
        self.raw("[");
        fill(&mut ArrayWriter {
            sink: self.again(),
            first: true,
        });
        self.raw("]");
    }
}

/// A part of a string, escaped as it stands in the outbox.
#[derive(Debug)]
pub struct Part(Range<usize>);

/// The members of an object that is being written, in the order of the calls.
///
/// Whatever is called, the object is valid JSON on one line. Names are not compared: one that is
/// written twice stands there twice, and readers of JSON differ on which of the two counts
/// (RFC 8259, section 4).
#[derive(Debug)]
pub struct ObjectWriter<'w> {
    sink: Sink<'w>,
    first: bool,
}

impl ObjectWriter<'_> {
    /// A member whose value is written by a function.
    pub(crate) fn member(&mut self, name: &str, write: impl FnOnce(&mut Sink<'_>)) {
        if !self.first {
            self.sink.raw(",");
        }
        self.first = false;
        self.sink.string(name);
        self.sink.raw(":");
        write(&mut self.sink);
    }

    /// A string. What JSON or a line cannot hold is escaped.
    pub fn string(&mut self, name: &str, text: &str) {
        self.member(name, |sink| sink.string(text));
    }

    /// A string that was written before as a part of another.
    pub(crate) fn string_again(&mut self, name: &str, part: Part) {
        self.member(name, |sink| sink.string_again(part));
    }

    /// A string from format arguments, without a copy in between. If a `Display` among them fails,
    /// the request gets an internal error (-32603).
    pub fn formatted(&mut self, name: &str, text: fmt::Arguments<'_>) {
        self.member(name, |sink| sink.formatted_string(text));
    }

    /// An integer without a sign.
    pub fn unsigned(&mut self, name: &str, number: u64) {
        self.member(name, |sink| sink.unsigned(number));
    }

    /// An integer.
    pub fn signed(&mut self, name: &str, number: i64) {
        self.member(name, |sink| sink.signed(number));
    }

    /// A number, in the fewest digits that read back as the same. NaN and the infinities, for which
    /// JSON has no form, become `null`.
    pub fn float(&mut self, name: &str, number: f64) {
        self.member(name, |sink| sink.float(number));
    }

    /// A truth value.
    pub fn boolean(&mut self, name: &str, truth: bool) {
        self.member(name, |sink| sink.boolean(truth));
    }

    /// `null`.
    pub fn null(&mut self, name: &str) {
        self.member(name, |sink| sink.raw("null"));
    }

    /// JSON that was checked before.
    pub fn json(&mut self, name: &str, json: &RawJson) {
        self.member(name, |sink| sink.raw(json.as_str()));
    }

    /// Text that is known to be one JSON value on one line.
    pub(crate) fn raw(&mut self, name: &str, json: &str) {
        self.member(name, |sink| sink.raw(json));
    }

    /// Members that are known to be JSON on one line, without the braces around them.
    pub(crate) fn raw_members(&mut self, json: &str) {
        if !json.is_empty() {
            if !self.first {
                self.sink.raw(",");
            }
            self.first = false;
            self.sink.raw(json);
        }
    }

    /// An object that is filled by a function.
    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.member(name, |sink| sink.object(fill));
    }

    /// An array that is filled by a function.
    pub fn array(&mut self, name: &str, fill: impl FnOnce(&mut ArrayWriter<'_>)) {
        self.member(name, |sink| sink.array(fill));
    }
}

/// The elements of an array that is being written, in the order of the calls.
///
/// Whatever is called, the array is valid JSON on one line.
#[derive(Debug)]
pub struct ArrayWriter<'w> {
    sink: Sink<'w>,
    first: bool,
}

impl ArrayWriter<'_> {
    /// An element that is written by a function.
    pub(crate) fn element(&mut self, write: impl FnOnce(&mut Sink<'_>)) {
        if !self.first {
            self.sink.raw(",");
        }
        self.first = false;
        write(&mut self.sink);
    }

    /// A string. What JSON or a line cannot hold is escaped.
    pub fn string(&mut self, text: &str) {
        self.element(|sink| sink.string(text));
    }

    /// A string from format arguments: see [`ObjectWriter::formatted`].
    pub fn formatted(&mut self, text: fmt::Arguments<'_>) {
        self.element(|sink| sink.formatted_string(text));
    }

    /// An integer without a sign.
    pub fn unsigned(&mut self, number: u64) {
        self.element(|sink| sink.unsigned(number));
    }

    /// An integer.
    pub fn signed(&mut self, number: i64) {
        self.element(|sink| sink.signed(number));
    }

    /// A number: see [`ObjectWriter::float`].
    pub fn float(&mut self, number: f64) {
        self.element(|sink| sink.float(number));
    }

    /// A truth value.
    pub fn boolean(&mut self, truth: bool) {
        self.element(|sink| sink.boolean(truth));
    }

    /// `null`.
    pub fn null(&mut self) {
        self.element(|sink| sink.raw("null"));
    }

    /// JSON that was checked before.
    pub fn json(&mut self, json: &RawJson) {
        self.element(|sink| sink.raw(json.as_str()));
    }

    /// An object that is filled by a function.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.element(|sink| sink.object(fill));
    }

    /// An array that is filled by a function.
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayWriter<'_>)) {
        self.element(|sink| sink.array(fill));
    }
}

/// Appends, as the content of a JSON string, a copy of what was written between two marks.
pub fn quote_between(outbox: &mut Outbox, start: Mark, end: Mark) {
    let whole = start.range_to(end);
    let mut start = whole.start;
    while start < whole.end {
        let (run_bytes, escape) = next_escape(outbox.written(start..whole.end));
        outbox.put_again(start..start + run_bytes);
        start += run_bytes;
        if let Some(escape) = escape {
            outbox.put(escape.text.as_slice());
            start += escape.replaced_bytes;
        }
    }
}

/// Hands out text in runs that are valid inside a JSON string.
fn escape(mut text: &[u8], mut put: impl FnMut(&[u8])) {
    loop {
        let (run_bytes, escape) = next_escape(text);
        if run_bytes > 0 {
            put(&text[..run_bytes]);
        }
        let Some(escape) = escape else { return };
        put(escape.text.as_slice());
        text = &text[run_bytes + escape.replaced_bytes..];
    }
}

struct Escape {
    text: EscapeText,
    replaced_bytes: usize,
}

enum EscapeText {
    Short([u8; 2]),
    Long([u8; 6]),
}

impl EscapeText {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short(text) => text,
            Self::Long(text) => text,
        }
    }
}

/// How many bytes may stand as they are, and the escape for what comes then. Short forms are used
/// wherever there is one, so that text never grows beyond its own escaped form in the input.
#[inline]
fn next_escape(text: &[u8]) -> (usize, Option<Escape>) {
    let mut from = 0;
    while let Some(offset) = find_suspect(&text[from..]) {
        let at = from + offset;
        let (text, replaced_bytes) = match text[at] {
            b'"' => (EscapeText::Short(*b"\\\""), 1),
            b'\\' => (EscapeText::Short(*b"\\\\"), 1),
            b'\n' => (EscapeText::Short(*b"\\n"), 1),
            b'\r' => (EscapeText::Short(*b"\\r"), 1),
            b'\t' => (EscapeText::Short(*b"\\t"), 1),
            0x08 => (EscapeText::Short(*b"\\b"), 1),
            0x0C => (EscapeText::Short(*b"\\f"), 1),
            0xE2 => match text.get(at + 1..at + 3) {
                // Some clients split lines on U+2028 and U+2029 too.
                Some([0x80, 0xA8]) => (EscapeText::Long(*b"\\u2028"), 3),
                Some([0x80, 0xA9]) => (EscapeText::Long(*b"\\u2029"), 3),
                _ => {
                    from = at + 1;
                    continue;
                }
            },
            control => {
                let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                let (high, low) = (digit(control >> 4), digit(control & 15));
                let text = [b'\\', b'u', b'0', b'0', high, low];
                (EscapeText::Long(text), 1)
            }
        };
        let escape = Escape {
            text,
            replaced_bytes,
        };
        return (at, Some(escape));
    }
    (text.len(), None)
}

/// The place of the first byte that may need an escape. Eight bytes are looked at together: the
/// highest bit of each lane is set where the lane is suspect. A borrow can set it wrongly above a
/// lane that is suspect, but never below the first one.
#[inline]
fn find_suspect(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let suspects = below(word, 0x20) | is(word, b'"') | is(word, b'\\') | is(word, 0xE2);
        let lanes = suspects & HIGHS;
        if lanes != 0 {
            return Some(8 * index + lanes.trailing_zeros() as usize / 8);
        }
    }
    let offset = rest.iter().position(|&byte| SUSPECT[usize::from(byte)])?;
    Some(text.len() - rest.len() + offset)
}

/// Bytes that may need an escape: controls, quote, backslash, and the first byte of U+2028.
const SUSPECT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0xE2] = true;
    table
};

/// The longest start of a text that has at most `bytes` bytes and ends between two characters.
pub fn start_of(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The start of a client's own word as an error repeats it: at most [`QUOTE_BYTES_MAX`] bytes of
/// it, an ellipsis where it is cut, and U+FFFD for each control character, since those would steer
/// the terminal on which a log is read.
pub fn quote(word: &str) -> impl Iterator<Item = char> {
    let start = start_of(word, QUOTE_BYTES_MAX);
    let ellipsis = if start.len() < word.len() { "..." } else { "" };
    let shown = |character: char| match character.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => character,
    };
    start.chars().map(shown).chain(ellipsis.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Outbox)) -> String {
        let mut outbox = Outbox::new();
        write(&mut outbox);
        String::from_utf8(outbox.pending().to_vec()).unwrap()
    }

    const TEXTS: [&str; 6] = [
        "",
        "plain",
        "\"\\\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}",
        "\u{2027}\u{2028}\u{2029}\u{202a}\u{e9}\u{1f600}\u{20ac}",
        "a\"b",
        "\u{2028}",
    ];

    #[test]
    fn any_string_comes_out_as_one_valid_line() {
        for text in TEXTS {
            let json = written(|outbox| Sink::plain(outbox).string(text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            assert!(!json.contains(['\n', '\r', '\u{2028}', '\u{2029}']));
        }
    }

    #[test]
    fn quoted_json_is_json_inside_a_string() {
        for text in TEXTS {
            let fill = |object: &mut ObjectWriter<'_>| {
                object.string("text", text);
                object.array("list", |list| list.unsigned(7));
            };
            let plain = written(|outbox| Sink::plain(outbox).object(fill));
            let quoted = written(|outbox| Sink::quoted(outbox).object(fill));
            let copied = written(|outbox| {
                let mark = outbox.mark();
                Sink::plain(outbox).object(fill);
                let end = outbox.mark();
                quote_between(outbox, mark, end);
            });
            assert_eq!(copied, format!("{plain}{quoted}"));
            let inner: String = serde_json::from_str(&format!("\"{quoted}\"")).unwrap();
            assert_eq!(inner, plain);
        }
    }

    #[test]
    fn a_suspect_is_found_at_every_place() {
        for byte in 0..=255_u8 {
            for len in 1..40 {
                for at in 0..len {
                    let mut text = vec![b'x'; len];
                    text[at] = byte;
                    let wanted = SUSPECT[usize::from(byte)].then_some(at);
                    assert_eq!(find_suspect(&text), wanted, "{byte} at {at} of {len}");
                    text[len - 1] = b'"';
                    let wanted = if at < len - 1 {
                        wanted.or(Some(len - 1))
                    } else {
                        Some(at)
                    };
                    assert_eq!(
                        find_suspect(&text),
                        wanted,
                        "{byte} at {at} of {len}, quoted"
                    );
                }
            }
        }
    }

    #[test]
    fn numbers() {
        type Write<'t> = &'t dyn Fn(&mut Sink<'_>);
        let table: [(Write<'_>, &str); 10] = [
            (&|sink| sink.unsigned(0), "0"),
            (&|sink| sink.unsigned(u64::MAX), "18446744073709551615"),
            (&|sink| sink.signed(i64::MIN), "-9223372036854775808"),
            (&|sink| sink.signed(-1), "-1"),
            (&|sink| sink.id(Id::Signed(0)), "-0"),
            (&|sink| sink.id(Id::Signed(-7)), "-7"),
            (&|sink| sink.id(Id::String("a\n")), "\"a\\n\""),
            (&|sink| sink.float(1e300), "1e300"),
            (&|sink| sink.float(0.5), "0.5"),
            (&|sink| sink.float(f64::NAN), "null"),
        ];
        for (write, wanted) in table {
            assert_eq!(written(|outbox| write(&mut Sink::plain(outbox))), wanted);
        }
    }

    #[test]
    fn empty_and_nested_containers() {
        let json = written(|outbox| {
            Sink::plain(outbox).object(|object| {
                object.object("a", |_| {});
                object.array("b", |list| {
                    list.object(|inner| inner.boolean("c", true));
                    list.string("d");
                });
                object.formatted("e", format_args!("{}\"", 1));
            });
        });
        assert_eq!(json, r#"{"a":{},"b":[{"c":true},"d"],"e":"1\""}"#);
    }

    #[test]
    fn a_start_ends_between_characters() {
        assert_eq!(start_of("\u{e9}\u{e9}", 3), "\u{e9}");
        assert_eq!(start_of("ab", 9), "ab");
    }

    #[test]
    fn a_quote_cannot_steer_a_terminal() {
        let shown = |word: &str| quote(word).collect::<String>();
        assert_eq!(
            shown("a\u{1b}[31m\n\u{7f}\u{9b}\u{e9}"),
            "a\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{e9}"
        );
        assert_eq!(
            shown(&"x".repeat(QUOTE_BYTES_MAX)),
            "x".repeat(QUOTE_BYTES_MAX)
        );
        let cut = ["\0".repeat(QUOTE_BYTES_MAX), "\u{e9}".to_owned()].concat();
        assert_eq!(
            shown(&cut),
            ["\u{fffd}".repeat(QUOTE_BYTES_MAX), "...".to_owned()].concat()
        );
    }
}
