//! Who talks to the executor: [`connection`] answers requests one after the other, [`outgoing`]
//! is the side of a connection that is written to, [`peer`] tells where a client stands, [`paging`]
//! cuts long texts into pages.

pub mod connection;
pub mod lines;
pub mod listener;
pub mod outgoing;
pub mod paging;
pub mod peer;
