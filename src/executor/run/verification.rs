//! Holds the result of a task to its gates: each of them runs on a checkout of its own, of the very
//! commit that is the result.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::job::Job;
use crate::executor::policy::Policy;
use crate::executor::run::counts::{CountFault, Counts};
use crate::executor::run::gate_inputs::GateInputs;
use crate::executor::run::gate_output::GateOutput;
use crate::executor::run::gates::Gate;
use crate::executor::run::git::Git;
use crate::executor::run::listing::{listed, shown};
use crate::executor::run::program::{ProgramDirs, Role, walled};
use crate::executor::run::supervisor::Ending;
use crate::executor::run::verdict::{Findings, GateRun, GateStop};
use crate::executor::schedule::queue::StopReason;
use crate::executor::schedule::task::Task;
use crate::executor::store::log::TaskLog;
use crate::executor::store::removal::remove_tree;
use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::{GATE_TAIL_BYTES_MAX, GATES_LOG_BYTES_MAX};
use crate::wire::writer::start_of;

/// What a sentence shows of the name of a gate.
const GATE_SHOWN_BYTES_MAX: usize = 64;

impl Job<'_> {
    /// Takes note of what the task changed of what decides its gates. It stands before other
    /// warnings, so that many of these cannot push it out of the record.
    pub(super) fn note_touched_gates(&mut self) {
        let gates = wanted_gates(&self.daemon.policy, &self.task);
        let touched = touched(&gates, &self.findings);
        let marked = touched.iter().map(|what| format!("gate_touched: {what}"));
        self.findings.warnings.splice(..0, marked);
        self.findings.gates_touched = touched;
    }

    /// Runs the gates on a checkout of the very commit that is the result.
    pub(super) fn run_gates(&mut self) {
        let policy: &Policy = &self.daemon.policy;
        let gates = wanted_gates(policy, &self.task);
        if gates.is_empty() {
            return;
        }
        let commit = self
            .findings
            .head
            .clone()
            .unwrap_or_else(|| self.task.base.clone());
        let stop = self.stop;
        let is_stopped = move || stop.reason().is_some();
        let git = self.daemon.git.bounded(stop.deadline, &is_stopped);
        let log = TaskLog::create(self.path("gates"), GATES_LOG_BYTES_MAX);
        let mut log = match log {
            Ok(log) => log,
            Err(error) => return self.fail("gates_failed", error.to_string()),
        };
        let ran = gates
            .into_iter()
            .try_for_each(|gate| self.run_gate_unless_stopped(gate, &git, &commit, &mut log));
        self.note_log_fault("gates", &log);
        if let Err(what) = ran {
            self.fail("gates_failed", what);
        }
    }

    /// Runs a gate on a checkout of its own, which no other program has touched.
    fn run_gate_unless_stopped(
        &mut self,
        gate: &Gate,
        git: &Git<'_>,
        commit: &str,
        log: &mut TaskLog,
    ) -> Result<(), String> {
        if self.is_stopped() {
            return Ok(());
        }
        let root = self.path("gate");
        let dirs = ProgramDirs {
            dir: root.join("check"),
            home: root.join("home"),
            tmp: root.join("tmp"),
        };
        let fresh = remove_tree(&root).and_then(|()| dirs.make());
        fresh.map_err(|error| format!("{}: {error}", root.display()))?;
        let repo = self.repo.as_ref().ok_or("there is no repository")?;
        let lender = git.lender_of(repo)?.with_objects_of(&self.path("git"));
        let lender = lender.with_refs(&self.refs);
        let lender = lender.for_programs_within(self.daemon.policy.walls);
        git.clone_at(&lender, &dirs.dir, commit)?;
        self.clear_report(gate, &dirs.dir)?;
        let run = self.run_gate(gate, &dirs, log);
        let run = run.map_err(|error| error.to_string())?;
        self.findings.gates.extend(run);
        Ok(())
    }

    /// Takes what the result has in the place of a gate's report out of the gate's checkout.
    fn clear_report(&mut self, gate: &Gate, checkout: &Path) -> Result<(), String> {
        let Counts::Report(path) = &gate.counts else {
            return Ok(());
        };
        let cleared = path.clear(checkout);
        if cleared.map_err(|error| format!("{path} in the checkout of a gate: {error}"))? {
            let name = start_of(&gate.name, GATE_SHOWN_BYTES_MAX);
            let what = "is in the result, and was removed before the gate ran";
            let told = format!("the report of the gate {name} {what}: {path}");
            self.findings.warnings.push(told);
        }
        Ok(())
    }

    /// Runs a gate. None if the task was cancelled before the gate had started.
    fn run_gate(
        &mut self,
        gate: &Gate,
        dirs: &ProgramDirs,
        log: &mut TaskLog,
    ) -> io::Result<Option<GateRun>> {
        let argv: Vec<OsString> = gate.argv.iter().map(OsString::from).collect();
        let program = walled(
            &self.daemon.policy,
            dirs,
            &Role {
                argv: &argv,
                pass_env: &gate.pass_env,
                writable: &[],
                network: false,
                stdin: "/dev/null".into(),
            },
        );
        log.append(format!("== {}: {}\n", gate.name, gate.argv.join(" ")).as_bytes());
        self.say(&gate.name, "");
        let timeout = Instant::now() + Duration::from_secs(gate.timeout_s);
        let mut output = GateOutput::new(&gate.counts);
        let until = timeout.min(self.stop.deadline);
        let mut ended = self.accompany(&program, &gate.name, until, None, log, |chunk| {
            output.hear(chunk);
        })?;
        let stopped = ended.stopped;
        ended.stopped = stopped.or_else(|| self.look_at_the_disk(self.left_bytes, until));
        self.note_left_behind(&format!("gate {}", gate.name), &ended);
        // A gate that is out of time fails; a task that is ends with it.
        let of_task =
            |stop: &StopReason| *stop != StopReason::Deadline || self.stop.deadline <= timeout;
        self.findings.stopped = ended.stopped.filter(of_task);
        if let (Some(_), Ending::NotStarted(_)) = (ended.stopped, &ended.ending) {
            return Ok(None);
        }
        let (printed, tail) = output.finish();
        let tests = match &gate.counts {
            Counts::Report(path) => {
                let counted = path.count(&dirs.dir).map(Some);
                counted.map_err(|fault| CountFault::Report(path.clone(), fault))
            }
            _ => printed,
        };
        let stop = match self.findings.stopped {
            Some(reason) => Some(GateStop::WithTask(reason)),
            None => ended.stopped.map(|_| GateStop::Timeout(gate.timeout_s)),
        };
        let refusal = GateRun::refusal_of(&ended.ending, stop, &tests);
        let word = refusal.as_deref().unwrap_or("passed");
        log.append(format!("== {}: {word}\n", gate.name).as_bytes());
        Ok(Some(GateRun {
            name: gate.name.clone(),
            argv: gate.argv.clone(),
            ending: ended.ending,
            duration_ms: ended.duration_ms,
            tests: tests.ok().flatten(),
            refusal,
            tail: Sanitized::new(&tail, GATE_TAIL_BYTES_MAX).to_string(),
        }))
    }
}

/// The gates that a task is held to.
fn wanted_gates<'p>(policy: &'p Policy, task: &Task) -> Vec<&'p Gate> {
    let names = task.content.gates();
    names.iter().filter_map(|name| policy.gate(name)).collect()
}

/// Which gates are no longer what the operator knew, since the task changed what decides them.
fn touched(gates: &[&Gate], findings: &Findings) -> Vec<String> {
    let mut sentences = Vec::new();
    for gate in gates {
        let inputs = GateInputs::of(gate);
        let changes = findings.judged().iter();
        let changed = changes.filter(|change| inputs.has_changed(change));
        let changed: Vec<String> = changed.map(|change| shown(&change.path)).collect();
        if !changed.is_empty() {
            let (paths, name) = (listed(&changed), start_of(&gate.name, GATE_SHOWN_BYTES_MAX));
            let what = format!("the gate {name} runs what the task changed: {paths}");
            sentences.push(what);
        }
    }
    sentences
}
