//! What an agent says of its own work, which proves nothing but may ask for something.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::executor::json;
use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::{TASK_OUTCOME_BYTES_MAX, TASK_SUMMARY_BYTES_MAX};

/// What an agent says of its own work, in the file that `ROCCO_OUTCOME` names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Nothing needs to be changed.
    pub no_change_needed: bool,
    /// It cannot go on without an answer.
    pub needs_input: bool,
    /// What it did.
    pub summary: Option<String>,
    /// What it needs to know.
    pub question: Option<String>,
}

impl Claim {
    /// Reads the text of the file. None if it is not understood.
    pub fn parse(text: &[u8]) -> Option<Self> {
        json::with(text, |object| {
            let outcome = json::text(object, "outcome")?;
            let plain = |name| {
                let text = json::text(object, name)?;
                Some(Sanitized::new(text, TASK_SUMMARY_BYTES_MAX).to_string())
            };
            Some(Self {
                no_change_needed: outcome == "no_change_needed",
                needs_input: outcome == "needs_input",
                summary: plain("summary"),
                question: plain("question"),
            })
        })?
    }

    /// Reads what the agent says, if it has put something where it was told to.
    ///
    /// # Errors
    ///
    /// It is not a plain file, or its text is not understood.
    pub fn from_file(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = Vec::new();
        let mut part = file.take(TASK_OUTCOME_BYTES_MAX as u64);
        part.read_to_end(&mut text)?;
        let claim = Self::parse(&text).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(claim))
    }
}
