//! Which task comes next, and which are kept: [`task`] is what was accepted, [`queue`] the order,
//! and [`retention`] says what is past keeping. No I/O.

pub mod queue;
pub mod retention;
pub mod task;
