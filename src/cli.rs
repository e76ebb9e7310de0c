//! The command line: arguments to a command, without doing anything.

use std::fmt;

use rocco::limits::BUSY_POLL_US_MAX;

/// What the person asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// What rocco is, and how to connect it.
    Help,
    /// The version.
    Version,
    /// Serve on stdin and stdout, and look for input for so long before sleeping.
    Mcp {
        /// In microseconds; 0 is not at all.
        busy_poll_us: u64,
    },
    /// What `rocco mcp` takes.
    McpHelp,
    /// Talk to a server of its own and show what a client sees.
    McpCheck,
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
        }?;
        f.write_str(" Try: rocco help")
    }
}

/// What an argument means, and what may follow it.
struct Word {
    text: &'static str,
    command: Command,
    next: &'static [Word],
}

const fn word(text: &'static str, command: Command, next: &'static [Word]) -> Word {
    Word {
        text,
        command,
        next,
    }
}

const WORDS: &[Word] = &[
    word("mcp", Command::Mcp { busy_poll_us: 0 }, MCP_FLAGS),
    word("help", Command::Help, &[word("mcp", Command::McpHelp, &[])]),
    word("--help", Command::Help, &[]),
    word("-h", Command::Help, &[]),
    word("--version", Command::Version, &[]),
    word("-V", Command::Version, &[]),
];

const BUSY_POLL: &str = "--busy-poll";

const MCP_FLAGS: &[Word] = &[
    word("--check", Command::McpCheck, &[]),
    word(BUSY_POLL, Command::Mcp { busy_poll_us: 0 }, &[]),
    word("--help", Command::McpHelp, &[]),
    word("-h", Command::McpHelp, &[]),
    word("--version", Command::Version, &[]),
];

/// Reads the arguments behind the program's name.
///
/// # Errors
///
/// The first argument that cannot stand where it stands.
pub(crate) fn command(arguments: impl IntoIterator<Item = String>) -> Result<Command, Misuse> {
    let (mut command, mut words) = (Command::Help, WORDS);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some(word) = words.iter().find(|word| word.text == argument) else {
            // Every argument is near to a flag of one letter.
            let spelt = words.iter().filter(|word| word.text.len() > 2);
            return Err(
                match spelt.min_by_key(|word| distance(word.text, &argument)) {
                    Some(nearest) => Misuse::Unknown(argument, nearest.text),
                    None => Misuse::Surplus(argument),
                },
            );
        };
        (command, words) = (word.command, word.next);
        if word.text == BUSY_POLL {
            let busy_poll_us = microseconds(arguments.next().unwrap_or_default())?;
            command = Command::Mcp { busy_poll_us };
        }
    }
    Ok(command)
}

fn microseconds(argument: String) -> Result<u64, Misuse> {
    match argument.parse() {
        Ok(number @ 1..=BUSY_POLL_US_MAX) => Ok(number),
        _ => Err(Misuse::Microseconds(argument)),
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
            ("mcp", Command::Mcp { busy_poll_us: 0 }),
            ("mcp --busy-poll 50", Command::Mcp { busy_poll_us: 50 }),
            ("mcp --help", Command::McpHelp),
            ("mcp --check", Command::McpCheck),
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
            ("mcp --check x", r#"surplus argument "x". Try: rocco help"#),
        ] {
            assert_eq!(parsed(line), Err(wanted.to_owned()), "{line}");
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
