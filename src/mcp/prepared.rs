//! Answers that are always the same.

use super::revision::{REVISIONS, Revision};
use super::tool::{Answered, Reply};
use crate::limits::PREPARED_BYTES_MAX;
use crate::wire::outbox::Outbox;

/// An answer that depends on nothing, written when the server is built. A call copies it, by
/// [`Reply::prepared`].
///
/// ```
/// use rocco::{Info, Prepared, Server, ToolSpec};
///
/// let pong = Prepared::new(|reply| reply.text("pong"));
/// let spec = ToolSpec::new("ping", "Answers.", r#"{"type":"object"}"#);
/// let server = Server::new(Info::new("table", "1.0.0"))
///     .tool_fn(spec, move |_call, reply| reply.prepared(&pong));
/// # let _ = server;
/// ```
#[derive(Debug, Clone)]
#[must_use = "an answer is not sent until a Reply copies it"]
pub struct Prepared {
    with_structure: Box<[u8]>,
    without: Box<[u8]>,
}

impl Prepared {
    /// Has the answer written, once for the revisions that have structured results and once for the
    /// others.
    ///
    /// # Panics
    ///
    /// If the answer is longer than 65,536 bytes, or a `Display` in it fails.
    pub fn new(write: impl Fn(Reply<'_>) -> Answered<'_>) -> Self {
        let mut outbox = Outbox::with_bytes(PREPARED_BYTES_MAX);
        let mut written = |structured_results| {
            let revision = REVISIONS
                .iter()
                .find(|revision| revision.structured_results == structured_results);
            let revision = revision.expect("there are revisions of both kinds");
            let _: Answered<'_> = write(Reply::new(&mut outbox, revision, ""));
            assert!(
                outbox.end_result(),
                "the prepared answer is longer than {PREPARED_BYTES_MAX} bytes or cannot be formatted"
            );
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
        fn write(reply: Reply<'_>) -> Answered<'_> {
            reply.structured(|object| object.string("said", "\"yes\""))
        }
        let prepared = Prepared::new(write);
        for revision in &REVISIONS {
            let answer = |how: &dyn Fn(Reply<'_>) -> Answered<'_>| {
                let mut outbox = Outbox::new();
                let _ = how(Reply::new(&mut outbox, revision, "\"_meta\":{},"));
                outbox.pending().to_vec()
            };
            let wanted = answer(&write);
            assert_eq!(answer(&|reply| reply.prepared(&prepared)), wanted);
        }
    }
}
