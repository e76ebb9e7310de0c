//! The command line: one file for each command.
//!
//! Every build reads the line of a client's configuration with [`bare`] and serves it with
//! [`serve`]; that costs a start nothing. Any other line is for people: [`commands`] holds the tree
//! of commands and options, [`usage`] says what is wrong with a line, and each further file is one
//! command. A build without the feature `cli` has none of that.

mod bare;
mod serve;
mod words;

#[cfg(feature = "cli")]
mod check;
#[cfg(feature = "cli")]
mod commands;
#[cfg(feature = "cli")]
mod completions;
#[cfg(feature = "cli")]
mod help;
#[cfg(feature = "cli")]
mod man;
#[cfg(feature = "cli")]
mod mcp;
#[cfg(feature = "cli")]
mod usage;

#[cfg(all(feature = "executor", target_os = "linux"))]
mod executor;
#[cfg(all(feature = "executor", target_os = "linux"))]
mod task;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::event_loop;

use bare::BareCommand;

/// The exit code of a command line that is not understood.
const USAGE: u8 = 2;

const VERSION: &str = concat!("rocco ", env!("CARGO_PKG_VERSION"), "\n");

/// Runs the command that the arguments of this process name.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    #[cfg(all(feature = "executor", target_os = "linux"))]
    if let Some(code) = executor::guard(&arguments) {
        return code;
    }
    match bare::parse(&arguments) {
        Ok(BareCommand::Serve(options)) => serve::run(options),
        Ok(BareCommand::Version) => print(VERSION),
        #[cfg(feature = "cli")]
        Err(_) => commands::run(&arguments),
        #[cfg(not(feature = "cli"))]
        Err(what) => refuse(&what, bare::HINT),
    }
}

/// Says what is wrong with the command line, and where to read what is right.
fn refuse(what: &str, hint: &str) -> ExitCode {
    let end = if what.ends_with('?') { "" } else { "." };
    event_loop::complain(format_args!("{what}{end} {hint}"));
    ExitCode::from(USAGE)
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
