//! The index of a working tree, read as data (gitformat-index(5), versions 2 to 4): which paths it
//! tracks, and how their files stood when it was written. No git reads an index that an agent has
//! left. No I/O.

use rustix::fs::Stat;

use crate::executor::run::object_name::ObjectName;
use crate::limits::{WORK_FILES_MAX, WORK_PATHS_BYTES_MAX};

/// What the system says of a file, as far as an index keeps it. A change of the file, or of its
/// mode, changes the first of these, which no program sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileStat {
    /// When the file or what is known of it last changed: seconds and nanoseconds.
    changed: (u32, u32),
    /// When its bytes were last written, likewise.
    written: (u32, u32),
    inode: u32,
    bytes: u32,
}

impl FileStat {
    /// What the system says now. An index has the lower halves of all numbers.
    pub fn of(found: &Stat) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the format"
        )]
        let low = |number: i64| number as u32;
        Self {
            changed: (low(found.st_ctime), low(found.st_ctime_nsec.cast_signed())),
            written: (low(found.st_mtime), low(found.st_mtime_nsec.cast_signed())),
            inode: low(found.st_ino.cast_signed()),
            bytes: low(found.st_size),
        }
    }

    /// When the file, or what is known of it, last changed: seconds and nanoseconds.
    pub fn changed(self) -> (u32, u32) {
        self.changed
    }

    /// Whether git may take the one for the other: it looks at whole seconds.
    pub fn may_pass_for(self, other: Self) -> bool {
        (self.written.0, self.bytes) == (other.written.0, other.bytes)
    }

    /// How long the file is, in its lower 32 bits.
    pub fn bytes(self) -> u32 {
        self.bytes
    }
}

/// One path of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The path, below the top of the working tree.
    pub path: Vec<u8>,
    /// How its file stood.
    pub stat: FileStat,
    /// What it is, as git has it.
    pub mode: u32,
    /// The object that it stands for.
    pub object: ObjectName,
    /// Its file is not meant to be there, as in a sparse working tree.
    pub is_skipped: bool,
}

impl IndexEntry {
    /// Whether git has written its file, or was not to: what it could not write has no times.
    pub fn has_file(&self) -> bool {
        self.is_skipped || self.mode == MODULE || self.stat != FileStat::default()
    }
}

/// How git calls what stands for a submodule.
pub const MODULE: u32 = 0o160_000;

/// How git calls a symbolic link.
pub const LINK: u32 = 0o120_000;

/// What is in front of the object of an entry, in bytes.
const STAT_BYTES: usize = 40;

/// The entries of an index, of which each object takes so many bytes, in the order of their paths.
/// None for what is not an index, or keeps entries elsewhere, or directories in their place, or has
/// more of them than anybody works with: in the fourth version a few bytes stand for a long path.
pub fn entries_of(index: &[u8], object_bytes: usize) -> Option<Vec<IndexEntry>> {
    let mut rest = index.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let entries_max = rest.len() / (STAT_BYTES + object_bytes);
    let mut entries: Vec<IndexEntry> =
        Vec::with_capacity((count as usize).min(entries_max).min(WORK_FILES_MAX));
    let mut path_bytes = 0;
    for _ in 0..count {
        let before = entries.last().map_or(&[][..], |entry| &entry.path);
        let entry = entry_of(&mut rest, version, object_bytes, before)?;
        path_bytes += entry.path.len();
        if before > &entry.path[..] {
            return None;
        }
        if entries.len() == WORK_FILES_MAX || path_bytes > WORK_PATHS_BYTES_MAX {
            return None;
        }
        entries.push(entry);
    }
    is_whole(rest, object_bytes).then_some(entries)
}

/// Reads an entry. The path of one in the fourth version goes on from the one before.
fn entry_of(
    rest: &mut &[u8],
    version: u32,
    object_bytes: usize,
    before: &[u8],
) -> Option<IndexEntry> {
    let start = rest.len();
    let mut stat = taken(rest, STAT_BYTES)?;
    let mut numbers = [0; STAT_BYTES / 4];
    for place in &mut numbers {
        *place = number(&mut stat)?;
    }
    let [
        changed,
        changed_ns,
        written,
        written_ns,
        _,
        inode,
        mode,
        _,
        _,
        bytes,
    ] = numbers;
    let object = taken(rest, object_bytes)?;
    let flags = half(rest)?;
    let is_long = flags & 0x4000 != 0;
    let more = if is_long { half(rest)? } else { 0 };
    let kept = match version {
        4 => before.get(..before.len().checked_sub(offset(rest)?)?)?,
        _ => &[],
    };
    let end = memchr::memchr(0, rest)?;
    let path = [kept, taken(rest, end)?].concat();
    let zeros = match version {
        4 => 1,
        _ => 8 - (start - rest.len()) % 8,
    };
    taken(rest, zeros)?;
    Some(IndexEntry {
        path,
        stat: FileStat {
            changed: (changed, changed_ns),
            written: (written, written_ns),
            inode,
            bytes,
        },
        mode,
        object: ObjectName::of(object)?,
        is_skipped: more & 0x4000 != 0,
    })
}

