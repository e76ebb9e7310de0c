//! The life of one task, from its turn to its end: clone, agent, result, gates, record.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{git, scope, workspace};
use crate::executor::daemon::Daemon;
use crate::executor::run::claim::Claim;
use crate::executor::run::disk::DiskWatch;
use crate::executor::run::git::Git;
use crate::executor::run::inspection::{ResultPlace, ResultTree};
use crate::executor::run::listing::{listed, shown};
use crate::executor::run::own_dir::Lender;
use crate::executor::run::program::{ProgramDirs, Role, lend, walled};
use crate::executor::run::repo::Repo;
use crate::executor::run::result::{FileChange, diffstat};
use crate::executor::run::supervisor::{Ending, Program, ProgramEnd, SupervisedProgram};
use crate::executor::run::verdict::{Findings, Verdict};
use crate::executor::run::watchman::Watchman;
use crate::executor::schedule::queue::StopReason;
use crate::executor::schedule::task::Task;
use crate::executor::store::log::TaskLog;
use crate::executor::store::removal::remove_tree;
use crate::executor::walls::standing::Walls;
use crate::executor_protocol::sanitize::Sanitized;
use crate::executor_protocol::state::{Outcome, TaskState};
use crate::limits::{
    EXECUTOR_MESSAGE_BYTES_MAX, GIT_TIMEOUT_S, TASK_COLLECT_S_MIN, TASK_KILL_MS,
    TASK_LOG_BYTES_MAX, TASK_SWEEP_MS,
};
use crate::task::id::TaskId;

const OUTCOME_FILE: &str = "outcome.json";
const UNCOMMITTED: &str =
    "the working tree has changes that are in no commit, which the task did not see";

/// Why a collection ends early.
const CANCELLED: &str = "the task was cancelled";

/// What may end a task before it ends by itself.
#[derive(Clone, Copy)]
pub(super) struct Stop<'s> {
    pub(super) daemon: &'s Daemon,
    pub(super) id: TaskId,
    pub(super) deadline: Instant,
}

impl Stop<'_> {
    fn is_cancelled(self) -> bool {
        self.daemon.stop_of(self.id) == Some(StopReason::Cancel)
    }

    pub(super) fn reason(self) -> Option<StopReason> {
        let is_late = Instant::now() > self.deadline;
        let deadline = is_late.then_some(StopReason::Deadline);
        self.daemon.stop_of(self.id).or(deadline)
    }
}

/// A task in the hands of a worker.
pub(super) struct Job<'s> {
    pub(super) daemon: &'s Daemon,
    pub(super) task: Arc<Task>,
    pub(super) dir: PathBuf,
    /// The repository, once it is there.
    pub(super) repo: Option<Repo>,
    /// Watches the clone from the start of the agent on.
    watchman: Option<Watchman>,
    pub(super) stop: Stop<'s>,
    /// How long the work of an agent that ran out of time may be collected for.
    collect_limit: Duration,
    /// What the agent did could not be collected.
    is_lost: bool,
    /// Where the agent has left repositories in its clone.
    nested: Vec<String>,
    /// Submodules in whose directories the agent has left something.
    filled_modules: Vec<String>,
    pub(super) findings: Findings,
}

/// Does a task whose turn it is.
pub fn run(daemon: &Daemon, task: &Arc<Task>) {
    let mut job = Job::new(daemon, task);
    job.work();
    job.end();
}

impl<'s> Job<'s> {
    fn new(daemon: &'s Daemon, task: &Arc<Task>) -> Self {
        let config = &daemon.policy.config;
        let deadline_s = task
            .deadline_s
            .unwrap_or(config.deadline_s)
            .min(config.deadline_s);
        Self {
            daemon,
            task: Arc::clone(task),
            dir: daemon.journal.state_dir().dir(task.id),
            repo: None,
            watchman: None,
            stop: Stop {
                daemon,
                id: task.id,
                deadline: Instant::now() + Duration::from_secs(deadline_s),
            },
            collect_limit: Duration::from_secs(deadline_s.clamp(TASK_COLLECT_S_MIN, GIT_TIMEOUT_S)),
            is_lost: false,
            nested: Vec::new(),
            filled_modules: Vec::new(),
            findings: Findings {
                base: task.base.clone(),
                strict_scope: config.strict_scope,
                strict_gates: config.strict_gates,
                refuse_surprises: config.refuse_surprises,
                ..Findings::default()
            },
        }
    }

