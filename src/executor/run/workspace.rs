//! The directory that an agent worked in, made fit for git to take its files in.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::executor::store::removal::remove_tree;
use crate::wire::writer::start_of;

/// What an error shows of a path.
const PATH_SHOWN_BYTES_MAX: usize = 256;

/// Readies a working tree for git, which takes its files for what they are: repositories that lie
/// in it are taken out, so that no configuration of theirs is looked at, what is not a file
/// is removed, since git would wait for it, and what its owner cannot read becomes readable. Tells
/// where repositories were. It ends early when `is_stopped` says so.
pub fn prepare_for_git(
    work: &Path,
    to: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Vec<String>, String> {
    let mut repositories = Vec::new();
    let mut folders = vec![work.to_owned()];
    while let Some(folder) = folders.pop() {
        if is_stopped() {
            return Err("it was ended together with its task".into());
        }
        let failed = |error: io::Error| {
            let inside = folder
                .strip_prefix(work)
                .unwrap_or(&folder)
                .to_string_lossy();
            format!("{:?}: {error}", start_of(&inside, PATH_SHOWN_BYTES_MAX))
        };
        allow(&folder, 0o700).map_err(failed)?;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if entry.file_name().eq_ignore_ascii_case(".git") {
                if folder != work {
                    fs::create_dir_all(to).map_err(failed)?;
                    fs::rename(&path, to.join(repositories.len().to_string())).map_err(failed)?;
                    let inside = folder.strip_prefix(work).unwrap_or(&folder);
                    repositories.push(inside.display().to_string());
                }
            } else if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                allow(&path, 0o400).map_err(failed)?;
            } else if !kind.is_symlink() {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
    }
    Ok(repositories)
}

/// Takes from a clone that is kept whatever git would look at by itself: somebody who opens the
/// clone, with git or with an editor, runs nothing that the agent has configured. A clone of which
/// that cannot be said is removed.
///
/// # Errors
///
/// The clone cannot be made safe and was removed, or cannot even be removed.
pub fn disarm(work: &Path) -> io::Result<()> {
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

/// Removes what is called `.git`, in any case, from a tree of directories, and has no directory be
/// a git directory by itself, as a bare repository is. Git knows one by its HEAD, which keeps what
/// it has under another name.
fn remove_repositories(work: &Path) -> io::Result<()> {
    let mut folders = vec![work.to_owned()];
    while let Some(folder) = folders.pop() {
        allow(&folder, 0o700)?;
        let mut has = [false; GIT_DIR_NAMES.len()];
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.eq_ignore_ascii_case(".git") {
                remove_tree(&entry.path())?;
                continue;
            }
            if let Some(at) = GIT_DIR_NAMES
                .iter()
                .position(|known| name.eq_ignore_ascii_case(known))
            {
                has[at] = true;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
        let [head, common, objects, refs] = has;
        if head && (common || objects && refs) {
            let disarmed = folder.join("HEAD.disarmed");
            remove_tree(&disarmed)?;
            fs::rename(folder.join("HEAD"), disarmed)?;
        }
    }
    Ok(())
}

/// By what git knows a git directory: its HEAD, and either the name of another directory that has
/// the rest, or its objects and refs.
const GIT_DIR_NAMES: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Adds what its owner may do with a file.
fn allow(path: &Path, bits: u32) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    match mode & bits == bits {
        true => Ok(()),
        false => fs::set_permissions(path, fs::Permissions::from_mode(mode | bits)),
    }
}

/// Whether a path is a directory itself, and not a link to one.
pub fn is_plain_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}
