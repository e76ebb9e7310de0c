//! The last states of tasks that the client remembers, in memory that is claimed once. The executor
//! decides; a snapshot saves a question to the executor, and is the answer while none is connected.

use crate::executor_client::task_update::{Snapshot, TaskUpdate};
use crate::limits::EXECUTOR_SNAPSHOTS_MAX;
use crate::task::id::TaskId;

/// What an update changes of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotChange {
    /// The task's state differs from the one before.
    pub changed: bool,
    /// The task has ended, and had not before.
    pub ended: bool,
}

/// The last state of some tasks.
#[derive(Debug)]
pub struct Snapshots {
    /// In the order in which the client first heard of the tasks.
    kept: Vec<Snapshot>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self::new()
    }
}

impl Snapshots {
    /// No snapshots.
    pub fn new() -> Self {
        Self {
            kept: Vec::with_capacity(EXECUTOR_SNAPSHOTS_MAX),
        }
    }

    /// The snapshot of a task.
    pub fn get(&self, task: TaskId) -> Option<&Snapshot> {
        self.kept.iter().find(|kept| kept.task == task)
    }

    /// Takes in an answer about a task. `connection` is the one that the answer came on, where the
    /// executor sends updates of a task whose state was asked for.
    pub fn note(
        &mut self,
        update: &TaskUpdate<'_>,
        connection: u64,
        sends: bool,
        now_ms: u64,
    ) -> SnapshotChange {
        let sends = |before| if sends { connection } else { before };
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.task == update.task) else {
            self.add(Snapshot::new(update, sends(0), now_ms));
            return SnapshotChange {
                changed: false,
                ended: update.state.is_final(),
            };
        };
        let before = *kept;
        // A final state never changes, whatever comes late.
        let late = kept.state.is_final() && !update.state.is_final();
        let same = kept.connection == connection;
        let stale = same && update.seq < kept.seq && !update.state.is_final();
        kept.connection = sends(kept.connection);
        if late || stale {
            kept.take_start(update);
        } else {
            kept.take(update);
        }
        SnapshotChange {
            changed: !kept.says_what(&before),
            ended: kept.state.is_final() && !before.state.is_final(),
        }
    }

    /// Takes in an update; none if it is not new. An update of a task without a snapshot counts if
    /// a caller waits for the task: the update may have overtaken an answer.
    pub fn update(
        &mut self,
        update: &TaskUpdate<'_>,
        connection: u64,
        wanted: bool,
        now_ms: u64,
    ) -> Option<SnapshotChange> {
        match self.kept.iter_mut().find(|kept| kept.task == update.task) {
            Some(kept) if update.seq <= kept.seq || kept.state.is_final() => return None,
            Some(kept) => {
                kept.connection = connection;
                kept.take(update);
            }
            None if !wanted || update.seq.is_none() => return None,
            None => self.add(Snapshot::new(update, connection, now_ms)),
        }
        Some(SnapshotChange {
            changed: true,
            ended: update.state.is_final(),
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
