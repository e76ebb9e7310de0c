//! `rocco executor`, end to end: the real program, real git, and agents that follow a script.
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod bounds;
mod connections;
mod crashes;
mod fronts;
mod keeping;
mod odd_paths;
mod outcomes;
mod repositories;
mod results;
mod safety;
mod stops;
mod taken;
mod trees;
mod walls;
