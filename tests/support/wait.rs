//! Waits that end: for a process, for what it says, and for what has no event.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes a hundredth of it on a machine that does nothing else. What
/// has not come by then never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Looks again and again until something is there.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Looks again and again until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Waits for the end of a process. One that does not end is killed.
pub(crate) fn end_of(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} did not end", child.id());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of a process and for all that it says. One that does not end is killed.
pub(crate) fn output_of(child: Child) -> Output {
    let process = child.id();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal(process, libc::SIGKILL);
            panic!("process {process} did not end, or something holds its output");
        }
    }
}

/// Runs a command to its end, without an input.
pub(crate) fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn();
    output_of(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// Sends a signal to a process.
pub(crate) fn signal(process: u32, signal: libc::c_int) {
    // SAFETY: two integers.
    unsafe { libc::kill(process.cast_signed(), signal) };
}

/// Reads from a pipe or a socket, and fails where nothing comes for too long.
pub(crate) struct Patient<R>(pub(crate) R);

impl<R: Read + AsRawFd> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut entry = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let time_ms = PATIENCE.as_millis() as libc::c_int;
        // SAFETY: one live entry, and the count says one.
        match unsafe { libc::poll(&raw mut entry, 1, time_ms) } {
            0 => Err(io::Error::new(ErrorKind::TimedOut, "nothing was said")),
            1 => self.0.read(buffer),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
