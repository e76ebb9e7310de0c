//! Git, as the executor calls it: it runs nothing that a repository names, and ends within its
//! limits.
//!
//! The agent's clone is a private one, so that nothing in it is ever run by the user's git. The
//! other way round holds as well: what the agent may have put into the `.git` of its clone is never
//! read again. Its files are taken in with a git directory of the executor's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::executor::run::command::{self, CommandBounds, CommandOutput};
use crate::executor::run::repo::Repo;
use crate::limits::{GIT_OUTPUT_BYTES_MAX, GIT_TIMEOUT_S};
use crate::task::id::TaskId;

/// Git, told to run nothing that a repository names.
#[derive(Clone)]
pub struct Git<'w> {
    /// An empty configuration in the place of the user's.
    config: PathBuf,
    /// When all of its commands have to have ended, beside the limit of each.
    until: Option<Instant>,
    is_stopped: &'w (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for Git<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Git")
            .field("config", &self.config)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path in the repository.
    pub path: String,
    /// Added, modified, deleted or type-changed: A, M, D or T.
    pub status: String,
    /// Lines that were added; none for a binary file.
    pub added: Option<u64>,
    /// Lines that were removed.
    pub removed: Option<u64>,
    /// The blob that holds the target, if it is a symbolic link now.
    pub link: Option<String>,
}

/// Why a repository cannot be worked in.
#[derive(Debug, PartialEq, Eq)]
pub enum RepoRefused {
    /// The operator does not allow it.
    NotAllowed(String),
    /// It is not a repository, or has nothing to start from.
    Unusable(String),
}

const QUIET: [&str; 20] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
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

impl Git<'static> {
    /// Git with this file as its only configuration, beside that of the repository it looks at.
    pub fn new(config: PathBuf) -> Self {
        Self {
            config,
            until: None,
            is_stopped: &|| false,
        }
    }
}

