//! Symbolic links of a tree, followed within it as a system would. No I/O.
//!
//! The text of a link says only where it leads when no directory on its way is a link. Links that
//! are harmless one by one can leave the repository together: `a -> b/..` with `b -> src/deep`
//! does not, and with `b -> .` does.

use std::collections::HashMap;

use crate::executor::run::path_pattern::FoldedPath;
use crate::limits::{LINK_FOLLOWED_MAX, LINK_WALK_BYTES_MAX};

/// The links of a tree, by their paths.
#[derive(Debug)]
pub struct Links<'t> {
    targets: HashMap<&'t str, FollowedLink<'t>>,
    bytes_left: usize,
}

/// A link.
#[derive(Debug, Clone, Copy)]
pub struct FollowedLink<'t> {
    /// Where its text leads.
    pub target: &'t str,
    /// Whether the task has made it or changed it.
    pub is_changed: bool,
}

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// It stays in the repository, or leads nowhere.
    Inside,
    /// It leaves the repository.
    Outside {
        /// Whether a link that the task has changed is on the way.
        by_the_task: bool,
    },
    /// It was not followed, since the links of this tree take too long.
    Unknown,
}

impl<'t> Links<'t> {
    /// All links of a tree.
    pub fn new(links: impl IntoIterator<Item = (&'t str, FollowedLink<'t>)>) -> Self {
        Self {
            targets: links.into_iter().collect(),
            bytes_left: LINK_WALK_BYTES_MAX,
        }
    }

    /// Where a link leads, followed from its path on.
    pub fn way(&mut self, path: &'t str) -> Way {
        self.follow(path, |_, _| {})
    }

    /// Follows a link from its path on, and tells each place that the way goes through: every link,
    /// and its end if that is inside.
    pub fn follow(&mut self, path: &'t str, mut tell: impl FnMut(&str, bool)) -> Way {
        let mut place = String::new();
        let mut parts = vec![path.split('/')];
        let (mut followed, mut by_the_task) = (0, false);
        while let Some(last) = parts.last_mut() {
            let Some(part) = last.next() else {
                parts.pop();
                continue;
            };
            match self.bytes_left.checked_sub(place.len() + part.len() + 1) {
                Some(bytes_left) => self.bytes_left = bytes_left,
                None => return Way::Unknown,
            }
            match part {
                "" | "." => continue,
                ".." if place.is_empty() => return Way::Outside { by_the_task },
                ".." => {
                    place.truncate(place.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let dir_bytes = place.len();
            if !place.is_empty() {
                place.push('/');
            }
            place.push_str(part);
            if is_git_dir(part) {
                return Way::Outside { by_the_task };
            }
            let Some(link) = self.targets.get(place.as_str()) else {
                continue;
            };
            tell(&place, false);
            by_the_task |= link.is_changed;
            followed += 1;
            if followed > LINK_FOLLOWED_MAX {
                // No system follows them to their end either.
                return Way::Inside;
            }
            if link.target.starts_with('/') {
                return Way::Outside { by_the_task };
            }
            place.truncate(dir_bytes);
            parts.push(link.target.split('/'));
        }
        tell(&place, true);
        Way::Inside
    }
}

/// The directories above a path, the uppermost first.
pub fn dirs_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Whether a name leads to the repository's internals, on any file system.
fn is_git_dir(name: &str) -> bool {
    let name = FoldedPath::new(name);
    name.is_named_by(".git") || name.is_named_by("git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(links: &[(&'static str, &'static str)], path: &'static str) -> Way {
        let link = |target| FollowedLink {
            target,
            is_changed: true,
        };
        Links::new(links.iter().map(|(path, target)| (*path, link(target)))).way(path)
    }

    const OUTSIDE: Way = Way::Outside { by_the_task: true };

    #[test]
    fn links_are_followed_together() {
        for (links, path, wanted) in [
            (&[("a", "b/.."), ("b", ".")][..], "a", OUTSIDE),
            (&[("a", "b/.."), ("b", "src/deep")], "a", Way::Inside),
            (&[("a", "b/../../x"), ("b", "src/deep")], "a", Way::Inside),
            (&[("a", "b/../../x"), ("b", "src")], "a", OUTSIDE),
            (&[("d/e/a", "../b/../x"), ("d/b", "..")], "d/e/a", OUTSIDE),
            (&[("a", "b/x"), ("b", "/etc")], "a", OUTSIDE),
            (&[("a", "src/./x//y")], "a", Way::Inside),
            (&[("a", "b"), ("b", "a")], "a", Way::Inside),
            (&[("a", "a/..")], "a", Way::Inside),
            (&[("a", ".git/config")], "a", OUTSIDE),
            (&[("d/a", "../.GIT")], "d/a", OUTSIDE),
            (&[("a", "b/hooks"), ("b", "x/../.git")], "a", OUTSIDE),
            (&[("a", ".github/x")], "a", Way::Inside),
            (
                &[("a", "b/../.."), ("b", "c"), ("c", "x/y/z")],
                "a",
                Way::Inside,
            ),
        ] {
            assert_eq!(way(links, path), wanted, "{links:?}");
        }
    }

    #[test]
    fn a_way_that_was_there_is_not_of_the_task() {
        let old = |target| FollowedLink {
            target,
            is_changed: false,
        };
        let mut links = Links::new([("a", old("b/..")), ("b", old("."))]);
        assert_eq!(links.way("a"), Way::Outside { by_the_task: false });
    }

    /// Links that double their way again and again take no more than their bound.
    #[test]
    fn links_that_take_too_long_are_given_up() {
        let long = "x/../".repeat(800);
        let names: Vec<String> = (0..40).map(|number| format!("l{number}")).collect();
        let targets: Vec<String> = (1..=40)
            .map(|number| format!("{long}{}", format!("l{number}/../").repeat(9)))
            .collect();
        let link = |target| FollowedLink {
            target,
            is_changed: true,
        };
        let mut links = Links::new(
            names
                .iter()
                .zip(&targets)
                .map(|(name, target)| (name.as_str(), link(target.as_str()))),
        );
        let mut ways = (0..1_000_000).map(|_| links.way("l0"));
        assert!(ways.any(|way| way == Way::Unknown));
    }
}
