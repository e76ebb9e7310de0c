//! Files that others may have replaced, read without waiting for a FIFO and to a bound.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file that has to be a plain one. None if nothing is there.
pub fn open_plain(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file that has to be a plain one, and no larger than this. None if nothing is there.
pub fn read_plain(path: &Path, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_plain(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > bytes_max {
        true => Err(io::Error::other(format!(
            "it has more than {bytes_max} bytes"
        ))),
        false => Ok(Some(bytes)),
    }
}

/// Reads such a file as text. None if nothing is there, or nothing that can be read so.
pub fn text_of(path: &Path, bytes_max: usize) -> Option<String> {
    String::from_utf8(read_plain(path, bytes_max).ok()??).ok()
}
