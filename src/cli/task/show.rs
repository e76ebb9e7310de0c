//! `rocco task`: the same state directory, for the person at the terminal.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::executor::daemon::warn;
use crate::executor::store::state_dir::{self, FoundTask, StateDir};
use crate::executor::{clock, json};
use crate::executor_protocol::sanitize::Sanitized;
use crate::executor_protocol::state::{Outcome, TaskState};
use crate::limits::EXECUTOR_LINE_BYTES_MAX;
use crate::wire::json::{Object, Value};
use crate::wire::writer::start_of;

/// How long a cancelled task is waited for: an agent has five seconds to leave.
const PATIENCE: Duration = Duration::from_secs(15);

const GOAL_CHARACTERS_MAX: usize = 60;

/// What the person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskCommand {
    /// All tasks, the newest first.
    List,
    /// All that is known of one.
    Show(String),
    /// What its agent says.
    Log(String),
    /// What it changed.
    Diff(String),
    /// Its end.
    Cancel(String),
}

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputFormat {
    /// As JSON, for scripts.
    pub json: bool,
    /// To a terminal: with colours, and without what would steer it.
    pub terminal: bool,
}

/// Tells what is wanted.
///
/// # Errors
///
/// The output cannot be written.
pub fn run(
    place: &StateDir,
    wish: &TaskCommand,
    manner: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let name = match wish {
        TaskCommand::List => return list(place, manner, out),
        TaskCommand::Show(name)
        | TaskCommand::Log(name)
        | TaskCommand::Diff(name)
        | TaskCommand::Cancel(name) => name,
    };
    let found = match find(place, name) {
        Ok(found) => found,
        Err(what) => {
            warn(&what);
            return Ok(ExitCode::FAILURE);
        }
    };
    let id = found.task.id;
    match wish {
        TaskCommand::List | TaskCommand::Show(_) => show(place, &found, manner, out)?,
        TaskCommand::Log(_) => return copy(&place.dir(id).join("log"), manner, out),
        TaskCommand::Diff(_) => return copy(&place.dir(id).join("diff.patch"), manner, out),
        TaskCommand::Cancel(_) => return cancel(place, &found, manner, out),
    }
    Ok(ExitCode::SUCCESS)
}

/// The task that a name, or the start of one, stands for.
fn find(place: &StateDir, name: &str) -> Result<FoundTask, String> {
    let shown = Sanitized::new(name, 64);
    let tasks = place.tasks_found().map_err(|error| error.to_string())?;
    let mut named = tasks.into_iter().filter(|found| {
        let id = found.task.id.to_string();
        id.starts_with(name)
            || id
                .strip_prefix("tsk_")
                .is_some_and(|id| id.starts_with(name))
    });
    match (named.next(), named.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => Err(format!("{shown} is the start of more than one task's name")),
        (None, _) => {
            let root = place.root().display();
            Err(format!(
                "no task {shown} is in {root}; see: rocco task list"
            ))
        }
    }
}

/// Says that something cannot be read.
fn unreadable(path: &Path, error: &io::Error) -> ExitCode {
    warn(&format!("{} cannot be read: {error}", path.display()));
    ExitCode::FAILURE
}

fn list(place: &StateDir, manner: OutputFormat, out: &mut impl Write) -> io::Result<ExitCode> {
    let all = place
        .tasks_found()
        .and_then(|tasks| Ok((tasks, place.tasks_unreadable()?)));
    let (mut tasks, damaged) = match all {
        Ok(all) => all,
        Err(error) => return Ok(unreadable(place.root(), &error)),
    };
    damaged
        .iter()
        .for_each(|id| warn(&state_dir::damaged_task(place, *id)));
    let code = if damaged.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    tasks.reverse();
    if manner.json {
        for found in &tasks {
            writeln!(
                out,
                "{}",
                json::object(|object| {
                    object.formatted("task_id", format_args!("{}", found.task.id));
                    object.string("state", place.state_of(found).name());
                    object.string("created_at", &clock::stamp(found.task.created_ms));
                    object.string("updated_at", &clock::stamp(found.at_ms));
                    object.string("repo", &found.task.content.repo);
                    object.string("goal", &found.task.content.goal);
                })
            )?;
        }
        return Ok(code);
    }
    for found in &tasks {
        let state = place.state_of(found);
        let age = age(clock::now_ms().saturating_sub(found.task.created_ms));
        let (id, goal) = (found.task.id, goal(&found.task.content.goal));
        let state = coloured(state, manner, 11);
        writeln!(out, "{id}  {state}  {age:>4}  {goal}")?;
    }
    Ok(code)
}

/// The first line of a goal, cut.
fn goal(goal: &str) -> String {
    let line = goal
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let line = Sanitized::new(line.trim(), 4 * GOAL_CHARACTERS_MAX).to_string();
    let mut short: String = line.chars().take(GOAL_CHARACTERS_MAX).collect();
    if short.len() < line.len() {
        short += "...";
    }
    short
}

fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn coloured(state: TaskState, manner: OutputFormat, width: usize) -> String {
    let padded = format!("{state:<width$}");
    let colour = match state {
        TaskState::Ended(Outcome::Succeeded) => "32",
        TaskState::Ended(Outcome::Failed | Outcome::TimedOut | Outcome::Interrupted) => "31",
        TaskState::Ended(Outcome::NeedsInput) => "33",
        TaskState::Ended(Outcome::Cancelled) => return padded,
        _ => "36",
    };
    if manner.terminal {
        format!("\u{1b}[{colour}m{padded}\u{1b}[0m")
    } else {
        padded
    }
}

