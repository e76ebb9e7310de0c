//! Collects what an agent did: its files become a commit, what should be known of them is found
//! out, and the commit is delivered last.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::job::Job;
use super::{git, scope, workspace};
use crate::executor::run::agent_refs::left_on_refs;
use crate::executor::run::files_taken::{FilesTaken, Intaking, NotTaken, too_large, too_many};
use crate::executor::run::git::Git;
use crate::executor::run::inspection::{ResultPlace, ResultTree};
use crate::executor::run::left_index::LeftIndex;
use crate::executor::run::listing::{listed, shown};
use crate::executor::run::repo::Repo;
use crate::executor::run::result::{FileChange, diffstat, name_of, text_of};
use crate::executor::run::secret_names::looks_secret;
use crate::executor::run::workspace::WorkingTree;
use crate::executor::schedule::task::Task;
use crate::executor::store::measurement::{Closed, Measurement};
use crate::executor::walls::standing::Walls;
use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::TASK_KILL_MS;

/// The index of the checkout, which no agent has seen, in the directory of the task.
pub(super) const CHECKOUT_INDEX: &str = "index";

/// Why a collection ends early.
const CANCELLED: &str = "the task was cancelled";
const SHORT_OF_DISK: &str = "the task was ended since the disk is short";

/// How many digits of a commit a sentence has.
const COMMIT_SHOWN_DIGITS: usize = 12;

