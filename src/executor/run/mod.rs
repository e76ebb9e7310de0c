//! What happens to one task.
//!
//! [`job`] is the whole, in order, and looks before each step whether the task is to end. The
//! steps:
//!
//! - [`repo`] holds the user's repository open, and [`git`] makes the clone and takes the result
//!   in, by way of [`command`], which ends whatever it runs within a limit; [`workspace`] is the
//!   directory in between.
//! - [`brief`] is what the agent is told, [`claim`] is what it says of its work.
//! - [`supervisor`] starts each program under a [`guard`], a process of its own that lets nothing
//!   live on, with what [`program`] says the program is given. [`disk`] watches what it writes.
//!   [`process`] and [`pipe`] are the system.
//! - [`verification`] holds a result to its [`gates`], with [`gate_output`] and [`scope`].
//! - [`verdict`] says what became of the task, and [`record`] writes it down within its bound.
//!
//! Nothing here waits without a limit: not for git, not for a pipe that somebody holds, not for a
//! guard that its program has stopped.

pub mod brief;
pub mod claim;
pub mod command;
pub mod disk;
pub mod gate_output;
pub mod gates;
pub mod git;
pub mod guard;
pub mod job;
pub mod pipe;
pub mod process;
pub mod program;
pub mod record;
pub mod repo;
pub mod scope;
pub mod supervisor;
pub mod verdict;
pub mod verification;
pub mod workspace;
