//! The guard: a process of its own between the executor and each program that it runs for a task.
//!
//! Whatever the program starts, and however it hides, stays a descendant of its guard, and the
//! guard ends with nothing left below it: when the program has ended, when the executor says so,
//! and when the executor has died, which the guard sees at the end of its input. It starts nothing
//! before it is told to.
//!
//! ```text
//!   executor --- orders: start, terminate, kill, end of file ---> guard ---> program ---> ...
//!            <-- report: one line, how it ended -----------------  (all of these are swept)
//!            <-- output of the program -----------------------------------'
//! ```

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{DumpableBehavior, Signal};

use crate::executor::run::process;
use crate::executor::walls::entry::SIGNAL_BASE;
use crate::limits::TASK_SWEEP_MS;

/// The word by which the executor starts its own program as a guard.
pub const COMMAND: &str = "executor-guard";

/// Start the program.
pub const START: u8 = b'S';
/// Ask all that runs to leave.
pub const TERMINATE: u8 = b'T';
/// Kill all that runs.
pub const KILL: u8 = b'K';

/// What the guard does: `stdin` is the file that the program reads, `dir` is where it runs, `argv`
/// is the program. The guard itself stays out of the way of what is in that directory.
pub fn main(stdin: &Path, dir: &Path, argv: &[OsString]) -> ExitCode {
    let mut order = [0];
    let report = match io::stdin().read(&mut order) {
        Ok(1) if order[0] == START => run(stdin, dir, argv),
        _ => Err(io::Error::other("it was not to be started any more")),
    };
    let report = report.unwrap_or_else(|error| format!("unstarted 0 {error}\n"));
    // Without an executor nobody reads it.
    let _ = io::stdout().write_all(report.as_bytes());
    ExitCode::SUCCESS
}

/// Runs the program to its end, and tells how it ended.
fn run(stdin: &Path, dir: &Path, argv: &[OsString]) -> io::Result<String> {
    let is_sandbox = argv
        .first()
        .is_some_and(|program| program.as_os_str() == "bwrap");
    let (program, report) = start(stdin, dir, argv, is_sandbox)?;
    let obeys = std::thread::Builder::new().spawn(move || obey(program, is_sandbox));
    if let Err(error) = obeys {
        // Nobody could end it.
        process::kill_descendants(Duration::from_millis(TASK_SWEEP_MS), true);
        return Err(error);
    }
    Ok(attend(program, report))
}

/// Starts the program. In a sandbox the first process has a pipe as its stdout, in which it tells
/// of a signal, and the program has its stderr for both.
fn start(
    stdin: &Path,
    dir: &Path,
    argv: &[OsString],
    is_sandbox: bool,
) -> io::Result<(u32, Option<PipeReader>)> {
    process::adopt_orphans()?;
    // The program could take the pipes of its guard otherwise, and report in its place.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir);
    command.stdin(sealed(stdin)?);
    let report = match is_sandbox {
        true => {
            let (report, end) = io::pipe()?;
            // Whoever has ended has told what there is to tell.
            rustix::io::ioctl_fionbio(&report, true)?;
            command.stdout(end);
            Some(report)
        }
        false => {
            command.stdout(output.try_clone()?);
            None
        }
    };
    command.stderr(output);
    process::in_own_session(&mut command);
    process::dying_with_this(&mut command);
    Ok((command.spawn()?.id(), report))
}

/// A file in memory with the text of another one, which nobody can change: whoever reads a file of
/// the user's can open it anew for writing by /proc.
fn sealed(path: &Path) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut text = File::from(memfd_create("stdin", flags)?);
    text.write_all(&fs::read(path)?)?;
    text.rewind()?;
    let for_good = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&text, for_good)?;
    Ok(text)
}

/// Waits for the program, and for all that it has left. What a sandbox leaves is itself, on its way
/// out.
fn attend(program: u32, report: Option<PipeReader>) -> String {
    let status = loop {
        match process::reap(true) {
            Some((pid, status)) if pid == program => break Some(status),
            Some(_) => {}
            None => break None,
        }
    };
    let left = process::kill_descendants(Duration::from_millis(TASK_SWEEP_MS), true);
    let left = if report.is_some() { 0 } else { left };
    let status = match (status, report) {
        (Some(Ok(code)), Some(report)) => Some(signal_within(report, code).map_or(Ok(code), Err)),
        (status, _) => status,
    };
    match status {
        Some(Ok(code)) => format!("exited {code} {left}\n"),
        Some(Err(signal)) => format!("signalled {signal} {left}\n"),
        None => String::new(),
    }
}

/// The signal that ended the program of a sandbox, if its first process tells of one that fits the
/// exit code.
fn signal_within(mut report: PipeReader, code: i32) -> Option<i32> {
    let mut signal = [0];
    report.read_exact(&mut signal).ok()?;
    let signal = i32::from(signal[0]);
    (code == i32::from(SIGNAL_BASE) + signal).then_some(signal)
}

/// Follows the executor's orders. Their end is the executor's.
fn obey(program: u32, is_sandbox: bool) {
    let mut orders = io::stdin().lock();
    let mut order = [0];
    while let Ok(1) = orders.read(&mut order) {
        if order[0] == KILL {
            break;
        }
        for pid in process::descendants() {
            // The sandbox would take its inhabitants with it before they have heard.
            if !(is_sandbox && pid == program) {
                process::kill(pid, Signal::TERM);
            }
        }
    }
    process::kill_descendants(Duration::from_millis(TASK_SWEEP_MS), false);
}