impl Job<'_> {
    /// Takes in what the agent made of the files, with a git directory that it has never seen. Only
    /// a cancellation ends this early: an agent that ran out of time has its work collected, for as
    /// long again as its deadline was at most.
    pub(super) fn collect(&mut self) -> Result<(), String> {
        let stop = self.stop;
        let is_cancelled = move || stop.is_cancelled();
        if is_cancelled() {
            return Err(CANCELLED.into());
        }
        self.say("collect", "");
        let soon = Instant::now() + self.collect_limit;
        let git = self
            .daemon
            .git
            .bounded(soon.max(stop.deadline), &is_cancelled);
        let work = self.path("work");
        if !workspace::is_plain_dir(&work) {
            return Err("the agent has put something else in the place of its clone".into());
        }
        let left = self.left_index(soon.max(stop.deadline));
        let refs = left_on_refs(&work.join(".git"), &self.refs.packed, &self.task.base);
        let found = workspace::prepare_for_git(&work, &self.path("nested"), &is_cancelled);
        self.bound_disk(found.as_ref().ok());
        let found = found?;
        if self.is_short_of_disk() {
            // A commit of the files would take as much again.
            return Err(SHORT_OF_DISK.into());
        }
        let repo = self.repo.take().ok_or("there is no repository")?;
        let collected = self.take_in(&git, &repo, &found, &left);
        self.repo = Some(repo);
        self.tell_of_inner_repositories(&found);
        self.warn(
            "branches, tags, stashes and other refs of the agent, of whose commits the result has what \
                   the working tree had and nothing else",
            &refs,
        );
        collected
    }

    /// Looks at what the task takes when its agent has ended, which was counted where the clone was
    /// looked through to its end.
    fn bound_disk(&mut self, found: Option<&WorkingTree>) {
        let (dirs, stop) = (self.agent_dirs(), self.stop);
        let bytes_in =
            |path: &Path| Measurement::of(path, Closed::Opened).finish(&|| stop.is_cancelled());
        let left_bytes = found.map(|found| {
            let others = bytes_in(&dirs.home).saturating_add(bytes_in(&dirs.tmp));
            others.saturating_add(found.disk_bytes)
        });
        if self.findings.stopped.is_none() {
            self.findings.stopped = self.look_at_the_disk(left_bytes, self.stop.deadline);
        }
        // Without walls, every program may change all files of the task.
        let is_kept = self.daemon.policy.walls != Walls::Neither;
        self.left_bytes = left_bytes.filter(|_| is_kept);
    }

    /// Tells what became of repositories within the clone, and of the files in submodules.
    fn tell_of_inner_repositories(&mut self, found: &WorkingTree) {
        let modules = std::mem::take(&mut self.filled_modules);
        let in_module = |path: &&String| {
            let rests = modules
                .iter()
                .filter_map(|module| path.strip_prefix(module.as_str()));
            rests
                .into_iter()
                .any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let taken = found.repositories.iter();
        let taken: Vec<String> = taken.filter(|path| !in_module(path)).cloned().collect();
        let copies: Vec<String> = found.copies.iter().map(|path| name_of(path)).collect();
        self.warn(
            "directories of submodules, where the agent has left something that is not part of the \
             result",
            &modules,
        );
        self.warn(
            "repositories of their own, whose files were taken as files",
            &taken,
        );
        self.warn(
            "other working trees of the repository, which are not part of the result",
            &copies,
        );
    }

    /// Takes note of a sentence that ends in names of the agent's, if there are any.
    fn warn(&mut self, what: &str, names: &[String]) {
        let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
        self.findings.warnings.extend(told(what, &names));
    }

    /// Fails a task whose result is more than it may be.
    fn bound_result(&mut self, files: usize, bytes: u64) -> Result<(), String> {
        let config = &self.daemon.policy.config;
        let (files_max, bytes_max) = (config.result_files_max, config.result_bytes_max);
        if files > files_max {
            return self.refuse_result("result_exceeded", too_many(files, files_max));
        }
        if bytes > bytes_max {
            return self.refuse_result("result_exceeded", too_large(bytes, bytes_max));
        }
        Ok(())
    }

    /// Fails a task whose result would leave too little room in the user's repository. The objects
    /// of a pack take more where each is a file.
    fn look_for_room(&mut self, repo: &Repo, pack: &Path) -> Result<(), String> {
        let bytes = std::fs::metadata(pack)
            .map_err(|error| error.to_string())?
            .len();
        let bounds = self.daemon.policy.config.disk_bounds;
        if !bounds.is_too_full_for(&repo.common().path(), bytes.saturating_mul(2)) {
            return Ok(());
        }
        let what = format!(
            "too little is free on the file system of the repository for a result of {bytes} \
             bytes (--disk-free); nothing was written there"
        );
        self.refuse_result("disk_full", what)
    }

    /// Fails a task by a reason of its own, with which its result is collected no further.
    fn refuse_result(&mut self, code: &'static str, what: String) -> Result<(), String> {
        self.fail(code, what.clone());
        Err(what)
    }

    /// Makes a commit of the files, finds out what it changes, and delivers it last.
    fn take_in(
        &mut self,
        git: &Git<'_>,
        repo: &Repo,
        found: &WorkingTree,
        left: &LeftIndex,
    ) -> Result<(), String> {
        let task = Arc::clone(&self.task);
        let (base, own) = (&task.base, &self.path("git"));
        let taken = self.take_files(git, repo, found, left)?;
        let mut changes = match &taken.tree {
            Some(tree) => git.changes(own, base, tree)?,
            None => Vec::new(),
        };
        let tree = taken.tree.as_ref().filter(|_| !changes.is_empty());
        let message = commit_message(&task);
        let head = tree.map(|tree| git.commit_tree(own, tree, base, &message));
        let head = head.transpose()?;
        // Where nothing was changed, the result is what was there.
        let end = head.as_ref().unwrap_or(base);
        let mut with_earlier = match task.origin == *base {
            true => None,
            false => Some(git.changes(own, &task.origin, end)?),
        };
        self.bound_result(changes.len(), bytes_of(&changes, found))?;
        let judged = with_earlier.as_mut().unwrap_or(&mut changes);
        let tree = name_by_links(git, own, end, judged)?;
        self.filled_modules = tree.filled_modules(&self.path("work"), &found.repositories);
        self.inspect(
            git,
            &tree,
            ResultPlace {
                git_dir: own,
                head: end,
                changes: judged,
            },
        )?;
        if let Some(files) = &task.content.files {
            let paths = judged.iter().map(|change| &change.path);
            let outside = paths.filter(|path| !scope::covers(files, path));
            self.findings.out_of_scope = outside.cloned().collect();
        }
        self.tell_of_earlier_changes(&changes, with_earlier.as_deref().unwrap_or_default());
        self.tell_what_was_taken(&taken, &changes);
        self.findings.with_earlier = with_earlier;
        match head {
            Some(head) => self.deliver_changes(git, repo, head, changes),
            None => Ok(()),
        }
    }

    /// Takes the files of the clone into a git directory of the executor's own.
    fn take_files(
        &mut self,
        git: &Git<'_>,
        repo: &Repo,
        found: &WorkingTree,
        left: &LeftIndex,
    ) -> Result<FilesTaken, String> {
        let own = self.path("git");
        let lender = git.lender_of(repo)?;
        git.make_own_dir(&lender, &own)?;
        let config = &self.daemon.policy.config;
        let taken = git.take_files(
            Intaking {
                work: &self.path("work"),
                tree: found,
                left,
                git_dir: &own,
                index: &self.path(CHECKOUT_INDEX),
                object_bytes: self.task.base.len() / 2,
                bytes_max: config.result_bytes_max,
                files_max: config.result_files_max,
            },
            &lender,
        );
        taken.map_err(|refused| {
            let what = refused.to_string();
            if let NotTaken::TooMuch(_) = refused {
                self.fail("result_exceeded", what.clone());
            }
            what
        })
    }

    /// Tells what is not in the result that one might look for there, and what is there that one
    /// might not expect.
    fn tell_what_was_taken(&mut self, taken: &FilesTaken, changes: &[FileChange]) {
        if taken.is_index_unread {
            let what = "the index that the agent has left cannot be read: what was tracked before \
                        the task counts as tracked";
            self.findings.warnings.push(what.to_owned());
        }
        let kept = changes.iter().filter(|change| change.is_kept());
        let secret = kept.map(|change| &change.path);
        let secret: Vec<String> = secret.filter(|path| looks_secret(path)).cloned().collect();
        self.warn(
            "files in the result whose names are those of secrets",
            &secret,
        );
        let pairs = |pairs: &[(String, String)], end: usize| -> Vec<String> {
            let pairs = pairs.iter();
            let told = pairs.map(|(path, what)| {
                let what = what.get(..end).unwrap_or(what);
                format!("{} ({})", shown(path), shown(what))
            });
            told.collect()
        };
        let filtered = "files that a filter of your git would convert, and that are in the result \
                        as the agent left them";
        let modules = "submodules that now stand for a commit of the agent's choice, which may be \
                       nowhere but in the clone that it worked in";
        let sentences = [
            told(filtered, &pairs(&taken.filtered, usize::MAX)),
            told(modules, &pairs(&taken.modules, COMMIT_SHOWN_DIGITS)),
        ];
        self.findings
            .warnings
            .extend(sentences.into_iter().flatten());
        self.warn(
            "what the agent's index or commit has, and its working tree was told not to have, which \
             is not part of the result",
            &taken.absent,
        );
        self.warn(
            "files that the agent had committed or staged in another form, and that are in the \
             result as your git would add them anew, the ends of their lines included",
            &taken.unproven,
        );
        self.warn(
            "what ignore files name and is not tracked, which is not part of the result",
            &taken.ignored,
        );
    }

    /// Writes down what the result changes, and brings it into the user's repository.
    fn deliver_changes(
        &mut self,
        git: &Git<'_>,
        repo: &Repo,
        head: String,
        changes: Vec<FileChange>,
    ) -> Result<(), String> {
        let (base, own) = (&self.task.base, self.path("git"));
        git.diff(&own, base, &head, &self.path("diff.patch"))?;
        self.findings.diffstat = diffstat(&changes);
        let pack = own.join("result.pack");
        git.pack(&own, base, &head, &pack)?;
        self.look_for_room(repo, &pack)?;
        repo.look_again(self.daemon.policy.allowed())?;
        git.unpack(repo, &pack, &changes)?;
        self.deliver(git, repo, &head)?;
        self.findings.result_ref = Some(git::result_ref(self.task.id));
        self.findings.changes = changes;
        self.findings.head = Some(head);
        Ok(())
    }

    /// Takes note of what a person should know of a result before it is opened. What is run then
    /// stands before other warnings, so that many of these cannot push it out of the record.
    fn inspect(
        &mut self,
        git: &Git<'_>,
        tree: &ResultTree,
        result: ResultPlace<'_>,
    ) -> Result<(), String> {
        let opened = git.run_when_opened(result, tree)?;
        let modules = git.foreign_modules(result);
        let links = tree.links_out();
        let opened_told = "runs_when_opened: the task changed files that are run, or obeyed, when \
                           they are opened";
        let modules_told = "submodules are fetched from an address that is new";
        let links_told = "symbolic links that lead out of the repository";
        let out: Vec<String> = links.paths.iter().map(|path| shown(path)).collect();
        let first = [
            told(opened_told, &opened),
            told(modules_told, &modules),
            told(links_told, &out),
        ];
        let warnings = &mut self.findings.warnings;
        warnings.splice(..0, first.into_iter().flatten());
        if links.unknown > 0 {
            let what = "symbolic links are not known to stay in the repository: there are too many";
            warnings.push(format!("{} {what}", links.unknown));
        }
        let other = [told(modules_told, &modules), told(links_told, &out)];
        self.findings.leads_out = other.into_iter().flatten().collect();
        self.findings.run_when_opened = opened;
        Ok(())
    }

    /// Tells which changes of the tasks that this one continues come with its result.
    fn tell_of_earlier_changes(&mut self, changes: &[FileChange], with_earlier: &[FileChange]) {
        let own: HashSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let earlier = with_earlier.iter().map(|change| change.path.as_str());
        let earlier = earlier.filter(|path| !own.contains(path));
        let earlier: Vec<String> = earlier.map(shown).collect();
        let what = "files that were changed by the tasks that this one continues, and that come \
                    with its result";
        self.findings.warnings.extend(told(what, &earlier));
    }

    /// Gives the result its ref in the user's repository, unless the task is cancelled before the
    /// ref is there. Where anything fails there is none.
    fn deliver(&self, git: &Git<'_>, repo: &Repo, head: &str) -> Result<(), String> {
        let delivered = git.set_result(repo, self.task.id, head);
        if delivered.is_ok() && !self.stop.is_cancelled() {
            return delivered;
        }
        // Where it was not set, there is nothing to remove.
        let _ = self.take_back(repo);
        delivered.and_then(|()| Err(CANCELLED.into()))
    }

    pub(super) fn take_back(&self, repo: &Repo) -> Result<(), String> {
        let soon = Instant::now() + Duration::from_millis(TASK_KILL_MS);
        let git = self.daemon.git.bounded(soon, &|| false);
        git.remove_result(repo, self.task.id)
    }
}

