//! The state directory: a directory for each task, an append-only file for its states, and every
//! other file put in place whole.
//!
//! ```text
//! lock                          held by the one executor that may write here
//! gitconfig                     the configuration of its git, empty
//! expired                       the names of tasks whose records are gone
//! tasks/<task_id>/task.json     what was accepted
//!                 state.ndjson  a line for each state, the last one counts
//!                 goal          what the agent reads on its stdin
//!                 log           what the agent says
//!                 gates         what the gates say
//!                 diff.patch    what was changed
//!                 result.json   how it ended
//!                 cancel        is there when somebody at a terminal wants it cancelled
//!                 work          the agent's clone, kept unless the task succeeded
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use crate::executor::run::process;
use crate::executor::schedule::task::Task;
use crate::executor::{clock, json};
use crate::executor_protocol::state::TaskState;
use crate::limits::{EXPIRED_BYTES_MAX, TASK_SYNC_MS};
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
    place: StateDir,
    durable: Durability,
    /// Files that a thread of its own brings to the disk soon.
    later: Sender<PathBuf>,
    /// The system gives the lock back when the process ends.
    _lock: File,
}

/// The state directory, to read.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
}

/// A task as it was found.
#[derive(Debug)]
pub struct FoundTask {
    /// What was accepted.
    pub task: Task,
    /// Its last state.
    pub state: TaskState,
    /// When it came to be.
    pub at_ms: u64,
}

/// The directory cannot be had.
#[derive(Debug)]
pub enum StateDirError {
    /// Another executor has it.
    Owned,
    /// The system does not give it.
    System(io::Error),
}

impl StateDir {
    /// The state directory of a path.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn tasks(&self) -> PathBuf {
        self.root.join("tasks")
    }

    /// The directory of a task.
    pub fn dir(&self, id: TaskId) -> PathBuf {
        self.tasks().join(id.to_string())
    }

    /// Removes what a task needs only while it runs.
    pub fn clear(&self, id: TaskId) {
        for name in ["check", "git", "home", "home-gates"] {
            // What cannot be removed is only untidy, and goes when the record does.
            let _ = fs::remove_dir_all(self.dir(id).join(name));
        }
    }

    /// Whether an executor owns it now.
    pub fn is_owned(&self) -> bool {
        let lock = File::open(self.root.join("lock"));
        lock.is_ok_and(|lock| process::lock(&lock).is_err())
    }

    /// Every task, in the order in which they were accepted. What is no task is passed over.
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
        let task = Task::of_json(&fs::read(dir.join("task.json")).ok()?)?;
        let states = fs::read(dir.join("state.ndjson")).ok()?;
        let lines = states.split(|&byte| byte == b'\n');
        let last = lines.filter_map(state_of_line).next_back();
        let (state, at_ms) = last.unwrap_or((TaskState::Queued, task.created_ms));
        // A result that is in place counts, even if its state could not be written any more.
        let result = fs::read(dir.join("result.json")).ok().and_then(|text| {
            json::with(&text, |result| {
                TaskState::parse(json::text(result, "outcome")?)
            })?
        });
        Some(FoundTask {
            task,
            state: result.unwrap_or(state),
            at_ms,
        })
    }

    /// The record of a task that has ended, in one line. One that is damaged is none.
    pub fn record(&self, id: TaskId) -> Option<String> {
        let text = fs::read_to_string(self.dir(id).join("result.json")).ok()?;
        let line = text.trim_end();
        let whole = !line.contains('\n') && json::with(line.as_bytes(), |_| ()).is_some();
        whole.then(|| line.to_owned())
    }

    /// Whether a task was known whose record is gone.
    pub fn is_expired(&self, id: TaskId) -> bool {
        let names = fs::read_to_string(self.root.join("expired")).unwrap_or_default();
        names.lines().any(|name| TaskId::parse(name) == Some(id))
    }

    /// What a task's files take. What is being removed counts for nothing.
    pub fn bytes(&self, id: TaskId) -> u64 {
        let (mut bytes, mut folders) = (0, vec![self.dir(id)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    _ => bytes += entry.metadata().map_or(0, |found| found.len()),
                }
            }
        }
        bytes
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
pub fn damaged_task(place: &StateDir, id: TaskId) -> String {
    format!("a task cannot be read: {}", place.dir(id).display())
}

