//! What several test binaries share.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod schema;
pub(crate) mod session;
