//! `rocco man`: the manual page of a command.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use clap_mangen::Man;

use super::{VERSION, commands, print};

pub(super) fn command() -> Command {
    let about = "print the manual page of rocco, or of a command";
    commands::command(
        "man",
        about,
        "rocco man prints the manual page of rocco, or of a command.",
    )
    .after_help("Read one with:\n  rocco man executor | man -l -")
    .arg(commands::path_argument().help("the command, such as: task show"))
}

pub(super) fn run(root: &Command, matches: &ArgMatches) -> Result<ExitCode, String> {
    let command = commands::named(root, matches)?;
    let mut page = Vec::new();
    let rendered = Man::new(command.clone())
        .source(VERSION.trim_end())
        .render(&mut page);
    rendered.map_err(|error| format!("the page cannot be made: {error}"))?;
    Ok(print(&String::from_utf8_lossy(&page)))
}