fn state_of_line(line: &[u8]) -> Option<(TaskState, u64)> {
    json::with(line, |line| {
        let state = TaskState::parse(json::text(line, "state")?)?;
        Some((state, clock::parse(json::text(line, "at")?)?))
    })?
}

fn private_dir(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

impl Journal {
    /// Takes the directory, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// Another executor has it, or the system does not give it.
    pub fn open(root: PathBuf, durable: Durability) -> Result<Self, StateDirError> {
        let system = StateDirError::System;
        if let Some(parent) = root.parent() {
            fs::create_dir_all(parent).map_err(system)?;
        }
        private_dir(&root).map_err(system)?;
        let mode = fs::metadata(&root).map_err(system)?.permissions().mode();
        if mode & 0o022 != 0 {
            let what = "others may write there: it needs the mode 0700";
            return Err(system(io::Error::new(ErrorKind::PermissionDenied, what)));
        }
        private_dir(&root.join("tasks")).map_err(system)?;
        let root = root.canonicalize().map_err(system)?;
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false).mode(0o600);
        let lock = options.open(root.join("lock")).map_err(system)?;
        lock_patiently(&lock)?;
        private_file(&root.join("gitconfig")).map_err(system)?;
        let journal = Self {
            place: StateDir::new(root),
            durable,
            later: syncer(),
            _lock: lock,
        };
        journal.tidy().map_err(system)?;
        Ok(journal)
    }

    /// The directory, to read.
    pub fn place(&self) -> &StateDir {
        &self.place
    }

    /// What an accepted task survives.
    pub fn durable(&self) -> Durability {
        self.durable
    }

    /// Removes what was not put in place, and cuts lines that were not written to their end.
    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.place.tasks())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(".new-")) {
                fs::remove_dir_all(&path)?;
            } else if name.and_then(TaskId::parse).is_some() {
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
        let new = self.place.tasks().join(format!(".new-{}", task.id));
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        private_dir(&new)?;
        let line = state_line(TaskState::Queued, task.created_ms);
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
        let dir = self.place.dir(task.id);
        fs::rename(&new, &dir)?;
        match self.durable {
            Durability::Power => File::open(self.place.tasks())?.sync_all()?,
            Durability::Crash => {
                for name in ["task.json", "state.ndjson", "goal", "", ".."] {
                    self.soon(dir.join(name));
                }
            }
        }
        Ok(())
    }

    /// Appends a state.
    pub fn append(&self, id: TaskId, state: TaskState, at_ms: u64) -> io::Result<()> {
        let path = self.place.dir(id).join("state.ndjson");
        let mut file = OpenOptions::new().append(true).open(&path)?;
        file.write_all(state_line(state, at_ms).as_bytes())?;
        if self.durable == Durability::Power && state.outcome().is_some() {
            file.sync_data()?;
        } else {
            self.soon(path);
        }
        Ok(())
    }

    /// Puts a file of a task in place whole.
    pub fn put(&self, id: TaskId, name: &str, text: &str) -> io::Result<()> {
        let dir = self.place.dir(id);
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

    /// Removes a task's files, and keeps its name.
    pub fn expire(&self, id: TaskId) -> io::Result<()> {
        let path = self.place.root.join("expired");
        let names = fs::read_to_string(&path).unwrap_or_default();
        let surplus = names.len().saturating_sub(EXPIRED_BYTES_MAX);
        let kept = names
            .get(surplus..)
            .and_then(|names| names.split_once('\n'));
        let kept = if surplus == 0 {
            names.as_str()
        } else {
            kept.map_or("", |(_, kept)| kept)
        };
        let new = self.place.root.join(".new-expired");
        private_file(&new)?.write_all(format!("{kept}{id}\n").as_bytes())?;
        fs::rename(&new, &path)?;
        // It goes at once for whoever looks, and what is left of it when the executor starts again.
        let gone = self.place.tasks().join(format!(".new-{id}"));
        fs::rename(self.place.dir(id), &gone)?;
        fs::remove_dir_all(gone)
    }

    fn soon(&self, path: PathBuf) {
        // The thread lives as long as the journal.
        let _ = self.later.send(path);
    }
}

