//! One of the inherited descriptors, read and written without blocking.
//!
//! The nonblocking flag lives on a description that the parent and siblings share, so it is never
//! set: a shell would find its terminal broken, another program its pipe. On Linux a pipe can be
//! opened anew instead, which gives a description of this process's own; a socket can be asked not
//! to wait call by call, and so can most else (`RWF_NOWAIT`), a little slower. Where none of that
//! is supported, as on terminals, poll(2) tells first whether a call would wait.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};

use crate::limits::BLOCKING_WRITE_BYTES_MAX;

/// How a call on a descriptor is kept from blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// The description is this process's own, and does not block.
    Own,
    /// It is a socket, and each call says that it is not to wait.
    Socket,
    /// Each call says that it is not to wait.
    NoWait,
    /// poll(2) is asked before each call.
    Poll,
    /// The call never waits for another process: a regular file, or a device like /dev/null.
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
    fd: RawFd,
    /// The same file with a description of this process's own, whose number `fd` then is.
    _own: Option<File>,
    method: Method,
}

impl Descriptor {
    /// A descriptor of this number, in the fastest way that its kind of file allows.
    pub fn new(fd: RawFd, access: Access) -> Self {
        let kind = kind(fd);
        if kind == Some(libc::S_IFIFO)
            && let Some(own) = reopened(fd, access)
        {
            return Self {
                fd: own.as_raw_fd(),
                _own: Some(own),
                method: Method::Own,
            };
        }
        Self::with(
            fd,
            match kind {
                Some(libc::S_IFSOCK) => Method::Socket,
                _ if cfg!(all(target_os = "linux", target_env = "gnu")) => Method::NoWait,
                _ => Method::Poll,
            },
        )
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
            _own: None,
            method,
        }
    }

    /// The number to wait on.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// Whether a read that took less than it could has taken all: true of pipes and sockets, which
    /// can be read without waiting, and not of terminals, which cannot.
    pub fn short_read_drains(&self) -> bool {
        matches!(self.method, Method::Own | Method::Socket | Method::NoWait)
    }

    /// Reads what is there; `Ok(0)` is the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there, and what the system says otherwise.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.method {
            Method::Own | Method::Plain => return read(self.fd, into),
            Method::Socket => return receive(self.fd, into),
            Method::NoWait => match read_nowait(self.fd, into) {
                Err(error) if is_unsupported(&error) => self.method = Method::Poll,
                other => return other,
            },
            Method::Poll => {}
        }
        if is_ready(self.fd, libc::POLLIN)? {
            read(self.fd, into)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room, and what the system says otherwise.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.method {
            Method::Own | Method::Plain => return write(self.fd, from),
            Method::Socket => return send(self.fd, from),
            Method::NoWait => match write_nowait(self.fd, from) {
                Err(error) if is_unsupported(&error) => self.method = Method::Poll,
                other => return other,
            },
            Method::Poll => {}
        }
        self.write_polled(from)
    }

    /// Writes in pieces so small that none of them waits where poll(2) says that there is room.
    fn write_polled(&mut self, from: &[u8]) -> io::Result<usize> {
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

/// Which kind of file a descriptor is of.
fn kind(fd: RawFd) -> Option<libc::mode_t> {
    // SAFETY: a `stat` of zeros is a value of the type.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value, which the call writes; the number may be any.
    let outcome = unsafe { libc::fstat(fd, &raw mut stat) };
    (outcome == 0).then_some(stat.st_mode & libc::S_IFMT)
}

/// The same pipe with a description of its own. None where the system or its rights do not allow
/// it, or the descriptor itself has not this access, or what is written by it are packets.
#[cfg(target_os = "linux")]
fn reopened(fd: RawFd, access: Access) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // SAFETY: the call takes integers, and reads flags.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    let held = flags & libc::O_ACCMODE;
    let wanted = match access {
        Access::Read => libc::O_RDONLY,
        Access::Write => libc::O_WRONLY,
    };
    if flags < 0 || flags & libc::O_DIRECT != 0 || ![wanted, libc::O_RDWR].contains(&held) {
        return None;
    }
    File::options()
        .read(access == Access::Read)
        .write(access == Access::Write)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{fd}"))
        .ok()
}

#[cfg(not(target_os = "linux"))]
fn reopened(_: RawFd, _: Access) -> Option<File> {
    None
}

fn read(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a live slice that is borrowed for the call,
    // which writes at most that many bytes.
    counted(unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) })
}

fn write(fd: RawFd, from: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a live slice, which is only read.
    counted(unsafe { libc::write(fd, from.as_ptr().cast(), from.len()) })
}

fn receive(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: the pointer and the length are those of a live slice that is borrowed for the call,
    // which writes at most that many bytes.
    counted(unsafe { libc::recv(fd, start, len, libc::MSG_DONTWAIT) })
}

fn send(fd: RawFd, from: &[u8]) -> io::Result<usize> {
    let (start, len) = (from.as_ptr().cast(), from.len());
    // SAFETY: the pointer and the length are those of a live slice, which is only read.
    counted(unsafe { libc::send(fd, start, len, libc::MSG_DONTWAIT) })
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
