//! The revisions of the protocol, and what each one changes, as data.
//!
//! A new revision is one more entry here, and the code for what no earlier one had.

/// What a revision knows. Every reply holds exactly the members that its revision names.
#[derive(Debug, PartialEq, Eq)]
pub struct Revision {
    /// The `protocolVersion` string.
    pub version: &'static str,
    /// An array of messages may stand on one line (2025-03-26, Base Protocol, Batching).
    pub batches: bool,
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

/// The revisions that are opened by `initialize`, oldest first.
pub static HANDSHAKE: [Revision; 4] = [
    Revision {
        version: "2024-11-05",
        batches: false,
        tool_annotations: false,
        titles: false,
        structured_results: false,
        icons: false,
        tool_execution: false,
    },
    Revision {
        version: "2025-03-26",
        batches: true,
        tool_annotations: true,
        titles: false,
        structured_results: false,
        icons: false,
        tool_execution: false,
    },
    Revision {
        version: "2025-06-18",
        batches: false,
        tool_annotations: true,
        titles: true,
        structured_results: true,
        icons: false,
        tool_execution: false,
    },
    Revision {
        version: "2025-11-25",
        batches: false,
        tool_annotations: true,
        titles: true,
        structured_results: true,
        icons: true,
        tool_execution: true,
    },
];

/// A place in [`HANDSHAKE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake(usize);

impl Handshake {
    /// Every handshake revision, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..HANDSHAKE.len()).map(Self)
    }

    /// The revision to answer a wish with: the same one if it is served, else the newest. An
    /// unknown wish is no error (2025-11-25, Lifecycle, Version Negotiation).
    pub fn negotiated(wish: &str) -> Self {
        let known = HANDSHAKE.iter().position(|known| known.version == wish);
        Self(known.unwrap_or(HANDSHAKE.len() - 1))
    }

    /// Its place in tables that run beside [`HANDSHAKE`].
    pub fn index(self) -> usize {
        self.0
    }

    /// What the revision knows.
    pub fn revision(self) -> &'static Revision {
        &HANDSHAKE[self.0]
    }
}
