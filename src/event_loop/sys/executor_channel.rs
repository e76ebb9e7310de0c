//! The channel to an executor: a child on two pipes, or a daemon on a Unix socket.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mio::net::UnixStream;
use mio::unix::{SourceFd, pipe};
use mio::{Interest, Registry, Token};
use rustix::process::Signal;

use super::{peer, pidfd};
use crate::event_loop::Channel;
use crate::event_loop::sys::child::{self, Life, Step};
use crate::executor_client::errors::Absence;
use crate::limits::{EXECUTOR_EXIT_MS, EXECUTOR_REAP_MS};

/// Something can be read from the executor, or it has left.
pub const INPUT: Token = Token(4);
/// There is room to write to it.
pub const OUTPUT: Token = Token(5);
/// The child has ended.
pub const CHILD: Token = Token(6);
/// The child that was asked to leave has ended.
pub const LEAVING: Token = Token(8);

/// How often a child that has closed its output is looked at for its exit status.
const FATE_LOOKS_MAX: u32 = 64;

/// How an executor is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// A child that was asked to leave. The next one is not started before it has.
    leaving: Option<Leaving>,
}

#[derive(Debug)]
enum OpenChannel {
    Child {
        child: Child,
        /// Readable when the child has ended, even if something that it has started holds its pipe.
        watch: Option<OwnedFd>,
        sender: pipe::Sender,
        receiver: pipe::Receiver,
    },
    /// A child that is started when the one before it has left.
    Next,
    /// Why such a child was not started.
    NotStarted(String),
    Socket(UnixStream),
}

#[derive(Debug)]
struct Leaving {
    child: Child,
    /// Readable when it has ended.
    _watch: Option<OwnedFd>,
}

/// Why an executor cannot be asked whose channel is not opened.
pub fn not_opened(way: &ExecutorAddr, error: &io::Error) -> (Absence, String) {
    match way {
        ExecutorAddr::Child(argv) => {
            let program = argv.first().map(|program| program.display().to_string());
            let program = program.unwrap_or_default();
            let what = format!("the executor {program} cannot be started: {error}");
            (Absence::SpawnFailed, what)
        }
        ExecutorAddr::Socket(path) => {
            let path = path.display();
            let what = match error.kind() {
                ErrorKind::PermissionDenied => {
                    format!("the executor's socket {path} is not used: {error}")
                }
                _ => format!("nobody serves the executor's socket {path}: {error}"),
            };
            (Absence::ConnectFailed, what)
        }
    }
}

/// A connection to a daemon that blocks. One that takes nobody any more is an error at once, where
/// connect(2) on a blocking socket would wait for it.
///
/// # Errors
///
/// Nobody listens, too many wait already, or the daemon is somebody else's.
pub fn connect(path: &Path) -> io::Result<net::UnixStream> {
    let stream = net::UnixStream::from(connect_to_own(path)?);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A connection to a daemon of this user, or of root, who can do all that this user can. Another
/// one would be told all that is to be done, and its answers are shown to a model.
fn connect_to_own(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    let (user, _) = peer::credentials(&stream)?;
    match is_trusted(user, peer::own_user()) {
        true => Ok(stream),
        false => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "the process that listens there belongs to user {user}, and is neither yours nor \
                 root's"
            ),
        )),
    }
}

