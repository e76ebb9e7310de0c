//! Answers that are always the same.

use super::revision::{REVISIONS, Revision};
use super::tool::{Answered, Reply};
use crate::limits::PREPARED_BYTES_MAX;
use crate::wire::outbox::Outbox;

/// An answer that depends on nothing, written when the server is built. A call copies it.
#[derive(Debug, Clone)]
pub struct Prepared {
    with_structure: Box<[u8]>,
    without: Box<[u8]>,
}

impl Prepared {
    /// Writes the answer, once for the revisions that have structured results and once for the
    /// others.
    ///
    /// # Panics
    ///
    /// If the answer is longer than [`PREPARED_BYTES_MAX`].
    pub fn new(write: impl Fn(Reply<'_>) -> Answered) -> Self {
        let mut outbox = Outbox::with_bytes(PREPARED_BYTES_MAX);
        let mut written = |structured_results| {
            let revision = REVISIONS
                .iter()
                .find(|revision| revision.structured_results == structured_results);
            let revision = revision.expect("there are revisions of both kinds");
            write(Reply::new(&mut outbox, revision, ""));
            assert!(outbox.end_result(), "the answer is too long");
            let answer = outbox.pending()[1..].into();
            outbox.consume(outbox.pending().len());
            answer
        };
        Self {
            with_structure: written(true),
            without: written(false),
        }
    }

    /// What follows the members that every result of the revision has.
    pub(super) fn bytes_for(&self, revision: &Revision) -> &[u8] {
        match revision.structured_results {
            true => &self.with_structure,
            false => &self.without,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_answer_is_what_would_be_written() {
        let write = |reply: Reply<'_>| reply.structured(|object| object.string("said", "\"yes\""));
        let prepared = Prepared::new(write);
        for revision in &REVISIONS {
            let answer = |how: &dyn Fn(Reply<'_>) -> Answered| {
                let mut outbox = Outbox::new();
                how(Reply::new(&mut outbox, revision, "\"_meta\":{},"));
                outbox.pending().to_vec()
            };
            let wanted = answer(&write);
            assert_eq!(answer(&|reply| reply.prepared(&prepared)), wanted);
        }
    }
}
