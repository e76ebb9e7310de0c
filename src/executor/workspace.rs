//! The workspace of a task, by git: a clone for the agent, and a way back for its work.
//!
//! The agent's clone is a private one, so that nothing in it is ever run by the user's git. The
//! other way round holds as well: what the agent may have put into the `.git` of its clone is never
//! read again. Its files are taken in with a git directory of the executor's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process;
use super::repo::Repo;
use crate::limits::{GIT_OUTPUT_BYTES_MAX, GIT_TIMEOUT_S};
use crate::task::id::TaskId;

/// Git, told to run nothing that a repository names.
#[derive(Debug, Clone)]
pub struct Git {
    /// An empty configuration in the place of the user's.
    config: PathBuf,
}

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its path in the repository.
    pub path: String,
    /// Added, modified, deleted or type-changed: A, M, D or T.
    pub status: String,
    /// Lines that were added; none for a binary file.
    pub added: Option<u64>,
    /// Lines that were removed.
    pub removed: Option<u64>,
}

/// The repository cannot be worked in.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The operator does not allow it.
    NotAllowed(String),
    /// It is no repository, or has nothing to start from.
    Unusable(String),
}

const QUIET: [&str; 22] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.pager=cat",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
    "-c",
    "advice.detachedHead=false",
];

impl Git {
    /// Git with this file as its only configuration, beside that of the repository it looks at.
    pub fn new(config: PathBuf) -> Self {
        Self { config }
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new("git");
        command.args(QUIET).current_dir(dir).env_clear();
        command.env("PATH", super::policy::safe_path());
        command
            .env("LANG", "C.UTF-8")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "/nonexistent");
        command
            .env("GIT_CONFIG_GLOBAL", &self.config)
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "rocco");
            command.env(format!("GIT_{who}_EMAIL"), "rocco@localhost");
        }
        command.stdout(Stdio::piped());
        command
    }

    /// Runs a command of git's and takes what it prints.
    fn run(&self, mut command: Command) -> Result<Vec<u8>, String> {
        let limit = Duration::from_secs(GIT_TIMEOUT_S);
        let what = command.get_args().skip(QUIET.len()).find_map(|word| {
            let word = word.to_str()?;
            (!word.starts_with('-') && !word.contains(['/', '='])).then(|| word.to_owned())
        });
        let what = what.unwrap_or_default();
        match process::output(&mut command, limit, GIT_OUTPUT_BYTES_MAX) {
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().last().unwrap_or_default().trim().to_owned();
                Err(format!("git {what} failed: {said}"))
            }
            Err(error) => Err(format!("git {what} failed: {error}")),
        }
    }

    fn say(&self, dir: &Path, words: &[&str]) -> Result<String, String> {
        let mut command = self.command(dir);
        command.args(words);
        let said = String::from_utf8_lossy(&self.run(command)?).into_owned();
        Ok(said.trim_end_matches('\n').to_owned())
    }

    /// Opens a repository, and finds out whether it may be worked in.
    pub fn open(&self, repo: &str, allowed: &[PathBuf]) -> Result<Repo, Refused> {
        let names = || {
            let names = allowed.iter().map(|path| path.display().to_string());
            names.collect::<Vec<_>>().join(", ")
        };
        let not_allowed = || {
            let names = names();
            Refused::NotAllowed(format!(
                "{repo:?} is not among the allowed repositories: {names}"
            ))
        };
        let found = match Repo::open(Path::new(repo)) {
            Ok(found) if found.lies_in(allowed) => found,
            // Whether something is there is told only of places that are allowed.
            Err(error) if allowed.iter().any(|root| Path::new(repo).starts_with(root)) => {
                let what = format!("{repo:?} cannot be found: {error}");
                return Err(Refused::Unusable(what));
            }
            _ => return Err(not_allowed()),
        };
        let top = self
            .say(&found.place(), &["rev-parse", "--show-toplevel"])
            .map_err(Refused::Unusable)?;
        if Path::new(&top) != found.real() {
            return Err(Refused::Unusable(format!(
                "{repo:?} is not the top of a repository, which is {top}"
            )));
        }
        Ok(found)
    }

    /// The commit that a name stands for.
    pub fn commit(&self, repo: &Repo, name: &str) -> Result<String, String> {
        let name = format!("{name}^{{commit}}");
        self.say(
            &repo.place(),
            &["rev-parse", "--verify", "--end-of-options", &name],
        )
        .map_err(|_| "the repository has no commit to start from".to_owned())
    }

    /// Keeps a commit from being collected while a task stands on it.
    pub fn pin(&self, repo: &Repo, id: TaskId, base: &str) -> Result<(), String> {
        self.say(&repo.place(), &["update-ref", &base_ref(id), base])
            .map(drop)
    }

    /// Lets it go again.
    pub fn unpin(&self, repo: &Repo, id: TaskId) -> Result<(), String> {
        self.say(&repo.place(), &["update-ref", "-d", &base_ref(id)])
            .map(drop)
    }

    /// Whether the user's working tree has changes that are in no commit.
    pub fn has_uncommitted(&self, repo: &Repo) -> Result<bool, String> {
        let words = [
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--ignore-submodules=all",
        ];
        Ok(!self.say(&repo.place(), &words)?.is_empty())
    }

    /// Makes a clone that shares the objects of a repository and nothing else, at a commit.
    pub fn clone_at(&self, from: &Path, to: &Path, base: &str) -> Result<(), String> {
        let mut command = self.command(from);
        command.args(["clone", "--quiet", "--shared", "--no-checkout", "--no-tags"]);
        command.args(["--template=", "--", "."]).arg(to);
        self.run(command)?;
        self.say(to, &["checkout", "--quiet", "--detach", base, "--"])?;
        // Whoever works in the clone has no way to push by mistake.
        self.say(to, &["remote", "remove", "origin"]).map(drop)
    }

    /// Makes a git directory without files that shares the objects of a repository.
    pub fn bare_clone(&self, from: &Path, to: &Path) -> Result<(), String> {
        let mut command = self.command(from);
        command.args(["clone", "--quiet", "--shared", "--bare", "--no-tags"]);
        command.args(["--template=", "--", "."]).arg(to);
        self.run(command).map(drop)
    }

    /// Makes a commit of the files in a directory on top of another. None if they are the same.
    pub fn commit_files(
        &self,
        git_dir: &Path,
        files: &Path,
        base: &str,
        message: &str,
    ) -> Result<Option<String>, String> {
        let run = |words: &[&str]| {
            let mut command = self.command(files);
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", files);
            command
                .env("GIT_INDEX_FILE", git_dir.join("rocco-index"))
                .args(words);
            let said = String::from_utf8_lossy(&self.run(command)?).into_owned();
            Ok::<_, String>(said.trim_end().to_owned())
        };
        run(&["read-tree", base])?;
        run(&["add", "--all", "--", "."])?;
        let tree = run(&["write-tree"])?;
        if tree == run(&["rev-parse", &format!("{base}^{{tree}}")])? {
            return Ok(None);
        }
        let head = run(&["commit-tree", "-p", base, "-m", message, &tree])?;
        run(&["update-ref", RESULT_REF, &head])?;
        Ok(Some(head))
    }

    /// Brings the result into the user's repository, under a ref of the task's.
    pub fn deliver(&self, git_dir: &Path, repo: &Repo, id: TaskId) -> Result<(), String> {
        let mut command = self.command(&repo.place());
        command.args([
            "-c",
            "fetch.fsckObjects=true",
            "-c",
            "fetch.recurseSubmodules=false",
        ]);
        command.args([
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--force",
            "--",
        ]);
        command
            .arg(git_dir)
            .arg(format!("{RESULT_REF}:{}", result_ref(id)));
        self.run(command).map(drop)
    }

    /// What differs between two commits, file by file, and in a line.
    pub fn changes(&self, repo: &Repo, base: &str, head: &str) -> Result<Vec<Change>, String> {
        let diff = |what: &str| {
            let mut command = self.command(&repo.place());
            command
                .args(DIFF)
                .args([what, "-z", "--end-of-options", base, head]);
            Ok::<_, String>(String::from_utf8_lossy(&self.run(command)?).into_owned())
        };
        let numbers = diff("--numstat")?;
        let numbers: Vec<&str> = numbers.split_terminator('\0').collect();
        let statuses = diff("--name-status")?;
        let statuses: Vec<&str> = statuses.split_terminator('\0').collect();
        let changes = statuses
            .chunks_exact(2)
            .zip(numbers)
            .map(|(status, numbers)| {
                let mut numbers = numbers.split('\t').map(|number| number.parse().ok());
                Change {
                    path: status[1].to_owned(),
                    status: status[0].to_owned(),
                    added: numbers.next().flatten(),
                    removed: numbers.next().flatten(),
                }
            });
        Ok(changes.collect())
    }

    /// How much differs between two commits.
    pub fn diffstat(&self, repo: &Repo, base: &str, head: &str) -> Result<String, String> {
        let mut command = self.command(&repo.place());
        command
            .args(DIFF)
            .args(["--shortstat", "--end-of-options", base, head]);
        Ok(String::from_utf8_lossy(&self.run(command)?)
            .trim()
            .to_owned())
    }

    /// Writes the difference between two commits into a file.
    pub fn diff(&self, repo: &Repo, base: &str, head: &str, to: &Path) -> Result<(), String> {
        let new = to.with_extension("new");
        let file = fs::File::create(&new).map_err(|error| error.to_string())?;
        let mut command = self.command(&repo.place());
        command
            .args(DIFF)
            .args(["-p", "--binary", "--full-index", "--end-of-options"]);
        command.args([base, head]).stdout(file);
        self.run(command)?;
        fs::rename(&new, to).map_err(|error| error.to_string())
    }

    /// Symbolic links among changed files that lead out of the repository.
    pub fn links_out(&self, repo: &Repo, head: &str, changes: &[Change]) -> Vec<String> {
        let leads_out = |path: &&Change| {
            let listed = self.say(&repo.place(), &["ls-tree", head, "--", &path.path]);
            if !listed.is_ok_and(|line| line.starts_with("120000 ")) {
                return false;
            }
            let target = self.say(
                &repo.place(),
                &["cat-file", "blob", &format!("{head}:{}", path.path)],
            );
            target.is_ok_and(|target| super::scope::leaves(&path.path, &target))
        };
        let added = changes.iter().filter(|change| change.status != "D");
        let links = added
            .filter(|change| change.added == Some(1))
            .filter(leads_out);
        links.map(|change| change.path.clone()).collect()
    }
}

const DIFF: [&str; 7] = [
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=all",
];

const RESULT_REF: &str = "refs/rocco/result";

fn base_ref(id: TaskId) -> String {
    format!("refs/rocco/base/{id}")
}

/// Where the result of a task can be had in the user's repository.
pub fn result_ref(id: TaskId) -> String {
    format!("refs/rocco/{id}")
}

/// Takes repositories that lie in a working tree out of it, so that git takes their files for what
/// they are and looks at no configuration of theirs. Tells where they were.
pub fn unnest(work: &Path, to: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![work.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_name().eq_ignore_ascii_case(".git") {
                if folder != work {
                    fs::create_dir_all(to)?;
                    fs::rename(&path, to.join(found.len().to_string()))?;
                    let place = folder.strip_prefix(work).unwrap_or(&folder);
                    found.push(place.display().to_string());
                }
            } else if entry.file_type()?.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

/// Whether a path is a directory itself, and no link to one.
pub fn is_plain_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}
