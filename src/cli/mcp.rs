//! The command line: arguments to a command, without doing anything.

use std::fmt;

use crate::event_loop::sys::executor_channel::ExecutorAddr;
use crate::limits::BUSY_POLL_US_MAX;

/// What the person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// What rocco is, and how to connect it.
    Help,
    /// The version.
    Version,
    /// Serve on stdin and stdout.
    Mcp(Mcp),
    /// What `rocco mcp` takes.
    McpHelp,
}

/// How to serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mcp {
    /// How long to look for input before sleeping, in microseconds; 0 is not at all.
    pub busy_poll_us: u64,
    /// How the executor is reached, if there is one.
    pub executor: Option<ExecutorAddr>,
    /// Talk to a server of its own instead and show what a client sees.
    pub check: bool,
}

/// An argument that cannot stand where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// It is not known here; the nearest one that is.
    Unknown(String, &'static str),
    /// Nothing may follow what stands before it.
    Surplus(String),
    /// A number of microseconds is missing, or beyond its bound.
    Microseconds(String),
    /// A program with its arguments is missing, or a quote in it is not closed.
    Program(String),
    /// A path is missing.
    Path,
    /// Two executors are named.
    Executors,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(argument, nearest) => {
                write!(
                    f,
                    "unknown argument {argument:?}; did you mean {nearest:?}?"
                )
            }
            Self::Surplus(argument) => write!(f, "surplus argument {argument:?}."),
            Self::Microseconds(argument) => write!(
                f,
                "--busy-poll wants 1 to {BUSY_POLL_US_MAX} microseconds, not {argument:?}."
            ),
            Self::Program(argument) => write!(
                f,
                "--executor wants a program with its arguments in one word, not {argument:?}."
            ),
            Self::Path => f.write_str("--executor-socket wants a path."),
            Self::Executors => {
                f.write_str("--executor and --executor-socket are given, or one of them twice.")
            }
        }?;
        f.write_str(" Try: rocco help")
    }
}

const COMMANDS: [&str; 8] = [
    "mcp",
    "executor",
    "task",
    "help",
    "--help",
    "-h",
    "--version",
    "-V",
];

const BUSY_POLL: &str = "--busy-poll";
const EXECUTOR: &str = "--executor";
const EXECUTOR_SOCKET: &str = "--executor-socket";
const CHECK: &str = "--check";

const MCP_FLAGS: [&str; 7] = [
    CHECK,
    BUSY_POLL,
    EXECUTOR,
    EXECUTOR_SOCKET,
    "--help",
    "-h",
    "--version",
];

/// Reads the arguments behind the program's name.
///
/// # Errors
///
/// The first argument that cannot stand where it stands.
pub(crate) fn command(arguments: impl IntoIterator<Item = String>) -> Result<Command, Misuse> {
    let mut arguments = arguments.into_iter();
    let Some(first) = arguments.next() else {
        return Ok(Command::Help);
    };
    let command = match first.as_str() {
        "mcp" => return mcp(arguments),
        "help" => match arguments.next() {
            None => Command::Help,
            Some(topic) if topic == "mcp" => Command::McpHelp,
            Some(topic) => return Err(unknown(topic, &["mcp"])),
        },
        "--help" | "-h" => Command::Help,
        "--version" | "-V" => Command::Version,
        _ => return Err(unknown(first, &COMMANDS)),
    };
    alone(command, arguments)
}

fn mcp(mut arguments: impl Iterator<Item = String>) -> Result<Command, Misuse> {
    let mut mcp = Mcp::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        let way = match argument.as_str() {
            "--help" | "-h" => return alone(Command::McpHelp, arguments),
            "--version" => return alone(Command::Version, arguments),
            CHECK => {
                mcp.check = true;
                continue;
            }
            BUSY_POLL => {
                mcp.busy_poll_us = microseconds(value())?;
                continue;
            }
            EXECUTOR => ExecutorAddr::Child(words(value())?.into_iter().map(Into::into).collect()),
            EXECUTOR_SOCKET => match value() {
                path if path.is_empty() => return Err(Misuse::Path),
                path => ExecutorAddr::Socket(path.into()),
            },
            _ => return Err(unknown(argument, &MCP_FLAGS)),
        };
        if mcp.executor.replace(way).is_some() {
            return Err(Misuse::Executors);
        }
    }
    Ok(Command::Mcp(mcp))
}

/// A command that nothing may follow.
fn alone(command: Command, mut rest: impl Iterator<Item = String>) -> Result<Command, Misuse> {
    match rest.next() {
        None => Ok(command),
        Some(argument) => Err(Misuse::Surplus(argument)),
    }
}

