//! The only layer that knows mio, rustix, libc and file descriptors.
//!
//! [`run`] is the loop: it moves bytes between an [`Engine`] and a [`Transport`], and
//! [`executor_io`] moves those of an executor. The transport of production is in [`sys`]. A test
//! brings its own.

pub mod executor_io;
pub mod run;
pub mod sys;

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use sys::descriptor::Descriptor;
use sys::executor_channel::ExecutorAddr;
use sys::stdio;

use crate::engine::Engine;
use crate::executor_client::errors::Absence;

/// Why serving came to its ordinary end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The input ended, and all of it was answered.
    Input,
    /// The reader of the output is gone.
    Reader,
    /// A signal asked for the end.
    Signal,
}

/// What the system did to end serving before its time.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// Waiting for input or output failed, or could not be set up.
    Wait(io::Error),
    /// Standard input cannot be read.
    Read(io::Error),
    /// Standard output cannot be written.
    Write(io::Error),
    /// The input has ended, and the reader did not take its replies within the time for it.
    Stalled {
        /// How many bytes were not taken.
        unsent_bytes: usize,
    },
    /// Another server of this process serves on standard input and output, and gets its signals.
    Busy,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(error) => write!(f, "cannot wait for input: {error}"),
            Self::Read(error) => write!(f, "cannot read standard input: {error}"),
            Self::Write(error) => write!(f, "cannot write standard output: {error}"),
            Self::Stalled { unsent_bytes } => write!(
                f,
                "the input has ended, and the output was not read in time: \
                 {unsent_bytes} bytes are lost"
            ),
            Self::Busy => f.write_str(
                "another server of this process uses standard input and output: \
                 end it before the next one starts",
            ),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Wait(error) | Self::Read(error) | Self::Write(error) => Some(error),
            Self::Stalled { .. } | Self::Busy => None,
        }
    }
}

/// What a wait has found. All of it is a hint but `signal` and `output_gone`: whether there is
/// something to read, and whether there is an end, only a read can tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// There may be something to read.
    pub input: bool,
    /// The other end of the input was closed. What it wrote before is still to be read.
    pub input_closed: bool,
    /// There may be room to write.
    pub output: bool,
    /// Nobody will read the output any more.
    pub output_gone: bool,
    /// A signal asks for the end.
    pub signal: bool,
    /// The process that started this one is gone.
    pub parent_gone: bool,
    /// There may be something to read from the executor.
    pub executor_input: bool,
    /// There may be room to write to the executor.
    pub executor_output: bool,
    /// The executor has left. What it wrote before is still to be read.
    pub executor_gone: bool,
    /// The time was up, and nothing had happened.
    pub timed_out: bool,
}

/// What a wait is for, besides signals and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// There is room for input.
    pub input: bool,
    /// There is output that met no room.
    pub output: bool,
    /// The time of the wait is [`REST_AFTER_MS`](crate::limits::REST_AFTER_MS), after which a
    /// server at rest is tidied up. It may take twice as long: nothing hangs on it.
    pub rest: bool,
}

/// Input, output, a clock and something to wait on.
pub trait Transport {
    /// Waits until something happens, at most `timeout`. May return early and for nothing.
    ///
    /// # Errors
    ///
    /// Whatever makes waiting impossible; being interrupted is not among it.
    fn wait(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<Wakeup>;

    /// Reads what is there. `Ok(0)` is the end of input.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there yet, and what the system says otherwise.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Whether a read that took less than it could has taken all. A terminal hands out one line at
    /// a time instead.
    fn short_read_drains(&self) -> bool;

    /// Writes what there is room for.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room, and what the system says otherwise.
    fn write(&mut self, from: &[u8]) -> io::Result<usize>;

    /// The time since some start.
    fn now(&self) -> Duration;

    /// Gives the CPU to whoever wants it, between two looks for input.
    fn relax(&mut self) {}

    /// The way to an executor. It is there if the engine has an executor client.
    fn executor(&mut self) -> Option<&mut dyn Channel> {
        None
    }
}

/// The way to an executor.
pub trait Channel {
    /// Opens it. It was not opened before, or was closed.
    ///
    /// # Errors
    ///
    /// Why there is no executor, in words without a full stop.
    fn open(&mut self) -> Result<(), (Absence, String)>;

    /// Reads what is there. `Ok(0)` is the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there yet, and what the system says otherwise.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room, and what the system says otherwise.
    fn write(&mut self, from: &[u8]) -> io::Result<usize>;

    /// What has become of an executor that has ended the connection, in words without a full stop.
    fn fate(&mut self) -> String;

    /// Closes it, if it is open, and has a child leave.
    fn close(&mut self);
}

/// Serves on stdin and stdout of this process, and looks for input for `busy_poll` before it
/// sleeps.
///
/// # Errors
///
/// See [`Failure`].
pub fn serve_stdio(
    engine: &mut Engine,
    executor: Option<ExecutorAddr>,
    busy_poll: Duration,
) -> Result<Ended, Failure> {
    let mut transport = stdio::Stdio::open(executor)?;
    run::drive_busily(engine, &mut transport, busy_poll)
}

/// As [`serve_stdio`], for a process that ends afterwards. A signal that comes after the end is
/// ignored, so that it cannot turn the exit code into a death by signal.
///
/// # Errors
///
/// See [`Failure`].
pub fn serve_stdio_and_exit(
    engine: &mut Engine,
    executor: Option<ExecutorAddr>,
    busy_poll: Duration,
) -> Result<Ended, Failure> {
    let mut transport = stdio::Stdio::open(executor)?;
    let ended = run::drive_busily(engine, &mut transport, busy_poll);
    transport.ignore_signals();
    ended
}

/// Writes one line on stderr, if that can be done without blocking. Whether anybody reads it must
/// not matter.
pub fn complain(text: fmt::Arguments<'_>) {
    let line = format!("rocco: {text}\n");
    let mut stderr = Descriptor::for_words(rustix::stdio::stderr());
    let _ = stderr.write(line.as_bytes());
}

/// Whether standard input is a terminal, at which a person may wonder what is going on.
pub fn input_is_terminal() -> bool {
    io::stdin().is_terminal()
}
