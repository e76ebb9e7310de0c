//! The command lines of `rocco executor` and `rocco task`.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::task::{self, OutputFormat, TaskCommand};
use crate::event_loop;
use crate::executor::daemon;
use crate::executor::policy::ExecutorConfig;
use crate::executor::run::guard;
use crate::executor::run::sandbox::SandboxMode;
use crate::executor::store::journal::Durability;
use crate::executor::store::state_dir::StateDir;
use crate::limits::{
    TASK_DEADLINE_S, TASK_SILENCE_S, TASK_TIMEOUT_S_MAX, TASKS_QUEUED, TASKS_QUEUED_MAX,
    TASKS_RUNNING, TASKS_RUNNING_MAX,
};

use super::mcp as cli;

/// What `rocco executor` takes.
pub(crate) const EXECUTOR_HELP: &str = r#"rocco executor does the tasks that `rocco mcp` hands it, with any command-line agent.

usage
  rocco executor [OPTION...] -- AGENT ARGUMENT...

The agent is started in a private clone of the repository. It reads its task on stdin, edits files,
and ends. What it changed becomes a commit under refs/rocco/TASK_ID; nothing is merged.

  --socket PATH        serve many fronts on a Unix socket (rocco mcp --executor-socket PATH); its
                       directory must be of mode 0700, and is made if it is not there
                       (otherwise: one front on stdin and stdout, as rocco mcp --executor starts it)
  --state DIR          where tasks are kept; $XDG_STATE_HOME/rocco or ~/.local/state/rocco
  --allow-repo DIR     a repository that tasks may name, or a directory of such; may be repeated
                       (otherwise: the repository of the current directory, and no other)
  --gates FILE         a JSON object that defines what acceptance may ask for as gate:NAME:
                       {"test":{"argv":["cargo","test"],"timeout_s":600,"files":["tests"]}}
  --pass-env NAME      give agents a variable of this environment; may be repeated
  --writable DIR       let agents write there as well, in the sandbox; may be repeated
  --sandbox WORD       require, auto or off; bubblewrap is used where it works (auto)
  --strict-scope       a change outside of the declared files fails the task
  --durable WORD       crash or power: what an accepted task survives (crash)
  --running N          tasks that run at once (2); of one repository only one does
  --queued N           tasks that wait (32)
  --deadline SECONDS   how long a task may run (3600)
  --silence SECONDS    how long an agent may print nothing (600)

exit codes
  0  the input ended, or SIGTERM, SIGINT or SIGHUP came; what ran then is interrupted
  1  something that the command line names cannot be had; one line on stderr says what
  2  the command line is not understood
  3  another executor has the state directory
"#;

/// What `rocco task` takes.
pub(crate) const TASK_HELP: &str = r#"rocco task shows the tasks of an executor, whether it runs or not.

usage
  rocco task list           all tasks, the newest first
  rocco task show TASK      all that is known of one; the start of its name is enough
  rocco task log TASK       what its agent says
  rocco task diff TASK      what it changed
  rocco task cancel TASK    end it

  --state DIR               where tasks are kept; $XDG_STATE_HOME/rocco or ~/.local/state/rocco
  --json                    for scripts: an object a line

exit codes
  0  it was told, or the task has ended
  1  there is no such task, or something cannot be read; one line on stderr says what
  2  the command line is not understood
"#;

const EXECUTOR_FLAGS: [&str; 15] = [
    "--socket",
    "--state",
    "--allow-repo",
    "--gates",
    "--pass-env",
    "--writable",
    "--sandbox",
    "--strict-scope",
    "--durable",
    "--running",
    "--queued",
    "--deadline",
    "--silence",
    "--help",
    "--",
];

const TASK_WORDS: [&str; 8] = [
    "list", "show", "log", "diff", "cancel", "--state", "--json", "--help",
];

