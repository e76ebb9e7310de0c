//! One of the inherited descriptors, read and written without blocking.
//!
//! The nonblocking flag lives on a description that the parent and siblings share, so it is never
//! set: a shell would find its terminal broken, another program its pipe. Linux can be asked not
//! to wait call by call (`RWF_NOWAIT`: pipes, sockets and most else). Where that is not supported,
//! as on terminals, poll(2) tells first whether a call would wait.

use std::io;
use std::os::fd::RawFd;

use crate::limits::BLOCKING_WRITE_BYTES_MAX;

/// How a call on a descriptor is kept from blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// The call itself is told not to wait.
    NoWait,
    /// poll(2) is asked before each call.
    Poll,
    /// The call never waits for another process: a regular file, or a device like /dev/null.
    Plain,
}

/// A descriptor that this process did not open.
#[derive(Debug)]
pub struct Descriptor {
    fd: RawFd,
    reading: Method,
    writing: Method,
}

impl Descriptor {
    /// A descriptor of this number. It is neither changed nor closed.
    pub fn new(fd: RawFd) -> Self {
        let method = if cfg!(all(target_os = "linux", target_env = "gnu")) {
            Method::NoWait
        } else {
            Method::Poll
        };
        Self::with(fd, method)
    }

    /// A descriptor that poll(2) is asked about before each call.
    pub fn polled(fd: RawFd) -> Self {
        Self::with(fd, Method::Poll)
    }

    /// A descriptor that is always ready, since it cannot be waited on.
    pub fn always_ready(fd: RawFd) -> Self {
        Self::with(fd, Method::Plain)
    }

    fn with(fd: RawFd, method: Method) -> Self {
        Self {
            fd,
            reading: method,
            writing: method,
        }
    }

    /// Its number.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// Whether a read that took less than it could has taken all: true of pipes and sockets, which
    /// can be read without waiting, and not of terminals, which cannot.
    pub fn short_read_drains(&self) -> bool {
        self.reading == Method::NoWait
    }

    /// Reads what is there; `Ok(0)` is the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there, and what the system says otherwise.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.reading == Method::NoWait {
            match read_nowait(self.fd, into) {
                Err(error) if is_unsupported(&error) => self.reading = Method::Poll,
                other => return other,
            }
        }
        if self.reading == Method::Poll && !is_ready(self.fd, libc::POLLIN)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // SAFETY: the pointer and the length are those of a live slice that is borrowed for the
        // call, which writes at most that many bytes.
        counted(unsafe { libc::read(self.fd, into.as_mut_ptr().cast(), into.len()) })
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room, and what the system says otherwise.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if self.writing == Method::NoWait {
            match write_nowait(self.fd, from) {
                Err(error) if is_unsupported(&error) => self.writing = Method::Poll,
                other => return other,
            }
        }
        if self.writing == Method::Plain {
            return write(self.fd, from);
        }
        let mut written = 0;
        for piece in from.chunks(BLOCKING_WRITE_BYTES_MAX) {
            let outcome = match is_ready(self.fd, libc::POLLOUT) {
                Ok(true) => write(self.fd, piece),
                Ok(false) => break,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(count) if count == piece.len() => written += count,
                Ok(count) => return Ok(written + count),
                // What was written counts, or it would be written again.
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if written == 0 && !from.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(written)
    }
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: isatty(3) takes any integer, and says no to one that is no descriptor.
    unsafe { libc::isatty(fd) == 1 }
}

fn write(fd: RawFd, from: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a live slice, which is only read.
    counted(unsafe { libc::write(fd, from.as_ptr().cast(), from.len()) })
}

/// Whether a call of this kind would return at once: with data, with room, or with an end.
fn is_ready(fd: RawFd, events: libc::c_short) -> io::Result<bool> {
    let mut entry = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: the pointer is to one live entry, and the count says one.
    let count = unsafe { libc::poll(&raw mut entry, 1, 0) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(count > 0)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn read_nowait(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    let part = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: the one part is a live slice that is borrowed for the call, which writes at most its
    // length. An offset of -1 means the current position, as read(2) has it.
    counted(unsafe { libc::preadv2(fd, &raw const part, 1, -1, libc::RWF_NOWAIT) })
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn write_nowait(fd: RawFd, from: &[u8]) -> io::Result<usize> {
    let part = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    // SAFETY: the one part is a live slice, which the call only reads. An offset of -1 means the
    // current position, as write(2) has it.
    counted(unsafe { libc::pwritev2(fd, &raw const part, 1, -1, libc::RWF_NOWAIT) })
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn read_nowait(_: RawFd, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn write_nowait(_: RawFd, _: &[u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

fn counted(count: isize) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Errors by which a kernel or a file system says that it cannot be asked not to wait.
fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(
            error.raw_os_error(),
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ESPIPE)
        )
}
