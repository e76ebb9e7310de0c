//! The deterministic simulator: the real engine and the real loop over a simulated system, whose
//! every byte, fault and tick a seed decides.
//!
//! A run has two phases. While faults happen, what must hold is checked at every call of the loop;
//! then they stop, and everything owed has to arrive. Each seed runs twice and has to leave the
//! same trace.
//!
//! - `cargo test --test simulator` runs the seeds that ever failed, a fixed band and a band that
//!   moves with the commit.
//! - `ROCCO_SIM_SEED=7 cargo test --test simulator the_fixed_band_holds -- --exact --nocapture`
//!   runs one seed in the place of the fixed band, and `the_fixed_band_holds_with_an_executor` the
//!   same with an executor: a second, smaller world.
//! - `ROCCO_SIM_SECONDS=600 cargo test --release --test simulator the_moving_band -- --nocapture`
//!   runs random seeds for that time, and beside them random seeds with an executor.
//! - `cargo test --test mutants` tests the simulator itself.

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
use support::watchdog;

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

/// The seed that a person asks for.
fn asked_seed() -> Option<u64> {
    let seed = std::env::var("ROCCO_SIM_SEED").ok()?;
    Some(seed.parse().expect("a seed is a number"))
}

/// The time that a person gives, for which the tests of this process may go on.
fn given_time() -> Option<Duration> {
    let seconds = std::env::var("ROCCO_SIM_SECONDS").ok()?;
    let seconds = seconds.parse().expect("a time is a number of seconds");
    let time = Duration::from_secs(seconds);
    watchdog::allow(time + Duration::from_secs(600));
    Some(time)
}

#[test]
fn the_fixed_band_holds() {
    if let Some(seed) = asked_seed() {
        let plan = Plan::replayed(seed);
        match run::twice(&plan, true) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(fault) => panic!("{}", shrink::told(&plan, &fault, true)),
        }
        return;
    }
    let fixed: Vec<u64> = (0..BAND).collect();
    let (validated, others) = fixed.split_at(VALIDATED as usize);
    show("validated band", band::run(validated, Validated::All));
    show("fixed band", band::run(others, Validated::Some));
}

#[test]
fn the_moving_band_holds() {
    let total = given_time().map_or_else(
        || {
            let commit = band::commit();
            let seeds: Vec<u64> = (0..BAND).map(|index| commit.wrapping_add(index)).collect();
            band::run(&seeds, Validated::Some)
        },
        band::run_for,
    );
    show("moving band", total);
}

/// Sessions with an executor, each of which is short.
#[test]
fn the_fixed_band_holds_with_an_executor() {
    match asked_seed() {
        Some(seed) => with_an_executor(std::iter::once(seed)),
        None => with_an_executor(0..EXECUTOR_BAND),
    }
}

#[test]
fn the_moving_band_holds_with_an_executor() {
    let Some(time) = given_time() else {
        let commit = band::commit();
        return with_an_executor((0..EXECUTOR_BAND).map(|index| commit.wrapping_add(index)));
    };
    let until = Instant::now() + time;
    let seeds = (RandomState::new().hash_one(0)..).take_while(|_| Instant::now() < until);
    with_an_executor(seeds);
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
fn every_planted_bug_still_applies() {
    mutants::demand_all_apply();
}
