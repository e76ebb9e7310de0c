//! The directory that an agent worked in, made fit for git to take its files in.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, Stat};

use crate::executor::run::git_dirs::{GIT_DIR_NAMES, HEAD};
use crate::executor::run::index_file::FileStat;
use crate::executor::run::intake::FoundFile;
use crate::executor::run::result::name_of;
use crate::executor::store::measurement::{self, Closed, Measurement};
use crate::executor::store::plain_file::read_plain;
use crate::executor::store::removal::{is_dir, open_dir, remove_tree, remove_tree_at};
use crate::limits::{DISK_TIME_STEP_MS_MAX, WORK_FILES_MAX, WORK_PATHS_BYTES_MAX};
use crate::wire::writer::start_of;

/// What an error shows of a path.
const PATH_SHOWN_BYTES_MAX: usize = 256;

/// What is read of a `.git` that is a file: a path, and a word before it.
const LINK_FILE_BYTES_MAX: usize = 8 << 10;

/// The time between two looks at the clock of a disk.
const DISK_TIME_LOOK: Duration = Duration::from_micros(500);

/// What stands in a working tree.
#[derive(Debug, Default)]
pub struct WorkingTree {
    /// Its files and links, but for those of repositories that are copies of this one, in the order
    /// of their paths.
    pub files: Vec<FoundFile>,
    /// What the paths of these take.
    path_bytes: usize,
    /// What all of it takes on the disk, with what is not part of a result.
    pub disk_bytes: u64,
    /// How many git directories were taken out.
    moved: usize,
    /// Where repositories were.
    pub repositories: Vec<String>,
    /// Where other working trees of this repository are, each with a slash at its end.
    pub copies: Vec<Vec<u8>>,
}

impl WorkingTree {
    /// Takes note of a file, unless there are more than anybody works with: an agent may have made
    /// them to fill the memory.
    fn add(&mut self, file: FoundFile) -> io::Result<()> {
        self.path_bytes += file.path.len();
        if self.files.len() == WORK_FILES_MAX || self.path_bytes > WORK_PATHS_BYTES_MAX {
            return Err(io::Error::other(format!(
                "the clone has more than {WORK_FILES_MAX} files, or their paths have more than \
                 {WORK_PATHS_BYTES_MAX} bytes"
            )));
        }
        self.files.push(file);
        Ok(())
    }

    fn count(&mut self, found: &Stat) {
        self.disk_bytes = self.disk_bytes.saturating_add(measurement::bytes_of(found));
    }

    /// The file at a path, when all are there.
    pub fn file(&self, path: &[u8]) -> Option<&FoundFile> {
        let at = self.files.binary_search_by(|file| file.path[..].cmp(path));
        at.ok().map(|at| &self.files[at])
    }
}

