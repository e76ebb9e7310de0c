//! Which task comes next, and which submission is a task that is there already. No I/O.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::executor::schedule::task::Task;
use crate::executor_protocol::sanitize::Sanitized;
use crate::executor_protocol::state::TaskState;
use crate::limits::{EXECUTOR_MESSAGE_BYTES_MAX, TASK_SUBMISSIONS_PER_MINUTE_MAX};
use crate::task::id::TaskId;

/// More changes than one executor tells of between two that it keeps: one a microsecond for an
/// hour. Two million executors, one after the other, stay below what every JSON number can tell.
const SEQ_GAP: u64 = 1 << 32;

/// Why a task is to end before it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody cancelled it.
    Cancel,
    /// It has run for as long as it may.
    Deadline,
    /// It has said nothing for too long.
    Silence,
    /// It claims more memory than it may.
    Memory,
    /// It starts more processes than it may, and has failed.
    Processes,
    /// It takes more of the disk than it may.
    Disk,
    /// Too little of the disk is free for any program.
    DiskFull,
}

/// A task and where it stands.
#[derive(Debug, Clone)]
pub struct TaskEntry {
    /// What was accepted.
    pub task: Arc<Task>,
    /// Where it stands.
    pub state: TaskState,
    /// Grows with each change that is told.
    pub seq: u64,
    /// What is being done, in a word.
    pub phase: String,
    /// What was said last, in a line.
    pub message: String,
    /// When it changed last.
    pub updated_ms: u64,
    /// When its agent or a gate said something last.
    pub last_output_ms: Option<u64>,
    /// That it is to end, and why.
    pub stop: Option<StopReason>,
    /// Its record is being written: nothing but its end comes next.
    pub is_closing: bool,
}

impl TaskEntry {
    /// A task that is accepted.
    pub fn new(task: Arc<Task>, state: TaskState, updated_ms: u64) -> Self {
        Self::found(task, state, updated_ms, 0)
    }

    /// A task as an executor before this one has left it, with the number of the last change that
    /// was kept. That executor has told of further ones, so that this one begins far above.
    pub fn left(task: Arc<Task>, state: TaskState, updated_ms: u64, kept_seq: u64) -> Self {
        Self::found(task, state, updated_ms, kept_seq.saturating_add(SEQ_GAP))
    }

    fn found(task: Arc<Task>, state: TaskState, updated_ms: u64, seq: u64) -> Self {
        Self {
            task,
            state,
            seq,
            phase: String::new(),
            message: String::new(),
            updated_ms,
            last_output_ms: None,
            stop: None,
            is_closing: false,
        }
    }

    /// Takes note of a change.
    pub fn touch(&mut self, now_ms: u64) {
        self.seq += 1;
        self.updated_ms = now_ms.max(self.updated_ms);
    }

    /// Sets what is being done and what was said.
    pub fn say(&mut self, phase: &str, message: &str) {
        self.phase = phase.to_owned();
        let line = message.replace(['\n', '\t'], " ");
        self.message = Sanitized::new(&line, EXECUTOR_MESSAGE_BYTES_MAX).to_string();
    }
}

/// How much is taken.
#[derive(Debug, Clone, Copy)]
pub struct QueueBounds {
    /// Tasks that run at once.
    pub running_max: usize,
    /// Tasks that wait.
    pub queued_max: usize,
}

/// All tasks that are known.
#[derive(Debug)]
pub struct Queue {
    bounds: QueueBounds,
    entries: HashMap<TaskId, TaskEntry>,
    /// Those that are being accepted: looked at, and brought to the disk.
    reserved: HashMap<TaskId, Task>,
    /// Those that wait, the next one first.
    waiting: Vec<TaskId>,
    /// When the latest submissions were accepted, as the executor's uptime.
    accepted_ms: Vec<u64>,
}

/// What becomes of a submission.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is new, and there is room.
    New,
    /// The same submission, or one with its key, is being accepted. What it is can be told when
    /// that is done.
    Pending,
    /// It is this task, sent again.
    Known(TaskId),
    /// It is another name for this task.
    Duplicate(TaskId),
    /// Its key belongs to a task with other content.
    KeyConflict,
    /// So many wait already, or were accepted lately.
    Full {
        /// Which of both.
        why: &'static str,
        /// How long to wait before trying again.
        retry_after_ms: u64,
    },
}

