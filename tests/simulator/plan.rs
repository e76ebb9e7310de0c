//! What a seed decides before a run: what is sent, what goes wrong, and how it ends.

use std::time::Duration;

use rocco::internals::limits::BUSY_POLL_US_MAX;

use super::faults::Faults;
use super::prng::Prng;
use super::traffic::Traffic;

/// What the system may do wrong, how clients differ, and whether the server looks for input before
/// it sleeps, one bit each. New ones come last, and draw last.
pub const FAULTS: [&str; 15] = [
    "interruptions",
    "spurious",
    "late",
    "packets",
    "lines",
    "file-input",
    "file-output",
    "stalls",
    "drip",
    "late-reader",
    "lazy-room",
    "short-writes",
    "tiny-pipe",
    "patient",
    "busy-poll",
];

/// Faults at random, each as likely as the run is wild.
fn random_faults(prng: &mut Prng) -> Faults {
    let often = 1 + prng.below(4);
    let mut faults = Faults::of(
        &FAULTS,
        FAULTS.into_iter().filter(|_| prng.one_in(1 + often)),
    );
    // A descriptor is of one kind.
    for (kind, other) in [
        ("file-input", "packets"),
        ("file-input", "lines"),
        ("lines", "packets"),
    ] {
        if faults.has(kind) {
            faults = faults.without(other);
        }
    }
    faults
}

/// What ends a session before its input does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doom {
    /// Nothing: the client closes its end when it has sent all.
    Spared,
    /// The input is reset, once said, behind what has arrived.
    Reset,
    /// The terminal hangs up, which every read says.
    HangUp,
    Signal,
    ParentGone,
    ReaderGone,
    /// The reader takes nothing any more.
    Deaf,
    ReadFails,
    WriteFails,
    WaitFails,
}

pub const DOOMS: [Doom; 10] = [
    Doom::Spared,
    Doom::Reset,
    Doom::HangUp,
    Doom::Signal,
    Doom::ParentGone,
    Doom::ReaderGone,
    Doom::Deaf,
    Doom::ReadFails,
    Doom::WriteFails,
    Doom::WaitFails,
];

/// A run before it happens.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub lines: Vec<Vec<u8>>,
    /// Which of the seed's lines are sent; the others were left out to shrink a failure.
    pub kept: Vec<usize>,
    pub faults: Faults,
    pub doom: Doom,
    /// At which wait the doom comes, and at which the faults stop.
    pub doom_step: usize,
    pub calm_step: usize,
    /// How long the server looks for input before it sleeps, if it does.
    pub busy_poll_us: usize,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let lines = Traffic::new(prng.fork()).lines();
        let faults = random_faults(&mut prng.fork());
        let spared = prng.one_in(2);
        Self {
            seed,
            kept: (0..lines.len()).collect(),
            lines,
            faults,
            doom: if spared {
                Doom::Spared
            } else {
                *prng.pick(&DOOMS)
            },
            doom_step: prng.wild(600),
            calm_step: 200 + prng.wild(4000),
            busy_poll_us: prng.wild(BUSY_POLL_US_MAX as usize),
        }
    }

    /// The plan of a seed, cut down as the environment says.
    pub fn replayed(seed: u64) -> Self {
        let mut plan = Self::of(seed);
        let listed = |name: &str| std::env::var(name).ok();
        if let Some(kept) = listed("ROCCO_SIM_KEEP") {
            plan.kept = kept.split(',').filter_map(|it| it.parse().ok()).collect();
            plan.kept.retain(|index| *index < plan.lines.len());
        }
        if let Some(faults) = listed("ROCCO_SIM_FAULTS") {
            plan.faults = Faults::of(&FAULTS, faults.split(','));
        }
        if listed("ROCCO_SIM_SPARED").is_some() {
            plan.doom = Doom::Spared;
        }
        plan
    }

    /// How long the server looks for input before it sleeps.
    pub fn busy_poll(&self) -> Duration {
        let looks = self.faults.has("busy-poll");
        Duration::from_micros(if looks { self.busy_poll_us as u64 } else { 0 })
    }

    /// All that the client sends.
    pub fn input(&self) -> Vec<u8> {
        let lines = self.kept.iter().map(|index| self.lines[*index].as_slice());
        lines.collect::<Vec<_>>().concat()
    }

    /// The command that runs this plan again.
    pub fn command(&self) -> String {
        let whole = Self::of(self.seed);
        let mut command = format!("ROCCO_SIM_SEED={}", self.seed);
        if self.kept.len() < whole.lines.len() {
            let kept: Vec<String> = self.kept.iter().map(usize::to_string).collect();
            command += &format!(" ROCCO_SIM_KEEP={}", kept.join(","));
        }
        if self.faults != whole.faults {
            command += &format!(" ROCCO_SIM_FAULTS={}", self.faults.names().join(","));
        }
        if self.doom != whole.doom {
            command += " ROCCO_SIM_SPARED=1";
        }
        command + " cargo test --test simulator the_fixed_band_holds -- --exact --nocapture"
    }
}
