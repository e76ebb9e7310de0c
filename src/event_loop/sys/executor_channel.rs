//! The channel to an executor: a child on two pipes, or a daemon on a Unix socket.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mio::net::UnixStream;
use mio::unix::{SourceFd, pipe};
use mio::{Interest, Registry, Token};

use super::pidfd;
use crate::event_loop::Channel;
use crate::executor_client::errors::Absence;
use crate::limits::EXECUTOR_LEAVE_MS;

/// Something can be read from the executor, or it has left.
pub const INPUT: Token = Token(4);
/// There is room to write to it.
pub const OUTPUT: Token = Token(5);
/// The child has ended.
pub const CHILD: Token = Token(6);

/// How often a child that has closed its output is looked at for its exit status.
const FATE_LOOKS_MAX: u32 = 64;

/// How an executor is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutorAddr {
    /// A program with its arguments, which is started and talked to on its stdin and stdout.
    Child(Vec<OsString>),
    /// A Unix stream socket that somebody listens on.
    Socket(PathBuf),
}

/// The channel, open or not.
#[derive(Debug)]
pub struct ExecutorChannel {
    way: ExecutorAddr,
    registry: Registry,
    open: Option<OpenChannel>,
    /// Room to write to a socket is waited for.
    wanted: bool,
    /// A child that was asked to leave.
    leaving: Option<Child>,
}

#[derive(Debug)]
enum OpenChannel {
    Child {
        child: Child,
        /// Readable when the child has ended, even if something that it has started holds its pipe.
        watch: Option<File>,
        sender: pipe::Sender,
        receiver: pipe::Receiver,
    },
    Socket(UnixStream),
}

