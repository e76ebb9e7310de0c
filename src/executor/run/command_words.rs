//! What the command of a gate may name: the words of its arguments, as a shell or another program
//! would take them apart, and what stands for many names. No I/O.

use crate::executor::run::path_pattern::{FoldedPath, PathGlob};

/// Stands in a word for what only the shell knows: a variable, or the output of a command.
pub const UNKNOWN: char = '\0';

/// Quotes within quotes within quotes.
const DEPTH_MAX: usize = 3;

/// The directory that a gate starts in, as scripts write it.
const HERE: [&str; 4] = ["${PWD}", "$(pwd)", "`pwd`", "$PWD"];

/// What a word may name.
#[derive(Debug)]
pub enum Named {
    /// A path.
    Path(FoldedPath),
    /// Many paths.
    Glob(PathGlob),
}

impl Named {
    /// What a word names, if that can be within a repository.
    pub fn by(word: &str) -> Option<Self> {
        match word.contains(['*', '?', '[', '{', UNKNOWN]) {
            true => PathGlob::of_argument(word).map(Self::Glob),
            false => match FoldedPath::of_argument(word) {
                // A command that changes its directory comes back by it.
                None if word.starts_with("../") => PathGlob::of_argument(word).map(Self::Glob),
                path => path.map(Self::Path),
            },
        }
    }
}

/// The words of an argument: itself, what a shell makes of it, and its pieces between all
/// characters that any program may take for an end.
pub fn words(argument: &str) -> Vec<String> {
    let mut text = argument.to_owned();
    for here in HERE {
        text = text.replace(here, ".");
    }
    let mut words: Vec<String> = pieces(&text).map(str::to_owned).collect();
    let mut quoted = vec![text];
    for _ in 0..DEPTH_MAX {
        let inner: Vec<String> = quoted.iter().flat_map(|text| shell_words(text)).collect();
        words.extend(quoted);
        let is_line =
            |word: &String| word.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
        quoted = inner.iter().filter(|word| is_line(word)).cloned().collect();
        words.extend(inner);
    }
    let glued = words.iter().filter_map(|word| behind_option(word));
    let glued: Vec<String> = glued.map(str::to_owned).collect();
    words.extend(glued);
    words.sort_unstable();
    words.dedup();
    words
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let separates =
        |character: char| character.is_whitespace() || "'\"`;|&()<>{}[]$=,:\\".contains(character);
    text.split(separates).filter(|word| !word.is_empty())
}

/// A file that stands behind the letter of an option. Directories that are searched hold what a
/// gate tests, and are not told.
fn behind_option(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-')?;
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let file = &rest[1..];
    (!"IL".contains(letter) && file.contains(['/', '.'])).then_some(file)
}

/// The words that a shell makes of a line: without quotes, and with a mark for what it fills in.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut rest = line.chars().peekable();
    while let Some(character) = rest.next() {
        let word = words.last_mut().expect("there is a word from the start on");
        match (character, quote) {
            ('\\', None | Some('"')) => word.extend(rest.next().filter(|next| *next != '\n')),
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            ('$', _) => {
                word.push(UNKNOWN);
                skip_expansion(&mut rest);
            }
            ('`', _) => {
                word.push(UNKNOWN);
                rest.by_ref().find(|next| *next == '`');
            }
            (_, None) if character.is_whitespace() || ";|&()<>".contains(character) => {
                words.push(String::new());
            }
            _ => word.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Skips the name of a variable, or a command whose output is taken.
fn skip_expansion(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let in_name = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
    let (open, close) = match rest.peek() {
        Some('{') => ('{', '}'),
        Some('(') => ('(', ')'),
        Some(character) if in_name(character) => {
            while rest.next_if(in_name).is_some() {}
            return;
        }
        Some('@' | '*' | '#' | '?' | '!' | '$' | '-') => {
            rest.next();
            return;
        }
        _ => return,
    };
    let mut depth = 0_usize;
    for character in rest.by_ref() {
        depth += usize::from(character == open);
        depth -= usize::from(character == close);
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_as_a_shell_does() {
        for (line, wanted) in [
            ("sh 'a b.sh'", &["sh", "a b.sh"][..]),
            ("sh a\\ b.sh;x", &["sh", "a b.sh", "x"]),
            ("sh r\"un\".sh", &["sh", "run.sh"]),
            ("sh \"${D:-x}\"/run.sh", &["sh", "\0/run.sh"]),
            ("$(f $(g))/x && `h`/y", &["\0/x", "\0/y"]),
            ("echo $ $1 '$x'", &["echo", "\0", "\0", "\0"]),
            ("'never closed", &["never closed"]),
            ("${never", &["\0"]),
            ("", &[]),
        ] {
            assert_eq!(shell_words(line), wanted, "{line}");
        }
    }

    #[test]
    fn quotes_within_quotes_are_taken_apart_too() {
        let words = words("bash -c \"sh 'a b.sh' -fsub/x.mk\" $PWD/run.sh");
        for wanted in ["a b.sh", "sub/x.mk", "./run.sh"] {
            assert!(
                words.iter().any(|word| word == wanted),
                "{wanted} {words:?}"
            );
        }
    }
}
