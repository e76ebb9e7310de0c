//! Removes whatever a task has left, however it is built.
//!
//! A task may leave directories that nobody may enter, thousands of levels of them, and names that
//! are as long as names may be. The removal goes by descriptors and never follows a link, so that
//! it leaves the tree no more than the tree's own names do. It needs two descriptors at any depth:
//! a directory that lies in another is moved up beside it first, so that the tree grows wide and
//! never deep.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Removes a file, or a directory with all that is in it. What is not there is removed already.
///
/// # Errors
///
/// What the system does not let go of. The rest is gone.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    remove_tree_at(CWD, path)
}

/// The same for a name in a directory, however deep that directory lies.
///
/// # Errors
///
/// What the system does not let go of. The rest is gone.
pub fn remove_tree_at(parent: impl AsFd, name: impl rustix::path::Arg + Copy) -> io::Result<()> {
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(Errno::NOENT) => return Ok(()),
        other => return Ok(other?),
    }
    let top = open_dir(&parent, name)?;
    let emptied = empty(&top);
    drop(top);
    rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
    emptied
}

/// Removes all that is in a directory.
fn empty(top: &OwnedFd) -> io::Result<()> {
    let mut moved: u64 = 0;
    let mut failure = None;
    loop {
        let directories = remove_files(top, &mut failure)?;
        let Some(first) = directories.first() else {
            break;
        };
        let before = (moved, directories.len());
        for name in &directories {
            if let Err(error) = remove_dir(top, name, &mut moved, &mut failure) {
                failure = Some(error);
            }
        }
        // What can be neither emptied nor moved would be met for ever.
        let after = remove_files(top, &mut failure)?;
        if after.first() == Some(first) && (moved, after.len()) == before {
            break;
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Removes the files of a directory, and names its directories.
fn remove_files(dir: &OwnedFd, failure: &mut Option<io::Error>) -> io::Result<Vec<CString>> {
    let mut directories = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            directories.push(name.to_owned());
            continue;
        }
        match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Not every file system tells the kind of an entry.
            Err(Errno::ISDIR | Errno::PERM) if is_dir(dir, name) => {
                directories.push(name.to_owned())
            }
            Err(error) => *failure = Some(error.into()),
        }
    }
    Ok(directories)
}

/// Removes one directory of a directory, after its own directories were moved up.
fn remove_dir(
    top: &OwnedFd,
    name: &CString,
    moved: &mut u64,
    failure: &mut Option<io::Error>,
) -> io::Result<()> {
    let dir = open_dir(top, name.as_c_str())?;
    for inner in remove_files(&dir, failure)? {
        // A directory can be moved only by who may write it.
        open_dir(&dir, inner.as_c_str())?;
        loop {
            let free = format!(".removed-{moved}");
            *moved += 1;
            match rustix::fs::renameat_with(
                &dir,
                inner.as_c_str(),
                top,
                free.as_str(),
                rustix::fs::RenameFlags::NOREPLACE,
            ) {
                Err(Errno::EXIST) => {}
                other => break other?,
            }
        }
    }
    drop(dir);
    Ok(rustix::fs::unlinkat(
        top,
        name.as_c_str(),
        AtFlags::REMOVEDIR,
    )?)
}

