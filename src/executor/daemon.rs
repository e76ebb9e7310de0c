//! The process: its threads, its socket, its end, and what all threads share.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use super::api::connection::{self, FrontIo};
use super::api::listener::{self, Places};
use super::api::outgoing::Outgoing;
use super::clock::{self, Uptime};
use super::policy::{ExecutorConfig, Policy};
use super::run::git::{self, Git};
use super::run::job;
use super::run::process::{self, EndSignals};
use super::run::user_settings::UserSettings;
use super::run::verdict::{Findings, Verdict};
use super::run::watchman;
use super::run::workspace;

use super::schedule::queue::{Queue, StopReason, TaskEntry};
use super::schedule::retention::{self, EndedTask};
use super::schedule::task::Task;
use super::store::full_disk::in_words;
use super::store::journal::{Journal, StateDirError};
use super::store::removal::remove_tree;
use super::store::state_dir::{self, StateLine};
use super::store::state_writer::LineNumber;
use super::threads::{self, locked, wait, wait_for};
use super::walls::cgroup::Cgroups;
use crate::event_loop::sys::signals;
use crate::executor::walls::standing::Walls;
use crate::executor::walls::user_scope;
use crate::executor_protocol::state::{Outcome, TaskState};
use crate::limits::{TASK_EXPIRY_MS, TASK_KILL_MS, TASK_TTL_MS, TASK_WRITE_WAIT_MS};
use crate::task::id::TaskId;

/// What Landlock has no rights for.
const ROOT_BEHIND_LANDLOCK: &str = "root has started this executor, and Landlock is its only wall, \
     which does not keep programs of tasks from the modes and times of root's files: give the \
     executor a user of its own, or install bubblewrap";

/// The exit code when another executor has the state directory.
const OWNED: u8 = 3;

/// How long the end may take to kill what runs. A front that has started the executor gives it 80
/// milliseconds.
const END_MS: u64 = 30;

/// How often it looks whether somebody at a terminal wants a task cancelled, while there are any.
const MARKERS_MS: u64 = 200;

/// Why the process ends: because it is to, or because it cannot go on.
type End = io::Result<()>;

/// What all threads share.
#[derive(Debug)]
pub struct Daemon {
    pub(super) policy: Policy,
    pub(super) journal: Journal,
    pub(super) git: Git<'static>,
    pub(super) uptime: Uptime,
    pub(super) queue: Mutex<Queue>,
    pub(super) changed: Condvar,
    pub(super) connections: Mutex<Vec<Weak<Outgoing>>>,
    pub(super) places: Places,
}

/// Serves until the input ends or a signal comes.
pub fn run(config: ExecutorConfig) -> ExitCode {
    match start(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, what)) => {
            warn(&what);
            ExitCode::from(code)
        }
    }
}

/// One line for people.
pub fn warn(what: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr(), "rocco: {what}");
}

