//! What a program of a task may use up, as far as the kernel bounds it for each process or user.

use std::ffi::{OsStr, OsString};
use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// The bounds. None stands for what the system allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Memory that one process may claim, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads. In a user namespace those of the task are counted, else all of the
    /// user.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// The length of one file, in bytes.
    pub file_bytes: Option<u64>,
}

impl Bounds {
    /// The bounds as words of a command line.
    pub fn to_word(self) -> OsString {
        let number = |bound: Option<u64>| bound.map_or("-".to_owned(), |bound| bound.to_string());
        let all = [
            self.memory_bytes,
            self.processes,
            self.open_files,
            self.file_bytes,
        ];
        all.map(number).join(",").into()
    }

    /// The bounds that a word says.
    pub fn parse(word: &OsStr) -> Option<Self> {
        let mut numbers = word.to_str()?.split(',').map(|number| match number {
            "-" => Some(None),
            number => number.parse().ok().map(Some),
        });
        let mut next = || numbers.next().flatten();
        Some(Self {
            memory_bytes: next()?,
            processes: next()?,
            open_files: next()?,
            file_bytes: next()?,
        })
    }

    /// Bounds this process and all that it starts.
    ///
    /// # Errors
    ///
    /// A bound is higher than the one that the executor has itself.
    pub fn apply(self) -> io::Result<()> {
        let bounds = [
            // Address space is reserved far beyond what is used, so that data alone is bounded.
            (Resource::Data, self.memory_bytes),
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.open_files),
            (Resource::Fsize, self.file_bytes),
            (Resource::Core, Some(0)),
        ];
        for (resource, bound) in bounds {
            if let Some(bound) = bound {
                let highest = rustix::process::getrlimit(resource).maximum;
                let bound = highest.map_or(bound, |highest| bound.min(highest));
                let limit = Rlimit {
                    current: Some(bound),
                    maximum: Some(bound),
                };
                setrlimit(resource, limit)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_back() {
        for bounds in [
            Bounds::default(),
            Bounds {
                memory_bytes: Some(1 << 32),
                processes: Some(512),
                open_files: None,
                file_bytes: Some(0),
            },
        ] {
            assert_eq!(Bounds::parse(&bounds.to_word()), Some(bounds));
        }
        for word in ["", "1,2,3", "1,2,3,x"] {
            assert_eq!(Bounds::parse(OsStr::new(word)), None, "{word}");
        }
    }
}
