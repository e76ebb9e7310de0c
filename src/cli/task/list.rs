//! `rocco task list`: a line for each task.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::executor::daemon::warn;
use crate::executor::store::state_dir::{StateDir, damaged_task};
use crate::executor::{clock, json};
use crate::executor_protocol::sanitize::Sanitized;

use super::text::{OutputFormat, coloured, unreadable, visible_json};

const GOAL_CHARACTERS_MAX: usize = 60;

/// Shows all tasks, the newest first.
pub(super) fn list(
    state_dir: &StateDir,
    format: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let all = state_dir
        .tasks_found()
        .and_then(|tasks| Ok((tasks, state_dir.tasks_unreadable()?)));
    let (mut tasks, damaged) = match all {
        Ok(all) => all,
        Err(error) => return Ok(unreadable(&state_dir.tasks(), &error)),
    };
    damaged
        .iter()
        .for_each(|id| warn(&damaged_task(state_dir, *id)));
    let code = if damaged.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    tasks.reverse();
    if format.json {
        for found in &tasks {
            writeln!(
                out,
                "{}",
                visible_json(&json::object(|object| {
                    object.formatted("task_id", format_args!("{}", found.task.id));
                    object.string("state", state_dir.state_of(found).name());
                    object.string("created_at", &clock::stamp(found.task.created_ms));
                    object.string("updated_at", &clock::stamp(found.at_ms));
                    object.string("repo", &found.task.content.repo);
                    object.string("goal", &found.task.content.goal);
                }))
            )?;
        }
        return Ok(code);
    }
    for found in &tasks {
        let state = state_dir.state_of(found);
        let age = age(clock::now_ms().saturating_sub(found.task.created_ms));
        let (id, goal) = (found.task.id, goal(&found.task.content.goal));
        let state = coloured(state, format, 11);
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
