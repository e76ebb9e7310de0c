//! Measures what a tree takes on the disk, a little at a time, whatever somebody builds meanwhile.
//!
//! The measurement goes by descriptors and follows no link. It holds one descriptor and a few bytes
//! for each level above it, whatever number of names a directory has and however deep the tree is.
//! Blocks count and not lengths, since a sparse file may be any length. A file of several names
//! counts for each of them by its share, so that all its names together count for it once.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Stat};

use crate::executor::store::removal;
use crate::limits::TASK_DISK_STEP_MS;

/// The names that are read at once.
const NAMES_BYTES: usize = 4 << 10;

/// The same on the way back from an inner directory: others often follow it, and what is read
/// behind one of them is read again after it.
const NAMES_AGAIN_BYTES: usize = 512;

/// The unit of `st_blocks` (inode(7)).
const BLOCK_BYTES: u64 = 512;

/// What a name counts for at least: an empty file takes no block, and a file system has room for a
/// bounded number of them. Most have room for one in 16 KiB.
const FILE_BYTES_MIN: u64 = 4 << 10;

/// A measurement that is under way.
#[derive(Debug)]
pub struct Measurement {
    /// The directory that is being looked through; none at the end.
    dir: Option<OwnedFd>,
    /// Where the look goes on in it.
    position: u64,
    above: Vec<Level>,
    device: u64,
    bytes: u64,
    closed: Closed,
    /// Names at the top that do not count.
    without: &'static [&'static str],
}

/// A directory above the one that is being looked through.
#[derive(Debug)]
struct Level {
    inode: u64,
    position: u64,
}

/// What becomes of a directory that its owner may not look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It counts without what is in it: a program that runs may have closed it for a purpose.
    Skipped,
    /// It is opened to its owner.
    Opened,
}

/// How far a look through a directory has come.
enum Look {
    /// To a directory in it, which comes first.
    Inner(OwnedFd),
    /// To its end.
    End,
    /// To the end of its time.
    Later,
}

impl Measurement {
    /// Begins to measure what a directory and all below it take. What is not there takes nothing.
    pub fn of(path: &Path, closed: Closed) -> Self {
        let top = open(CWD, path, closed);
        let found = top.as_ref().and_then(|top| rustix::fs::fstat(top).ok());
        Self {
            dir: top.filter(|_| found.is_some()),
            position: 0,
            above: Vec::new(),
            device: found.as_ref().map_or(0, |found| found.st_dev),
            bytes: found.as_ref().map_or(0, bytes_of),
            closed,
            without: &[],
        }
    }

    /// Leaves out what has one of these names at the top.
    pub fn without(self, names: &'static [&'static str]) -> Self {
        Self {
            without: names,
            ..self
        }
    }

    /// What was found so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Goes on until a time. Tells whether the measurement is done.
    pub fn advance(&mut self, until: Instant) -> bool {
        while let Some(dir) = self.dir.take() {
            self.dir = match self.look_through(&dir, until) {
                Look::Inner(inner) => Some(inner),
                Look::End => self.ascend(&dir),
                Look::Later => Some(dir),
            };
            if Instant::now() >= until {
                break;
            }
        }
        self.dir.is_none()
    }

    /// Goes on to the end, or until `is_stopped` says so.
    pub fn finish(mut self, is_stopped: &dyn Fn() -> bool) -> u64 {
        let step = Duration::from_millis(TASK_DISK_STEP_MS);
        while !self.advance(Instant::now() + step) && !is_stopped() {}
        self.bytes
    }

    fn look_through(&mut self, dir: &OwnedFd, until: Instant) -> Look {
        if rustix::fs::seek(dir, SeekFrom::Start(self.position)).is_err() {
            return Look::End;
        }
        let mut buffer = [MaybeUninit::uninit(); NAMES_BYTES];
        let names_bytes = match self.position {
            0 => NAMES_BYTES,
            _ => NAMES_AGAIN_BYTES,
        };
        let mut entries = RawDir::new(dir, &mut buffer[..names_bytes]);
        while let Some(Ok(entry)) = entries.next() {
            self.position = entry.next_entry_cookie();
            if let Some(inner) = self.count(dir, entry.file_name()) {
                return Look::Inner(inner);
            }
            if Instant::now() >= until {
                return Look::Later;
            }
        }
        Look::End
    }

    /// Counts one name of a directory. Gives the directory of that name, if there is one to be
    /// looked through.
    fn count(&mut self, dir: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
        if matches!(name.to_bytes(), b"." | b"..") {
            return None;
        }
        let is_called = |known: &&str| known.as_bytes() == name.to_bytes();
        if self.above.is_empty() && self.without.iter().any(is_called) {
            return None;
        }
        let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        self.bytes = self.bytes.saturating_add(bytes_of(&found));
        if !is_dir(&found) || found.st_dev != self.device {
            return None;
        }
        let inner = open(dir, name, self.closed)?;
        // Without the way back, the rest of this directory would be lost.
        let back = rustix::fs::statat(&inner, c"..", AtFlags::empty()).ok()?;
        self.above.push(Level {
            inode: back.st_ino,
            position: self.position,
        });
        self.position = 0;
        Some(inner)
    }

    /// The directory above, unless this one was moved meanwhile: then the measurement ends, and
    /// what it has found is less than there is.
    fn ascend(&mut self, dir: &OwnedFd) -> Option<OwnedFd> {
        let level = self.above.pop()?;
        let outer = open(dir, c"..", Closed::Skipped)?;
        let found = rustix::fs::fstat(&outer).ok()?;
        self.position = level.position;
        (found.st_ino == level.inode && found.st_dev == self.device).then_some(outer)
    }
}

