//! Takes the files of an agent into a git directory of the executor's own, and says what was left
//! out of it and what looks wrong.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::executor::run::git::Git;
use crate::executor::run::index_file::{IndexEntry, MODULE};
use crate::executor::run::intake::{FoundFile, Intake, left_out};
use crate::executor::run::left_index::LeftIndex;
use crate::executor::run::own_dir::{INDEX, Lender, RESULT_REF, index_at};
use crate::executor::run::result::{name_of, terminated};
use crate::executor::run::staged::Staged;
use crate::executor::run::workspace::{WorkingTree, is_plain_dir, make_younger};
use crate::limits::{GIT_OUTPUT_BYTES_MAX, RESULT_PATHS_BYTES_MAX};

/// What stands in the place of a file that LFS keeps elsewhere (its specification, 1).
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Values of an attribute that name nothing.
const NO_NAME: [&[u8]; 3] = [b"unspecified", b"unset", b"set"];

/// Where the files of an agent are, and where they are taken in.
#[derive(Debug, Clone, Copy)]
pub struct Intaking<'i> {
    /// The clone.
    pub work: &'i Path,
    /// What was found in it.
    pub tree: &'i WorkingTree,
    /// The git directory of the executor's own.
    pub git_dir: &'i Path,
    /// The index that the agent has left there.
    pub left: &'i LeftIndex,
    /// The index of the checkout, which becomes that of the result.
    pub index: &'i Path,
    /// How many bytes an object's name takes.
    pub object_bytes: usize,
    /// What the files that are taken may hold together.
    pub bytes_max: u64,
    /// How many may be taken or removed.
    pub files_max: usize,
}

/// What was taken of a working tree.
#[derive(Debug, Default)]
pub struct FilesTaken {
    /// The tree. None if nothing was touched.
    pub tree: Option<String>,
    /// What was not taken, since ignore files name it.
    pub ignored: Vec<String>,
    /// Submodules that were added or moved, each with its commit.
    pub modules: Vec<(String, String)>,
    /// Files that a filter of the user's would have converted, each with the name of the filter.
    pub filtered: Vec<(String, String)>,
    /// What the agent's index has and its working tree does not.
    pub absent: Vec<String>,
    /// Files that were converted by what they hold alone: what the agent's index has of them is not
    /// known.
    pub unproven: Vec<String>,
    /// The index of the agent's could not be read.
    pub is_index_unread: bool,
}

/// Why the files of an agent are not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// They are more than they may be, as a sentence says.
    TooMuch(String),
    /// Git, or the system, does not take them.
    Failed(String),
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::TooMuch(what) | Self::Failed(what)) = self;
        f.write_str(what)
    }
}

impl From<String> for NotTaken {
    fn from(what: String) -> Self {
        Self::Failed(what)
    }
}

