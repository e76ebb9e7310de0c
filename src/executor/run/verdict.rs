//! What became of a task, judged by what the executor has seen itself. No I/O.

use crate::executor::run::claim::Claim;
use crate::executor::run::counts::{CountFault, TestCount};
use crate::executor::run::listing::{listed, shown};
use crate::executor::run::result::FileChange;
use crate::executor::run::supervisor::Ending;
use crate::executor::schedule::queue::StopReason;
use crate::executor::walls::bounds::Reach;
use crate::executor_protocol::state::Outcome;
use crate::wire::writer::start_of;

/// The signal of a program that makes a file longer than it may be.
const FILE_TOO_LONG: i32 = libc::SIGXFSZ;

/// The exit code of a shell whose program was ended by this signal. Anybody may end with it, so
/// that it proves nothing: within every wall a signal of the program itself is told as one.
const FILE_TOO_LONG_SAID: i32 = 128 + FILE_TOO_LONG;

/// A gate that ran.
#[derive(Debug, Clone)]
pub struct GateRun {
    /// Its name.
    pub name: String,
    /// What was run.
    pub argv: Vec<String>,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub duration_ms: u64,
    /// The tests that it ran, if they can be counted.
    pub tests: Option<TestCount>,
    /// Why it did not pass, if it did not.
    pub refusal: Option<String>,
    /// The end of its output.
    pub tail: String,
}

impl GateRun {
    /// Whether the exit code and the tests allow it to pass; why not otherwise.
    pub fn refusal_of(
        ending: &Ending,
        stop: Option<GateStop>,
        tests: &Result<Option<TestCount>, CountFault>,
    ) -> Option<String> {
        match (ending, tests) {
            _ if let Some(stop) = stop => Some(stop.told()),
            (Ending::Exited(0), Err(fault)) => Some(fault.to_string()),
            (Ending::Exited(0), Ok(Some(TestCount { failed: 1.., .. }))) => {
                Some("tells of tests that failed".into())
            }
            (Ending::Exited(0), Ok(Some(TestCount { passed: 0, .. }))) => {
                Some("ran no test at all".into())
            }
            (Ending::Exited(0), Ok(_)) => None,
            (Ending::Exited(code), _) => Some(exited(*code)),
            (Ending::Signalled(FILE_TOO_LONG), _) => {
                Some("was ended since it made a file longer than it may be (--file-size)".into())
            }
            (Ending::Signalled(signal), _) => Some(format!("was ended by signal {signal}")),
            (Ending::NotStarted(why), _) => Some(format!("cannot be started: {why}")),
            (Ending::Unknown, _) => Some(
                "was lost: the process that watched it was killed, and nobody saw its end".into(),
            ),
        }
    }
}

/// Why a gate was ended before it ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateStop {
    /// It ran for as long as it may, in seconds.
    Timeout(u64),
    /// Its task is to end.
    WithTask(StopReason),
}

impl GateStop {
    /// What became of the gate, behind its name.
    fn told(self) -> String {
        let reason = match self {
            Self::Timeout(timeout_s) => return format!("did not end within {timeout_s} s"),
            Self::WithTask(reason) => reason,
        };
        match reason {
            StopReason::Cancel => "was ended, since the task was cancelled",
            StopReason::Deadline => {
                "was ended, since the task had run for as long as it may (--deadline)"
            }
            StopReason::Silence => "was ended, since it printed nothing for too long (--silence)",
            StopReason::Memory => "claimed more memory than it may (--memory)",
            StopReason::Processes => {
                "failed, and could not start as many processes as it wanted (--processes)"
            }
            StopReason::Disk => {
                "was ended, since the files of the task take more of the disk than they may (--disk)"
            }
            StopReason::DiskFull => {
                "was ended, since too little is free on the file system of the state directory \
                 (--disk-free)"
            }
        }
        .to_owned()
    }
}

