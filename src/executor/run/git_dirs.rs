//! Directories of a tree that git takes for repositories, although none is called `.git`: a command
//! of git that is run there runs what their configuration names. No I/O.

use std::collections::BTreeMap;

use crate::executor::run::result::name_of;
use crate::limits::RESULT_GIT_DIRS_MAX;

/// The file by which git knows a git directory, beside the name of another directory that has
/// the rest, or beside its objects and refs.
pub const HEAD: &str = "HEAD";
/// The names that stand beside it.
pub const GIT_DIR_NAMES: [&str; 3] = ["commondir", "objects", "refs"];

/// Which of these names the directories of a tree have.
#[derive(Debug, Default)]
pub struct GitDirs<'t>(BTreeMap<&'t [u8], [bool; 4]>);

impl<'t> GitDirs<'t> {
    /// Takes note of a file of the tree.
    pub fn see(&mut self, path: &'t [u8]) {
        let mut start = 0;
        while let Some(name) = path.get(start..) {
            let len = memchr::memchr(b'/', name).unwrap_or(name.len());
            let dir = path[..start].strip_suffix(b"/");
            // The root has a git directory of its own, which comes first.
            if let (Some(dir), Some(at)) = (dir, place_of(&name[..len])) {
                let is_known = self.0.contains_key(dir) || self.0.len() < RESULT_GIT_DIRS_MAX;
                if is_known {
                    self.0.entry(dir).or_default()[at] = true;
                }
            }
            start += len + 1;
        }
    }

    /// The directories that have all that git asks for.
    pub fn found(&self) -> Vec<String> {
        let is_one = |has: &[bool; 4]| {
            let [head, common, objects, refs] = *has;
            head && (common || objects && refs)
        };
        let found = self.0.iter().filter(|(_, has)| is_one(has));
        found.map(|(dir, _)| name_of(dir)).collect()
    }
}

fn place_of(name: &[u8]) -> Option<usize> {
    let mut known = std::iter::once(HEAD).chain(GIT_DIR_NAMES);
    known.position(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&'static str]) -> Vec<String> {
        let mut dirs = GitDirs::default();
        for path in paths {
            dirs.see(path.as_bytes());
        }
        dirs.found()
    }

    #[test]
    fn a_directory_that_git_takes_for_a_repository_is_found() {
        assert_eq!(found(&["n/HEAD", "n/objects/.k", "n/refs/.k"]), ["n"]);
        assert_eq!(found(&["a/b/head", "a/b/commondir"]), ["a/b"]);
        assert_eq!(found(&["a/b/HEAD", "a/objects/x", "a/refs"]), [""; 0]);
        assert_eq!(found(&["HEAD", "objects/x", "refs/x"]), [""; 0]);
        assert_eq!(found(&["n/HEAD", "n/objects/x"]), [""; 0]);
    }
}
