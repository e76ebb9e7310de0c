//! The state directory, to read. Everybody may, whether an executor runs or not.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::executor::schedule::queue::TaskEntry;
use crate::executor::schedule::retention::TaskBytes;
use crate::executor::schedule::task::Task;
use crate::executor::store::measurement::bytes_on_disk;
use crate::executor::store::plain_file::{open_plain, read_plain, text_of};
use crate::executor::store::private_file;
use crate::executor::store::removal::remove_tree;
use crate::executor::{clock, json};
use crate::executor_protocol::state::TaskState;
use crate::limits::STATE_FILE_BYTES_MAX;
use crate::task::id::TaskId;

/// The state directory, to read.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
}

/// The file whose lock the owner holds.
pub const LOCK: &str = "lock";

/// The clone that the agent works in.
pub const WORK: &str = "work";

/// What a task needs only while it runs, in its directory.
pub const TRANSIENT: [&str; 6] = ["gate", "git", "home", "index", "nested", "tmp"];

/// A task as it was found.
#[derive(Debug)]
pub struct FoundTask {
    /// What was accepted.
    pub task: Task,
    /// Its last state.
    pub state: TaskState,
    /// When it came to be.
    pub at_ms: u64,
    /// The number of the last change that was kept.
    pub seq: u64,
}

impl StateDir {
    /// The state directory of a path.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Whether there is one: a name that was mistyped is no state without tasks.
    ///
    /// # Errors
    ///
    /// What the system says of its path, or that it is not a directory.
    pub fn look(&self) -> io::Result<()> {
        match fs::metadata(&self.root)?.is_dir() {
            true => Ok(()),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// Its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the directories of tasks are.
    pub fn tasks(&self) -> PathBuf {
        self.root.join("tasks")
    }

    /// The directory of a task.
    pub fn dir(&self, id: TaskId) -> PathBuf {
        self.tasks().join(id.to_string())
    }

    /// Removes what a task needs only while it runs.
    pub fn clear(&self, id: TaskId) {
        for name in TRANSIENT {
            // What cannot be removed is only untidy, and goes when the record does.
            let _ = remove_tree(&self.dir(id).join(name));
        }
    }

    /// Removes what the agent has left, and keeps the record.
    pub fn remove_scratch(&self, id: TaskId) -> io::Result<()> {
        remove_tree(&self.dir(id).join(WORK))
    }

    /// Whether an executor owns it now. The owner's lock is exclusive and this one is shared, so
    /// that nobody who looks is taken for an owner.
    pub fn is_owned(&self) -> bool {
        let lock = open_plain(&self.root.join(LOCK));
        lock.is_ok_and(|lock| lock.is_some_and(|lock| lock.try_lock_shared().is_err()))
    }

    /// Where a task stands now, as far as it can be known. What an executor had in hand that is
    /// gone will not go on.
    pub fn state_of(&self, found: &FoundTask) -> TaskState {
        if !found.state.is_under_way() || self.is_owned() {
            return found.state;
        }
        // An executor may have ended the task, and itself, since the task was read.
        let again = self.found(found.task.id);
        again
            .map_or(found.state, |again| again.state)
            .after_a_crash()
    }

    /// Every task, in the order in which they were accepted. Other files are passed over.
    pub fn tasks_found(&self) -> io::Result<Vec<FoundTask>> {
        let ids = self.names()?.into_iter();
        let mut found: Vec<FoundTask> = ids.filter_map(|id| self.found(id)).collect();
        found.sort_by_key(|found| (found.task.created_ms, found.task.id));
        Ok(found)
    }

    /// Tasks that are there and cannot be read, so that somebody may look at them.
    pub fn tasks_unreadable(&self) -> io::Result<Vec<TaskId>> {
        let mut ids = self.names()?;
        ids.retain(|id| self.found(*id).is_none());
        Ok(ids)
    }

    /// The names of all tasks.
    fn names(&self) -> io::Result<Vec<TaskId>> {
        let entries = match fs::read_dir(self.tasks()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            ids.extend(entry?.file_name().to_str().and_then(TaskId::parse));
        }
        Ok(ids)
    }

    /// A task, if it is there and can be read.
    pub fn found(&self, id: TaskId) -> Option<FoundTask> {
        let dir = self.dir(id);
        let task = Task::of_json(&read_plain(&dir.join("task.json"), STATE_FILE_BYTES_MAX).ok()??)?;
        let states = read_plain(&dir.join("state.ndjson"), STATE_FILE_BYTES_MAX).ok()??;
        let lines = states.split(|&byte| byte == b'\n');
        let last = lines.filter_map(StateLine::parse).next_back();
        let last = last.unwrap_or(StateLine::first(task.created_ms));
        // A result that is in place counts, even if its state could not be written any more.
        let result = text_of(&dir.join("result.json"), STATE_FILE_BYTES_MAX);
        let result = result.and_then(|text| {
            json::with(text.as_bytes(), |result| {
                TaskState::parse(json::text(result, "outcome")?)
            })?
        });
        Some(FoundTask {
            task,
            state: result.unwrap_or(last.state),
            at_ms: last.at_ms,
            seq: last.seq,
        })
    }

    /// The record of a task that has ended, in one line. One that is damaged is none.
    pub fn record(&self, id: TaskId) -> Option<String> {
        let text = text_of(&self.dir(id).join("result.json"), STATE_FILE_BYTES_MAX)?;
        let line = text.trim_end();
        let whole = !line.contains('\n') && json::with(line.as_bytes(), |_| ()).is_some();
        whole.then(|| line.to_owned())
    }

    /// Whether a task was known whose record is gone.
    pub fn is_expired(&self, id: TaskId) -> bool {
        let names = text_of(&self.root.join("expired"), STATE_FILE_BYTES_MAX).unwrap_or_default();
        names.lines().any(|name| TaskId::parse(name) == Some(id))
    }

    /// What a task's files take on disk.
    pub fn bytes(&self, id: TaskId) -> TaskBytes {
        let dir = self.dir(id);
        let all = bytes_on_disk(&dir);
        let scratch = bytes_on_disk(&dir.join(WORK));
        TaskBytes {
            record: all.saturating_sub(scratch),
            scratch,
        }
    }

    /// Asks for the end of a task. The executor that owns the directory looks for it.
    pub fn ask_to_cancel(&self, id: TaskId) -> io::Result<()> {
        private_file(&self.dir(id).join("cancel")).map(drop)
    }

    /// Whether somebody has asked for the end of a task.
    pub fn is_asked_to_cancel(&self, id: TaskId) -> bool {
        self.dir(id).join("cancel").exists()
    }
}

/// Says that a task is there whose files cannot be read.
pub fn damaged_task(state_dir: &StateDir, id: TaskId) -> String {
    format!("the task cannot be read: {}", state_dir.dir(id).display())
}

/// A line of `state.ndjson`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLine {
    /// What the task became.
    pub state: TaskState,
    /// When.
    pub at_ms: u64,
    /// The number of that change.
    pub seq: u64,
}

impl StateLine {
    /// That of a task that is accepted.
    pub fn first(at_ms: u64) -> Self {
        Self {
            state: TaskState::Queued,
            at_ms,
            seq: 0,
        }
    }

