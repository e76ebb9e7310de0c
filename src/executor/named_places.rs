//! The places that the command line names. None of them may lie where tasks may write, or be
//! reached by a link that lies there: one task could put something else in its place, which the
//! next task, or the next start, would take for what the operator named.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

use crate::limits::LINK_FOLLOWED_MAX;

/// Programs that the executor itself runs outside of all walls, by their names.
const OWN_PROGRAMS: [&str; 3] = ["git", "bwrap", "systemd-run"];

/// A path of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    /// What names it, for a message.
    pub by: &'static str,
    /// The path, as it is named.
    pub path: PathBuf,
    /// Whether tasks may write the path itself, or what lies in it, where an option says so.
    pub may_be_writable: bool,
}

/// Refuses what lies where tasks may write, or is reached by a link that lies there. Whether a path
/// is there already makes no difference: a later start would find what a task has put there.
///
/// # Errors
///
/// Which path that is, in a sentence.
pub fn outside_of_writable(named: &[NamedPath], writable: &[PathBuf]) -> Result<(), String> {
    if writable.is_empty() {
        return Ok(());
    }
    for named in named {
        let (by, show) = (named.by, named.path.display());
        let places = places(&named.path).map_err(|error| format!("{by} {show}: {error}"))?;
        for place in &places {
            let is_in = |outer: &&PathBuf| place != *outer && place.starts_with(outer);
            if let Some(outer) = writable.iter().find(is_in) {
                let way = match *place == named.path {
                    true => String::new(),
                    false => format!("leads through {}, which ", place.display()),
                };
                return Err(format!(
                    "{by} {show} {way}lies in --writable {}, where a task could put a link in its \
                     place: move one of them",
                    outer.display()
                ));
            }
        }
        let end = places.last().filter(|_| !named.may_be_writable);
        let is_within = |inner: &&PathBuf| end.is_some_and(|end| inner.starts_with(end));
        if let Some(inner) = writable.iter().find(is_within) {
            return Err(format!(
                "--writable {} opens to tasks what is the executor's alone ({by} {show}): name \
                 another path",
                inner.display()
            ));
        }
    }
    Ok(())
}

/// Refuses a search path on which a task could put a program before one that the executor runs.
///
/// # Errors
///
/// Which directory that is, in a sentence.
pub fn own_programs_outside_of_writable(
    search: &OsStr,
    writable: &[PathBuf],
) -> Result<(), String> {
    let dirs: Vec<PathBuf> = std::env::split_paths(search).collect();
    for program in OWN_PROGRAMS {
        let has = |dir: &PathBuf| access(dir.join(program), Access::EXEC_OK).is_ok();
        let looked_in = dirs.iter().position(has).map_or(dirs.len(), |at| at + 1);
        for dir in &dirs[..looked_in] {
            let Some(outer) = outer_of(dir, writable) else {
                continue;
            };
            return Err(format!(
                "{} of PATH lies in --writable {}, where a task could put a program of its own \
                 that the executor would run as {program}: take it out of PATH for the executor, \
                 or move it behind the directory of {program}",
                dir.display(),
                outer.display()
            ));
        }
    }
    Ok(())
}

/// The directory that tasks may write and that a directory is, lies in, or is reached through.
fn outer_of<'w>(dir: &Path, writable: &'w [PathBuf]) -> Option<&'w PathBuf> {
    // A way that no system follows leads to no program.
    let places = places(dir).unwrap_or_default();
    let is_outer = |outer: &&PathBuf| places.iter().any(|place| place.starts_with(outer));
    writable.iter().find(is_outer)
}

/// Every place that a path goes through: each of its names, in the directory where the system looks
/// it up, and where a name is a link also the places that the link leads through. The end comes
/// last. What is not there yet counts as it is written.
fn places(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    add_names(&mut names, &std::path::absolute(path)?);
    let (mut at, mut places, mut followed) = (PathBuf::from("/"), Vec::new(), 0);
    while let Some(name) = names.pop() {
        match name.to_str() {
            Some("/") => at = PathBuf::from("/"),
            Some("..") => drop(at.pop()),
            _ => {
                at.push(name);
                places.push(at.clone());
                if let Ok(target) = at.read_link() {
                    followed += 1;
                    if followed > LINK_FOLLOWED_MAX {
                        return Err(rustix::io::Errno::LOOP.into());
                    }
                    at.pop();
                    add_names(&mut names, &target);
                }
            }
        }
    }
    if places.last() != Some(&at) {
        places.push(at);
    }
    Ok(places)
}

/// Puts the names of a path before those that are looked up later: the next one comes last.
fn add_names(names: &mut Vec<OsString>, path: &Path) {
    let counts = |part: &Component<'_>| *part != Component::CurDir;
    let parts = path.components().filter(counts);
    let parts = parts.map(|part| part.as_os_str().to_owned());
    names.extend(parts.collect::<Vec<_>>().into_iter().rev());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_path_goes_through_every_link_on_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("w/r")).unwrap();
        symlink("w", root.join("al")).unwrap();
        symlink("al/../w/r/./x", root.join("chain")).unwrap();
        symlink(root.join("chain"), root.join("absolute")).unwrap();
        symlink("self", root.join("self")).unwrap();
        for (path, wanted) in [
            ("w/r", &["w", "w/r"][..]),
            ("al/new/er", &["al", "w", "w/new", "w/new/er"]),
            ("chain", &["chain", "al", "w", "w", "w/r", "w/r/x"]),
            (
                "absolute",
                &["absolute", "chain", "al", "w", "w", "w/r", "w/r/x"],
            ),
            ("w/../no/../al", &["w", "no", "al", "w"]),
        ] {
            let found = places(&root.join(path)).unwrap();
            let inner = found.iter().flat_map(|place| place.strip_prefix(&root));
            let inner = inner.filter(|place| !place.as_os_str().is_empty());
            let inner: Vec<&Path> = inner.collect();
            let wanted: Vec<&Path> = wanted.iter().map(Path::new).collect();
            assert_eq!(inner, wanted, "{path}");
        }
        assert!(places(&root.join("self")).is_err());
    }

    /// A task could have put a program there that the executor ran outside of all walls.
    #[test]
    fn no_program_of_the_executors_is_looked_for_where_tasks_write() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let writable = [root.join("w")];
        for dir in ["w/bin", "own"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        symlink("w/bin", root.join("link")).unwrap();
        for program in OWN_PROGRAMS {
            let path = root.join("own").join(program);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        for (dirs, refused) in [
            (&["own", "w/bin"][..], false),
            (&["w/bin", "own"], true),
            (&["link", "own"], true),
            (&["w", "own"], true),
            (&["w/none/yet", "own"], true),
            (&["none", "w/bin"], true),
        ] {
            let search = std::env::join_paths(dirs.iter().map(|dir| root.join(dir))).unwrap();
            let result = own_programs_outside_of_writable(&search, &writable);
            assert_eq!(result.is_err(), refused, "{dirs:?}: {result:?}");
        }
    }
}