/// What a directory and all below it take, after the end of whoever works in it.
pub fn bytes_on_disk(path: &Path) -> u64 {
    Measurement::of(path, Closed::Opened).finish(&|| false)
}

fn open(
    parent: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg + Copy,
    closed: Closed,
) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    match closed {
        Closed::Skipped => rustix::fs::openat(parent, name, flags, Mode::empty()).ok(),
        Closed::Opened => removal::open_dir(parent, name).ok(),
    }
}

fn is_dir(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

/// What a name counts for.
pub fn bytes_of(found: &Stat) -> u64 {
    let bytes = u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK_BYTES;
    let bytes = bytes.max(FILE_BYTES_MIN);
    match is_dir(found) {
        true => bytes,
        false => bytes.div_ceil(u64::from(found.st_nlink as u32).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    const MIB: usize = 1 << 20;

    fn world() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).expect("a directory");
        (folder, tree)
    }

    #[test]
    fn blocks_count_and_lengths_links_and_further_names_do_not() {
        let (folder, tree) = world();
        fs::write(folder.path().join("outside"), vec![1; 8 * MIB]).expect("a file");
        fs::create_dir_all(tree.join("a/b")).expect("directories");
        fs::write(tree.join("a/b/file"), vec![1; MIB]).expect("a file");
        for name in ["second", "a/third"] {
            fs::hard_link(tree.join("a/b/file"), tree.join(name)).expect("a name");
        }
        let sparse = fs::File::create(tree.join("sparse")).expect("a file");
        sparse.set_len(3 << 40).expect("a length");
        symlink(folder.path().join("outside"), tree.join("link")).expect("a link");
        symlink("..", tree.join("up")).expect("a link");
        let blocks = |name: &str| fs::symlink_metadata(tree.join(name)).expect(name).blocks() * 512;
        let blocks = |name: &str| blocks(name).max(FILE_BYTES_MIN);
        let names = ["", "a", "a/b", "a/b/file", "sparse", "link", "up"];
        let wanted: u64 = names.into_iter().map(blocks).sum();
        let bytes = bytes_on_disk(&tree);
        assert!(bytes.abs_diff(wanted) < 3, "{bytes} and not {wanted}");
        assert_eq!(bytes_on_disk(&tree.join("absent")), 0);
    }

    /// A measurement by paths ended where paths are too long, so that a deep tree took nothing.
    #[test]
    fn what_lies_too_deep_for_a_path_and_behind_closed_directories_counts() {
        const LEVELS: usize = 3_000;
        let (folder, tree) = world();
        fs::write(tree.join("file"), vec![1; MIB]).expect("a file");
        for _ in 0..LEVELS {
            let outer = folder.path().join("outer");
            fs::create_dir(&outer).expect("a directory");
            fs::rename(&tree, outer.join("d")).expect("a move");
            fs::rename(&outer, &tree).expect("a move");
        }
        let closed = tree.join("closed");
        fs::create_dir(&closed).expect("a directory");
        fs::write(closed.join("file"), vec![1; MIB]).expect("a file");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("a mode");
        assert!(bytes_on_disk(&tree) >= 2 * MIB as u64);
        removal::remove_tree(&tree).expect("a removal");
    }

    /// A step of no time makes its way all the same, and the sum is that of one step.
    #[test]
    fn a_measurement_in_small_steps_finds_the_same() {
        let (_folder, tree) = world();
        for number in 0..300 {
            let dir = tree.join(format!("{}/{number}", number % 7));
            fs::create_dir_all(&dir).expect("directories");
            fs::write(dir.join("file"), vec![1; number]).expect("a file");
        }
        let mut measurement = Measurement::of(&tree, Closed::Skipped);
        let mut steps = 0;
        while !measurement.advance(Instant::now()) {
            steps += 1;
            assert!(steps < 10_000);
        }
        assert!(steps > 300, "{steps}");
        assert_eq!(measurement.bytes(), bytes_on_disk(&tree));
    }

    #[test]
    fn a_directory_that_is_moved_away_does_not_lead_the_measurement_out() {
        let (folder, tree) = world();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir_all(tree.join("inner/innermost")).expect("directories");
        fs::create_dir(&elsewhere).expect("a directory");
        fs::write(elsewhere.join("file"), vec![1; 4 * MIB]).expect("a file");
        let mut measurement = Measurement::of(&tree, Closed::Skipped);
        while measurement.above.is_empty() {
            assert!(!measurement.advance(Instant::now()));
        }
        fs::rename(tree.join("inner"), elsewhere.join("inner")).expect("a move");
        let until = Instant::now() + Duration::from_secs(10);
        assert!(measurement.advance(until));
        assert!(measurement.bytes() < MIB as u64);
    }
}
