//! What the test binaries share. Each has it, for the watchdog.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod cases;
pub(crate) mod program;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod skip;
pub(crate) mod wait;
pub(crate) mod watchdog;
