//! The measuring client: starts a server and talks with it over two blocking descriptors.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The transport between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Pipe,
    Socket,
}

/// Which CPUs client and server are pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    OneCpu,
    TwoCpus,
}

impl Placement {
    fn server_cpu(self) -> usize {
        match self {
            Self::OneCpu => 0,
            Self::TwoCpus => 1,
        }
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    stdin: Option<File>,
    stdout: File,
    buffer: Vec<u8>,
    pub(crate) started: Instant,
}

pub(crate) const INITIALIZE: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#,
    "\n",
)
.as_bytes();

impl Server {
    /// Starts a server, pinned, and pins the client.
    pub(crate) fn start(argv: &[String], channel: Channel, placement: Placement) -> Self {
        pin(0);
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        let cpu = placement.server_cpu();
        // SAFETY: between fork and exec only sched_setaffinity(2) is called.
        unsafe {
            command.pre_exec(move || {
                pin(cpu);
                Ok(())
            })
        };
        let (stdin, theirs_in) = pair(channel, false);
        let (stdout, theirs_out) = pair(channel, true);
        command.stdin(Stdio::from(theirs_in));
        command.stdout(Stdio::from(theirs_out));
        let started = Instant::now();
        let child = command.spawn().expect("the server can be started");
        Self {
            child,
            stdin: Some(stdin),
            stdout,
            buffer: vec![0; 4 << 20],
            started,
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).expect("the server reads");
    }

    /// Reads `lines` lines. Returns how many bytes they had.
    pub(crate) fn receive(&mut self, lines: usize) -> usize {
        let (mut seen, mut bytes) = (0, 0);
        while seen < lines {
            let count = self.stdout.read(&mut self.buffer).expect("stdout is read");
            assert!(count > 0, "the server has left");
            seen += memchr::memchr_iter(b'\n', &self.buffer[..count]).count();
            bytes += count;
        }
        bytes
    }

    /// One request and its reply.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Duration {
        let start = Instant::now();
        self.send(request);
        self.receive(1);
        start.elapsed()
    }

    /// Reads one line. No further line may follow it.
    pub(crate) fn line(&mut self) -> String {
        let bytes = self.receive(1);
        String::from_utf8_lossy(&self.buffer[..bytes]).into_owned()
    }

    /// As [`Server::exchange`], with a server that may refuse the request.
    pub(crate) fn try_exchange(&mut self, request: &[u8]) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        stdin.write_all(request)?;
        loop {
            match self.stdout.read(&mut self.buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count if self.buffer[..count].ends_with(b"\n") => return Ok(()),
                _ => {}
            }
        }
    }

    /// Closes the input and kills the server.
    pub(crate) fn end(mut self) {
        drop(self.stdin.take());
        // It may have left by itself.
        let _ = self.child.kill();
        self.child.wait().expect("a child can be waited for");
    }

    /// Closes the input. Returns how long the server takes to exit.
    pub(crate) fn close(mut self) -> Duration {
        let start = Instant::now();
        drop(self.stdin.take());
        let status = self.child.wait().expect("the server leaves");
        assert!(status.success(), "{status}");
        start.elapsed()
    }

    /// A field of /proc/PID/status in KiB.
    pub(crate) fn status_kib(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(field));
        let digits = line.and_then(|line| line.split_whitespace().nth(1));
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The CPU time that the server's threads have used.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let nanoseconds = threads
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|thread| {
                let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
                text.split(' ').next()?.parse::<u64>().ok()
            });
        Duration::from_nanos(nanoseconds.sum())
    }
}

/// A connected pair: our end and the server's end. `reading` tells the direction of a pipe.
fn pair(channel: Channel, reading: bool) -> (File, OwnedFd) {
    let mut fds = [0; 2];
    let made = match channel {
        // SAFETY: the pointer is to two integers, as both calls want.
        Channel::Pipe => unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) },
        // SAFETY: as above.
        Channel::Socket => unsafe {
            let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
            libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr())
        },
    };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    let [read, write] = fds;
    let (ours, theirs) = if reading {
        (read, write)
    } else {
        (write, read)
    };
    // SAFETY: both descriptors are new, and nobody else owns them.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Pins this thread. A machine with one CPU has nothing to pin to, and stays as it is.
fn pin(cpu: usize) {
    // SAFETY: a set of zeros is an empty set, and the CPU is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}
