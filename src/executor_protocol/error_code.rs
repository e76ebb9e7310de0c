//! The codes of typed errors, as both sides know them.

/// Why a task, or a question about one, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskErrorCode {
    /// An argument is not what it must be.
    InvalidArguments,
    /// No executor can be asked.
    ExecutorNotConnected,
    /// The executor said nothing in time.
    ExecutorTimeout,
    /// What the other side says is not rocco-exec/1.
    ExecutorProtocol,
    /// No further task or call is taken for now.
    QueueFull,
    /// The key is that of a task with other content.
    KeyConflict,
    /// No task of this id was ever known.
    NotFound,
    /// The task's record is past its keep time.
    Expired,
    /// The repository is outside of what the operator allows.
    RepoNotAllowed,
    /// A file is outside of what the operator allows.
    PathNotAllowed,
    /// A part of the result was asked for that is there only when the task has ended, or a task is
    /// to be continued that has not ended.
    NotFinished,
    /// A task tries to submit a task.
    DepthExceeded,
    /// The executor is about to end.
    ShuttingDown,
    /// The executor does not offer what was asked for.
    Unsupported,
    /// The executor cannot keep the task, or read a part of it.
    Storage,
}

/// A code, its name on the wire, and whether the same call may succeed later.
type Row = (TaskErrorCode, &'static str, bool);

const ROWS: [Row; 15] = [
    (TaskErrorCode::InvalidArguments, "invalid_arguments", false),
    (
        TaskErrorCode::ExecutorNotConnected,
        "executor_not_connected",
        true,
    ),
    (TaskErrorCode::ExecutorTimeout, "executor_timeout", true),
    (TaskErrorCode::ExecutorProtocol, "executor_protocol", false),
    (TaskErrorCode::QueueFull, "queue_full", true),
    (TaskErrorCode::KeyConflict, "key_conflict", false),
    (TaskErrorCode::NotFound, "not_found", false),
    (TaskErrorCode::Expired, "expired", false),
    (TaskErrorCode::RepoNotAllowed, "repo_not_allowed", false),
    (TaskErrorCode::PathNotAllowed, "path_not_allowed", false),
    (TaskErrorCode::NotFinished, "not_finished", true),
    (TaskErrorCode::DepthExceeded, "depth_exceeded", false),
    (TaskErrorCode::ShuttingDown, "shutting_down", true),
    (TaskErrorCode::Unsupported, "unsupported", false),
    (TaskErrorCode::Storage, "storage", true),
];

impl TaskErrorCode {
    /// The code of a name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut rows = ROWS.iter();
        rows.find(|row| row.1 == name).map(|row| row.0)
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        ROWS[self as usize].1
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(self) -> bool {
        ROWS[self as usize].2
    }

    /// Whether an executor may answer with it. The others are the client's own.
    pub fn is_for_executors(self) -> bool {
        !matches!(
            self,
            Self::ExecutorNotConnected | Self::ExecutorTimeout | Self::ExecutorProtocol
        )
    }
}

/// Every code. The manual and the description of the protocol repeat the table, and tests compare.
pub fn all() -> impl Iterator<Item = TaskErrorCode> {
    ROWS.iter().map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_codes() {
        for row in &ROWS {
            assert_eq!(row.0.name(), row.1);
            assert_eq!(TaskErrorCode::parse(row.1), Some(row.0));
        }
    }

    /// The manual said that `storage` is worth another call, and the wire that it is not.
    #[test]
    fn the_description_of_the_protocol_has_every_code_and_whether_it_is_retryable() {
        let page = include_str!("protocol.md");
        let (_, table) = page
            .split_once("| `data.code` | retryable | when |")
            .unwrap();
        let mut told = Vec::new();
        for row in table.lines().skip(2).take_while(|line| !line.is_empty()) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            told.extend(
                cells[1]
                    .split(", ")
                    .map(|code| (code.trim_matches('`'), cells[2])),
            );
        }
        told.sort_unstable();
        let held = all().filter(|code| code.is_for_executors());
        let yes = |code: TaskErrorCode| if code.is_retryable() { "yes" } else { "no" };
        let mut held: Vec<_> = held.map(|code| (code.name(), yes(code))).collect();
        held.sort_unstable();
        assert_eq!(told, held);
    }
}
