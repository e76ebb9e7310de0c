//! `rocco executor`: its arguments, as the settings of the daemon.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::parser::ValuesRef;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use crate::executor::daemon;
use crate::executor::policy::ExecutorConfig;
use crate::executor::run::disk::DiskBounds;
use crate::executor::run::{guard, watchman};
use crate::executor::store::journal::Durability;
use crate::executor::walls::bounds::Bounds;
use crate::executor::walls::entry;
use crate::executor::walls::standing::{Walls, WallsWanted};
use crate::limits::{
    TASK_COUNT_MAX, TASK_DEADLINE_S, TASK_DISK_FREE_MIB, TASK_DISK_MIB, TASK_FILE_MIB,
    TASK_MEMORY_MIB, TASK_MIB_MAX, TASK_OPEN_FILES, TASK_PROCESSES, TASK_RESULT_FILES,
    TASK_RESULT_FILES_MAX, TASK_RESULT_MIB, TASK_SILENCE_S, TASK_TIMEOUT_S_MAX, TASKS_QUEUED,
    TASKS_QUEUED_MAX, TASKS_RUNNING, TASKS_RUNNING_MAX,
};

use super::commands;

const ABOUT: &str = "\
rocco executor does the tasks that `rocco mcp` hands it, with any command-line agent.

The agent is started in a private clone of the repository. It reads its task on stdin, edits \
files, and ends. What it changed becomes a commit under refs/rocco/TASK_ID; nothing is merged.";

const GATES_AND_EXIT_CODES: &str = r#"A file of gates:
  {"test":{"argv":["cargo","test"],"timeout_s":600,"files":["tests"]}}

Exit codes:
  0  the input ended, or SIGTERM, SIGINT or SIGHUP came; what ran then is
     interrupted
  1  something that the command line names cannot be had; one line on stderr
     says what
  2  the command line is not understood
  3  another executor has the state directory"#;

/// Does the hidden command by which the executor starts its own program, if it is one of them.
pub(super) fn guard(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        [command, stdin, dir, argv @ ..] if command == guard::COMMAND => {
            Some(guard::main(Path::new(stdin), Path::new(dir), argv))
        }
        [command, work] if command == watchman::COMMAND => Some(watchman::main(Path::new(work))),
        [command, words @ ..] if command == entry::COMMAND => Some(entry::main(words)),
        _ => None,
    }
}

pub(super) fn command() -> Command {
    let flag = |name| Arg::new(name).long(name).action(ArgAction::SetTrue);
    commands::command("executor", "do tasks with a command-line agent", ABOUT)
        .after_help(GATES_AND_EXIT_CODES)
        .override_usage("rocco executor [OPTION...] -- AGENT [ARGUMENT...]")
        .args([
            path("socket", "PATH").help(
                "serve many clients on a Unix socket (rocco mcp --executor-socket PATH); its \
                 directory must be of mode 0700, and is made if it does not exist; without this \
                 option, one client is served on stdin and stdout, as rocco mcp --executor \
                 starts it",
            ),
            state(),
            path("allow-repo", "DIR").action(ArgAction::Append).help(
                "a repository that tasks may name, or a directory of repositories; may be \
                 repeated; without it, the repository of the current directory and no other",
            ),
            path("gates", "FILE").help(
                "a JSON object that defines what acceptance may ask for as gate:NAME; see below",
            ),
            commands::option("pass-env", "NAME")
                .action(ArgAction::Append)
                .help("give agents a variable of this environment; may be repeated"),
        ])
        .args(walls())
        .args([
            flag("strict-scope").help("a change outside of the declared files fails the task"),
            flag("refuse-surprises").help(
                "a change of a file that is run when somebody opens it (.vscode, .envrc, CLAUDE.md \
                 and the like), or a link that leads out, fails the task",
            ),
            flag("strict-gates").help("a change of what decides a gate of the task fails the task"),
            word("durable", "crash", ["crash", "power"]).help("what an accepted task survives"),
            number("running", "N", TASKS_RUNNING, TASKS_RUNNING_MAX)
                .help("tasks that run at once; of one repository only one does"),
            number("queued", "N", TASKS_QUEUED, TASKS_QUEUED_MAX).help("tasks that wait"),
            number("deadline", "SECONDS", TASK_DEADLINE_S, TASK_TIMEOUT_S_MAX)
                .help("how long a task may run"),
            number("silence", "SECONDS", TASK_SILENCE_S, TASK_TIMEOUT_S_MAX)
                .help("how long an agent may print nothing"),
            Arg::new("agent")
                .value_name("AGENT")
                .last(true)
                .num_args(1..)
                .value_hint(ValueHint::CommandWithArguments)
                .value_parser(value_parser!(OsString))
                .help("the agent and its arguments"),
        ])
}

