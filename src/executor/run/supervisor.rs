//! The guard: a process of its own between the executor and each program that it runs for a task.
//!
//! Whatever the program starts, and however it hides, stays a descendant of its guard, and the
//! guard ends with nothing left below it: when the program has ended, when the executor says so,
//! and when the executor has died, which the guard sees at the end of its input.
//!
//! ```text
//!   executor --- orders: terminate, kill, end of file ---> guard ---> program ---> ...
//!            <-- report: one line, how it ended ----------  (all of these are swept)
//!            <-- output of the program ----------------------------'
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::executor::run::process;
use crate::executor::schedule::queue::StopReason;
use crate::limits::{TASK_KILL_MS, TASK_SWEEP_MS, TASK_TICK_MS};

/// The word by which the executor starts its own program as a guard.
pub const COMMAND: &str = "executor-guard";

const TERMINATE: u8 = b'T';
const KILL: u8 = b'K';

/// What is to be run.
#[derive(Debug)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs.
    pub dir: PathBuf,
    /// All of its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The file that it reads as its stdin.
    pub stdin: PathBuf,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It was not started.
    NotStarted(String),
    /// Nobody knows: its guard was killed.
    Unknown,
}

/// What is known when a program has ended.
#[derive(Debug)]
pub struct ProgramEnd {
    /// How it ended.
    pub ending: Ending,
    /// That it was ended, and why.
    pub stopped: Option<StopReason>,
    /// Processes that it had left behind, and that were killed.
    pub left_behind: u64,
    /// How long it ran.
    pub duration_ms: u64,
}

/// A program that runs.
#[derive(Debug)]
pub struct SupervisedProgram {
    guard: Child,
    orders: Option<ChildStdin>,
    report: Option<ChildStdout>,
    output: Receiver<Vec<u8>>,
    started: Instant,
}

impl SupervisedProgram {
    /// Starts a program under a guard.
    ///
    /// # Errors
    ///
    /// The guard cannot be started. Whether the program can is told by its end.
    pub fn start(program: &Program) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(COMMAND).arg(&program.stdin).arg(&program.dir);
        command.args(&program.argv);
        command.env_clear().envs(program.env.iter().cloned());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process::in_own_session(&mut command);
        let mut guard = process::spawn(&mut command)?;
        let output = guard.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            orders: guard.stdin.take(),
            report: guard.stdout.take(),
            output: chunks(output),
            guard,
            started: Instant::now(),
        })
    }

    /// Stays with a program until it has ended, and ends it when it is told so. `hear` is given
    /// what it prints, `judge` is asked every now and then.
    pub fn accompany(
        mut self,
        mut hear: impl FnMut(&[u8]),
        mut judge: impl FnMut() -> Option<StopReason>,
    ) -> ProgramEnd {
        let (mut stopped, mut kill_at, mut gone_at) = (None, None, None);
        loop {
            match self
                .output
                .recv_timeout(Duration::from_millis(TASK_TICK_MS))
            {
                Ok(chunk) => hear(&chunk),
                Err(RecvTimeoutError::Disconnected) => break,
                // Something that cannot be killed may hold the pipe.
                Err(RecvTimeoutError::Timeout) => match (self.guard.try_wait(), gone_at) {
                    (Ok(Some(_)), None) => gone_at = Some(Instant::now()),
                    (_, Some(at)) if elapsed_ms(at) > TASK_KILL_MS => break,
                    _ => {}
                },
            }
            match (stopped, kill_at) {
                (None, _) => {
                    stopped = judge();
                    if stopped.is_some() {
                        self.order(TERMINATE);
                        kill_at = Some(Instant::now() + Duration::from_millis(TASK_KILL_MS));
                    }
                }
                (Some(_), Some(at)) if Instant::now() >= at => {
                    self.order(KILL);
                    kill_at = None;
                }
                _ => {}
            }
        }
        self.end(stopped)
    }

    fn order(&mut self, order: u8) {
        if let Some(orders) = &mut self.orders {
            // A guard that is gone has no orders to follow.
            let _ = orders.write_all(&[order]);
        }
    }

    fn end(mut self, stopped: Option<StopReason>) -> ProgramEnd {
        let duration_ms = elapsed_ms(self.started);
        drop(self.orders.take());
        let mut report = String::new();
        if let Some(pipe) = &mut self.report {
            // A report that cannot be read is none.
            let _ = pipe.take(4096).read_to_string(&mut report);
        }
        // It was not waited for, so it is there to be waited for.
        let _ = process::wait(&mut self.guard);
        let (ending, left_behind) = read_report(&report);
        if ending == Ending::Unknown {
            process::kill_strays(Duration::from_millis(TASK_SWEEP_MS));
        }
        ProgramEnd {
            ending,
            stopped,
            left_behind,
            duration_ms,
        }
    }
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Reads a pipe in a thread of its own, which waits when nobody takes what it has read.
fn chunks(mut pipe: ChildStderr) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::sync_channel(4);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(bytes @ 1..) = pipe.read(&mut buffer) {
            if sender.send(buffer[..bytes].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn read_report(report: &str) -> (Ending, u64) {
    let line = report.lines().next().unwrap_or_default();
    let mut words = line.splitn(3, ' ');
    let (kind, number, rest) = (words.next(), words.next(), words.next());
    let number = number.and_then(|number| number.parse().ok());
    let left = rest.and_then(|rest| rest.parse().ok()).unwrap_or(0);
    match (kind, number) {
        (Some("exited"), Some(code)) => (Ending::Exited(code), left),
        (Some("signalled"), Some(signal)) => (Ending::Signalled(signal), left),
        (Some("unstarted"), Some(_)) => {
            (Ending::NotStarted(rest.unwrap_or_default().to_owned()), 0)
        }
        _ => (Ending::Unknown, 0),
    }
}

/// What the guard does: `stdin` is the file that the program reads, `dir` is where it runs, `argv`
/// is the program. The guard itself stays out of the way of what is in that directory.
pub fn main(stdin: &Path, dir: &Path, argv: &[OsString]) -> ExitCode {
    let line = match start(stdin, dir, argv) {
        Ok(program) => {
            let is_sandbox = argv
                .first()
                .is_some_and(|program| program.as_os_str() == "bwrap");
            std::thread::spawn(move || obey(program, is_sandbox));
            attend(program, is_sandbox)
        }
        Err(error) => format!("unstarted 0 {error}\n"),
    };
    // Without an executor nobody reads it.
    let _ = io::stdout().write_all(line.as_bytes());
    ExitCode::SUCCESS
}

fn start(stdin: &Path, dir: &Path, argv: &[OsString]) -> io::Result<u32> {
    process::adopt_orphans()?;
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir);
    command.stdin(File::open(stdin)?);
    command.stdout(output.try_clone()?).stderr(output);
    process::in_own_session(&mut command);
    process::dying_with_this(&mut command);
    Ok(command.spawn()?.id())
}

/// Waits for the program, and for all that it has left. What a sandbox leaves is itself, on its way
/// out.
fn attend(program: u32, is_sandbox: bool) -> String {
    let status = loop {
        match process::reap(true) {
            Some((pid, status)) if pid == program => break Some(status),
            Some(_) => {}
            None => break None,
        }
    };
    let left = process::kill_descendants(Duration::from_millis(TASK_SWEEP_MS), true);
    let left = if is_sandbox { 0 } else { left };
    match status {
        Some(Ok(code)) => format!("exited {code} {left}\n"),
        Some(Err(signal)) => format!("signalled {signal} {left}\n"),
        None => String::new(),
    }
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
