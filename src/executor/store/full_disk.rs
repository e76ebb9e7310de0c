//! A disk that is full, told in words of our own: where there is no room, and what to do.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{StatVfs, statvfs};

/// How the C library names the two errors, which is all that a program passes on of them.
const SAID: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

const NO_ROOM: &str = "there is no room on the file system of";

/// Why something could not be written below a directory.
pub fn in_words(dir: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => no_room(&[dir]),
        _ => error.to_string(),
    }
}

/// Why a command of git failed, if a disk is full. It writes into its git directory and into the
/// directory that it runs in. It does not always say what the system has said, so that these are
/// looked at as well.
pub fn of_git(command: &Command, complaints: &str) -> Option<String> {
    let is_said = SAID.iter().any(|said| complaints.contains(said));
    let mut env = command.get_envs();
    let git_dir = env.find_map(|(name, value)| value.filter(|_| name == OsStr::new("GIT_DIR")));
    let dirs = [git_dir.map(Path::new), command.get_current_dir()];
    let dirs: Vec<&Path> = dirs.into_iter().flatten().collect();
    let full: Vec<&Path> = dirs.iter().copied().filter(|dir| is_full(dir)).collect();
    match (&full[..], is_said) {
        ([], false) => None,
        // Git has removed again what it had begun to write.
        ([], true) => Some(no_room(&dirs)),
        (full, _) => Some(no_room(full)),
    }
}

/// Whether the file system of a directory has room for nothing, or for no further file. One that
/// is not on a disk counts neither.
fn is_full(dir: &Path) -> bool {
    let bytes_full = |found: &StatVfs| found.f_blocks > 0 && found.f_bavail == 0;
    let files_full = |found: &StatVfs| found.f_files > 0 && found.f_favail == 0;
    statvfs(dir).is_ok_and(|found| bytes_full(&found) || files_full(&found))
}

/// Says that the file systems of these directories, or one of them, have no room.
fn no_room(dirs: &[&Path]) -> String {
    let mut told = String::new();
    let mut devices = Vec::new();
    for dir in dirs {
        let device = fs::metadata(dir).map(|found| found.dev()).ok();
        if device.is_some() && devices.contains(&device) {
            continue;
        }
        devices.push(device);
        let or = if told.is_empty() { "" } else { " or " };
        // A directory that is held has a name of the process alone.
        let real = dir.canonicalize().unwrap_or_else(|_| (*dir).to_owned());
        told += &format!("{or}{}", real.display());
    }
    format!("{NO_ROOM} {told}: make room there, and submit the task again")
}

/// Whether what is told of a failure is that a disk is full, which is no fault of who asked.
pub fn is_told(what: &str) -> bool {
    what.contains(NO_ROOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk was told in the words of whoever met it, without its place.
    #[test]
    fn a_full_disk_is_told_with_its_place_and_what_to_do() {
        let (here, proc) = (Path::new("/"), Path::new("/proc"));
        let wanted = |place: &str| {
            format!(
                "there is no room on the file system of {place}: make room there, and submit the \
                 task again"
            )
        };
        for number in [libc::ENOSPC, libc::EDQUOT] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(in_words(here, &error), wanted("/"));
            assert!(is_told(&wanted("/")) && !is_told(&error.to_string()));
            let complaints = format!("error: x\nfatal: write error: {error}\n");
            let mut command = Command::new("git");
            command.env("GIT_DIR", "/").current_dir(proc);
            let told = of_git(&command, &complaints);
            assert_eq!(told, Some(wanted("/ or /proc")));
            command.current_dir(here);
            assert_eq!(of_git(&command, &complaints), Some(wanted("/")));
            assert_eq!(of_git(&command, "fatal: not a git repository\n"), None);
        }
        let other = io::Error::from(ErrorKind::NotFound);
        assert_eq!(in_words(here, &other), other.to_string());
    }
}
