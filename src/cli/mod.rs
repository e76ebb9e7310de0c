//! The command line: one file for each command.

mod check;
#[cfg(target_os = "linux")]
mod executor;
mod mcp;
#[cfg(target_os = "linux")]
mod task;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use crate::task::submit::SubmitTask;
use crate::{Info, Server, event_loop};

use mcp::{Command, Mcp};

/// The exit code of a command line that is not understood.
const USAGE: u8 = 2;

const HELP: &str = r#"rocco hands bounded coding tasks from an AI client to an executor.
It is an MCP server: the client starts `rocco mcp` and talks to it over a pipe.

usage
  rocco mcp            serve a client on stdin and stdout
  rocco mcp --check    talk to a server of its own and show what a client will see
  rocco executor       do tasks with a command-line agent
  rocco task           show the tasks of an executor
  rocco help [COMMAND] this text, or that of mcp, executor or task
  rocco --version      the version

connect it to a client
  Claude Code          claude mcp add rocco -- rocco mcp
  Codex                codex mcp add rocco -- rocco mcp
  Cursor, and others   { "mcpServers": { "rocco": { "command": "rocco", "args": ["mcp"] } } }
  VS Code              { "servers": { "rocco": { "command": "rocco", "args": ["mcp"] } } }

If the client does not find `rocco`, give it the absolute path.
"#;

const MCP_HELP: &str = r#"rocco mcp serves the Model Context Protocol on stdin and stdout.

usage
  rocco mcp            serve until the input ends
  rocco mcp --check    start a server of its own, do the handshake, list the tools, make one
                       call, and print what a client will see
  rocco mcp --help     this text
  rocco mcp --busy-poll US
                       look for input for so many microseconds before sleeping, 1 to 1000:
                       faster replies, for a CPU's time while the client talks
  rocco mcp --executor 'PROGRAM ARGUMENT...'
                       hand tasks to a program that speaks rocco-exec/1 on its stdin and stdout;
                       it starts with the first call that needs it and ends with rocco
  rocco mcp --executor-socket PATH
                       hand tasks to a daemon that speaks it on a Unix socket, and that goes on
                       when the client has left
  (--check with one of these says hello to the executor as well)

Each line is one JSON-RPC message. Replies go to stdout and nothing else does; a word on what
went wrong goes to stderr.

exit codes
  0  the input ended, the reader left, or SIGTERM, SIGINT or SIGHUP came
  1  reading or writing failed, or nobody took the last replies; stderr says which
  2  the command line is not understood
"#;

const INSTRUCTIONS: &str = "larry_submit_task hands a bounded coding task to an executor. A task \
that is answered with an error was not submitted.";

const CONNECTED_INSTRUCTIONS: &str = "larry_submit_task hands a bounded coding task to an \
executor and gives its task_id at once. Go on with your own work, and ask larry_task_status with \
wait_s when you need the result. A task that is answered with an error was not submitted, but for \
executor_timeout, which does not know.";

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = executor::main(&std::env::args_os().skip(1).collect::<Vec<_>>()) {
        return code;
    }
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match mcp::command(arguments) {
        Ok(Command::Mcp(options)) if options.check => {
            printed(check::run(&options, &mut io::stdout().lock()))
        }
        Ok(Command::Mcp(options)) => serve(options),
        Ok(Command::Help) => print(HELP),
        Ok(Command::McpHelp) => print(MCP_HELP),
        Ok(Command::Version) => print(concat!("rocco ", env!("CARGO_PKG_VERSION"), "\n")),
        Err(misuse) => {
            event_loop::complain(format_args!("{misuse}"));
            ExitCode::from(USAGE)
        }
    }
}

fn serve(options: Mcp) -> ExitCode {
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
    let server = Server::new(info).busy_poll(Duration::from_micros(options.busy_poll_us));
    match options.executor {
        Some(way) => server.executor(way).task_depth(depth()).run_stdio(),
        None => server.tool(SubmitTask::new()).run_stdio(),
    }
}

/// How many tasks this process is inside of, as an executor tells its agents. What is no number
/// stands for one: somebody has set it.
fn depth() -> u64 {
    std::env::var_os("ROCCO_DEPTH").map_or(0, |depth| {
        let depth = depth.to_str().and_then(|depth| depth.parse().ok());
        depth.unwrap_or(1)
    })
}

fn print(text: &str) -> ExitCode {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    printed(
        written
            .and_then(|()| stdout.flush())
            .map(|()| ExitCode::SUCCESS),
    )
}

/// The exit code of a command that prints. Who reads only the first lines does no harm.
fn printed(outcome: io::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            event_loop::complain(format_args!("cannot write standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}
