//! What is wrong with a command line, in a line that names the right help.

use std::error::Error as _;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::{VERSION, help, print, refuse};

/// Answers a line that clap did not turn into a command: help, the version, or a refusal.
pub(super) fn answer(root: &mut Command, arguments: &[OsString], error: &Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp => return print(&error.to_string()),
        ErrorKind::DisplayVersion => return print(VERSION),
        _ => root.build(),
    }
    let (path, command) = innermost(root, arguments);
    // Whoever asks for help gets it, whatever else the line says.
    let options = arguments.iter().take_while(|argument| *argument != "--");
    if options
        .clone()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        return print(&help::of(command));
    }
    refuse_at(&sentence(root, &path, error), &path)
}

/// Refuses a line of the command that these words name.
pub(super) fn refuse_at(what: &str, path: &[&str]) -> ExitCode {
    let path = path.iter().filter(|name| **name != "help");
    let command: String = path.flat_map(|name| [" ", name]).collect();
    refuse(what, &format!("Try: rocco help{command}"))
}

/// The command that a line names, as far as it names one, and the words that lead to it.
fn innermost<'a>(root: &'a Command, arguments: &[OsString]) -> (Vec<&'a str>, &'a Command) {
    let (mut path, mut command) = (Vec::new(), root);
    for argument in arguments {
        match argument
            .to_str()
            .and_then(|name| command.find_subcommand(name))
        {
            Some(next) => command = next,
            None if path.is_empty() => break,
            None => continue,
        }
        path.push(command.get_name());
    }
    (path, command)
}

fn sentence(root: &Command, path: &[&str], error: &Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    let argument = text(ContextKind::InvalidArg);
    // clap shows an option with its value: "--state <DIR>".
    let name = argument.split(' ').next().unwrap_or_default();
    let name = name
        .trim_start_matches('<')
        .split('>')
        .next()
        .unwrap_or_default();
    let value = text(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(root, path, argument),
        ErrorKind::InvalidSubcommand => unknown(root, path, text(ContextKind::InvalidSubcommand)),
        ErrorKind::InvalidValue if value.is_empty() => format!("{name} needs a value"),
        ErrorKind::InvalidValue => {
            let known = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(known)) => known.join(", "),
                _ => String::new(),
            };
            format!("{name} takes one of {known}, not {value:?}")
        }
        ErrorKind::ValueValidation => {
            let wanted = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{name} takes {wanted}, not {value:?}")
        }
        ErrorKind::TooManyValues => format!("{name} takes no value, such as {value:?}"),
        ErrorKind::ArgumentConflict => format!("{name} is given more than once"),
        ErrorKind::MissingRequiredArgument => format!("{name} is missing"),
        ErrorKind::InvalidUtf8 => "an argument that has to be text is not valid UTF-8".into(),
        _ => error.kind().to_string(),
    }
}

/// Says that a word is not known behind a command, and which one is near to it.
pub(super) fn unknown(root: &Command, path: &[&str], word: &str) -> String {
    #[cfg(not(all(feature = "executor", target_os = "linux")))]
    if path.is_empty() && (word == "executor" || word == "task") {
        return absent(word);
    }
    match nearest(root, path, word) {
        Some(near) => format!("unknown argument {word:?}; did you mean {near:?}?"),
        // Whoever knows other programs that start one leaves the dashes out.
        None if path == ["executor"] && !word.starts_with('-') => {
            format!("unknown argument {word:?}; the agent and its arguments stand behind --")
        }
        None => format!("unknown argument {word:?}"),
    }
}

/// Why a command of the executor is not in this build.
#[cfg(not(all(feature = "executor", target_os = "linux")))]
fn absent(command: &str) -> String {
    if cfg!(target_os = "linux") {
        format!("rocco {command} is not in this build; build rocco with the feature executor")
    } else {
        format!(
            "rocco {command} needs Linux; run it there, or connect another executor with \
             rocco mcp --executor"
        )
    }
}

/// The known word that is nearest to one that is not, if any is near: one of the same command, or
/// else one of another, which is then named with its command.
fn nearest(root: &Command, path: &[&str], word: &str) -> Option<String> {
    const CHARACTERS_MAX: usize = 64;
    let word: String = word.chars().take(CHARACTERS_MAX).collect();
    let own = [&["rocco"], path].concat().join(" ");
    let mut found = Vec::new();
    let mut commands = vec![("rocco".to_owned(), root)];
    while let Some((line, command)) = commands.pop() {
        for known in words(command) {
            let distance = strsim::osa_distance(&known, &word);
            let is_near = 3 * distance <= known.len().max(word.len());
            match (line == own, distance) {
                (true, 1..) if is_near => found.push((false, distance, known)),
                (false, _) if is_near => found.push((true, distance, format!("{line} {known}"))),
                _ => {}
            }
        }
        let subcommands = command.get_subcommands();
        commands.extend(subcommands.map(|sub| (format!("{line} {}", sub.get_name()), sub)));
    }
    found.into_iter().min().map(|(_, _, near)| near)
}

/// The words that a command knows: its subcommands and its long options.
fn words(command: &Command) -> impl Iterator<Item = String> {
    let subcommands = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned());
    let options = command
        .get_arguments()
        .filter_map(|argument| argument.get_long());
    subcommands.chain(options.map(|option| format!("--{option}")))
}
