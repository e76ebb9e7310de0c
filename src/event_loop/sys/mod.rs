//! The one place for system calls of the event loop.
//!
//! [`stdio`] is the transport of production, made of [`descriptor`]s that are read and written
//! without touching their shared flags, of [`signals`], of an [`idle_timer`], of a watch on the
//! parent ([`pidfd`]), and of the channel to an executor ([`executor_channel`]), which may be a
//! [`child`], or a daemon whose user is known ([`peer`]).

pub mod allocator;
pub mod child;
pub mod descriptor;
pub mod executor_channel;
pub mod idle_timer;
pub mod peer;
pub mod pidfd;
pub mod signals;
pub mod stdio;