fn start(config: ExecutorConfig) -> Result<(), (u8, String)> {
    let failed = |what: String| (1, what);
    let system = |error: io::Error| (1, error.to_string());
    signals::keep_ends_of_children().map_err(system)?;
    process::adopt_orphans().map_err(system)?;
    process::keep_descriptors().map_err(system)?;
    let cgroups = Cgroups::of_this_process();
    let controllers = cgroups.as_ref().map(Cgroups::controllers);
    // Before the walls are tried out, which would be done twice.
    user_scope::enter(controllers.unwrap_or_default());
    // Until here there is nothing that has to be ended in order, and a signal ends all at once.
    let policy = Policy::new(config, cgroups).map_err(failed)?;
    if policy.walls == Walls::Landlock && rustix::process::geteuid().is_root() {
        warn(ROOT_BEHIND_LANDLOCK);
    }
    let signals = EndSignals::block().map_err(system)?;
    let config = &policy.config;
    let state = config.state.clone();
    let journal =
        Journal::open(state.clone(), config.durable).map_err(|refused| match refused {
            StateDirError::Owned => (OWNED, format!("another executor has {}", state.display())),
            StateDirError::System(path, error) => {
                let what = "see to it, or name another directory with --state";
                (1, format!("{}: {error}; {what}", path.display()))
            }
        })?;
    let listener = config
        .socket
        .as_deref()
        .map(listener::listen)
        .transpose()
        .map_err(failed)?;
    let scratch = journal.state_dir().root().join("git");
    // What the last executor left of it is of no use.
    remove_tree(&scratch).map_err(system)?;
    let git = Git::new(scratch);
    // Tasks are done all the same, and their agents see what an ignore file would have left out.
    let user = git.user_settings().unwrap_or_else(|what| {
        warn(&format!("your configuration of git is not read: {what}"));
        UserSettings::default()
    });
    let daemon = Arc::new(Daemon {
        git: git.of_user(user),
        queue: Mutex::new(Queue::new(policy.bounds())),
        changed: Condvar::new(),
        uptime: Uptime::start(),
        connections: Mutex::new(Vec::new()),
        places: Places::default(),
        journal,
        policy,
    });
    daemon.recover().map_err(system)?;
    // What was cancelled while nobody was there is not begun.
    let open = locked(&daemon.queue).open();
    daemon.cancel_what_is_marked(open);
    let (over, is_over) = mpsc::channel();
    let end = daemon
        .start_threads(signals, &over)
        .and_then(|()| daemon.start_serving(listener, over))
        // One end is enough. The thread that waits for signals keeps the channel open.
        .and_then(|()| is_over.recv().unwrap_or(Ok(())));
    daemon.end();
    end.map_err(system)
}

impl Daemon {
    /// Takes in what the last executor left.
    fn recover(&self) -> io::Result<()> {
        let mut queue = locked(&self.queue);
        let state_dir = self.journal.state_dir();
        for id in state_dir.tasks_unreadable()? {
            warn(&state_dir::damaged_task(state_dir, id));
        }
        for mut found in state_dir.tasks_found()? {
            let id = found.task.id;
            let state = found.state.after_a_crash();
            let mut at_ms = found.at_ms;
            if let Some(outcome) = state.outcome()
                && found.state != state
            {
                at_ms = clock::now_ms();
                let record = self.record_of_loss(&found.task, outcome);
                self.journal.put(id, "result.json", &record)?;
                found.seq += 1;
                let line = StateLine {
                    state,
                    at_ms,
                    seq: found.seq,
                };
                let number = self.journal.append(id, line);
                self.journal.states().wait_for(number);
                self.journal.state_dir().clear(id);
            }
            let task = Arc::new(found.task);
            queue.insert(TaskEntry::left(task, state, at_ms, found.seq));
        }
        Ok(())
    }

    /// Makes what a task has left safe to keep, and composes the record of its end, which nobody
    /// saw.
    fn record_of_loss(&self, task: &Task, outcome: Outcome) -> String {
        let dir = self.journal.state_dir().dir(task.id);
        let work = dir.join("work");
        let kept = work.exists().then(|| workspace::disarm(&work));
        let is_kept = matches!(kept, Some(Ok(())));
        let warning = kept.map(|kept| match kept {
            Ok(()) => workspace::is_in(&work),
            Err(error) => workspace::not_kept(&error),
        });
        let findings = Findings {
            base: task.base.clone(),
            warnings: warning
                .into_iter()
                .chain(self.unjudged(task, is_kept))
                .collect(),
            ..Findings::default()
        };
        let error = (outcome == Outcome::Interrupted).then(|| {
            let what = "the executor ended while the task ran; it is not run again by itself";
            ("interrupted", what.to_owned())
        });
        findings.record(&Verdict { outcome, error }, &dir.to_string_lossy())
    }

