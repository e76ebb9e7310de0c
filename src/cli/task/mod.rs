//! `rocco task`: the tasks of an executor, for the person at the terminal.

mod cancel;
mod copy;
mod list;
mod show;
mod text;

use std::env;
use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::executor::daemon::warn;
use crate::executor::store::state_dir::{FoundTask, StateDir};
use crate::executor_protocol::sanitize::Sanitized;

use super::{commands, executor, printed};
use text::OutputFormat;

const ABOUT: &str = "rocco task shows the tasks of an executor, whether it runs or not.";

const EXIT_CODES: &str = "\
Exit codes:
  0  the answer was printed, or the task has ended
  1  there is no such task, or something cannot be read; one line on stderr says
     what
  2  the command line is not understood";

pub(super) fn command() -> Command {
    let list = "rocco task list shows all tasks, the newest first.";
    commands::command("task", "show the tasks of an executor", ABOUT)
        .after_help(EXIT_CODES)
        .args(of_all())
        .subcommand(
            commands::command("list", "all tasks, the newest first (the default)", list)
                .args(of_all()),
        )
        .subcommands([
            of_one(
                "show",
                "what it is to do, where it stands, and what came of it",
                "rocco task show shows what a task is to do, where it stands, and what a person \
                 wants to know of its record. The whole record is shown with --json.",
            ),
            of_one(
                "log",
                "what its agent says",
                "rocco task log shows what the agent of a task says.",
            )
            .arg(raw()),
            of_one(
                "diff",
                "what it changed",
                "rocco task diff shows what a task changed.",
            )
            .arg(raw()),
            of_one(
                "cancel",
                "end it",
                "rocco task cancel ends a task, and waits for its end.",
            ),
        ])
}

/// The options that stand before the name of a command as well as behind it.
fn of_all() -> [Arg; 2] {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    let help = "for scripts: one JSON object a line, of list, show and cancel";
    [executor::state(), json.help(help)]
}

fn raw() -> Arg {
    let help = "for programs: every byte as it is, where the output is not a terminal; without this \
                option, characters that steer a terminal or cannot be seen are shown as escapes";
    Arg::new("raw")
        .long("raw")
        .action(ArgAction::SetTrue)
        .help(help)
}

fn of_one(name: &'static str, about: &'static str, text: &'static str) -> Command {
    let task = Arg::new("task").value_name("TASK").required(true);
    let task = task.value_parser(NonEmptyStringValueParser::new());
    let help = "the name of the task, or the start of it; rocco task list shows them";
    commands::command(name, about, text)
        .arg(task.help(help))
        .args(of_all())
}

/// The level of the line, before or behind the name of the command, that has an option of
/// [`of_all`]. One that both have would count once, and the other without a word not at all.
fn level<'m>(name: &str, levels: [&'m ArgMatches; 2]) -> Result<&'m ArgMatches, String> {
    let [outer, inner] = levels;
    let has = |level: &ArgMatches| level.value_source(name) == Some(ValueSource::CommandLine);
    match (has(outer), has(inner)) {
        (true, true) if !std::ptr::eq(outer, inner) => {
            Err(format!("--{name} is given more than once"))
        }
        (true, _) => Ok(outer),
        (false, _) => Ok(inner),
    }
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    let outer = matches;
    let (command, matches) = matches.subcommand().unwrap_or(("list", matches));
    let with_state = level("state", [outer, matches])?;
    let with_json = level("json", [outer, matches])?;
    let state_dir = StateDir::new(executor::state_dir(with_state)?);
    // Before the first executor of a user there is nothing, and nobody has mistyped anything.
    if with_state.contains_id("state")
        && let Err(error) = state_dir.look()
    {
        return Ok(text::unreadable(state_dir.root(), &error));
    }
    let mut out = io::stdout().lock();
    let format = OutputFormat {
        json: with_json.get_flag("json"),
        colours: out.is_terminal() && env::var_os("NO_COLOR").is_none(),
        raw: !out.is_terminal() && matches!(matches.try_get_one("raw"), Ok(Some(true))),
    };
    if format.json && matches!(command, "log" | "diff") {
        return Err(format!(
            "--json is for list, show and cancel: {command} prints a text, and every byte of it \
             with --raw"
        ));
    }
    let shown = if command == "list" {
        list::list(&state_dir, format, &mut out)
    } else {
        let name = matches.get_one::<String>("task").ok_or("TASK is missing")?;
        match find(&state_dir, name) {
            Ok(found) => answer(command, &state_dir, &found, format, &mut out),
            Err(what) => {
                warn(&what);
                Ok(ExitCode::FAILURE)
            }
        }
    };
    Ok(printed(shown.and_then(|code| out.flush().map(|()| code))))
}

/// Does a command that is about one task.
fn answer(
    command: &str,
    state_dir: &StateDir,
    found: &FoundTask,
    format: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let dir = state_dir.dir(found.task.id);
    match command {
        "log" => copy::copy(&dir.join("log"), format, out),
        "diff" => copy::copy(&dir.join("diff.patch"), format, out),
        "cancel" => cancel::cancel(state_dir, found, format, out),
        _ => show::show(state_dir, found, format, out).map(|()| ExitCode::SUCCESS),
    }
}

/// The task that a name, or the start of one, stands for.
fn find(state_dir: &StateDir, name: &str) -> Result<FoundTask, String> {
    let shown = Sanitized::new(name, 64);
    let tasks = state_dir.tasks_found().map_err(|error| {
        let dir = state_dir.tasks();
        format!("{} cannot be read: {error}", dir.display())
    })?;
    let mut named = tasks.into_iter().filter(|found| {
        let id = found.task.id.to_string();
        id.starts_with(name)
            || id
                .strip_prefix("tsk_")
                .is_some_and(|id| id.starts_with(name))
    });
    match (named.next(), named.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => {
            let see = text::see("list", state_dir);
            let what = "is the start of more than one task's name: give more of it";
            Err(format!("{shown} {what}; {see}"))
        }
        (None, _) => {
            let (root, see) = (state_dir.root().display(), text::see("list", state_dir));
            Err(format!("no task {shown} is in {root}; {see}"))
        }
    }
}
