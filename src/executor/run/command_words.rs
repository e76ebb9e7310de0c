//! What the command of a gate may name: the words of its arguments, as a shell or another program
//! would take them apart, and what stands for many names. No I/O.

use crate::executor::run::path_pattern::{FoldedPath, PathGlob};

/// Stands in a word for what only the shell knows: a variable, or the output of a command.
pub const UNKNOWN: char = '\0';

/// Words before a directory that a command, or the rest of a line, starts in.
const STARTS_IN: [&str; 7] = [
    "cd",
    "pushd",
    "-C",
    "--directory",
    "--chdir",
    "--cwd",
    "--prefix",
];

/// Quotes within quotes within quotes.
const DEPTH_MAX: usize = 3;

/// The directory that a gate starts in, as scripts write it.
const HERE: [&str; 5] = ["${PWD}", "$(pwd)", "`pwd`", "$PWD", "~+"];

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
            |word: &String| word.contains(|c: char| c.is_whitespace() || "'\"\\$".contains(c));
        quoted = inner.iter().filter(|word| is_line(word)).cloned().collect();
        words.extend(inner);
    }
    let glued = words.iter().filter_map(|word| behind_option(word));
    let glued = glued.map(str::to_owned);
    let given = words.iter().flat_map(|word| values(word));
    let further: Vec<String> = glued.chain(given).collect();
    words.extend(further);
    words.sort_unstable();
    words.dedup();
    words
}

/// Directories in which a command says that something starts, one after the other and alone.
pub fn start_dirs(argv: &[String]) -> Vec<String> {
    let lines = argv.iter().map(|argument| shell_words(argument));
    let mut dirs: Vec<String> = Vec::new();
    for line in lines.chain([argv.to_vec()]) {
        let mut way = String::new();
        let behind = line.windows(2).filter_map(|pair| {
            let is_before = STARTS_IN.contains(&pair[0].as_str());
            is_before.then_some(pair[1].as_str())
        });
        let within = line.iter().filter_map(|word| {
            let attached = word.strip_prefix("-C").filter(|dir| !dir.is_empty());
            let by_name = || {
                let (name, dir) = word.split_once('=')?;
                STARTS_IN.contains(&name).then_some(dir)
            };
            attached.or_else(by_name)
        });
        for dir in behind.chain(within) {
            way = format!("{way}{dir}/");
            dirs.extend([format!("{dir}/"), way.clone()]);
        }
    }
    dirs.sort_unstable();
    dirs.dedup();
    dirs
}

/// Values that a word gives to a variable: names of files and directories where they start.
fn values(word: &str) -> impl Iterator<Item = String> {
    let value = word.split_once('=').map_or("", |(_, value)| value);
    let names = value.split(':').filter(|name| !name.is_empty());
    names
        .filter(|name| !name.contains(['/', UNKNOWN]))
        .map(|name| format!("./{name}"))
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let separates =
        |character: char| character.is_whitespace() || "'\"`;|&()<>{}[]$=,:\\".contains(character);
    text.split(separates).filter(|word| !word.is_empty())
}

/// What stands behind the letter of an option. Directories that are searched hold what a gate
/// tests, and are not told.
fn behind_option(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-')?;
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let value = &rest[1..];
    (!"IL".contains(letter) && !value.is_empty()).then_some(value)
}

/// The words that a shell makes of a line: without quotes, and with a mark for what it fills in.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut others) = (vec![String::new()], Vec::new());
    let mut quote = None;
    let mut rest = line.chars().peekable();
    while let Some(character) = rest.next() {
        let word = words.last_mut().expect("there is a word from the start on");
        match (character, quote) {
            ('\\', None | Some('"')) => word.extend(rest.next().filter(|next| *next != '\n')),
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            // These quotes are those of a translation.
            ('$', None) if rest.peek() == Some(&'"') => {}
            ('$', None) if rest.next_if_eq(&'\'').is_some() => add_quoted(word, &mut rest),
            ('$', _) => {
                word.push(UNKNOWN);
                others.push(skip_expansion(&mut rest));
            }
            ('~', None) if word.is_empty() => {
                word.push(UNKNOWN);
                while rest.next_if(|next| !ends_home(*next)).is_some() {}
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
    words.extend(others);
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a character ends what a shell makes a directory of, such as `~-` or `~user`.
fn ends_home(character: char) -> bool {
    character.is_whitespace() || "/;|&()<>".contains(character)
}

/// Adds what stands in `$'...'` to a word, with a mark for each character that is written as an
/// escape.
fn add_quoted(word: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(character) = rest.next().filter(|character| *character != '\'') {
        if character != '\\' {
            word.push(character);
            continue;
        }
        word.push(UNKNOWN);
        let digits_max = match rest.next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('0'..='7') => 2,
            Some('c') => 1,
            _ => 0,
        };
        for _ in 0..digits_max {
            let _ = rest.next_if(|next| next.is_ascii_hexdigit());
        }
    }
}

/// Skips the name of a variable, or a command whose output is taken. Tells what a shell may take
/// instead of the variable's value (`${X:-run.sh}`).
fn skip_expansion(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let in_name = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
    let (open, close) = match rest.peek() {
        Some('{') => ('{', '}'),
        Some('(') => ('(', ')'),
        Some(character) if in_name(character) => {
            while rest.next_if(in_name).is_some() {}
            return String::new();
        }
        Some('@' | '*' | '#' | '?' | '!' | '$' | '-') => {
            rest.next();
            return String::new();
        }
        _ => return String::new(),
    };
    let (mut depth, mut inner) = (0_usize, String::new());
    for character in rest.by_ref() {
        depth += usize::from(character == open);
        depth -= usize::from(character == close);
        if depth == 0 {
            break;
        }
        inner.push(character);
    }
    let is_sign = |character: char| "-=+?".contains(character);
    match inner.split_once(is_sign) {
        Some((_, other)) if open == '{' => other.to_owned(),
        _ => String::new(),
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
            ("sh \"${D:-x}\"/run.sh", &["sh", "\0/run.sh", "x"]),
            ("sh ${D-a/b}", &["sh", "\0", "a/b"]),
            ("$(f $(g))/x && `h`/y", &["\0/x", "\0/y"]),
            ("echo $ $1 '$x'", &["echo", "\0", "\0", "\0"]),
            ("'never closed", &["never closed"]),
            ("${never", &["\0"]),
            ("sh $'a\\x20b.sh' $'c\\'d'", &["sh", "a\0b.sh", "c\0d"]),
            ("sh $\"run\".sh", &["sh", "run.sh"]),
            ("sh ~-/run.sh;~u/x a~b", &["sh", "\0/run.sh", "\0/x", "a~b"]),
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