    /// Takes back the result of a task whose end nobody saw: no record tells what it changes. Where
    /// its clone is no longer there, the result is all that is left of the work, and is told.
    fn unjudged(&self, task: &Task, is_kept: bool) -> Option<String> {
        let soon = Instant::now() + Duration::from_millis(TASK_KILL_MS);
        let git = self.git.bounded(soon, &|| false);
        let result_ref = git::result_ref(task.id);
        // Where the repository is no longer allowed, nothing is looked at.
        let repo = git
            .open_again(&task.repo_real, self.policy.allowed())
            .ok()?;
        git.commit(&repo, &result_ref).ok()?;
        if !is_kept {
            let what = "holds what the task changed, which was not judged to the end";
            return Some(format!("{result_ref} {what}"));
        }
        let taken_back = git.remove_result(&repo, task.id);
        let what = taken_back.err()?;
        Some(format!("{result_ref} could not be taken back: {what}"))
    }

    /// Starts the threads that live as long as the process. Those that do tasks come last, so that
    /// nothing runs when one of the others cannot be had.
    fn start_threads(self: &Arc<Self>, signals: EndSignals, over: &Sender<End>) -> io::Result<()> {
        let signalled = over.clone();
        threads::start("signals", move || {
            signals.wait();
            // Nobody listens if the end has begun.
            let _ = signalled.send(Ok(()));
        })?;
        let daemon = Arc::clone(self);
        threads::start("markers", move || daemon.look_for_markers())?;
        let daemon = Arc::clone(self);
        threads::start("expiry", move || {
            loop {
                daemon.expire();
                std::thread::sleep(Duration::from_millis(TASK_EXPIRY_MS));
            }
        })?;
        for _ in 0..self.policy.config.running_max {
            let daemon = Arc::clone(self);
            threads::start("worker", move || {
                loop {
                    let task = daemon.next();
                    job::run(&daemon, &task);
                }
            })?;
        }
        Ok(())
    }

    /// Starts to serve whoever connects, or the one front that started the executor and with which
    /// it ends.
    fn start_serving(
        self: &Arc<Self>,
        listener: Option<UnixListener>,
        over: Sender<End>,
    ) -> io::Result<()> {
        let daemon = Arc::clone(self);
        let started = match listener {
            Some(listener) => threads::start("accept", move || {
                listener::accept(&daemon, &listener);
            }),
            None => threads::start("front", move || {
                let io = FrontIo {
                    reader: io::stdin().lock(),
                    writer: Box::new(io::stdout()),
                    hello_by: None,
                    socket: None,
                    without_say: None,
                };
                // Nobody listens if the end has begun.
                let _ = over.send(connection::serve(&daemon, io));
            }),
        };
        started.map(drop)
    }

    /// Waits for the next task, and begins it. That the task runs is written before it does, so
    /// that it is not begun again after a crash.
    fn next(&self) -> Arc<Task> {
        let mut queue = locked(&self.queue);
        loop {
            if let Some(id) = queue.take_next() {
                let line = self.set_state(&mut queue, id, TaskState::Running);
                if let Some(task) = queue.get(id).map(|entry| Arc::clone(&entry.task)) {
                    drop(queue);
                    line.into_iter()
                        .for_each(|line| self.journal.states().wait_for(line));
                    return task;
                }
            }
            queue = wait(&self.changed, queue);
        }
    }

    /// Cancels tasks that somebody at a terminal has marked.
    fn look_for_markers(&self) {
        loop {
            let open = {
                let mut queue = locked(&self.queue);
                while queue.open().is_empty() {
                    queue = wait(&self.changed, queue);
                }
                queue.open()
            };
            self.cancel_what_is_marked(open);
            std::thread::sleep(Duration::from_millis(MARKERS_MS));
        }
    }

    fn cancel_what_is_marked(&self, open: Vec<TaskId>) {
        for id in open {
            if self.journal.state_dir().is_asked_to_cancel(id) {
                self.cancel(id);
            }
        }
    }