/// All that is known of a task when it ends.
#[derive(Debug, Default)]
pub struct Findings {
    /// Which walls stood around its programs; empty where none was started.
    pub walls: &'static str,
    /// Over what their bounds were counted; none where none was started.
    pub reach: Option<Reach>,
    /// That it was ended, and why.
    pub stopped: Option<StopReason>,
    /// How the agent ended, and after how many milliseconds.
    pub agent: Option<(Ending, u64)>,
    /// What the agent says.
    pub claim: Option<Claim>,
    /// What kept the executor itself from doing its part: a code and a sentence.
    pub fault: Option<(&'static str, String)>,
    /// Where the work started.
    pub base: String,
    /// Where it ended, if anything was changed.
    pub head: Option<String>,
    /// Under which ref it can be had.
    pub result_ref: Option<String>,
    /// How much was changed, in a line.
    pub diffstat: String,
    /// What was changed.
    pub changes: Vec<FileChange>,
    /// What was changed together with the tasks that this one continues. None if it continues none.
    pub with_earlier: Option<Vec<FileChange>>,
    /// What was changed and not declared.
    pub out_of_scope: Vec<String>,
    /// Whether that is a failure.
    pub strict_scope: bool,
    /// What was changed of what decides the gates, a sentence for each gate.
    pub gates_touched: Vec<String>,
    /// Whether that is a failure.
    pub strict_gates: bool,
    /// What was changed and is run by somebody who only opens it.
    pub run_when_opened: Vec<String>,
    /// What of it leads out of the repository: links, and addresses of submodules; a sentence each.
    pub leads_out: Vec<String>,
    /// Whether either is a failure.
    pub refuse_surprises: bool,
    /// The gates that ran.
    pub gates: Vec<GateRun>,
    /// Sentences that a person should read.
    pub warnings: Vec<String>,
}

/// How a task ended, and why it did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How it ended.
    pub outcome: Outcome,
    /// A code and a sentence.
    pub error: Option<(&'static str, String)>,
}

impl Findings {
    /// The verdict, as far as it does not depend on gates. None if they decide.
    pub fn before_gates(&self) -> Option<Verdict> {
        let failed = |code, what: String| Some(ended(Outcome::Failed, code, what));
        if let Some(reason) = self.stopped {
            return Some(stopped(reason));
        }
        if let Some((code, what)) = &self.fault {
            return failed(code, what.clone());
        }
        let claim = self.claim.clone().unwrap_or_default();
        if claim.needs_input {
            let what = "the agent cannot go on without an answer".into();
            return Some(ended(Outcome::NeedsInput, "needs_input", what));
        }
        if let Some((code, what)) = self.fault_of_agent() {
            return failed(code, what);
        }
        if self.changes.is_empty() && !claim.no_change_needed {
            let what = "the files that the agent left are those that it was given, and the agent \
                        did not say that nothing needs to be changed";
            return failed("no_changes", what.into());
        }
        if self.strict_scope && !self.out_of_scope.is_empty() {
            let paths: Vec<String> = self.out_of_scope.iter().map(|path| shown(path)).collect();
            let paths = listed(&paths);
            let what = format!("files outside of the declared scope were changed: {paths}");
            return failed("out_of_scope", what);
        }
        if self.refuse_surprises && !self.run_when_opened.is_empty() {
            let paths = listed(&self.run_when_opened);
            let what = format!("files were changed that are run when they are opened: {paths}");
            return failed("runs_when_opened", what);
        }
        if self.refuse_surprises && !self.leads_out.is_empty() {
            return failed("leads_out", self.leads_out.join("; "));
        }
        if self.strict_gates && !self.gates_touched.is_empty() {
            let what = self.gates_touched.join("; ");
            return failed("gate_touched", start_of(&what, 512).to_owned());
        }
        None
    }

