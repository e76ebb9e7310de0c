//! Copies of ids and short texts that outlive their frame, without a heap allocation.

use crate::limits::OWNED_ID_BYTES_MAX;
use crate::wire::message::Id;
use crate::wire::writer::start_of;

/// An id that outlives its frame.
#[derive(Debug, Clone, Copy)]
pub enum OwnedId {
    /// A string of at most [`OWNED_ID_BYTES_MAX`] bytes.
    Text {
        /// The string, and unused bytes behind it.
        bytes: [u8; OWNED_ID_BYTES_MAX],
        /// The length of the string.
        len: usize,
    },
    /// An integer without a sign.
    Unsigned(u64),
    /// An integer with a minus sign, -0 included.
    Signed(i64),
}

impl OwnedId {
    /// A copy of an id; none if the id is too long.
    pub fn new(id: Id<'_>) -> Option<Self> {
        Some(match id {
            Id::Unsigned(number) => Self::Unsigned(number),
            Id::Signed(number) => Self::Signed(number),
            Id::String(text) => {
                let mut bytes = [0; OWNED_ID_BYTES_MAX];
                let len = text.len();
                bytes.get_mut(..len)?.copy_from_slice(text.as_bytes());
                Self::Text { bytes, len }
            }
        })
    }

    /// The id.
    pub fn id(&self) -> Id<'_> {
        match self {
            Self::Unsigned(number) => Id::Unsigned(*number),
            Self::Signed(number) => Id::Signed(*number),
            Self::Text { bytes, len } => {
                let text = std::str::from_utf8(&bytes[..*len]);
                Id::String(text.expect("it was copied from a text"))
            }
        }
    }
}

/// The start of a text, cut between two characters to at most `BYTES` bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InlineString<const BYTES: usize> {
    bytes: [u8; BYTES],
    len: usize,
}

impl<const BYTES: usize> InlineString<BYTES> {
    /// The empty text.
    pub const EMPTY: Self = Self {
        bytes: [0; BYTES],
        len: 0,
    };

    /// A copy of as much of a text as fits.
    pub fn new(text: &str) -> Self {
        let mut short = Self::EMPTY;
        short.push(text);
        short
    }

    /// Appends as much of a text as fits.
    pub fn push(&mut self, text: &str) {
        let start = start_of(text, BYTES - self.len);
        let end = self.len + start.len();
        self.bytes[self.len..end].copy_from_slice(start.as_bytes());
        self.len = end;
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let text = std::str::from_utf8(&self.bytes[..self.len]);
        text.expect("it was cut between two characters")
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Writing cuts as [`InlineString::push`] does, and never fails.
impl<const BYTES: usize> std::fmt::Write for InlineString<BYTES> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text);
        Ok(())
    }
}

impl<const BYTES: usize> std::fmt::Debug for InlineString<BYTES> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_two_characters() {
        assert_eq!(InlineString::<4>::new("ab€").as_str(), "ab");
        assert_eq!(InlineString::<5>::new("ab€").as_str(), "ab€");
        assert!(InlineString::<2>::new("€").is_empty());
    }
}