    /// Where a task stands.
    pub fn of(entry: &TaskEntry) -> Self {
        Self {
            state: entry.state,
            at_ms: entry.updated_ms,
            seq: entry.seq,
        }
    }

    /// The line, with its LF.
    pub fn to_json(self) -> String {
        let line = json::object(|line| {
            line.string("at", &clock::stamp(self.at_ms));
            line.string("state", self.state.name());
            line.unsigned("seq", self.seq);
        });
        line + "\n"
    }

    /// Reads what [`StateLine::to_json`] wrote. Older ones have no number.
    fn parse(line: &[u8]) -> Option<Self> {
        json::with(line, |line| {
            Some(Self {
                state: TaskState::parse(json::text(line, "state")?)?,
                at_ms: clock::parse(json::text(line, "at")?)?,
                seq: json::unsigned(line, "seq").unwrap_or(0),
            })
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two who looked at once took each other for an executor, and a dead task for one that runs.
    #[test]
    fn nobody_who_looks_is_taken_for_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let place = StateDir::new(root.to_owned());
        assert!(!place.is_owned());
        let open = || private_file(&root.join(LOCK)).unwrap();
        let (first, second) = (open(), open());
        first.lock_shared().unwrap();
        second.lock_shared().unwrap();
        assert!(!place.is_owned());
        drop((first, second));
        let owner = open();
        owner.lock().unwrap();
        assert!(place.is_owned());
        drop(owner);
        assert!(!place.is_owned());
    }

    #[test]
    fn sizes_are_what_the_disk_holds_and_each_file_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let (place, id) = (StateDir::new(folder.path().to_owned()), TaskId::new(1));
        let work = place.dir(id).join(WORK);
        fs::create_dir_all(&work).unwrap();
        fs::File::create(work.join("sparse"))
            .and_then(|file| file.set_len(3 << 40))
            .unwrap();
        let sparse = place.bytes(id);
        assert!(sparse.scratch < 1 << 20, "{sparse:?}");
        fs::write(work.join("full"), vec![1; 1 << 20]).unwrap();
        for link in ["one", "two", "three"] {
            fs::hard_link(work.join("full"), work.join(link)).unwrap();
        }
        fs::write(place.dir(id).join("log"), vec![1; 1 << 20]).unwrap();
        let full = place.bytes(id);
        for bytes in [full.scratch, full.record] {
            assert!((1 << 20..3 << 19).contains(&bytes), "{full:?}");
        }
    }
}
