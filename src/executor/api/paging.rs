//! Pages of the texts that a task leaves.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::executor::store::plain_file::open_plain;

/// A part of a text.
#[derive(Debug)]
pub struct TextPage {
    /// The part.
    pub text: String,
    /// Where the next one begins; none behind the last.
    pub next_offset: Option<u64>,
    /// Bytes of the whole.
    pub total: u64,
}

/// Reads a part of a file, so that it ends between two characters. A file that is not there is
/// empty.
///
/// # Errors
///
/// The file cannot be read.
pub fn page(path: &Path, offset: u64, limit: usize) -> io::Result<TextPage> {
    let Some(mut file) = open_plain(path)? else {
        return Ok(TextPage {
            text: String::new(),
            next_offset: None,
            total: 0,
        });
    };
    let total = file.metadata()?.len();
    file.seek(SeekFrom::Start(offset.min(total)))?;
    let mut bytes = Vec::new();
    file.take(limit as u64).read_to_end(&mut bytes)?;
    let end = offset.min(total) + bytes.len() as u64;
    if end < total {
        bytes.truncate(whole_characters(&bytes));
    }
    let end = offset.min(total) + bytes.len() as u64;
    Ok(TextPage {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        next_offset: (end < total).then_some(end),
        total,
    })
}

/// How many bytes there are before a character that is cut at the end. What is not UTF-8 is cut
/// anywhere, and something is always left.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let first = bytes[bytes.len() - back];
        let wanted = match first {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        let cut = wanted > back && bytes.len() > back;
        return if cut { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_between_two_characters() {
        for (text, whole) in [
            (&b"abc"[..], 3),
            ("ab\u{e9}".as_bytes(), 4),
            (&"ab\u{e9}".as_bytes()[..3], 2),
            (&"a\u{20ac}".as_bytes()[..3], 1),
            (&"a\u{1f600}".as_bytes()[..4], 1),
            (b"\x80\x80\x80\x80", 4),
            (b"\xE2", 1),
            (b"", 0),
        ] {
            assert_eq!(whole_characters(text), whole, "{text:?}");
        }
    }

    #[test]
    fn the_pages_of_a_file_are_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page");
        let text = "x\u{e9}\u{20ac}\u{1f600}\n".repeat(50);
        std::fs::write(&path, &text).unwrap();
        for limit in [4, 5, 7, 100, 10_000] {
            let (mut read, mut offset) = (String::new(), Some(0));
            while let Some(from) = offset {
                let page = page(&path, from, limit).unwrap();
                assert_eq!(page.total, text.len() as u64);
                read += &page.text;
                offset = page.next_offset;
            }
            assert_eq!(read, text, "{limit}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(page(&path, 0, 10).unwrap().total, 0);
    }
}