/// The options for what stands around the programs of a task.
fn walls() -> [Arg; 13] {
    let mib = |name, default| number(name, "MIB", default, TASK_MIB_MAX);
    let count = |name, default| number(name, "N", default, TASK_COUNT_MAX);
    [
        word(
            "sandbox",
            "auto",
            ["auto", "require", "landlock", "bubblewrap", "off"],
        )
        .help(
            "the walls around agents and gates: auto takes the strongest that work here and needs \
             one at least, require wants bubblewrap and Landlock, off has none: an agent can then \
             do all that you can",
        ),
        path("readable", "PATH")
            .action(ArgAction::Append)
            .help("let agents and gates read there as well, a toolchain for one; may be repeated"),
        path("writable", "PATH")
            .action(ArgAction::Append)
            .help("let agents write there as well; may be repeated"),
        path("credentials", "FILE").action(ArgAction::Append).help(
            "let agents find this file of your home at the same place in theirs, which is \
             otherwise empty, and change it; may be repeated",
        ),
        Arg::new("unix-sockets")
            .long("unix-sockets")
            .action(ArgAction::SetTrue)
            .help("let agents and gates have Unix sockets, which some tests need"),
        mib("memory", TASK_MEMORY_MIB).help(
            "memory that one process may claim, and all of an agent or a gate in a control group",
        ),
        count("processes", TASK_PROCESSES).help("processes and threads of an agent or a gate"),
        count("open-files", TASK_OPEN_FILES).help("files that one process may have open"),
        mib("file-size", TASK_FILE_MIB).help("the length of one file"),
        mib("disk", TASK_DISK_MIB).help("what all files of a task may take on the disk"),
        mib("result-size", TASK_RESULT_MIB)
            .help("what the files that a task adds or changes may hold together"),
        number(
            "result-files",
            "N",
            TASK_RESULT_FILES,
            TASK_RESULT_FILES_MAX,
        )
        .help("how many files a task may add, change or remove"),
        mib("disk-free", TASK_DISK_FREE_MIB).help(
            "what has to be free on the file system of the state directory, or no program of a \
             task runs",
        ),
    ]
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    config(matches).map(daemon::run)
}

fn path(name: &'static str, value: &'static str) -> Arg {
    let path = commands::option(name, value).value_parser(value_parser!(PathBuf));
    path.value_hint(ValueHint::AnyPath)
}

/// The option for the state directory.
pub(super) fn state() -> Arg {
    path("state", "DIR")
        .help("where tasks are kept [default: $XDG_STATE_HOME/rocco or ~/.local/state/rocco]")
}

/// An option that takes one of these words.
fn word<const N: usize>(
    name: &'static str,
    default: &'static str,
    words: [&'static str; N],
) -> Arg {
    commands::option(name, "WORD")
        .value_parser(PossibleValuesParser::new(words))
        .default_value(default)
}

/// An option that takes a number from 1 on.
fn number<T: TryInto<u64>>(name: &'static str, unit: &'static str, default: T, max: T) -> Arg {
    let (default, max) = (default.try_into().unwrap_or(1), max.try_into().unwrap_or(1));
    let parse = move |text: &str| match text.parse() {
        Ok(number @ 1..) if number <= max => Ok::<u64, String>(number),
        _ => Err(format!("1 to {max}{}", in_words(unit))),
    };
    commands::option(name, unit)
        .value_parser(ValueParser::new(parse))
        .default_value(default.to_string())
}

/// A unit as a message says it, behind a number.
fn in_words(unit: &str) -> &'static str {
    match unit {
        "MIB" => " MiB",
        "SECONDS" => " seconds",
        _ => "",
    }
}

fn config(matches: &ArgMatches) -> Result<ExecutorConfig, String> {
    let path = |name| matches.get_one::<PathBuf>(name).cloned();
    let paths = |name| all(matches.get_many::<PathBuf>(name));
    let word = |name| matches.get_one::<String>(name).map_or("", String::as_str);
    let number = |name| matches.get_one::<u64>(name).copied().unwrap_or(1);
    let agent = all(matches.get_many("agent"));
    if agent.is_empty() {
        return Err("an agent is needed behind --".into());
    }
    Ok(ExecutorConfig {
        state: state_dir(matches)?,
        socket: path("socket"),
        allow: paths("allow-repo"),
        gates: path("gates"),
        pass_env: all(matches.get_many("pass-env")),
        readable: paths("readable"),
        writable: paths("writable"),
        credentials: paths("credentials"),
        walls: match word("sandbox") {
            "require" => WallsWanted::Exactly(Walls::Both),
            "landlock" => WallsWanted::Exactly(Walls::Landlock),
            "bubblewrap" => WallsWanted::Exactly(Walls::Bubblewrap),
            "off" => WallsWanted::Exactly(Walls::Neither),
            _ => WallsWanted::Auto,
        },
        unix_sockets: matches.get_flag("unix-sockets"),
        program_bounds: Bounds {
            memory_bytes: Some(number("memory") << 20),
            processes: Some(number("processes")),
            open_files: Some(number("open-files")),
            file_bytes: Some(number("file-size") << 20),
        },
        disk_bounds: DiskBounds {
            task_bytes_max: number("disk") << 20,
            free_bytes_min: number("disk-free") << 20,
        },
        result_bytes_max: number("result-size") << 20,
        result_files_max: number("result-files") as usize,
        strict_scope: matches.get_flag("strict-scope"),
        refuse_surprises: matches.get_flag("refuse-surprises"),
        strict_gates: matches.get_flag("strict-gates"),
        durable: match word("durable") {
            "power" => Durability::Power,
            _ => Durability::Crash,
        },
        running_max: number("running") as usize,
        queued_max: number("queued") as usize,
        deadline_s: number("deadline"),
        silence_s: number("silence"),
        agent,
    })
}

