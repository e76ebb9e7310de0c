//! What a result holds that a person should know of before it is opened: what is run then, links
//! that lead out, and other addresses of submodules.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use crate::executor::run::git::Git;
use crate::executor::run::links::{FollowedLink, Links, Way};
use crate::executor::run::result::{FileChange, LINK_MODE, blob, name_of, terminated};
use crate::executor::run::run_when_opened::{holds_attributes, names_a_filter, opener};
use crate::executor::run::scope;
use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::{RECORD_PATH_BYTES_MAX, RESULT_LINKS_MAX};

/// Which result is looked at, and where.
#[derive(Debug, Clone, Copy)]
pub struct ResultPlace<'r> {
    /// The git directory that holds the commit.
    pub git_dir: &'r Path,
    /// The commit.
    pub head: &'r str,
    /// What it changes.
    pub changes: &'r [FileChange],
}

/// A symbolic link of a tree.
#[derive(Debug)]
struct TreeLink {
    path: String,
    object: String,
    is_changed: bool,
}

/// Links that lead out of a repository.
#[derive(Debug, Default)]
pub struct LinksOut {
    /// Where they are.
    pub paths: Vec<String>,
    /// How many links are not known to stay inside, since there are too many.
    pub unknown: usize,
}

impl Git<'_> {
    /// What of a result is run, or obeyed, when somebody opens it: each path, with
    /// who reads it.
    pub fn run_when_opened(&self, result: ResultPlace<'_>) -> Result<Vec<String>, String> {
        let there = result.changes.iter().filter(|change| change.status != "D");
        let (attributes, others): (Vec<_>, Vec<_>) =
            there.partition(|change| holds_attributes(&change.path));
        let objects: Vec<&str> = attributes
            .iter()
            .map(|change| change.after.object.as_str())
            .collect();
        let texts = self.blobs(result.git_dir, &objects)?;
        let filters = attributes.iter().zip(texts);
        let filters = filters.filter(|(_, text)| text.as_deref().is_none_or(names_a_filter));
        let filters =
            filters.map(|(change, _)| format!("{} (filters of git)", shown(&change.path)));
        let known = others.iter().filter_map(|change| {
            Some(format!(
                "{} ({})",
                shown(&change.path),
                opener(&change.path)?
            ))
        });
        Ok(filters.chain(known).collect())
    }

    /// Submodules of a result whose address is new or another one: each with its address.
    pub fn foreign_modules(&self, result: ResultPlace<'_>) -> Vec<String> {
        let mut changes = result.changes.iter();
        let Some(change) = changes.find(|change| change.path == ".gitmodules") else {
            return Vec::new();
        };
        // A file that is not there has no addresses, and what git does not read is refused later.
        let addresses = |object: &str| {
            self.module_addresses(result.git_dir, object)
                .unwrap_or_default()
        };
        let before = addresses(&change.before.object);
        let after = addresses(&change.after.object);
        let foreign = after
            .into_iter()
            .filter(|(name, address)| before.get(name) != Some(address));
        foreign
            .map(|(name, address)| format!("{} from {}", shown(&name), shown(&address)))
            .collect()
    }

    fn module_addresses(
        &self,
        git_dir: &Path,
        object: &str,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut command = self.command(git_dir, git_dir);
        command.args(["config", "--blob", object, "--no-includes", "--list", "-z"]);
        let listed = String::from_utf8_lossy(&self.run(command)?).into_owned();
        let entries = listed.split_terminator('\0');
        let entries = entries.filter_map(|entry| entry.split_once('\n'));
        let addresses = entries.filter_map(|(key, value)| {
            let name = key.strip_prefix("submodule.")?.strip_suffix(".url")?;
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(addresses.collect())
    }

    /// Symbolic links that lead out of the repository since the task has changed one of them: by
    /// their text, or when they are followed together with the others of the tree.
    pub fn links_out(&self, result: ResultPlace<'_>) -> Result<LinksOut, String> {
        let mut links = changed_links(result.changes);
        if links.is_empty() {
            return Ok(LinksOut::default());
        }
        let changed = links.len();
        let (others, is_cut) = self.other_links(result)?;
        links.extend(others);
        let over = usize::from(is_cut) + links.len().saturating_sub(RESULT_LINKS_MAX.max(changed));
        links.truncate(RESULT_LINKS_MAX.max(changed));
        let objects: Vec<&str> = links.iter().map(|link| link.object.as_str()).collect();
        let blobs = self.blobs(result.git_dir, &objects)?;
        let texts = blobs
            .into_iter()
            .map(|blob| blob.map(|blob| name_of(&blob)));
        let texts: Vec<Option<String>> = texts.collect();
        Ok(leading_out(&links, &texts, over))
    }

    /// The links of the result's tree that the task has not changed, and whether there are more.
    fn other_links(&self, result: ResultPlace<'_>) -> Result<(Vec<TreeLink>, bool), String> {
        let mut command = self.command(result.git_dir, result.git_dir);
        command.args(["ls-tree", "-r", "-z", "--full-tree", result.head]);
        let output = self.run_cut(command)?;
        let changed: HashSet<&str> = result
            .changes
            .iter()
            .map(|change| change.path.as_str())
            .collect();
        let links = terminated(&output.stdout).filter_map(|entry| {
            let (words, path) = entry.split_at_checked(memchr::memchr(b'\t', entry)?)?;
            let path = name_of(&path[1..]);
            let words = std::str::from_utf8(words).ok()?;
            let mut words = words.split(' ');
            let is_link = words.next() == Some(LINK_MODE) && !changed.contains(path.as_str());
            is_link.then(|| TreeLink {
                path,
                object: words.nth(1).unwrap_or_default().to_owned(),
                is_changed: false,
            })
        });
        Ok((links.collect(), output.is_cut))
    }

    /// The contents of blobs, in their order. All are asked for at once, by a list in a file; none
    /// stands for one that is beyond the bound of git's output.
    fn blobs(&self, git_dir: &Path, objects: &[&str]) -> Result<Vec<Option<Vec<u8>>>, String> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let list = git_dir.join("blobs");
        let lines = objects.join("\n") + "\n";
        let listed = fs::write(&list, lines).and_then(|()| fs::File::open(&list));
        let mut command = self.command(git_dir, git_dir);
        command.args(["cat-file", "--batch"]);
        command.stdin(listed.map_err(|error| error.to_string())?);
        let printed = self.run_cut(command)?.stdout;
        let mut rest = printed.as_slice();
        let blobs = objects.iter().map(|_| blob(&mut rest).map(<[u8]>::to_vec));
        Ok(blobs.collect())
    }
}

