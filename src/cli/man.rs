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
    Ok(print(&laid_out(&String::from_utf8_lossy(&page))))
}

/// The page, whose last section keeps its lines: it has tables and JSON, which would be filled.
fn laid_out(page: &str) -> String {
    let (mut laid_out, mut is_filled) = (String::with_capacity(page.len()), true);
    for line in page.lines() {
        let is_heading = line.starts_with(".SH ");
        if is_heading && !is_filled {
            laid_out += ".fi\n";
            is_filled = true;
        }
        laid_out += line;
        laid_out.push('\n');
        if line == ".SH EXTRA" {
            laid_out += ".nf\n";
            is_filled = false;
        }
    }
    laid_out
}
