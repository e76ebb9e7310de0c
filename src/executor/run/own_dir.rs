//! Git directories of the executor's own: that of an agent's clone, that of a gate's checkout, and
//! that by which the files of an agent are taken in. They are written file by file, and borrow the
//! objects of a repository and nothing else of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::executor::run::git::Git;
use crate::executor::run::index_file::{IndexEntry, entries_of};
use crate::executor::run::repo::Repo;
use crate::executor::run::repo_files;
use crate::executor::run::repo_settings::Settings;
use crate::executor::run::result::name_of;
use crate::executor::store::plain_file::read_plain;
use crate::executor::store::removal::remove_tree;
use crate::executor::walls::standing::Walls;
use crate::limits::{INDEX_BYTES_MAX, WORK_FILES_MAX, WORK_PATHS_BYTES_MAX};
use crate::wire::writer::start_of;

/// The index by which the files of an agent are taken in.
pub(super) const INDEX: &str = "rocco-index";

/// Where the result is in the git directory that made it.
pub(super) const RESULT_REF: &str = "refs/rocco/result";

/// What an agent's git is told in a clone. Who commits: an agent may say that for itself, which
/// comes to the same. And that nothing is tidied up, for which each commit starts a process that
/// may outlive the agent.
const OF_CLONE: &str = "[user]\n\tname = rocco\n\temail = rocco@localhost\n\
                        [maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n";

/// How many digits of a commit the name of a new branch has.
const BRANCH_DIGITS: usize = 12;

/// What git says of an object that is not there.
const UNREADABLE: [&str; 2] = ["unable to read", "unable to parse"];

/// What a git directory borrows.
#[derive(Debug)]
pub struct Lender {
    objects: PathBuf,
    /// Where the history ends, if it is not there as a whole.
    shallow: Option<Vec<u8>>,
    object_format: String,
    /// What files mean, each as a name and a value.
    conversions: Vec<String>,
    /// Which files the user's git does not take, beside those that `.gitignore` names.
    excludes: Vec<u8>,
    /// What attributes the user's git gives to files, beside those of `.gitattributes`.
    attributes: Vec<u8>,
    refs: UserRefs,
    /// Whoever works with it sees its files as those of another user.
    hides_owner: bool,
}

/// The branches and tags of the user's repository, those of others included.
#[derive(Debug, Default, Clone)]
pub struct UserRefs {
    /// As git lists them in `packed-refs`.
    pub packed: Vec<u8>,
    /// The line of that list which is the branch that the user has checked out.
    checked_out: Option<Vec<u8>>,
}

impl UserRefs {
    /// Reads a list of which each line begins with a star for what is checked out, or a space.
    fn of(list: &[u8]) -> Self {
        let mut refs = Self {
            packed: b"# pack-refs with: sorted \n".to_vec(),
            checked_out: None,
        };
        for line in list.split_inclusive(|byte| *byte == b'\n') {
            let (star, line) = line.split_at(1);
            if star == b"*" {
                refs.checked_out = Some(line.trim_ascii_end().to_owned());
            }
            refs.packed.extend(line);
        }
        refs
    }

    /// The branch that is checked out, if it stands at a commit.
    fn branch_at(&self, commit: &str) -> Option<&[u8]> {
        let line = self.checked_out.as_deref()?;
        line.strip_prefix(commit.as_bytes())?.strip_prefix(b" ")
    }
}

/// Settings that say what git takes for granted.
const USUAL: [&str; 6] = [
    "core.autocrlf=false",
    "core.eol=lf",
    "core.eol=native",
    "core.filemode=true",
    "core.ignorecase=false",
    "core.symlinks=true",
];

impl Lender {
    /// Lends the objects of another git directory of the executor's own, which borrows of the same
    /// repository.
    pub fn with_objects_of(self, git_dir: &Path) -> Self {
        Self {
            objects: git_dir.join("objects"),
            ..self
        }
    }

    /// Shows these branches and tags, which are the user's.
    pub fn with_refs(self, refs: &UserRefs) -> Self {
        Self {
            refs: refs.clone(),
            ..self
        }
    }

    /// For programs within these walls, for which root's files have another owner behind
    /// bubblewrap: git would take each of them for changed.
    pub fn for_programs_within(self, walls: Walls) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self {
            hides_owner: is_root && matches!(walls, Walls::Both | Walls::Bubblewrap),
            ..self
        }
    }

    /// Whether something that is not a file of the repository says what files mean.
    pub fn converts(&self) -> bool {
        let mut conversions = self.conversions.iter();
        let is_unusual = |conversion: &String| !USUAL.contains(&&conversion[..]);
        !self.attributes.is_empty() || conversions.any(is_unusual)
    }

    /// Makes a git directory that borrows, with this as its HEAD. What somebody has put in its
    /// place goes.
    fn lend_to(&self, git_dir: &Path, head: &str, config: &str) -> io::Result<()> {
        remove_tree(git_dir)?;
        for folder in ["info", "objects/info", "objects/pack", "refs/heads"] {
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
        for (name, text) in [
            ("info/exclude", &self.excludes),
            ("info/attributes", &self.attributes),
            ("packed-refs", &self.refs.packed),
        ] {
            if !text.is_empty() {
                fs::write(git_dir.join(name), text)?;
            }
        }
        fs::write(git_dir.join("config"), config)?;
        fs::write(git_dir.join("HEAD"), format!("{head}\n"))
    }

    /// Has the HEAD of a clone be a branch, so that what is committed there is on one: that which
    /// the user has checked out, where it stands at this commit, or else a new one.
    fn attach(&self, git_dir: &Path, commit: &str) -> io::Result<()> {
        let branch = match self.refs.branch_at(commit) {
            Some(branch) => branch.to_owned(),
            None => {
                let branch = format!("refs/heads/rocco-{}", start_of(commit, BRANCH_DIGITS));
                fs::write(git_dir.join(&branch), format!("{commit}\n"))?;
                branch.into_bytes()
            }
        };
        fs::write(
            git_dir.join("HEAD"),
            [b"ref: ", &branch[..], b"\n"].concat(),
        )
    }

    fn config(&self, is_bare: bool) -> String {
        let settings = Settings {
            object_format: self.object_format.clone(),
            ..Settings::default()
        };
        let mut config = settings.own_config(is_bare);
        let hidden = self
            .hides_owner
            .then(|| "core.checkStat=minimal".to_owned());
        for conversion in self.conversions.iter().chain(&hidden) {
            if let Some((name, value)) = conversion.split_once('=') {
                let name = name.trim_start_matches("core.");
                config += &format!("[core]\n\t{name} = {value}\n");
            }
        }
        config
    }
}

