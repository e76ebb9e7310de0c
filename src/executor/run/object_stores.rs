//! The object stores that a repository borrows from (gitrepository-layout(5),
//! objects/info/alternates), found as git finds them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::executor::run::repo_files;

/// Object stores that a repository may borrow from, one after the other. Git itself follows five.
const STORES_MAX: usize = 16;

/// Why a repository cannot borrow as it wants to.
#[derive(Debug)]
pub enum StoreRefused {
    /// The operator does not allow this one.
    NotAllowed(PathBuf),
    /// A list of stores is not understood.
    Unusable(String),
}

/// The stores that one borrows from, and those that these borrow from: each by its real path, and
/// then those that a link leads to by the paths that git knows them by. A store that is not there
/// is none, and none is looked into that may not be used.
pub fn borrowed(own: &Path, may_use: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, StoreRefused> {
    let unusable = |what: String| StoreRefused::Unusable(format!("objects/info/alternates {what}"));
    let mut stores = vec![own.to_owned()];
    let mut names = Vec::new();
    let mut next = 0;
    while let Some(store) = stores.get(next).cloned() {
        next += 1;
        let list = repo_files::read_small(&store.join("info/alternates"));
        let list = list.map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let list = list.unwrap_or_default();
        let lines = list.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty() && line[0] != b'#') {
            if line[0] == b'"' {
                return Err(unusable("names a store in quotes: name it without".into()));
            }
            let named = plain(&store.join(OsStr::from_bytes(line)));
            let Ok(real) = named.canonicalize() else {
                continue;
            };
            if !may_use(&real) {
                return Err(StoreRefused::NotAllowed(named));
            }
            if named != real && !names.contains(&named) {
                names.push(named);
            }
            if !stores.contains(&real) {
                stores.push(real);
            }
        }
        if stores.len().max(names.len()) > STORES_MAX {
            return Err(unusable(format!("leads to more than {STORES_MAX} stores")));
        }
    }
    Ok(stores.into_iter().skip(1).chain(names).collect())
}

/// A path without `..`, which git takes away before it looks at the disk.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn borrowed_stores_are_followed_and_circles_end() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().canonicalize().expect("a path");
        let store = |name: &str, alternates: &str| {
            let store = root.join(name);
            fs::create_dir_all(store.join("info")).expect("a directory");
            fs::write(store.join("info/alternates"), alternates).expect("a file");
            store
        };
        let second = store("second", "../clone/.git/objects\n/no/such/store\n");
        let first = store(
            "first",
            &format!("# a comment\n../second\n{}\n", second.display()),
        );
        let own = store("clone/.git/objects", &format!("{}\n", first.display()));
        let stores = |own: &Path, may_use: &dyn Fn(&Path) -> bool| borrowed(own, may_use);
        let found = stores(&own, &|_| true).expect("stores");
        assert_eq!(found, [first.clone(), second.clone()]);
        let refused = stores(&own, &|store| store != second);
        assert!(matches!(refused, Err(StoreRefused::NotAllowed(store)) if store == second));
        std::os::unix::fs::symlink(&second, root.join("link")).expect("a link");
        let other = store("other/.git/objects", "../../../link\n");
        let found = stores(&other, &|_| true).expect("stores");
        assert_eq!(found, [second.clone(), own, first, root.join("link")]);
        assert!(stores(Path::new("/no/such/clone"), &|_| true).is_ok_and(|found| found.is_empty()));
    }

    /// Git takes `..` away by the text, and the disk may know another way.
    #[test]
    fn a_store_is_named_as_git_reads_it() {
        for (named, meant) in [("/a/../b", "/b"), ("/a/./b//c/..", "/a/b"), ("/..", "/")] {
            assert_eq!(plain(Path::new(named)), Path::new(meant));
        }
    }
}
