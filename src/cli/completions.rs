//! `rocco completions`: what a shell needs to complete the commands.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::{commands, print};

const HOW: &str = "\
Where they go:
  bash        ~/.local/share/bash-completion/completions/rocco
  zsh         _rocco in a directory of $fpath
  fish        ~/.config/fish/completions/rocco.fish
  powershell  the end of the file that $PROFILE names";

pub(super) fn command() -> Command {
    let about = "print completions for a shell";
    let text = "rocco completions prints what a shell needs to complete the commands of rocco.";
    commands::command("completions", about, text)
        .after_help(HOW)
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell))
                .help("the shell"),
        )
}

pub(super) fn run(root: &mut Command, matches: &ArgMatches) -> Result<ExitCode, String> {
    let shell = matches
        .get_one::<Shell>("shell")
        .ok_or("SHELL is missing")?;
    let mut script = Vec::new();
    clap_complete::generate(*shell, root, "rocco", &mut script);
    Ok(print(&String::from_utf8_lossy(&script)))
}