impl Git<'_> {
    /// What the user's repository lends, where it is now.
    pub fn lender_of(&self, repo: &Repo) -> Result<Lender, String> {
        let said = |error: io::Error| format!("the repository cannot be read: {error}");
        let common = repo.common().real_now().map_err(said)?;
        let own = |name: &str| repo_files::read_small(&repo.common().path().join(name));
        let user = self.user.conversions.iter().cloned();
        Ok(Lender {
            objects: common.join("objects"),
            shallow: own("shallow").map_err(said)?,
            object_format: repo.settings().object_format.clone(),
            conversions: user.chain(repo.settings().conversions()).collect(),
            excludes: joined(self.user.excludes(), own("info/exclude").map_err(said)?),
            attributes: joined(
                self.user.attributes(),
                own("info/attributes").map_err(said)?,
            ),
            refs: UserRefs::default(),
            hides_owner: false,
        })
    }

    /// The branches and tags of the user's repository.
    pub fn refs_of(&self, repo: &Repo) -> Result<UserRefs, String> {
        let stand_in = self.stand_in(repo)?;
        let mut command = stand_in.command(self);
        let format = "--format=%(HEAD)%(objectname) %(refname)";
        command.args(["for-each-ref", format]);
        command.args(["refs/heads", "refs/remotes", "refs/tags"]);
        Ok(UserRefs::of(&self.run(command)?))
    }

    /// Makes a clone that shares the objects of a repository and nothing else, at a commit. Whoever
    /// works in it has no way to push by mistake.
    pub fn clone_at(&self, lender: &Lender, to: &Path, base: &str) -> Result<(), String> {
        let git_dir = to.join(".git");
        let made = lender.lend_to(&git_dir, base, &(lender.config(false) + OF_CLONE));
        made.map_err(|error| format!("{}: {error}", to.display()))?;
        let mut command = self.command(&git_dir, to);
        command.env("GIT_WORK_TREE", to);
        let lacks = |path: &str| {
            format!(
                "the repository does not have all of its commit, {path} for one: a partial clone \
                 has to fetch it first"
            )
        };
        let words = [
            "-c",
            "checkout.workers=0",
            "checkout",
            "--quiet",
            "--detach",
        ];
        self.text(command, &[&words[..], &[base, "--"]].concat())
            .map_err(
                |what| match UNREADABLE.iter().any(|word| what.contains(word)) {
                    true => lacks(&what),
                    false => what,
                },
            )?;
        // Git goes on without what a partial clone does not have, and its absence would be taken
        // for the agent's work.
        let index = index_at(&git_dir.join("index"), base.len() / 2);
        let index = index.ok_or_else(|| {
            format!(
                "the checkout has more than {WORK_FILES_MAX} files, or their paths have more than \
                 {WORK_PATHS_BYTES_MAX} bytes, which is more than is worked with"
            )
        })?;
        if let Some(entry) = index.iter().find(|entry| !entry.has_file()) {
            return Err(lacks(&name_of(&entry.path)));
        }
        let attached = lender.attach(&git_dir, base);
        attached.map_err(|error| format!("{}: {error}", git_dir.display()))
    }

    /// Makes a git directory without files that shares the objects of a repository.
    pub fn make_own_dir(&self, lender: &Lender, to: &Path) -> Result<(), String> {
        let made = lender.lend_to(to, "ref: refs/heads/none", &lender.config(true));
        made.map_err(|error| format!("{}: {error}", to.display()))
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

/// The bytes of an index that is a plain file. None if there is none that can be read.
pub(super) fn index_bytes_at(path: &Path) -> Option<Vec<u8>> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let index = (!is_link).then(|| read_plain(path, INDEX_BYTES_MAX));
    index?.ok()?
}

/// Its entries.
pub(super) fn index_at(path: &Path, object_bytes: usize) -> Option<Vec<IndexEntry>> {
    entries_of(&index_bytes_at(path)?, object_bytes)
}

/// What the user says of all repositories, and then what one says, which counts more.
fn joined(user: Vec<u8>, own: Option<Vec<u8>>) -> Vec<u8> {
    let text = [user, own.unwrap_or_default()].join(&b'\n');
    match text.iter().all(u8::is_ascii_whitespace) {
        true => Vec::new(),
        false => text,
    }
}