/// Whether a user's daemon is believed.
fn is_trusted(user: u32, own: u32) -> bool {
    user == own || user == 0
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
    pub fn has_ended_unseen(&self) -> bool {
        match &self.open {
            Some(OpenChannel::Child {
                child, watch: None, ..
            }) => !matches!(child::look(child), Life::Runs),
            _ => false,
        }
    }

    /// Lets go of a child that was asked to leave, if it has left, and starts the one that waits
    /// for that. Tells whether that one cannot be started, which [`Channel::fate`] then says.
    pub fn look_after_leaving(&mut self) -> bool {
        if let Some(leaving) = &mut self.leaving
            && child::let_go(&mut leaving.child)
        {
            self.leaving = None;
        }
        if self.leaving.is_some() || !matches!(self.open, Some(OpenChannel::Next)) {
            return false;
        }
        self.open = None;
        let opened = self.open_now();
        let failed = opened.is_err();
        self.open = Some(opened.unwrap_or_else(|(_, why)| OpenChannel::NotStarted(why)));
        failed
    }

    fn open_now(&mut self) -> Result<OpenChannel, (Absence, String)> {
        let way = self.way.clone();
        let opened = match &way {
            ExecutorAddr::Child(argv) => self.start(argv),
            ExecutorAddr::Socket(path) => self.connect(path),
        };
        opened.map_err(|error| not_opened(&way, &error))
    }

    fn start(&mut self, argv: &[OsString]) -> io::Result<OpenChannel> {
        let (program, arguments) = argv.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A terminal's Ctrl-C is for the front, which then ends the child in its own way.
            .process_group(0);
        child::before_exec(&mut command, &[Step::SignalledWithParent(Signal::TERM)]);
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let piped = pipes
            .ok_or(ErrorKind::BrokenPipe.into())
            .and_then(|(stdin, stdout)| self.register_pipes(stdin, stdout));
        let watch = self.watch(&child);
        match piped {
            Ok((sender, receiver)) => Ok(OpenChannel::Child {
                child,
                watch,
                sender,
                receiver,
            }),
            Err(error) => {
                self.part_with(child, watch, Signal::KILL);
                Err(error)
            }
        }
    }

    /// Makes the ends of a child's pipes something to wait on.
    fn register_pipes(
        &self,
        stdin: ChildStdin,
        stdout: ChildStdout,
    ) -> io::Result<(pipe::Sender, pipe::Receiver)> {
        let (mut sender, mut receiver) = (pipe::Sender::from(stdin), pipe::Receiver::from(stdout));
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        self.registry
            .register(&mut receiver, INPUT, Interest::READABLE)?;
        self.registry
            .register(&mut sender, OUTPUT, Interest::WRITABLE)?;
        Ok((sender, receiver))
    }

    /// Makes a child's death something to wait on, where the system can.
    fn watch(&self, child: &Child) -> Option<OwnedFd> {
        pidfd::open(child.id()).ok().filter(|watch| {
            let fd = watch.as_raw_fd();
            let mut source = SourceFd(&fd);
            self.registry
                .register(&mut source, CHILD, Interest::READABLE)
                .is_ok()
        })
    }

    /// Asks a child to leave, or makes it. One that has left already is let go of.
    fn part_with(&mut self, child: Child, watch: Option<OwnedFd>, signal: Signal) {
        debug_assert!(self.leaving.is_none(), "two children at once");
        child::signal_group(&child, signal);
        if let Some(watch) = &watch {
            let fd = watch.as_raw_fd();
            // Where it fails, the next start looks after the child all the same.
            let _ = self
                .registry
                .reregister(&mut SourceFd(&fd), LEAVING, Interest::READABLE);
        }
        self.leaving = Some(Leaving {
            child,
            _watch: watch,
        });
        self.look_after_leaving();
    }

    fn connect(&self, path: &Path) -> io::Result<OpenChannel> {
        let mut stream = connect_to_own(path)?;
        self.registry
            .register(&mut stream, INPUT, Interest::READABLE)?;
        Ok(OpenChannel::Socket(stream))
    }

    /// Kills a child that was asked to leave and has not.
    fn kill_leaving(&mut self) {
        if let Some(leaving) = &self.leaving {
            child::signal_group(&leaving.child, Signal::KILL);
        }
        self.look_after_leaving();
    }

    /// Waits until a child that was asked to leave has left, but not for long.
    fn wait_for_leaving(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        self.look_after_leaving();
        while self.leaving.is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
            self.look_after_leaving();
        }
    }
}

impl Channel for ExecutorChannel {
    fn open(&mut self) -> Result<(), (Absence, String)> {
        self.kill_leaving();
        self.wanted = false;
        self.open = Some(match self.leaving {
            // Two at once would meet in what they keep. It may take long to die.
            Some(_) => OpenChannel::Next,
            None => self.open_now()?,
        });
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.open {
            Some(OpenChannel::Child { receiver, .. }) => receiver.read(into),
            Some(OpenChannel::Socket(stream)) => stream.read(into),
            Some(OpenChannel::Next) => Err(ErrorKind::WouldBlock.into()),
            Some(OpenChannel::NotStarted(_)) | None => Ok(0),
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
            Some(OpenChannel::Next) => Err(ErrorKind::WouldBlock.into()),
            Some(OpenChannel::NotStarted(_)) | None => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn close(&mut self) {
        if let Some(OpenChannel::Child { child, watch, .. }) = self.open.take() {
            self.part_with(child, watch, Signal::TERM);
        }
    }

    fn fate(&mut self) -> String {
        let child = match &self.open {
            Some(OpenChannel::Child { child, .. }) => child,
            Some(OpenChannel::NotStarted(why)) => return why.clone(),
            _ => return "the executor has ended the connection".into(),
        };
        // Its pipe is closed a moment before it can be waited for.
        for _ in 0..FATE_LOOKS_MAX {
            if let Life::Ended(status) = child::look(child) {
                return format!("the executor has ended with {status}");
            }
            std::thread::yield_now();
        }
        "the executor has closed its pipe".into()
    }
}

impl Drop for ExecutorChannel {
    /// Leaves no child behind: one that is asked to leave has a short time for it. One that cannot
    /// even be killed dies later.
    fn drop(&mut self) {
        self.close();
        self.wait_for_leaving(Duration::from_millis(EXECUTOR_EXIT_MS));
        self.kill_leaving();
        self.wait_for_leaving(Duration::from_millis(EXECUTOR_REAP_MS));
    }
}

/// 128 bits of the system's randomness.
#[cfg(target_os = "linux")]
pub fn random_bits() -> u128 {
    use rustix::rand::{GetRandomFlags, getrandom};
    let mut bits = [0; 16];
    let outcome = getrandom(&mut bits, GetRandomFlags::empty());
    // So few bytes come whole, and without being interrupted (getrandom(2)).
    assert_eq!(outcome, Ok(bits.len()), "the system has no randomness");
    u128::from_ne_bytes(bits)
}

/// 128 bits of the system's randomness.
#[cfg(not(target_os = "linux"))]
pub fn random_bits() -> u128 {
    let mut bits = [0; 16];
    let outcome =
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bits));
    assert!(outcome.is_ok(), "the system has no randomness");
    u128::from_ne_bytes(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_believed_if_it_is_this_users_or_roots() {
        for (user, own, trusted) in [
            (1000, 1000, true),
            (0, 1000, true),
            (1001, 1000, false),
            (1000, 0, false),
            (u32::MAX, 1000, false),
        ] {
            assert_eq!(is_trusted(user, own), trusted, "{user} for {own}");
        }
    }
}
