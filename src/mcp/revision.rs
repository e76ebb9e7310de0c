//! The revisions of the protocol, and the differences between them, as data.
//!
//! A new revision is one more row, and code for the features that no earlier revision has. No other
//! module compares versions.

/// The features of a revision. Every reply holds exactly the members that its revision names.
#[derive(Debug, PartialEq, Eq)]
pub struct Revision {
    /// The `protocolVersion` string.
    pub version: &'static str,
    /// Each request names the revision in its envelope; there is no handshake (since 2026-07-28,
    /// Base Protocol, Statelessness).
    pub stateless: bool,
    /// A line may be an array of messages (2025-03-26, Base Protocol, Batching).
    pub batches: bool,
    /// Progress notifications have a `message` (since 2025-03-26, Utilities, Progress).
    pub progress_messages: bool,
    /// Tools have `annotations` (since 2025-03-26, Server Features, Tools).
    pub tool_annotations: bool,
    /// Tools and implementations have a `title` (since 2025-06-18).
    pub titles: bool,
    /// Tools have an `outputSchema`, results have `structuredContent` (since 2025-06-18).
    pub structured_results: bool,
    /// Tools and implementations have `icons`; implementations have `description` and
    /// `websiteUrl` (since 2025-11-25).
    pub icons: bool,
    /// Tools say in `execution` whether a call may become a task (2025-11-25 alone).
    pub tool_execution: bool,
}

/// The first revision. The others are written as what they add to it.
const FIRST: Revision = Revision {
    version: "2024-11-05",
    stateless: false,
    batches: false,
    progress_messages: false,
    tool_annotations: false,
    titles: false,
    structured_results: false,
    icons: false,
    tool_execution: false,
};

/// The revisions that are served, oldest first.
pub static REVISIONS: [Revision; 5] = [
    FIRST,
    Revision {
        version: "2025-03-26",
        batches: true,
        progress_messages: true,
        tool_annotations: true,
        ..FIRST
    },
    Revision {
        version: "2025-06-18",
        progress_messages: true,
        tool_annotations: true,
        titles: true,
        structured_results: true,
        ..FIRST
    },
    Revision {
        version: "2025-11-25",
        progress_messages: true,
        tool_annotations: true,
        titles: true,
        structured_results: true,
        icons: true,
        tool_execution: true,
        ..FIRST
    },
    Revision {
        version: "2026-07-28",
        stateless: true,
        progress_messages: true,
        tool_annotations: true,
        titles: true,
        structured_results: true,
        icons: true,
        ..FIRST
    },
];

/// One of [`REVISIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevisionId(usize);

impl RevisionId {
    /// Every revision, oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..REVISIONS.len()).map(Self)
    }

    /// The revision to answer an `initialize` with: the requested revision if it has a handshake,
    /// else the newest revision that has one. An unknown version is not an error (2025-11-25,
    /// Lifecycle, Version Negotiation).
    pub fn negotiated(requested: &str) -> Self {
        let mut newest = Self(0);
        for revision_id in Self::all().filter(|revision_id| !revision_id.revision().stateless) {
            newest = revision_id;
            if revision_id.revision().version == requested {
                break;
            }
        }
        newest
    }

    /// The stateless revision that an envelope names. A revision with a handshake is not served to
    /// a request with an envelope.
    pub fn stateless(version: &str) -> Option<Self> {
        Self::all().find(|revision_id| {
            let revision = revision_id.revision();
            revision.stateless && revision.version == version
        })
    }

    /// The index in [`REVISIONS`], and in tables of the same order.
    pub fn index(self) -> usize {
        self.0
    }

    /// The features of the revision.
    pub fn revision(self) -> &'static Revision {
        &REVISIONS[self.0]
    }
}

/// The versions that an envelope may name.
pub fn stateless_versions() -> impl Iterator<Item = &'static str> {
    let stateless = REVISIONS.iter().filter(|revision| revision.stateless);
    stateless.map(|revision| revision.version)
}
