//! Names of git's objects as bytes, which take a quarter of the memory of their digits and compare
//! as fast as numbers. The digits are for git alone. No I/O.

use std::fmt;

/// The bytes of the longest name, which is of SHA-256.
const OBJECT_BYTES_MAX: usize = 32;

/// The name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectName {
    bytes: [u8; OBJECT_BYTES_MAX],
    length: u8,
}

impl ObjectName {
    /// A name of these bytes. None if there are more than any name has.
    pub fn of(name: &[u8]) -> Option<Self> {
        let mut bytes = [0; OBJECT_BYTES_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        let length = u8::try_from(name.len()).ok()?;
        Some(Self { bytes, length })
    }

    /// The name that hexadecimal digits have.
    pub fn of_digits(digits: &str) -> Option<Self> {
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            u8::try_from(high? << 4 | low?).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        Self::of(&bytes.filter(|_| rest.is_empty())?)
    }
}

/// As git prints it.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.bytes[..usize::from(self.length)].iter();
        bytes.try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_digits_and_nothing_else_is_one() {
        for digits in ["", "00ff", &"5a".repeat(20), &"c3".repeat(32)] {
            let name = ObjectName::of_digits(digits).expect("a name");
            assert_eq!(name.to_string(), digits);
        }
        let of = ObjectName::of_digits;
        assert_eq!(of("0A"), of("0a"));
        assert_ne!(of("00"), of("0000"));
        for other in ["0", "0g", "+1", "\u{e9}", &"00".repeat(33)] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
