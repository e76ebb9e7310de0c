//! What an executor and its clients agree on: rocco-exec/1.
//!
//! Both sides of the [`protocol`] read this layer and neither reads the other: [`state`] is the one
//! table of a task's states, [`error_code`] that of the codes of errors, [`record`] what of a
//! record may be passed on, [`grammar`] what its members may look like, and [`sanitize`] makes an
//! executor's words fit for a model and for a terminal.

#[doc = include_str!("protocol.md")]
pub mod protocol {}
pub mod error_code;
pub mod grammar;
pub mod record;
pub mod sanitize;
pub mod state;

/// The name of the protocol, as both sides say it in `hello`.
pub const PROTOCOL: &str = "rocco-exec/1";
