//! Directories of a tree that git takes for repositories, although none is called `.git`: a command
//! of git that is run there runs what their configuration names. No I/O.

use crate::executor::run::result::name_of;

/// The file by which git knows a git directory, beside the name of another directory that has
/// the rest, or beside its objects and refs.
pub const HEAD: &str = "HEAD";
/// The names that stand beside it.
pub const GIT_DIR_NAMES: [&str; 3] = ["commondir", "objects", "refs"];

/// Which of these names the directories of a tree have. A directory is done with when the tree goes
/// on elsewhere, so that no number of directories hides one.
#[derive(Debug, Default)]
pub struct GitDirs<'t> {
    /// The file that was seen last.
    last: &'t [u8],
    /// The directories above it, each by its length and the names that it has.
    open: Vec<(usize, [bool; 4])>,
    found: Vec<String>,
}

impl<'t> GitDirs<'t> {
    /// Takes note of a file of the tree. All below a directory comes one after the other, as git
    /// lists a tree.
    pub fn see(&mut self, path: &'t [u8]) {
        let pairs = self.last.iter().zip(path);
        let common = pairs.take_while(|(last, new)| last == new).count();
        while let Some(&(len, _)) = self.open.last() {
            if len <= common && path.get(len) == Some(&b'/') {
                break;
            }
            self.close_one();
        }
        self.last = path;
        // The root has a git directory of its own, which comes first.
        let mut start = match self.open.last() {
            Some((len, _)) => len + 1,
            None => 0,
        };
        loop {
            let len = memchr::memchr(b'/', &path[start..]);
            let name = &path[start..len.map_or(path.len(), |len| start + len)];
            if let (Some((_, has)), Some(at)) = (self.open.last_mut(), place_of(name)) {
                has[at] = true;
            }
            let Some(len) = len else { return };
            self.open.push((start + len, [false; 4]));
            start += len + 1;
        }
    }

    /// The directories that have all that git asks for.
    pub fn found(mut self) -> Vec<String> {
        while !self.open.is_empty() {
            self.close_one();
        }
        self.found
    }

    fn close_one(&mut self) {
        if let Some((len, [head, common, objects, refs])) = self.open.pop()
            && head
            && (common || objects && refs)
        {
            self.found.push(name_of(&self.last[..len]));
        }
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
        let names = ["HEAD", "objects/n/HEAD", "objects/n/commondir", "refs/x"];
        let inner = names.map(|name| ["a/", name].concat());
        let mut dirs = GitDirs::default();
        inner.iter().for_each(|path| dirs.see(path.as_bytes()));
        assert_eq!(dirs.found(), ["a/objects/n", "a"]);
        assert_eq!(
            found(&["a/HEAD", "ab/refs", "b/objects", "b/refs"]),
            [""; 0]
        );
    }

    /// A repository behind 65,536 directories was not told.
    #[test]
    fn no_number_of_directories_hides_a_repository() {
        let mut paths: Vec<String> = (0..70_000).map(|at| format!("a/{at:06}/refs")).collect();
        paths.extend(["z/n/HEAD", "z/n/objects/k", "z/n/refs/k"].map(str::to_owned));
        let mut dirs = GitDirs::default();
        paths.iter().for_each(|path| dirs.see(path.as_bytes()));
        assert_eq!(dirs.found(), ["z/n"]);
    }
}
