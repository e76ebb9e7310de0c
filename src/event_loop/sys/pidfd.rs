//! A watch on the process that started this one.
//!
//! A sibling that inherited the client's end of the pipe, or a wrapper, can keep the input open
//! for ever after the client has died. The death of the parent is then the sign that there is.

use std::fs::File;
use std::io;

/// Something to wait on that becomes readable when the parent is gone. None where the system has
/// no such thing, and where the parent is process 1 or in another namespace: nobody that could
/// have started a client's server.
pub fn watch() -> Option<File> {
    let parent = std::os::unix::process::parent_id();
    if parent <= 1 {
        return None;
    }
    let file = open(parent).ok()?;
    // The number may have passed to another process before it was opened.
    (std::os::unix::process::parent_id() == parent).then_some(file)
}

/// Something to wait on that becomes readable when a process is gone.
///
/// # Errors
///
/// What the system says, and `Unsupported` where it has no such thing.
#[cfg(target_os = "linux")]
pub fn open(process: u32) -> io::Result<File> {
    use std::os::fd::FromRawFd as _;
    // SAFETY: pidfd_open(2) takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    match i32::try_from(fd) {
        // SAFETY: the descriptor is new, so nobody else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Something to wait on that becomes readable when a process is gone.
///
/// # Errors
///
/// `Unsupported`: the system has no such thing.
#[cfg(not(target_os = "linux"))]
pub fn open(_: u32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
