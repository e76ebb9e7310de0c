//! The life of one task, from its turn to its end: clone, agent, result, gates, record.

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::collection::CHECKOUT_INDEX;
use super::workspace;
use crate::executor::daemon::Daemon;
use crate::executor::run::claim::Claim;
use crate::executor::run::disk::DiskWatch;
use crate::executor::run::git::base_ref;
use crate::executor::run::listing::listed;
use crate::executor::run::own_dir::UserRefs;
use crate::executor::run::program::{ProgramDirs, Role, lend, walled};
use crate::executor::run::repo::Repo;
use crate::executor::run::supervisor::{Ending, Program, ProgramEnd, SupervisedProgram};
use crate::executor::run::verdict::{Findings, Verdict};
use crate::executor::run::watchman::Watchman;
use crate::executor::schedule::queue::StopReason;
use crate::executor::schedule::task::Task;
use crate::executor::store::log::TaskLog;
use crate::executor::store::state_dir::{TRANSIENT, WORK};
use crate::executor::store::waste::Waste;
use crate::executor::walls::standing::Walls;
use crate::executor_protocol::state::{Outcome, TaskState};
use crate::limits::{
    EXECUTOR_MESSAGE_BYTES_MAX, GIT_TIMEOUT_S, TASK_COLLECT_S_MIN, TASK_KILL_MS,
    TASK_LOG_BYTES_MAX, TASK_SWEEP_MS,
};
use crate::task::id::TaskId;

const OUTCOME_FILE: &str = "outcome.json";
const UNCOMMITTED: &str =
    "the working tree has changes that are in no commit, which the task did not see";

/// What may end a task before it ends by itself.
#[derive(Clone, Copy)]
pub(super) struct Stop<'s> {
    pub(super) daemon: &'s Daemon,
    pub(super) id: TaskId,
    pub(super) deadline: Instant,
}

impl Stop<'_> {
    pub(super) fn is_cancelled(self) -> bool {
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
    pub(super) collect_limit: Duration,
    /// What the agent did could not be collected.
    is_lost: bool,
    /// The user's branches and tags, as they were when the clone was made.
    pub(super) refs: UserRefs,
    /// Submodules in whose directories the agent has left something.
    pub(super) filled_modules: Vec<String>,
    /// What the agent has left on the disk takes, once that is known to stay.
    pub(super) left_bytes: Option<u64>,
    /// What is removed when the end of the task has been told.
    waste: Waste,
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
            refs: UserRefs::default(),
            filled_modules: Vec::new(),
            left_bytes: None,
            waste: Waste::of_task(&daemon.git.scratch, task.id),
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

    pub(super) fn is_short_of_disk(&self) -> bool {
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
        self.refs = git.refs_of(&repo)?;
        let lender = git.lender_of(&repo)?.with_refs(&self.refs);
        let lender = lender.for_programs_within(self.daemon.policy.walls);
        let work = self.path("work");
        // To look for uncommitted changes takes as long as a part of the checkout.
        let uncommitted = std::thread::scope(|scope| {
            let look = || git.has_uncommitted(&repo);
            let looked = std::thread::Builder::new().spawn_scoped(scope, look);
            git.clone_at(&lender, &work, &self.task.base)?;
            let looked = match looked {
                Ok(looking) => looking.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // There is time for it now.
                Err(_) => look(),
            };
            Ok::<_, String>(looked)
        })?;
        // What the agent touches is known by this index, which the agent does not see.
        let checkout = self.path(CHECKOUT_INDEX);
        std::fs::copy(work.join(".git/index"), &checkout)
            .and_then(|_| workspace::make_younger(&checkout))
            .map_err(|error| format!("the index of the clone: {error}"))?;
        let (policy, dirs) = (&self.daemon.policy, self.agent_dirs());
        let made = dirs
            .make()
            .and_then(|()| lend(&policy.credentials, &dirs.home));
        made.map_err(|error| error.to_string())?;
        let uncommitted = match uncommitted {
            Ok(false) => None,
            Ok(true) => Some(UNCOMMITTED.to_owned()),
            // The task works on the commit, whatever this is.
            Err(what) => Some(format!("the working tree cannot be looked at: {what}")),
        };
        self.findings.warnings.extend(uncommitted);
        let unread = &repo.settings().unread;
        if !unread.is_empty() {
            let what = format!(
                "the repository's configuration names files that are not read, by which your git \
                 may take other files or convert them: {}",
                listed(unread)
            );
            self.findings.warnings.push(what);
        }
        let waited = workspace::wait_for_later_times(&checkout, &self.path("time"));
        waited.map_err(|error| format!("the time of the disk: {error}"))?;
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

    pub(super) fn agent_dirs(&self) -> ProgramDirs {
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
        let mut disk = DiskWatch::new(&self.dir, disk_bounds, self.left_bytes, Instant::now());
        let heard_at = std::cell::Cell::new(Instant::now());
        Ok(guarded.accompany(
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
        ))
    }

    /// Looks at what the task takes of the disk when a program has ended: why the task is to end,
    /// if it is. What the agent has left takes `left_bytes`, if that is known.
    pub(super) fn look_at_the_disk(
        &self,
        left_bytes: Option<u64>,
        deadline: Instant,
    ) -> Option<StopReason> {
        let is_wanted = || self.daemon.stop_of(self.task.id).is_none() && Instant::now() < deadline;
        let bounds = self.daemon.policy.config.disk_bounds;
        DiskWatch::new(&self.dir, bounds, left_bytes, Instant::now()).look_at_the_end(is_wanted)
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
        self.waste.remove();
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
            let lender = git.lender_of(repo)?.with_refs(&self.refs);
            git.keep_as_clone(&lender, &own, &work, &self.task.base)?;
        }
        Ok(())
    }

    /// Puts what nobody needs any more out of the way, and keeps the rest.
    fn clean_up(&mut self, has_succeeded: bool) {
        if has_succeeded || self.is_short_of_disk() {
            // The result is in the user's repository, or the files are to make room.
            self.waste.put(&self.path(WORK));
        } else {
            let kept = self.keep_work();
            self.findings.warnings.extend(kept.err());
            self.tell_where_the_work_is();
        }
        TRANSIENT
            .iter()
            .for_each(|name| self.waste.put(&self.dir.join(name)));
        if has_succeeded || self.findings.result_ref.is_some() {
            let soon = Instant::now() + Duration::from_millis(TASK_KILL_MS);
            let git = self.daemon.git.bounded(soon, &|| false);
            let unpinned = self.repo.iter().map(|repo| git.unpin(repo, self.task.id));
            let kept = base_ref(self.task.id);
            let told = |what| format!("{kept} was to be removed, and is still there: {what}");
            let told = unpinned.filter_map(Result::err).map(told);
            self.findings.warnings.extend(told);
        }
    }
}

fn end_of_bytes(chunk: &[u8]) -> &[u8] {
    &chunk[chunk.len().saturating_sub(8 * EXECUTOR_MESSAGE_BYTES_MAX)..]
}
