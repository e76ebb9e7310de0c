//! The client of an executor: the four tools of a server that has one, and what becomes of a call.
//!
//! In the order in which a call meets them: [`tools`] are what a model sees, [`client`] is the
//! whole with its input buffer, [`dispatcher`] knows who waits for which answer, [`requests`] turns
//! a call into a line for the executor, [`resend_queue`] keeps the line until it is answered,
//! [`link`] is the connection, [`responses`] turns the executor's line into a reply, and [`timers`]
//! is what happens when no line comes. [`task_update`] and [`snapshots`] are what is remembered of
//! tasks, [`errors`] the typed errors.
//!
//! Like all that stands before the event loop, this layer knows no descriptor and no clock.

pub mod client;
mod dispatcher;
pub mod errors;
pub mod link;
mod requests;
mod resend_queue;
mod responses;
mod snapshots;
pub mod task_update;
mod timers;
mod tools;

pub use client::{ClientSettings, ExecutorClient, hello, read_hello};
pub use timers::NO_HELLO;
pub use tools::tool_names;
