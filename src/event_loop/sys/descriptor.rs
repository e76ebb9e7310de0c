//! One of the inherited descriptors, read and written without blocking.
//!
//! The nonblocking flag lives on a description that the parent and siblings share, so it is never
//! set: a shell would find its terminal broken, another program its pipe. On Linux a pipe, and a
//! terminal that is written, can be opened anew instead, which gives a description of this
//! process's own; a socket can be asked not to wait call by call, and so can most else
//! (`RWF_NOWAIT`), a little slower. Where none of that is supported, poll(2) tells first whether a
//! call would wait. Of writing to a terminal it does not tell that: a write waits until there is
//! room for all of it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::limits::BLOCKING_WRITE_BYTES_MAX;

/// How a call on a descriptor is kept from blocking.
#[derive(Debug)]
enum Method {
    /// This is the same pipe or terminal with a description of this process's own, which does not
    /// block.
    Own(File),
    /// It is a socket, and each call says that it is not to wait.
    Socket,
    /// Each call says that it is not to wait.
    NoWait,
    /// poll(2) is asked before each call.
    Poll,
    /// The call never waits for another process: a regular file, or a device like /dev/null. Or it
    /// fails at once, since the descriptor was not opened for it.
    Plain,
}

/// What is done with a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// A descriptor that this process inherited. What was inherited is neither changed nor closed.
#[derive(Debug)]
pub struct Descriptor {
    inherited: BorrowedFd<'static>,
    method: Method,
}

impl Descriptor {
    /// A descriptor, in the fastest way that its kind of file allows.
    pub fn new(inherited: BorrowedFd<'static>, access: Access) -> Self {
        // What is not known is not held against it.
        let flags = fcntl_getfl(inherited).ok();
        let method = match kind(inherited) {
            _ if flags.is_some_and(|flags| !allows(flags, access)) => Method::Plain,
            Some(FileType::CharacterDevice) if !is_written_terminal(inherited, access) => {
                Method::GENERAL
            }
            Some(FileType::Fifo | FileType::CharacterDevice) => {
                match flags.and_then(|held| reopened(inherited, held, access)) {
                    Some(own) => Method::Own(own),
                    None => Method::GENERAL,
                }
            }
            Some(FileType::Socket) => Method::Socket,
            _ => Method::GENERAL,
        };
        Self { inherited, method }
    }

    /// A descriptor for a word now and then, by the most usual of calls: poll(2) and then write(2),
    /// but for a terminal, where poll(2) promises too little.
    pub fn for_words(inherited: BorrowedFd<'static>) -> Self {
        let is_device = kind(inherited) == Some(FileType::CharacterDevice);
        let method = match Self::new(inherited, Access::Write).method {
            Method::Own(own) if is_device => Method::Own(own),
            _ => Method::Poll,
        };
        Self { inherited, method }
    }

    /// A descriptor that is always ready, since it cannot be waited on.
    pub fn always_ready(inherited: BorrowedFd<'static>) -> Self {
        Self {
            inherited,
            method: Method::Plain,
        }
    }

    /// What to wait on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.method {
            Method::Own(own) => own.as_fd(),
            _ => self.inherited,
        }
    }

    /// Whether a read that took less than it could has taken all: true of pipes and sockets, which
    /// can be read without waiting, and not of terminals, which cannot.
    pub fn short_read_drains(&self) -> bool {
        matches!(
            self.method,
            Method::Own(_) | Method::Socket | Method::NoWait
        )
    }

    /// Reads what is there; `Ok(0)` is the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there, and what the system says otherwise.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &self.method {
            Method::Own(own) => return Ok(rustix::io::read(own, into)?),
            Method::Plain => return Ok(rustix::io::read(self.inherited, into)?),
            Method::Socket => return Ok(recv(self.inherited, into, RecvFlags::DONTWAIT)?.0),
            Method::NoWait => match read_nowait(self.inherited, into) {
                Err(errno) if is_unsupported(errno) => self.method = Method::Poll,
                outcome => return Ok(outcome?),
            },
            Method::Poll => {}
        }
        if is_ready(self.inherited, PollFlags::IN)? {
            Ok(rustix::io::read(self.inherited, into)?)
        } else {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room, and what the system says otherwise.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match &self.method {
            Method::Own(own) => return Ok(rustix::io::write(own, from)?),
            Method::Plain => return Ok(rustix::io::write(self.inherited, from)?),
            Method::Socket => return Ok(send(self.inherited, from, SendFlags::DONTWAIT)?),
            Method::NoWait => match write_nowait(self.inherited, from) {
                Err(errno) if is_unsupported(errno) => self.method = Method::Poll,
                outcome => return Ok(outcome?),
            },
            Method::Poll => {}
        }
        self.write_polled(from)
    }

    /// Writes in pieces so small that none of them waits where poll(2) says that there is room.
    fn write_polled(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        for piece in from.chunks(BLOCKING_WRITE_BYTES_MAX) {
            let outcome = match is_ready(self.inherited, PollFlags::OUT) {
                Ok(true) => rustix::io::write(self.inherited, piece),
                Ok(false) => break,
                Err(errno) => Err(errno),
            };
            match outcome {
                Ok(count) if count == piece.len() => written += count,
                Ok(count) => return Ok(written + count),
                // What was written counts, or it would be written again.
                Err(_) if written > 0 => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        if written == 0 && !from.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(written)
    }
}

impl Method {
    /// What suits any kind of file.
    const GENERAL: Self = if cfg!(target_os = "linux") {
        Self::NoWait
    } else {
        Self::Poll
    };
}

/// Which kind of file a descriptor is of.
fn kind(fd: BorrowedFd<'_>) -> Option<FileType> {
    let stat = fstat(fd).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Whether a descriptor with these flags was opened for this access.
fn allows(flags: OFlags, access: Access) -> bool {
    let wanted = match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
    };
    [wanted, OFlags::RDWR].contains(&(flags & OFlags::ACCMODE))
}

/// Whether a descriptor is a terminal of a terminal emulator, a multiplexer or `ssh`, and is
/// written. Their other side is not among them: to open that anew makes a new terminal.
#[cfg(target_os = "linux")]
fn is_written_terminal(fd: BorrowedFd<'_>, access: Access) -> bool {
    const MAJORS: std::ops::RangeInclusive<u32> = 136..=143;
    let is_slave = |stat: rustix::fs::Stat| MAJORS.contains(&rustix::fs::major(stat.st_rdev));
    access == Access::Write && fstat(fd).is_ok_and(is_slave)
}

#[cfg(not(target_os = "linux"))]
fn is_written_terminal(_: BorrowedFd<'_>, _: Access) -> bool {
    false
}

/// The same file with a description of its own. None where the system or its rights do not allow
/// it, or what is written by it are packets.
#[cfg(target_os = "linux")]
fn reopened(fd: BorrowedFd<'_>, flags: OFlags, access: Access) -> Option<File> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    if flags.contains(OFlags::DIRECT) {
        return None;
    }
    File::options()
        .read(access == Access::Read)
        .write(access == Access::Write)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .ok()
}

