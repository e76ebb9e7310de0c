//! Patterns that say which paths of a repository mean something to a program. No I/O.
//!
//! A path counts as what any file system may make of it: those of macOS and Windows know no case,
//! and leave out characters that cannot be seen, streams, and points and spaces at the end of a
//! name.

use crate::executor::run::command_words::UNKNOWN;
use crate::executor_protocol::sanitize::cannot_be_seen;

/// A path as every file system may see it.
#[derive(Debug, PartialEq, Eq)]
pub struct FoldedPath(Vec<String>);

impl FoldedPath {
    /// Folds a path that git tells.
    pub fn new(path: &str) -> Self {
        Self(path.split('/').map(folded).collect())
    }

    /// Whether a pattern names the path, or a directory above it.
    ///
    /// A pattern is one name or more, with slashes between them, in small letters. It may lie in
    /// any directory; one that begins with a slash lies in the root. In a name `*` stands for any
    /// characters, once.
    pub fn is_named_by(&self, pattern: &str) -> bool {
        let (pattern, is_at_root) = match pattern.strip_prefix('/') {
            Some(pattern) => (pattern, true),
            None => (pattern, false),
        };
        let names = || pattern.split('/');
        let starts = self.0.len().saturating_sub(names().count() - 1);
        let starts = if is_at_root { starts.min(1) } else { starts };
        (0..starts).any(|start| {
            let mut pairs = names().zip(&self.0[start..]);
            pairs.all(|(wanted, name)| is_like(name, wanted))
        })
    }

    /// Whether the path is this one, or lies below it.
    pub fn lies_in(&self, dir: &Self) -> bool {
        self.0.starts_with(&dir.0)
    }

    /// The name of the entry in a directory that the path is, or goes through.
    pub fn entry_of(&self, dir: &Self) -> Option<&str> {
        let rest = self.0.strip_prefix(dir.0.as_slice())?;
        rest.first().map(String::as_str)
    }

    /// The directory that holds the path. The root is its own.
    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// The name in that directory. The root has none.
    pub fn name(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// The path of a file in a directory without the ending of its name, which some programs add.
    pub fn without_ending(&self) -> Option<Self> {
        let (name, dirs) = self.0.split_last()?;
        let (stem, _) = name.rsplit_once('.')?;
        let is_inner = !dirs.is_empty() && !stem.is_empty();
        is_inner.then(|| Self([dirs, &[stem.to_owned()]].concat()))
    }

    /// The directory that holds everything.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// Whether it is the directory that holds everything.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// A path as an argument names it, without `.` and `..`. None if it leads upwards.
    pub fn of_argument(argument: &str) -> Option<Self> {
        if argument.starts_with('/') {
            return None;
        }
        let mut names = Vec::new();
        for name in argument.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()?),
                name => names.push(folded(name)),
            }
        }
        (!names.iter().any(String::is_empty)).then_some(Self(names))
    }

    /// The file that makes a package of the directory.
    pub fn package_file(&self) -> Self {
        Self([self.0.as_slice(), &["__init__.py".to_owned()]].concat())
    }

    /// The directories above it, the root left out.
    pub fn dirs_above(&self) -> impl Iterator<Item = Self> {
        (1..self.0.len()).map(|names| Self(self.0[..names].to_vec()))
    }
}

/// What stands for many paths in an argument: characters that a shell fills in.
#[derive(Debug)]
pub struct PathGlob(Vec<GlobPart>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobPart {
    Char(char),
    /// Any characters of a name.
    InName,
    /// Any characters, also of several names.
    Anything,
}

impl PathGlob {
    /// What an argument stands for. None if that is all paths, or none in a repository.
    pub fn of_argument(argument: &str) -> Option<Self> {
        // What leads upwards may end anywhere.
        let (start, argument) = match argument.rsplit_once("../") {
            Some((_, rest)) => (Some(GlobPart::Anything), ["/", rest].concat()),
            None => (None, argument.to_owned()),
        };
        let mut parts: Vec<GlobPart> = start.into_iter().collect();
        let mut rest = argument.chars();
        while let Some(character) = rest.next() {
            let closes = |close: char| {
                let inner = rest.as_str().split('/').next().unwrap_or_default();
                inner.find(close)
            };
            let group = match character {
                '[' => closes(']'),
                '{' => closes('}'),
                _ => None,
            };
            if let Some(at) = group {
                rest = rest.as_str()[at + 1..].chars();
            }
            match character {
                UNKNOWN => parts.push(GlobPart::Anything),
                '*' | '?' => parts.push(GlobPart::InName),
                _ if group.is_some() => parts.push(GlobPart::InName),
                _ => parts.extend(folded_chars(character).map(GlobPart::Char)),
            }
        }
        let dot_slash = ['.', '/'].map(GlobPart::Char);
        match parts.first()? {
            GlobPart::Char('/') => return None,
            GlobPart::Char('.') if parts.get(1) == Some(&GlobPart::Char('/')) => {}
            GlobPart::Anything => {}
            _ => drop(parts.splice(..0, dot_slash)),
        }
        let is_word = |part: &GlobPart| matches!(part, GlobPart::Char(c) if c.is_alphanumeric());
        parts.iter().any(is_word).then_some(Self(parts))
    }

    /// Whether a path, or a directory above it, is among them.
    pub fn covers(&self, path: &FoldedPath) -> bool {
        let end = self.0.len();
        let mut at = vec![false; end + 1];
        at[0] = true;
        let text = ["./", &path.0.join("/")].concat();
        for character in text.chars().chain(['/']) {
            for here in 0..end {
                // Any characters may be none.
                at[here + 1] |= at[here] && !matches!(self.0[here], GlobPart::Char(_));
            }
            if character == '/' && at[end] {
                return true;
            }
            let mut next = vec![false; end + 1];
            for here in (0..end).filter(|here| at[*here]) {
                match self.0[here] {
                    GlobPart::Char(wanted) => next[here + 1] |= wanted == character,
                    GlobPart::InName => next[here] |= character != '/',
                    GlobPart::Anything => next[here] = true,
                }
            }
            at = next;
        }
        false
    }
}

/// A name without what some file system does not see. Capital letters first: they are what letters
/// of other shapes have in common.
fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches(['.', ' ']);
    name.chars()
        .filter(|character| !is_left_out(*character))
        .flat_map(folded_chars)
        .collect()
}