    /// Removes what is past its keep time.
    pub(super) fn expire(&self) {
        let before_ms = self.uptime.cautious_now_ms().saturating_sub(TASK_TTL_MS);
        let state_dir = self.journal.state_dir();
        let ended: Vec<EndedTask> = locked(&self.queue).ended().map(EndedTask::of).collect();
        let measured = ended.into_iter().map(|task| EndedTask {
            bytes: state_dir.bytes(task.id),
            ..task
        });
        let past = retention::past_keeping(measured.collect(), before_ms);
        for id in past.scratch {
            if let Err(error) = state_dir.remove_scratch(id) {
                warn(&format!("the clone of {id} cannot be removed: {error}"));
            }
        }
        let tasks: Vec<Arc<Task>> = {
            let queue = locked(&self.queue);
            let entries = past.tasks.into_iter().filter_map(|id| queue.get(id));
            entries.map(|entry| Arc::clone(&entry.task)).collect()
        };
        for task in tasks {
            // The repository may be gone as well.
            let repo = self.git.open_again(&task.repo_real, self.policy.allowed());
            let _ = repo.map(|repo| self.git.unpin(&repo, task.id));
            // A task that has ended changes no more, and nobody else removes it.
            let removed = self.journal.retire(task.id).and_then(|files| {
                locked(&self.queue).remove(task.id);
                remove_tree(&files)
            });
            if let Err(error) = removed {
                warn(&format!("{} cannot be removed: {error}", task.id));
            }
        }
    }

    /// Has a task ended. Tells where it stands then; none if it is not known. It does not wait for
    /// a record that is being written: that task ends anyway.
    pub(super) fn cancel(&self, id: TaskId) -> Option<TaskState> {
        let mut queue = locked(&self.queue);
        let entry = queue.get_mut(id)?;
        match entry.state {
            TaskState::Queued if entry.is_closing => Some(TaskState::Cancelling),
            TaskState::Queued => {
                entry.is_closing = true;
                let task = Arc::clone(&entry.task);
                queue.unqueue(id);
                drop(queue);
                let record = self.record_of_loss(&task, Outcome::Cancelled);
                self.close(id, Outcome::Cancelled, &record);
                Some(TaskState::Ended(Outcome::Cancelled))
            }
            TaskState::Running | TaskState::Verifying if !entry.is_closing => {
                entry.stop = Some(StopReason::Cancel);
                let line = self.set_state(&mut queue, id, TaskState::Cancelling);
                drop(queue);
                let limit = Duration::from_millis(TASK_WRITE_WAIT_MS);
                line.into_iter()
                    .for_each(|line| self.journal.states().wait_at_most(line, limit));
                Some(TaskState::Cancelling)
            }
            state => Some(state),
        }
    }

    /// That a task is to end, if it is.
    pub(super) fn stop_of(&self, id: TaskId) -> Option<StopReason> {
        locked(&self.queue).get(id)?.stop
    }

    /// Does something at once, in the same instant as it is known that a task is not to end. Why it
    /// is to end otherwise.
    pub(super) fn unless_stopped<T>(
        &self,
        id: TaskId,
        act: impl FnOnce() -> T,
    ) -> Result<T, StopReason> {
        let queue = locked(&self.queue);
        match queue.get(id).and_then(|entry| entry.stop) {
            Some(reason) => Err(reason),
            None => Ok(act()),
        }
    }

    /// Sets a task's next state, if it may come next.
    pub(super) fn advance(&self, id: TaskId, state: TaskState) {
        self.set_state(&mut locked(&self.queue), id, state);
    }

    /// Sets a state and hands it over to be written. The lock is held, so that the states of a task
    /// are written in their order, and no file is written with it held.
    fn set_state(&self, queue: &mut Queue, id: TaskId, state: TaskState) -> Option<LineNumber> {
        let entry = queue.get_mut(id)?;
        if !entry.state.may_become(state) {
            return None;
        }
        entry.state = state;
        entry.touch(clock::now_ms());
        let line = self.journal.append(id, StateLine::of(entry));
        self.changed.notify_all();
        self.tell(id);
        Some(line)
    }

