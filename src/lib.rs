//! An MCP server on stdio: one thread, one event loop, constant memory.
//!
//! An AI client starts a server as a subprocess and talks JSON-RPC with it, one JSON text a line,
//! by the Model Context Protocol. This crate serves tools of your own to such a client, in every
//! revision of the protocol from 2024-11-05 to 2026-07-28, without an async runtime. It is also the
//! program `rocco`, which hands coding tasks to an executor: the [manual] is about that.
//!
//! A program that wants the library alone takes it without its default features, which are the
//! command line and the executor.
//!
//! # A server
//!
//! ```no_run
//! use rocco::{Info, Server, ToolSpec};
//!
//! fn main() -> std::process::ExitCode {
//!     let hello = ToolSpec::new("hello", "Says hello.", r#"{"type":"object"}"#);
//!     Server::new(Info::new("greeter", "1.0.0"))
//!         .tool_fn(hello, |_call, reply| reply.text("Hello."))
//!         .run_stdio()
//! }
//! ```
//!
//! A tool is a [`ToolSpec`] and a function, or a type that is a [`Tool`] and keeps what it needs
//! between calls. [`Server`] has a whole one.
//!
//! # Arguments
//!
//! The schema of a tool is published and not enforced: the tool reads its arguments from the
//! [`Call`], where they are borrowed from the line that came, and says what is wrong with them in
//! words that a model can act on.
//!
//! ```
//! use rocco::{Object, Value};
//!
//! /// What `repeat` takes: a text, and how often, once unless it is said.
//! struct Repeat<'a> {
//!     text: &'a str,
//!     times: u64,
//! }
//!
//! impl<'a> Repeat<'a> {
//!     /// Reads the arguments, or names the one that is wrong and what it has to be.
//!     fn parse(arguments: Object<'a>) -> Result<Self, (&'static str, &'static str)> {
//!         let [text, times] = arguments
//!             .take(["text", "times"])
//!             .map_err(|twice| (twice.name(), "must be given once"))?;
//!         let text = text.and_then(|text| text.as_str());
//!         let times = match times {
//!             None | Some(Value::Null) => Some(1),
//!             Some(times) => times.as_u64().filter(|times| (1..=100).contains(times)),
//!         };
//!         Ok(Self {
//!             text: text.ok_or(("text", "must be a string"))?,
//!             times: times.ok_or(("times", "must be an integer from 1 to 100"))?,
//!         })
//!     }
//! }
//! # assert_eq!(Repeat::parse(Object::EMPTY).err(), Some(("text", "must be a string")));
//! # let _ = |repeat: Repeat<'_>| repeat.text.repeat(repeat.times as usize);
//! ```
//!
//! # Results and errors
//!
//! The [`Reply`] writes straight to the output. [`Reply::structured`] fills an object by an
//! [`ObjectWriter`], and [`Reply::text`] is for plain words. What a model can mend is a
//! [`ToolError`], not a panic and not a protocol error: a code, what happened, and what to do now.
//!
//! ```
//! # struct Repeat;
//! # impl Repeat {
//! #     fn parse(_: rocco::Object<'_>) -> Result<Self, (&'static str, &'static str)> {
//! #         Err(("text", "must be a string"))
//! #     }
//! # }
//! use rocco::{Info, Server, ToolError, ToolSpec};
//!
//! let spec = ToolSpec::new("repeat", "Repeats a text.", r#"{"type":"object"}"#);
//! let server = Server::new(Info::new("repeater", "1.0.0"))
//!     .tool_fn(spec, |call, reply| match Repeat::parse(call.arguments) {
//!         Ok(_repeat) => reply.structured(|result| result.boolean("done", true)),
//!         Err((name, wanted)) => reply.error(
//!             ToolError::new("invalid_arguments", format_args!("/{name} {wanted}"))
//!                 .advice("Correct the argument and call again"),
//!         ),
//!     });
//! # let mut engine = server.into_engine();
//! # let call = concat!(
//! #     r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"repeat","_meta":"#,
//! #     r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
//! #     r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#, "\n");
//! # engine.space()[..call.len()].copy_from_slice(call.as_bytes());
//! # engine.fill(call.len());
//! # engine.serve();
//! # let said = std::str::from_utf8(engine.pending()).unwrap();
//! # assert!(said.contains("invalid_arguments: /text must be a string. Correct the argument"));
//! ```
//!
//! Whatever a tool writes is one line of valid JSON, and its [`Answered`] is the answer to its own
//! call: the types see to both. A result that cannot be completed is an internal error (-32603) to
//! its own request, and the next one is served.
//!
//! # Without a transport
//!
//! [`Server::into_engine`] gives an [`Engine`]: bytes in, bytes out, without a system call. With it
//! a test calls a tool as a client does (`examples/words.rs` has one), and a program serves on a
//! transport of its own.
//!
//! # Bounds
//!
//! Those that a tool or its client can meet; the [manual](crate::manual::limits) has all of them.
//!
//! | what | at most | what happens beyond |
//! |---|---|---|
//! | a line of the client, in bytes | 1,048,576 | it is refused with an error |
//! | nesting of its JSON, in levels | 1,024 | it is refused with an error |
//! | the results of one line, in bytes | 3,145,728 | an internal error to the request |
//! | output that the client has not read, in bytes | 262,144 | no further line is served |
//! | a [`Prepared`] answer, in bytes | 65,536 | a panic when it is made |
//! | [`Call::scratch`] of one call, in bytes | 1,048,576 | none is given |
//! | the tools of a server | 1,024 | a panic when it is built |
//! | the name of a tool, in bytes | 64 | a panic when it is built |
//! | [`Server::busy_poll`], in microseconds | 1,000 | it is cut |
//! | [`Engine::space`], in bytes | 65,536 | a longer read is taken in pieces |
//!
//! # How it is built
//!
//! What follows is for a reader of the source.
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
    #[doc = include_str!("executor/walls/manual.md")]
    pub mod walls {}
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
