//! The command line: arguments to a command, without doing anything.

use std::fmt;

/// What the person asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// What rocco is, and how to connect it.
    Help,
    /// The version.
    Version,
    /// Serve on stdin and stdout.
    Mcp,
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
            Self::Surplus(argument) => write!(f, "surplus argument {argument:?}"),
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
    word("mcp", Command::Mcp, MCP_FLAGS),
    word("help", Command::Help, &[word("mcp", Command::McpHelp, &[])]),
    word("--help", Command::Help, &[]),
    word("-h", Command::Help, &[]),
    word("--version", Command::Version, &[]),
    word("-V", Command::Version, &[]),
];

const MCP_FLAGS: &[Word] = &[
    word("--check", Command::McpCheck, &[]),
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
    for argument in arguments {
        let Some(word) = words.iter().find(|word| word.text == argument) else {
            let near = |word: &&Word| distance(word.text, &argument);
            return Err(match words.iter().min_by_key(near) {
                Some(nearest) => Misuse::Unknown(argument, nearest.text),
                None => Misuse::Surplus(argument),
            });
        };
        (command, words) = (word.command, word.next);
    }
    Ok(command)
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
            ("mcp", Command::Mcp),
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
            ("mcp --check x", r#"surplus argument "x" Try: rocco help"#),
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
