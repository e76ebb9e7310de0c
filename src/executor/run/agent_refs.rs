//! What an agent has left on branches, tags, stashes and other refs of its clone, read as data. A
//! result is made of the working tree, so that somebody may look in vain for what was committed
//! elsewhere.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::executor::run::result::name_of;
use crate::executor::run::workspace::is_plain_dir;
use crate::executor::store::plain_file::read_plain;
use crate::limits::{AGENT_REFS_MAX, REPO_FILE_BYTES_MAX};

/// A file that is a ref: a commit, or the name of another ref.
const REF_FILE_BYTES_MAX: usize = 4 << 10;

/// Names of refs with what they stand for, in hexadecimal digits.
type Refs = HashMap<Vec<u8>, Vec<u8>>;

/// The refs of an agent's git directory that are other than those that were `given` to it, as git
/// lists these in `packed-refs`, and that stand neither for the base of the task nor for what the
/// agent has checked out.
pub fn left_on_refs(git_dir: &Path, given: &[u8], base: &str) -> Vec<String> {
    if !is_plain_dir(git_dir) {
        return Vec::new();
    }
    let packed = file_of(&git_dir.join("packed-refs"), REPO_FILE_BYTES_MAX);
    let mut refs = packed_in(&packed.unwrap_or_default());
    refs.extend(loose_in(git_dir));
    let head = file_of(&git_dir.join("HEAD"), REF_FILE_BYTES_MAX).unwrap_or_default();
    let head = match head.strip_prefix(b"ref: ") {
        Some(name) => refs.get(name.trim_ascii()).cloned(),
        None => Some(head.trim_ascii().to_vec()),
    };
    let given = packed_in(given);
    let known: HashSet<&[u8]> = head
        .as_deref()
        .into_iter()
        .chain([base.as_bytes()])
        .collect();
    let left = refs
        .iter()
        .filter(|(name, object)| given.get(*name) != Some(object) && !known.contains(&object[..]));
    let mut names: Vec<String> = left.map(|(name, _)| name_of(name)).collect();
    names.sort_unstable();
    names
}

/// The refs of a list, each a line of an object and a name.
fn packed_in(list: &[u8]) -> Refs {
    let lines = list.split(|byte| *byte == b'\n').take(AGENT_REFS_MAX);
    let refs = lines.filter_map(|line| {
        let (object, name) = line.split_at_checked(memchr::memchr(b' ', line)?)?;
        let is_object = object.iter().all(u8::is_ascii_hexdigit);
        is_object.then(|| (name.trim_ascii().to_vec(), object.to_vec()))
    });
    refs.collect()
}

/// The refs that are files of their own.
fn loose_in(git_dir: &Path) -> Refs {
    let mut refs = Refs::new();
    let top = git_dir.join("refs");
    let mut folders: Vec<PathBuf> = is_plain_dir(&top).then_some(top).into_iter().collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    // A search marks commits that were there before.
                    let is_search = entry.path() == git_dir.join("refs/bisect");
                    folders.extend((!is_search).then(|| entry.path()));
                }
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
        if files.len() + folders.len() > AGENT_REFS_MAX {
            break;
        }
    }
    for path in files.iter().take(AGENT_REFS_MAX) {
        let object = file_of(path, REF_FILE_BYTES_MAX);
        let object = object.map(|object| object.trim_ascii().to_vec());
        let name = path
            .strip_prefix(git_dir)
            .map(|name| name.as_os_str().as_bytes());
        if let (Some(object), Ok(name)) = (object, name)
            && !object.is_empty()
            && object.iter().all(u8::is_ascii_hexdigit)
        {
            refs.insert(name.to_vec(), object);
        }
    }
    refs
}

/// What a file holds that is not a link. None if nothing of the kind is there.
fn file_of(path: &Path, bytes_max: usize) -> Option<Vec<u8>> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file.then(|| read_plain(path, bytes_max).ok()?)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_was_left_elsewhere_is_named_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let git_dir = folder.path();
        let write = |name: &str, text: &str| {
            let path = git_dir.join(name);
            fs::create_dir_all(path.parent().expect("above")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        write("HEAD", "ref: refs/heads/mine\n");
        write("refs/heads/mine", "aa\n");
        write("refs/heads/here-too", "aa\n");
        write("refs/heads/x/wip", "bb\n");
        write("refs/heads/odd", "ref: refs/heads/mine\n");
        write("refs/heads/at-base", "00\n");
        write("refs/tags/moved", "cc\n");
        write("refs/stash", "dd\n");
        write("refs/notes/commits", "ee\n");
        write("refs/bisect/bad", "ff\n");
        write(
            "packed-refs",
            "# pack-refs with: sorted\n11 refs/heads/main\n^22\n33 refs/tags/v1\n",
        );
        let given = b"# pack-refs with: sorted \n11 refs/heads/main\n44 refs/tags/moved\n";
        let left = left_on_refs(git_dir, given, "00");
        assert_eq!(
            left,
            [
                "refs/heads/x/wip",
                "refs/notes/commits",
                "refs/stash",
                "refs/tags/moved",
                "refs/tags/v1"
            ]
        );
        write("HEAD", "bb\n");
        let left = left_on_refs(git_dir, given, "00");
        assert!(!left.contains(&"refs/heads/x/wip".to_owned()), "{left:?}");
        assert!(left_on_refs(&git_dir.join("none"), given, "00").is_empty());
    }
}
