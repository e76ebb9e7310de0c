//! The states of a task, and how one follows the other.

use std::fmt;

/// Where a task stands (rocco-exec/1, States).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Accepted, waiting for its turn.
    Queued,
    /// The agent works.
    Running,
    /// The agent has ended; its work is collected and gates run.
    Verifying,
    /// It is to end, and its processes are being ended.
    Cancelling,
    /// It ended in one of these ways.
    Ended(Outcome),
}

/// How a task ended. An outcome never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There are changes or none were needed, and every gate passed.
    Succeeded,
    /// It ended without that.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// It ran out of time, or was silent for too long.
    TimedOut,
    /// The executor ended while it ran.
    Interrupted,
    /// The agent cannot go on without an answer.
    NeedsInput,
    /// The record of the task is past its keep time. An executor tells it and never keeps it.
    Expired,
}

const NAMES: [(TaskState, &str); 11] = [
    (TaskState::Queued, "queued"),
    (TaskState::Running, "running"),
    (TaskState::Verifying, "verifying"),
    (TaskState::Cancelling, "cancelling"),
    (TaskState::Ended(Outcome::Succeeded), "succeeded"),
    (TaskState::Ended(Outcome::Failed), "failed"),
    (TaskState::Ended(Outcome::Cancelled), "cancelled"),
    (TaskState::Ended(Outcome::TimedOut), "timed_out"),
    (TaskState::Ended(Outcome::Interrupted), "interrupted"),
    (TaskState::Ended(Outcome::NeedsInput), "needs_input"),
    (TaskState::Ended(Outcome::Expired), "expired"),
];

impl TaskState {
    /// The state of a name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut named = NAMES.iter().filter(|(_, known)| *known == name);
        named.next().map(|(state, _)| *state)
    }

    /// Its name on the wire and on disk.
    pub fn name(self) -> &'static str {
        let mut named = NAMES.iter().filter(|(state, _)| *state == self);
        named.next().map_or("", |(_, name)| name)
    }

    /// How it ended, if it has.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whether the state never changes again.
    pub fn is_final(self) -> bool {
        self.outcome().is_some()
    }

    /// Whether a worker has it in hand.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Running | Self::Verifying | Self::Cancelling)
    }

    /// Whether another state may come next. Nothing follows an end, and nothing but an end follows
    /// a cancellation.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Ended(_), _) | (_, Self::Queued | Self::Ended(Outcome::Expired)) => false,
            (Self::Queued, Self::Running | Self::Ended(Outcome::Cancelled)) => true,
            (Self::Queued, _) => false,
            (Self::Running, Self::Running) => false,
            (Self::Running, _) => true,
            (Self::Verifying, Self::Cancelling | Self::Ended(_)) => true,
            (Self::Cancelling, Self::Ended(_)) => true,
            (Self::Verifying | Self::Cancelling, _) => false,
        }
    }

    /// What a task becomes that was in this state when its executor died. It is never run again by
    /// itself: an agent's edits cannot be repeated without harm.
    pub fn after_a_crash(self) -> Self {
        match self {
            Self::Running | Self::Verifying => Self::Ended(Outcome::Interrupted),
            Self::Cancelling => Self::Ended(Outcome::Cancelled),
            Self::Queued | Self::Ended(_) => self,
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (state, name) in NAMES {
            assert_eq!(TaskState::parse(name), Some(state));
            assert_eq!(state.name(), name);
        }
        assert_eq!(TaskState::parse("done"), None);
    }

    #[test]
    fn nothing_follows_an_end_and_nothing_is_queued_again() {
        for (state, _) in NAMES {
            assert!(!state.may_become(TaskState::Queued));
            for (next, _) in NAMES {
                let allowed = state.may_become(next);
                assert!(!(allowed && state.outcome().is_some()), "{state} {next}");
                assert!(!(allowed && state == next), "{state} {next}");
            }
            let after = state.after_a_crash();
            assert!(after == state || state.may_become(after), "{state}");
            assert!(!after.is_under_way());
        }
    }

    #[test]
    fn only_a_worker_makes_a_task_succeed() {
        let succeeded = TaskState::Ended(Outcome::Succeeded);
        assert!(!TaskState::Queued.may_become(succeeded));
        assert!(TaskState::Verifying.may_become(succeeded));
    }
}
