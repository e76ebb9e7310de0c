//! `rocco task show`: one task, and what came of it.

use std::io::{self, Write};

use crate::executor::store::state_dir::{FoundTask, StateDir};
use crate::executor::{clock, json};
use crate::executor_protocol::sanitize::Sanitized;
use crate::wire::json::{Object, Value};
use crate::wire::writer::start_of;

use super::text::{OutputFormat, coloured, visible_json};

/// Shows a task, and its record if the task has ended.
pub(super) fn show(
    state_dir: &StateDir,
    found: &FoundTask,
    format: OutputFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    let (task, state) = (&found.task, state_dir.state_of(found));
    let dir = state_dir.dir(task.id);
    // A task that has not ended has none.
    let record = state_dir.record(task.id);
    if format.json {
        return writeln!(
            out,
            "{}",
            visible_json(&json::object(|object| {
                object.raw("task", task.to_json().trim_end());
                object.string("state", state.name());
                object.string("updated_at", &clock::stamp(found.at_ms));
                object.raw("record", record.as_deref().unwrap_or("null"));
            }))
        );
    }
    let mut row = |name: &str, text: &str| row(out, name, text);
    row("task", &task.id.to_string())?;
    row("state", &coloured(state, format, 0))?;
    row("created", &clock::stamp(task.created_ms))?;
    row("updated", &clock::stamp(found.at_ms))?;
    row("repository", &name(&task.content.repo))?;
    row("goal", &plain(start_of(&task.content.goal, 4096)))?;
    let files = task.content.files.iter().flatten().map(|file| name(file));
    row("scope", &files.collect::<Vec<_>>().join("\n"))?;
    let words = task.content.acceptance.iter().map(|word| plain(word));
    row("acceptance", &words.collect::<Vec<_>>().join("\n"))?;
    let rows = record.and_then(|record| json::with(record.as_bytes(), rows_of));
    for (name, text) in rows.unwrap_or_default() {
        row(name, &text)?;
    }
    row("directory", &name(&dir.to_string_lossy()))
}

fn plain(text: &str) -> String {
    Sanitized::new(text.trim_end(), usize::MAX).to_string()
}

/// A name on one line, which looks like no other.
fn name(text: &str) -> String {
    Sanitized::name(text, usize::MAX).to_string()
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
    let texts = |member, show: fn(&str) -> String| {
        let texts = list(member).filter_map(|text| text.as_str().map(show));
        texts.collect::<Vec<_>>().join("\n")
    };
    rows.push(("out of scope", texts("out_of_scope", name)));
    rows.push(("warnings", texts("warnings", plain)));
    rows
}

fn gate(gate: Object<'_>) -> String {
    let name = name(json::text(gate, "name").unwrap_or_default());
    let passed = matches!(gate.get("passed"), Some(Value::Bool(true)));
    let number = |object: Object<'_>, name| json::unsigned(object, name).unwrap_or(0);
    let tests = gate.get("tests").and_then(|tests| tests.as_object());
    let tests = tests.map_or(String::new(), |tests| {
        let [passed, failed, skipped] =
            ["passed", "failed", "skipped"].map(|name| number(tests, name));
        format!(", {passed} tests passed, {failed} failed, {skipped} skipped")
    });
    let word = if passed { "passed" } else { "failed" };
    format!("{name} {word} in {} ms{tests}", number(gate, "duration_ms"))
}
