//! What of a working tree is part of a result: what the user's own git would take of it. A file
//! counts as the agent's work only if it was touched since the checkout, whatever its attributes
//! would make of an untouched one. No I/O.

use std::collections::{HashMap, HashSet};

use crate::executor::run::index_file::{FileStat, IndexEntry, MODULE};

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
    pub modules: Vec<(&'t [u8], &'t str)>,
    /// Files that were touched, or that the agent tracks and nobody did before.
    pub touched: Vec<&'t [u8]>,
    /// Entries of the agent's index that are other than those of the checkout.
    pub staged: Vec<&'t IndexEntry>,
    /// Paths whose files the agent has added or changed in its index alone: it marks them as not
    /// meant to be there.
    pub absent: Vec<&'t [u8]>,
}

impl<'t> Intake<'t> {
    /// Finds it out from the index of the checkout, from that which the agent has left, if it can
    /// be read, and from the files that are there. `is_dir` knows the directories.
    pub fn new(
        checkout: &'t [IndexEntry],
        left: Option<&'t [IndexEntry]>,
        found: &'t [FoundFile],
        is_dir: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let mut intake = Self::default();
        let before: HashMap<&[u8], &IndexEntry> = by_path(checkout);
        let files: HashMap<&[u8], &FoundFile> =
            found.iter().map(|file| (&file.path[..], file)).collect();
        let mut tracked = HashSet::new();
        for entry in left.unwrap_or(checkout) {
            let path = &entry.path[..];
            let old = before.get(path);
            if !tracked.insert(path) {
                continue;
            }
            if entry.mode == MODULE && is_dir(path) {
                if is_plain(path)
                    && old.is_none_or(|old| (old.mode, &old.object) != (MODULE, &entry.object))
                {
                    intake.modules.push((path, &entry.object));
                }
            } else if let Some(file) = files.get(path) {
                let is_staged =
                    old.is_none_or(|old| (old.mode, &old.object) != (entry.mode, &entry.object));
                if is_staged && entry.mode != MODULE {
                    intake.staged.push(entry);
                }
                if is_staged || old.is_none_or(|old| old.stat != file.stat) {
                    intake.touched.push(path);
                }
            } else if entry.is_skipped {
                let is_known = |old: &&&IndexEntry| old.object == entry.object;
                intake
                    .absent
                    .extend(old.filter(is_known).is_none().then_some(path));
            } else if old.is_some() {
                intake.removed.push(path);
            }
        }
        let untracked = checkout.iter().map(|entry| &entry.path[..]);
        let untracked = untracked.filter(|path| !tracked.contains(path));
        intake.removed.extend(untracked);
        intake
    }
}

fn by_path(entries: &[IndexEntry]) -> HashMap<&[u8], &IndexEntry> {
    let paths = entries.iter().map(|entry| (&entry.path[..], entry));
    paths.collect()
}

/// Whether a path stays below the top, and out of git's own directory.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"))
}

/// Names of files that are not part of a result: of a directory that has nothing else, its name and
/// no more.
pub fn left_out(found: &[FoundFile], is_taken: impl Fn(&[u8]) -> bool) -> Vec<&[u8]> {
    let (taken, others): (Vec<&[u8]>, Vec<&[u8]>) = found
        .iter()
        .map(|file| &file.path[..])
        .partition(|path| is_taken(path));
    let kept: HashSet<&[u8]> = taken.into_iter().flat_map(dirs_above).collect();
    let mut names: Vec<&[u8]> = others
        .into_iter()
        .map(|path| {
            let mut dirs = dirs_above(path);
            dirs.find(|dir| !kept.contains(dir)).unwrap_or(path)
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The directories above a path, from the top on, each with the slash at its end.
fn dirs_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(b'/', path).map(|at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, object: &str) -> IndexEntry {
        IndexEntry {
            path: path.into(),
            stat: FileStat::default(),
            mode: if object.is_empty() { 0o100_644 } else { MODULE },
            object: object.into(),
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
        let checkout = [entry("a", ""), entry("gone", ""), entry("untracked", "")];
        let checkout = [&checkout[..], &[entry("m", "1"), entry("n", "1")]].concat();
        let left = [entry("a", ""), entry("forced", ""), entry("gone", "")];
        let modules = [
            entry("m", "2"),
            entry("n", "1"),
            entry("../o", "3"),
            entry("p/.GIT/q", "3"),
        ];
        let left = [&left[..], &modules].concat();
        let found = [file("a"), file("forced"), file("new"), file("untracked")];
        let intake = Intake::new(&checkout, Some(&left), &found, |_| true);
        let wanted = Intake {
            removed: vec![b"gone", b"untracked"],
            modules: vec![(b"m", "2")],
            touched: vec![b"forced"],
            staged: vec![&left[1]],
            absent: Vec::new(),
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
        let found = ["a/b/1", "a/b/2", "a/c", "t/x/1", "t/y", "z"].map(file);
        let names = left_out(&found, |path| path == b"a/c");
        assert_eq!(names, [&b"a/b/"[..], b"t/", b"z"]);
    }
}
