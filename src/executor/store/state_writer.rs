//! A thread that writes the states of tasks, in the order in which they are handed over, so that
//! nobody who holds the lock of all tasks waits for a disk.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::executor::daemon::warn;
use crate::executor::store::full_disk::in_words;
use crate::executor::store::state_dir::StateLine;
use crate::executor::threads::{self, locked, wait, wait_for};

/// A line that was handed over: how many there were with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineNumber(u64);

/// The side that hands over.
#[derive(Debug)]
pub struct StateWriter {
    lines: Mutex<HandedOver>,
    written: Arc<Written>,
}

#[derive(Debug)]
struct HandedOver {
    count: u64,
    to_thread: Sender<(PathBuf, StateLine)>,
}

/// How many lines the thread is done with.
#[derive(Debug, Default)]
struct Written {
    count: Mutex<u64>,
    changed: Condvar,
}

impl StateWriter {
    /// Starts the thread. It tells of each file that it has written to.
    pub fn start(later: Sender<PathBuf>) -> io::Result<Self> {
        let (to_thread, lines) = mpsc::channel();
        let written = Arc::new(Written::default());
        let shared = Arc::clone(&written);
        threads::start("states", move || write_all(&lines, &shared, &later))?;
        Ok(Self {
            lines: Mutex::new(HandedOver {
                count: 0,
                to_thread,
            }),
            written,
        })
    }

    /// Hands a line over, to be appended to a file. This does not wait for the disk.
    pub fn hand_over(&self, file: PathBuf, line: StateLine) -> LineNumber {
        let mut lines = locked(&self.lines);
        lines.count += 1;
        // The thread lives as long as this side does.
        let _ = lines.to_thread.send((file, line));
        LineNumber(lines.count)
    }

    /// Waits until a line was written, or could not be, which was told then.
    pub fn wait_for(&self, line: LineNumber) {
        let mut count = locked(&self.written.count);
        while *count < line.0 {
            count = wait(&self.written.changed, count);
        }
    }

    /// The same, but not longer than this.
    pub fn wait_at_most(&self, line: LineNumber, limit: Duration) {
        let count = locked(&self.written.count);
        drop(wait_for(&self.written.changed, count, limit, |count| {
            *count < line.0
        }));
    }
}

fn write_all(lines: &Receiver<(PathBuf, StateLine)>, written: &Written, later: &Sender<PathBuf>) {
    while let Ok((file, line)) = lines.recv() {
        match append(&file, line) {
            // Without the other side the process is about to end.
            Ok(()) => drop(later.send(file)),
            Err(error) => {
                let why = in_words(&file, &error);
                let (file, state) = (file.display(), line.state);
                warn(&format!("{file}: the state {state} cannot be kept: {why}"));
            }
        }
        *locked(&written.count) += 1;
        written.changed.notify_all();
    }
}

/// Appends a line to a file that exists.
pub fn append(file: &Path, line: StateLine) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(file)?;
    file.write_all(line.to_json().as_bytes())
}