impl Queue {
    /// A queue without tasks.
    pub fn new(bounds: QueueBounds) -> Self {
        Self {
            bounds,
            entries: HashMap::new(),
            reserved: HashMap::new(),
            waiting: Vec::new(),
            accepted_ms: Vec::new(),
        }
    }

    /// Judges a submission at an uptime, without taking it in.
    pub fn admit(&self, task: &Task, uptime_ms: u64) -> Admission {
        if self.entries.contains_key(&task.id) {
            return Admission::Known(task.id);
        }
        let is_same = |other: &Task| {
            other.id == task.id
                || (task.key.is_some() && other.key == task.key)
                || (task.key.is_none() && other.content == task.content)
        };
        if self.reserved.values().any(is_same) {
            return Admission::Pending;
        }
        let same_key = |entry: &&TaskEntry| task.key.is_some() && entry.task.key == task.key;
        if let Some(entry) = self.entries.values().find(same_key) {
            return if entry.task.content == task.content {
                Admission::Duplicate(entry.task.id)
            } else {
                Admission::KeyConflict
            };
        }
        let same = |entry: &&TaskEntry| {
            task.key.is_none()
                && entry.state.outcome().is_none()
                && entry.task.content == task.content
        };
        if let Some(entry) = self.entries.values().find(same) {
            return Admission::Duplicate(entry.task.id);
        }
        self.full(uptime_ms).unwrap_or(Admission::New)
    }

    /// Why there is no room, if there is none.
    fn full(&self, uptime_ms: u64) -> Option<Admission> {
        if self.waiting.len() + self.reserved.len() >= self.bounds.queued_max {
            return Some(Admission::Full {
                why: "as many tasks wait as may wait",
                retry_after_ms: 15_000,
            });
        }
        let ends = self.accepted_ms.iter().map(|at| at + 60_000);
        let ends: Vec<u64> = ends.filter(|end| *end > uptime_ms).collect();
        if ends.len() + self.reserved.len() < TASK_SUBMISSIONS_PER_MINUTE_MAX {
            return None;
        }
        const { assert!(TASK_SUBMISSIONS_PER_MINUTE_MAX == 30) };
        let first = ends.into_iter().min().unwrap_or(uptime_ms);
        Some(Admission::Full {
            why: "30 tasks were accepted within the last minute, which is the most",
            retry_after_ms: (first - uptime_ms).max(1),
        })
    }

    /// Judges a submission, and keeps its place if it is new, until it is released.
    pub fn reserve(&mut self, task: &Task, uptime_ms: u64) -> Admission {
        let admission = self.admit(task, uptime_ms);
        if admission == Admission::New {
            self.reserved.insert(task.id, task.clone());
        }
        admission
    }

    /// Gives back the place of a submission, which is accepted now or not at all.
    pub fn release(&mut self, id: TaskId) {
        self.reserved.remove(&id);
    }

    /// Takes in a task that was accepted at an uptime.
    pub fn accept(&mut self, entry: TaskEntry, uptime_ms: u64) {
        self.accepted_ms.retain(|&at| at + 60_000 > uptime_ms);
        self.accepted_ms.push(uptime_ms);
        self.insert(entry);
    }

    /// Takes in a task that was found on disk.
    pub fn insert(&mut self, entry: TaskEntry) {
        if entry.state == TaskState::Queued {
            self.waiting.push(entry.task.id);
        }
        self.entries.insert(entry.task.id, entry);
    }

    /// The next task that may run: the one that waits longest and whose repository is free.
    pub fn take_next(&mut self) -> Option<TaskId> {
        let busy: Vec<&Path> = self.under_way().map(repo).collect();
        if busy.len() >= self.bounds.running_max {
            return None;
        }
        let free = |id: &TaskId| !busy.contains(&repo(&self.entries[id]));
        let at = self.waiting.iter().position(free)?;
        Some(self.waiting.remove(at))
    }

    /// Takes a task out of those that wait.
    pub fn unqueue(&mut self, id: TaskId) {
        self.waiting.retain(|waiting| *waiting != id);
    }

    /// Which task is next to a waiting one: its place, from 1.
    pub fn position(&self, id: TaskId) -> Option<usize> {
        let at = self.waiting.iter().position(|waiting| *waiting == id)?;
        Some(at + 1)
    }