    /// Why the agent did not do its part, by the way it ended.
    fn fault_of_agent(&self) -> Option<(&'static str, String)> {
        let fault = match self.agent.as_ref().map(|(ending, _)| ending) {
            Some(Ending::Exited(0)) => return None,
            Some(Ending::Signalled(FILE_TOO_LONG)) => {
                let what = "the agent was ended since it made a file longer than it may be \
                            (--file-size)";
                ("file_size_exceeded", what.into())
            }
            Some(Ending::Exited(code)) => ("agent_failed", format!("the agent {}", exited(*code))),
            Some(Ending::Signalled(signal)) => (
                "agent_failed",
                format!("the agent was ended by signal {signal}"),
            ),
            Some(Ending::NotStarted(why)) => (
                "agent_not_started",
                format!("the agent cannot be started: {why}"),
            ),
            Some(Ending::Unknown) | None => ("agent_lost", "nobody saw how the agent ended".into()),
        };
        Some(fault)
    }

    /// The verdict, when gates have run as far as they were to.
    pub fn verdict(&self) -> Verdict {
        if let Some(verdict) = self.before_gates() {
            return verdict;
        }
        let refused = self.gates.iter().find(|gate| gate.refusal.is_some());
        match refused.and_then(|gate| Some((&gate.name, gate.refusal.as_ref()?))) {
            Some((name, why)) => ended(
                Outcome::Failed,
                "gate_failed",
                format!("the gate {name} {why}"),
            ),
            None => Verdict {
                outcome: Outcome::Succeeded,
                error: None,
            },
        }
    }

    /// The changes that decide what the task is judged by.
    pub fn judged(&self) -> &[FileChange] {
        self.with_earlier.as_deref().unwrap_or(&self.changes)
    }

    /// What the gates say: `none` if there was none, so that nothing is called verified which is
    /// not.
    pub fn verification(&self) -> &'static str {
        match self.gates.iter().all(|gate| gate.refusal.is_none()) {
            _ if self.gates.is_empty() => "none",
            true => "passed",
            false => "failed",
        }
    }
}

/// What an exit code other than 0 tells.
fn exited(code: i32) -> String {
    let hint = match code {
        FILE_TOO_LONG_SAID => {
            ", as a shell does whose program made a file longer than it may be (--file-size)"
        }
        _ => "",
    };
    format!("ended with exit code {code}{hint}")
}

/// The verdict on a task that was ended.
fn stopped(reason: StopReason) -> Verdict {
    let (outcome, code, what) = match reason {
        StopReason::Cancel => {
            return Verdict {
                outcome: Outcome::Cancelled,
                error: None,
            };
        }
        StopReason::Deadline => (
            Outcome::TimedOut,
            "deadline",
            "it ran for as long as it may (--deadline)",
        ),
        StopReason::Silence => (
            Outcome::TimedOut,
            "silence",
            "its agent said nothing for too long (--silence)",
        ),
        StopReason::Memory => (
            Outcome::Failed,
            "memory_exceeded",
            "its processes claimed more memory than they may (--memory)",
        ),
        StopReason::Processes => (
            Outcome::Failed,
            "processes_exceeded",
            "it failed, and could not start as many processes as it wanted (--processes)",
        ),
        StopReason::Disk => (
            Outcome::Failed,
            "disk_exceeded",
            "its files take more of the disk than they may (--disk); its clone, and what else its \
             programs had, was removed",
        ),
        StopReason::DiskFull => (
            Outcome::Failed,
            "disk_full",
            "too little is free on the file system of the state directory (--disk-free)",
        ),
    };
    ended(outcome, code, what.to_owned())
}

fn ended(outcome: Outcome, code: &'static str, what: String) -> Verdict {
    Verdict {
        outcome,
        error: Some((code, what)),
    }
}

