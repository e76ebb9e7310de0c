//! What of a working tree is part of a result: what the user's own git would take of it. A file
//! counts as the agent's work only if it was touched since the checkout, whatever its attributes
//! would make of an untouched one. No I/O.

use crate::executor::run::index_file::{FileStat, IndexEntry, MODULE};
use crate::executor::run::object_name::ObjectName;

/// A file of a working tree, or a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Where it is, below the top.
    pub path: Vec<u8>,
    /// How it stands.
    pub stat: FileStat,
    /// What it holds, in bytes.
    pub bytes: u64,
}

/// What has to be done to the index of the checkout, before files that nobody tracks come to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Intake<'t> {
    /// Paths that are gone, or that the agent tracks no longer.
    pub removed: Vec<&'t [u8]>,
    /// Submodules that were added or moved, and their commits.
    pub modules: Vec<(&'t [u8], ObjectName)>,
    /// Files that were touched, or that the agent tracks and nobody did before.
    pub touched: Vec<&'t FoundFile>,
    /// Entries of the checkout for such files, where git may take the file for what it was.
    pub alike: Vec<&'t IndexEntry>,
    /// Entries of the agent's index that are other than those of the checkout.
    pub staged: Vec<&'t IndexEntry>,
    /// Paths whose files the agent has added or changed in its index alone: it marks them as not
    /// meant to be there.
    pub absent: Vec<&'t [u8]>,
    /// Files that the agent does not track.
    pub untracked: Vec<&'t FoundFile>,
}

impl<'t> Intake<'t> {
    /// Finds it out from the index of the checkout, from that which the agent has left, if it can
    /// be read, and from the files that are there, all of them in the order of their paths.
    /// `is_dir` knows the directories.
    pub fn new(
        mut checkout: &'t [IndexEntry],
        left: Option<&'t [IndexEntry]>,
        mut found: &'t [FoundFile],
        is_dir: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let mut intake = Self::default();
        let mut last = None;
        for entry in left.unwrap_or(checkout) {
            let path = &entry.path[..];
            // A file of which a merge has several entries counts once.
            if last.replace(path) == Some(path) {
                continue;
            }
            let (passed, old) = pass_to(path, &mut checkout);
            intake.removed.extend(passed.iter().map(HasPath::path));
            let (passed, file) = pass_to(path, &mut found);
            intake.untracked.extend(passed);
            if entry.mode == MODULE && is_dir(path) {
                intake.take_module(entry, old);
            } else {
                intake.take_file(entry, old, file);
            }
        }
        intake.removed.extend(checkout.iter().map(HasPath::path));
        intake.untracked.extend(found);
        intake
    }

    fn take_module(&mut self, entry: &'t IndexEntry, old: Option<&IndexEntry>) {
        if is_plain(&entry.path) && is_other(entry, old) {
            self.modules.push((&entry.path, entry.object));
        }
    }

    fn take_file(
        &mut self,
        entry: &'t IndexEntry,
        old: Option<&'t IndexEntry>,
        file: Option<&'t FoundFile>,
    ) {
        if let Some(file) = file {
            let is_staged = is_other(entry, old);
            if is_staged && entry.mode != MODULE {
                self.staged.push(entry);
            }
            if is_staged || old.is_none_or(|old| old.stat != file.stat) {
                self.touched.push(file);
                let is_alike = |old: &&IndexEntry| old.stat.may_pass_for(file.stat);
                self.alike.extend(old.filter(is_alike));
            }
        } else if entry.is_skipped {
            if old.is_none_or(|old| old.object != entry.object) {
                self.absent.push(&entry.path);
            }
        } else if old.is_some() {
            self.removed.push(&entry.path);
        }
    }
}

/// Whether an entry is other than that of the checkout.
fn is_other(entry: &IndexEntry, old: Option<&IndexEntry>) -> bool {
    old.is_none_or(|old| (old.mode, old.object) != (entry.mode, entry.object))
}

/// What is listed in the order of its path.
trait HasPath {
    fn path(&self) -> &[u8];
}

impl HasPath for IndexEntry {
    fn path(&self) -> &[u8] {
        &self.path
    }
}

impl HasPath for FoundFile {
    fn path(&self) -> &[u8] {
        &self.path
    }
}

/// Goes on in a list behind a path. Gives what it has passed, and what is at the path.
fn pass_to<'t, T: HasPath>(path: &[u8], rest: &mut &'t [T]) -> (&'t [T], Option<&'t T>) {
    let passed = rest.iter().take_while(|other| other.path() < path).count();
    let (passed, others) = rest.split_at(passed);
    let at_path = others.first().filter(|other| other.path() == path);
    *rest = &others[usize::from(at_path.is_some())..];
    (passed, at_path)
}

