//! Who is at the other end of a Unix socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// The user and the process at the other end of a socket: who has connected, or who listens. The
/// process is 0 where it is not to be seen from here, which rustix's type for it has no value for.
///
/// # Errors
///
/// What the system says.
#[cfg(target_os = "linux")]
pub fn credentials(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let unknown = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let peer = option(socket, libc::SO_PEERCRED, unknown)?;
    Ok((peer.uid, u32::try_from(peer.pid).unwrap_or(0)))
}

/// A descriptor of the process that has connected, whatever its number stands for by now.
///
/// # Errors
///
/// The process is gone, or the system is older than Linux 6.5 (`ENOPROTOOPT`).
#[cfg(all(feature = "executor", target_os = "linux"))]
pub fn process(socket: impl AsFd) -> io::Result<std::os::fd::OwnedFd> {
    let number = option(socket, libc::SO_PEERPIDFD, -1)?;
    if number < 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(owned(number))
}

/// What the system knows of a socket, written over a value of the option's own type.
#[cfg(target_os = "linux")]
fn option<T: SocketOption>(socket: impl AsFd, name: libc::c_int, mut value: T) -> io::Result<T> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointers are to a live value and to its size, and any bytes are a value of its
    // type, which is made of integers.
    let outcome = unsafe {
        let (fd, value) = (socket.as_fd().as_raw_fd(), (&raw mut value).cast());
        libc::getsockopt(fd, libc::SOL_SOCKET, name, value, &raw mut bytes)
    };
    match outcome {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A type that is made of integers alone.
#[cfg(target_os = "linux")]
trait SocketOption {}
#[cfg(target_os = "linux")]
impl SocketOption for libc::ucred {}
#[cfg(target_os = "linux")]
impl SocketOption for libc::c_int {}

/// A descriptor that the system has just opened for this process.
#[cfg(all(feature = "executor", target_os = "linux"))]
fn owned(number: libc::c_int) -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd as _;
    // SAFETY: the system has opened it for this call, so that nobody else owns it.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(number) }
}

/// The user at the other end of a socket. Other systems do not tell the process.
///
/// # Errors
///
/// What the system says.
#[cfg(not(target_os = "linux"))]
pub fn credentials(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let (mut user, mut group) = (u32::MAX, u32::MAX);
    // SAFETY: the pointers are to two live values of the right type.
    let outcome = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        libc::getpeereid(fd, &raw mut user, &raw mut group)
    };
    match outcome {
        0 => Ok((user, 0)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The user that this process acts as.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
