//! The directory that an agent worked in, made fit for git to take its files in.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType};

use crate::executor::run::git_dirs::{GIT_DIR_NAMES, HEAD};
use crate::executor::run::result::name_of;
use crate::executor::store::removal::{is_dir, open_dir, remove_tree, remove_tree_at};
use crate::wire::writer::start_of;

/// What an error shows of a path.
const PATH_SHOWN_BYTES_MAX: usize = 256;

/// Readies a working tree for git, which takes its files for what they are: repositories that lie
/// in it are taken out, so that no configuration of theirs is looked at, what is not a file
/// is removed, since git would wait for it, and what its owner cannot read becomes readable. Tells
/// where repositories were. It ends early when `is_stopped` says so.
pub fn prepare_for_git(
    work: &Path,
    to: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Vec<String>, String> {
    let mut repositories = Vec::new();
    let mut folders = vec![work.to_owned()];
    while let Some(folder) = folders.pop() {
        if is_stopped() {
            return Err("it was ended together with its task".into());
        }
        let failed = |error: io::Error| {
            let inside = folder
                .strip_prefix(work)
                .unwrap_or(&folder)
                .to_string_lossy();
            format!("{:?}: {error}", start_of(&inside, PATH_SHOWN_BYTES_MAX))
        };
        allow(&folder, 0o700).map_err(failed)?;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if entry.file_name().eq_ignore_ascii_case(".git") {
                if folder != work {
                    fs::create_dir_all(to).map_err(failed)?;
                    fs::rename(&path, to.join(repositories.len().to_string())).map_err(failed)?;
                    let inside = folder.strip_prefix(work).unwrap_or(&folder);
                    repositories.push(name_of(inside.as_os_str().as_bytes()));
                }
            } else if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                allow(&path, 0o400).map_err(failed)?;
            } else if !kind.is_symlink() {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
    }
    Ok(repositories)
}

/// Takes from a clone that is kept whatever git would look at by itself: somebody who opens the
/// clone, with git or with an editor, runs nothing that the agent has configured. A clone of which
/// that cannot be said is removed.
///
/// # Errors
///
/// The clone cannot be made safe and was removed, or cannot even be removed.
pub fn disarm(work: &Path) -> io::Result<()> {
    let _alone = alone_with(work)?;
    let disarmed = match is_plain_dir(work) {
        true => remove_repositories(work),
        false => Err(io::Error::other(
            "something else is in the place of the clone",
        )),
    };
    if disarmed.is_err() {
        remove_tree(work)?;
    }
    disarmed
}

/// A watchman and the next executor may come to a clone at the same time. The lock is on the
/// directory of the task, which no program of the task can open.
fn alone_with(work: &Path) -> io::Result<File> {
    let dir = File::open(work.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    dir.lock()?;
    Ok(dir)
}

/// What a record says of a clone that was kept.
pub fn is_in(work: &Path) -> String {
    format!("what the agent has left is in {}", work.display())
}

/// What a record says of a clone that was not kept.
pub fn not_kept(error: &io::Error) -> String {
    format!("the clone of the agent was not kept: {error}")
}

/// Disarms every directory of a tree. It goes by descriptors, and holds one of them and the names
/// of the directories that are still to come, so that no depth is too much for it.
fn remove_repositories(work: &Path) -> io::Result<()> {
    let mut dir = open_dir(CWD, work)?;
    let mut names = disarm_dir(&dir)?;
    let mut above = Vec::new();
    loop {
        if let Some(name) = names.pop() {
            let inner = open_dir(&dir, name.as_c_str())?;
            above.push((inode(&dir)?, names));
            names = disarm_dir(&inner)?;
            dir = inner;
        } else if let Some((outer_inode, outer_names)) = above.pop() {
            dir = open_dir(&dir, c"..")?;
            if inode(&dir)? != outer_inode {
                return Err(io::Error::other(
                    "a directory of the clone was moved meanwhile",
                ));
            }
            names = outer_names;
        } else {
            return Ok(());
        }
    }
}

fn inode(dir: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = rustix::fs::fstat(dir)?;
    Ok((found.st_dev, found.st_ino))
}

/// Removes what is called `.git`, in any case, from a directory, and has the directory not be a git
/// directory by itself, as a bare repository is. Git knows one by its HEAD, which keeps what it has
/// under another name. Gives the names of the directories that lie in it.
fn disarm_dir(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut inner = Vec::new();
    let mut heads = Vec::new();
    let mut has = [false; GIT_DIR_NAMES.len()];
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if name.to_bytes().eq_ignore_ascii_case(b".git") {
            remove_tree_at(dir, name)?;
            continue;
        }
        let is_called = |known: &&str| name.to_bytes().eq_ignore_ascii_case(known.as_bytes());
        if is_called(&HEAD) {
            heads.push(name.to_owned());
        }
        if let Some(at) = GIT_DIR_NAMES.iter().position(is_called) {
            has[at] = true;
        }
        match entry.file_type() {
            FileType::Directory => inner.push(name.to_owned()),
            // Not every file system tells the kind of an entry.
            FileType::Unknown if is_dir(dir, name) => inner.push(name.to_owned()),
            _ => {}
        }
    }
    let [common, objects, refs] = has;
    if common || objects && refs {
        for head in heads {
            disarm_head(dir, head, &mut inner)?;
        }
    }
    Ok(inner)
}

/// Gives a HEAD another name, under which it may be a directory that is still to come.
fn disarm_head(dir: &OwnedFd, head: CString, inner: &mut Vec<CString>) -> io::Result<()> {
    let name = CString::new([head.to_bytes(), b".disarmed"].concat())?;
    remove_tree_at(dir, name.as_c_str())?;
    rustix::fs::renameat(dir, head.as_c_str(), dir, name.as_c_str())?;
    inner.retain(|known| *known != name);
    for known in inner.iter_mut().filter(|known| **known == head) {
        known.clone_from(&name);
    }
    Ok(())
}

/// Adds what its owner may do with a file.
fn allow(path: &Path, bits: u32) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    match mode & bits == bits {
        true => Ok(()),
        false => fs::set_permissions(path, fs::Permissions::from_mode(mode | bits)),
    }
}