impl Git<'_> {
    /// Git whose commands are ended at a point in time, and when `is_stopped` says so.
    pub fn bounded<'w>(
        &self,
        until: Instant,
        is_stopped: &'w (dyn Fn() -> bool + Sync),
    ) -> Git<'w> {
        Git {
            config: self.config.clone(),
            until: Some(until),
            is_stopped,
        }
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new("git");
        command.args(QUIET).current_dir(dir).env_clear();
        command.env("PATH", crate::executor::policy::safe_path());
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
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Runs a command of git and takes all that it prints.
    fn run(&self, command: Command) -> Result<Vec<u8>, String> {
        let output = self.run_cut(command)?;
        match output.is_cut {
            false => Ok(output.stdout),
            true => Err(format!(
                "git printed more than {GIT_OUTPUT_BYTES_MAX} bytes: the repository is too large"
            )),
        }
    }

    /// Runs a command of git and takes the start of what it prints.
    fn run_cut(&self, mut command: Command) -> Result<CommandOutput, String> {
        let what = command.get_args().skip(QUIET.len()).find_map(|word| {
            let word = word.to_str()?;
            (!word.starts_with('-') && !word.contains(['/', '='])).then(|| word.to_owned())
        });
        let what = what.unwrap_or_default();
        let own = Instant::now() + Duration::from_secs(GIT_TIMEOUT_S);
        let bounds = CommandBounds {
            until: self.until.map_or(own, |until| until.min(own)),
            bytes_max: GIT_OUTPUT_BYTES_MAX,
            is_stopped: self.is_stopped,
        };
        match command::output(&mut command, &bounds) {
            Ok(output) if output.status.success() => Ok(output),
            Ok(output) => {
                let complaints = String::from_utf8_lossy(&output.stderr);
                Err(format!("git {what} failed: {}", reason(&complaints)))
            }
            Err(error) => Err(format!("git {what} failed: {error}")),
        }
    }

    fn text(&self, dir: &Path, words: &[&str]) -> Result<String, String> {
        let mut command = self.command(dir);
        command.args(words);
        let printed = String::from_utf8_lossy(&self.run(command)?).into_owned();
        Ok(printed.trim_end_matches('\n').to_owned())
    }

    /// Opens a repository, and finds out whether it may be worked in.
    pub fn open(&self, repo: &str, allowed: &[PathBuf]) -> Result<Repo, RepoRefused> {
        let names = || {
            let names = allowed.iter().map(|path| path.display().to_string());
            names.collect::<Vec<_>>().join(", ")
        };
        let not_allowed = || {
            let names = names();
            RepoRefused::NotAllowed(format!(
                "{repo:?} is not among the allowed repositories: {names}"
            ))
        };
        let opened = match Repo::open(Path::new(repo)) {
            Ok(opened) if opened.lies_in(allowed) => opened,
            // Whether something is there is told only of places that are allowed.
            Err(error) if allowed.iter().any(|root| Path::new(repo).starts_with(root)) => {
                let what = format!("{repo:?} cannot be found: {error}");
                return Err(RepoRefused::Unusable(what));
            }
            _ => return Err(not_allowed()),
        };
        let top = self
            .text(&opened.descriptor_path(), &["rev-parse", "--show-toplevel"])
            .map_err(RepoRefused::Unusable)?;
        if Path::new(&top) != opened.real() {
            return Err(RepoRefused::Unusable(format!(
                "{repo:?} is not the top of a repository, which is {top}"
            )));
        }
        Ok(opened)
    }

    /// The commit that a name stands for.
    pub fn commit(&self, repo: &Repo, name: &str) -> Result<String, String> {
        let name = format!("{name}^{{commit}}");
        self.text(
            &repo.descriptor_path(),
            &["rev-parse", "--verify", "--end-of-options", &name],
        )
        .map_err(|_| "the repository has no commit to start from".to_owned())
    }

    /// Keeps a commit from being collected while a task stands on it.
    pub fn pin(&self, repo: &Repo, id: TaskId, base: &str) -> Result<(), String> {
        self.text(
            &repo.descriptor_path(),
            &["update-ref", &base_ref(id), base],
        )
        .map(drop)
    }

    /// Lets it go again.
    pub fn unpin(&self, repo: &Repo, id: TaskId) -> Result<(), String> {
        self.text(
            &repo.descriptor_path(),
            &["update-ref", "-d", &base_ref(id)],
        )
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
        Ok(!self.text(&repo.descriptor_path(), &words)?.is_empty())
    }

    /// Makes a clone that shares the objects of a repository and nothing else, at a commit.
    pub fn clone_at(&self, from: &Path, to: &Path, base: &str) -> Result<(), String> {
        let mut command = self.command(from);
        command.args(["clone", "--quiet", "--shared", "--no-checkout", "--no-tags"]);
        // An agent may commit for itself, which comes to the same.
        command.args(["-c", "user.name=rocco", "-c", "user.email=rocco@localhost"]);
        command.args(["--template=", "--", "."]).arg(to);
        self.run(command)?;
        self.text(to, &["checkout", "--quiet", "--detach", base, "--"])?;
        // Git goes on without what a partial clone does not have, and its absence would be taken
        // for the agent's work.
        let missing = self.text(to, &["ls-files", "--deleted"])?;
        if let Some(path) = missing.lines().next() {
            return Err(format!(
                "the repository does not have all of its commit, {path} for one: a partial clone \
                 has to fetch it first"
            ));
        }
        // Whoever works in the clone has no way to push by mistake.
        self.text(to, &["remote", "remove", "origin"]).map(drop)
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
                .env("GIT_INDEX_FILE", git_dir.join(INDEX))
                .args(words);
            let printed = String::from_utf8_lossy(&self.run(command)?).into_owned();
            Ok::<_, String>(printed.trim_end().to_owned())
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

    /// Brings the objects of a result into the user's repository, and no ref to them. They are
    /// looked at, but for submodules that are as they were.
    pub fn fetch_result(&self, git_dir: &Path, repo: &Repo, base: &str) -> Result<(), String> {
        let words = [
            "diff-tree",
            "--name-only",
            base,
            RESULT_REF,
            "--",
            ".gitmodules",
        ];
        let same_modules = self.text(git_dir, &words)?.is_empty();
        let mut command = self.command(&repo.descriptor_path());
        for check in MODULE_CHECKS.iter().filter(|_| same_modules) {
            command.arg("-c").arg(format!("fetch.fsck.{check}=ignore"));
        }
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
            "--",
        ]);
        command.arg(git_dir).arg(RESULT_REF);
        self.run(command).map(drop)
    }

    /// Makes a git directory that of a directory of files, which then differ from a commit by what
    /// was done to them.
    pub fn keep_as_clone(&self, git_dir: &Path, files: &Path, base: &str) -> Result<(), String> {
        self.text(git_dir, &["update-ref", "--no-deref", "HEAD", base])?;
        self.text(git_dir, &["config", "core.bare", "false"])?;
        let index = git_dir.join(INDEX);
        let moved = match index.exists() {
            true => fs::rename(&index, git_dir.join("index")),
            false => Ok(()),
        };
        let moved = moved.and_then(|()| fs::rename(git_dir, files.join(".git")));
        moved.map_err(|error| format!("{}: {error}", files.display()))
    }

    /// Gives a result its ref in the user's repository, from when on it is delivered.
    pub fn set_result(&self, repo: &Repo, id: TaskId, head: &str) -> Result<(), String> {
        self.text(
            &repo.descriptor_path(),
            &["update-ref", &result_ref(id), head],
        )
        .map(drop)
    }

    /// Takes the ref of a result away again.
    pub fn remove_result(&self, repo: &Repo, id: TaskId) -> Result<(), String> {
        self.text(
            &repo.descriptor_path(),
            &["update-ref", "-d", &result_ref(id)],
        )
        .map(drop)
    }

    /// What differs between two commits, file by file, and in a line.
    pub fn changes(&self, repo: &Repo, base: &str, head: &str) -> Result<Vec<FileChange>, String> {
        let diff = |what: &str| {
            let mut command = self.command(&repo.descriptor_path());
            command
                .args(DIFF)
                .args([what, "-z", "--no-abbrev", "--end-of-options", base, head]);
            Ok::<_, String>(String::from_utf8_lossy(&self.run(command)?).into_owned())
        };
        let numbers = diff("--numstat")?;
        let numbers: Vec<&str> = numbers.split_terminator('\0').collect();
        let kinds = diff("--raw")?;
        let kinds: Vec<&str> = kinds.split_terminator('\0').collect();
        let changes = kinds.chunks_exact(2).zip(numbers).map(|(kind, numbers)| {
            // The modes and the blobs, each before and after, and the status.
            let words: Vec<&str> = kind[0].split(' ').collect();
            let word = |index: usize| words.get(index).copied().unwrap_or_default();
            let mut numbers = numbers.split('\t').map(|number| number.parse().ok());
            FileChange {
                path: kind[1].to_owned(),
                status: word(4).to_owned(),
                added: numbers.next().flatten(),
                removed: numbers.next().flatten(),
                link: (word(1) == LINK_MODE).then(|| word(3).to_owned()),
            }
        });
        Ok(changes.collect())
    }

    /// How much differs between two commits.
    pub fn diffstat(&self, repo: &Repo, base: &str, head: &str) -> Result<String, String> {
        let mut command = self.command(&repo.descriptor_path());
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
        let mut command = self.command(&repo.descriptor_path());
        command
            .args(DIFF)
            .args(["-p", "--binary", "--full-index", "--end-of-options"]);
        command.args([base, head]).stdout(file);
        self.run(command)?;
        fs::rename(&new, to).map_err(|error| error.to_string())
    }

    /// Symbolic links among changed files that lead out of the repository. All are asked for at
    /// once, by a list in a file.
    pub fn links_out(
        &self,
        repo: &Repo,
        changes: &[FileChange],
        list: &Path,
    ) -> Result<Vec<String>, String> {
        let links = changes
            .iter()
            .filter_map(|change| Some((change.path.as_str(), change.link.as_deref()?)));
        let (paths, mut blobs): (Vec<&str>, Vec<&str>) = links.unzip();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        blobs.push("");
        let listed = fs::write(list, blobs.join("\n")).and_then(|()| fs::File::open(list));
        let mut command = self.command(&repo.descriptor_path());
        command.args(["cat-file", "--batch"]);
        command.stdin(listed.map_err(|error| error.to_string())?);
        let blobs = self.run_cut(command)?.stdout;
        let mut rest = blobs.as_slice();
        // What is beyond the bound of the output is not known to stay inside.
        let leads_out = |path: &&str| {
            blob(&mut rest).is_none_or(|target| {
                crate::executor::run::scope::leaves(path, &String::from_utf8_lossy(target))
            })
        };
        let out = paths.into_iter().filter(leads_out);
        Ok(out.map(str::to_owned).collect())
    }
}

