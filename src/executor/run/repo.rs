//! A repository of the user, found as data and held open.
//!
//! Where the repository keeps its commits, and in which form, is read here from its files, without
//! running anything that they name. What is found has to lie where the operator allows it: neither
//! `.git`, nor a link in it, nor a list of borrowed objects leads elsewhere.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::executor::run::object_stores::{self, StoreRefused};
use crate::executor::run::repo_files::{self, LinkRefused};
use crate::executor::run::repo_settings::Settings;

/// Where repositories, and what they borrow, may lie.
#[derive(Debug, Clone, Copy)]
pub struct AllowedPlaces<'a> {
    /// Where repositories may lie.
    pub repositories: &'a [PathBuf],
    /// What programs of a task may read beside: objects may be borrowed from there.
    pub readable: &'a [PathBuf],
}

impl AllowedPlaces<'_> {
    fn has(&self, real: &Path) -> bool {
        self.repositories.iter().any(|root| real.starts_with(root))
    }

    fn lends(&self, real: &Path) -> bool {
        self.has(real) || self.readable.iter().any(|root| real.starts_with(root))
    }

    fn names(&self) -> String {
        let names = self.repositories.iter();
        let names = names.map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Why a repository cannot be worked in.
#[derive(Debug, PartialEq, Eq)]
pub enum RepoRefused {
    /// The operator does not allow it.
    NotAllowed(String),
    /// It is not a repository, or has nothing to start from.
    Unusable(String),
}

impl fmt::Display for RepoRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotAllowed(what) | Self::Unusable(what)) = self;
        f.write_str(what)
    }
}

/// A directory that was found once and is held by its descriptor. Whatever somebody puts in the
/// place of its path later, git is led nowhere else.
#[derive(Debug)]
pub struct HeldDir {
    real: PathBuf,
    directory: File,
}

impl HeldDir {
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

    /// Its path without any symbolic link, as it was when it was opened.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Its path without any symbolic link, as it is now.
    pub fn real_now(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path())
    }

    /// A name of the directory itself, for this process and for the working directory of a child.
    pub fn path(&self) -> PathBuf {
        descriptor_path(&self.directory)
    }
}

fn descriptor_path(directory: &File) -> PathBuf {
    format!("/proc/self/fd/{}", directory.as_raw_fd()).into()
}

/// A repository with a working tree.
#[derive(Debug)]
pub struct Repo {
    tree: HeldDir,
    /// What belongs to the working tree: its HEAD and its index.
    git_dir: HeldDir,
    /// What all working trees of the repository share: its objects, refs and configuration.
    common: HeldDir,
    settings: Settings,
}

/// The directories of a repository, before its settings are known.
#[derive(Debug)]
pub struct RepoPlace {
    tree: HeldDir,
    git_dir: HeldDir,
    common: HeldDir,
}

impl RepoPlace {
    /// Finds a repository by the top of its working tree, and looks whether all of it is allowed.
    pub fn find(named: &Path, allowed: AllowedPlaces<'_>) -> Result<Self, RepoRefused> {
        let tree = find_tree(named, allowed)?;
        let git_dir = find_git_dir(named, &tree, allowed)?;
        let common = find_common(named, &git_dir, allowed)?;
        let place = Self {
            tree,
            git_dir,
            common,
        };
        look_at_links(named, &place.git_dir, &place.common, allowed)?;
        place.look_at_stores(named, allowed)?;
        Ok(place)
    }

    /// The configuration of the repository, and that of the working tree if it has one.
    pub fn configurations(&self) -> [PathBuf; 2] {
        [
            self.common.path().join("config"),
            self.git_dir.path().join("config.worktree"),
        ]
    }

