//! `rocco task log` and `rocco task diff`: a file of a task.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::executor::store::plain_file::open_plain;
use crate::executor_protocol::sanitize::Sanitized;
use crate::limits::EXECUTOR_LINE_BYTES_MAX;

use super::text::{OutputFormat, unreadable};

/// Prints a file of a task. What would steer a terminal is an escape also where the output is
/// something else, which may lead to a terminal.
pub(super) fn copy(
    path: &Path,
    format: OutputFormat,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let mut lines = match open_plain(path) {
        Ok(Some(file)) => BufReader::new(file),
        Ok(None) => return Ok(ExitCode::SUCCESS),
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
            Ok(_) if !format.raw => {
                let text = String::from_utf8_lossy(&line);
                write!(out, "{}", Sanitized::file(&text))?;
            }
            Ok(_) => out.write_all(&line)?,
            Err(error) => return Ok(unreadable(path, &error)),
        }
    }
}
