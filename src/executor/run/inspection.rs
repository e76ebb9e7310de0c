//! What a result holds that a person should know of before it is opened: what is run then, links
//! that lead out, and other addresses of submodules.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use crate::executor::run::git::Git;
use crate::executor::run::git_dirs::GitDirs;
use crate::executor::run::index_file::{LINK, MODULE};
use crate::executor::run::link_names::LinkNames;
use crate::executor::run::links::{FollowedLink, Links, Way, dirs_above};
use crate::executor::run::listing::shown;
use crate::executor::run::make_targets::{MakeTargets, is_makefile};
use crate::executor::run::own_dir::{INDEX, index_at};
use crate::executor::run::result::{FileChange, LINK_MODE, TreeEntry, blob, name_of, text_of};
use crate::executor::run::run_when_opened::{effect_of, holds_attributes, opener};
use crate::executor::run::scope;
use crate::limits::RESULT_LINKS_MAX;

/// What is said of attributes that were not read.
const NOT_READ: &str = "git, too long to be read";

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

/// The tree of a result, as far as a person should know of it.
#[derive(Debug, Default)]
pub struct ResultTree {
    /// Its symbolic links.
    links: Vec<TreeLink>,
    /// Those that the task has removed or changed, as they were.
    links_before: Vec<TreeLink>,
    /// Directories above what the task has added that were not there.
    new_dirs: HashSet<String>,
    /// Its submodules.
    modules: Vec<String>,
    /// Its directories that git takes for repositories.
    repositories: Vec<String>,
    /// What its makefiles name, without those that the task has changed.
    made: MakeTargets,
    /// There is more than was read.
    is_cut: bool,
}

/// A symbolic link of a tree.
#[derive(Debug)]
struct TreeLink {
    path: String,
    object: String,
    is_changed: bool,
    /// Where it leads. None if that was not read.
    target: Option<String>,
}

/// Links that lead out of a repository.
#[derive(Debug, Default)]
pub struct LinksOut {
    /// Where they are.
    pub paths: Vec<String>,
    /// How many links are not known to stay inside, since there are too many.
    pub unknown: usize,
}

impl ResultTree {
    /// Leaves as many links as are followed beside those that the task has changed, which come
    /// first: however many these are, they push none of the others out.
    fn bound_links(&mut self, changed: usize) {
        let most = changed + RESULT_LINKS_MAX;
        self.is_cut |= self.links.len() > most;
        self.links.truncate(most);
    }

    /// The uppermost directory above a path that was not there.
    pub fn new_dir(&self, path: &str) -> Option<String> {
        let mut dirs = dirs_above(path);
        dirs.find(|dir| self.new_dirs.contains(*dir))
            .map(str::to_owned)
    }

    /// Whether a makefile may take what a task has added for made.
    pub fn may_be_made(&self, change: &FileChange) -> bool {
        let new_dir = change.new_dir.as_deref();
        self.made.may_hold(&change.path, new_dir)
    }

    /// Other names of a changed path, by which the links that were there lead to it.
    pub fn names_of_base(&self) -> LinkNames<'_> {
        let kept = self.links.iter().filter(|link| !link.is_changed);
        let links = kept.chain(&self.links_before);
        let links: Vec<(&str, &str)> = links
            .filter_map(|link| Some((link.path.as_str(), link.target.as_deref()?)))
            .collect();
        LinkNames::new(&links)
    }

    /// Submodules in whose directories the agent has left something, a repository of its own
    /// included. Git takes none of it: what stands for a submodule is the number of a commit.
    pub fn filled_modules(&self, work: &Path, nested: &[String]) -> Vec<String> {
        let is_filled = |path: &&String| {
            let has_repository = nested.contains(path);
            let mut entries = fs::read_dir(work.join(path)).into_iter().flatten();
            has_repository || entries.next().is_some()
        };
        self.modules.iter().filter(is_filled).cloned().collect()
    }

    /// Symbolic links that lead out of the repository since the task has changed one of them: by
    /// their text, or when they are followed together with the others of the tree.
    pub fn links_out(&self) -> LinksOut {
        match self.links.iter().any(|link| link.is_changed) {
            true => leading_out(&self.links, usize::from(self.is_cut)),
            false => LinksOut::default(),
        }
    }
}

