//! What a program of a task is given: directories of its own, an environment, and walls around it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::executor::policy::Policy;
use crate::executor::run::supervisor::Program;
use crate::executor::walls::entry;
use crate::executor::walls::view::{self, View};

/// Object stores that a repository may borrow from, one after the other. Git itself follows five.
const STORES_MAX: usize = 16;

/// The directories of a program. All of them are new for each program.
#[derive(Debug)]
pub struct ProgramDirs {
    /// Where the program starts: the clone of an agent, the checkout of a gate.
    pub dir: PathBuf,
    /// Its home.
    pub home: PathBuf,
    /// Its directory for temporary files.
    pub tmp: PathBuf,
}

impl ProgramDirs {
    /// Makes the home and the directory for temporary files, for this user alone.
    pub fn make(&self) -> io::Result<()> {
        [&self.home, &self.tmp]
            .into_iter()
            .try_for_each(|path| DirBuilder::new().recursive(true).mode(0o700).create(path))
    }
}

/// Puts files of the user's home in their place in a new one, as links to them: what a program
/// changes of its credentials is changed for the user as well, who is logged out otherwise.
pub fn lend(files: &[(PathBuf, PathBuf)], home: &Path) -> io::Result<()> {
    for (place, real) in files {
        let place = home.join(place);
        if let Some(folder) = place.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        std::os::unix::fs::symlink(real, place)?;
    }
    Ok(())
}

/// Which program is run, and what it may do.
#[derive(Debug)]
pub struct Role<'a> {
    /// The program and its arguments.
    pub argv: &'a [OsString],
    /// The variables of the executor's environment that it gets.
    pub pass_env: &'a [String],
    /// What it may write beside its dirs.
    pub writable: &'a [PathBuf],
    /// Whether it reaches the network.
    pub network: bool,
    /// The file that it reads as its stdin.
    pub stdin: PathBuf,
}

/// The program, within the walls that the executor found standing.
pub fn walled(policy: &Policy, dirs: &ProgramDirs, role: &Role<'_>) -> Program {
    let config = &policy.config;
    let mut readable = object_stores(&dirs.dir);
    readable.extend(view::of_the_command(role.argv));
    readable.extend(config.readable.iter().cloned());
    let mut writable = vec![dirs.dir.clone(), dirs.home.clone(), dirs.tmp.clone()];
    writable.extend_from_slice(role.writable);
    let view = View {
        readable,
        writable,
        tmp: dirs.tmp.clone(),
        dir: dirs.dir.clone(),
        network: role.network,
        unix_sockets: config.unix_sockets,
    };
    let tmp = match policy.walls.has_bubblewrap() {
        true => Path::new("/tmp"),
        false => &dirs.tmp,
    };
    Program {
        argv: entry::argv(
            policy.walls,
            &view,
            config.program_bounds,
            &policy.program,
            role.argv,
        ),
        dir: dirs.dir.clone(),
        env: policy.environment(&dirs.home, tmp, role.pass_env),
        stdin: role.stdin.clone(),
    }
}

/// The object stores that a clone borrows from, and those that these borrow from
/// (gitrepository-layout(5), objects/info/alternates). The lists are read before the program has
/// started, so that all of them are the executor's and the user's.
fn object_stores(clone: &Path) -> Vec<PathBuf> {
    let mut stores: Vec<PathBuf> = vec![clone.join(".git/objects")];
    let mut next = 0;
    while next < stores.len() && stores.len() < STORES_MAX {
        let store = stores[next].clone();
        next += 1;
        let named = fs::read_to_string(store.join("info/alternates")).unwrap_or_default();
        for line in named.lines().filter(|line| !line.starts_with('#')) {
            let Ok(real) = store.join(line).canonicalize() else {
                continue;
            };
            if !stores.contains(&real) {
                stores.push(real);
            }
        }
    }
    stores.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_stores_are_followed_and_circles_end() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().canonicalize().expect("a path");
        let store = |name: &str, alternates: &str| {
            let store = root.join(name);
            fs::create_dir_all(store.join("info")).expect("a directory");
            fs::write(store.join("info/alternates"), alternates).expect("a file");
            store
        };
        let second = store("second", "../clone/.git/objects\n/no/such/store\n");
        let first = store(
            "first",
            &format!("# a comment\n../second\n{}\n", second.display()),
        );
        store("clone/.git/objects", &format!("{}\n", first.display()));
        assert_eq!(object_stores(&root.join("clone")), [first, second]);
        assert!(object_stores(Path::new("/no/such/clone")).is_empty());
    }
}
