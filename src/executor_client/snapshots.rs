//! What the front remembers of tasks, in memory that is claimed once. The executor is the one who
//! knows; this saves a question to it, and is what can be said while it is away.

use crate::executor_client::task_update::{Snapshot, TaskUpdate};
use crate::limits::EXECUTOR_SNAPSHOTS_MAX;
use crate::task::id::TaskId;

/// What was learned of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotChange {
    /// It stands otherwise than before.
    pub changed: bool,
    /// It is known to have ended, and was not before.
    pub ended: bool,
}

/// The last state of some tasks.
#[derive(Debug)]
pub struct Snapshots {
    /// The one that was heard of first stands first.
    kept: Vec<Snapshot>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self::new()
    }
}

impl Snapshots {
    /// Nothing is known.
    pub fn new() -> Self {
        Self {
            kept: Vec::with_capacity(EXECUTOR_SNAPSHOTS_MAX),
        }
    }

    /// What is known of a task.
    pub fn get(&self, task: TaskId) -> Option<&Snapshot> {
        self.kept.iter().find(|kept| kept.task == task)
    }

    /// Takes in an answer that tells of a task. `connection` is the one it came on; the executor
    /// sends updates there if it was asked how the task stands.
    pub fn note(
        &mut self,
        told: &TaskUpdate<'_>,
        connection: u64,
        sends: bool,
        now_ms: u64,
    ) -> SnapshotChange {
        let sends = |before| if sends { connection } else { before };
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.task == told.task) else {
            self.add(Snapshot::new(told, sends(0), now_ms));
            return SnapshotChange {
                changed: false,
                ended: told.state.is_final(),
            };
        };
        let before = *kept;
        // What is final never changes, whatever comes late.
        let late = kept.state.is_final() && !told.state.is_final();
        let same = kept.connection == connection;
        let stale = same && told.seq < kept.seq && !told.state.is_final();
        kept.connection = sends(kept.connection);
        if late || stale {
            kept.take_start(told);
        } else {
            kept.take(told);
        }
        SnapshotChange {
            changed: !kept.says_what(&before),
            ended: kept.state.is_final() && !before.state.is_final(),
        }
    }

    /// Takes in an update; none if it says nothing new. One of a task that is not known counts if
    /// somebody wants it: it may have overtaken an answer.
    pub fn update(
        &mut self,
        told: &TaskUpdate<'_>,
        connection: u64,
        wanted: bool,
        now_ms: u64,
    ) -> Option<SnapshotChange> {
        match self.kept.iter_mut().find(|kept| kept.task == told.task) {
            Some(kept) if told.seq <= kept.seq || kept.state.is_final() => return None,
            Some(kept) => {
                kept.connection = connection;
                kept.take(told);
            }
            None if !wanted || told.seq.is_none() => return None,
            None => self.add(Snapshot::new(told, connection, now_ms)),
        }
        Some(SnapshotChange {
            changed: true,
            ended: told.state.is_final(),
        })
    }

    fn add(&mut self, snapshot: Snapshot) {
        self.make_room();
        self.kept.push(snapshot);
    }

    /// The oldest that has ended goes first, and if none has, the oldest.
    fn make_room(&mut self) {
        if self.kept.len() == EXECUTOR_SNAPSHOTS_MAX {
            let ended = self.kept.iter().position(|kept| kept.state.is_final());
            self.kept.remove(ended.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor_protocol::state::{Outcome, TaskState};

    fn told(task: u128, state: TaskState, seq: Option<u64>) -> TaskUpdate<'static> {
        TaskUpdate {
            task: TaskId::new(task),
            state,
            seq,
            position: None,
            progress: None,
            phase: "",
            message: "",
            created_at: "2026-12-01T00:00:00Z",
            updated_at: "",
            last_output_at: "",
            duplicate: false,
            record: None,
        }
    }

    fn state(snapshots: &Snapshots, task: u128) -> Option<TaskState> {
        snapshots.get(TaskId::new(task)).map(|kept| kept.state)
    }

    /// What a snapshot says after an answer on the connection 1 to who asked how the task stands.
    fn note(
        snapshots: &mut Snapshots,
        task: u128,
        state: TaskState,
        seq: Option<u64>,
    ) -> SnapshotChange {
        snapshots.note(&told(task, state, seq), 1, true, 0)
    }

    fn update(snapshots: &mut Snapshots, state: TaskState, seq: Option<u64>) -> bool {
        snapshots
            .update(&told(1, state, seq), 1, false, 0)
            .is_some()
    }

    #[test]
    fn stale_updates_and_changes_of_a_final_state_are_dropped() {
        let mut snapshots = Snapshots::new();
        assert!(!update(&mut snapshots, TaskState::Running, Some(1)));
        note(&mut snapshots, 1, TaskState::Queued, Some(3));
        assert!(!update(&mut snapshots, TaskState::Running, Some(3)));
        assert!(!update(&mut snapshots, TaskState::Running, None));
        assert!(update(&mut snapshots, TaskState::Running, Some(4)));
        note(&mut snapshots, 1, TaskState::Queued, Some(2));
        assert_eq!(state(&snapshots, 1), Some(TaskState::Running));
        note(&mut snapshots, 1, TaskState::Queued, None);
        assert_eq!(state(&snapshots, 1), Some(TaskState::Running));
        assert!(update(
            &mut snapshots,
            TaskState::Ended(Outcome::Succeeded),
            Some(9)
        ));
        assert!(!update(
            &mut snapshots,
            TaskState::Ended(Outcome::Failed),
            Some(10)
        ));
        snapshots.note(&told(1, TaskState::Running, Some(11)), 2, true, 0);
        assert_eq!(
            state(&snapshots, 1),
            Some(TaskState::Ended(Outcome::Succeeded))
        );
    }

    #[test]
    fn updates_may_count_from_zero() {
        let mut snapshots = Snapshots::new();
        note(&mut snapshots, 1, TaskState::Queued, None);
        assert!(update(&mut snapshots, TaskState::Running, Some(0)));
        assert!(!update(&mut snapshots, TaskState::Verifying, Some(0)));
    }

    #[test]
    fn an_update_that_overtakes_an_answer_counts() {
        let mut snapshots = Snapshots::new();
        let mut early = told(1, TaskState::Ended(Outcome::Succeeded), Some(2));
        early.created_at = "";
        let news = snapshots.update(&early, 1, true, 0);
        assert!(news.is_some_and(|news| news.ended));
        let news = note(&mut snapshots, 1, TaskState::Queued, Some(0));
        assert_eq!((news.changed, news.ended), (false, false));
        let kept = snapshots.get(TaskId::new(1)).unwrap();
        assert_eq!(kept.state, TaskState::Ended(Outcome::Succeeded));
        assert_eq!(kept.created_at.as_str(), "2026-12-01T00:00:00Z");
        assert_eq!(kept.updated_at.as_str(), "2026-12-01T00:00:00Z");
    }

    #[test]
    fn only_who_was_asked_how_a_task_stands_sends_updates() {
        let mut snapshots = Snapshots::new();
        snapshots.note(&told(1, TaskState::Running, None), 1, false, 0);
        assert_eq!(snapshots.get(TaskId::new(1)).unwrap().connection, 0);
        snapshots.note(&told(1, TaskState::Running, None), 2, true, 0);
        assert_eq!(snapshots.get(TaskId::new(1)).unwrap().connection, 2);
        snapshots.note(&told(1, TaskState::Cancelling, None), 3, false, 0);
        assert_eq!(snapshots.get(TaskId::new(1)).unwrap().connection, 2);
        assert_eq!(state(&snapshots, 1), Some(TaskState::Cancelling));
    }

    #[test]
    fn the_oldest_that_has_ended_makes_room() {
        let mut snapshots = Snapshots::new();
        for task in 0..EXECUTOR_SNAPSHOTS_MAX as u128 {
            let state = if task == 7 {
                TaskState::Ended(Outcome::Failed)
            } else {
                TaskState::Running
            };
            note(&mut snapshots, task, state, None);
        }
        note(&mut snapshots, 1000, TaskState::Running, None);
        assert_eq!(
            (state(&snapshots, 7), state(&snapshots, 0)),
            (None, Some(TaskState::Running))
        );
        note(&mut snapshots, 1001, TaskState::Running, None);
        assert_eq!(
            (state(&snapshots, 0), state(&snapshots, 1001)),
            (None, Some(TaskState::Running))
        );
    }
}
