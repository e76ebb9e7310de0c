//! What the commands of `rocco task` share: how they show a state, and a failure.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::executor::daemon::warn;
use crate::executor_protocol::state::{Outcome, TaskState};

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputFormat {
    /// As JSON, for scripts.
    pub json: bool,
    /// To a terminal: with colours, and without what would steer it.
    pub terminal: bool,
}

/// A state, padded to a width, and in its colour on a terminal.
pub(super) fn coloured(state: TaskState, format: OutputFormat, width: usize) -> String {
    let padded = format!("{state:<width$}");
    let colour = match state {
        TaskState::Ended(Outcome::Succeeded) => "32",
        TaskState::Ended(Outcome::Failed | Outcome::TimedOut | Outcome::Interrupted) => "31",
        TaskState::Ended(Outcome::NeedsInput) => "33",
        TaskState::Ended(Outcome::Cancelled) => return padded,
        _ => "36",
    };
    if format.terminal {
        format!("\u{1b}[{colour}m{padded}\u{1b}[0m")
    } else {
        padded
    }
}

/// Says that something cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> ExitCode {
    warn(&format!("{} cannot be read: {error}", path.display()));
    ExitCode::FAILURE
}