/// Locks the directory. Who shows tasks at a terminal has it for a moment, to see whether anybody
/// has.
fn lock_patiently(lock: &File) -> Result<(), StateDirError> {
    const ATTEMPTS: usize = 10;
    for _ in 0..ATTEMPTS {
        if process::lock(lock).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(StateDirError::Owned)
}

fn state_line(state: TaskState, at_ms: u64) -> String {
    let line = json::object(|line| {
        line.string("at", &clock::stamp(at_ms));
        line.string("state", state.name());
    });
    line + "\n"
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
fn syncer() -> Sender<PathBuf> {
    let (sender, receiver) = mpsc::channel::<PathBuf>();
    std::thread::spawn(move || {
        while let Ok(first) = receiver.recv() {
            std::thread::sleep(Duration::from_millis(TASK_SYNC_MS));
            let paths: BTreeSet<PathBuf> = receiver.try_iter().chain([first]).collect();
            for path in paths {
                // What is gone by now needs no disk, and a disk that fails is found by the next
                // who writes.
                let _ = File::open(&path).and_then(|file| file.sync_data());
            }
        }
    });
    sender
}

/// A log of bounded size: its start and its end are kept, what is between them is left out.
#[derive(Debug)]
pub struct TaskLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl TaskLog {
    /// An empty log.
    pub fn create(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let file = private_file(&path)?;
        Ok(Self {
            path,
            file,
            bytes: 0,
            bytes_max,
        })
    }

    /// Appends, and makes room when there is none left.
    pub fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.bytes += text.len() as u64;
        if self.bytes > self.bytes_max {
            self.shorten()?;
        }
        Ok(())
    }

    /// Keeps the first and the last quarter.
    fn shorten(&mut self) -> io::Result<()> {
        let quarter = self.bytes_max / 4;
        let mut old = File::open(&self.path)?;
        let new_path = self.path.with_extension("new");
        let mut new = private_file(&new_path)?;
        io::copy(&mut (&old).take(quarter), &mut new)?;
        let left_out = self.bytes - 2 * quarter;
        let mark = format!("\n[rocco: {left_out} bytes were left out here]\n");
        new.write_all(mark.as_bytes())?;
        old.seek(SeekFrom::Start(self.bytes - quarter))?;
        io::copy(&mut old, &mut new)?;
        fs::rename(&new_path, &self.path)?;
        self.bytes = 2 * quarter + mark.len() as u64;
        self.file = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_start_and_its_end() {
        let path = std::env::temp_dir().join(format!("rocco-log-{}", std::process::id()));
        let mut log = TaskLog::create(path.clone(), 4000).unwrap();
        for number in 0..10_000 {
            log.append(format!("{number}\n").as_bytes()).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(text.len() <= 4000 + 64, "{}", text.len());
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("9998\n9999\n"));
        assert!(text.contains("bytes were left out here"));
    }

    #[test]
    fn a_torn_line_is_cut() {
        let path = std::env::temp_dir().join(format!("rocco-torn-{}", std::process::id()));
        for (before, after) in [("a\nb\n", "a\nb\n"), ("a\nb", "a\n"), ("a", ""), ("", "")] {
            fs::write(&path, before).unwrap();
            cut_torn_line(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
        fs::remove_file(&path).unwrap();
        cut_torn_line(&path).unwrap();
    }
}
