//! What the commands of `rocco task` share: how they show a state, and a failure.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::words::quoted;
use crate::executor::daemon::warn;
use crate::executor::store::state_dir::StateDir;
use crate::executor_protocol::sanitize::cannot_be_seen;
use crate::executor_protocol::state::{Outcome, TaskState};

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputFormat {
    /// As JSON, for scripts.
    pub json: bool,
    /// With colours.
    pub colours: bool,
    /// Every byte of a file as it is: for a program, and never for a terminal.
    pub raw: bool,
}

/// A state, padded to a width, and in its colour on a terminal.
pub(super) fn coloured(state: TaskState, format: OutputFormat, width: usize) -> String {
    let padded = format!("{state:<width$}");
    let colour = match state {
        TaskState::Ended(Outcome::Succeeded) => "32",
        TaskState::Ended(Outcome::Failed | Outcome::TimedOut | Outcome::Interrupted) => "31",
        TaskState::Ended(Outcome::NeedsInput) => "33",
        TaskState::Ended(Outcome::Cancelled) => return padded,
        _ => "36",
    };
    if format.colours {
        format!("\u{1b}[{colour}m{padded}\u{1b}[0m")
    } else {
        padded
    }
}

/// JSON whose texts hold no character that steers a terminal or cannot be seen: each of them is an
/// escape of JSON, which a script reads as the same text.
pub(super) fn visible_json(line: &str) -> String {
    let mut visible = String::with_capacity(line.len());
    for character in line.chars() {
        if !cannot_be_seen(character) {
            visible.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            visible += &format!("\\u{unit:04x}");
        }
    }
    visible
}

/// A command that says more, as a shell takes it.
pub(super) fn see(words: &str, state_dir: &StateDir) -> String {
    let state = quoted(state_dir.root().as_os_str());
    format!("see: rocco task {words} --state {state}")
}

/// Says that something cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> ExitCode {
    warn(&format!("{} cannot be read: {error}", path.display()));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with a space was no path any more when a person pasted the line.
    #[test]
    fn a_hint_is_a_line_that_a_shell_takes() {
        let state_dir = StateDir::new("/a b".into());
        let hint = see("list", &state_dir);
        assert_eq!(hint, "see: rocco task list --state '/a b'");
    }

    #[test]
    fn json_is_shown_without_what_steers_a_terminal() {
        let text = "a\u{202E}\u{9B}\u{E0041}\u{7F}\u{1F600}b";
        let line = format!("{{\"goal\":\"{text}\"}}");
        let visible = visible_json(&line);
        assert!(!visible.contains(cannot_be_seen), "{visible:?}");
        let read: serde_json::Value = serde_json::from_str(&visible).unwrap();
        assert_eq!(read["goal"], text);
    }
}
