//! What happens to one task, in order: [`job`] is the whole, [`repo`] and [`workspace`] are git,
//! [`supervisor`] and [`process`] start what is run and end it, [`sandbox`] stands around it,
//! [`gates`] and [`scope`] are what a result is held to, and [`verdict`] says what became of it.

pub mod command;
pub mod gate_output;
pub mod gates;
pub mod guard;
pub mod job;
pub mod pipe;
pub mod process;
mod record;
pub mod repo;
pub mod sandbox;
pub mod scope;
pub mod supervisor;
pub mod verdict;
pub mod workspace;
