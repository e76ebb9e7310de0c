//! The real server between a client and an executor, which is scripted
//! (`tests/executor_client/fake.py`).
//!
//! They need python3. Nothing here has a time limit that a busy machine could miss: where an answer
//! may be late for that reason, a test asks again as a client has to.

#[path = "../support/mod.rs"]
mod support;

mod calls;
#[cfg(feature = "cli")]
mod check;
mod ends;
mod faults;
mod front;
mod load;
mod tasks;
mod waits;
