//! `rocco mcp` when it serves a client, in every build.

use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

use crate::event_loop::sys::executor_channel::ExecutorAddr;
use crate::limits::BUSY_POLL_US_MAX;
use crate::task::submit::SubmitTask;
use crate::{Info, Server, event_loop};

use super::words::words;

const INSTRUCTIONS: &str = "larry_submit_task hands a bounded coding task to an executor. A task \
that is answered with an error was not submitted.";

const CONNECTED_INSTRUCTIONS: &str = "larry_submit_task hands a bounded coding task to an \
executor and gives its task_id at once. Go on with your own work, and ask larry_task_status with \
wait_s when you need the result. A task that is answered with an error was not submitted, but for \
executor_timeout, which does not know.";

/// How to serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServeOptions {
    /// How long to look for input before sleeping; zero is not at all.
    pub busy_poll: Duration,
    /// How the executor is reached, if there is one.
    pub executor: Option<ExecutorAddr>,
}

impl ServeOptions {
    /// Takes the value of `--busy-poll`.
    pub fn set_busy_poll(&mut self, value: &OsStr) -> Result<(), String> {
        if !self.busy_poll.is_zero() {
            return Err("--busy-poll is given more than once".into());
        }
        let microseconds = value.to_str().and_then(|value| value.parse().ok());
        match microseconds {
            Some(us @ 1..=BUSY_POLL_US_MAX) => {
                self.busy_poll = Duration::from_micros(us);
                Ok(())
            }
            _ => Err(format!(
                "--busy-poll takes 1 to {BUSY_POLL_US_MAX} microseconds, not {value:?}"
            )),
        }
    }

    /// Takes the value of `--executor`.
    pub fn set_executor_program(&mut self, value: &OsStr) -> Result<(), String> {
        let argv = words(value).ok_or_else(|| {
            format!(
                "--executor takes a program with its arguments as one word, with each quote \
                 closed, not {value:?}"
            )
        })?;
        self.set_executor(ExecutorAddr::Child(argv))
    }

    /// Takes the value of `--executor-socket`.
    pub fn set_executor_socket(&mut self, value: &OsStr) -> Result<(), String> {
        if value.is_empty() {
            return Err("--executor-socket takes the path of a socket".into());
        }
        self.set_executor(ExecutorAddr::Socket(value.into()))
    }

    fn set_executor(&mut self, executor: ExecutorAddr) -> Result<(), String> {
        match self.executor.replace(executor) {
            None => Ok(()),
            Some(_) => Err("more than one --executor or --executor-socket is given".into()),
        }
    }
}

/// Serves until the client leaves.
pub(super) fn run(options: ServeOptions) -> ExitCode {
    if event_loop::input_is_terminal() {
        event_loop::complain(format_args!(
            "waiting for JSON-RPC, one message a line; Ctrl-D or Ctrl-C to leave"
        ));
    }
    let info = Info::new("rocco", env!("CARGO_PKG_VERSION"))
        .title("Rocco")
        .description("Hands bounded coding tasks to an executor.")
        .instructions(match options.executor {
            Some(_) => CONNECTED_INSTRUCTIONS,
            None => INSTRUCTIONS,
        });
    let server = Server::new(info).busy_poll(options.busy_poll);
    match options.executor {
        Some(executor) => server.executor(executor).task_depth(depth()).run_stdio(),
        None => server.tool(SubmitTask::new()).run_stdio(),
    }
}

/// How many tasks this process is inside of, as an executor tells its agents. A value that is not a
/// number stands for one: somebody has set it.
fn depth() -> u64 {
    env::var_os("ROCCO_DEPTH").map_or(0, |depth| {
        let depth = depth.to_str().and_then(|depth| depth.parse().ok());
        depth.unwrap_or(1)
    })
}
