//! The Model Context Protocol: what messages mean. It does no I/O and knows no clock.
//!
//! In the order in which a message meets them: [`session`] takes one message and writes at most
//! one reply, [`envelope`] tells a stateless request from a request of a handshake session,
//! [`lifecycle`] opens a session, [`tools`] lists and calls the tools, [`subscriptions`] keeps the
//! open subscriptions, [`delegate`] answers requests later, [`owned`] keeps ids and short texts
//! longer than their frame. [`revision`] holds the differences between the revisions of the
//! protocol as data; [`tool`] is the interface of a tool, [`prepared`] an answer that is always the
//! same; [`catalog`] holds the results that are built once; [`errors`] writes protocol errors.

pub mod catalog;
pub mod delegate;
pub mod envelope;
pub mod errors;
pub mod lifecycle;
pub mod owned;
pub mod prepared;
pub mod revision;
pub mod session;
pub mod subscriptions;
pub mod tool;
pub mod tools;
