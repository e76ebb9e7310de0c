//! `rocco help`: the text that `--help` shows behind a command.

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use super::{commands, print};

pub(super) fn command() -> Command {
    let about = "show the help of rocco, or of a command";
    commands::command(
        "help",
        about,
        "rocco help shows what rocco, or a command of it, takes.",
    )
    .arg(commands::path_argument().help("the command, such as: task show"))
}

pub(super) fn run(root: &Command, matches: &ArgMatches) -> Result<ExitCode, String> {
    Ok(print(&of(commands::named(root, matches)?)))
}

/// The help of a command.
pub(super) fn of(command: &Command) -> String {
    command.clone().render_help().to_string()
}