fn show(
    place: &StateDir,
    found: &FoundTask,
    manner: OutputFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    let (task, state) = (&found.task, place.state_of(found));
    let dir = place.dir(task.id);
    // A task that has not ended has none.
    let record = place.record(task.id);
    if manner.json {
        return writeln!(
            out,
            "{}",
            json::object(|object| {
                object.raw("task", task.to_json().trim_end());
                object.string("state", state.name());
                object.string("updated_at", &clock::stamp(found.at_ms));
                object.raw("record", record.as_deref().unwrap_or("null"));
            })
        );
    }
    let mut row = |name: &str, text: &str| row(out, name, text);
    row("task", &task.id.to_string())?;
    row("state", &coloured(state, manner, 0))?;
    row("created", &clock::stamp(task.created_ms))?;
    row("updated", &clock::stamp(found.at_ms))?;
    row("repository", &plain(&task.content.repo))?;
    row("goal", &plain(start_of(&task.content.goal, 4096)))?;
    let files = task.content.files.iter().flatten().map(|file| plain(file));
    row("scope", &files.collect::<Vec<_>>().join("\n"))?;
    let words = task.content.acceptance.iter().map(|word| plain(word));
    row("acceptance", &words.collect::<Vec<_>>().join("\n"))?;
    let rows = record.and_then(|record| json::with(record.as_bytes(), rows_of));
    for (name, text) in rows.unwrap_or_default() {
        row(name, &text)?;
    }
    row("directory", &dir.to_string_lossy())
}

fn plain(text: &str) -> String {
    Sanitized::new(text.trim_end(), text.len()).to_string()
}

/// A name and its text, whose further lines stand below the first.
fn row(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    for (number, line) in text.lines().enumerate() {
        let name = if number == 0 { name } else { "" };
        writeln!(out, "{name:<13}{line}")?;
    }
    Ok(())
}

/// What a person wants to know of a record.
fn rows_of(record: Object<'_>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let text = |name: &str| json::text(record, name).map(plain);
    let error = record.get("error").and_then(|error| error.as_object());
    rows.extend(error.and_then(|error| Some(("error", plain(json::text(error, "message")?)))));
    for (name, member) in [
        ("question", "question"),
        ("summary", "summary"),
        ("base", "base_commit"),
        ("result", "ref"),
        ("changes", "diffstat"),
        ("verification", "verification"),
    ] {
        rows.extend(text(member).map(|text| (name, text)));
    }
    let list = |name: &str| {
        let list = record.get(name).and_then(|list| list.as_array());
        list.into_iter()
            .flat_map(|list| list.iter().collect::<Vec<_>>())
    };
    let gates = list("gates").filter_map(|gate| gate.as_object()).map(gate);
    rows.push(("gates", gates.collect::<Vec<_>>().join("\n")));
    for (name, member) in [("out of scope", "out_of_scope"), ("warnings", "warnings")] {
        let texts = list(member).filter_map(|text| text.as_str().map(plain));
        rows.push((name, texts.collect::<Vec<_>>().join("\n")));
    }
    rows
}

fn gate(gate: Object<'_>) -> String {
    let name = plain(json::text(gate, "name").unwrap_or_default());
    let passed = matches!(gate.get("passed"), Some(Value::Bool(true)));
    let number = |object: Object<'_>, name| json::unsigned(object, name).unwrap_or(0);
    let tests = gate.get("tests").and_then(|tests| tests.as_object());
    let tests = tests.map_or(String::new(), |tests| {
        format!(
            ", {} tests passed, {} failed",
            number(tests, "passed"),
            number(tests, "failed")
        )
    });
    let word = if passed { "passed" } else { "failed" };
    format!("{name} {word} in {} ms{tests}", number(gate, "duration_ms"))
}

/// Prints a file of a task's. To a terminal goes nothing that would steer it.
fn copy(path: &Path, manner: OutputFormat, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut lines = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ExitCode::SUCCESS),
        Err(error) => return Ok(unreadable(path, &error)),
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let part = (&mut lines)
            .take(EXECUTOR_LINE_BYTES_MAX as u64)
            .read_until(b'\n', &mut line);
        match part {
            Ok(0) => return Ok(ExitCode::SUCCESS),
            Ok(_) if manner.terminal => {
                let text = String::from_utf8_lossy(&line);
                write!(out, "{}", Sanitized::new(&text, text.len()))?;
            }
            Ok(_) => out.write_all(&line)?,
            Err(error) => return Ok(unreadable(path, &error)),
        }
    }
}

fn cancel(
    place: &StateDir,
    found: &FoundTask,
    manner: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let id = found.task.id;
    if found.state.outcome().is_none() {
        place.ask_to_cancel(id)?;
    }
    let started = Instant::now();
    loop {
        let state = place
            .found(id)
            .map_or(found.state, |found| place.state_of(&found));
        if state.outcome().is_some() {
            writeln!(out, "{id}  {}", coloured(state, manner, 0))?;
            return Ok(ExitCode::SUCCESS);
        }
        if !place.is_owned() {
            writeln!(
                out,
                "{id}  {state}; it is cancelled when an executor starts"
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        if started.elapsed() > PATIENCE {
            warn(&format!(
                "{id} has not ended yet; see: rocco task show {id}"
            ));
            return Ok(ExitCode::FAILURE);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
