//! An MCP server on stdio: one thread, one event loop, constant memory.
//!
//! An AI client starts a server as a subprocess and talks JSON-RPC with it, one JSON text a line.
//! This crate is such a server, `rocco mcp`, and the library that it is made of: see [`Server`]
//! for how to serve tools of your own.
//!
//! # The way of a byte
//!
//! ```text
//!   stdin -> ring -> framer -> json -> message -> session -> tool -> writer -> outbox -> stdout
//!            fixed   memchr    in      what it    one in,           one line,  fixed
//!                    finds LF  place   is         one out           no heap
//! ```
//!
//! One frame travels the whole way before the next is looked at, and nothing flows back. The
//! outbox is written once per turn of the loop, so that a burst of requests shares one write.
//!
//! # The layers
//!
//! In reading order, as `ls src` shows them. Each may know those above it, and none below; a test
//! reads every path and holds it so.
//!
//! | layer | what it is for |
//! |---|---|
//! | `limits.rs` | every bound, with its reason, and the memory budget |
//! | `wire/` | bytes to messages and back: no I/O, no MCP |
//! | `mcp/` | what messages mean: the session, the revisions as data, what a tool is |
//! | `task/` | the tool `larry_submit_task`: its words, its rules, its errors |
//! | `executor_protocol/` | what an executor and its clients agree on: rocco-exec/1 |
//! | `executor_client/` | the client of an executor, and the four tools that use it |
//! | `engine.rs` | bytes in, bytes out: a server without a transport |
//! | `event_loop/` | the loop, and in `sys/` the system calls under it |
//! | `server.rs` | the builder that puts it together, the door for other programs |
//! | `executor/` | `rocco executor`, a process of its own that does tasks; on Linux |
//! | `cli/` | the command line: one file for each command |
//!
//! # What always holds
//!
//! INVARIANTS.md names each rule and the test that enforces it. The ones to know before reading:
//!
//! - A frame is parsed where it was read. Nothing copies it, but a move to the front of the ring
//!   at its end.
//! - In the steady state no frame claims heap memory, and a server at rest makes no system call.
//! - Left of `event_loop` there is no file descriptor, no clock and no environment.
//! - A request gets one reply, a notification and a response get none, whatever the bytes.
//! - A client's mistake is answered and service goes on; only the end of input, a vanished reader,
//!   a signal or a failure of the system ends it.
//! - The flags of inherited descriptors are never changed.
//!
//! # A new revision of the protocol
//!
//! The revisions are rows of `mcp::revision::REVISIONS`. What differs between them is a column
//! there; `mcp::catalog` and [`Reply`] look at the columns and never at a version. The next one is
//! a further row; a column for what it adds, if it adds anything; and the code for that. A
//! handshake revision is negotiated by its row, and a stateless one found by its envelope, without
//! another word.

#![deny(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "rocco serves on Linux, and is built for macOS without having been run there. \
     There is no event loop for other systems: choose another --target."
);

#[cfg(test)]
#[path = "../tests/support/watchdog.rs"]
mod watchdog;

mod limits;
mod wire;

mod mcp;

mod task;

mod executor_client;
mod executor_protocol;

mod engine;
mod event_loop;
mod server;

#[cfg(all(feature = "executor", target_os = "linux"))]
mod executor;

mod cli;

pub use engine::Engine;
pub use event_loop::sys::executor_channel::ExecutorAddr;
pub use event_loop::{Ended, Failure};

pub use mcp::catalog::Info;
pub use mcp::prepared::Prepared;
pub use mcp::tool::{Annotations, Answered, Call, Icon, Reply, Tool, ToolError, ToolSpec};
pub use server::Server;
pub use wire::json::{Array, DuplicateMember, NotJson, Object, RawJson, Value};
pub use wire::writer::{ArrayWriter, ObjectWriter};

/// The manual: what a person asks who runs the program, beside the code that it speaks of.
#[cfg(doc)]
pub mod manual {
    #[doc = include_str!("executor/manual.md")]
    pub mod executor {}
    #[doc = include_str!("executor_protocol/protocol.md")]
    pub mod executor_protocol {}
    #[doc = include_str!("executor_client/manual.md")]
    pub mod tools {}
    #[doc = include_str!("mcp/conformance.md")]
    pub mod conformance {}
    #[doc = include_str!("limits.md")]
    pub mod limits {}
    #[doc = include_str!("cli/exit_codes.md")]
    pub mod exit_codes {}
    #[doc = include_str!("../tests/robustness.md")]
    pub mod robustness {}
}

/// The code in README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// What the program, the tests and the benches of this package use. No part of it is kept from one
/// version to the next.
#[doc(hidden)]
pub mod internals {
    macro_rules! layers {
        ($($layer:ident)*) => {
            $(pub mod $layer {
                pub use crate::$layer::*;
            })*
        };
    }
    layers!(limits wire mcp task executor_protocol executor_client engine event_loop server cli);
    #[cfg(all(feature = "executor", target_os = "linux"))]
    layers!(executor);
}