    /// The repository, with what its configuration says.
    pub fn with_settings(self, named: &Path, settings: Settings) -> Result<Repo, RepoRefused> {
        let unusable = |what: String| Err(RepoRefused::Unusable(format!("{named:?} {what}")));
        if let Some(worktree) = &settings.worktree {
            let set = self.git_dir.path().join(worktree).canonicalize();
            if set.ok().as_deref() != Some(self.tree.real()) {
                return unusable("has its files in another directory (core.worktree)".into());
            }
        } else if settings.is_bare && self.git_dir.real() == self.common.real() {
            return unusable("is a bare repository: it has no working tree".into());
        }
        Ok(Repo {
            tree: self.tree,
            git_dir: self.git_dir,
            common: self.common,
            settings,
        })
    }

    fn look_at_stores(&self, named: &Path, allowed: AllowedPlaces<'_>) -> Result<(), RepoRefused> {
        let unusable = |what: String| RepoRefused::Unusable(format!("{named:?}: {what}"));
        let own = self.common.path().join("objects").canonicalize();
        let own = own.map_err(|error| unusable(format!("its objects cannot be read: {error}")))?;
        let stores = object_stores::borrowed(&own, |store| allowed.lends(store));
        let stores = stores.map_err(|refused| match refused {
            StoreRefused::NotAllowed(store) => RepoRefused::NotAllowed(format!(
                "{named:?} borrows objects from {store:?}, which is outside of the allowed \
                 repositories: allow it with --allow-repo or --readable, or copy the objects with \
                 `git repack -a -d` and remove objects/info/alternates"
            )),
            StoreRefused::Unusable(what) => unusable(what),
        })?;
        let looked = repo_files::look_below(&stores, |real| allowed.lends(real));
        looked.map_err(|refused| match refused {
            LinkRefused::LeadsOut(name) => RepoRefused::NotAllowed(format!(
                "{named:?} borrows objects by a link, {name}, which leads out of the allowed \
                 repositories: replace the link by what it stands for, or allow that with \
                 --allow-repo or --readable"
            )),
            LinkRefused::Unreadable(what) => unusable(what),
        })
    }
}

/// Looks whether a link within the git directories leads out of what is allowed.
fn look_at_links(
    named: &Path,
    git_dir: &HeldDir,
    common: &HeldDir,
    allowed: AllowedPlaces<'_>,
) -> Result<(), RepoRefused> {
    let git_dirs = [git_dir.path(), common.path()];
    let folders = ["objects", "refs", "reftable"].map(|name| common.path().join(name));
    let looked = git_dirs
        .iter()
        .try_for_each(|dir| repo_files::look_at_names(dir, |real| allowed.has(real)))
        .and_then(|()| repo_files::look_below(&folders, |real| allowed.lends(real)));
    looked.map_err(|refused| match refused {
        LinkRefused::LeadsOut(name) => RepoRefused::NotAllowed(format!(
            "{named:?} has a link in its git directory, {name}, which leads out of the allowed \
             repositories: replace the link by what it stands for, or allow that with --allow-repo"
        )),
        LinkRefused::Unreadable(what) => RepoRefused::Unusable(format!("{named:?}: {what}")),
    })
}

impl Repo {
    /// Looks once more whether a link leads out: others may have put one in meanwhile.
    pub fn look_again(&self, allowed: AllowedPlaces<'_>) -> Result<(), String> {
        let looked = look_at_links(self.real(), &self.git_dir, &self.common, allowed);
        looked.map_err(|refused| match refused {
            RepoRefused::NotAllowed(what) | RepoRefused::Unusable(what) => what,
        })
    }

    /// The top of the working tree.
    pub fn tree(&self) -> &HeldDir {
        &self.tree
    }

    /// What belongs to the working tree.
    pub fn git_dir(&self) -> &HeldDir {
        &self.git_dir
    }

    /// What all working trees share.
    pub fn common(&self) -> &HeldDir {
        &self.common
    }

    /// What its configuration says of what it means.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The path of the working tree, as it was when the repository was opened.
    pub fn real(&self) -> &Path {
        self.tree.real()
    }
}

