//! `rocco executor`, end to end: the real program, real git, and agents that follow a script.
#![cfg(target_os = "linux")]

#[path = "executor/bench.rs"]
mod bench;

#[path = "executor/crashes.rs"]
mod crashes;
#[path = "executor/fronts.rs"]
mod fronts;
#[path = "executor/outcomes.rs"]
mod outcomes;
#[path = "executor/safety.rs"]
mod safety;
#[path = "executor/trees.rs"]
mod trees;
