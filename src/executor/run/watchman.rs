//! The watchman: a process of its own that watches the clone of a task in the executor's place,
//! from the start of the agent until the task has ended.
//!
//! A clone that an agent works in can hold a git configuration of the agent's. The executor takes
//! that away before a task ends. Where the executor is killed, it cannot: its watchman sees that at
//! the end of its input, and does it then, without waiting for the next executor to start.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Duration;

use crate::executor::run::{process, workspace};
use crate::limits::{TASK_SETTLE_MS, TASK_SWEEP_MS};

/// The word by which the executor starts its own program as a watchman.
pub const COMMAND: &str = "executor-watchman";

/// Those that are on watch. The end of the executor ends them last.
static ON_WATCH: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn on_watch() -> MutexGuard<'static, Vec<u32>> {
    ON_WATCH
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The processes of those that are on watch.
pub fn all() -> Vec<u32> {
    on_watch().clone()
}

/// The order by which a watchman leaves without having done anything.
const DISMISSED: u8 = b'D';

/// The executor's side: a clone that is watched. Where this is let go of without a word, as by a
/// panic, the watchman does what it does for an executor that was killed.
#[derive(Debug)]
pub struct Watchman {
    process: Child,
    orders: Option<ChildStdin>,
}

impl Watchman {
    /// Has a clone watched.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub fn over(work: &Path) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(COMMAND).arg(work).env_clear();
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // What ends the executor with its group or its terminal does not end this.
        process::in_own_session(&mut command);
        let mut process = process::spawn(&mut command)?;
        on_watch().push(process.id());
        let orders = process.stdin.take();
        Ok(Self { process, orders })
    }

    /// Ends the watch over a clone that is safe to look at, or gone.
    pub fn dismiss(mut self) {
        if let Some(mut orders) = self.orders.take() {
            // One that was killed hears nothing, and has left.
            let _ = orders.write_all(&[DISMISSED]);
        }
    }
}

impl Drop for Watchman {
    fn drop(&mut self) {
        on_watch().retain(|pid| *pid != self.process.id());
        let is_dismissed = self.orders.take().is_none();
        if is_dismissed {
            let _ = process::wait(&mut self.process);
        }
    }
}

/// What the watchman does.
pub fn main(work: &Path) -> ExitCode {
    let mut order = [0];
    if let Ok(1) = io::stdin().read(&mut order) {
        return ExitCode::SUCCESS;
    }
    // The guard of the agent kills it meanwhile, and what has lived on for longer than the first
    // pause may have written once more.
    for pause_ms in [TASK_SETTLE_MS, TASK_SWEEP_MS] {
        sleep(Duration::from_millis(pause_ms));
        // Nobody is left to be told of a clone that was removed.
        let _ = workspace::disarm(work);
    }
    ExitCode::SUCCESS
}