/// Reads the tree of a result, and finds out by which names its links lead to what was changed.
fn name_by_links(
    git: &Git<'_>,
    git_dir: &Path,
    head: &str,
    changes: &mut [FileChange],
) -> Result<ResultTree, String> {
    let tree = git.result_tree(ResultPlace {
        git_dir,
        head,
        changes,
    })?;
    let names = tree.names_of_base();
    for change in changes {
        change.other_names = names.of(&change.path);
        change.new_dir = tree.new_dir(&change.path);
        change.may_be_made = change.status == "A" && tree.may_be_made(change);
    }
    Ok(tree)
}

/// What the files hold that a change adds or alters, each by its own path.
fn bytes_of(changes: &[FileChange], found: &WorkingTree) -> u64 {
    let changed: HashSet<&str> = changes.iter().map(|change| &change.path[..]).collect();
    let files = found.files.iter();
    let files = files.filter(|file| changed.contains(&text_of(&file.path)[..]));
    files.fold(0, |sum, file| sum.saturating_add(file.bytes))
}

/// A sentence of a record that ends in names. None without names.
fn told(what: &str, names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what}: {}", listed(names)))
}

/// What the commit of a result says: the first line of the goal, and the task.
fn commit_message(task: &Task) -> String {
    let mut lines = task.content.goal.lines();
    let title = lines.find(|line| !line.trim().is_empty());
    let title = Sanitized::new(title.unwrap_or_default().trim(), 72);
    format!("{title}\n\nRocco-Task: {}", task.id)
}
