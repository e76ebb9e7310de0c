//! The index that an agent has left, where it is not a plain one: a split index keeps entries in
//! another file, and a sparse one has directories in their place.

use std::ffi::OsString;
use std::time::Instant;

use super::job::Job;
use crate::executor::run::files_taken::index_at;
use crate::executor::run::program::{Role, walled};
use crate::executor::run::workspace::is_plain_dir;
use crate::executor::store::log::TaskLog;
use crate::limits::TASK_LOG_BYTES_MAX;

/// Git, told to write an index with all of its entries.
const WRITE_OUT: [&str; 8] = [
    "git",
    "-c",
    "index.sparse=false",
    "-c",
    "core.splitIndex=false",
    "update-index",
    "--no-split-index",
    "--force-write-index",
];

impl Job<'_> {
    /// Has git write out an index that is not read as data. It does so as a program of the task,
    /// within the walls, since it reads what the agent has configured. Where it cannot, the index
    /// stays unread.
    pub(super) fn write_out_index(&mut self, until: Instant) {
        let git_dir = self.path("work").join(".git");
        let index = git_dir.join("index");
        let is_there = is_plain_dir(&git_dir) && index.is_file();
        if !is_there || index_at(&index, self.task.base.len() / 2).is_some() {
            return;
        }
        let program = walled(
            &self.daemon.policy,
            &self.agent_dirs(),
            &Role {
                argv: &WRITE_OUT.map(OsString::from),
                pass_env: &[],
                writable: &[],
                network: false,
                stdin: "/dev/null".into(),
            },
        );
        let said = self.path("index.log");
        if let Ok(mut log) = TaskLog::create(said.clone(), TASK_LOG_BYTES_MAX) {
            self.left_bytes = None;
            // Whether git has done it shows in the index.
            let _ = self.accompany(&program, "collect", until, None, &mut log, |_| {});
            let _ = std::fs::remove_file(said);
        }
    }
}
