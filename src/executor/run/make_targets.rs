//! What `make` may take for made: files of the names that a makefile knows. It makes nothing where
//! a file of a target's name is there, and newer than what it is made from. No I/O.

use std::collections::HashSet;

use crate::executor::run::links::dirs_above;
use crate::executor::run::path_pattern::FoldedPath;
use crate::limits::CHANGE_NAMES_MAX;

/// Names of makefiles that are read where a program starts.
const MAKEFILES: &str = "gnumakefile bsdmakefile makefile rakefile";

/// Patterns of further ones, which others include.
const PARTS: &str = "makefile.* *.mk *.mak *.make *.makefile *.rake";

/// Stands before a name whose directory is not known: a variable, in most cases.
const SOMEWHERE: char = '\0';

/// What the makefiles of a tree name.
#[derive(Debug, Default)]
pub struct MakeTargets {
    /// Directories with a makefile.
    dirs: HashSet<String>,
    /// Paths that a makefile names.
    paths: HashSet<String>,
    /// Paths that a part of makefiles names, from wherever it is included.
    of_parts: HashSet<String>,
    /// Names that a makefile knows in a directory that is not known.
    names: HashSet<String>,
    /// What stands before and behind the part that a rule leaves open (`%.ok:`).
    open_names: HashSet<(String, String)>,
    /// A makefile was not read, so that it may name anything.
    is_cut: bool,
}

impl MakeTargets {
    /// Takes in a makefile: its path, and its text if that was read.
    pub fn add(&mut self, path: &str, text: Option<&[u8]>) {
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        let is_part = !is_like(path, MAKEFILES);
        if !is_part {
            self.dirs.insert(dir.to_owned());
        }
        let Some(text) = text else {
            return self.miss_some();
        };
        let text = String::from_utf8_lossy(text);
        // Files are looked for in directories that a makefile lists.
        let is_searched = text.to_ascii_lowercase().contains("vpath");
        self.open_names.extend(open_names(&text));
        let text = text.replace(")/", ") \0/").replace("}/", "} \0/");
        for word in words(&text) {
            if let Some(name) = word.strip_prefix(SOMEWHERE) {
                self.names.extend(last_name(name));
                continue;
            }
            if is_searched {
                self.names.extend(last_name(word));
            }
            // A makefile that is named starts where the program does, and that may be the root.
            for start in [dir, ""] {
                self.paths.extend(joined(start, word));
            }
            if is_part {
                self.of_parts.extend(joined("", word));
            }
        }
    }

    /// Takes note that there are makefiles that were not read.
    fn miss_some(&mut self) {
        self.is_cut = true;
    }

    /// Whether `make` may take a path that was not there for made. It lies in a directory that was
    /// not there either, or in none.
    pub fn may_hold(&self, path: &str, new_dir: Option<&str>) -> bool {
        let is_new = |dir: &&str| new_dir.is_some_and(|new_dir| dir.len() >= new_dir.len());
        let dirs = dirs_above(path).filter(is_new).take(CHANGE_NAMES_MAX);
        let is_named = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            let mut starts = dirs_above(path).filter(|dir| self.dirs.contains(*dir));
            let is_like = |(start, end): &(String, String)| {
                let is_long = name.len() > start.len() + end.len();
                is_long && name.starts_with(start) && name.ends_with(end)
            };
            self.paths.contains(path)
                || self.open_names.iter().any(is_like)
                || self.names.contains(name)
                || starts.any(|dir| self.of_parts.contains(&path[dir.len() + 1..]))
        };
        let new = new_dir.unwrap_or(path);
        let (dir, name) = new.rsplit_once('/').unwrap_or(("", new));
        let is_beside = !name.contains('.') && self.dirs.contains(dir);
        self.is_cut || is_beside || dirs.chain([path]).any(is_named)
    }
}

/// Whether a path is that of a makefile.
pub fn is_makefile(path: &str) -> bool {
    is_like(path, MAKEFILES) || is_like(path, PARTS)
}