fn folded_chars(character: char) -> impl Iterator<Item = char> {
    character.to_uppercase().flat_map(char::to_lowercase)
}

fn is_left_out(character: char) -> bool {
    cannot_be_seen(character) || character == '\u{FE0F}'
}

fn is_like(name: &str, wanted: &str) -> bool {
    match wanted.split_once('*') {
        None => name == wanted,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_files_and_what_lies_below_them() {
        for (path, pattern, named) in [
            ("Makefile", "makefile", true),
            ("sub/Makefile", "makefile", true),
            ("sub/Makefile", "/makefile", false),
            ("makefile.am", "makefile", false),
            (".vscode/tasks.json", ".vscode", true),
            ("a/.VSCode/x/y", ".vscode", true),
            (".github/workflows/x.yml", ".github/workflows", true),
            (".github/CODEOWNERS", ".github/workflows", false),
            (".github", ".github/workflows", false),
            ("x/.cargo/config.toml", ".cargo/config*", true),
            ("jest.config.mjs", "jest.config.*", true),
            ("jest.config", "jest.config.*", false),
            ("a.b", "a.*.b", false),
        ] {
            let is_named = FoldedPath::new(path).is_named_by(pattern);
            assert_eq!(is_named, named, "{path} {pattern}");
        }
    }

    #[test]
    fn a_name_is_what_any_file_system_makes_of_it() {
        for path in [
            ".claude",
            ".CLAUDE",
            ".cla\u{200C}ude",
            "\u{FEFF}.claude",
            ".claude\u{FE0F}",
            ".claude. .",
            ".claude::$INDEX_ALLOCATION",
        ] {
            assert!(FoldedPath::new(path).is_named_by(".claude"), "{path:?}");
        }
        // The sign of the kelvin and the long s.
        assert!(FoldedPath::new("ma\u{212A}efile").is_named_by("makefile"));
        assert!(FoldedPath::new(".v\u{17F}code/x").is_named_by(".vscode"));
        assert!(!FoldedPath::new(".claudé").is_named_by(".claude"));
    }

    #[test]
    fn an_argument_is_a_path_from_the_root() {
        let changed = FoldedPath::new("ci/run.sh");
        for (argument, named) in [
            ("./ci/run.sh", true),
            ("ci/", true),
            ("ci//run.sh", true),
            ("run.sh", false),
            ("/ci/run.sh", false),
            ("../ci/run.sh", false),
            ("sub/../ci/x/../run.sh", true),
            ("ci/../../ci/run.sh", false),
        ] {
            let path = FoldedPath::of_argument(argument);
            let is_named = path.is_some_and(|path| changed.lies_in(&path));
            assert_eq!(is_named, named, "{argument}");
        }
        assert!(FoldedPath::of_argument(".").unwrap().is_root());
    }

    #[test]
    fn what_a_shell_fills_in_stands_for_many_paths() {
        for (argument, path, named) in [
            ("tests/*.sh", "tests/a.sh", true),
            ("tests/*.sh", "tests/a/b.sh", false),
            ("tests/*.sh", "Tests/A.SH", true),
            ("ru?.sh", "run.sh", true),
            ("./r[uv]n.sh", "run.sh", true),
            ("{run,go}.sh", "go.sh", true),
            ("t*", "tests/a/b", true),
            ("\0/run.sh", "run.sh", true),
            ("\0/run.sh", "a/b/run.sh", true),
            ("\0/run.sh", "a/b/run.sh/c", true),
            ("\0/run.sh", "a/prerun.sh", false),
            ("a/*/../run.sh", "run.sh", true),
            ("a[b.sh", "a[b.sh", true),
        ] {
            let glob = PathGlob::of_argument(argument).unwrap();
            assert_eq!(
                glob.covers(&FoldedPath::new(path)),
                named,
                "{argument} {path}"
            );
        }
        for all in ["*", "\0", "./**", "/usr/*", ""] {
            assert!(PathGlob::of_argument(all).is_none(), "{all:?}");
        }
    }
}