pub(crate) fn unknown(argument: String, known: &[&'static str]) -> Misuse {
    // Every argument is near to a flag of one letter.
    let spelt = known.iter().filter(|word| word.len() > 2);
    match spelt.min_by_key(|word| distance(word, &argument)) {
        Some(nearest) => Misuse::Unknown(argument, nearest),
        None => Misuse::Surplus(argument),
    }
}

fn microseconds(argument: String) -> Result<u64, Misuse> {
    match argument.parse() {
        Ok(number @ 1..=BUSY_POLL_US_MAX) => Ok(number),
        _ => Err(Misuse::Microseconds(argument)),
    }
}

/// Splits a text as a shell splits words, and does nothing else that a shell does: white space
/// parts them, single quotes keep all, double quotes all but a backslash before a quote, a
/// backslash, a dollar sign or a back quote, and a backslash keeps what follows it.
fn words(text: String) -> Result<Vec<String>, Misuse> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(open), close) if open == close => quote = None,
            (None, '\\') => match characters.next() {
                Some(kept) => word.get_or_insert_default().push(kept),
                None => return Err(Misuse::Program(text)),
            },
            (Some('"'), '\\') => {
                let word = word.get_or_insert_default();
                match characters.next() {
                    Some(kept @ ('"' | '\\' | '$' | '`')) => word.push(kept),
                    Some(other) => word.extend(['\\', other]),
                    None => return Err(Misuse::Program(text)),
                }
            }
            (_, kept) => word.get_or_insert_default().push(kept),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if quote.is_none() && !program.is_empty() => Ok(words),
        _ => Err(Misuse::Program(text)),
    }
}

/// How many letters have to be put in, taken out or replaced to make one word of the other.
fn distance(known: &str, given: &str) -> usize {
    const LETTERS_MAX: usize = 64;
    let given: Vec<char> = given.chars().take(LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=given.len()).collect();
    for (line, letter) in known.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in given.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[given.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let arguments = line.split_whitespace().map(str::to_owned);
        command(arguments).map_err(|misuse| misuse.to_string())
    }

    #[test]
    fn commands() {
        for (line, wanted) in [
            ("", Command::Help),
            ("help", Command::Help),
            ("-h", Command::Help),
            ("help mcp", Command::McpHelp),
            ("mcp", Command::Mcp(Mcp::default())),
            (
                "mcp --busy-poll 50",
                Command::Mcp(Mcp {
                    busy_poll_us: 50,
                    ..Mcp::default()
                }),
            ),
            (
                "mcp --check --executor-socket /run/x",
                Command::Mcp(Mcp {
                    check: true,
                    executor: Some(ExecutorAddr::Socket("/run/x".into())),
                    ..Mcp::default()
                }),
            ),
            (
                "mcp --executor python3",
                Command::Mcp(Mcp {
                    executor: Some(ExecutorAddr::Child(vec!["python3".into()])),
                    ..Mcp::default()
                }),
            ),
            ("mcp --help", Command::McpHelp),
            ("--version", Command::Version),
        ] {
            assert_eq!(parsed(line), Ok(wanted), "{line}");
        }
    }

    #[test]
    fn misuse_names_the_nearest() {
        for (line, wanted) in [
            (
                "mpc",
                r#"unknown argument "mpc"; did you mean "mcp"? Try: rocco help"#,
            ),
            (
                "hlep",
                r#"unknown argument "hlep"; did you mean "help"? Try: rocco help"#,
            ),
            (
                "--verison",
                r#"unknown argument "--verison"; did you mean "--version"? Try: rocco help"#,
            ),
            (
                "mcp --chekc",
                r#"unknown argument "--chekc"; did you mean "--check"? Try: rocco help"#,
            ),
            (
                "mcp --busy-poll",
                r#"--busy-poll wants 1 to 1000 microseconds, not "". Try: rocco help"#,
            ),
            (
                "mcp --busy-poll 0",
                r#"--busy-poll wants 1 to 1000 microseconds, not "0". Try: rocco help"#,
            ),
            (
                "mcp --busy-poll 1001",
                r#"--busy-poll wants 1 to 1000 microseconds, not "1001". Try: rocco help"#,
            ),
            ("mcp --help x", r#"surplus argument "x". Try: rocco help"#),
            (
                "mcp --executor",
                r#"--executor wants a program with its arguments in one word, not "". Try: rocco help"#,
            ),
            (
                "mcp --executor-socket",
                "--executor-socket wants a path. Try: rocco help",
            ),
            (
                "mcp --executor a --executor-socket b",
                "--executor and --executor-socket are given, or one of them twice. Try: rocco help",
            ),
        ] {
            assert_eq!(parsed(line), Err(wanted.to_owned()), "{line}");
        }
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        for (text, wanted) in [
            ("a", Some(vec!["a"])),
            ("  a  b\t", Some(vec!["a", "b"])),
            ("'a b' \"c d\" e'f'\"g\"", Some(vec!["a b", "c d", "efg"])),
            ("a '' \"\"", Some(vec!["a", "", ""])),
            (r"a\ b \'c", Some(vec!["a b", "'c"])),
            (r#"a "\"\\\$\n" '\'"#, Some(vec!["a", r#""\$\n"#, r"\"])),
            (
                "a $(b) ; c | d > e *",
                Some(vec!["a", "$(b)", ";", "c", "|", "d", ">", "e", "*"]),
            ),
            ("", None),
            (" ", None),
            ("''", None),
            ("a 'b", None),
            ("a \"b", None),
            (r"a \", None),
            (r#"a "\"#, None),
        ] {
            let wanted = wanted.ok_or(Misuse::Program(text.to_owned()));
            let split = words(text.to_owned());
            let wanted = wanted.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(split, wanted, "{text}");
        }
    }

    #[test]
    fn a_strange_argument_stays_on_one_line() {
        let said = command(["a\nb\u{1b}[1m".repeat(100)])
            .unwrap_err()
            .to_string();
        assert!(!said.contains(['\n', '\u{1b}']));
    }
}
