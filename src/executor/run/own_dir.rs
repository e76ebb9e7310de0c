//! Git directories of the executor's own: that of an agent's clone, that of a gate's checkout, and
//! that by which the files of an agent are taken in. They are written file by file, and borrow the
//! objects of a repository and nothing else of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::executor::run::git::Git;
use crate::executor::run::repo::Repo;
use crate::executor::run::repo_files;
use crate::executor::run::repo_settings::Settings;
use crate::executor::run::stand_in;
use crate::executor::store::removal::remove_tree;

/// The index by which the files of an agent are taken in.
const INDEX: &str = "rocco-index";

/// Where the result is in the git directory that made it.
const RESULT_REF: &str = "refs/rocco/result";

/// Who commits in a clone: an agent may do so for itself, which comes to the same.
const USER: &str = "[user]\n\tname = rocco\n\temail = rocco@localhost\n";

/// What git says of an object that is not there.
const UNREADABLE: [&str; 2] = ["unable to read", "unable to parse"];

/// What a git directory borrows.
#[derive(Debug)]
pub struct Lender {
    objects: PathBuf,
    /// Where the history ends, if it is not there as a whole.
    shallow: Option<Vec<u8>>,
    object_format: String,
    /// The branch that the user works on.
    branch: Option<String>,
}

impl Lender {
    /// The user's repository, where it is now.
    pub fn of_repo(repo: &Repo) -> Result<Self, String> {
        let said = |error: io::Error| format!("the repository cannot be read: {error}");
        let common = repo.common().real_now().map_err(said)?;
        let shallow = repo_files::read_small(&repo.common().path().join("shallow"));
        let head = stand_in::head_of(repo.git_dir()).map_err(said)?;
        Ok(Self {
            objects: common.join("objects"),
            shallow: shallow.map_err(said)?,
            object_format: repo.settings().object_format.clone(),
            branch: branch_of(&head),
        })
    }

    /// A git directory of the executor's own, which borrows of the same repository.
    pub fn of_own_dir(git_dir: &Path, repo: &Repo) -> Result<Self, String> {
        Ok(Self {
            objects: git_dir.join("objects"),
            branch: None,
            ..Self::of_repo(repo)?
        })
    }

    /// Makes a git directory that borrows, with this as its HEAD. What somebody has put in its
    /// place goes.
    fn lend_to(&self, git_dir: &Path, head: &str, config: &str) -> io::Result<()> {
        remove_tree(git_dir)?;
        for folder in ["objects/info", "objects/pack", "refs/heads"] {
            fs::create_dir_all(git_dir.join(folder))?;
        }
        let objects = self.objects.as_os_str().as_encoded_bytes();
        if objects.contains(&b'\n') {
            return Err(io::Error::other(
                "the path of the repository has a line break",
            ));
        }
        fs::write(
            git_dir.join("objects/info/alternates"),
            [objects, b"\n"].concat(),
        )?;
        if let Some(shallow) = &self.shallow {
            fs::write(git_dir.join("shallow"), shallow)?;
        }
        fs::write(git_dir.join("config"), config)?;
        fs::write(git_dir.join("HEAD"), format!("{head}\n"))
    }

    fn config(&self, is_bare: bool) -> String {
        let settings = Settings {
            object_format: self.object_format.clone(),
            ..Settings::default()
        };
        settings.own_config(is_bare)
    }
}

/// The branch that a HEAD names, if a line of a list of refs can hold it.
fn branch_of(head: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(head)
        .ok()?
        .strip_prefix("ref: ")?
        .trim_end();
    let is_plain = name.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let is_branch = name.starts_with("refs/heads/") && !name.ends_with(".invalid");
    (is_plain && is_branch).then(|| name.to_owned())
}