impl Git<'_> {
    /// Takes in the files of an agent: what the agent's index tracks or no ignore file names, as
    /// far as it was touched.
    ///
    /// # Errors
    ///
    /// There is too much of it, which is known before any of it is read, or git does not take it.
    pub fn take_files(&self, of: Intaking<'_>, lender: &Lender) -> Result<FilesTaken, NotTaken> {
        let checkout = index_at(of.index, of.object_bytes);
        let checkout = checkout.ok_or_else(|| "the index of the checkout is lost".to_owned())?;
        let left = of.left.entries();
        let is_dir = |path: &[u8]| is_plain_dir(&of.path(path));
        let intake = Intake::new(&checkout, left, &of.tree.files, is_dir);
        of.bound(&intake, &[], &checkout)?;
        fs::rename(of.index, of.git_dir.join(INDEX)).map_err(|error| error.to_string())?;
        let converts = lender.converts() || has_attributes_files(of.tree);
        let staged = match converts {
            true => self.staged(of, &intake, &checkout)?,
            false => Staged::default(),
        };
        let told = entries_told(&intake, &staged, of.object_bytes);
        self.update_index(of, &["--index-info"], &told)?;
        let others = self.others(of, &intake)?;
        of.bound(&intake, &others, &checkout)?;
        let added = intake.touched.iter().chain(&others);
        let added: Vec<&[u8]> = added.map(|file| &file.path[..]).collect();
        let open = added.iter().filter(|path| !staged.settled.contains(*path));
        let open: Vec<&[u8]> = open.copied().collect();
        self.update_index(of, &ADD, &terminated_list(&open))?;
        let is_as_it_was =
            added.is_empty() && intake.removed.is_empty() && intake.modules.is_empty();
        let modules = intake.modules.iter();
        let modules = modules.map(|(path, object)| (name_of(path), object.to_string()));
        Ok(FilesTaken {
            tree: match is_as_it_was {
                true => None,
                false => Some(self.text(of.command(self, &["write-tree"]), &[])?),
            },
            ignored: ignored(of.tree, left.unwrap_or(&checkout), &intake, &others),
            modules: modules.collect(),
            absent: intake.absent.iter().map(|path| name_of(path)).collect(),
            unproven: staged.unproven.iter().map(|path| name_of(path)).collect(),
            filtered: match converts {
                true => self.filtered(of, &added)?,
                false => Vec::new(),
            },
            is_index_unread: *of.left == LeftIndex::Unread,
        })
    }

    /// The files that nobody tracks and no ignore file names.
    fn others<'t>(
        &self,
        of: Intaking<'_>,
        intake: &Intake<'t>,
    ) -> Result<Vec<&'t FoundFile>, NotTaken> {
        if intake.untracked.is_empty() {
            return Ok(Vec::new());
        }
        let words = ["ls-files", "-z", "--others", "--exclude-standard"];
        let listed = self.run_cut(of.command(self, &words))?;
        if listed.is_cut {
            return Err(NotTaken::TooMuch(format!(
                "the paths of the files that the task has added have more than \
                 {GIT_OUTPUT_BYTES_MAX} bytes, and may have {RESULT_PATHS_BYTES_MAX}"
            )));
        }
        let listed: HashSet<&[u8]> = terminated(&listed.stdout).collect();
        let untracked = intake.untracked.iter().copied();
        let others = untracked.filter(|file| listed.contains(&file.path[..]));
        Ok(others.collect())
    }

    /// Makes a commit of a tree on top of another commit.
    pub fn commit_tree(
        &self,
        git_dir: &Path,
        tree: &str,
        base: &str,
        message: &str,
    ) -> Result<String, String> {
        let words = ["commit-tree", "-p", base, "-m", message, tree];
        let head = self.text(self.command(git_dir, git_dir), &words)?;
        let result = git_dir.join(RESULT_REF);
        let kept = fs::create_dir_all(git_dir.join("refs/rocco"))
            .and_then(|()| fs::write(&result, format!("{head}\n")));
        kept.map_err(|error| format!("{}: {error}", result.display()))?;
        Ok(head)
    }

    /// Changes the index of the result as a list says. Without a list nothing is to be changed.
    fn update_index(&self, of: Intaking<'_>, words: &[&str], list: &[u8]) -> Result<(), String> {
        if list.is_empty() {
            return Ok(());
        }
        let mut command = of.command(self, &["update-index", "-z"]);
        command.args(words);
        let said = self
            .run_cut(self.on_list(command, of.git_dir, list)?)?
            .stderr;
        make_younger(&of.git_dir.join(INDEX)).map_err(|error| error.to_string())?;
        // Git goes on without what it does not take, and says so.
        let said = String::from_utf8_lossy(&said);
        let refused = said
            .lines()
            .find_map(|line| line.strip_prefix("Ignoring path "));
        match refused {
            Some(path) => Err(format!(
                "git does not take {path}: the name is one of git's own"
            )),
            None => Ok(()),
        }
    }

    /// Which of these files a filter would have converted, each with the filter's name.
    fn filtered(&self, of: Intaking<'_>, paths: &[&[u8]]) -> Result<Vec<(String, String)>, String> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let command = of.command(self, &["check-attr", "-z", "--stdin", "filter"]);
        let printed = self.run(self.on_list(command, of.git_dir, &terminated_list(paths))?)?;
        let texts: Vec<&[u8]> = terminated(&printed).collect();
        let named = texts.chunks_exact(3).map(|texts| (texts[0], texts[2]));
        let named =
            named.filter(|(path, filter)| !NO_NAME.contains(filter) && !is_pointer(&of.path(path)));
        let told = named.map(|(path, filter)| (name_of(path), name_of(filter)));
        Ok(told.collect())
    }
}

/// How files come to an index, or are read anew.
const ADD: [&str; 3] = ["--add", "--replace", "--stdin"];

