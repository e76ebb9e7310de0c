//! What a program of a task is given: directories of its own, an environment, and walls around it.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::executor::policy::Policy;
use crate::executor::run::object_stores;
use crate::executor::run::supervisor::Program;
use crate::executor::walls::entry;
use crate::executor::walls::view::{self, View};

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
    // The lists are read before the program has started, so that all of them are the executor's and
    // the user's. The user's were looked at when the repository was opened.
    let stores = object_stores::borrowed(&dirs.dir.join(".git/objects"), |_| true);
    let mut readable = stores.unwrap_or_default();
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
