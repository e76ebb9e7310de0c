//! Which task comes next: [`task`] is what was accepted, [`queue`] the order. No I/O.

pub mod queue;
pub mod task;