    /// Ends a task with its record. Tells whether it did: not if the task was cancelled meanwhile,
    /// of which this record does not know.
    pub(super) fn finish(&self, id: TaskId, outcome: Outcome, record: &str) -> bool {
        {
            let mut queue = locked(&self.queue);
            let Some(entry) = queue.get_mut(id) else {
                return true;
            };
            if entry.stop == Some(StopReason::Cancel) && outcome != Outcome::Cancelled {
                return false;
            }
            entry.is_closing = true;
        }
        self.close(id, outcome, record);
        true
    }

    /// Writes the record of a task that is closing, and then says that the task has ended: a client
    /// that hears of the end asks for the record.
    fn close(&self, id: TaskId, outcome: Outcome, record: &str) {
        self.keep_record(id, record);
        let state = TaskState::Ended(outcome);
        let line = locked(&self.queue).get(id).cloned().map(|mut entry| {
            entry.state = state;
            entry.touch(clock::now_ms());
            self.journal.append(id, StateLine::of(&entry))
        });
        line.into_iter()
            .for_each(|line| self.journal.states().wait_for(line));
        let mut queue = locked(&self.queue);
        if let Some(entry) = queue.get_mut(id) {
            entry.state = state;
            entry.touch(clock::now_ms());
        }
        drop(queue);
        self.changed.notify_all();
        self.tell(id);
    }

    fn keep_record(&self, id: TaskId, record: &str) {
        if let Err(error) = self.journal.put(id, "result.json", record) {
            let why = in_words(&self.journal.state_dir().dir(id), &error);
            warn(&format!("{id}: its record cannot be kept: {why}"));
        }
    }

    /// Changes what is said of a task.
    pub(super) fn change(&self, id: TaskId, change: impl FnOnce(&mut TaskEntry)) {
        let mut queue = locked(&self.queue);
        if let Some(entry) = queue.get_mut(id) {
            change(entry);
            entry.touch(clock::now_ms());
            self.tell(id);
        }
    }

    /// Takes note of something that was printed.
    pub(super) fn hear(&self, id: TaskId, phase: &str, line: Option<&str>) {
        self.change(id, |entry| {
            entry.last_output_ms = Some(clock::now_ms());
            if let Some(line) = line {
                entry.say(phase, line);
            }
        });
    }

    /// Wakes the connections that follow a task.
    pub(super) fn tell(&self, id: TaskId) {
        locked(&self.connections).retain(|front| match front.upgrade() {
            Some(front) => {
                front.touch(id);
                true
            }
            None => false,
        });
    }

    /// Ends what runs, and takes note of it. The lock is kept for good, so that nothing changes any
    /// more afterwards, and nobody is served who would wait for it.
    fn end(&self) {
        let limit = Duration::from_millis(END_MS);
        let is_any_closing = |queue: &mut Queue| queue.under_way().any(|entry| entry.is_closing);
        let mut queue = wait_for(&self.changed, locked(&self.queue), limit, is_any_closing);
        self.policy.cgroups.iter().for_each(Cgroups::kill_all);
        // A clone has its watchman until the clone is safe: this process may be killed meanwhile.
        process::kill_descendants_but(&watchman::all(), limit, false);
        let running: Vec<Arc<Task>> = queue
            .under_way()
            .filter(|entry| !entry.is_closing)
            .map(|entry| Arc::clone(&entry.task))
            .collect();
        let mut last = None;
        for task in running {
            let state = queue.get(task.id).map(|entry| entry.state.after_a_crash());
            if let Some(outcome) = state.and_then(TaskState::outcome) {
                let record = self.record_of_loss(&task, outcome);
                self.keep_record(task.id, &record);
                last = self.set_state(&mut queue, task.id, TaskState::Ended(outcome));
            }
        }
        process::kill_descendants(limit, false);
        let limit = Duration::from_millis(TASK_WRITE_WAIT_MS);
        last.into_iter()
            .for_each(|line| self.journal.states().wait_at_most(line, limit));
        if let Some(path) = &self.policy.config.socket {
            // The next executor would remove it as well, but nothing else.
            if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
                let _ = fs::remove_file(path);
            }
        }
        // The workers wait for the lock, and never get it.
        std::mem::forget(queue);
    }
}
