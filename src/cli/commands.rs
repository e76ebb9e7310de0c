//! The tree of commands and options: what is read, what help shows, and what completions and the
//! manual are made from.

use std::ffi::{OsStr, OsString};
use std::iter;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{completions, help, man, mcp, print, usage};
#[cfg(all(feature = "executor", target_os = "linux"))]
use super::{executor, task};

/// How wide help is.
pub(super) const COLUMNS: usize = 80;

const ABOUT: &str = "\
rocco hands bounded coding tasks from an AI client to an executor.

It is an MCP server: the client starts `rocco mcp` and talks to it over a pipe.";

const CLIENTS: &str = r#"Connect it to a client:
  Claude Code      claude mcp add rocco -- rocco mcp
  Codex            codex mcp add rocco -- rocco mcp
  Cursor, others   {"mcpServers":{"rocco":{"command":"rocco","args":["mcp"]}}}
  VS Code          {"servers":{"rocco":{"command":"rocco","args":["mcp"]}}}

If the client does not find `rocco`, give it the absolute path."#;

/// The whole tree.
pub(super) fn root() -> Command {
    let last = 1000;
    let flag = |name, letter, action| {
        Arg::new(name)
            .long(name)
            .short(letter)
            .action(action)
            .global(true)
            .display_order(last)
    };
    let root = command(
        "rocco",
        "hand bounded coding tasks from an AI client to an executor",
        ABOUT,
    )
    .version(env!("CARGO_PKG_VERSION"))
    .propagate_version(true)
    .term_width(COLUMNS)
    .after_help(CLIENTS)
    .disable_help_subcommand(true)
    .disable_help_flag(true)
    .disable_version_flag(true)
    .arg(flag("help", 'h', ArgAction::HelpShort).help("show this text"))
    .arg(flag("version", 'V', ArgAction::Version).help("show the version"))
    .subcommand(mcp::command());
    #[cfg(all(feature = "executor", target_os = "linux"))]
    let root = root
        .subcommand(executor::command())
        .subcommand(task::command());
    root.subcommand(completions::command())
        .subcommand(man::command())
        .subcommand(help::command())
}

/// A command: what it does in a few words, for the list of commands, and in sentences, for its help
/// and its manual.
pub(super) fn command(name: &'static str, about: &'static str, text: &'static str) -> Command {
    Command::new(name)
        .about(about)
        .long_about(text)
        .before_help(text)
        .help_template("{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}")
}

/// An option that takes a value.
pub(super) fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .action(ArgAction::Set)
}

/// The names of a command in the tree, given as words.
pub(super) fn path_argument() -> Arg {
    Arg::new("command").value_name("COMMAND").num_args(0..)
}

/// The command in the tree that the words of [`path_argument`] name.
pub(super) fn named<'a>(root: &'a Command, matches: &ArgMatches) -> Result<&'a Command, String> {
    let mut command = root;
    let mut path = Vec::new();
    for name in matches.get_many::<String>("command").into_iter().flatten() {
        command = command
            .find_subcommand(name)
            .ok_or_else(|| usage::unknown(root, &path, name))?;
        path.push(name.as_str());
    }
    Ok(command)
}

/// Does what the arguments behind the program's name say.
pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    if arguments.is_empty() {
        return print(&help::of(&root()));
    }
    let mut root = root();
    let line = iter::once(OsStr::new("rocco")).chain(arguments.iter().map(OsString::as_os_str));
    let matches = match root.try_get_matches_from_mut(line) {
        Ok(matches) => matches,
        Err(error) => return usage::answer(&mut root, arguments, &error),
    };
    root.build();
    let Some((name, matches)) = matches.subcommand() else {
        return print(&help::of(&root));
    };
    let done = match name {
        "mcp" => mcp::run(matches),
        #[cfg(all(feature = "executor", target_os = "linux"))]
        "executor" => executor::run(matches),
        #[cfg(all(feature = "executor", target_os = "linux"))]
        "task" => task::run(matches),
        "completions" => completions::run(&mut root, matches),
        "man" => man::run(&root, matches),
        _ => help::run(&root, matches),
    };
    done.unwrap_or_else(|what| usage::refuse_at(&what, &[name]))
}
