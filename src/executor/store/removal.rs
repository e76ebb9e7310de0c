//! Removes directories that agents have filled: of any depth, of any modes, without recursion.
//!
//! Each directory below the one that is removed is moved up beside it before its files are looked
//! at. So no path grows longer than the system takes, and no stack grows with the depth.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Removes a directory with all that it holds. One that is not there is removed already.
///
/// # Errors
///
/// Something cannot be removed. The rest is removed.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Ok(found) if !found.is_dir() => return fs::remove_file(dir),
        found => drop(found?),
    }
    let mut trash = Trash::beside(dir)?;
    trash.take(dir)?;
    let mut outcome = Ok(());
    while let Some(folder) = trash.folders.pop() {
        outcome = outcome.and(trash.empty(&folder));
    }
    outcome.and(fs::remove_dir(&trash.root))
}

/// Directories that wait to be emptied, all of them in one.
struct Trash {
    root: PathBuf,
    folders: Vec<PathBuf>,
    count: u64,
}

impl Trash {
    /// A new directory beside another one, so that both are on one file system. Its name begins so
    /// that the next executor removes it, should this one end before.
    fn beside(dir: &Path) -> io::Result<Self> {
        let parent = dir.parent().ok_or(ErrorKind::InvalidInput)?;
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let root = parent.join(format!(".new-trash-{name}"));
        match DirBuilder::new().mode(0o700).create(&root) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut trash = Self {
            root,
            folders: Vec::new(),
            count: 0,
        };
        // What was begun before is gone on with.
        for entry in fs::read_dir(&trash.root)?.flatten() {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            trash.count = trash.count.max(number.unwrap_or(0) + 1);
            trash.folders.push(entry.path());
        }
        Ok(trash)
    }

    /// Takes a directory in. It has to be one that may be written, since its parent changes.
    fn take(&mut self, folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let place = self.root.join(self.count.to_string());
        self.count += 1;
        fs::rename(folder, &place)?;
        self.folders.push(place);
        Ok(())
    }

    /// Removes a directory, whose own directories are taken in.
    fn empty(&mut self, folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let mut outcome = Ok(());
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let removed = match entry.file_type()?.is_dir() {
                true => self.take(&entry.path()),
                false => fs::remove_file(entry.path()),
            };
            outcome = outcome.and(removed);
        }
        outcome.and(fs::remove_dir(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("rocco-{name}-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        place
    }

    #[test]
    fn a_tree_that_is_too_deep_for_a_stack_and_for_a_path_is_removed() {
        const LEVELS: usize = 3_000;
        let place = folder("deep");
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
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        fs::remove_dir(place).unwrap();
    }

    #[test]
    fn modes_links_and_what_is_not_there_do_not_stop_it() {
        let place = folder("modes");
        let precious = place.join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let top = place.join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink(&precious, top.join("a/link")).unwrap();
        for closed in [top.join("a/b"), top.join("a"), top.clone()] {
            fs::set_permissions(closed, Permissions::from_mode(0)).unwrap();
        }
        remove_tree(&top).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && precious.join("file").exists());
        let link = place.join("link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        remove_tree(&link).unwrap();
        assert!(!link.is_symlink() && precious.join("file").exists());
        remove_tree(&precious).unwrap();
        fs::remove_dir(place).unwrap();
    }
}
