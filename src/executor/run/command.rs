//! One command, run to its end within a limit: git, and the probe of the sandbox.
//!
//! The limit holds whatever the command leaves behind. Its pipes are read without blocking, so that
//! no descendant that keeps one open is waited for, and no thread is needed that might be.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mio::unix::pipe::Receiver;
use rustix::process::Signal;

use crate::executor::run::pipe::{Pipes, Reading};
use crate::executor::run::process;
use crate::limits::{COMMAND_KILL_MS, COMMAND_TICK_MS, COMMAND_TICK_MS_MAX};

/// What a command is held to.
pub struct CommandBounds<'a> {
    /// When it has to have ended.
    pub until: Instant,
    /// How much of its output is taken. The rest is read, and let go.
    pub bytes_max: usize,
    /// How much memory each of its processes may claim for itself.
    pub memory_bytes_max: u64,
    /// Whether its result is no longer wanted. It is asked every few milliseconds.
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl fmt::Debug for CommandBounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandBounds")
            .field("until", &self.until)
            .field("bytes_max", &self.bytes_max)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .finish_non_exhaustive()
    }
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed, to the bound.
    pub stdout: Vec<u8>,
    /// What it complained of, to the bound.
    pub stderr: Vec<u8>,
    /// Whether it printed more than that.
    pub is_cut: bool,
}

/// Why there is no output.
#[derive(Debug)]
pub enum CommandError {
    /// It could not be started, or not be watched.
    System(io::Error),
    /// It took too long, and was ended.
    TimedOut,
    /// Nobody wanted it any more, and it was ended.
    Stopped,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "{error}"),
            Self::TimedOut => f.write_str("it took too long and was ended"),
            Self::Stopped => f.write_str("it was ended together with its task"),
        }
    }
}

/// Runs a command to its end. Its stdin is for the caller to set, and its stdout, unless it is to
/// be taken. Where it takes too long or is stopped, it gets SIGTERM with its whole process group,
/// so that git removes its locks, and SIGKILL soon after.
///
/// # Errors
///
/// It cannot be started, takes too long, or is stopped.
pub fn output(
    command: &mut Command,
    bounds: &CommandBounds<'_>,
) -> Result<CommandOutput, CommandError> {
    reap_abandoned();
    if (bounds.is_stopped)() {
        return Err(CommandError::Stopped);
    }
    command.process_group(0).stderr(Stdio::piped());
    let mut child = process::spawn(command).map_err(CommandError::System)?;
    let memory = process::bound_memory(&child, bounds.memory_bytes_max);
    match memory.and_then(|()| Printed::new(&mut child)) {
        Ok(mut printed) => {
            let ended = watch(&mut child, &mut printed, bounds);
            finish(child, printed, bounds.bytes_max, ended)
        }
        Err(error) => {
            process::kill_group(child.id(), Signal::KILL);
            put_to_rest(child, Duration::from_millis(COMMAND_KILL_MS));
            Err(CommandError::System(error))
        }
    }
}

/// Reads what a command prints until it ends, or has to.
fn watch(
    child: &mut Child,
    printed: &mut Printed,
    bounds: &CommandBounds<'_>,
) -> Result<ExitStatus, CommandError> {
    let mut tick_ms = COMMAND_TICK_MS;
    loop {
        let has_ended = child.try_wait().map_err(CommandError::System)?;
        // What it printed is in the pipes before its end can be seen.
        let has_read = printed.read(bounds.bytes_max);
        if let Some(status) = has_ended {
            return Ok(status);
        }
        if (bounds.is_stopped)() {
            return Err(CommandError::Stopped);
        }
        let left = bounds.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(CommandError::TimedOut);
        }
        tick_ms = match has_read {
            true => COMMAND_TICK_MS,
            false => (2 * tick_ms).min(COMMAND_TICK_MS_MAX),
        };
        if !has_read {
            printed.pipes.wait(left.min(Duration::from_millis(tick_ms)));
        }
    }
}

