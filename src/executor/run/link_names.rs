//! Other names of what a task changes: those by which symbolic links lead there. No I/O.
//!
//! A gate that runs `tests/t.sh` runs `real/t.sh` where `tests` is a link, and an editor that reads
//! `.vscode` reads the directory that it leads to. A link that the task itself has made or changed
//! is told by its own path, so that the links that were there are the ones to look at.

use std::collections::{HashMap, HashSet};

use crate::executor::run::links::{FollowedLink, Links, dirs_above};
use crate::limits::{CHANGE_NAMES_MAX, PATH_BYTES_MAX};

/// The links of a tree, by where they lead.
#[derive(Debug)]
pub struct LinkNames<'t> {
    /// Links by where their way ends.
    by_end: HashMap<String, Vec<&'t str>>,
    /// Links by whatever turns them elsewhere when it changes: another link on their way, or a
    /// directory above their end.
    by_turn: HashMap<String, Vec<&'t str>>,
}

impl<'t> LinkNames<'t> {
    /// Follows all links of a tree, which are given by their paths and texts.
    pub fn new(links: &[(&'t str, &'t str)]) -> Self {
        let link = |target| FollowedLink {
            target,
            is_changed: false,
        };
        let mut tree = Links::new(links.iter().map(|(path, target)| (*path, link(*target))));
        let (mut by_end, mut by_turn) = (HashMap::new(), HashMap::new());
        for (path, _) in links {
            let add = |map: &mut HashMap<String, Vec<&'t str>>, place: &str| {
                map.entry(place.to_owned()).or_default().push(path);
            };
            tree.follow(path, |place, is_end| match is_end {
                false if place == *path => {}
                false => add(&mut by_turn, place),
                true => {
                    add(&mut by_end, place);
                    dirs_above(place).for_each(|dir| add(&mut by_turn, dir));
                }
            });
        }
        Self { by_end, by_turn }
    }

    /// The other names of a path, as many as are looked at, the shortest ways first.
    pub fn of(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        if self.by_end.is_empty() && self.by_turn.is_empty() {
            return names;
        }
        let mut known = HashSet::from([path.to_owned()]);
        let turned = self.by_turn.get(path).into_iter().flatten();
        names.extend(turned.map(|link| (*link).to_owned()).take(CHANGE_NAMES_MAX));
        let mut next = 0;
        let mut name = path.to_owned();
        loop {
            for (dir, rest) in splits(&name) {
                for link in self.by_end.get(dir).into_iter().flatten() {
                    let other = format!("{link}{rest}");
                    let is_bounded = names.len() < CHANGE_NAMES_MAX && other.len() < PATH_BYTES_MAX;
                    if is_bounded && known.insert(other.clone()) {
                        names.push(other);
                    }
                }
            }
            match names.get(next) {
                Some(other) => name = other.clone(),
                None => return names,
            }
            next += 1;
        }
    }
}

/// A path as each directory above it, and itself, with the rest behind: the root first.
fn splits(path: &str) -> Vec<(&str, String)> {
    let inner = path.match_indices('/').map(|(at, _)| path.split_at(at));
    let inner = inner.map(|(dir, rest)| (dir, rest.to_owned()));
    let root = std::iter::once(("", format!("/{path}")));
    let whole = std::iter::once((path, String::new()));
    root.chain(inner).chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_names_of_the_links_that_lead_there() {
        let links = LinkNames::new(&[
            ("tests", "real"),
            ("linked.sh", "real/t.sh"),
            ("l2.sh", "linked.sh"),
            ("d1", "deep"),
            ("d2", "d1/er"),
            (".cargo/config.toml", "../cfg.toml"),
            ("a/link", "../real"),
            ("b", "a"),
            ("dangling", "no/such/place"),
            ("out", "/etc"),
        ]);
        for (path, wanted) in [
            (
                "real/t.sh",
                &[
                    "tests/t.sh",
                    "linked.sh",
                    "l2.sh",
                    "a/link/t.sh",
                    "b/link/t.sh",
                ][..],
            ),
            ("deep/er/x", &["d1/er/x", "d2/x"]),
            // A link on the way that leads elsewhere.
            ("d1", &["d2"]),
            ("cfg.toml", &[".cargo/config.toml"]),
            ("no", &["dangling"]),
            ("other", &[]),
        ] {
            let names = links.of(path);
            for name in wanted {
                assert!(names.iter().any(|known| known == name), "{path}: {names:?}");
            }
            assert_eq!(names.len(), wanted.len(), "{path}: {names:?}");
        }
    }

    #[test]
    fn links_to_themselves_end() {
        let links = LinkNames::new(&[("self", "."), ("again", "."), ("x", "y"), ("y", "x")]);
        assert!(links.of("a").contains(&"self/a".to_owned()));
        assert_eq!(links.of("a").len(), CHANGE_NAMES_MAX);
    }
}
