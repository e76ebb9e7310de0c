//! Which paths a task may change, and which lead out of its repository. No I/O but where said.

use std::path::{Component, Path};

/// Whether a changed path is in a declared scope: it is named there, or lies in a directory that
/// is.
pub fn covers(files: &[String], path: &str) -> bool {
    files.iter().any(|file| {
        let mut declared = plain(file);
        let mut changed = plain(path);
        declared.all(|component| changed.next() == Some(component))
    })
}

/// The components that count: neither `.` nor a slash at the end does.
fn plain(path: &str) -> impl Iterator<Item = Component<'_>> {
    Path::new(path)
        .components()
        .filter(|component| *component != Component::CurDir)
}

/// Whether a symbolic link at a path of the repository leads out of it, by its text.
pub fn leaves(link: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut depth = Path::new(link).components().count().saturating_sub(1);
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    false
}

/// Whether a file of a repository, or the nearest directory above it that exists, lies in it when
/// every symbolic link is resolved. This looks at the disk.
pub fn lies_within(repo: &Path, file: &str) -> bool {
    let mut path = repo.join(file);
    loop {
        match path.canonicalize() {
            Ok(real) => return real.starts_with(repo),
            // A link that leads nowhere may lead anywhere.
            Err(_) if path.symlink_metadata().is_ok() => return false,
            Err(_) => {}
        }
        if !path.pop() {
            return false;
        }
    }
}

/// Whether an entry of a scope is meant for more files than that of its name: no file is called
/// so. This looks at the disk.
pub fn is_pattern(repo: &Path, file: &str) -> bool {
    file.contains(['*', '?']) && repo.join(file).symlink_metadata().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_what_it_names_and_what_lies_below() {
        let files: Vec<String> = ["src/a.rs", "docs/", "./x"].map(str::to_owned).into();
        for (path, covered) in [
            ("src/a.rs", true),
            ("src/a.rs.bak", false),
            ("src/b.rs", false),
            ("docs/deep/x.md", true),
            ("docs2/x.md", false),
            ("x", true),
        ] {
            assert_eq!(covers(&files, path), covered, "{path}");
        }
        assert!(!covers(&[], "a"));
        assert!(covers(&[".".to_owned()], "any/thing"));
    }

    #[test]
    fn a_link_is_followed_by_its_text() {
        for (link, target, out) in [
            ("a", "b", false),
            ("a", "../b", true),
            ("d/a", "../b", false),
            ("d/a", "../../b", true),
            ("d/a", "x/../../b", false),
            ("a", "/etc/passwd", true),
        ] {
            assert_eq!(leaves(link, target), out, "{link} -> {target}");
        }
    }
}