/// A connection to a daemon that blocks. One that takes nobody any more is an error at once, where
/// connect(2) on a blocking socket would wait for it.
///
/// # Errors
///
/// Nobody listens, or too many wait already.
pub fn connect(path: &Path) -> io::Result<net::UnixStream> {
    let stream = net::UnixStream::from(UnixStream::connect(path)?);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

impl ExecutorChannel {
    /// A channel that is not open.
    pub fn new(way: ExecutorAddr, registry: Registry) -> Self {
        Self {
            way,
            registry,
            open: None,
            wanted: false,
            leaving: None,
        }
    }

    /// Whether a child has ended that no event tells of.
    pub fn has_ended_unseen(&mut self) -> bool {
        match &mut self.open {
            Some(OpenChannel::Child {
                child, watch: None, ..
            }) => has_ended(child).is_some(),
            _ => false,
        }
    }

    fn start(&self, argv: &[OsString]) -> io::Result<OpenChannel> {
        let (program, arguments) = argv.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A terminal's Ctrl-C is for the front, which then ends the child in its own way.
            .process_group(0);
        end_with_this_process(&mut command);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let watched = pipes
            .ok_or(ErrorKind::BrokenPipe.into())
            .and_then(|(stdin, stdout)| self.watch(&child, stdin, stdout));
        match watched {
            Ok((watch, sender, receiver)) => Ok(OpenChannel::Child {
                child,
                watch,
                sender,
                receiver,
            }),
            Err(error) => {
                end(child);
                Err(error)
            }
        }
    }

    /// Makes the ends of a child's pipes and its death something to wait on.
    fn watch(
        &self,
        child: &Child,
        stdin: ChildStdin,
        stdout: ChildStdout,
    ) -> io::Result<(Option<File>, pipe::Sender, pipe::Receiver)> {
        let (mut sender, mut receiver) = (pipe::Sender::from(stdin), pipe::Receiver::from(stdout));
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        self.registry
            .register(&mut receiver, INPUT, Interest::READABLE)?;
        self.registry
            .register(&mut sender, OUTPUT, Interest::WRITABLE)?;
        let watch = pidfd::open(child.id()).ok().filter(|file| {
            let fd = file.as_raw_fd();
            let watched = self
                .registry
                .register(&mut SourceFd(&fd), CHILD, Interest::READABLE);
            watched.is_ok()
        });
        Ok((watch, sender, receiver))
    }

    fn connect(&self, path: &PathBuf) -> io::Result<OpenChannel> {
        let mut stream = UnixStream::connect(path)?;
        self.registry
            .register(&mut stream, INPUT, Interest::READABLE)?;
        Ok(OpenChannel::Socket(stream))
    }

    /// Ends a child that was asked to leave.
    fn reap(&mut self) {
        if let Some(child) = self.leaving.take() {
            end(child);
        }
    }
}

impl Channel for ExecutorChannel {
    fn open(&mut self) -> Result<(), (Absence, String)> {
        self.reap();
        let opened = match &self.way {
            ExecutorAddr::Child(argv) => self.start(argv).map_err(|error| {
                let program = argv.first().map(|program| program.display().to_string());
                let program = program.unwrap_or_default();
                let what = format!("the executor {program} cannot be started: {error}");
                (Absence::SpawnFailed, what)
            }),
            ExecutorAddr::Socket(path) => self.connect(path).map_err(|error| {
                let path = path.display();
                let what = format!("nobody serves the executor's socket {path}: {error}");
                (Absence::ConnectFailed, what)
            }),
        };
        self.open = Some(opened?);
        self.wanted = false;
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.open {
            Some(OpenChannel::Child { receiver, .. }) => receiver.read(into),
            Some(OpenChannel::Socket(stream)) => stream.read(into),
            None => Ok(0),
        }
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match &mut self.open {
            Some(OpenChannel::Child { sender, .. }) => sender.write(from),
            Some(OpenChannel::Socket(stream)) => {
                let written = stream.write(from);
                let blocked = match &written {
                    Ok(count) => *count < from.len(),
                    Err(error) => error.kind() == ErrorKind::WouldBlock,
                };
                // Interest in room would cost a wake-up for each line that is read.
                if blocked || self.wanted {
                    let interest = match blocked {
                        true => Interest::READABLE | Interest::WRITABLE,
                        false => Interest::READABLE,
                    };
                    self.registry.reregister(stream, INPUT, interest)?;
                    self.wanted = blocked;
                }
                written
            }
            None => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn close(&mut self) {
        match self.open.take() {
            Some(OpenChannel::Child { child, .. }) => {
                self.reap();
                signal_group(&child, libc::SIGTERM);
                self.leaving = Some(child);
            }
            Some(OpenChannel::Socket(_)) | None => {}
        }
    }

    fn fate(&mut self) -> String {
        let Some(OpenChannel::Child { child, .. }) = &mut self.open else {
            return "the executor has ended the connection".into();
        };
        // Its pipe is closed a moment before it can be waited for.
        for _ in 0..FATE_LOOKS_MAX {
            if let Some(status) = has_ended(child) {
                return format!("the executor has ended with {status}");
            }
            std::thread::yield_now();
        }
        "the executor has closed its pipe".into()
    }
}

impl Drop for ExecutorChannel {
    /// Leaves no child behind: one that is asked to leave has a short time for it.
    fn drop(&mut self) {
        self.close();
        let until = Instant::now() + Duration::from_millis(EXECUTOR_LEAVE_MS);
        while let Some(child) = &self.leaving {
            if has_ended(child).is_some() || until <= Instant::now() {
                self.reap();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Ends a child and what is left in its group, and lets go of its number.
fn end(mut child: Child) {
    signal_group(&child, libc::SIGKILL);
    // It cannot fail for a child that nobody has waited for, and there is nothing to do.
    let _ = child.wait();
}

/// How a child has ended, if it has. It is not waited for, so that its number stays its own until
/// what it has started is ended as well.
fn has_ended(child: &Child) -> Option<ExitStatus> {
    let id = libc::id_t::from(child.id());
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: zeros are a value of the type, and mean that there is nothing to tell.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live value of the right type; the rest are integers.
    let outcome = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags) };
    if outcome != 0 || info.si_signo == 0 {
        return None;
    }
    // SAFETY: waitid(2) has filled in what it tells of a child.
    let status = unsafe { info.si_status() };
    // As wait(2) has it: a code in the second byte, or a signal in the first.
    Some(ExitStatus::from_raw(match info.si_code {
        libc::CLD_EXITED => status << 8,
        _ => status,
    }))
}

/// Sends a signal to a child and to what it has started in its group.
fn signal_group(child: &Child, signal: libc::c_int) {
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: kill(2) takes two integers. The child was not waited for, so its number is its
        // own.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Has a child get SIGTERM when this process dies, however it dies.
#[cfg(target_os = "linux")]
fn end_with_this_process(command: &mut Command) {
    let this = std::process::id();
    // SAFETY: between fork and exec only system calls are made, which are safe there: prctl(2)
    // takes integers, getppid(2) nothing.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            // It may have died before.
            match std::os::unix::process::parent_id() == this {
                true => Ok(()),
                false => Err(ErrorKind::BrokenPipe.into()),
            }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_this_process(_: &mut Command) {}

/// 128 bits of the system's randomness.
pub fn random_bits() -> u128 {
    let mut bits = [0; 16];
    // SAFETY: the pointer and the length are those of one live array.
    let outcome = unsafe { libc::getentropy(bits.as_mut_ptr().cast(), bits.len()) };
    // It fails only for a wrong pointer or for more than 256 bytes (getentropy(3)).
    assert_eq!(outcome, 0, "the system has no randomness");
    u128::from_ne_bytes(bits)
}