/// Ends what is left of a command.
fn finish(
    mut child: Child,
    mut printed: Printed,
    bytes_max: usize,
    ended: Result<ExitStatus, CommandError>,
) -> Result<CommandOutput, CommandError> {
    match ended {
        Ok(status) => {
            // It was waited for already, which only has to be taken note of.
            let _ = process::wait(&mut child);
            if printed.pipes.are_held() {
                // A group keeps its number as long as somebody is in it.
                process::kill_group(child.id(), Signal::KILL);
                process::kill_strays(Duration::from_millis(COMMAND_KILL_MS));
            }
            let [stdout, stderr] = printed.taken;
            Ok(CommandOutput {
                status,
                is_cut: stdout.len() > bytes_max,
                stdout: cut(stdout, bytes_max),
                stderr: cut(stderr, bytes_max),
            })
        }
        Err(error) => {
            end_group(child, &mut printed);
            Err(error)
        }
    }
}

fn cut(mut bytes: Vec<u8>, bytes_max: usize) -> Vec<u8> {
    bytes.truncate(bytes_max);
    bytes
}

/// Ends a command with its group: first as it is asked to, then as it must.
fn end_group(mut child: Child, printed: &mut Printed) {
    let limit = Duration::from_millis(COMMAND_KILL_MS);
    process::kill_group(child.id(), Signal::TERM);
    let asked = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < limit {
        if !printed.read(0) {
            printed.pipes.wait(Duration::from_millis(COMMAND_TICK_MS));
        }
    }
    process::kill_group(child.id(), Signal::KILL);
    put_to_rest(child, limit);
    process::kill_strays(limit);
}

/// Children that were killed and did not die in time: the system holds them.
static ABANDONED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Waits for a child that was killed, and leaves it to those who come after if it does not die.
pub fn put_to_rest(mut child: Child, limit: Duration) {
    if !ends_within(&mut child, limit) {
        abandoned().push(child);
    }
}

/// Waits for the end of a child for so long. Tells whether it came.
pub fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let started = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if started.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(COMMAND_TICK_MS));
    }
    // It was waited for already, which only has to be taken note of.
    let _ = process::wait(child);
    true
}

fn abandoned() -> std::sync::MutexGuard<'static, Vec<Child>> {
    ABANDONED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Takes leave of those that have died by now.
fn reap_abandoned() {
    abandoned().retain_mut(|child| match child.try_wait() {
        Ok(None) => true,
        _ => process::wait(child).is_err(),
    });
}

/// What a command prints, as far as it goes into pipes.
struct Printed {
    pipes: Pipes<2>,
    /// Of stdout and stderr. One byte more than is wanted tells that there was more.
    taken: [Vec<u8>; 2],
}

impl Printed {
    fn new(child: &mut Child) -> io::Result<Self> {
        let stdout = child.stdout.take().map(Receiver::from);
        let stderr = child.stderr.take().map(Receiver::from);
        let mut pipes = Pipes::new([stdout, stderr])?;
        pipes.watch(child);
        Ok(Self {
            pipes,
            taken: [Vec::new(), Vec::new()],
        })
    }

    /// Reads what is there, but no more than a pipe can hold, so that the clock is looked at in
    /// between. Tells whether anything was there.
    fn read(&mut self, bytes_max: usize) -> bool {
        const PIPE_BYTES_MAX: usize = 1 << 20;
        let mut buffer = [0; 16 << 10];
        let mut read_bytes = 0;
        for (at, taken) in self.taken.iter_mut().enumerate() {
            let end_bytes = read_bytes + PIPE_BYTES_MAX;
            while read_bytes < end_bytes
                && let Reading::Bytes(bytes) = self.pipes.read(at, &mut buffer)
            {
                read_bytes += bytes;
                let wanted = (bytes_max + 1).saturating_sub(taken.len());
                taken.extend_from_slice(&buffer[..bytes.min(wanted)]);
            }
        }
        read_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::limits::COMMAND_MEMORY_MIB;

    fn bounds(limit_ms: u64, bytes_max: usize) -> CommandBounds<'static> {
        CommandBounds {
            until: Instant::now() + Duration::from_millis(limit_ms),
            bytes_max,
            memory_bytes_max: COMMAND_MEMORY_MIB << 20,
            is_stopped: &|| false,
        }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command.stdout(Stdio::piped());
        command
    }

