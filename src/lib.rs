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
//! # The rooms
//!
//! In reading order. Each may know those above it, and none below; a test reads the `use` lines
//! and holds it so.
//!
//! | room | what it is for |
//! |---|---|
//! | [`limits`] | every bound, with its reason, and the memory budget |
//! | [`wire`] | bytes to messages and back: no I/O, no MCP |
//! | [`mcp`] | what messages mean: the session, the revisions as data, what a tool is |
//! | [`task`] | the tool `larry_submit_task`: its words, its rules, its errors |
//! | [`port`] | the way to an executor: its protocol, and the four tools that use it |
//! | [`engine`] | bytes in, bytes out: a server without a transport |
//! | [`event_loop`] | the only room that knows mio, libc and file descriptors |
//! | [`server`] | the builder that puts it together, the door for other programs |
//! | `executor` | `rocco executor`, a process of its own that does tasks; on Linux |
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
//! The revisions are rows of [`mcp::revision::REVISIONS`]. What differs between them is a column
//! there; `mcp::catalog` and [`Reply`] look at the columns and never at a version. The next one is
//! a further row; a column for what it adds, if it adds anything; and the code for that. A
//! handshake revision is negotiated by its row, and a stateless one found by its envelope, without
//! another word.

#![deny(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

pub mod limits;
pub mod wire;

pub mod mcp;

pub mod task;

pub mod port;

pub mod engine;
pub mod event_loop;
pub mod server;

#[cfg(target_os = "linux")]
pub mod executor;

pub use mcp::catalog::Info;
pub use mcp::prepared::Prepared;
pub use mcp::tool::{Annotations, Answered, Call, Icon, Reply, Tool, ToolError, ToolSpec};
pub use server::Server;
pub use wire::json::{Array, Object, Value};
pub use wire::writer::{ArrayWriter, ObjectWriter};
