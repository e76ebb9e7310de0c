//! An MCP server on stdio: one thread, one event loop, constant memory.
#![deny(missing_docs)]

pub mod engine;
pub mod event_loop;
pub mod limits;
pub mod mcp;
pub mod server;
pub mod task;
pub mod wire;

pub use mcp::catalog::Info;
pub use mcp::tool::{Annotations, Answered, Call, Icon, Reply, Tool, ToolError, ToolSpec};
pub use server::Server;
