//! The program `rocco`: a command line around the library.

#![deny(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod check;
mod cli;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use rocco::task::submit::SubmitTask;
use rocco::{Info, Server, event_loop};

use cli::Command;

/// The exit code of a command line that is not understood.
const USAGE: u8 = 2;

const HELP: &str = r#"rocco hands bounded coding tasks from an AI client to an executor.
It is an MCP server: the client starts `rocco mcp` and talks to it over a pipe.

usage
  rocco mcp            serve a client on stdin and stdout
  rocco mcp --check    talk to a server of its own and show what a client will see
  rocco help [mcp]     this text, or that of a command
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

Each line is one JSON-RPC message. Replies go to stdout and nothing else does; a word on what
went wrong goes to stderr.

exit codes
  0  the input ended, the reader left, or SIGTERM, SIGINT or SIGHUP came
  1  reading or writing failed, or nobody took the last replies; stderr says which
  2  the command line is not understood
"#;

const INSTRUCTIONS: &str = "larry_submit_task hands a bounded coding task to an executor. A task \
that is answered with an error was not submitted.";

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match cli::command(arguments) {
        Ok(Command::Mcp { busy_poll_us }) => mcp(Duration::from_micros(busy_poll_us)),
        Ok(Command::Help) => print(HELP),
        Ok(Command::McpHelp) => print(MCP_HELP),
        Ok(Command::Version) => print(concat!("rocco ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::McpCheck) => printed(check::run(&mut io::stdout().lock())),
        Err(misuse) => {
            event_loop::complain(format_args!("{misuse}"));
            ExitCode::from(USAGE)
        }
    }
}

fn mcp(busy_poll: Duration) -> ExitCode {
    if event_loop::input_is_terminal() {
        event_loop::complain(format_args!(
            "waiting for JSON-RPC, one message a line; Ctrl-D or Ctrl-C to leave"
        ));
    }
    let info = Info::new("rocco", env!("CARGO_PKG_VERSION"))
        .title("Rocco")
        .description("Hands bounded coding tasks to an executor.")
        .instructions(INSTRUCTIONS);
    Server::new(info)
        .tool(SubmitTask)
        .busy_poll(busy_poll)
        .run_stdio()
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
