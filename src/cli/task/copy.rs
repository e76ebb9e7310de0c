//! `rocco task log` and `rocco task diff`: a file of a task as it is.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::EXECUTOR_LINE_BYTES_MAX;

use super::text::{OutputFormat, unreadable};

/// Prints a file of a task. Nothing that would steer a terminal goes to one.
pub(super) fn copy(
    path: &Path,
    format: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let mut lines = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ExitCode::SUCCESS),
        Err(error) => return Ok(unreadable(path, &error)),
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let part = (&mut lines)
            .take(EXECUTOR_LINE_BYTES_MAX as u64)
            .read_until(b'\n', &mut line);
        match part {
            Ok(0) => return Ok(ExitCode::SUCCESS),
            Ok(_) if format.terminal => {
                let text = String::from_utf8_lossy(&line);
                write!(out, "{}", Sanitized::new(&text, text.len()))?;
            }
            Ok(_) => out.write_all(&line)?,
            Err(error) => return Ok(unreadable(path, &error)),
        }
    }
}