/// The first blob of what `git cat-file --batch` prints: a line that ends in its length, itself and
/// LF. The rest is left.
fn blob<'b>(printed: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (head, rest) = printed.split_at_checked(memchr::memchr(b'\n', printed)? + 1)?;
    let bytes = head.rsplit(|byte| *byte == b' ').next()?.trim_ascii();
    let bytes: usize = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    let (blob, rest) = rest.split_at_checked(bytes)?;
    *printed = rest.get(1..)?;
    Some(blob)
}

/// What git says of a failure: its first complaint, which the others follow from.
fn reason(complaints: &str) -> &str {
    let complains = |line: &&str| {
        ["error: ", "fatal: "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let first = complaints.lines().find(complains);
    first
        .or_else(|| complaints.lines().last())
        .unwrap_or_default()
        .trim()
}

const LINK_MODE: &str = "120000";

const DIFF: [&str; 7] = [
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=all",
];

/// What git looks at in a `.gitmodules`.
const MODULE_CHECKS: [&str; 8] = [
    "gitmodulesBlob",
    "gitmodulesLarge",
    "gitmodulesMissing",
    "gitmodulesName",
    "gitmodulesParse",
    "gitmodulesPath",
    "gitmodulesUpdate",
    "gitmodulesUrl",
];

/// The index by which the files of an agent are taken in.
const INDEX: &str = "rocco-index";

const RESULT_REF: &str = "refs/rocco/result";

fn base_ref(id: TaskId) -> String {
    format!("refs/rocco/base/{id}")
}

/// Where the result of a task can be had in the user's repository.
pub fn result_ref(id: TaskId) -> String {
    format!("refs/rocco/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_taken_one_by_one() {
        let mut said = &b"aa blob 3\nx\ny\nbb blob 0\n\ncc blob 9\ncut"[..];
        assert_eq!(blob(&mut said), Some(&b"x\ny"[..]));
        assert_eq!(blob(&mut said), Some(&b""[..]));
        assert_eq!(blob(&mut said), None);
        for odd in ["", "dd missing\n", "blob\n", "blob 1\na"] {
            assert_eq!(blob(&mut odd.as_bytes()), None, "{odd:?}");
        }
    }

    #[test]
    fn the_first_complaint_is_told() {
        for (said, told) in [
            (
                "error: invalid path '.GIT/x'\nfatal: adding files failed\n",
                "error: invalid path '.GIT/x'",
            ),
            ("warning: a\nfatal: b\n", "fatal: b"),
            ("hm\nso\n", "so"),
            ("", ""),
        ] {
            assert_eq!(reason(said), told);
        }
    }
}
