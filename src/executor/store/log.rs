//! A log that keeps the start and the end of what is printed.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use crate::executor::store::private_file;

/// A log of bounded size: its start and its end are kept, what is between them is left out.
#[derive(Debug)]
pub struct TaskLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl TaskLog {
    /// An empty log.
    pub fn create(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let file = private_file(&path)?;
        Ok(Self {
            path,
            file,
            bytes: 0,
            bytes_max,
        })
    }

    /// Appends, and makes room when there is none left.
    pub fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.bytes += text.len() as u64;
        if self.bytes > self.bytes_max {
            self.shorten()?;
        }
        Ok(())
    }

    /// Keeps the first and the last quarter.
    fn shorten(&mut self) -> io::Result<()> {
        let quarter = self.bytes_max / 4;
        let mut old = File::open(&self.path)?;
        let new_path = self.path.with_extension("new");
        let mut new = private_file(&new_path)?;
        io::copy(&mut (&old).take(quarter), &mut new)?;
        let left_out = self.bytes - 2 * quarter;
        let mark = format!("\n[rocco: {left_out} bytes were left out here]\n");
        new.write_all(mark.as_bytes())?;
        old.seek(SeekFrom::Start(self.bytes - quarter))?;
        io::copy(&mut old, &mut new)?;
        fs::rename(&new_path, &self.path)?;
        self.bytes = 2 * quarter + mark.len() as u64;
        self.file = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_start_and_its_end() {
        let path = std::env::temp_dir().join(format!("rocco-log-{}", std::process::id()));
        let mut log = TaskLog::create(path.clone(), 4000).unwrap();
        for number in 0..10_000 {
            log.append(format!("{number}\n").as_bytes()).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(text.len() <= 4000 + 64, "{}", text.len());
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("9998\n9999\n"));
        assert!(text.contains("bytes were left out here"));
    }
}
