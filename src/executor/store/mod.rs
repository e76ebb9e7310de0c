//! What is kept on disk: [`journal`] is the state directory.

pub mod journal;
