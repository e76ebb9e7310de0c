//! `rocco executor`: a process of its own that does tasks with any command-line agent, and proves
//! what became of them. The serving path of `rocco mcp` does not know this layer.
//!
//! In the order in which a task meets them: [`policy`] is what the operator allows, [`daemon`] is
//! the process, [`api`] takes a task from a connection, [`store`] keeps the task, [`schedule`]
//! gives it its turn, and [`run`] does it. [`schedule`] does no I/O.

pub mod api;
pub mod clock;
pub mod daemon;
pub mod json;
pub mod named_places;
pub mod policy;
pub mod run;
pub mod schedule;
pub mod store;
pub mod threads;
pub mod walls;
