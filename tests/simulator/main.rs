//! The deterministic simulator: the real engine and the real loop over a simulated system, whose
//! every byte, fault and tick a seed decides.
//!
//! A run has two phases. While faults happen, what must hold is checked at every call of the loop;
//! then they stop, and everything owed has to arrive. Each seed runs twice and has to leave the
//! same trace.
//!
//! - `cargo test --test simulator` runs the seeds that ever failed, a fixed band and a band that
//!   the commit decides.
//! - `ROCCO_SIM_SECONDS=600 cargo test --release --test simulator for_a_time -- --nocapture` runs
//!   random seeds, and then a quarter of the time those with an executor.
//! - `ROCCO_SIM_SEED=7 cargo test --test simulator replay -- --nocapture` runs one.
//! - `ROCCO_SIM_SEED=7 cargo test --test simulator replay_with_an_executor -- --nocapture` runs one
//!   with an executor: a second, smaller world.
//! - `ROCCO_SIM_MUTANTS=1 cargo test --test simulator planted` tests the simulator itself.

#[path = "../support/mod.rs"]
mod support;

mod prng;
mod traffic;

mod text;

mod server;

mod schemas;

mod expect;
mod model;
mod oracle;

mod faults;
mod memory;
mod plan;
mod trace;
mod transport;

mod run;
mod shrink;

mod executor;
mod executor_plan;

mod band;

mod mutants;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

use band::Validated;
use plan::Plan;

/// How many seeds the fixed band and the commit's band have.
const BAND: u64 = 300;
/// How many seeds with an executor.
const EXECUTOR_BAND: u64 = 80;
/// How many of the fixed band have all their replies validated.
const VALIDATED: u64 = 30;

fn show(name: &str, total: Result<band::Total, String>) {
    match total {
        Ok(total) => println!("{name}: {total}"),
        Err(failure) => panic!("{name}: {failure}"),
    }
}

#[test]
fn seeds_that_ever_failed_hold() {
    let seeds = include_str!("seeds.txt").lines();
    let seeds = seeds.filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let seeds: Vec<u64> = seeds.collect();
    show("kept seeds", band::run(&seeds, Validated::All));
}

#[test]
fn the_fixed_band_holds() {
    let fixed: Vec<u64> = (0..BAND).collect();
    let (validated, others) = fixed.split_at(VALIDATED as usize);
    show("validated band", band::run(validated, Validated::All));
    show("fixed band", band::run(others, Validated::Some));
}

#[test]
fn the_band_of_the_commit_holds() {
    let commit = band::commit();
    let seeds: Vec<u64> = (0..BAND).map(|index| commit.wrapping_add(index)).collect();
    show("the commit's band", band::run(&seeds, Validated::Some));
}

/// Sessions with an executor, each of which is short.
#[test]
fn the_fixed_band_holds_with_an_executor() {
    with_an_executor(0..EXECUTOR_BAND);
}

#[test]
fn the_band_of_the_commit_holds_with_an_executor() {
    let commit = band::commit();
    with_an_executor((0..EXECUTOR_BAND).map(|index| commit.wrapping_add(index)));
}

fn with_an_executor(seeds: impl Iterator<Item = u64>) {
    let (mut count, mut replies, mut strikes) = (0, 0, 0);
    for seed in seeds {
        let plan = executor_plan::Plan::replayed(seed);
        match executor::twice(&plan) {
            Ok(world) => {
                count += 1;
                replies += world.replies;
                strikes += world.strikes;
            }
            Err(fault) => panic!("{}", executor_plan::told(&plan, &fault)),
        }
    }
    println!(
        "with an executor: {count} seeds, each run twice: {replies} replies, {strikes} faults"
    );
}

#[test]
fn replay_with_an_executor() {
    if let Ok(seed) = std::env::var("ROCCO_SIM_SEED") {
        with_an_executor(std::iter::once(seed.parse().expect("a seed is a number")));
    }
}

#[test]
fn every_planted_bug_still_applies() {
    mutants::demand_all_apply();
}

#[test]
fn every_planted_bug_is_found() {
    if std::env::var_os("ROCCO_SIM_MUTANTS").is_some() {
        mutants::demand_all_found();
    }
}

#[test]
fn replay() {
    let Ok(seed) = std::env::var("ROCCO_SIM_SEED") else {
        return;
    };
    let plan = Plan::replayed(seed.parse().expect("a seed is a number"));
    match run::twice(&plan, true) {
        Ok(report) => println!("seed {seed}: {report:?}"),
        Err(fault) => panic!("{}", shrink::told(&plan, &fault, true)),
    }
}

#[test]
fn for_a_time() {
    let Ok(seconds) = std::env::var("ROCCO_SIM_SECONDS") else {
        return;
    };
    let time = Duration::from_secs(seconds.parse().expect("a time is a number of seconds"));
    show("random seeds", band::run_for(time));
    let until = Instant::now() + time / 4;
    let seeds = (RandomState::new().hash_one(0)..).take_while(|_| Instant::now() < until);
    with_an_executor(seeds);
}
