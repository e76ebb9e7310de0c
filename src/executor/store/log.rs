//! A log that keeps the start and the end of what is printed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use crate::executor::store::full_disk::in_words;
use crate::executor::store::private_file;

/// A log of bounded size: its start and its end are kept, what is between them is left out.
///
/// ```text
///   | start: half | mark | end: an eighth ... |   room   |
///                          grows until the room is used up, and is an eighth again
/// ```
///
/// The start is written once and never moved. An end is moved when three times as much has been
/// written behind it.
#[derive(Debug)]
pub struct TaskLog {
    path: PathBuf,
    file: File,
    /// What the file has.
    bytes: u64,
    /// What was left out of it.
    left_out_bytes: u64,
    bytes_max: u64,
    /// Why nothing is written any more.
    fault: Option<io::Error>,
}

impl TaskLog {
    /// An empty log.
    pub fn create(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let file = private_file(&path)?;
        Ok(Self {
            path,
            file,
            bytes: 0,
            left_out_bytes: 0,
            bytes_max,
            fault: None,
        })
    }

    /// Appends. A full disk costs the rest of the log, and not the task.
    pub fn append(&mut self, text: &[u8]) {
        if self.fault.is_none() {
            self.fault = self.try_append(text).err();
        }
    }

    /// Why the log is not whole, if it is not.
    pub fn fault(&self) -> Option<String> {
        let dir = self.path.parent().unwrap_or(&self.path);
        self.fault.as_ref().map(|error| in_words(dir, error))
    }

    fn try_append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.bytes += text.len() as u64;
        match self.bytes > self.bytes_max {
            true => self.shorten(),
            false => Ok(()),
        }
    }

    /// Moves the end to the start.
    fn shorten(&mut self) -> io::Result<()> {
        let (start_bytes, end_bytes) = (self.bytes_max / 2, self.bytes_max / 8);
        let end_at = self.bytes - end_bytes;
        let old_mark_bytes = match self.left_out_bytes {
            0 => 0,
            bytes => mark(bytes).len() as u64,
        };
        self.left_out_bytes += end_at - start_bytes - old_mark_bytes;
        let mark = mark(self.left_out_bytes);
        let mut end = File::open(&self.path)?;
        end.seek(SeekFrom::Start(end_at))?;
        self.file.seek(SeekFrom::Start(start_bytes))?;
        self.file.write_all(mark.as_bytes())?;
        io::copy(&mut end.take(end_bytes), &mut self.file)?;
        self.bytes = start_bytes + mark.len() as u64 + end_bytes;
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }
}

fn mark(left_out_bytes: u64) -> String {
    format!("\n[rocco: {left_out_bytes} bytes were left out here]\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::NamedTempFile;

    use super::*;

    /// A log, and the file that it is in.
    fn log(bytes_max: u64) -> (TaskLog, NamedTempFile) {
        let file = NamedTempFile::new().unwrap();
        (
            TaskLog::create(file.path().to_owned(), bytes_max).unwrap(),
            file,
        )
    }

    #[test]
    fn a_log_keeps_its_start_and_its_end() {
        let (mut log, file) = log(4000);
        let mut printed_bytes = 0;
        for number in 0..10_000 {
            let line = format!("{number}\n");
            log.append(line.as_bytes());
            printed_bytes += line.len();
        }
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.len() <= 4000 + 64, "{}", text.len());
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("9998\n9999\n"));
        // What is kept and what was left out is what was printed.
        let (start, rest) = text.split_once("\n[rocco: ").unwrap();
        let (left_out, end) = rest.split_once(" bytes were left out here]\n").unwrap();
        let left_out_bytes: usize = left_out.parse().unwrap();
        assert_eq!(start.len() + left_out_bytes + end.len(), printed_bytes);
        assert!(log.fault().is_none());
    }

    #[test]
    fn a_log_moves_no_more_than_half_of_what_is_printed() {
        let (mut log, _file) = log(64 << 10);
        let mut moved_bytes = 0;
        for _ in 0..1024 {
            let before = log.left_out_bytes;
            log.append(&[b'x'; 1024]);
            if log.left_out_bytes > before {
                moved_bytes += log.bytes_max / 8;
            }
        }
        assert!(moved_bytes > 0 && moved_bytes <= 512 << 10, "{moved_bytes}");
    }

    #[test]
    fn a_log_that_cannot_be_written_costs_only_itself() {
        let mut log = TaskLog::create("/dev/full".into(), 4000).unwrap();
        log.append(b"lost");
        log.append(b"lost as well");
        let told = log.fault().unwrap();
        assert!(
            told.starts_with("there is no room on the file system of /dev: "),
            "{told}"
        );
    }
}