    /// Tasks that a worker has in hand.
    pub fn under_way(&self) -> impl Iterator<Item = &TaskEntry> {
        self.entries
            .values()
            .filter(|entry| entry.state.is_under_way())
    }

    /// Tasks that have not ended.
    pub fn open(&self) -> Vec<TaskId> {
        let open = self
            .entries
            .values()
            .filter(|entry| entry.state.outcome().is_none());
        open.map(|entry| entry.task.id).collect()
    }

    /// Tasks that have ended.
    pub fn ended(&self) -> impl Iterator<Item = &TaskEntry> {
        self.entries
            .values()
            .filter(|entry| entry.state.outcome().is_some())
    }

    /// A task.
    pub fn get(&self, id: TaskId) -> Option<&TaskEntry> {
        self.entries.get(&id)
    }

    /// A task.
    pub fn get_mut(&mut self, id: TaskId) -> Option<&mut TaskEntry> {
        self.entries.get_mut(&id)
    }

    /// The tasks of a repository, or all, the newest first.
    pub fn newest(&self, repo: Option<&str>) -> Vec<&TaskEntry> {
        let named = |entry: &&TaskEntry| repo.is_none_or(|repo| entry.task.content.repo == repo);
        let mut entries: Vec<&TaskEntry> = self.entries.values().filter(named).collect();
        entries.sort_by_key(|entry| (std::cmp::Reverse(entry.task.created_ms), entry.task.id));
        entries
    }

    /// Forgets a task.
    pub fn remove(&mut self, id: TaskId) {
        self.entries.remove(&id);
    }
}

