//! Git, as the executor calls it: it runs nothing that a repository names, and ends within its
//! limits.
//!
//! No git of the executor's reads a configuration that anybody else has written. Each has a git
//! directory of the executor's own making: [`stand_in`](super::stand_in) is that for the user's
//! repository, and [`own_dir`](super::own_dir) that for the files of a task. What the agent may
//! have put into the `.git` of its clone is never read again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::executor::run::command::{self, CommandBounds, CommandOutput};
use crate::executor::run::repo::{AllowedPlaces, Repo, RepoPlace, RepoRefused};
use crate::executor::run::repo_settings::Settings;
use crate::executor::run::user_settings::UserSettings;
use crate::executor::store::full_disk;
use crate::executor::store::plain_file::open_plain;
use crate::limits::{COMMAND_MEMORY_MIB, GIT_OUTPUT_BYTES_MAX, GIT_TIMEOUT_S};
use crate::task::id::TaskId;

/// Git, told to run nothing that a repository names.
#[derive(Clone)]
pub struct Git<'w> {
    /// Where git directories are made that are needed for a moment.
    pub(super) scratch: PathBuf,
    /// What the user's own configuration says of files.
    pub(super) user: UserSettings,
    /// When all of its commands have to have ended, beside the limit of each.
    until: Option<Instant>,
    is_stopped: &'w (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for Git<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Git")
            .field("scratch", &self.scratch)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// What git directories of the executor's own leave open. Results are compressed as git compresses
/// what is added, which `git gc` does better later.
const QUIET: [&str; 18] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "core.compression=1",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "advice.detachedHead=false",
];

impl Git<'static> {
    /// Git that makes what it needs for a moment in this directory.
    pub fn new(scratch: PathBuf) -> Self {
        Self {
            scratch,
            user: UserSettings::default(),
            until: None,
            is_stopped: &|| false,
        }
    }

    /// This git, which takes of a working tree what a user's own would take.
    pub fn of_user(self, user: UserSettings) -> Self {
        Self { user, ..self }
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
            scratch: self.scratch.clone(),
            user: self.user.clone(),
            until: Some(until),
            is_stopped,
        }
    }

    /// A command that runs in a directory, with a git directory of the executor's own.
    pub(super) fn command(&self, git_dir: &Path, dir: &Path) -> Command {
        let mut command = Command::new("git");
        command.args(QUIET).current_dir(dir).env_clear();
        command.env("PATH", crate::executor::policy::safe_path());
        for (name, value) in ENVIRONMENT {
            command.env(name, value);
        }
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "rocco");
            command.env(format!("GIT_{who}_EMAIL"), "rocco@localhost");
        }
        command.env("GIT_DIR", git_dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// A command with a list on its stdin. The list is a file of its git directory meanwhile, since
    /// git answers before it has read all.
    pub(super) fn on_list(
        &self,
        mut command: Command,
        git_dir: &Path,
        list: &[u8],
    ) -> Result<Command, String> {
        let path = git_dir.join("listed");
        let listed = fs::write(&path, list).and_then(|()| File::open(&path));
        command.stdin(listed.map_err(|error| format!("{}: {error}", path.display()))?);
        Ok(command)
    }

    /// Runs a command of git and takes all that it prints.
    pub(super) fn run(&self, command: Command) -> Result<Vec<u8>, String> {
        let what = name_of(&command);
        let output = self.run_cut(command)?;
        match output.is_cut {
            false => Ok(output.stdout),
            true => Err(format!(
                "git {what} printed more than {GIT_OUTPUT_BYTES_MAX} bytes, which is all that is \
                 read: there are too many paths, or too long ones"
            )),
        }
    }

    /// Runs a command of git and takes the start of what it prints.
    pub(super) fn run_cut(&self, mut command: Command) -> Result<CommandOutput, String> {
        let what = name_of(&command);
        let own = Instant::now() + Duration::from_secs(GIT_TIMEOUT_S);
        let bounds = CommandBounds {
            until: self.until.map_or(own, |until| until.min(own)),
            bytes_max: GIT_OUTPUT_BYTES_MAX,
            memory_bytes_max: COMMAND_MEMORY_MIB << 20,
            is_stopped: self.is_stopped,
        };
        match command::output(&mut command, &bounds) {
            Ok(output) if output.status.success() => Ok(output),
            Ok(output) => {
                let complaints = String::from_utf8_lossy(&output.stderr);
                let said = reason(&complaints);
                Err(match full_disk::of_git(&command, &complaints) {
                    Some(why) => format!("git {what} failed: {why} ({said})"),
                    None => format!("git {what} failed: {said}"),
                })
            }
            Err(error) => Err(format!("git {what} failed: {error}")),
        }
    }

    /// Runs a command of git and takes the text that it prints.
    pub(super) fn text(&self, mut command: Command, words: &[&str]) -> Result<String, String> {
        command.args(words);
        let printed = String::from_utf8_lossy(&self.run(command)?).into_owned();
        Ok(printed.trim_end_matches('\n').to_owned())
    }

    /// Opens a repository, and finds out whether it may be worked in.
    pub fn open(&self, named: &Path, allowed: AllowedPlaces<'_>) -> Result<Repo, RepoRefused> {
        let place = RepoPlace::find(named, allowed)?;
        let mut settings = Settings::default();
        let [shared, own] = place.configurations();
        let unusable = |what: String| RepoRefused::Unusable(format!("{named:?} {what}"));
        self.take_configuration(&shared, &mut settings)
            .map_err(unusable)?;
        if settings.has_worktree_config {
            self.take_configuration(&own, &mut settings)
                .map_err(unusable)?;
        }
        place.with_settings(named, settings)
    }

    /// Opens a repository that has to be where it was.
    pub fn open_again(&self, real: &Path, allowed: AllowedPlaces<'_>) -> Result<Repo, RepoRefused> {
        match self.open(real, allowed)? {
            repo if repo.real() == real => Ok(repo),
            _ => Err(RepoRefused::Unusable(
                "the repository is no longer where it was".to_owned(),
            )),
        }
    }

    /// Takes in a configuration as data. Nothing that it includes is looked at.
    fn take_configuration(&self, path: &Path, settings: &mut Settings) -> Result<(), String> {
        let file = open_plain(path);
        let file =
            file.map_err(|error| format!("has a configuration that is not read: {error}"))?;
        let Some(file) = file else { return Ok(()) };
        let mut command = self.command(Path::new("/dev/null"), Path::new("/"));
        command.args(["config", "--file", "-", "--no-includes", "--list", "-z"]);
        command.stdin(file);
        let listed = self.run(command);
        settings.take_in(&listed.map_err(|what| format!("has a configuration of its own: {what}"))?)
    }
}

/// Which command of git it is, for people.
fn name_of(command: &Command) -> String {
    let words = command.get_args().skip(QUIET.len());
    let mut words = words.filter_map(std::ffi::OsStr::to_str);
    let name = words.find(|word| !word.starts_with('-') && !word.contains(['/', '=']));
    name.unwrap_or_default().to_owned()
}

/// What git gets of an environment: neither a configuration of the user's nor one of the system,
/// and no way to ask or to fetch.
const ENVIRONMENT: [(&str, &str); 12] = [
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("HOME", "/nonexistent"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

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

/// Where a commit is kept while a task stands on it.
pub fn base_ref(id: TaskId) -> String {
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
