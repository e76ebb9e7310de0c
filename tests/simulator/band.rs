//! Bands of seeds, run on all processors.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::run::{self, Report};
use super::shrink;
use super::trace::Trace;

/// What a band has come to.
#[derive(Debug, Default)]
pub struct Total {
    seeds: u64,
    sum: Report,
}

impl Total {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        let sum = &mut self.sum;
        sum.lines += report.lines;
        sum.replies += report.replies;
        sum.counts.steps += report.counts.steps;
        sum.counts.faults += report.counts.faults;
        sum.counts.read_bytes += report.counts.read_bytes;
        sum.counts.written_bytes += report.counts.written_bytes;
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sum, counts) = (&self.sum, &self.sum.counts);
        write!(
            f,
            "{} seeds, each run twice: {} lines, {} replies checked, {} steps, {} faults, \
             {} bytes read, {} bytes written",
            self.seeds,
            sum.lines,
            sum.replies,
            counts.steps,
            counts.faults,
            counts.read_bytes,
            counts.written_bytes
        )
    }
}

/// Which replies are held against the schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validated {
    All,
    /// Those of every sixteenth seed.
    Some,
}

/// Runs seeds until there is none or one fails.
pub fn run(seeds: &[u64], validated: Validated) -> Result<Total, String> {
    let next = AtomicUsize::new(0);
    workers(validated, || {
        seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied()
    })
}

/// Runs seeds that nobody has chosen for a time.
pub fn run_for(time: Duration) -> Result<Total, String> {
    let until = Instant::now() + time;
    let start = RandomState::new().hash_one(0);
    let next = AtomicUsize::new(0);
    workers(Validated::Some, || {
        let index = next.fetch_add(1, Ordering::Relaxed) as u64;
        (Instant::now() < until).then(|| start.wrapping_add(index))
    })
}

fn workers(validated: Validated, seed: impl Fn() -> Option<u64> + Sync) -> Result<Total, String> {
    let total = Mutex::new(Total::default());
    let failure = Mutex::new(None);
    let failed = AtomicBool::new(false);
    let work = || {
        while !failed.load(Ordering::Relaxed)
            && let Some(seed) = seed()
        {
            let plan = Plan::of(seed);
            let validates = validated == Validated::All || seed.is_multiple_of(16);
            match run::twice(&plan, validates) {
                Ok(report) => total.lock().unwrap().add(&report),
                Err(fault) => {
                    if !failed.swap(true, Ordering::Relaxed) {
                        *failure.lock().unwrap() = Some((plan, fault, validates));
                    }
                }
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..processors.min(8) {
            scope.spawn(work);
        }
    });
    match failure.into_inner().unwrap() {
        Some((plan, fault, validates)) => Err(shrink::told(&plan, &fault, validates)),
        None => Ok(total.into_inner().unwrap()),
    }
}

/// A number that each commit has for itself: its hash, or that of the sources where there is no
/// repository.
pub fn commit() -> u64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let git = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(root)
        .output();
    let hash = git.ok().and_then(|output| {
        let text = String::from_utf8(output.stdout).ok()?;
        u64::from_str_radix(text.get(..16)?, 16).ok()
    });
    hash.unwrap_or_else(|| {
        let mut trace = Trace::new();
        add_sources(&mut trace, &root.join("src"));
        trace.hash()
    })
}

fn add_sources(trace: &mut Trace, folder: &Path) {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add_sources(trace, &path);
        } else {
            trace.bytes(&fs::read(&path).unwrap());
        }
    }
}