/// Readies a working tree for git, which takes its files for what they are: repositories that lie
/// in it are taken out, so that no configuration of theirs is looked at, what is not a file
/// is removed, since git would wait for it, and what its owner cannot read becomes readable. Tells
/// what is there. It ends early when `is_stopped` says so.
pub fn prepare_for_git(
    work: &Path,
    to: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<WorkingTree, String> {
    let mut tree = WorkingTree::default();
    let mut folders = vec![work.to_owned()];
    while let Some(folder) = folders.pop() {
        if is_stopped() {
            return Err("it was ended together with its task".into());
        }
        let inside = folder.strip_prefix(work).unwrap_or(&folder).to_owned();
        let inside = inside.as_os_str().as_bytes();
        prepare_folder(&folder, inside, &mut tree, &mut folders, to).map_err(|error| {
            let inside = String::from_utf8_lossy(inside);
            format!("{:?}: {error}", start_of(&inside, PATH_SHOWN_BYTES_MAX))
        })?;
    }
    let copies = tree.copies.iter();
    let copies = copies.map(|inside| work.join(OsStr::from_bytes(inside)));
    for apart in copies.chain([work.join(".git"), to.to_owned()]) {
        let bytes = Measurement::of(&apart, Closed::Opened).finish(is_stopped);
        tree.disk_bytes = tree.disk_bytes.saturating_add(bytes);
    }
    tree.files
        .sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(tree)
}

/// Readies a directory, and finds those that are in it. What is in it is looked at by its name
/// alone, which takes half the time of a path.
fn prepare_folder(
    folder: &Path,
    inside: &[u8],
    tree: &mut WorkingTree,
    folders: &mut Vec<PathBuf>,
    to: &Path,
) -> io::Result<()> {
    let dir = open_dir(CWD, folder)?;
    tree.count(&rustix::fs::fstat(&dir)?);
    let is_top = inside.is_empty();
    let is_copy = !is_top && is_other_working_tree(&folder.join(".git"));
    if is_copy {
        tree.copies.push([inside, b"/"].concat());
    }
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let bytes = name.to_bytes();
        if matches!(bytes, b"." | b"..") || is_top && bytes == b".git" {
            // The agent's own git directory is only read, file by file.
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system tells the kind of an entry.
            FileType::Unknown => FileType::from_raw_mode(stat(&dir, name)?.st_mode),
            kind => kind,
        };
        if !is_top && bytes.eq_ignore_ascii_case(b".git") {
            fs::create_dir_all(to)?;
            if kind == FileType::Directory {
                // Nobody moves a directory in which they may not write.
                open_dir(&dir, name)?;
            }
            rustix::fs::renameat(&dir, name, CWD, to.join(tree.moved.to_string()))?;
            tree.moved += 1;
            if !is_copy {
                tree.repositories.push(name_of(inside));
            }
        } else if is_copy {
            // None of it is part of a result.
        } else if kind == FileType::Directory {
            folders.push(folder.join(OsStr::from_bytes(bytes)));
        } else if matches!(kind, FileType::RegularFile | FileType::Symlink) {
            let found = readable(&dir, name, kind)?;
            tree.count(&found);
            let slash: &[u8] = if is_top { b"" } else { b"/" };
            tree.add(FoundFile {
                path: [inside, slash, bytes].concat(),
                stat: FileStat::of(&found),
                bytes: found.st_size.cast_unsigned(),
            })?;
        } else {
            rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
        }
    }
    Ok(())
}