/// Whether a path is a directory itself, and not a link to one.
pub fn is_plain_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree that is too deep for a path was removed instead of disarmed.
    #[test]
    fn a_clone_that_is_too_deep_for_a_path_is_disarmed_and_kept() {
        const LEVELS: usize = 3_000;
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().join("work");
        fs::create_dir_all(work.join("leaf/.git/objects")).expect("directories");
        fs::create_dir_all(work.join("bare/objects")).expect("directories");
        fs::create_dir_all(work.join("bare/refs")).expect("directories");
        fs::create_dir_all(work.join("bare/HEAD/.GIT")).expect("directories");
        fs::create_dir_all(work.join("bare/HEAD.disarmed/x")).expect("directories");
        for _ in 0..LEVELS {
            let outer = folder.path().join("outer");
            fs::create_dir(&outer).expect("a directory");
            fs::rename(&work, outer.join("d")).expect("a move");
            fs::rename(&outer, &work).expect("a move");
        }
        disarm(&work).expect("a tree of any depth is disarmed");
        let mut dir = open_dir(CWD, work.as_path()).expect("the clone is kept");
        for _ in 0..LEVELS {
            dir = open_dir(&dir, c"d").expect("each level is kept");
        }
        let has = |name: &str| {
            let found = rustix::fs::statat(&dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok()
        };
        assert!(has("leaf") && !has("leaf/.git"));
        assert!(has("bare/HEAD.disarmed") && !has("bare/HEAD"));
        assert!(!has("bare/HEAD.disarmed/.GIT") && !has("bare/HEAD.disarmed/x"));
        remove_tree(&work).expect("a removal");
    }
}