fn find_tree(named: &Path, allowed: AllowedPlaces<'_>) -> Result<HeldDir, RepoRefused> {
    match HeldDir::open(named) {
        Ok(tree) if allowed.has(tree.real()) => Ok(tree),
        // Whether something is there is told only of places that are allowed.
        Err(error) if allowed.has(named) => {
            let what = format!("{named:?} cannot be found: {error}");
            Err(RepoRefused::Unusable(what))
        }
        _ => Err(RepoRefused::NotAllowed(format!(
            "{named:?} is not among the allowed repositories: {}",
            allowed.names()
        ))),
    }
}

/// The git directory of a working tree: `.git`, or where that leads.
fn find_git_dir(
    named: &Path,
    tree: &HeldDir,
    allowed: AllowedPlaces<'_>,
) -> Result<HeldDir, RepoRefused> {
    let unusable = |what: String| RepoRefused::Unusable(format!("{named:?} {what}"));
    let dot_git = tree.path().join(".git");
    match dot_git.metadata() {
        Ok(metadata) if metadata.is_dir() => return open_allowed(named, tree, &dot_git, allowed),
        Ok(_) => {}
        Err(_) if dot_git.symlink_metadata().is_ok() => return Err(leads_out(named, allowed)),
        Err(_) => return Err(unusable(not_a_top(tree))),
    }
    let text = repo_files::read_small(&dot_git)
        .map_err(|error| unusable(format!("has a .git that cannot be read: {error}")))?;
    let target = text
        .as_deref()
        .and_then(|text| text.strip_prefix(b"gitdir: "));
    let target = target.map(repo_files::path_of_line);
    let target = target.ok_or_else(|| unusable("has a .git that names no git directory".into()))?;
    open_allowed(named, tree, &tree.path().join(target), allowed)
}

/// What several working trees share, which is the git directory itself if there is but one.
fn find_common(
    named: &Path,
    git_dir: &HeldDir,
    allowed: AllowedPlaces<'_>,
) -> Result<HeldDir, RepoRefused> {
    let file = git_dir.path().join("commondir");
    let text = repo_files::read_small(&file).map_err(|error| {
        RepoRefused::Unusable(format!("{named:?}: commondir cannot be read: {error}"))
    })?;
    let target = text.as_deref().map(repo_files::path_of_line);
    let path = git_dir.path().join(target.unwrap_or_default());
    open_allowed(named, git_dir, &path, allowed)
}

/// Opens a directory that a repository names, if it is allowed. Whether it exists is told only of
/// places that are.
fn open_allowed(
    named: &Path,
    from: &HeldDir,
    path: &Path,
    allowed: AllowedPlaces<'_>,
) -> Result<HeldDir, RepoRefused> {
    match HeldDir::open(path) {
        Ok(dir) if allowed.has(dir.real()) => Ok(dir),
        Err(error) if path.starts_with(from.path()) && !has_parent(path) => {
            let what = format!("the git directory of {named:?} cannot be opened: {error}");
            Err(RepoRefused::Unusable(what))
        }
        _ => Err(leads_out(named, allowed)),
    }
}

fn has_parent(path: &Path) -> bool {
    path.components()
        .any(|part| part == std::path::Component::ParentDir)
}

fn leads_out(named: &Path, allowed: AllowedPlaces<'_>) -> RepoRefused {
    RepoRefused::NotAllowed(format!(
        "the git directory of {named:?} lies outside of the allowed repositories ({}): allow the \
         repository that it belongs to with --allow-repo as well",
        allowed.names()
    ))
}

