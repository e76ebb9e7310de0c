//! The index that an agent has left. Where it is not a plain one, git writes it out: a split index
//! keeps entries in another file, and a sparse one has directories in their place.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use super::collection::CHECKOUT_INDEX;
use super::job::Job;
use crate::executor::run::index_file::{IndexEntry, entries_of};
use crate::executor::run::own_dir::index_bytes_at;
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

/// What an agent has made of the index of its clone.
#[derive(Debug, PartialEq, Eq)]
pub enum LeftIndex {
    /// Nothing: it is that of the checkout, or none is there.
    AsItWas,
    /// Another one, with these entries.
    Other(Vec<IndexEntry>),
    /// One that cannot be read.
    Unread,
}

impl LeftIndex {
    /// Reads it in a clone, beside the index of the checkout, which most agents leave as it is.
    fn in_clone(work: &Path, checkout: &Path, object_bytes: usize) -> Self {
        let git_dir = work.join(".git");
        let index = git_dir.join("index");
        if !is_plain_dir(&git_dir) || !index.exists() {
            return Self::AsItWas;
        }
        let Some(left) = index_bytes_at(&index) else {
            return Self::Unread;
        };
        if index_bytes_at(checkout).is_some_and(|checkout| checkout == left) {
            return Self::AsItWas;
        }
        entries_of(&left, object_bytes).map_or(Self::Unread, Self::Other)
    }

    /// The entries of another one.
    pub fn entries(&self) -> Option<&[IndexEntry]> {
        match self {
            Self::Other(entries) => Some(entries),
            Self::AsItWas | Self::Unread => None,
        }
    }
}

impl Job<'_> {
    /// Reads the index that the agent has left, and has git write it out where it cannot be read.
    pub(super) fn left_index(&self, until: Instant) -> LeftIndex {
        let (work, checkout) = (self.path("work"), self.path(CHECKOUT_INDEX));
        let object_bytes = self.task.base.len() / 2;
        let look = || LeftIndex::in_clone(&work, &checkout, object_bytes);
        match look() {
            LeftIndex::Unread if work.join(".git/index").is_file() => {
                self.write_out_index(until);
                look()
            }
            left => left,
        }
    }

    /// Has git write out an index that is not read as data. It does so as a program of the task,
    /// within the walls, since it reads what the agent has configured. Where it cannot, the index
    /// stays unread.
    fn write_out_index(&self, until: Instant) {
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
            // Whether git has done it shows in the index.
            let _ = self.accompany(&program, "collect", until, None, &mut log, |_| {});
            let _ = std::fs::remove_file(said);
        }
    }
}
