//! `rocco task`: the tasks of an executor, for the person at the terminal.

mod show;

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::executor::store::state_dir::StateDir;

use super::{commands, executor, printed};
use show::{OutputFormat, TaskCommand};

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
        .args_override_self(true)
        .arg(executor::state().global(true))
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .global(true)
                .help("for scripts: one JSON object a line"),
        )
        .subcommand(commands::command(
            "list",
            "all tasks, the newest first (the default)",
            list,
        ))
        .subcommands([
            of_one(
                "show",
                "all that is known of one task",
                "rocco task show shows all that is known of a task.",
            ),
            of_one(
                "log",
                "what its agent says",
                "rocco task log shows what the agent of a task says.",
            ),
            of_one(
                "diff",
                "what it changed",
                "rocco task diff shows what a task changed.",
            ),
            of_one(
                "cancel",
                "end it",
                "rocco task cancel ends a task, and waits for its end.",
            ),
        ])
}

fn of_one(name: &'static str, about: &'static str, text: &'static str) -> Command {
    let task = Arg::new("task").value_name("TASK").required(true);
    let task = task.value_parser(NonEmptyStringValueParser::new());
    let help = "the name of the task, or the start of it; rocco task list shows them";
    commands::command(name, about, text).arg(task.help(help))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    let (name, inner) = matches.subcommand().unwrap_or(("list", matches));
    let task = || inner.get_one::<String>("task").cloned().unwrap_or_default();
    let command = match name {
        "show" => TaskCommand::Show(task()),
        "log" => TaskCommand::Log(task()),
        "diff" => TaskCommand::Diff(task()),
        "cancel" => TaskCommand::Cancel(task()),
        _ => TaskCommand::List,
    };
    let place = StateDir::new(executor::state_dir(inner)?);
    let mut stdout = io::stdout().lock();
    let manner = OutputFormat {
        json: inner.get_flag("json"),
        terminal: stdout.is_terminal() && env::var_os("NO_COLOR").is_none(),
    };
    let told = show::run(&place, &command, manner, &mut stdout);
    Ok(printed(told.and_then(|code| stdout.flush().map(|()| code))))
}
