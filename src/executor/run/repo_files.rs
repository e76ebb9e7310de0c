//! The files of a repository of the user, read as data: bounded, and without waiting for a FIFO.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::executor::store::plain_file::read_plain;
use crate::limits::{REPO_ENTRIES_MAX, REPO_FILE_BYTES_MAX};

/// What the executor reads of a git directory, by itself or by git.
const NAMES_READ: [&str; 10] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
];

/// What is the matter with the links of a repository.
#[derive(Debug)]
pub enum LinkRefused {
    /// One of them leads to where nothing may be read.
    LeadsOut(String),
    /// They cannot be looked at.
    Unreadable(String),
}

/// Reads a small file of a git directory. None if nothing is there.
pub fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_plain(path, REPO_FILE_BYTES_MAX)
}

/// The path that a file consists of, without the ends of lines after it.
pub fn path_of_line(text: &[u8]) -> PathBuf {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    PathBuf::from(OsStr::from_bytes(&text[..end.map_or(0, |end| end + 1)]))
}

/// Looks whether those of a directory's entries that git reads lead to where they may, if they are
/// links.
pub fn look_at_names(
    folder: &Path,
    may_lead_to: impl Fn(&Path) -> bool,
) -> Result<(), LinkRefused> {
    for name in NAMES_READ {
        let path = folder.join(name);
        let is_link = path
            .symlink_metadata()
            .is_ok_and(|found| found.is_symlink());
        if is_link && path.canonicalize().is_ok_and(|real| !may_lead_to(&real)) {
            return Err(LinkRefused::LeadsOut(name_of(&path)));
        }
    }
    Ok(())
}

/// Looks whether every link below these directories leads to where it may. Directories that are
/// reached by a link are looked into once.
pub fn look_below(
    folders: &[PathBuf],
    may_lead_to: impl Fn(&Path) -> bool,
) -> Result<(), LinkRefused> {
    let mut entries_left = REPO_ENTRIES_MAX;
    let mut linked: HashSet<PathBuf> = HashSet::new();
    let mut folders = folders.to_vec();
    while let Some(folder) = folders.pop() {
        let unreadable = |error: io::Error| {
            LinkRefused::Unreadable(format!("{} cannot be read: {error}", name_of(&folder)))
        };
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(error)),
        };
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            entries_left = entries_left.checked_sub(1).ok_or_else(|| {
                LinkRefused::Unreadable(format!(
                    "the git directory has more than {REPO_ENTRIES_MAX} files: `git gc` packs them"
                ))
            })?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink()
                // What leads nowhere is nothing to git either.
                && let Ok(real) = path.canonicalize()
            {
                if !may_lead_to(&real) {
                    return Err(LinkRefused::LeadsOut(name_of(&path)));
                }
                if real.is_dir() && linked.insert(real.clone()) {
                    folders.push(real);
                }
            }
        }
    }
    Ok(())
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    format!("{:?}", name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_not_a_plain_file_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a fifo");
        assert!(read_small(&path).is_err());
        assert!(read_small(folder.path()).is_err());
        assert!(matches!(
            read_small(&folder.path().join("absent")),
            Ok(None)
        ));
        fs::write(
            folder.path().join("large"),
            vec![b'x'; REPO_FILE_BYTES_MAX + 1],
        )
        .expect("a file");
        assert!(read_small(&folder.path().join("large")).is_err());
        assert_eq!(path_of_line(b"a b\r\n\n"), Path::new("a b"));
        assert_eq!(path_of_line(b"\n"), Path::new(""));
    }

    #[test]
    fn links_that_lead_in_a_circle_come_to_an_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        symlink(&root, root.join("self")).expect("a link");
        assert!(look_below(std::slice::from_ref(&root), |_| true).is_ok());
        let below = look_below(&[root], |_| false);
        assert!(matches!(below, Err(LinkRefused::LeadsOut(name)) if name == "\"self\""));
    }
}
