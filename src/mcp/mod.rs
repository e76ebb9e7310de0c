//! What messages mean. No bytes of a stream, no I/O, no clock.
//!
//! In the order in which a message meets them: [`session`] takes one message and writes at most
//! one reply, [`envelope`] tells a stateless request from one of the handshake, [`lifecycle`]
//! opens a session, [`tools`] lists and calls, [`subscriptions`] stay open, a [`delegate`] answers
//! later. [`owned`] words outlive their frame. [`revision`] holds, as data, what the revisions of
//! the protocol differ in; [`tool`] is what a tool is and may do, [`prepared`] what it always
//! answers; [`catalog`] holds the replies that are built once; [`errors`] writes protocol errors.

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