/// Whether what follows the entries says nothing of entries that are elsewhere.
fn is_whole(mut rest: &[u8], object_bytes: usize) -> bool {
    while rest.len() > object_bytes {
        let name = taken(&mut rest, 4);
        let bytes = number(&mut rest).and_then(|bytes| usize::try_from(bytes).ok());
        let body = bytes.and_then(|bytes| taken(&mut rest, bytes));
        if body.is_none() || matches!(name, Some(b"link" | b"sdir")) {
            return false;
        }
    }
    true
}

fn taken<'b>(rest: &mut &'b [u8], bytes: usize) -> Option<&'b [u8]> {
    let (head, tail) = rest.split_at_checked(bytes)?;
    *rest = tail;
    Some(head)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_be_bytes(*head))
}

fn half(rest: &mut &[u8]) -> Option<u16> {
    let (head, tail) = rest.split_first_chunk::<2>()?;
    *rest = tail;
    Some(u16::from_be_bytes(*head))
}

/// A number in as many bytes as it needs.
fn offset(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    loop {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        number = number.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        number = number.checked_add(1)?.checked_mul(0x80)?;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::limits::INDEX_BYTES_MAX;

    fn git(folder: &Path, words: &[&str]) {
        let mut command = Command::new("git");
        let ran = command.args(words).current_dir(folder).status();
        assert!(ran.expect("git").success(), "{words:?}");
    }

    /// An index that git has written in each version is read as git reads it, and none that is cut
    /// or altered makes anything but entries or nothing.
    #[test]
    fn an_index_of_each_version_is_read_and_no_part_of_one_ends_the_program() {
        for (format, object_bytes) in [("sha1", 20), ("sha256", 32)] {
            let folder = tempfile::tempdir().expect("a folder");
            let top = folder.path();
            git(top, &["init", "-q", &format!("--object-format={format}")]);
            let names = ["a", "dir/deep/one", "dir/deep/two", "seven77", "z\u{e9} z"];
            for name in names {
                fs::create_dir_all(top.join(name).parent().expect("above")).expect("a directory");
                fs::write(top.join(name), name).expect("a file");
            }
            git(top, &["add", "."]);
            git(top, &["update-index", "--skip-worktree", "seven77"]);
            for version in ["2", "3", "4"] {
                git(top, &["update-index", "--index-version", version]);
                let index = fs::read(top.join(".git/index")).expect("an index");
                let entries = entries_of(&index, object_bytes).expect("entries");
                let paths: Vec<&[u8]> = entries.iter().map(|entry| &entry.path[..]).collect();
                assert_eq!(paths, names.map(str::as_bytes), "{format} {version}");
                for entry in &entries {
                    let path = top.join(str::from_utf8(&entry.path).expect("a name"));
                    let found = rustix::fs::lstat(&path).expect("a file");
                    assert_eq!(entry.stat, FileStat::of(&found));
                    assert_eq!(entry.mode, 0o100_644);
                    assert_eq!(entry.object.to_string().len(), 2 * object_bytes);
                    assert_eq!(entry.is_skipped, entry.path == b"seven77");
                }
                for end in 0..index.len() {
                    let _ = entries_of(&index[..end], object_bytes);
                    let mut altered = index.clone();
                    altered[end] ^= 0xff;
                    let _ = entries_of(&altered, object_bytes);
                }
            }
        }
    }

    /// An index of 14 MiB whose entries stood for paths of 768 MiB filled the memory.
    #[test]
    fn an_index_of_few_bytes_that_stands_for_long_paths_is_not_read() {
        let entry = |kept: u8, path: &[u8]| {
            let stat_and_object = [0; STAT_BYTES + 20 + 2];
            [&stat_and_object[..], &[kept], path, b"\0"].concat()
        };
        let count = 200_000_u32;
        let mut index = [&b"DIRC"[..], &4_u32.to_be_bytes(), &count.to_be_bytes()].concat();
        index.extend(entry(0, &[b'a'; 4_000]));
        for _ in 1..count {
            index.extend(entry(1, b"b"));
        }
        index.extend([0; 20]);
        assert!(index.len() < INDEX_BYTES_MAX);
        assert_eq!(entries_of(&index, 20), None);
        // As many as have no such paths are read.
        let mut index = [&b"DIRC"[..], &4_u32.to_be_bytes(), &2_u32.to_be_bytes()].concat();
        index.extend([entry(0, b"aa"), entry(1, b"b"), vec![0; 20]].concat());
        let entries = entries_of(&index, 20).expect("entries");
        assert_eq!(entries[1].path, b"ab");
    }

    /// The entries of a split index are in another file.
    #[test]
    fn an_index_that_keeps_entries_elsewhere_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path();
        git(top, &["init", "-q"]);
        fs::write(top.join("a"), "a").expect("a file");
        git(top, &["add", "."]);
        git(top, &["update-index", "--split-index"]);
        let index = fs::read(top.join(".git/index")).expect("an index");
        assert_eq!(entries_of(&index, 20), None);
    }
}
