//! Attacks from within the walls: what a hostile agent or gate tries, and that it fails. Each runs
//! within every set of walls that holds against it, as the user of the test run. `attacks.md` has
//! the attacks one by one, with the tests that try them.

#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod cell;
