//! A git directory that stands in for the user's: it has the user's objects and refs, by links, and
//! a configuration of the executor's own.
//!
//! Git runs what a configuration names: filters, hooks, monitors, commands to fetch by. A list of
//! overrides cannot name all of them, since a filter has any name and a configuration includes
//! others. So no git of the executor's reads the user's configuration at all. Refs and objects are
//! read and written by git itself all the same, with its own locks, and whatever their format is.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::executor::run::git::{Git, base_ref};
use crate::executor::run::repo::{HeldDir, Repo};
use crate::executor::run::repo_files;
use crate::executor::run::result::terminated;
use crate::executor::store::full_disk::in_words;
use crate::executor::store::plain_file::open_plain;
use crate::executor::store::removal::remove_tree;
use crate::task::id::TaskId;

/// What all working trees of a repository share and a stand-in has.
const SHARED: [&str; 5] = ["objects", "refs", "packed-refs", "reftable", "shallow"];

/// A stand-in, for as long as it is needed.
#[derive(Debug)]
pub struct StandIn<'r> {
    path: PathBuf,
    /// Within it, what belongs to the working tree.
    git_dir: PathBuf,
    repo: &'r Repo,
}

impl Drop for StandIn<'_> {
    fn drop(&mut self) {
        // What cannot be removed is removed at the next start.
        let _ = remove_tree(&self.path);
    }
}

impl<'r> StandIn<'r> {
    /// Makes a stand-in whose links lead to the git directory at a path.
    fn new(scratch: &Path, repo: &'r Repo, common: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = scratch.join(number.to_string());
        let has_own_dir = repo.git_dir().real() != repo.common().real();
        let git_dir = match has_own_dir {
            true => path.join("worktrees/tree"),
            false => path.clone(),
        };
        let stand_in = Self {
            path,
            git_dir,
            repo,
        };
        remove_tree(&stand_in.path)?;
        let mut folders = DirBuilder::new();
        folders
            .recursive(true)
            .mode(0o700)
            .create(&stand_in.git_dir)?;
        let config = repo.settings().own_config(true);
        fs::write(stand_in.path.join("config"), config)?;
        fs::write(stand_in.path.join("HEAD"), head_of(repo.common())?)?;
        for name in SHARED {
            symlink(common.join(name), stand_in.path.join(name))?;
        }
        if has_own_dir {
            fs::write(stand_in.git_dir.join("HEAD"), head_of(repo.git_dir())?)?;
            fs::write(stand_in.git_dir.join("commondir"), "../..\n")?;
            // A linked working tree lies within the repository that it is one of.
            let inner = repo.git_dir().real().strip_prefix(repo.common().real());
            let inner = inner.map_err(|_| io::Error::other("its git directory lies apart"))?;
            let own = common.join(inner).join("reftable");
            symlink(own, stand_in.git_dir.join("reftable"))?;
        }
        Ok(stand_in)
    }

    /// Git that sees the repository by its stand-in. It runs in the git directory that is held, by
    /// which the links lead there, whatever has taken the place of its path.
    pub(super) fn command(&self, git: &Git<'_>) -> Command {
        let mut command = git.command(&self.git_dir, &self.repo.common().path());
        for meaning in &self.repo.settings().meanings {
            command.args(["-c", meaning]);
        }
        command
    }

    /// Has the stand-in know the working tree: its index, and what its user says of its files.
    fn show_index(&self, repo: &Repo) -> io::Result<()> {
        let held = repo.git_dir().path();
        let real = repo.git_dir().real_now()?;
        for entry in fs::read_dir(&held)? {
            let name = entry?.file_name();
            let is_index = name == "index" || name.as_bytes().starts_with(b"sharedindex.");
            if is_index && open_plain(&held.join(&name))?.is_some() {
                symlink(real.join(&name), self.git_dir.join(&name))?;
            }
        }
        let attributes = repo.common().path().join("info/attributes");
        let attributes = repo_files::read_small(&attributes)?.unwrap_or_default();
        fs::create_dir(self.path.join("info"))?;
        fs::write(self.path.join("info/attributes"), attributes)
    }
}

