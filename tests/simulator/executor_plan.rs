//! What a seed with an executor decides, and how a failure is made smaller: without a fault, or
//! without a run of lines, as long as it fails.

use std::time::{Duration, Instant};

use super::executor::{self, FAULTS, World};
use super::faults::Faults;

/// A failure is worth this much time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run before it happens.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub faults: Faults,
    /// Which of the seed's lines are sent.
    pub kept: Vec<usize>,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let (faults, lines) = World::drawn(seed);
        let kept = (0..lines).collect();
        Self { seed, faults, kept }
    }

    /// The plan of a seed, cut down as the environment says.
    pub fn replayed(seed: u64) -> Self {
        let mut plan = Self::of(seed);
        if let Ok(kept) = std::env::var("ROCCO_SIM_KEEP") {
            plan.kept = kept.split(',').filter_map(|it| it.parse().ok()).collect();
        }
        if let Ok(faults) = std::env::var("ROCCO_SIM_FAULTS") {
            plan.faults = Faults::of(&FAULTS, faults.split(','));
        }
        plan
    }

    /// The command that runs this plan again.
    pub fn command(&self) -> String {
        let whole = Self::of(self.seed);
        let mut command = format!("ROCCO_SIM_SEED={}", self.seed);
        if self.kept.len() < whole.kept.len() {
            let kept: Vec<String> = self.kept.iter().map(usize::to_string).collect();
            command += &format!(" ROCCO_SIM_KEEP={}", kept.join(","));
        }
        if self.faults != whole.faults {
            command += &format!(" ROCCO_SIM_FAULTS={}", self.faults.names().join(","));
        }
        command
            + " cargo test --test simulator the_fixed_band_holds_with_an_executor -- --nocapture"
    }

    /// Smaller plans: without one of the faults, or without a run of lines, long ones first. The
    /// first line opens the session and stays.
    fn smaller(&self) -> Vec<Self> {
        let names = self.faults.names().into_iter();
        let fewer_faults = names.map(|name| Self {
            faults: self.faults.without(name),
            ..self.clone()
        });
        let mut plans: Vec<Self> = fewer_faults.collect();
        let mut size = self.kept.len() / 2;
        while size > 0 {
            for at in (1..self.kept.len()).step_by(size) {
                let mut kept = self.kept.clone();
                kept.drain(at..(at + size).min(self.kept.len()));
                plans.push(Self {
                    kept,
                    ..self.clone()
                });
            }
            size /= 2;
        }
        plans
    }
}

/// A failure for people: what is wrong, how to see it again, and the smallest case.
pub fn told(plan: &Plan, fault: &str) -> String {
    let (mut best, mut last) = (plan.clone(), fault.to_owned());
    let until = Instant::now() + PATIENCE;
    while let Some((smaller, fault)) = best.smaller().into_iter().find_map(|plan| {
        let patient = Instant::now() < until;
        let outcome = patient.then(|| executor::once(&plan));
        outcome?.err().map(|fault| (plan, fault))
    }) {
        (best, last) = (smaller, fault);
    }
    let (seed, command, small) = (plan.seed, plan.command(), best.command());
    let (lines, faults) = (best.kept.len(), best.faults.names());
    format!(
        "seed {seed} fails: {fault}\n  {command}\nshrunk to {lines} lines: {last}\n  {small}\n  \
         faults: {faults:?}"
    )
}