/// The longest end of a text that has at most so many bytes and starts between two characters.
pub fn end_of(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::run::result::TreeEntry;

    fn change(path: &str) -> FileChange {
        FileChange {
            path: path.into(),
            status: "M".into(),
            added: Some(1),
            removed: Some(0),
            before: TreeEntry::default(),
            after: TreeEntry::default(),
            other_names: Vec::new(),
            new_dir: None,
            may_be_made: false,
        }
    }

    fn gate(refusal: Option<&str>) -> GateRun {
        GateRun {
            name: "test".into(),
            argv: vec!["t".into()],
            ending: Ending::Exited(0),
            duration_ms: 1,
            tests: None,
            refusal: refusal.map(str::to_owned),
            tail: "x".repeat(5000),
        }
    }

    fn worked() -> Findings {
        Findings {
            agent: Some((Ending::Exited(0), 5)),
            changes: vec![change("a")],
            ..Findings::default()
        }
    }

    fn judged(findings: &Findings) -> (Outcome, &'static str, &'static str) {
        let verdict = findings.verdict();
        let code = verdict.error.map_or("", |(code, _)| code);
        (verdict.outcome, code, findings.verification())
    }

    #[test]
    fn success_needs_what_was_seen() {
        use Outcome::{Cancelled, Failed, NeedsInput, Succeeded, TimedOut};
        let claim = |text: &str| Claim::parse(text.as_bytes());
        assert_eq!(judged(&worked()), (Succeeded, "", "none"));
        assert_eq!(
            judged(&Findings {
                gates: vec![gate(None)],
                ..worked()
            }),
            (Succeeded, "", "passed")
        );
        assert_eq!(
            judged(&Findings {
                gates: vec![gate(None), gate(Some("failed"))],
                ..worked()
            }),
            (Failed, "gate_failed", "failed")
        );
        let idle = || Findings {
            changes: Vec::new(),
            ..worked()
        };
        assert_eq!(judged(&idle()), (Failed, "no_changes", "none"));
        let done = claim(r#"{"outcome":"done","summary":"all is well"}"#);
        assert_eq!(
            judged(&Findings {
                claim: done,
                ..idle()
            }),
            (Failed, "no_changes", "none")
        );
        let unneeded = claim(r#"{"outcome":"no_change_needed"}"#);
        assert_eq!(
            judged(&Findings {
                claim: unneeded,
                ..idle()
            }),
            (Succeeded, "", "none")
        );
        let asks = claim(r#"{"outcome":"needs_input","question":"which?"}"#);
        assert_eq!(
            judged(&Findings {
                claim: asks.clone(),
                ..worked()
            }),
            (NeedsInput, "needs_input", "none")
        );
        for (stop, outcome, code) in [
            (StopReason::Cancel, Cancelled, ""),
            (StopReason::Deadline, TimedOut, "deadline"),
            (StopReason::Silence, TimedOut, "silence"),
            (StopReason::Memory, Failed, "memory_exceeded"),
            (StopReason::Processes, Failed, "processes_exceeded"),
            (StopReason::Disk, Failed, "disk_exceeded"),
            (StopReason::DiskFull, Failed, "disk_full"),
        ] {
            let stopped = Findings {
                stopped: Some(stop),
                claim: asks.clone(),
                ..worked()
            };
            assert_eq!(judged(&stopped), (outcome, code, "none"));
        }
        let ended = |ending| Findings {
            agent: Some((ending, 1)),
            ..worked()
        };
        assert_eq!(judged(&ended(Ending::Exited(1))).1, "agent_failed");
        assert_eq!(judged(&ended(Ending::Signalled(9))).1, "agent_failed");
        assert_eq!(
            judged(&ended(Ending::Signalled(25))).1,
            "file_size_exceeded"
        );
        assert_eq!(
            judged(&ended(Ending::NotStarted("no".into()))).1,
            "agent_not_started"
        );
        assert_eq!(judged(&ended(Ending::Unknown)).1, "agent_lost");
        let outside = |strict_scope| Findings {
            out_of_scope: vec!["b".into()],
            strict_scope,
            ..worked()
        };
        assert_eq!(judged(&outside(false)).0, Succeeded);
        assert_eq!(judged(&outside(true)).1, "out_of_scope");
        let surprising = |refuse_surprises| Findings {
            run_when_opened: vec![".envrc (shells that enter a directory)".into()],
            refuse_surprises,
            ..worked()
        };
        assert_eq!(judged(&surprising(false)).0, Succeeded);
        assert_eq!(judged(&surprising(true)).1, "runs_when_opened");
        let touched = |strict_gates| Findings {
            gates_touched: vec!["the gate test runs what the task changed: b".into()],
            strict_gates,
            ..worked()
        };
        assert_eq!(judged(&touched(false)).0, Succeeded);
        assert_eq!(judged(&touched(true)).1, "gate_touched");
    }

    /// Whoever ended with 153 was told to have made a file that is too long.
    #[test]
    fn an_exit_code_is_not_taken_for_the_signal_of_a_file_that_is_too_long() {
        let of_agent = |ending| {
            let agent = Some((ending, 1));
            let findings = Findings { agent, ..worked() };
            findings.verdict().error.unwrap()
        };
        let (code, what) = of_agent(Ending::Exited(153));
        assert_eq!(code, "agent_failed");
        assert!(what.contains("exit code 153, as a shell does"), "{what}");
        assert!(what.contains("--file-size"), "{what}");
        assert_eq!(
            of_agent(Ending::Exited(152)).1,
            "the agent ended with exit code 152"
        );
        assert_eq!(of_agent(Ending::Signalled(25)).0, "file_size_exceeded");
        let of_gate = |ending| GateRun::refusal_of(&ending, None, &Ok(None)).unwrap();
        assert!(of_gate(Ending::Exited(153)).contains("exit code 153, as a shell does"));
        assert!(of_gate(Ending::Signalled(25)).starts_with("was ended since it made a file"));
    }

    #[test]
    fn a_gate_without_tests_does_not_pass() {
        let refusal = |ending, tests| GateRun::refusal_of(&ending, None, &Ok(tests));
        let tests = |passed, failed, skipped| {
            let count = TestCount {
                passed,
                failed,
                skipped,
            };
            Some(count)
        };
        let (none, some, bad) = (tests(0, 0, 7), tests(3, 0, 0), tests(3, 1, 0));
        assert_eq!(
            refusal(Ending::Exited(0), none).as_deref(),
            Some("ran no test at all")
        );
        assert_eq!(refusal(Ending::Exited(0), some), None);
        assert!(refusal(Ending::Exited(0), bad).is_some());
        assert_eq!(refusal(Ending::Exited(0), None), None);
        assert!(refusal(Ending::Exited(1), some).is_some());
        let late = Some(GateStop::Timeout(5));
        assert!(GateRun::refusal_of(&Ending::Exited(0), late, &Ok(some)).is_some());
        let uncounted = Err(CountFault::NoSummary);
        assert!(GateRun::refusal_of(&Ending::Exited(0), None, &uncounted).is_some());
    }

    /// A gate that was cancelled, or met a bound, was told as one that had run out of time.
    #[test]
    fn a_gate_is_out_of_time_only_when_its_time_is_over() {
        let told = |ending, stop| GateRun::refusal_of(&ending, stop, &Ok(None)).unwrap_or_default();
        let killed = || Ending::Signalled(9);
        let late = told(killed(), Some(GateStop::Timeout(5)));
        assert_eq!(late, "did not end within 5 s");
        for (reason, word) in [
            (StopReason::Cancel, "cancelled"),
            (StopReason::Deadline, "--deadline"),
            (StopReason::Silence, "--silence"),
            (StopReason::Memory, "--memory"),
            (StopReason::Processes, "--processes"),
            (StopReason::Disk, "--disk)"),
            (StopReason::DiskFull, "--disk-free"),
        ] {
            let told = told(killed(), Some(GateStop::WithTask(reason)));
            assert!(told.contains(word) && !told.contains("within"), "{told}");
        }
        let lost = told(Ending::Unknown, None);
        assert!(lost.starts_with("was lost"), "{lost}");
    }
}
