//! A repository of the user, held open.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A directory that was found once and is held by its descriptor. Whatever somebody puts in the
/// place of its path later, git is led nowhere else.
#[derive(Debug)]
pub struct Repo {
    real: PathBuf,
    directory: File,
}

impl Repo {
    /// Opens a directory by any name, and asks the kernel where it lies.
    ///
    /// # Errors
    ///
    /// Nothing is there, or it is not a directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true);
        let directory = options
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(path)?;
        let real = fs::read_link(descriptor_path(&directory))?;
        Ok(Self { real, directory })
    }

    /// Opens a directory that has to be where it was, and in one of those that are allowed.
    ///
    /// # Errors
    ///
    /// As [`Repo::open`], or it is somewhere else by now.
    pub fn open_again(real: &Path, allowed: &[PathBuf]) -> io::Result<Self> {
        let repo = Self::open(real)?;
        match repo.real == real && repo.lies_in(allowed) {
            true => Ok(repo),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Its path without any symbolic link, as it was when it was opened.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Whether it is one of these directories, or lies below one.
    pub fn lies_in(&self, allowed: &[PathBuf]) -> bool {
        allowed.iter().any(|root| self.real.starts_with(root))
    }

    /// A name of the directory itself, for this process and for the working directory of a child.
    pub fn descriptor_path(&self) -> PathBuf {
        descriptor_path(&self.directory)
    }
}

fn descriptor_path(directory: &File) -> PathBuf {
    format!("/proc/self/fd/{}", directory.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_held_whatever_takes_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let (inside, outside) = (root.join("in/repo"), root.join("out"));
        fs::create_dir_all(&inside).expect("a directory");
        fs::create_dir_all(&outside).expect("a directory");
        let root = root.canonicalize().expect("a path");
        let (inside, outside) = (root.join("in/repo"), root.join("out"));
        symlink(&inside, root.join("link")).expect("a link");
        let repo = Repo::open(&root.join("link")).expect("a repository");
        let allowed = [root.join("in")];
        assert!(repo.real() == inside && repo.lies_in(&allowed));
        assert!(!repo.lies_in(&[root.join("i"), outside.clone()]));

        fs::rename(&inside, root.join("moved")).expect("a move");
        symlink(&outside, &inside).expect("a link");
        fs::write(repo.descriptor_path().join("seen"), "").expect("a file");
        assert!(root.join("moved/seen").exists() && !outside.join("seen").exists());
        assert!(Repo::open_again(&inside, &allowed).is_err());
        assert!(Repo::open_again(&outside, &allowed).is_err());
        assert!(Repo::open(&root.join("moved/seen")).is_err());
    }
}