    /// Does what there is to do, and looks before each step whether the task is to end.
    fn work(&mut self) {
        if self.daemon.policy.config.disk_bounds.is_full(&self.dir) {
            self.findings.stopped = Some(StopReason::DiskFull);
            return;
        }
        if let Err(what) = self.prepare() {
            return self.fail("workspace_failed", what);
        }
        if self.is_stopped() {
            return;
        }
        self.run_agent();
        self.daemon.advance(self.task.id, TaskState::Verifying);
        if self.is_short_of_disk() {
            // A commit of the files would take as much again.
            return;
        }
        // What an agent did that ran out of time is collected all the same.
        let collected = self.collect();
        self.is_lost = collected.is_err();
        if let Err(what) = collected
            && self.findings.fault.is_none()
        {
            self.fail("result_failed", what);
        }
        self.note_touched_gates();
        if !self.is_stopped() && self.findings.before_gates().is_none() {
            self.run_gates();
        }
    }

    /// Tells where the work of an agent is that is in no result, if the work was kept.
    fn tell_where_the_work_is(&mut self) {
        let work = self.path("work");
        let has_no_result = self.is_lost || self.findings.fault.is_some();
        let has_run = !matches!(self.findings.agent, None | Some((Ending::NotStarted(_), _)));
        if has_no_result && has_run && workspace::is_plain_dir(&work) {
            self.findings.warnings.push(workspace::is_in(&work));
        }
    }

    /// Whether the task is to end, of which note is taken.
    pub(super) fn is_stopped(&mut self) -> bool {
        if self.findings.stopped.is_none() {
            self.findings.stopped = self.stop.reason();
        }
        self.findings.stopped.is_some()
    }

    fn is_short_of_disk(&self) -> bool {
        let stopped = self.findings.stopped;
        matches!(stopped, Some(StopReason::Disk | StopReason::DiskFull))
    }

    /// Takes note of what kept the executor from doing its part, unless the task was to end. What
    /// was delivered is taken back: a result of which the executor knows nothing more is none.
    pub(super) fn fail(&mut self, code: &'static str, what: String) {
        if self.is_stopped() {
            return;
        }
        self.findings.fault = Some((code, what));
        let Some(result_ref) = self.findings.result_ref.take() else {
            return;
        };
        self.findings.head = None;
        let taken_back = self.repo.as_ref().map(|repo| self.take_back(repo));
        if let Some(Err(what)) = taken_back {
            let what = format!("{result_ref} could not be taken back: {what}");
            self.findings.warnings.push(what);
        }
    }