impl Git<'_> {
    /// What of a result is run, or obeyed, when somebody opens it: each path, with
    /// who reads it.
    pub fn run_when_opened(
        &self,
        result: ResultPlace<'_>,
        tree: &ResultTree,
    ) -> Result<Vec<String>, String> {
        let there = result.changes.iter().filter(|change| change.status != "D");
        let (attributes, others): (Vec<_>, Vec<_>) =
            there.partition(|change| holds_attributes(&change.path));
        let objects: Vec<&str> = attributes
            .iter()
            .map(|change| change.after.object.as_str())
            .collect();
        let texts = self.blobs(result.git_dir, &objects)?;
        let attributes = attributes.iter().zip(texts).filter_map(|(change, text)| {
            let what = text.map_or(Some(NOT_READ), |text| effect_of(&text))?;
            Some(format!("{} ({what})", shown(&change.path)))
        });
        let known = others.iter().filter_map(|change| {
            let who = change.names().find_map(opener)?;
            Some(format!("{} ({who})", shown(&change.path)))
        });
        let changed = |dir: &&String| {
            let mut others = others.iter();
            others.any(|change| Path::new(&change.path).starts_with(dir))
        };
        let repositories = tree.repositories.iter().filter(changed);
        let repositories = repositories.map(|dir| format!("{} (git, as a repository)", shown(dir)));
        Ok(attributes.chain(repositories).chain(known).collect())
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

    /// Reads the tree of a result: once, for all that is told of it.
    pub fn result_tree(&self, result: ResultPlace<'_>) -> Result<ResultTree, String> {
        let links_of = |entry: fn(&FileChange) -> &TreeEntry| {
            let links = result
                .changes
                .iter()
                .map(move |change| (change, entry(change)));
            let links = links.filter(|(_, entry)| entry.mode == LINK_MODE);
            links.map(|(change, entry)| TreeLink::new(change.path.clone(), &entry.object, true))
        };
        let mut tree = ResultTree {
            links: links_of(|change| &change.after).collect(),
            links_before: links_of(|change| &change.before).collect(),
            ..ResultTree::default()
        };
        let changed = tree.links.len();
        let makefiles = list_tree(result, &mut tree)?;
        let objects: Vec<&str> = makefiles
            .iter()
            .map(|(_, object)| object.as_str())
            .collect();
        let texts = self.blobs(result.git_dir, &objects)?;
        for ((path, _), text) in makefiles.iter().zip(texts) {
            tree.made.add(path, text.as_deref());
        }
        tree.bound_links(changed);
        // Those that were there have room of their own, whatever the task has added.
        let (new, kept) = tree.links.split_at_mut(changed);
        let were_there = kept.iter_mut().chain(&mut tree.links_before);
        self.read_targets(result.git_dir, were_there.collect())?;
        self.read_targets(result.git_dir, new.iter_mut().collect())?;
        Ok(tree)
    }

    /// Reads where links lead.
    fn read_targets(&self, git_dir: &Path, links: Vec<&mut TreeLink>) -> Result<(), String> {
        let objects: Vec<&str> = links.iter().map(|link| link.object.as_str()).collect();
        let targets = self.blobs(git_dir, &objects)?;
        for (link, target) in links.into_iter().zip(targets) {
            link.target = target.map(|target| name_of(&target));
        }
        Ok(())
    }

    /// The contents of blobs, in their order. None stands for one that is beyond the bound of git's
    /// output.
    fn blobs(&self, git_dir: &Path, objects: &[&str]) -> Result<Vec<Option<Vec<u8>>>, String> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let command = self.cat_file(git_dir, "--batch", objects)?;
        let printed = self.run_cut(command)?.stdout;
        let mut rest = printed.as_slice();
        let blobs = objects.iter().map(|_| blob(&mut rest).map(<[u8]>::to_vec));
        Ok(blobs.collect())
    }
}