/// A name as a sentence has it.
fn shown(name: &str) -> Sanitized<'_> {
    Sanitized::name(name, RECORD_PATH_BYTES_MAX)
}

fn changed_links(changes: &[FileChange]) -> Vec<TreeLink> {
    let links = changes
        .iter()
        .filter(|change| change.after.mode == LINK_MODE);
    links
        .map(|change| TreeLink {
            path: change.path.clone(),
            object: change.after.object.clone(),
            is_changed: true,
        })
        .collect()
}

/// Which links lead out. What is beyond a bound is not known to stay inside.
fn leading_out(links: &[TreeLink], texts: &[Option<String>], over: usize) -> LinksOut {
    let known = links.iter().zip(texts);
    let mut tree = Links::new(known.filter_map(|(link, text)| {
        let link_of = |target| FollowedLink {
            target,
            is_changed: link.is_changed,
        };
        Some((link.path.as_str(), link_of(text.as_deref()?)))
    }));
    let mut out = LinksOut {
        unknown: over,
        ..LinksOut::default()
    };
    for (link, text) in links.iter().zip(texts) {
        let leaves = |text: &str| link.is_changed && scope::leaves(&link.path, text);
        let is_out = match text.as_deref() {
            None => {
                out.unknown += usize::from(!link.is_changed);
                link.is_changed
            }
            Some(text) if leaves(text) => true,
            Some(_) => match tree.way(&link.path) {
                Way::Outside { by_the_task } => by_the_task,
                Way::Inside => false,
                Way::Unknown => {
                    out.unknown += 1;
                    false
                }
            },
        };
        if is_out {
            out.paths.push(link.path.clone());
        }
    }
    out
}
