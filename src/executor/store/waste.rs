//! What a task leaves that nobody needs: it is put out of the way at once, and removed when the end
//! of the task has been told, since the removal of a large tree takes as long as its checkout.

use std::fs;
use std::path::{Path, PathBuf};

use crate::executor::store::removal::remove_tree;
use crate::task::id::TaskId;

/// What is to be removed of one task.
#[derive(Debug)]
pub struct Waste {
    /// Where it is until then: in a directory that the next executor removes when it starts.
    dir: PathBuf,
    pieces: usize,
}

impl Waste {
    /// That of a task, in a directory of the same file system.
    pub fn of_task(scratch: &Path, id: TaskId) -> Self {
        Self {
            dir: scratch.join(format!("waste.{id}")),
            pieces: 0,
        }
    }

    /// Takes a path out of the way. What cannot be moved is removed at once, and what cannot be
    /// removed is only untidy, and goes when the record does.
    pub fn put(&mut self, path: &Path) {
        if fs::symlink_metadata(path).is_err() {
            return;
        }
        let to = self.dir.join(self.pieces.to_string());
        let moved = fs::create_dir_all(&self.dir).and_then(|()| fs::rename(path, to));
        match moved {
            Ok(()) => self.pieces += 1,
            Err(_) => _ = remove_tree(path),
        }
    }

    /// Removes it all.
    pub fn remove(self) {
        let _ = remove_tree(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_away_is_gone_at_once_and_removed_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::create_dir_all(root.join("task/work/deep")).expect("directories");
        fs::write(root.join("task/index"), "x").expect("a file");
        let id = TaskId::parse("tsk_00000000000000000000000001").expect("a name");
        let mut waste = Waste::of_task(&root.join("scratch"), id);
        for name in ["work", "index", "absent"] {
            waste.put(&root.join("task").join(name));
        }
        let left = || {
            fs::read_dir(root.join("task"))
                .expect("a directory")
                .count()
        };
        assert_eq!(left(), 0);
        let kept = fs::read_dir(root.join("scratch"))
            .expect("a directory")
            .count();
        assert_eq!(kept, 1);
        waste.remove();
        assert_eq!(
            fs::read_dir(root.join("scratch"))
                .expect("a directory")
                .count(),
            0
        );
    }
}