/// Opens a directory itself, and no link to one, and makes sure that its owner may change it.
pub fn open_dir(parent: impl AsFd, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(&parent, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = rustix::fs::fstat(&handle)?.st_mode;
    if mode & 0o700 != 0o700 {
        // A handle that only names a file cannot change its mode itself.
        let itself = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
        rustix::fs::chmod(itself, Mode::from_raw_mode(mode & 0o7777 | 0o700))?;
    }
    Ok(rustix::fs::openat(
        &parent,
        name,
        flags | OFlags::RDONLY,
        Mode::empty(),
    )?)
}

/// Whether a name of a directory is a directory itself, and no link to one.
pub fn is_dir(dir: &OwnedFd, name: &std::ffi::CStr) -> bool {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    /// A folder that goes away with the test, and in it a place with a tree beside what is kept.
    fn world() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("world");
        fs::create_dir_all(root.join("kept")).expect("a directory");
        fs::write(root.join("kept/file"), "kept").expect("a file");
        let tree = root.join("tree");
        fs::create_dir(&tree).expect("a directory");
        (folder, root, tree)
    }

    #[test]
    fn links_lead_nowhere_and_closed_directories_are_opened() {
        let (_folder, root, tree) = world();
        symlink(root.join("kept"), tree.join("link")).expect("a link");
        symlink(root.join("kept/file"), tree.join("file")).expect("a link");
        fs::create_dir_all(tree.join("a/b/c")).expect("directories");
        fs::write(tree.join("a/b/c/x"), "").expect("a file");
        fs::write(tree.join(".removed-0"), "").expect("a file");
        fs::create_dir(tree.join(".removed-1")).expect("a directory");
        for closed in ["a/b/c", "a/b", "a"] {
            let mode = Permissions::from_mode(0o000);
            fs::set_permissions(tree.join(closed), mode).expect("a mode");
        }
        remove_tree(&tree).expect("a removal");
        assert!(!tree.exists());
        assert_eq!(
            fs::read_to_string(root.join("kept/file")).ok().as_deref(),
            Some("kept")
        );
        remove_tree(&tree).expect("what is not there is removed");
        symlink(root.join("kept"), &tree).expect("a link");
        remove_tree(&tree).expect("a link is removed, and not what it leads to");
        assert!(root.join("kept/file").exists());
        remove_tree(&root).expect("an end");
        assert!(!root.exists());
    }

    /// 15,000 levels overflowed the stack of a removal that called itself (attack 9).
    #[test]
    fn a_tree_of_any_depth_is_removed() {
        let (_folder, root, tree) = world();
        let mut at = rustix::fs::open(&tree, OFlags::DIRECTORY | OFlags::PATH, Mode::empty())
            .expect("a directory");
        for _ in 0..15_000 {
            rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o700)).expect("a directory");
            at = rustix::fs::openat(&at, "d", OFlags::DIRECTORY | OFlags::PATH, Mode::empty())
                .expect("a directory");
        }
        drop(at);
        remove_tree(&root).expect("a removal");
        assert!(!root.exists());
    }

    #[test]
    fn a_wide_tree_is_removed() {
        let (_folder, root, tree) = world();
        for number in 0..200 {
            let dir = tree.join(format!("{number}/{}", "x".repeat(255)));
            fs::create_dir_all(&dir).expect("directories");
            fs::write(dir.join("y".repeat(255)), "").expect("a file");
        }
        remove_tree(&root).expect("a removal");
        assert!(!root.exists());
    }

    #[test]
    fn a_tree_that_is_too_deep_for_a_stack_and_for_a_path_is_removed() {
        const LEVELS: usize = 3_000;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let top = place.join("top");
        fs::create_dir(&top).unwrap();
        // Built from the leaf up: each level takes the one before in.
        for level in 0..LEVELS {
            let outer = place.join("outer");
            fs::create_dir(&outer).unwrap();
            fs::rename(&top, outer.join("d")).unwrap();
            fs::rename(&outer, &top).unwrap();
            if level % 1000 == 0 {
                fs::write(top.join("file"), "x").unwrap();
            }
        }
        remove_tree(&top).unwrap();
        assert_eq!(fs::read_dir(place).unwrap().count(), 0);
    }

    #[test]
    fn modes_links_and_what_is_not_there_do_not_stop_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let precious = place.join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let top = place.join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink(&precious, top.join("a/link")).unwrap();
        for closed in [top.join("a/b"), top.join("a"), top.clone()] {
            fs::set_permissions(closed, Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&top).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && precious.join("file").exists());
        let link = place.join("link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        remove_tree(&link).unwrap();
        assert!(!link.is_symlink() && precious.join("file").exists());
        remove_tree(&precious).unwrap();
    }
}