/// Whether a path stays below the top, and out of git's own directory.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"))
}

/// Names of files that are not part of a result: of a directory that has nothing else, its name and
/// no more. Both lists are in the order of the paths.
pub fn left_out<'t>(found: &[FoundFile], mut left: &[&'t [u8]]) -> Vec<&'t [u8]> {
    let mut names = Vec::new();
    while let Some((path, others)) = left.split_first() {
        let in_dir = |dir: &[u8]| left.partition_point(|path| path.starts_with(dir));
        let mut dirs = dirs_above(path);
        let whole = dirs.find(|dir| in_dir(dir) == files_in(found, dir));
        names.push(whole.unwrap_or(path));
        left = whole.map_or(others, |dir| &left[in_dir(dir)..]);
    }
    names
}

/// How many files are in a directory, whose name ends in a slash.
fn files_in(found: &[FoundFile], dir: &[u8]) -> usize {
    let before = found.partition_point(|file| &file.path[..] < dir);
    found[before..].partition_point(|file| file.path.starts_with(dir))
}

/// The directories above a path, from the top on, each with the slash at its end.
fn dirs_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(b'/', path).map(|at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(object: &str) -> ObjectName {
        ObjectName::of(object.as_bytes()).expect("a name")
    }

    fn entry(path: &str, object: &str) -> IndexEntry {
        IndexEntry {
            path: path.into(),
            stat: FileStat::default(),
            mode: if object.is_empty() { 0o100_644 } else { MODULE },
            object: name(object),
            is_skipped: false,
        }
    }

    fn file(path: &str) -> FoundFile {
        FoundFile {
            path: path.into(),
            stat: FileStat::default(),
            bytes: 0,
        }
    }

    #[test]
    fn the_index_of_the_agent_says_what_is_tracked() {
        let checkout = [entry("a", ""), entry("gone", ""), entry("m", "1")];
        let checkout = [&checkout[..], &[entry("n", "1"), entry("untracked", "")]].concat();
        let left = [
            entry("../o", "3"),
            entry("a", ""),
            entry("forced", ""),
            entry("gone", ""),
            entry("m", "2"),
            entry("n", "1"),
            entry("p/.GIT/q", "3"),
        ];
        let found = [file("a"), file("forced"), file("new"), file("untracked")];
        let intake = Intake::new(&checkout, Some(&left), &found, |_| true);
        let wanted = Intake {
            removed: vec![b"gone", b"untracked"],
            modules: vec![(b"m", name("2"))],
            touched: vec![&found[1]],
            alike: Vec::new(),
            staged: vec![&left[2]],
            absent: Vec::new(),
            untracked: vec![&found[2], &found[3]],
        };
        assert_eq!(intake, wanted);
        // Without an index of the agent's, what was tracked is.
        let intake = Intake::new(&checkout, None, &found, |_| false);
        assert_eq!(intake.removed, [&b"gone"[..], b"m", b"n"]);
        assert!(intake.touched.is_empty() && intake.modules.is_empty());
    }

    #[test]
    fn a_file_that_is_not_meant_to_be_there_is_not_gone() {
        let checkout = [entry("a", "")];
        let mut left = checkout.clone();
        left[0].is_skipped = true;
        let intake = Intake::new(&checkout, Some(&left), &[], |_| false);
        assert_eq!(intake, Intake::default());
    }

    #[test]
    fn a_directory_of_which_nothing_is_taken_has_one_name() {
        let found = [
            "a/b/1", "a/b/2", "a/c", "t/x/1", "t/y", "u", "v-w", "v/x", "v/y", "va",
        ];
        let left = |taken: &[&str]| {
            let left = found.iter().filter(|path| !taken.contains(*path));
            left.map(|path| path.as_bytes()).collect::<Vec<_>>()
        };
        let files = found.map(file);
        let names = left_out(&files, &left(&["a/c", "u", "v/y"]));
        assert_eq!(names, [&b"a/b/"[..], b"t/", b"v-w", b"v/x", b"va"]);
        let names = left_out(&files, &left(&["a/b/1", "t/x/1"]));
        let wanted = [&b"a/b/2"[..], b"a/c", b"t/y", b"u", b"v-w", b"v/", b"va"];
        assert_eq!(names, wanted);
    }
}
