//! `rocco task cancel`: asks for the end of a task, and waits for it.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::executor::daemon::warn;
use crate::executor::json;
use crate::executor::store::state_dir::{FoundTask, StateDir};

use super::text::{OutputFormat, coloured, see};

/// How long a cancelled task is waited for: an agent has five seconds to leave.
const PATIENCE: Duration = Duration::from_secs(15);

/// Cancels a task, and shows the state that it comes to.
pub(super) fn cancel(
    state_dir: &StateDir,
    found: &FoundTask,
    format: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let id = found.task.id;
    if found.state.outcome().is_none()
        && let Err(error) = state_dir.ask_to_cancel(id)
    {
        let dir = state_dir.dir(id);
        warn(&format!("{} cannot be written to: {error}", dir.display()));
        return Ok(ExitCode::FAILURE);
    }
    let started = Instant::now();
    loop {
        let state = state_dir
            .found(id)
            .map_or(found.state, |found| state_dir.state_of(&found));
        if format.json && (state.outcome().is_some() || !state_dir.is_owned()) {
            let line = json::object(|object| {
                object.formatted("task_id", format_args!("{id}"));
                object.string("state", state.name());
            });
            writeln!(out, "{line}")?;
            return Ok(ExitCode::SUCCESS);
        }
        if state.outcome().is_some() {
            writeln!(out, "{id}  {}", coloured(state, format, 0))?;
            return Ok(ExitCode::SUCCESS);
        }
        if !state_dir.is_owned() {
            writeln!(
                out,
                "{id}  {state}; it is cancelled when an executor starts"
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        if started.elapsed() > PATIENCE {
            let see = see(&format!("show {id}"), state_dir);
            warn(&format!("{id} has not ended yet; {see}"));
            return Ok(ExitCode::FAILURE);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
