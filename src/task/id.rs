//! Task ids: `tsk_` and 128 bits in Crockford's base 32.

use std::fmt;

const PREFIX: &str = "tsk_";
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const DIGITS_COUNT: usize = 26;

/// A task id. The bits must be random, since whoever knows the id may ask for the task (Tasks
/// Extension, Security).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u128);

impl TaskId {
    /// The id with these bits.
    pub fn new(bits: u128) -> Self {
        Self(bits)
    }

    /// Reads an id. Small letters are not accepted.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        if digits.len() != DIGITS_COUNT {
            return None;
        }
        let mut bits: u128 = 0;
        for (index, digit) in digits.iter().enumerate() {
            let value = DIGITS.iter().position(|known| known == digit)?;
            // 26 digits have 130 bits: the two highest bits of the first digit must be zero.
            if index == 0 && value >= 8 {
                return None;
            }
            bits = (bits << 5) | value as u128;
        }
        Some(Self(bits))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        for index in (0..DIGITS_COUNT).rev() {
            let digit = (self.0 >> (5 * index)) as usize & 31;
            write!(f, "{}", char::from(DIGITS[digit]))?;
        }
        Ok(())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back() {
        for bits in [0, 1, 31, 32, u128::MAX, 0x0123_4567_89AB_CDEF << 40] {
            let text = TaskId::new(bits).to_string();
            assert_eq!(text.len(), PREFIX.len() + DIGITS_COUNT);
            assert_eq!(TaskId::parse(&text), Some(TaskId::new(bits)));
        }
    }

    #[test]
    fn a_text_that_is_not_an_id_is_refused() {
        for text in [
            "",
            "tsk_",
            "tsk_0000000000000000000000000",
            "tsk_000000000000000000000000000",
            "tsk_0000000000000000000000000u",
            "tsk_0000000000000000000000000a",
            "tsk_80000000000000000000000000",
            "TSK_00000000000000000000000000",
            "00000000000000000000000000",
        ] {
            assert_eq!(TaskId::parse(text), None, "{text}");
        }
    }
}