fn is_like(path: &str, patterns: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = FoldedPath::new(name);
    let mut patterns = patterns.split(' ');
    patterns.any(|pattern| name.is_named_by(pattern))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let separates =
        |character: char| character.is_whitespace() || "'\"`;|&()<>{}$=,:\\@".contains(character);
    text.split(separates).filter(|word| !word.is_empty())
}

/// The names of targets that rules leave open in part. What is open as a whole says nothing.
fn open_names(text: &str) -> impl Iterator<Item = (String, String)> {
    let rules = text.lines().filter(|line| !line.starts_with('\t'));
    let targets = rules.filter_map(|line| line.split_once(':'));
    let targets = targets.flat_map(|(targets, _)| targets.split_whitespace());
    targets.filter_map(|target| {
        let name = target.rsplit('/').next().unwrap_or_default();
        let (start, end) = name.split_once('%')?;
        let is_open = start.is_empty() && end.is_empty();
        (!is_open).then(|| (start.to_owned(), end.to_owned()))
    })
}

fn last_name(word: &str) -> Option<String> {
    let name = word.rsplit('/').next().filter(|name| !name.is_empty());
    name.map(str::to_owned)
}

/// A path from the root on, if it stays within.
fn joined(dir: &str, word: &str) -> Option<String> {
    let mut names: Vec<&str> = dir.split('/').filter(|name| !name.is_empty()).collect();
    if word.starts_with('/') {
        return None;
    }
    for name in word.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    (!names.is_empty()).then(|| names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the root was looked at, and only names without an ending.
    #[test]
    fn what_a_makefile_of_any_directory_knows_may_be_taken_for_made() {
        let mut targets = MakeTargets::default();
        targets.add("Makefile", Some(b"all: unit.ok sub/deep.ok\n\tfalse\n"));
        targets.add("sub/GNUmakefile", Some(b"check: ../up.ok $(OUT)/some.ok\n"));
        targets.add("ci/x.mk", Some(b"build/stamp.d: ./y.ok"));
        targets.add("linked/Makefile", Some(b""));
        targets.add("z.mk", Some(b"%.yes: %.c\n\tfalse\na-%: ; true\n%: x\n"));
        for (path, new_dir, made) in [
            ("unit.ok", None, true),
            ("sub/deep.ok", None, true),
            ("other.ok", None, false),
            ("anything", None, true),
            ("sub/anything", None, true),
            ("sub/inner/anything", None, false),
            ("sub/dir/keep.txt", Some("sub/dir"), true),
            ("sub/dir.x/keep.txt", Some("sub/dir.x"), false),
            ("up.ok", None, true),
            ("out/some.ok", None, true),
            ("ci/y.ok", None, true),
            ("y.ok", None, true),
            ("far/new.yes", None, true),
            ("far/a-1.txt", None, true),
            ("far/new.c", None, false),
            (".yes", None, false),
            ("linked/y.ok", None, true),
            ("elsewhere/y.ok", None, false),
            ("build/stamp.d", Some("build"), true),
            ("x/build.c", Some("x/build.c"), false),
            ("build/stamp.d/keep", Some("build/stamp.d"), true),
            ("ci/anything", None, false),
        ] {
            assert_eq!(targets.may_hold(path, new_dir), made, "{path}");
        }
        assert!(!MakeTargets::default().may_hold("a", None));
    }

    #[test]
    fn a_search_path_and_a_makefile_that_is_not_read_are_taken_for_the_worst() {
        let mut targets = MakeTargets::default();
        targets.add("sub/x.mk", Some(b"VPATH=out\ncheck: unit.o\n"));
        assert!(targets.may_hold("far/unit.o", None));
        assert!(!targets.may_hold("far/other.o", None));
        targets.add("sub/y.mk", None);
        assert!(targets.may_hold("far/other.o", None));
    }

    #[test]
    fn makefiles_are_known_by_their_names() {
        for (path, known) in [
            ("Makefile", true),
            ("a/GNUmakefile", true),
            ("Makefile.inc", true),
            ("a/rules.mk", true),
            ("a/makefile/b", false),
            ("a/make.c", false),
        ] {
            assert_eq!(is_makefile(path), known, "{path}");
        }
    }
}