    pub(super) fn say(&self, phase: &str, message: &str) {
        self.daemon
            .change(self.task.id, |entry| entry.say(phase, message));
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn prepare(&mut self) -> Result<(), String> {
        self.say("clone", "");
        let stop = self.stop;
        let is_stopped = move || stop.reason().is_some();
        let git = self.daemon.git.bounded(stop.deadline, &is_stopped);
        // It was looked at when the task was accepted, and has to be what it was.
        let repo = git.open_again(&self.task.repo_real, self.daemon.policy.allowed());
        let repo = repo.map_err(|refused| refused.to_string())?;
        let lender = Lender::of_repo(&repo)?;
        git.clone_at(&lender, &self.path("work"), &self.task.base)?;
        let (policy, dirs) = (&self.daemon.policy, self.agent_dirs());
        let made = dirs
            .make()
            .and_then(|()| lend(&policy.credentials, &dirs.home));
        made.map_err(|error| error.to_string())?;
        let uncommitted = match git.has_uncommitted(&repo) {
            Ok(false) => None,
            Ok(true) => Some(UNCOMMITTED.to_owned()),
            // The task works on the commit, whatever this is.
            Err(what) => Some(format!("the working tree cannot be looked at: {what}")),
        };
        self.findings.warnings.extend(uncommitted);
        self.repo = Some(repo);
        let walls = self.daemon.policy.walls;
        self.findings.walls = walls.name();
        self.findings.reach = Some(policy.reach);
        if walls == Walls::Neither {
            let what = "the task ran without a sandbox, which was switched off: its programs could \
                        do all that you can";
            self.findings.warnings.push(what.to_owned());
        }
        Ok(())
    }

    fn agent_dirs(&self) -> ProgramDirs {
        ProgramDirs {
            dir: self.path("work"),
            home: self.path("home"),
            tmp: self.path("tmp"),
        }
    }

    fn run_agent(&mut self) {
        let (policy, dirs) = (&self.daemon.policy, self.agent_dirs());
        let outcome = dirs.home.join(OUTCOME_FILE);
        let lent = policy.credentials.iter().map(|(_, real)| real.clone());
        let writable: Vec<_> = policy.config.writable.iter().cloned().chain(lent).collect();
        let mut program = walled(
            policy,
            &dirs,
            &Role {
                argv: &policy.agent,
                pass_env: &policy.config.pass_env,
                writable: &writable,
                network: true,
                stdin: self.path("goal"),
            },
        );
        let id = self.task.id.to_string();
        program.env.push(("ROCCO_TASK_ID".into(), id.into()));
        let named = outcome.clone().into();
        program.env.push(("ROCCO_OUTCOME".into(), named));
        let watched = Watchman::over(&dirs.dir);
        let ended = watched.and_then(|watchman| {
            self.watchman = Some(watchman);
            self.run_logged(&program)
        });
        match ended {
            Ok(ended) => {
                self.findings.stopped = ended.stopped;
                self.note_left_behind("agent", &ended);
                self.findings.agent = Some((ended.ending, ended.duration_ms));
            }
            Err(error) => {
                let ending = Ending::NotStarted(error.to_string());
                self.findings.agent = Some((ending, 0));
            }
        }
        match Claim::from_file(&outcome) {
            Ok(claim) => self.findings.claim = claim,
            Err(_) => {
                let what = "the outcome that the agent wrote is not understood, and does not count";
                self.findings.warnings.push(what.into());
            }
        }
    }

    fn run_logged(&mut self, agent: &Program) -> io::Result<ProgramEnd> {
        let mut log = TaskLog::create(self.path("log"), TASK_LOG_BYTES_MAX)?;
        self.say("agent", "");
        let silence = Some(Duration::from_secs(self.daemon.policy.config.silence_s));
        let deadline = self.stop.deadline;
        let ended = self.accompany(agent, "agent", deadline, silence, &mut log, |_| {});
        self.note_log_fault("agent", &log);
        ended
    }

    pub(super) fn note_log_fault(&mut self, whose: &str, log: &TaskLog) {
        if let Some(error) = log.fault() {
            let what = format!("the log of the {whose} is not whole: {error}");
            self.findings.warnings.push(what);
        }
    }

    pub(super) fn note_left_behind(&mut self, who: &str, ended: &ProgramEnd) {
        if ended.left_behind > 0 && ended.stopped.is_none() {
            let what = format!("the {who} left {} processes behind, which were killed", {
                ended.left_behind
            });
            self.findings.warnings.push(what);
        }
    }

    /// Runs a program to its end, or to that of its time.
    pub(super) fn accompany(
        &self,
        program: &Program,
        phase: &str,
        deadline: Instant,
        silence: Option<Duration>,
        log: &mut TaskLog,
        mut hear: impl FnMut(&[u8]),
    ) -> io::Result<ProgramEnd> {
        let policy = &self.daemon.policy;
        let sweep = Duration::from_millis(TASK_SWEEP_MS);
        let group = policy.cgroups.as_ref();
        let group = group.map(|groups| groups.make(policy.config.program_bounds, sweep));
        let mut guarded = SupervisedProgram::prepare(program, group.transpose()?)?;
        // A task that is cancelled before this instant does not start the program, and one that is
        // cancelled after it has it ended.
        let id = self.task.id;
        if let Err(reason) = self.daemon.unless_stopped(id, || guarded.start()) {
            return Ok(guarded.discard(reason));
        }
        let disk_bounds = self.daemon.policy.config.disk_bounds;
        let mut disk = DiskWatch::new(&self.dir, disk_bounds, Instant::now());
        let heard_at = std::cell::Cell::new(Instant::now());
        let mut ended = guarded.accompany(
            |chunk| {
                heard_at.set(Instant::now());
                log.append(chunk);
                hear(chunk);
                let text = String::from_utf8_lossy(end_of_bytes(chunk)).into_owned();
                let line = text.lines().rev().find(|line| !line.trim().is_empty());
                self.daemon.hear(self.task.id, phase, line);
            },
            || {
                let now = Instant::now();
                let silent = silence.is_some_and(|bound| now - heard_at.get() > bound);
                let cancelled = self.daemon.stop_of(self.task.id);
                cancelled
                    .or((now > deadline).then_some(StopReason::Deadline))
                    .or(silent.then_some(StopReason::Silence))
                    .or_else(|| disk.look(now))
            },
        );
        if ended.stopped.is_none() {
            let is_wanted = || self.daemon.stop_of(id).is_none() && Instant::now() < deadline;
            ended.stopped = disk.look_at_the_end(is_wanted);
        }
        Ok(ended)
    }

    /// Takes in what the agent made of the files, with a git directory that it has never seen. Only
    /// a cancellation ends this early: an agent that ran out of time has its work collected, for as
    /// long again as its deadline was at most.
    fn collect(&mut self) -> Result<(), String> {
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
        let (work, own) = (self.path("work"), self.path("git"));
        if !workspace::is_plain_dir(&work) {
            return Err("the agent has put something else in the place of its clone".into());
        }
        self.nested = workspace::prepare_for_git(&work, &self.path("nested"), &is_cancelled)?;
        let repo = self.repo.take().ok_or("there is no repository")?;
        let collected = self.take_in(&git, &repo, &work, &own);
        self.repo = Some(repo);
        self.tell_of_inner_repositories();
        collected
    }

    /// Tells what became of repositories within the clone, and of the files in submodules.
    fn tell_of_inner_repositories(&mut self) {
        let modules = &self.filled_modules;
        let taken = self.nested.iter().filter(|path| !modules.contains(path));
        let taken: Vec<String> = taken.map(|path| shown(path)).collect();
        let lost: Vec<String> = modules.iter().map(|path| shown(path)).collect();
        let taken_told = "repositories of their own, whose files were taken as files";
        let lost_told = "directories of submodules, where the agent has left something that is not \
                         part of the result";
        let told = [told(lost_told, &lost), told(taken_told, &taken)];
        self.findings.warnings.extend(told.into_iter().flatten());
    }

    /// Fails a task whose files hold more than they may.
    fn bound_result(&mut self, bytes: u64) -> Result<(), String> {
        let bytes_max = self.daemon.policy.config.result_bytes_max;
        if bytes <= bytes_max {
            return Ok(());
        }
        let what = format!(
            "the files that the task has added or changed hold {bytes} bytes, and may hold \
             {bytes_max} (--result-size)"
        );
        self.refuse_result("result_exceeded", what)
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
        work: &Path,
        own: &Path,
    ) -> Result<(), String> {
        let task = Arc::clone(&self.task);
        git.make_own_dir(&Lender::of_repo(repo)?, own)?;
        let head = git.commit_files(own, work, &task.base, &commit_message(&task))?;
        // Where nothing was changed, the result is what was there.
        let end = head.as_deref().unwrap_or(&task.base).to_owned();
        let mut changes = git.changes(own, &task.base, &end)?;
        let mut with_earlier = match task.origin == task.base {
            true => None,
            false => Some(git.changes(own, &task.origin, &end)?),
        };
        self.bound_result(git.bytes_of(own, &changes)?)?;
        let judged = with_earlier.as_mut().unwrap_or(&mut changes);
        let tree = name_by_links(git, own, &end, judged)?;
        self.filled_modules = tree.filled_modules(work, &self.nested);
        self.inspect(
            git,
            &tree,
            ResultPlace {
                git_dir: own,
                head: &end,
                changes: judged,
            },
        )?;
        if let Some(files) = &task.content.files {
            let paths = judged.iter().map(|change| &change.path);
            let outside = paths.filter(|path| !scope::covers(files, path));
            self.findings.out_of_scope = outside.cloned().collect();
        }
        self.tell_of_earlier_changes(&changes, with_earlier.as_deref().unwrap_or_default());
        self.findings.with_earlier = with_earlier;
        let Some(head) = head else { return Ok(()) };
        git.diff(own, &task.base, &head, &self.path("diff.patch"))?;
        self.findings.diffstat = diffstat(&changes);
        let same_modules = changes.iter().all(|change| change.path != ".gitmodules");
        let pack = own.join("result.pack");
        git.pack(own, &task.base, &head, &pack)?;
        self.look_for_room(repo, &pack)?;
        repo.look_again(self.daemon.policy.allowed())?;
        git.unpack(repo, &pack, same_modules)?;
        self.deliver(git, repo, &head)?;
        self.findings.result_ref = Some(git::result_ref(task.id));
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

    fn take_back(&self, repo: &Repo) -> Result<(), String> {
        let soon = Instant::now() + Duration::from_millis(TASK_KILL_MS);
        let git = self.daemon.git.bounded(soon, &|| false);
        git.remove_result(repo, self.task.id)
    }

    /// Tells how it ended, and removes what nobody needs any more.
    fn end(mut self) {
        let verdict = self.verdict();
        self.clean_up(verdict.outcome == Outcome::Succeeded);
        if let Some(watchman) = self.watchman.take() {
            watchman.dismiss();
        }
        // A task that is cancelled before its record stands is a cancelled one.
        let mut has_ended = false;
        while !has_ended {
            let verdict = self.verdict();
            let record = self.findings.record(&verdict, &self.dir.to_string_lossy());
            has_ended = self.daemon.finish(self.task.id, verdict.outcome, &record);
        }
    }

    fn verdict(&mut self) -> Verdict {
        if self.stop.is_cancelled() {
            self.findings.stopped = Some(StopReason::Cancel);
        }
        self.findings.verdict()
    }

    /// Keeps the clone of a task that did not succeed, so that somebody may look at it: the files
    /// are the agent's, and the git directory is the executor's own, which no agent has seen.
    fn keep_work(&self) -> Result<(), String> {
        let (work, own) = (self.path("work"), self.path("git"));
        if !work.exists() {
            return Ok(());
        }
        workspace::disarm(&work).map_err(|error| workspace::not_kept(&error))?;
        if own.exists() {
            let soon = Instant::now() + Duration::from_millis(TASK_KILL_MS);
            let git = self.daemon.git.bounded(soon, &|| false);
            let repo = self.repo.as_ref().ok_or("there is no repository")?;
            git.keep_as_clone(&Lender::of_repo(repo)?, &own, &work, &self.task.base)?;
        }
        Ok(())
    }

    fn clean_up(&mut self, has_succeeded: bool) {
        if has_succeeded || self.is_short_of_disk() {
            // The result is in the user's repository, or the files are to make room; what cannot be
            // removed goes with the record.
            let _ = remove_tree(&self.path("work"));
        } else {
            let kept = self.keep_work();
            self.findings.warnings.extend(kept.err());
            self.tell_where_the_work_is();
        }
        self.daemon.journal.state_dir().clear(self.task.id);
        if has_succeeded || self.findings.result_ref.is_some() {
            let soon = Instant::now() + Duration::from_millis(TASK_KILL_MS);
            let git = self.daemon.git.bounded(soon, &|| false);
            let unpinned = self.repo.iter().map(|repo| git.unpin(repo, self.task.id));
            self.findings
                .warnings
                .extend(unpinned.filter_map(Result::err));
        }
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

fn end_of_bytes(chunk: &[u8]) -> &[u8] {
    &chunk[chunk.len().saturating_sub(8 * EXECUTOR_MESSAGE_BYTES_MAX)..]
}
