//! The state directory, to write to: an append-only file for the states of each task, and every
//! other file put in place whole.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use crate::executor::daemon::warn;
use crate::executor::schedule::task::Task;
use crate::executor::store::plain_file::text_of;
use crate::executor::store::removal::remove_tree;
use crate::executor::store::state_dir::{LOCK, StateDir, StateLine};
use crate::executor::store::state_writer::{LineNumber, StateWriter};
use crate::executor::store::{private_dir, private_file};
use crate::executor::threads;
use crate::limits::{
    EXPIRED_IDS_BYTES_MAX, STATE_FILE_BYTES_MAX, STATE_LOCK_MS_MAX, STATE_OWNER_MS_MAX,
    TASK_SYNC_MS,
};
use crate::task::id::TaskId;

/// What an accepted task survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The death of every process.
    Crash,
    /// That of the machine.
    Power,
}

impl Durability {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Power => "power",
        }
    }
}

/// The state directory, to write to.
#[derive(Debug)]
pub struct Journal {
    state_dir: StateDir,
    durable: Durability,
    states: StateWriter,
    /// Files that a thread of its own brings to the disk soon.
    later: Sender<PathBuf>,
    /// The system gives the lock back when the process ends.
    _lock: File,
}

/// The directory cannot be had.
#[derive(Debug)]
pub enum StateDirError {
    /// Another executor has it.
    Owned,
    /// The system does not give it, or what is in it: what, and why.
    System(PathBuf, io::Error),
}

impl Journal {
    /// Takes the directory, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// Another executor has it, or the system does not give it.
    pub fn open(root: PathBuf, durable: Durability) -> Result<Self, StateDirError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| StateDirError::System(path, error)
        };
        if let Some(parent) = root.parent() {
            let made = fs::create_dir_all(parent).map_err(|error| match error.kind() {
                // Something else has its name.
                ErrorKind::AlreadyExists => ErrorKind::NotADirectory.into(),
                _ => error,
            });
            made.map_err(at(parent))?;
        }
        private_dir(&root).map_err(at(&root))?;
        let found = fs::metadata(&root).map_err(at(&root))?;
        if found.permissions().mode() & 0o022 != 0 {
            let what = "others may write there: it needs the mode 0700";
            return Err(at(&root)(io::Error::new(ErrorKind::PermissionDenied, what)));
        }
        let tasks = root.join("tasks");
        private_dir(&tasks).map_err(at(&tasks))?;
        let root = root.canonicalize().map_err(at(&root))?;
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false).mode(0o600);
        let lock_path = root.join(LOCK);
        let lock = options.open(&lock_path).map_err(at(&lock_path))?;
        own(&lock).map_err(|refused| refused.map_or(StateDirError::Owned, at(&lock_path)))?;
        let later = syncer().map_err(at(&root))?;
        let journal = Self {
            states: StateWriter::start(later.clone()).map_err(at(&root))?,
            state_dir: StateDir::new(root),
            durable,
            later,
            _lock: lock,
        };
        journal.tidy().map_err(at(&tasks))?;
        Ok(journal)
    }

    /// The directory, to read.
    pub fn state_dir(&self) -> &StateDir {
        &self.state_dir
    }

    /// What an accepted task survives.
    pub fn durable(&self) -> Durability {
        self.durable
    }

    /// Removes what was not put in place, and cuts lines that were not written to their end.
    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.state_dir.tasks())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(".new-")) {
                remove_residue(&path);
            } else if name.and_then(TaskId::parse).is_some() {
                tidy_task(&path)?;
                let states = path.join("state.ndjson");
                // Which task it is that cannot be read is for a person to see to.
                cut_torn_line(&states).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", states.display()))
                })?;
            }
        }
        Ok(())
    }

    /// Makes a task's directory: all of it, or none.
    pub fn accept(&self, task: &Task, goal: &str) -> io::Result<()> {
        let new = self.state_dir.tasks().join(format!(".new-{}", task.id));
        remove_tree(&new)?;
        private_dir(&new)?;
        let line = StateLine::first(task.created_ms).to_json();
        let files = [("task.json", task.to_json() + "\n"), ("state.ndjson", line)];
        for (name, text) in files.into_iter().chain([("goal", goal.to_owned())]) {
            let mut file = private_file(&new.join(name))?;
            file.write_all(text.as_bytes())?;
            if self.durable == Durability::Power {
                file.sync_data()?;
            }
        }
        if self.durable == Durability::Power {
            File::open(&new)?.sync_all()?;
        }
        let dir = self.state_dir.dir(task.id);
        fs::rename(&new, &dir)?;
        match self.durable {
            Durability::Power => File::open(self.state_dir.tasks())?.sync_all()?,
            Durability::Crash => {
                for name in ["task.json", "state.ndjson", "goal", "", ".."] {
                    self.soon(dir.join(name));
                }
            }
        }
        Ok(())
    }

    /// The states of tasks, which are written in their order and never waited for with a lock held.
    pub fn states(&self) -> &StateWriter {
        &self.states
    }

    /// Hands a state over to be appended.
    pub fn append(&self, id: TaskId, line: StateLine) -> LineNumber {
        self.states.hand_over(self.state_file(id), line)
    }

    /// The file of a task's states.
    fn state_file(&self, id: TaskId) -> PathBuf {
        self.state_dir.dir(id).join("state.ndjson")
    }

    /// Puts a file of a task in place whole.
    pub fn put(&self, id: TaskId, name: &str, text: &str) -> io::Result<()> {
        let dir = self.state_dir.dir(id);
        let new = dir.join(format!(".new-{name}"));
        let mut file = private_file(&new)?;
        file.write_all(text.as_bytes())?;
        if self.durable == Durability::Power {
            file.sync_data()?;
        }
        fs::rename(&new, dir.join(name))?;
        match self.durable {
            Durability::Power => File::open(&dir)?.sync_all(),
            Durability::Crash => {
                self.soon(dir.join(name));
                Ok(())
            }
        }
    }

    /// Keeps the name of a task that is past keeping, and takes its files out of the way. Tells
    /// where they are, to be removed.
    pub fn retire(&self, id: TaskId) -> io::Result<PathBuf> {
        let path = self.state_dir.root().join("expired");
        let names = text_of(&path, STATE_FILE_BYTES_MAX).unwrap_or_default();
        let surplus = names.len().saturating_sub(EXPIRED_IDS_BYTES_MAX);
        let kept = names
            .get(surplus..)
            .and_then(|names| names.split_once('\n'));
        let kept = if surplus == 0 {
            names.as_str()
        } else {
            kept.map_or("", |(_, kept)| kept)
        };
        let new = self.state_dir.root().join(".new-expired");
        private_file(&new)?.write_all(format!("{kept}{id}\n").as_bytes())?;
        fs::rename(&new, &path)?;
        // It goes at once for whoever looks, and what is left of it when the executor starts again.
        let gone = self.state_dir.tasks().join(format!(".new-gone-{id}"));
        remove_tree(&gone)?;
        fs::rename(self.state_dir.dir(id), &gone)?;
        Ok(gone)
    }

    fn soon(&self, path: PathBuf) {
        // The thread lives as long as the journal.
        let _ = self.later.send(path);
    }
}