fn stat(dir: &OwnedFd, name: &CStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Has a file be one that its owner can read, and tells how it stands then.
fn readable(dir: &OwnedFd, name: &CStr, kind: FileType) -> io::Result<Stat> {
    const READ: u32 = 0o400;
    let found = stat(dir, name)?;
    if kind == FileType::Symlink || found.st_mode & READ != 0 {
        return Ok(found);
    }
    let mode = Mode::from_raw_mode(found.st_mode & 0o7777 | READ);
    rustix::fs::chmodat(dir, name, mode, AtFlags::empty())?;
    stat(dir, name)
}

/// Whether a `.git` is that of another working tree of the repository that it lies in.
fn is_other_working_tree(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let text = is_file.then(|| read_plain(path, LINK_FILE_BYTES_MAX));
    let text = text.and_then(Result::ok).flatten().unwrap_or_default();
    text.starts_with(b"gitdir: ") && memchr::memmem::find(&text, b"/.git/worktrees/").is_some()
}

/// Has an index be younger than all files that were there when it was written: git reads each file
/// again that was written in the same second as an index, whenever it writes the index. What was
/// touched since is known by finer times.
pub fn make_younger(index: &Path) -> io::Result<()> {
    let index = File::options().write(true).open(index)?;
    let later = index.metadata()?.modified()? + Duration::from_millis(DISK_TIME_STEP_MS_MAX);
    index.set_modified(later)
}

/// Waits until a change of a file has another time than those of `file`, by writing to `probe`, a
/// file of the same disk: its clock goes in steps of some milliseconds, or of seconds.
pub fn wait_for_later_times(file: &Path, probe: &Path) -> io::Result<()> {
    let time_of = |path: &Path| rustix::fs::lstat(path).map(|found| FileStat::of(&found).changed());
    let until = Instant::now() + Duration::from_millis(DISK_TIME_STEP_MS_MAX);
    let time = time_of(file)?;
    loop {
        fs::write(probe, "x")?;
        if time_of(probe)? > time || Instant::now() > until {
            return fs::remove_file(probe);
        }
        std::thread::sleep(DISK_TIME_LOOK);
    }
}

/// Takes from a clone that is kept whatever git would look at by itself: somebody who opens the
/// clone, with git or with an editor, runs nothing that the agent has configured. A clone of which
/// that cannot be said is removed.
///
/// # Errors
///
/// The clone cannot be made safe and was removed, or cannot even be removed.
pub fn disarm(work: &Path) -> io::Result<()> {
    let _alone = alone_with(work)?;
    let disarmed = match is_plain_dir(work) {
        true => remove_repositories(work),
        false => Err(io::Error::other(
            "something else is in the place of the clone",
        )),
    };
    if disarmed.is_err() {
        remove_tree(work)?;
    }
    disarmed
}

/// A watchman and the next executor may come to a clone at the same time. The lock is on the
/// directory of the task, which no program of the task can open.
fn alone_with(work: &Path) -> io::Result<File> {
    let dir = File::open(work.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    dir.lock()?;
    Ok(dir)
}

/// What a record says of a clone that was kept.
pub fn is_in(work: &Path) -> String {
    format!("what the agent has left is in {}", work.display())
}

/// What a record says of a clone that was not kept.
pub fn not_kept(error: &io::Error) -> String {
    format!("the clone of the agent was not kept: {error}")
}

/// Disarms every directory of a tree. It goes by descriptors, and holds one of them and the names
/// of the directories that are still to come, so that no depth is too much for it.
fn remove_repositories(work: &Path) -> io::Result<()> {
    let mut dir = open_dir(CWD, work)?;
    let mut names = disarm_dir(&dir)?;
    let mut above = Vec::new();
    loop {
        if let Some(name) = names.pop() {
            let inner = open_dir(&dir, name.as_c_str())?;
            above.push((inode(&dir)?, names));
            names = disarm_dir(&inner)?;
            dir = inner;
        } else if let Some((outer_inode, outer_names)) = above.pop() {
            dir = open_dir(&dir, c"..")?;
            if inode(&dir)? != outer_inode {
                return Err(io::Error::other(
                    "a directory of the clone was moved meanwhile",
                ));
            }
            names = outer_names;
        } else {
            return Ok(());
        }
    }
}

fn inode(dir: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = rustix::fs::fstat(dir)?;
    Ok((found.st_dev, found.st_ino))
}

/// Removes what is called `.git`, in any case, from a directory, and has the directory not be a git
/// directory by itself, as a bare repository is. Git knows one by its HEAD, which keeps what it has
/// under another name. Gives the names of the directories that lie in it.
fn disarm_dir(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut inner = Vec::new();
    let mut heads = Vec::new();
    let mut has = [false; GIT_DIR_NAMES.len()];
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if name.to_bytes().eq_ignore_ascii_case(b".git") {
            remove_tree_at(dir, name)?;
            continue;
        }
        let is_called = |known: &&str| name.to_bytes().eq_ignore_ascii_case(known.as_bytes());
        if is_called(&HEAD) {
            heads.push(name.to_owned());
        }
        if let Some(at) = GIT_DIR_NAMES.iter().position(is_called) {
            has[at] = true;
        }
        match entry.file_type() {
            FileType::Directory => inner.push(name.to_owned()),
            // Not every file system tells the kind of an entry.
            FileType::Unknown if is_dir(dir, name) => inner.push(name.to_owned()),
            _ => {}
        }
    }
    let [common, objects, refs] = has;
    if common || objects && refs {
        for head in heads {
            disarm_head(dir, head, &mut inner)?;
        }
    }
    Ok(inner)
}

/// Gives a HEAD another name, under which it may be a directory that is still to come.
fn disarm_head(dir: &OwnedFd, head: CString, inner: &mut Vec<CString>) -> io::Result<()> {
    let name = CString::new([head.to_bytes(), b".disarmed"].concat())?;
    remove_tree_at(dir, name.as_c_str())?;
    rustix::fs::renameat(dir, head.as_c_str(), dir, name.as_c_str())?;
    inner.retain(|known| *known != name);
    for known in inner.iter_mut().filter(|known| **known == head) {
        known.clone_from(&name);
    }
    Ok(())
}

/// Whether a path is a directory itself, and not a link to one.
pub fn is_plain_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agent leaves counts for `--disk`, be it part of a result or not.
    #[test]
    fn all_of_a_clone_counts_when_it_is_looked_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let (work, nested) = (folder.path().join("work"), folder.path().join("nested"));
        let write = |name: &str| {
            let path = work.join(name);
            fs::create_dir_all(path.parent().expect("above")).expect("a directory");
            fs::write(path, vec![1; 100_000]).expect("a file");
        };
        let names = [".git/objects/a", "b", "dir/c", "inner/.git/d", "copy/e/f"];
        names.into_iter().for_each(write);
        let linked = "gitdir: /r/.git/worktrees/copy";
        fs::write(work.join("copy/.git"), linked).expect("a file");
        fs::hard_link(work.join("b"), work.join("dir/b")).expect("a name");
        std::os::unix::fs::symlink("b", work.join("link")).expect("a link");
        let bytes = measurement::bytes_on_disk(&work);
        assert!(bytes > 500_000, "{bytes}");
        let tree = prepare_for_git(&work, &nested, &|| false).expect("a tree");
        let paths: Vec<&[u8]> = tree.files.iter().map(|file| &file.path[..]).collect();
        assert_eq!(paths, [&b"b"[..], b"dir/b", b"dir/c", b"link"]);
        assert_eq!(tree.file(b"dir/c").map(|file| file.bytes), Some(100_000));
        // Directories may count twice where others begin or were moved to.
        let more = tree.disk_bytes.checked_sub(bytes).expect("all counts");
        assert!(more < 40_000, "{more}");
    }

    /// A tree that is too deep for a path was removed instead of disarmed.
    #[test]
    fn a_clone_that_is_too_deep_for_a_path_is_disarmed_and_kept() {
        const LEVELS: usize = 3_000;
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().join("work");
        fs::create_dir_all(work.join("leaf/.git/objects")).expect("directories");
        fs::create_dir_all(work.join("bare/objects")).expect("directories");
        fs::create_dir_all(work.join("bare/refs")).expect("directories");
        fs::create_dir_all(work.join("bare/HEAD/.GIT")).expect("directories");
        fs::create_dir_all(work.join("bare/HEAD.disarmed/x")).expect("directories");
        for _ in 0..LEVELS {
            let outer = folder.path().join("outer");
            fs::create_dir(&outer).expect("a directory");
            fs::rename(&work, outer.join("d")).expect("a move");
            fs::rename(&outer, &work).expect("a move");
        }
        disarm(&work).expect("a tree of any depth is disarmed");
        let mut dir = open_dir(CWD, work.as_path()).expect("the clone is kept");
        for _ in 0..LEVELS {
            dir = open_dir(&dir, c"d").expect("each level is kept");
        }
        let has = |name: &str| {
            let found = rustix::fs::statat(&dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok()
        };
        assert!(has("leaf") && !has("leaf/.git"));
        assert!(has("bare/HEAD.disarmed") && !has("bare/HEAD"));
        assert!(!has("bare/HEAD.disarmed/.GIT") && !has("bare/HEAD.disarmed/x"));
        remove_tree(&work).expect("a removal");
    }
}