fn all<'a, T: Clone + 'a>(values: Option<ValuesRef<'a, T>>) -> Vec<T> {
    values.into_iter().flatten().cloned().collect()
}

/// The state directory that is named, or the one of this user.
pub(super) fn state_dir(matches: &ArgMatches) -> Result<PathBuf, String> {
    if let Some(state) = matches.get_one::<PathBuf>("state") {
        return Ok(state.clone());
    }
    let named = |name| {
        let value = env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    named("XDG_STATE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".local/state")))
        .map(|dir| dir.join("rocco"))
        .ok_or_else(|| "--state is needed where HOME is not set".into())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn configured<I: IntoIterator<Item: Into<OsString> + Clone>>(
        line: I,
    ) -> Result<ExecutorConfig, String> {
        let line = std::iter::once("executor".into()).chain(line.into_iter().map(Into::into));
        let matches = command().try_get_matches_from(line.collect::<Vec<OsString>>());
        config(&matches.map_err(|error| error.to_string())?)
    }

    #[test]
    fn an_executor_is_configured_by_its_options() {
        let line = "--state /s --socket=/s/x --allow-repo /a --allow-repo /b --gates /g \
                    --pass-env K --writable /w --sandbox off --strict-scope --durable=power \
                    --strict-gates --refuse-surprises --running 3 --queued=4 --deadline 5 --silence 6 -- agent --flag";
        let config = configured(line.split_whitespace()).unwrap();
        assert_eq!(config.allow, [PathBuf::from("/a"), "/b".into()]);
        assert_eq!((config.running_max, config.queued_max), (3, 4));
        assert_eq!((config.deadline_s, config.silence_s), (5, 6));
        assert_eq!(
            (config.walls, config.durable),
            (WallsWanted::Exactly(Walls::Neither), Durability::Power)
        );
        assert_eq!(config.agent, ["agent", "--flag"]);
        assert!(config.strict_scope && config.strict_gates && config.refuse_surprises);
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let config = configured(["--state", "/s", "--", "agent"]).unwrap();
        assert_eq!(
            (config.walls, config.durable),
            (WallsWanted::Auto, Durability::Crash)
        );
        assert_eq!(
            (config.running_max, config.queued_max),
            (TASKS_RUNNING, TASKS_QUEUED)
        );
        assert_eq!(
            (config.deadline_s, config.silence_s),
            (TASK_DEADLINE_S, TASK_SILENCE_S)
        );
    }

    /// The last one counted, and whoever had written the first was not told.
    #[test]
    fn an_option_of_one_value_that_is_given_again_is_refused() {
        for doubled in [
            "--running 2 --running 3",
            "--state /t --state /u",
            "--gates /g --gates /h",
            "--sandbox off --sandbox=auto",
            "--strict-scope --strict-scope",
        ] {
            let line = format!("{doubled} -- agent");
            assert!(configured(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn paths_and_agents_that_are_not_utf_8_stay_as_they_are() {
        let odd = OsStr::from_bytes(b"/\xff");
        let line = [
            "--state",
            "",
            "--socket",
            "",
            "--allow-repo",
            "",
            "--gates",
            "",
            "--writable",
        ];
        let line = line.map(|word| {
            if word.is_empty() {
                odd
            } else {
                OsStr::new(word)
            }
        });
        let config = configured(line.into_iter().chain([odd, OsStr::new("--"), odd])).unwrap();
        assert_eq!(config.state, odd);
        assert_eq!(config.socket.unwrap(), odd);
        assert_eq!(
            (&config.allow[..], &config.writable[..]),
            (&[odd.into()][..], &[odd.into()][..])
        );
        assert_eq!(config.gates.unwrap(), odd);
        assert_eq!(config.agent, [odd]);
    }
}
