//! Which tasks are past keeping. No I/O.

use std::cmp::Reverse;

use crate::executor::schedule::queue::TaskEntry;
use crate::limits::{TASKS_BYTES_MAX, TASKS_KEPT_MAX};
use crate::task::id::TaskId;

/// What the files of a task take on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskBytes {
    /// What tells of the task: its record, its logs, its diff.
    pub record: u64,
    /// What the agent worked in, which is kept for whoever wants to look at a failure.
    pub scratch: u64,
}

/// A task that has ended. One that has not is neither removed nor counted: its end will be, and
/// removing others would make no room for it.
#[derive(Debug, Clone, Copy)]
pub struct EndedTask {
    /// Its name.
    pub id: TaskId,
    /// When it was accepted.
    pub created_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
    /// What it takes.
    pub bytes: TaskBytes,
}

impl EndedTask {
    /// A task whose files were not looked at yet.
    pub fn of(entry: &TaskEntry) -> Self {
        Self {
            id: entry.task.id,
            created_ms: entry.task.created_ms,
            ended_ms: entry.updated_ms,
            bytes: TaskBytes::default(),
        }
    }
}

/// What is past keeping.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PastKeeping {
    /// Tasks that are removed with all that they have.
    pub tasks: Vec<TaskId>,
    /// Tasks of which only the scratch is removed.
    pub scratch: Vec<TaskId>,
}

/// What to remove: tasks that ended before a time, the oldest of those that are too many, and, if
/// all together take too much, what takes most. The scratch of tasks goes before any record, so
/// that a single large clone costs no other task its record.
pub fn past_keeping(mut tasks: Vec<EndedTask>, ended_before_ms: u64) -> PastKeeping {
    let mut past = PastKeeping::default();
    tasks.sort_by_key(|task| (Reverse(task.created_ms), task.id));
    let mut kept: Vec<EndedTask> = Vec::new();
    for task in tasks {
        if task.ended_ms < ended_before_ms || kept.len() >= TASKS_KEPT_MAX {
            past.tasks.push(task.id);
        } else {
            kept.push(task);
        }
    }
    // A file system may hold more than one such number counts.
    let sizes = kept.iter().map(|task| task.bytes);
    let mut bytes: u128 = sizes
        .map(|bytes| u128::from(bytes.record) + u128::from(bytes.scratch))
        .sum();
    // The sort is stable, and reversed first: of two that take the same the older one goes.
    kept.reverse();
    kept.sort_by_key(|task| Reverse(task.bytes.scratch));
    for task in &kept {
        if bytes > u128::from(TASKS_BYTES_MAX) && task.bytes.scratch > 0 {
            bytes -= u128::from(task.bytes.scratch);
            past.scratch.push(task.id);
        }
    }
    kept.sort_by_key(|task| Reverse(task.bytes.record));
    for task in &kept {
        if bytes > u128::from(TASKS_BYTES_MAX) {
            bytes -= u128::from(task.bytes.record);
            past.scratch.retain(|id| *id != task.id);
            past.tasks.push(task.id);
        }
    }
    past
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// The task of a number, which is also when it was accepted and when it ended.
    fn task(number: u64, record: u64, scratch: u64) -> EndedTask {
        EndedTask {
            id: TaskId::new(number.into()),
            created_ms: number,
            ended_ms: number,
            bytes: TaskBytes { record, scratch },
        }
    }

    fn past(tasks: &[EndedTask], ended_before_ms: u64) -> (Vec<TaskId>, Vec<TaskId>) {
        let past = past_keeping(tasks.to_vec(), ended_before_ms);
        (past.tasks, past.scratch)
    }

    fn ids<const N: usize>(numbers: [u128; N]) -> Vec<TaskId> {
        numbers.map(TaskId::new).to_vec()
    }

    #[test]
    fn old_tasks_and_those_that_are_too_many_are_past_keeping() {
        let few = [task(1, 1, 0), task(2, 1, 0), task(3, 1, 0)];
        assert_eq!(past(&few, 0), (ids([]), ids([])));
        assert_eq!(past(&few, 3), (ids([2, 1]), ids([])));
        let many: Vec<_> = (0..TASKS_KEPT_MAX as u64 + 2)
            .map(|number| task(number, 1, 0))
            .collect();
        assert_eq!(past(&many, 0), (ids([1, 0]), ids([])));
    }

    #[test]
    fn one_large_clone_costs_no_other_task_its_record() {
        let mut tasks: Vec<_> = (0..100).map(|number| task(number, KIB, KIB)).collect();
        tasks.push(task(50, KIB, TASKS_BYTES_MAX + 1));
        tasks[100].id = TaskId::new(1000);
        assert_eq!(past(&tasks, 0), (ids([]), ids([1000])));
    }

    #[test]
    fn what_was_chosen_for_removal_is_not_counted_again() {
        let third = (TASKS_BYTES_MAX - 4 * KIB) / 3;
        let tasks = [
            task(1, KIB, third),
            task(2, KIB, third),
            task(3, KIB, third),
            task(4, KIB, third),
        ];
        // Of clones of one size the oldest goes, and then there is room.
        assert_eq!(past(&tasks, 0), (ids([]), ids([1])));
        // What is old goes anyway, and makes that room.
        assert_eq!(past(&tasks, 2), (ids([1]), ids([])));
    }

    #[test]
    fn when_records_alone_take_too_much_the_largest_goes() {
        let tasks = [
            task(1, KIB, 0),
            task(2, TASKS_BYTES_MAX, 7),
            task(3, KIB, 0),
        ];
        assert_eq!(past(&tasks, 0), (ids([2]), ids([])));
        let monsters = [task(1, u64::MAX, u64::MAX), task(2, 1, 1)];
        assert_eq!(past(&monsters, 0).0, ids([1]));
    }
}
