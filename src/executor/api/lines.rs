//! The lines of a connection: of bounded length, and each within its time.

use std::io::{self, BufRead, BufReader, Read, StdinLock};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::limits::{EXECUTOR_LINE_BYTES_MAX, FRONT_LINE_MS};

/// What lines are read from.
pub trait LineReader: BufRead {
    /// Has reads fail that would wait longer than that.
    fn set_deadline(&mut self, deadline: Option<Instant>);
}

/// Whoever started the executor has its stdin alone, and may take its time.
impl LineReader for StdinLock<'_> {
    fn set_deadline(&mut self, _: Option<Instant>) {}
}

impl LineReader for BufReader<SocketReader> {
    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.get_mut().deadline = deadline;
    }
}

#[cfg(test)]
impl LineReader for BufReader<&[u8]> {
    fn set_deadline(&mut self, _: Option<Instant>) {}
}

/// A socket that is read until a deadline.
#[derive(Debug)]
pub struct SocketReader {
    stream: Arc<UnixStream>,
    deadline: Option<Instant>,
}

impl SocketReader {
    /// Reads without a deadline, for now.
    pub fn new(stream: Arc<UnixStream>) -> Self {
        Self {
            stream,
            deadline: None,
        }
    }
}

impl Read for SocketReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(left)?;
        (&*self.stream).read(buffer)
    }
}

/// A line, or why there is none.
#[derive(Debug)]
pub enum ReadLine {
    /// It is there, without its LF.
    Whole,
    /// It passed the bound and was thrown away.
    TooLong,
    /// Nothing comes any more, or not in time.
    End,
}

/// Reads a line of bounded length, whose first byte must come by a time, if there is one. From then
/// on the rest must come within [`FRONT_LINE_MS`]. The rest of a line that is too long is thrown
/// away.
pub fn read_line(
    reader: &mut impl LineReader,
    line: &mut Vec<u8>,
    first_by: Option<Instant>,
) -> ReadLine {
    line.clear();
    reader.set_deadline(first_by);
    let (mut is_begun, mut is_too_long) = (false, false);
    loop {
        let chunk = match reader.fill_buf() {
            Ok([]) => return ReadLine::End,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return ReadLine::End,
        };
        let end = memchr::memchr(b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        is_too_long |= line.len() + part.len() > EXECUTOR_LINE_BYTES_MAX;
        if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        match (end, is_too_long) {
            (Some(_), false) => return ReadLine::Whole,
            (Some(_), true) => return ReadLine::TooLong,
            (None, _) if is_begun => {}
            (None, _) => {
                is_begun = true;
                let rest_by = Instant::now() + Duration::from_millis(FRONT_LINE_MS);
                reader.set_deadline(Some(first_by.map_or(rest_by, |by| by.min(rest_by))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_line_over_the_bound_is_thrown_away_and_the_next_one_read() {
        let mut input = vec![b'x'; EXECUTOR_LINE_BYTES_MAX + 1];
        input.extend_from_slice(b"\nnext\n");
        let mut reader = BufReader::new(&input[..]);
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| read_line(&mut reader, line, None);
        assert!(matches!(next(&mut line), ReadLine::TooLong));
        assert!(matches!(next(&mut line), ReadLine::Whole));
        assert_eq!(line, b"next");
        assert!(matches!(next(&mut line), ReadLine::End));
    }

    /// Each byte of a drip began the time anew.
    #[test]
    fn a_drip_of_bytes_does_not_put_a_deadline_off() {
        let (stream, mut peer) = UnixStream::pair().unwrap();
        let drip = std::thread::spawn(move || {
            // It stops when the other side has given up.
            while peer.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut reader = BufReader::new(SocketReader::new(Arc::new(stream)));
        let started = Instant::now();
        let by = started + Duration::from_millis(100);
        let read = read_line(&mut reader, &mut Vec::new(), Some(by));
        assert!(matches!(read, ReadLine::End));
        assert!(started.elapsed() >= Duration::from_millis(100));
        drop(reader);
        drip.join().unwrap();
    }
}