/// Does one of these commands, if it is one. The arguments are those behind the program's name.
pub(crate) fn main(arguments: &[OsString]) -> Option<ExitCode> {
    let (first, rest) = arguments.split_first()?;
    let done = match (first.to_str()?, rest.first().and_then(|word| word.to_str())) {
        (guard::COMMAND, _) => {
            let [stdin, dir, argv @ ..] = rest else {
                return None;
            };
            return Some(guard::main(Path::new(stdin), Path::new(dir), argv));
        }
        ("executor", Some("--help" | "-h")) | ("help", Some("executor")) => {
            return Some(super::print(EXECUTOR_HELP));
        }
        ("task", _) if rest.iter().any(|word| word == "--help" || word == "-h") => {
            return Some(super::print(TASK_HELP));
        }
        ("help", Some("task")) => return Some(super::print(TASK_HELP)),
        ("executor", _) => config(rest).map(daemon::run),
        ("task", _) => task(rest).map(|(place, wish, json)| {
            let mut stdout = io::stdout().lock();
            let terminal = stdout.is_terminal() && env::var_os("NO_COLOR").is_none();
            let manner = OutputFormat { json, terminal };
            let told = task::run(&place, &wish, manner, &mut stdout);
            super::printed(told.and_then(|code| stdout.flush().map(|()| code)))
        }),
        _ => return None,
    };
    Some(done.unwrap_or_else(|misuse| {
        event_loop::complain(format_args!("{misuse}"));
        ExitCode::from(super::USAGE)
    }))
}

fn default_state() -> Result<PathBuf, String> {
    let named = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    named("XDG_STATE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".local/state")))
        .map(|dir| dir.join("rocco"))
        .ok_or_else(|| "--state is needed where HOME is not set. Try: rocco help".into())
}

/// Reads the arguments of `rocco executor`.
fn config(arguments: &[OsString]) -> Result<ExecutorConfig, String> {
    let mut config = ExecutorConfig {
        state: PathBuf::new(),
        socket: None,
        allow: Vec::new(),
        gates: None,
        pass_env: Vec::new(),
        writable: Vec::new(),
        sandbox: SandboxMode::Auto,
        strict_scope: false,
        durable: Durability::Crash,
        running_max: TASKS_RUNNING,
        queued_max: TASKS_QUEUED,
        deadline_s: TASK_DEADLINE_S,
        silence_s: TASK_SILENCE_S,
        agent: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let name = argument.to_string_lossy();
        let mut value = || {
            let value = rest.next().filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("{name} wants a value. Try: rocco help executor"))
        };
        match &*name {
            "--" => config.agent = rest.by_ref().cloned().collect(),
            "--socket" => config.socket = Some(value()?.into()),
            "--state" => config.state = value()?.into(),
            "--allow-repo" => config.allow.push(value()?.into()),
            "--gates" => config.gates = Some(value()?.into()),
            "--pass-env" => config
                .pass_env
                .push(value()?.to_string_lossy().into_owned()),
            "--writable" => config.writable.push(value()?.into()),
            "--sandbox" => {
                let known = [SandboxMode::Require, SandboxMode::Auto, SandboxMode::Off];
                config.sandbox = word(&name, value()?, ["require", "auto", "off"], known)?;
            }
            "--strict-scope" => config.strict_scope = true,
            "--durable" => {
                let known = [Durability::Crash, Durability::Power];
                config.durable = word(&name, value()?, ["crash", "power"], known)?;
            }
            "--running" => {
                config.running_max = number(&name, value()?, TASKS_RUNNING_MAX as u64)? as usize;
            }
            "--queued" => {
                config.queued_max = number(&name, value()?, TASKS_QUEUED_MAX as u64)? as usize;
            }
            "--deadline" => config.deadline_s = number(&name, value()?, TASK_TIMEOUT_S_MAX)?,
            "--silence" => config.silence_s = number(&name, value()?, TASK_TIMEOUT_S_MAX)?,
            _ => return Err(cli::unknown(name.into_owned(), &EXECUTOR_FLAGS).to_string()),
        }
    }
    if config.agent.is_empty() {
        return Err("an agent is needed behind --. Try: rocco help executor".into());
    }
    if config.state.as_os_str().is_empty() {
        config.state = default_state()?;
    }
    Ok(config)
}