/// Goes through the files of a result: adds the links that the task has not changed, and the
/// directories that git takes for repositories. Tells the paths and the objects of makefiles,
/// if the task has added something. The index by which the result was made has all of them.
fn list_tree(
    result: ResultPlace<'_>,
    tree: &mut ResultTree,
) -> Result<Vec<(String, String)>, String> {
    let index = index_at(&result.git_dir.join(INDEX), result.head.len() / 2);
    let index = index.ok_or("the index of the result has more than is worked with")?;
    let changes = result.changes.iter();
    let changed: HashSet<&str> = changes.map(|change| change.path.as_str()).collect();
    let mut new_dirs = NewDirs::of(result.changes);
    let adds = result.changes.iter().any(|change| change.status == "A");
    let mut makefiles = Vec::new();
    let mut git_dirs = GitDirs::default();
    for entry in &index {
        git_dirs.see(&entry.path);
        let path = text_of(&entry.path);
        if changed.contains(&path[..]) {
            let module = (entry.mode == MODULE).then(|| path.into_owned());
            tree.modules.extend(module);
            continue;
        }
        new_dirs.see_old(&path);
        match entry.mode {
            MODULE => tree.modules.push(path.into_owned()),
            LINK => {
                if is_makefile(&path) {
                    tree.made.add(&path, Some(b""));
                }
                let object = entry.object.to_string();
                tree.links
                    .push(TreeLink::new(path.into_owned(), &object, false));
            }
            _ if adds && is_makefile(&path) => {
                makefiles.push((path.into_owned(), entry.object.to_string()));
            }
            _ => {}
        }
    }
    tree.new_dirs = new_dirs.0.into_iter().map(str::to_owned).collect();
    tree.repositories = git_dirs.found();
    Ok(makefiles)
}

impl TreeLink {
    fn new(path: String, object: &str, is_changed: bool) -> Self {
        Self {
            path,
            object: object.to_owned(),
            is_changed,
            target: None,
        }
    }
}

/// The directories above what a task has added, as long as nothing is seen in them that was there.
struct NewDirs<'c>(HashSet<&'c str>);

impl<'c> NewDirs<'c> {
    fn of(changes: &'c [FileChange]) -> Self {
        let is_added = |change: &&FileChange| change.status == "A";
        let added = changes.iter().filter(is_added);
        let mut dirs = Self(added.flat_map(|change| dirs_above(&change.path)).collect());
        let others = changes.iter().filter(|change| !is_added(change));
        others.for_each(|change| dirs.see_old(&change.path));
        dirs
    }

    fn see_old(&mut self, path: &str) {
        if !self.0.is_empty() {
            for dir in dirs_above(path) {
                self.0.remove(dir);
            }
        }
    }
}

/// Which links lead out. What is beyond a bound is not known to stay inside.
fn leading_out(links: &[TreeLink], over: usize) -> LinksOut {
    let mut tree = Links::new(links.iter().filter_map(|link| {
        let link_of = |target| FollowedLink {
            target,
            is_changed: link.is_changed,
        };
        Some((link.path.as_str(), link_of(link.target.as_deref()?)))
    }));
    let mut out = LinksOut {
        unknown: over,
        ..LinksOut::default()
    };
    for link in links {
        let leaves = |text: &str| link.is_changed && scope::leaves(&link.path, text);
        let is_out = match link.target.as_deref() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A gate's file was rewritten behind a link that was not looked at any more.
    #[test]
    fn no_number_of_new_links_hides_one_that_was_there() {
        let link = |path: String, is_changed| TreeLink {
            target: Some("real".to_owned()),
            ..TreeLink::new(path, "", is_changed)
        };
        let mut tree = ResultTree::default();
        let changed = RESULT_LINKS_MAX + 1;
        tree.links = (0..changed)
            .map(|at| link(format!("a/{at}"), true))
            .collect();
        tree.links.push(link("tests".to_owned(), false));
        tree.bound_links(changed);
        assert_eq!(tree.names_of_base().of("real/t.sh"), ["tests/t.sh"]);
        assert!(!tree.is_cut);
        let kept = (0..changed).map(|at| link(format!("b/{at}"), false));
        tree.links.extend(kept);
        tree.bound_links(changed);
        assert_eq!(tree.links.len(), changed + RESULT_LINKS_MAX);
        assert!(tree.is_cut);
    }
}
