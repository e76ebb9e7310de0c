//! Faults of a task's arguments: which argument, and which rule it breaks.

use std::fmt::{self, Write as _};

use bumpalo::Bump;
use bumpalo::collections::Vec;

use crate::limits::TASK_FAULTS_MAX;
use crate::wire::writer::quote;

/// The place of a fault in the arguments, shown as a JSON Pointer (RFC 6901).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointer<'a> {
    /// A member of the arguments.
    Member(&'a str),
    /// An entry of a list among them.
    Entry(&'static str, usize),
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Entry(list, index) => write!(f, "/{list}/{index}"),
            Self::Member(name) => {
                f.write_str("/")?;
                quote(name).try_for_each(|character| match character {
                    '~' => f.write_str("~0"),
                    '/' => f.write_str("~1"),
                    plain => f.write_char(plain),
                })
            }
        }
    }
}

/// The rule that an argument breaks, shown as the words behind the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A required member is missing.
    Missing,
    /// A member is given twice.
    Repeated,
    /// The schema does not have this member.
    Unknown,
    /// The value is of the wrong type.
    WrongType {
        /// The type of the schema.
        wanted: &'static str,
        /// The type of the value.
        found: &'static str,
    },
    /// A text without a visible character.
    Blank,
    /// A text over its bound.
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
    /// A list over its bound.
    TooMany {
        /// The bound.
        entries_max: usize,
    },
    /// A list that needs an entry has none.
    Empty,
    /// A path that must start at the root does not.
    NotAbsolute,
    /// A path that must be relative is absolute.
    NotRelative,
    /// A path that could lead out of the repository.
    LeavesRepository,
    /// A path that a program could take for an option.
    LeadingDash,
    /// A path with a control character.
    ControlCharacter,
    /// A path that was listed before.
    Duplicate,
    /// An integer beyond its bounds.
    OutOfRange {
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// A text that is not a task id.
    NotATask,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is required",
            Self::Repeated => "is given more than once",
            Self::Unknown => "is not an argument of this tool",
            Self::WrongType { wanted, found } => {
                return write!(f, "must be {wanted}, not {found}");
            }
            Self::Blank => "must not be blank",
            Self::TooLong { bytes_max } => {
                return write!(f, "must have at most {bytes_max} bytes");
            }
            Self::TooMany { entries_max } => {
                return write!(f, "must have at most {entries_max} entries");
            }
            Self::Empty => "must have at least one entry",
            Self::NotAbsolute => "must be an absolute path",
            Self::NotRelative => "must be relative to the repository",
            Self::LeavesRepository => "must not have a .. component",
            Self::LeadingDash => "must not start with -",
            Self::ControlCharacter => "must not hold control characters",
            Self::Duplicate => "stands in the list already",
            Self::OutOfRange { min, max } => return write!(f, "must be {min} to {max}"),
            Self::NotATask => "must be a task_id: tsk_ and 26 capital letters and digits",
        })
    }
}

/// One fault of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault<'a> {
    /// The argument.
    pub pointer: Pointer<'a>,
    /// The rule that the argument breaks.
    pub reason: Reason,
}

/// All faults of one call, in the order of the schema. Faults beyond [`TASK_FAULTS_MAX`] are only
/// counted.
#[derive(Debug)]
pub struct Faults<'a> {
    listed: Vec<'a, Fault<'a>>,
    unlisted: usize,
}

impl<'a> Faults<'a> {
    pub(super) fn new(arena: &'a Bump) -> Self {
        Self {
            listed: Vec::new_in(arena),
            unlisted: 0,
        }
    }

    pub(super) fn push(&mut self, pointer: Pointer<'a>, reason: Reason) {
        if self.listed.len() < TASK_FAULTS_MAX {
            self.listed.push(Fault { pointer, reason });
        } else {
            self.unlisted += 1;
        }
    }

    /// The faults, at most [`TASK_FAULTS_MAX`].
    pub fn listed(&self) -> &[Fault<'a>] {
        &self.listed
    }

    /// Whether a member is listed that the tool does not have.
    pub fn has_unknown(&self) -> bool {
        let mut reasons = self.listed.iter().map(|fault| fault.reason);
        reasons.any(|reason| reason == Reason::Unknown)
    }

    /// How many faults were counted beyond [`TASK_FAULTS_MAX`].
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }
}

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.listed.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{} {}", fault.pointer, fault.reason)?;
        }
        match self.unlisted {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