fn repo(entry: &TaskEntry) -> &Path {
    &entry.task.repo_real
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::schedule::task::Content;

    fn task(number: u128, repo: &str, key: Option<&str>) -> Task {
        Task {
            id: TaskId::new(number),
            key: key.map(str::to_owned),
            content: Content {
                goal: format!("goal of {repo}"),
                repo: repo.into(),
                files: None,
                acceptance: vec!["done".into()],
                follow_up_to: None,
            },
            deadline_s: None,
            client: None,
            repo_real: repo.into(),
            base: "b".into(),
            origin: "b".into(),
            created_ms: number as u64,
        }
    }

    fn queue(tasks: &[Task]) -> Queue {
        let mut queue = Queue::new(QueueBounds {
            running_max: 2,
            queued_max: 3,
        });
        for task in tasks {
            let entry = TaskEntry::new(Arc::new(task.clone()), TaskState::Queued, task.created_ms);
            queue.insert(entry);
        }
        queue
    }

    fn start(queue: &mut Queue) -> Option<TaskId> {
        let id = queue.take_next()?;
        queue.get_mut(id).unwrap().state = TaskState::Running;
        Some(id)
    }

    #[test]
    fn one_task_of_a_repository_runs_at_once() {
        let mut queue = queue(&[
            task(1, "/a", None),
            task(2, "/a", Some("k")),
            task(3, "/b", None),
        ]);
        assert_eq!(queue.position(TaskId::new(3)), Some(3));
        assert_eq!(start(&mut queue), Some(TaskId::new(1)));
        assert_eq!(start(&mut queue), Some(TaskId::new(3)));
        assert_eq!(start(&mut queue), None);
        queue.get_mut(TaskId::new(3)).unwrap().state = TaskState::parse("failed").unwrap();
        assert_eq!(start(&mut queue), None);
        queue.get_mut(TaskId::new(1)).unwrap().state = TaskState::parse("failed").unwrap();
        assert_eq!(start(&mut queue), Some(TaskId::new(2)));
    }

    #[test]
    fn a_submission_is_known_by_its_id_its_key_or_its_content() {
        let mut queue = queue(&[task(1, "/a", None), task(2, "/b", Some("k"))]);
        assert_eq!(
            queue.admit(&task(1, "/z", None), 9),
            Admission::Known(TaskId::new(1))
        );
        assert_eq!(
            queue.admit(&task(3, "/a", None), 9),
            Admission::Duplicate(TaskId::new(1))
        );
        assert_eq!(
            queue.admit(&task(3, "/b", Some("k")), 9),
            Admission::Duplicate(TaskId::new(2))
        );
        assert_eq!(
            queue.admit(&task(3, "/c", Some("k")), 9),
            Admission::KeyConflict
        );
        assert_eq!(
            queue.admit(&task(3, "/a", Some("other")), 9),
            Admission::New
        );
        for id in [1, 2] {
            queue.get_mut(TaskId::new(id)).unwrap().state = TaskState::parse("failed").unwrap();
        }
        assert_eq!(queue.admit(&task(3, "/a", None), 9), Admission::New);
        assert_eq!(
            queue.admit(&task(3, "/b", Some("k")), 9),
            Admission::Duplicate(TaskId::new(2))
        );
    }

    #[test]
    fn the_queue_is_bounded_and_so_is_its_pace() {
        let full = |queue: &Queue, now_ms| {
            matches!(
                queue.admit(&task(999, "/x", None), now_ms),
                Admission::Full { .. }
            )
        };
        let tasks: Vec<Task> = (1..4).map(|number| task(number, "/a", Some("k"))).collect();
        assert!(full(&queue(&tasks), 100_000));
        let mut queue = queue(&[]);
        for number in 0..TASK_SUBMISSIONS_PER_MINUTE_MAX as u128 {
            let entry = TaskEntry::new(Arc::new(task(number, "/a", None)), TaskState::Queued, 0);
            queue.accept(entry, 0);
            queue.unqueue(TaskId::new(number));
            queue.remove(TaskId::new(number));
        }
        assert!(full(&queue, 59_999));
        // It is told as what it is, with the time when it ends.
        let paced = Admission::Full {
            why: "30 tasks were accepted within the last minute, which is the most",
            retry_after_ms: 20_000,
        };
        assert_eq!(queue.admit(&task(999, "/x", None), 40_000), paced);
        assert!(!full(&queue, 60_000));
    }

    /// The numbers were made of the clock: after a step back, fronts took the next executor's for
    /// old.
    #[test]
    fn changes_are_numbered_upwards_also_by_the_next_executor() {
        let shared = Arc::new(task(1, "/a", None));
        let mut entry = TaskEntry::new(Arc::clone(&shared), TaskState::Queued, 1000);
        let kept = entry.seq;
        for _ in 0..5 {
            entry.touch(1000);
        }
        let mut later = TaskEntry::left(shared, TaskState::Queued, 10, kept);
        later.touch(20);
        assert!(later.seq > entry.seq && entry.seq > kept);
    }

    /// Two that were looked at by git at once were both accepted.
    #[test]
    fn what_is_being_accepted_has_its_place_its_key_and_its_content() {
        let mut queue = queue(&[]);
        assert_eq!(queue.reserve(&task(1, "/a", None), 0), Admission::New);
        for same in [task(1, "/z", None), task(2, "/a", None)] {
            assert_eq!(queue.reserve(&same, 0), Admission::Pending);
        }
        assert_eq!(queue.reserve(&task(3, "/b", Some("k")), 0), Admission::New);
        let same_key = task(4, "/c", Some("k"));
        assert_eq!(queue.reserve(&same_key, 0), Admission::Pending);
        assert_eq!(queue.reserve(&task(5, "/d", None), 0), Admission::New);
        let full = queue.reserve(&task(6, "/e", None), 0);
        assert!(matches!(full, Admission::Full { .. }));
        for number in [1, 3] {
            queue.release(TaskId::new(number));
        }
        assert_eq!(queue.reserve(&same_key, 0), Admission::New);
        assert_eq!(queue.reserve(&task(6, "/a", None), 0), Admission::New);
    }

    /// A step back of the clock by an hour refused every submission for an hour.
    #[test]
    fn the_pace_is_measured_by_a_clock_that_nobody_sets() {
        let mut queue = queue(&[]);
        for number in 0..TASK_SUBMISSIONS_PER_MINUTE_MAX as u128 {
            let (task, hour_ms) = (Arc::new(task(number, "/a", None)), 3_600_000);
            // The wall clock shows an hour more than it will.
            let entry = TaskEntry::new(task, TaskState::Queued, hour_ms);
            queue.accept(entry, 5);
            queue.unqueue(TaskId::new(number));
            queue.remove(TaskId::new(number));
        }
        assert!(queue.admit(&task(999, "/x", None), 60_004) != Admission::New);
        assert_eq!(queue.admit(&task(999, "/x", None), 60_005), Admission::New);
    }
}
