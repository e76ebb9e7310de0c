//! What is kept of tasks: [`state_dir`] is the directory as anybody may read it, [`journal`] is the
//! one who writes to it, with [`state_writer`] for the states, [`log`] holds what agents and gates
//! print, [`full_disk`] says where there is no room, [`measurement`] tells what a tree takes on the
//! disk, and [`removal`] takes away what nobody keeps any more: of a task that has just ended by
//! way of its [`waste`].
//!
//! ```text
//! lock                          held by the one executor that may write here
//! git/                          git directories that are needed for a moment, and waste
//! expired                       the names of tasks whose records are gone
//! tasks/<task_id>/task.json     what was accepted
//!                 state.ndjson  a line for each state, the last one counts
//!                 goal          what the agent reads on its stdin
//!                 log           what the agent says
//!                 gates         what the gates say
//!                 diff.patch    what was changed
//!                 result.json   how it ended
//!                 cancel        is there when somebody at a terminal wants it cancelled
//!                 work          the agent's clone, kept unless the task succeeded
//! ```

pub mod full_disk;
pub mod journal;
pub mod log;
pub mod measurement;
pub mod plain_file;
pub mod removal;
pub mod state_dir;
pub mod state_writer;
pub mod waste;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(ErrorKind::NotADirectory.into())
        }
        made => made,
    }
}

pub(super) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}