impl Intaking<'_> {
    pub(super) fn path(&self, path: &[u8]) -> PathBuf {
        self.work.join(OsStr::from_bytes(path))
    }

    /// A command on the working tree and the index of the result.
    pub(super) fn command(&self, git: &Git<'_>, words: &[&str]) -> Command {
        let mut command = git.command(self.git_dir, self.work);
        command.env("GIT_WORK_TREE", self.work);
        command.env("GIT_INDEX_FILE", self.git_dir.join(INDEX));
        command.args(words);
        command
    }

    /// Refuses files that are too many or hold too much together, before git reads any of them. A
    /// file that is as long as it was may be what it was.
    fn bound(
        &self,
        intake: &Intake<'_>,
        others: &[&FoundFile],
        checkout: &[IndexEntry],
    ) -> Result<(), NotTaken> {
        let removed = intake.removed.iter();
        let (mut files, mut bytes) = (removed.len(), 0_u64);
        let mut path_bytes = removed.map(|path| path.len()).sum::<usize>();
        for file in intake.touched.iter().chain(others) {
            let before = checkout.binary_search_by(|entry| entry.path.cmp(&file.path));
            let before = before.map(|at| u64::from(checkout[at].stat.bytes()));
            if before != Ok(file.bytes) {
                files += 1;
                bytes = bytes.saturating_add(file.bytes);
                path_bytes += file.path.len();
            }
        }
        let refusal = if files > self.files_max {
            too_many(files, self.files_max)
        } else if bytes > self.bytes_max {
            too_large(bytes, self.bytes_max)
        } else if path_bytes > RESULT_PATHS_BYTES_MAX {
            format!(
                "the paths of the files that the task has added, changed or removed have \
                 {path_bytes} bytes, and may have {RESULT_PATHS_BYTES_MAX}"
            )
        } else {
            return Ok(());
        };
        Err(NotTaken::TooMuch(refusal))
    }
}

/// What is said of a result that holds too much.
pub fn too_large(bytes: u64, bytes_max: u64) -> String {
    format!(
        "the files that the task has added or changed hold {bytes} bytes, and may hold {bytes_max} \
         (--result-size)"
    )
}

/// What is said of a result of too many files.
pub fn too_many(files: usize, files_max: usize) -> String {
    format!(
        "the task has added, changed or removed {files} files, and may do so with {files_max} \
         (--result-files)"
    )
}

fn has_attributes_files(tree: &WorkingTree) -> bool {
    let mut files = tree.files.iter();
    files.any(|file| file.path.ends_with(b".gitattributes"))
}

/// What was found and is not taken, since ignore files name it. What lies in the directory of a
/// submodule is told as that.
fn ignored(
    tree: &WorkingTree,
    tracked: &[IndexEntry],
    intake: &Intake<'_>,
    others: &[&FoundFile],
) -> Vec<String> {
    let modules = tracked.iter().filter(|entry| entry.mode == MODULE);
    let modules: HashSet<&[u8]> = modules.map(|entry| &entry.path[..]).collect();
    let in_module = |path: &[u8]| {
        let mut dirs = memchr::memchr_iter(b'/', path).map(|at| &path[..at]);
        !modules.is_empty() && dirs.any(|dir| modules.contains(dir))
    };
    let others: HashSet<&[u8]> = others.iter().map(|file| &file.path[..]).collect();
    let untracked = intake.untracked.iter().map(|file| &file.path[..]);
    let left = untracked.filter(|path| !others.contains(path) && !in_module(path));
    let names = left_out(&tree.files, &left.collect::<Vec<_>>());
    names.into_iter().map(name_of).collect()
}

/// What `git update-index --index-info` is told of what is gone, of submodules, of files that git
/// would not see were touched, and of what the agent has staged.
fn entries_told(intake: &Intake<'_>, staged: &Staged<'_>, object_bytes: usize) -> Vec<u8> {
    let nothing = "0".repeat(2 * object_bytes);
    let gone = intake.removed.iter();
    let gone = gone.map(|path| line_told(path, 0, &nothing));
    let modules = intake.modules.iter();
    let modules = modules.map(|(path, object)| line_told(path, MODULE, object));
    // An entry that is told has no times, so that git looks at its file.
    let entries = intake.alike.iter().chain(&staged.entries);
    let entries = entries.map(|entry| line_told(&entry.path, entry.mode, &entry.object));
    let lines = gone.chain(modules).chain(entries);
    lines.collect::<Vec<_>>().concat()
}

fn line_told(path: &[u8], mode: u32, object: &dyn fmt::Display) -> Vec<u8> {
    [format!("{mode:o} {object}\t").as_bytes(), path, b"\0"].concat()
}

fn terminated_list(paths: &[&[u8]]) -> Vec<u8> {
    let ends = paths.iter().flat_map(|path| [*path, b"\0"]);
    ends.collect::<Vec<_>>().concat()
}

/// Whether a file is the pointer of LFS that its filter would have made.
fn is_pointer(path: &Path) -> bool {
    use std::io::Read as _;
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let mut start = [0; LFS_POINTER.len()];
    let read = is_file.then(|| File::open(path).and_then(|mut file| file.read_exact(&mut start)));
    read.is_some_and(|read| read.is_ok()) && start == LFS_POINTER
}