/// Makes this process the owner.
///
/// Whoever looks at tasks has a shared lock for a moment. An executor that was killed while it
/// started a program leaves its exclusive lock with that program until the program is loaded. Both
/// are waited for. Fails with what the system says, or with nothing where another executor has it.
fn own(lock: &File) -> Result<(), Option<io::Error>> {
    let started = Instant::now();
    let waited_for = |bound_ms| started.elapsed() > Duration::from_millis(bound_ms);
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Some(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        match lock.try_lock_shared() {
            Ok(()) => lock.unlock().map_err(Some)?,
            Err(TryLockError::Error(error)) => return Err(Some(error)),
            Err(TryLockError::WouldBlock) if !waited_for(STATE_OWNER_MS_MAX) => {}
            Err(TryLockError::WouldBlock) => return Err(None),
        }
        if waited_for(STATE_LOCK_MS_MAX) {
            let what = "somebody holds a shared lock on it and does not let go";
            return Err(Some(io::Error::other(what)));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes what was not put in place in a task's directory.
fn tidy_task(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".new-") {
            remove_residue(&entry.path());
        }
    }
    Ok(())
}

/// Removes what is left over. It must not keep the executor from its start.
fn remove_residue(path: &Path) {
    if let Err(error) = remove_tree(path) {
        warn(&format!("{} cannot be removed: {error}", path.display()));
    }
}

fn cut_torn_line(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
    if whole < text.len() {
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
    }
    Ok(())
}

/// Starts a thread that brings files to the disk a moment after they were written.
fn syncer() -> io::Result<Sender<PathBuf>> {
    let (sender, receiver) = mpsc::channel::<PathBuf>();
    threads::start("sync", move || {
        while let Ok(first) = receiver.recv() {
            std::thread::sleep(Duration::from_millis(TASK_SYNC_MS));
            let paths: BTreeSet<PathBuf> = receiver.try_iter().chain([first]).collect();
            for path in paths {
                // What is gone by now needs no disk, and a disk that fails is found by the next
                // who writes.
                let _ = File::open(&path).and_then(|file| file.sync_data());
            }
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody who listed tasks in a loop kept an executor from its start.
    #[test]
    fn whoever_looks_keeps_no_executor_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("state");
        let journal = |durable| Journal::open(root.clone(), durable);
        let first = journal(Durability::Crash).unwrap();
        assert!(matches!(
            journal(Durability::Crash),
            Err(StateDirError::Owned)
        ));
        drop(first);
        // Longer than the ten attempts that there were, and with no moment in between.
        let looking = File::open(root.join(LOCK)).unwrap();
        looking.lock_shared().unwrap();
        let look = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            drop(looking);
        });
        let second = journal(Durability::Crash).unwrap();
        look.join().unwrap();
        assert!(second.state_dir().is_owned());
    }

    /// An executor that was killed in the moment in which it started a program kept the next one
    /// from its start.
    #[test]
    fn the_lock_of_an_executor_that_was_killed_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("state");
        let first = Journal::open(root.clone(), Durability::Crash).unwrap();
        let held_by_its_child = first._lock.try_clone().unwrap();
        drop(first);
        let child = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(STATE_OWNER_MS_MAX / 4));
            drop(held_by_its_child);
        });
        assert!(Journal::open(root, Durability::Crash).is_ok());
        child.join().unwrap();
    }

    #[test]
    fn a_torn_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("torn");
        for (before, after) in [("a\nb\n", "a\nb\n"), ("a\nb", "a\n"), ("a", ""), ("", "")] {
            fs::write(&path, before).unwrap();
            cut_torn_line(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
        fs::remove_file(&path).unwrap();
        cut_torn_line(&path).unwrap();
    }
}
