//! Starts each program of a task under a guard, stays with it, and ends it: the executor's side of
//! [`guard`].

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mio::unix::pipe::{Receiver, Sender};
use rustix::process::Signal;

use crate::executor::run::pipe::{Pipes, Reading};
use crate::executor::run::{command, guard, process};
use crate::executor::schedule::queue::StopReason;
use crate::executor::walls::cgroup::{Cgroup, Exceeded};
use crate::limits::{TASK_KILL_MS, TASK_SWEEP_MS, TASK_TICK_MS};

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

/// The pipes from a guard.
const OUTPUT: usize = 0;
const REPORT: usize = 1;

/// A program under a guard.
#[derive(Debug)]
pub struct SupervisedProgram {
    guard: Child,
    /// When it was seen that the guard has ended.
    gone_at: Option<Instant>,
    /// The control group that the guard and all that descends from it are in.
    group: Option<Cgroup>,
    orders: Option<Sender>,
    pipes: Pipes<2>,
    started: Instant,
}

/// How far the end of a program has come that is to end.
enum EndingStep {
    /// It is not to end.
    None,
    /// It has until then to leave.
    Asked(Instant),
    /// Its guard has until then to kill it.
    Killing(Instant),
    /// Its guard was killed.
    GuardKilled,
}

impl SupervisedProgram {
    /// Starts a guard, which waits for the order to start the program, in a control group.
    ///
    /// # Errors
    ///
    /// The guard cannot be started, or is not taken into the group. Whether the program can be
    /// started is told by its end.
    pub fn prepare(program: &Program, group: Option<Cgroup>) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(guard::COMMAND)
            .args([&program.stdin, &program.dir]);
        command.args(&program.argv);
        command.env_clear().envs(program.env.iter().cloned());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process::in_own_session(&mut command);
        let mut guard = process::spawn(&mut command)?;
        let orders = guard.stdin.take().map(Sender::from);
        let output = guard.stderr.take().map(Receiver::from);
        let report = guard.stdout.take().map(Receiver::from);
        let set = orders
            .iter()
            .try_for_each(|pipe| pipe.set_nonblocking(true));
        let set = set.and_then(|()| {
            let mut groups = group.iter();
            groups.try_for_each(|group| group.add(guard.id()))
        });
        match set.and_then(|()| Pipes::new([output, report])) {
            Ok(pipes) => Ok(Self {
                guard,
                gone_at: None,
                group,
                orders,
                pipes,
                started: Instant::now(),
            }),
            Err(error) => {
                // It has started nothing, and ends without orders.
                drop(orders);
                command::put_to_rest(guard, Duration::from_millis(TASK_SWEEP_MS));
                Err(error)
            }
        }
    }

    /// Has the guard start the program, without waiting for that.
    pub fn start(&mut self) {
        self.started = Instant::now();
        self.order(guard::START);
    }

    /// Lets go of a program that is not to be started.
    pub fn discard(self, reason: StopReason) -> ProgramEnd {
        self.end(Some(reason))
    }

    /// Stays with a program until it has ended, and ends it when it is told so. `hear` is given
    /// what it prints, `judge` is asked every now and then.
    ///
    /// This ends whatever the program does to its guard: what has not ended 5 seconds after it was
    /// asked to is killed, and 5 seconds later its guard is, with all that descends from it.
    pub fn accompany(
        mut self,
        mut hear: impl FnMut(&[u8]),
        mut judge: impl FnMut() -> Option<StopReason>,
    ) -> ProgramEnd {
        let (mut stopped, mut step) = (None, EndingStep::None);
        let mut buffer = vec![0; 16 << 10];
        loop {
            let reading = self.pipes.read(OUTPUT, &mut buffer);
            match reading {
                Reading::Bytes(bytes) => hear(&buffer[..bytes]),
                Reading::Nothing => self.pipes.wait(Duration::from_millis(TASK_TICK_MS)),
                Reading::End => break,
            }
            if self.is_lost(reading == Reading::Nothing) {
                break;
            }
            if stopped.is_none() {
                stopped = judge();
            }
            if stopped.is_some() {
                step = self.press(step);
            }
        }
        self.end(stopped)
    }

    /// Whether the guard has ended and somebody keeps its output open all the same, for longer than
    /// that may take.
    fn is_lost(&mut self, is_silent: bool) -> bool {
        match self.gone_at {
            Some(at) => elapsed_ms(at) > TASK_KILL_MS,
            None if matches!(self.guard.try_wait(), Ok(None)) => false,
            None => {
                self.gone_at = Some(Instant::now());
                if is_silent {
                    process::kill_strays(Duration::from_millis(TASK_SWEEP_MS));
                }
                false
            }
        }
    }

    /// Goes on with the end of a program.
    fn press(&mut self, step: EndingStep) -> EndingStep {
        let now = Instant::now();
        match step {
            EndingStep::None => {
                self.order(guard::TERMINATE);
                EndingStep::Asked(now + Duration::from_millis(TASK_KILL_MS))
            }
            EndingStep::Asked(at) if now >= at => {
                self.order(guard::KILL);
                EndingStep::Killing(now + Duration::from_millis(TASK_SWEEP_MS))
            }
            EndingStep::Killing(at) if now >= at => {
                self.signal(Signal::KILL);
                self.group.iter().for_each(Cgroup::kill);
                EndingStep::GuardKilled
            }
            step => step,
        }
    }

    fn order(&mut self, order: u8) {
        // The program may have stopped its guard.
        self.signal(Signal::CONT);
        if let Some(orders) = &mut self.orders {
            // A guard that is gone has no orders to follow, and one that takes none is killed.
            let _ = orders.write_all(&[order]);
        }
    }

    fn signal(&self, signal: Signal) {
        // Its number may be that of another process when it is gone.
        if self.gone_at.is_none() {
            process::kill(self.guard.id(), signal);
        }
    }

    fn end(mut self, stopped: Option<StopReason>) -> ProgramEnd {
        let duration_ms = elapsed_ms(self.started);
        drop(self.orders.take());
        let limit = Duration::from_millis(TASK_SWEEP_MS);
        if !command::ends_within(&mut self.guard, limit) {
            self.signal(Signal::KILL);
            command::put_to_rest(self.guard, limit);
        }
        // A guard that has ended has written all of its report.
        let mut report = [0; 4096];
        let report_bytes = match self.pipes.read(REPORT, &mut report) {
            Reading::Bytes(bytes) => bytes,
            Reading::Nothing | Reading::End => 0,
        };
        let report = String::from_utf8_lossy(&report[..report_bytes]);
        let (ending, left_behind) = read_report(&report);
        // What forks faster than the guard finds it passes to this process, and ends here.
        process::kill_strays(limit);
        let exceeded = self.group.as_ref().and_then(Cgroup::exceeded);
        let met = match exceeded {
            Some(Exceeded::Memory) => Some(StopReason::Memory),
            Some(Exceeded::Processes) if ending != Ending::Exited(0) => Some(StopReason::Processes),
            _ => None,
        };
        ProgramEnd {
            ending,
            stopped: stopped.or(met),
            left_behind,
            duration_ms,
        }
    }
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
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
