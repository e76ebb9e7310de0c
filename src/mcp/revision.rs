//! The revisions of the protocol, and what each one changes, as data.
//!
//! A new revision is one more row here, and the code for what no earlier one had.

/// What a revision knows. Every reply holds exactly the members that its revision names.
#[derive(Debug, PartialEq, Eq)]
pub struct Revision {
    /// The `protocolVersion` string.
    pub version: &'static str,
    /// Each request names the revision in an envelope of its own and stands alone; there is no
    /// handshake (since 2026-07-28, Base Protocol, Statelessness).
    pub stateless: bool,
    /// An array of messages may stand on one line (2025-03-26, Base Protocol, Batching).
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

/// What the first revision knows; the others are told by what they add.
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

    /// The revision to answer an `initialize` with: the one that is asked for, if it has a
    /// handshake, else the newest that has. An unknown wish is no error (2025-11-25, Lifecycle,
    /// Version Negotiation).
    pub fn negotiated(wish: &str) -> Self {
        let mut newest = Self(0);
        for revision_id in Self::all().filter(|revision_id| !revision_id.revision().stateless) {
            newest = revision_id;
            if revision_id.revision().version == wish {
                break;
            }
        }
        newest
    }

    /// The revision that an envelope names. One with a handshake cannot be had without it.
    pub fn stateless(version: &str) -> Option<Self> {
        Self::all().find(|revision_id| {
            let revision = revision_id.revision();
            revision.stateless && revision.version == version
        })
    }

    /// Its place in tables that run beside [`REVISIONS`].
    pub fn index(self) -> usize {
        self.0
    }

    /// What the revision knows.
    pub fn revision(self) -> &'static Revision {
        &REVISIONS[self.0]
    }
}

/// The versions that an envelope may name.
pub fn stateless_versions() -> impl Iterator<Item = &'static str> {
    let stateless = REVISIONS.iter().filter(|revision| revision.stateless);
    stateless.map(|revision| revision.version)
}