#[cfg(not(target_os = "linux"))]
fn reopened(_: BorrowedFd<'_>, _: OFlags, _: Access) -> Option<File> {
    None
}

/// Whether a call of this kind would return at once: with data, with room, or with an end.
fn is_ready(fd: BorrowedFd<'_>, events: PollFlags) -> rustix::io::Result<bool> {
    let count = poll(
        &mut [PollFd::from_borrowed_fd(fd, events)],
        Some(&Timespec::default()),
    )?;
    Ok(count > 0)
}

/// Reads at the current position, as read(2) does, which the largest offset stands for.
#[cfg(target_os = "linux")]
fn read_nowait(fd: BorrowedFd<'_>, into: &mut [u8]) -> rustix::io::Result<usize> {
    use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
    let mut parts = [IoSliceMut::new(into)];
    preadv2(fd, &mut parts, u64::MAX, ReadWriteFlags::NOWAIT)
}

/// Writes at the current position, as write(2) does, which the largest offset stands for.
#[cfg(target_os = "linux")]
fn write_nowait(fd: BorrowedFd<'_>, from: &[u8]) -> rustix::io::Result<usize> {
    use rustix::io::{IoSlice, ReadWriteFlags, pwritev2};
    pwritev2(fd, &[IoSlice::new(from)], u64::MAX, ReadWriteFlags::NOWAIT)
}

#[cfg(not(target_os = "linux"))]
fn read_nowait(_: BorrowedFd<'_>, _: &mut [u8]) -> rustix::io::Result<usize> {
    Err(Errno::NOTSUP)
}

#[cfg(not(target_os = "linux"))]
fn write_nowait(_: BorrowedFd<'_>, _: &[u8]) -> rustix::io::Result<usize> {
    Err(Errno::NOTSUP)
}

/// Errors by which a kernel or a file system says that it cannot be asked not to wait.
fn is_unsupported(errno: Errno) -> bool {
    [
        Errno::NOTSUP,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::INVAL,
        Errno::SPIPE,
    ]
    .contains(&errno)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;
    use std::{ptr, thread};

    use super::*;

    /// A terminal whose other side stays open and is not read, as long as the test runs.
    fn terminal() -> BorrowedFd<'static> {
        let (mut other, mut terminal) = (-1, -1);
        let (name, state, size) = (ptr::null_mut(), ptr::null(), ptr::null());
        // SAFETY: The two places are written, and null stands for what is left to the system.
        let opened = unsafe { libc::openpty(&mut other, &mut terminal, name, state, size) };
        assert_eq!(opened, 0);
        // SAFETY: It was opened just now, and is never closed.
        unsafe { BorrowedFd::borrow_raw(terminal) }
    }

    /// poll(2) had said that there was room, and there was less than for the write: it waited for
    /// a reader, in which neither a signal nor the end of the input was seen.
    #[test]
    fn a_terminal_that_nobody_reads_makes_no_write_wait() {
        for line_bytes in [1, 100, 255, 700, 2602] {
            let (ended, end) = mpsc::channel();
            let writer = thread::Builder::new().spawn(move || {
                let mut descriptor = Descriptor::new(terminal(), Access::Write);
                let line = ["x".repeat(line_bytes - 1), "\n".into()].concat();
                let all = line.repeat((1 << 20) / line_bytes);
                let mut rest = all.as_bytes();
                let fault = loop {
                    match descriptor.write(rest) {
                        Ok(count) => rest = &rest[count..],
                        Err(error) => break error.kind(),
                    }
                };
                ended.send((fault, rest.len() < all.len()))
            });
            writer.expect("a thread");
            let outcome = end.recv_timeout(Duration::from_secs(10));
            assert_eq!(outcome, Ok((ErrorKind::WouldBlock, true)), "{line_bytes}");
        }
    }
}