    /// Runs a script that would take half a minute, and tells within ten seconds what came of it.
    fn within_its_limit(script: &str) -> Result<CommandOutput, CommandError> {
        let started = Instant::now();
        let outcome = output(&mut shell(script), &bounds(20, 1024));
        let elapsed = started.elapsed();
        assert!(elapsed < Duration::from_secs(10), "{script}: {elapsed:?}");
        outcome
    }

    #[test]
    fn who_keeps_the_pipe_of_a_command_is_not_waited_for() {
        for script in [
            "sleep 30 & exit 0",
            "setsid sleep 30 & exit 0",
            "(trap '' TERM HUP; exec sleep 30) & exit 0",
        ] {
            // On a busy machine the shell itself may take longer than 20 ms.
            let started = Instant::now();
            let output = output(&mut shell(script), &bounds(60_000, 1024)).unwrap();
            assert!(output.status.success(), "{script}");
            assert!(started.elapsed() < Duration::from_secs(10), "{script}");
        }
    }

    #[test]
    fn the_limit_of_a_command_holds_whatever_runs_in_it() {
        for script in [
            "sleep 30",
            "trap '' TERM; sleep 30; sleep 30",
            "setsid sleep 30",
            "(trap '' TERM; exec setsid sleep 30) & wait",
            "while :; do echo flood; done",
            "exec >&- 2>&-; sleep 30",
        ] {
            let outcome = within_its_limit(script);
            let timed_out = matches!(outcome, Err(CommandError::TimedOut));
            assert!(timed_out, "{script}: {outcome:?}");
        }
    }

    /// Git read a file of the agent's whole, of any length that takes no block on the disk.
    #[test]
    fn the_memory_of_a_command_is_bounded() {
        let bounds = CommandBounds {
            memory_bytes_max: 64 << 20,
            ..bounds(60_000, 1024)
        };
        let script = "sleep 0.1; exec python3 -c 'bytearray(100 << 20); print(\"claimed\")'";
        let output = output(&mut shell(script), &bounds).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(said.contains("MemoryError"), "{said}");
    }

    #[test]
    fn a_command_that_is_stopped_ends_at_once() {
        let started = Instant::now();
        let bounds = CommandBounds {
            is_stopped: &|| started.elapsed() > Duration::from_millis(20),
            ..bounds(60_000, 1024)
        };
        let outcome = output(&mut shell("sleep 30"), &bounds);
        assert!(matches!(outcome, Err(CommandError::Stopped)), "{outcome:?}");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("group");
        let script = format!("sleep 30 & echo $! > {}; wait", file.display());
        let outcome = output(&mut shell(&script), &bounds(1_000, 1024));
        assert!(
            matches!(outcome, Err(CommandError::TimedOut)),
            "{outcome:?}"
        );
        let pid = fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let lives = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let killed = Instant::now();
        while lives() && killed.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!lives());
    }

    #[test]
    fn output_beyond_its_bound_is_told() {
        for (bytes, taken, is_cut) in [(10, 10, false), (11, 10, true), (1 << 20, 10, true)] {
            let script = format!("head -c {bytes} /dev/zero");
            let output = output(&mut shell(&script), &bounds(3_600_000, 10)).unwrap();
            assert!(output.status.success());
            assert_eq!((output.stdout.len(), output.is_cut), (taken, is_cut));
        }
    }
}
