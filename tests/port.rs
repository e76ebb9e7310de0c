//! The real server between a client and an executor, which is scripted (`tests/port/fake.py`).
//!
//! They need python3. Nothing here has a time limit that a busy machine could miss: where an answer
//! may be late for that reason, a test asks again as a client has to.

mod support;

#[path = "port/calls.rs"]
mod calls;
#[path = "port/check.rs"]
mod check;
#[path = "port/ends.rs"]
mod ends;
#[path = "port/faults.rs"]
mod faults;
#[path = "port/front.rs"]
mod front;
#[path = "port/load.rs"]
mod load;
#[path = "port/tasks.rs"]
mod tasks;
#[path = "port/waits.rs"]
mod waits;
