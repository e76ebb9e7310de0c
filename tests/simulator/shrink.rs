//! Makes a failing plan smaller: fewer faults, then fewer lines.

use std::time::{Duration, Instant};

use super::expect::Fault;
use super::plan::{Doom, Plan};
use super::run;

/// A failure is worth this much time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The smallest plan that was found to fail still, and how it fails.
pub fn shrunk(plan: &Plan, fault: Fault, validates: bool) -> (Plan, Fault) {
    let mut search = Search {
        best: plan.clone(),
        fault,
        validates,
        until: Instant::now() + PATIENCE,
    };
    search.drop_lines();
    search.drop_faults();
    search.drop_lines();
    (search.best, search.fault)
}

struct Search {
    best: Plan,
    fault: Fault,
    validates: bool,
    until: Instant,
}

impl Search {
    /// Takes a plan if it fails.
    fn try_out(&mut self, plan: Plan) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        match run::once(&plan, self.validates) {
            Ok(_) => false,
            Err(fault) => {
                (self.best, self.fault) = (plan, fault);
                true
            }
        }
    }

    fn drop_faults(&mut self) {
        let spared = Plan {
            doom: Doom::Spared,
            ..self.best.clone()
        };
        self.try_out(spared);
        for name in self.best.faults.names() {
            let faults = self.best.faults.without(name);
            self.try_out(Plan {
                faults,
                ..self.best.clone()
            });
        }
    }

    /// Leaves out runs of lines, long ones first.
    fn drop_lines(&mut self) {
        let mut size = self.best.kept.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < self.best.kept.len() {
                let mut plan = self.best.clone();
                let end = (at + size).min(plan.kept.len());
                plan.kept.drain(at..end);
                if !self.try_out(plan) {
                    at += size;
                }
            }
            size /= 2;
        }
    }
}

/// A failure for people: what is wrong, how to see it again, and the smallest case.
pub fn told(plan: &Plan, fault: &str, validates: bool) -> String {
    use std::fmt::Write as _;
    let mut text = format!("seed {} fails: {fault}\n  {}\n", plan.seed, plan.command());
    if std::env::var("ROCCO_SIM_SHRINK").as_deref() == Ok("0") {
        return text;
    }
    let (small, fault) = shrunk(plan, fault.to_owned(), validates);
    let _ = writeln!(text, "shrunk: {fault}\n  {}", small.command());
    let _ = writeln!(
        text,
        "  {:?} at wait {}, calm at {}, faults: {:?}",
        small.doom,
        small.doom_step,
        small.calm_step,
        small.faults.names()
    );
    for index in small.kept.iter().take(20) {
        let line = super::oracle::shown(&small.lines[*index]);
        let _ = writeln!(text, "  line {index}: {line}");
    }
    text
}