fn word<T: Copy, const N: usize>(
    flag: &str,
    given: &OsString,
    words: [&str; N],
    values: [T; N],
) -> Result<T, String> {
    let at = words.iter().position(|word| given == word);
    let wanted = words.join(", ");
    at.map(|at| values[at])
        .ok_or_else(|| format!("{flag} wants one of {wanted}. Try: rocco help executor"))
}

fn number(flag: &str, given: &OsString, max: u64) -> Result<u64, String> {
    match given.to_str().and_then(|given| given.parse().ok()) {
        Some(number) if (1..=max).contains(&number) => Ok(number),
        _ => Err(format!(
            "{flag} wants 1 to {max}, not {given:?}. Try: rocco help executor"
        )),
    }
}

/// Reads the arguments of `rocco task`.
fn task(arguments: &[OsString]) -> Result<(StateDir, TaskCommand, bool), String> {
    let (mut state, mut json, mut words) = (None, false, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let argument = argument.to_string_lossy().into_owned();
        match argument.as_str() {
            "--json" => json = true,
            "--state" => {
                let path = rest.next().map(PathBuf::from);
                state = Some(path.ok_or("--state wants a value. Try: rocco help task")?);
            }
            _ if argument.starts_with('-') => {
                return Err(cli::unknown(argument, &TASK_WORDS).to_string());
            }
            _ => words.push(argument),
        }
    }
    let state = match state {
        Some(state) => state,
        None => default_state()?,
    };
    let mut words = words.into_iter();
    let word = words.next().unwrap_or_else(|| "list".into());
    let mut name = || {
        let name = words.next().filter(|name| !name.is_empty());
        name.ok_or_else(|| format!("{word} wants the name of a task. Try: rocco task list"))
    };
    let wish = match word.as_str() {
        "list" => TaskCommand::List,
        "show" => TaskCommand::Show(name()?),
        "log" => TaskCommand::Log(name()?),
        "diff" => TaskCommand::Diff(name()?),
        "cancel" => TaskCommand::Cancel(name()?),
        _ => return Err(cli::unknown(word, &TASK_WORDS).to_string()),
    };
    match words.next() {
        None => Ok((StateDir::new(state), wish, json)),
        Some(surplus) => Err(format!(
            "surplus argument {surplus:?}. Try: rocco help task"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn an_executor_is_configured_by_its_flags() {
        let line = "--state /s --socket /s/x --allow-repo /a --allow-repo /b --gates /g \
                    --pass-env K --writable /w --sandbox off --strict-scope --durable power \
                    --running 3 --queued 4 --deadline 5 --silence 6 -- agent --flag";
        let config = config(&arguments(line)).unwrap();
        assert_eq!(config.allow, [PathBuf::from("/a"), "/b".into()]);
        assert_eq!((config.running_max, config.queued_max), (3, 4));
        assert_eq!((config.deadline_s, config.silence_s), (5, 6));
        assert_eq!(
            (config.sandbox, config.durable),
            (SandboxMode::Off, Durability::Power)
        );
        assert_eq!(config.agent, arguments("agent --flag"));
        assert!(config.strict_scope);
    }

    #[test]
    fn misuse_is_told_in_a_line() {
        for (line, wanted) in [
            ("", "an agent is needed behind --."),
            ("--socket /s", "an agent is needed behind --."),
            ("--socket", "--socket wants a value."),
            (
                "--sokcet /x -- a",
                r#"unknown argument "--sokcet"; did you mean "--socket"?"#,
            ),
            ("--running 0 -- a", "--running wants 1 to 64, not \"0\"."),
            (
                "--sandbox on -- a",
                "--sandbox wants one of require, auto, off.",
            ),
        ] {
            let said = config(&arguments(line)).unwrap_err();
            assert!(said.starts_with(wanted), "{said}");
        }
        for (line, wanted) in [
            (
                "--state /s shwo x",
                r#"unknown argument "shwo"; did you mean "show"?"#,
            ),
            ("--state /s show", "show wants the name of a task."),
            ("list --state", "--state wants a value."),
            ("--state /s list x", "surplus argument \"x\"."),
        ] {
            let said = task(&arguments(line)).unwrap_err();
            assert!(said.starts_with(wanted), "{said}");
        }
    }
}