impl Git<'_> {
    /// Makes a clone that shares the objects of a repository and nothing else, at a commit. Whoever
    /// works in it has no way to push by mistake.
    pub fn clone_at(&self, lender: &Lender, to: &Path, base: &str) -> Result<(), String> {
        let git_dir = to.join(".git");
        let made = lender.lend_to(&git_dir, base, &(lender.config(false) + USER));
        let made = made.and_then(|()| match &lender.branch {
            Some(branch) => fs::write(git_dir.join("packed-refs"), format!("{base} {branch}\n")),
            None => Ok(()),
        });
        made.map_err(|error| format!("{}: {error}", to.display()))?;
        let command = || {
            let mut command = self.command(&git_dir, to);
            command.env("GIT_WORK_TREE", to);
            command
        };
        let lacks = |path: &str| {
            format!(
                "the repository does not have all of its commit, {path} for one: a partial clone \
                 has to fetch it first"
            )
        };
        self.text(command(), &["checkout", "--quiet", "--detach", base, "--"])
            .map_err(
                |what| match UNREADABLE.iter().any(|word| what.contains(word)) {
                    true => lacks(&what),
                    false => what,
                },
            )?;
        // Git goes on without what a partial clone does not have, and its absence would be taken
        // for the agent's work.
        let missing = self.text(command(), &["ls-files", "--deleted"])?;
        missing
            .lines()
            .next()
            .map_or(Ok(()), |path| Err(lacks(path)))
    }

    /// Makes a git directory without files that shares the objects of a repository.
    pub fn make_own_dir(&self, lender: &Lender, to: &Path) -> Result<(), String> {
        let made = lender.lend_to(to, "ref: refs/heads/none", &lender.config(true));
        made.map_err(|error| format!("{}: {error}", to.display()))
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
            let mut command = self.command(git_dir, files);
            command.env("GIT_WORK_TREE", files);
            command.env("GIT_INDEX_FILE", git_dir.join(INDEX));
            self.text(command, words)
        };
        run(&["read-tree", base])?;
        run(&["add", "--all", "--", "."])?;
        let tree = run(&["write-tree"])?;
        if tree == run(&["rev-parse", &format!("{base}^{{tree}}")])? {
            return Ok(None);
        }
        let head = run(&["commit-tree", "-p", base, "-m", message, &tree])?;
        let result = git_dir.join(RESULT_REF);
        let kept = fs::create_dir_all(git_dir.join("refs/rocco"))
            .and_then(|()| fs::write(&result, format!("{head}\n")));
        kept.map_err(|error| format!("{}: {error}", result.display()))?;
        Ok(Some(head))
    }

    /// Gives a directory of files a new git directory, with the objects and the index of one that
    /// took the files in. They then differ from a commit by what was done to them.
    pub fn keep_as_clone(
        &self,
        lender: &Lender,
        git_dir: &Path,
        files: &Path,
        base: &str,
    ) -> Result<(), String> {
        let kept = files.join(".git");
        let made = lender
            .lend_to(&kept, base, &lender.config(false))
            .and_then(|()| remove_tree(&kept.join("objects")))
            .and_then(|()| fs::create_dir(kept.join("refs/rocco")));
        let moves = [
            ("objects", "objects"),
            (INDEX, "index"),
            (RESULT_REF, RESULT_REF),
        ];
        let moved = made.and_then(|()| {
            let found = moves.iter().filter(|(from, _)| git_dir.join(from).exists());
            found
                .into_iter()
                .try_for_each(|(from, to)| fs::rename(git_dir.join(from), kept.join(to)))
        });
        moved.map_err(|error| format!("{}: {error}", files.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_one_line_of_a_list() {
        for (head, branch) in [
            ("ref: refs/heads/main\n", Some("refs/heads/main")),
            ("ref: refs/heads/.invalid\n", None),
            ("ref: refs/heads/a\nb refs/heads/c\n", None),
            ("ref: refs/remotes/origin/main\n", None),
            ("57a79f287873089b24686b525ee82dba70e45c80\n", None),
        ] {
            assert_eq!(branch_of(head.as_bytes()).as_deref(), branch, "{head}");
        }
    }
}
