//! What the front remembers of tasks, in memory that is claimed once. The executor is the one who
//! knows; this saves a question to it, and is what can be said while it is away.

use super::state::{Snapshot, Told};
use crate::limits::EXECUTOR_SNAPSHOTS_MAX;
use crate::task::id::TaskId;

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

    /// Takes in the answer to a question about a task.
    pub fn note(&mut self, told: &Told<'_>, connection: u64, now_ms: u64) {
        match self.kept.iter_mut().find(|kept| kept.task == told.task) {
            Some(kept) => {
                // What is final never changes, whatever comes late.
                let late = kept.state.is_final() && !told.state.is_final();
                let same = kept.connection == connection;
                let stale = same && told.seq.is_some_and(|seq| seq < kept.seq);
                kept.connection = connection;
                if !late && !stale {
                    kept.take(told);
                }
            }
            None => {
                self.make_room();
                self.kept.push(Snapshot::of(told, connection, now_ms));
            }
        }
    }

    /// Takes in an update, and tells whether it says anything new of a task that is known.
    pub fn update(&mut self, told: &Told<'_>) -> bool {
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.task == told.task) else {
            return false;
        };
        let newer = told.seq > Some(kept.seq);
        if !newer || kept.state.is_final() {
            return false;
        }
        kept.take(told);
        true
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
    use super::super::state::State;
    use super::*;

    fn told(task: u128, state: State, seq: Option<u64>) -> Told<'static> {
        Told {
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

    fn state(snapshots: &Snapshots, task: u128) -> Option<State> {
        snapshots.get(TaskId::new(task)).map(|kept| kept.state)
    }

    #[test]
    fn stale_updates_and_changes_of_a_final_state_are_dropped() {
        let mut snapshots = Snapshots::new();
        assert!(!snapshots.update(&told(1, State::Running, Some(1))));
        snapshots.note(&told(1, State::Queued, Some(3)), 1, 0);
        assert!(!snapshots.update(&told(1, State::Running, Some(3))));
        assert!(!snapshots.update(&told(1, State::Running, None)));
        assert!(snapshots.update(&told(1, State::Running, Some(4))));
        snapshots.note(&told(1, State::Queued, Some(2)), 1, 0);
        assert_eq!(state(&snapshots, 1), Some(State::Running));
        assert!(snapshots.update(&told(1, State::Succeeded, Some(9))));
        assert!(!snapshots.update(&told(1, State::Failed, Some(10))));
        snapshots.note(&told(1, State::Running, Some(11)), 2, 0);
        assert_eq!(state(&snapshots, 1), Some(State::Succeeded));
    }

    #[test]
    fn the_oldest_that_has_ended_makes_room() {
        let mut snapshots = Snapshots::new();
        for task in 0..EXECUTOR_SNAPSHOTS_MAX as u128 {
            let state = if task == 7 {
                State::Failed
            } else {
                State::Running
            };
            snapshots.note(&told(task, state, None), 1, 0);
        }
        snapshots.note(&told(1000, State::Running, None), 1, 0);
        assert_eq!(
            (state(&snapshots, 7), state(&snapshots, 0)),
            (None, Some(State::Running))
        );
        snapshots.note(&told(1001, State::Running, None), 1, 0);
        assert_eq!(
            (state(&snapshots, 0), state(&snapshots, 1001)),
            (None, Some(State::Running))
        );
    }
}