/// What is the HEAD of a git directory: the name of a ref, or a commit.
pub fn head_of(git_dir: &HeldDir) -> io::Result<Vec<u8>> {
    let path = git_dir.path().join("HEAD");
    match fs::read_link(&path) {
        // That is how it once was.
        Ok(target) if target.starts_with("refs") => {
            Ok([b"ref: ", target.as_os_str().as_bytes(), b"\n"].concat())
        }
        _ => repo_files::read_small(&path)?.ok_or_else(|| io::Error::other("it has no HEAD")),
    }
}

impl Git<'_> {
    /// A stand-in for a repository that is held.
    pub(super) fn stand_in<'r>(&self, repo: &'r Repo) -> Result<StandIn<'r>, String> {
        let made = StandIn::new(&self.scratch, repo, Path::new("/proc/self/cwd"));
        made.map_err(|error| {
            let why = in_words(&self.scratch, &error);
            format!("the repository cannot be read: {why}")
        })
    }

    /// The commit that a name stands for.
    pub fn commit(&self, repo: &Repo, name: &str) -> Result<String, String> {
        let stand_in = self.stand_in(repo)?;
        let name = format!("{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--end-of-options", &name];
        self.text(stand_in.command(self), &words)
            .map_err(|_| "the repository has no commit to start from".to_owned())
    }

    /// Whether the user has taken over what changed from `origin` to `result`: the result comes
    /// before the user's commit, in which all of it is still as it was there. What was taken over
    /// and undone is not taken over. What cannot be found out is not either.
    pub fn is_taken_over(&self, repo: &Repo, origin: &str, result: &str, head: &str) -> bool {
        let Ok(stand_in) = self.stand_in(repo) else {
            return false;
        };
        let words = ["merge-base", "--is-ancestor", result, head];
        if self.text(stand_in.command(self), &words).is_err() {
            return false;
        }
        let paths = |from: &str, to: &str| {
            let mut command = stand_in.command(self);
            command.args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
            command.args(["--end-of-options", from, to]);
            self.run(command)
        };
        let (Ok(changed), Ok(since)) = (paths(origin, result), paths(result, head)) else {
            return false;
        };
        let changed: HashSet<&[u8]> = terminated(&changed).collect();
        !terminated(&since).any(|path| changed.contains(path))
    }

    /// Keeps a commit from being collected while a task stands on it.
    pub fn pin(&self, repo: &Repo, id: TaskId, base: &str) -> Result<(), String> {
        self.update_ref(repo, &[&base_ref(id), base])
    }

    /// Lets it go again.
    pub fn unpin(&self, repo: &Repo, id: TaskId) -> Result<(), String> {
        self.update_ref(repo, &["-d", &base_ref(id)])
    }

    /// Sets a ref of the user's repository, or removes it, as the words of update-ref say.
    pub(super) fn update_ref(&self, repo: &Repo, words: &[&str]) -> Result<(), String> {
        let stand_in = self.stand_in(repo)?;
        let mut command = stand_in.command(self);
        command.arg("update-ref");
        let set = self.text(command, words).map(drop);
        // Nobody but this process knows the stand-in by its path.
        let own = stand_in.path.to_string_lossy().into_owned();
        let real = repo.common().real().to_string_lossy();
        set.map_err(|what| what.replace(&own, &real))
    }

    /// Whether the user's working tree has changes that are in no commit. A file that a filter of
    /// the user's would convert is compared as it is.
    pub fn has_uncommitted(&self, repo: &Repo) -> Result<bool, String> {
        let said = |error: io::Error| error.to_string();
        // Git runs in the working tree, so that the links have to name the git directory. What is
        // read by them is a hint and nothing more.
        let common = repo.common().real_now().map_err(said)?;
        let stand_in = StandIn::new(&self.scratch, repo, &common).map_err(said)?;
        stand_in.show_index(repo).map_err(said)?;
        let tree = repo.tree().path();
        let mut command = self.command(&stand_in.git_dir, &tree);
        command.env("GIT_WORK_TREE", ".");
        for meaning in &repo.settings().meanings {
            command.args(["-c", meaning]);
        }
        let words = [
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--ignore-submodules=all",
        ];
        Ok(!self.text(command, &words)?.is_empty())
    }
}