/// What is said of a directory without a `.git`.
fn not_a_top(tree: &HeldDir) -> String {
    let above = tree.real().ancestors().skip(1);
    let top = above.into_iter().find(|dir| dir.join(".git").exists());
    let is_bare = ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| tree.path().join(name).exists());
    match top {
        _ if is_bare => "is a bare repository: it has no working tree".into(),
        Some(top) => format!("is not the top of a repository, which is {}", top.display()),
        None => "is not a git repository".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_held_whatever_takes_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let (inside, outside) = (root.join("in/repo"), root.join("out"));
        fs::create_dir_all(&inside).expect("a directory");
        fs::create_dir_all(&outside).expect("a directory");
        symlink(&inside, root.join("link")).expect("a link");
        let held = HeldDir::open(&root.join("link")).expect("a directory");
        assert_eq!(held.real(), inside);

        fs::rename(&inside, root.join("moved")).expect("a move");
        symlink(&outside, &inside).expect("a link");
        fs::write(held.path().join("seen"), "").expect("a file");
        assert!(root.join("moved/seen").exists() && !outside.join("seen").exists());
        assert_eq!(held.real_now().expect("a path"), root.join("moved"));
        assert!(HeldDir::open(&root.join("moved/seen")).is_err());
    }

    /// Attack 14: what `.git` leads to is what a task reads and writes.
    #[test]
    fn no_detour_leads_to_a_repository_that_is_not_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let (private, inside) = (root.join("private/.git"), root.join("in"));
        for store in ["objects/info", "objects/ab", "refs"] {
            fs::create_dir_all(private.join(store)).expect("a directory");
        }
        fs::create_dir_all(&inside).expect("a directory");
        let outside = private.to_str().expect("a path");
        let allow = [inside.clone()];
        let find = |name: &str, readable: &[PathBuf]| {
            let allowed = AllowedPlaces {
                repositories: &allow,
                readable,
            };
            RepoPlace::find(&inside.join(name), allowed)
        };
        let with_git_dir = |name: &str| {
            let git_dir = inside.join(name).join(".git");
            fs::create_dir_all(git_dir.join("objects/info")).expect("a directory");
            fs::create_dir_all(git_dir.join("refs")).expect("a directory");
            git_dir
        };
        with_git_dir("plain");
        assert!(find("plain", &[]).is_ok());

        fs::create_dir_all(inside.join("file")).expect("a directory");
        fs::write(inside.join("file/.git"), format!("gitdir: {outside}\n")).expect("a file");
        fs::create_dir_all(inside.join("up")).expect("a directory");
        fs::write(inside.join("up/.git"), "gitdir: ../../private/.git").expect("a file");
        fs::create_dir_all(inside.join("link")).expect("a directory");
        symlink(&private, inside.join("link/.git")).expect("a link");
        fs::create_dir_all(inside.join("dangling")).expect("a directory");
        symlink(root.join("absent"), inside.join("dangling/.git")).expect("a link");
        fs::write(with_git_dir("common").join("commondir"), outside).expect("a file");
        for (name, place) in [
            ("objects", "objects/ab"),
            ("refs", "refs/x"),
            ("head", "HEAD"),
        ] {
            let link = with_git_dir(name).join(place);
            symlink(private.join("objects/ab"), link).expect("a link");
        }
        for (name, line) in [
            ("alternates", format!("{outside}/objects")),
            (
                "dots",
                format!("{}/x/../../private/.git/objects", inside.display()),
            ),
            ("relative", "../../../../private/.git/objects".into()),
        ] {
            let list = with_git_dir(name).join("objects/info/alternates");
            fs::write(list, format!("# borrowed\n\n{line}\n")).expect("a file");
        }
        for name in [
            "file",
            "up",
            "link",
            "dangling",
            "common",
            "objects",
            "refs",
            "head",
            "alternates",
            "dots",
            "relative",
        ] {
            match find(name, &[]) {
                Err(RepoRefused::NotAllowed(what)) => assert!(what.contains("--allow-repo")),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert!(find("alternates", &[private.join("objects")]).is_ok());
        let quoted = with_git_dir("quoted").join("objects/info/alternates");
        fs::write(quoted, format!("\"{outside}/objects\"\n")).expect("a file");
        assert!(matches!(find("quoted", &[]), Err(RepoRefused::Unusable(_))));
    }
}
