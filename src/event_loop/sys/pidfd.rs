//! A watch on the process that started this one.
//!
//! A sibling that inherited the client's end of the pipe, or a wrapper, can keep the input open
//! for ever after the client has died. The death of the parent is then the sign that there is.

use std::io;
use std::os::fd::OwnedFd;

/// Something to wait on that becomes readable when the parent is gone. None where the system has
/// no such thing, and where the parent is process 1 or in another namespace: nobody that could
/// have started a client's server.
pub fn watch() -> Option<OwnedFd> {
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
pub fn open(process: u32) -> io::Result<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let process = process.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

/// Something to wait on that becomes readable when a process is gone.
///
/// # Errors
///
/// `Unsupported`: the system has no such thing.
#[cfg(not(target_os = "linux"))]
pub fn open(_: u32) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}
