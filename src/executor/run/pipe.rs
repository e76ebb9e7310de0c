//! Pipes that are read without waiting for those who hold their other ends.

use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Child;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::unix::pipe::Receiver;
use mio::{Events, Interest, Poll, Token};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// What reading a pipe has given.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// So many bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// Nothing ever again.
    End,
}

/// The pipes of one process. One that was not given is at its end.
#[derive(Debug)]
pub struct Pipes<const COUNT: usize> {
    poll: Poll,
    pipes: [Option<Receiver>; COUNT],
    /// The process, whose end is waited for as well.
    process: Option<OwnedFd>,
}

impl<const COUNT: usize> Pipes<COUNT> {
    /// Takes pipes to read from.
    pub fn new(mut pipes: [Option<Receiver>; COUNT]) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (at, pipe) in pipes.iter_mut().enumerate() {
            if let Some(pipe) = pipe {
                pipe.set_nonblocking(true)?;
                poll.registry()
                    .register(pipe, Token(at), Interest::READABLE)?;
            }
        }
        Ok(Self {
            poll,
            pipes,
            process: None,
        })
    }

    /// Has the end of a child end a wait as well. Before Linux 5.3 nothing does.
    pub fn watch(&mut self, child: &Child) {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        self.process = process.filter(|process| {
            let mut source = SourceFd(&process.as_raw_fd());
            let registry = self.poll.registry();
            registry
                .register(&mut source, Token(COUNT), Interest::READABLE)
                .is_ok()
        });
    }

    /// Reads what is there in one of them. A pipe that fails is at its end.
    pub fn read(&mut self, at: usize, buffer: &mut [u8]) -> Reading {
        let Some(pipe) = &mut self.pipes[at] else {
            return Reading::End;
        };
        loop {
            match pipe.read(buffer) {
                Ok(bytes @ 1..) => return Reading::Bytes(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Reading::Nothing;
                }
                Ok(0) | Err(_) => {
                    self.pipes[at] = None;
                    return Reading::End;
                }
            }
        }
    }

    /// Whether somebody has one of them open still.
    pub fn are_held(&self) -> bool {
        self.pipes.iter().any(Option::is_some)
    }

    /// Waits until there is more to read, or the process has ended, or for so long. All that was
    /// there must have been read.
    pub fn wait(&mut self, limit: Duration) {
        let mut events = Events::with_capacity(COUNT + 1);
        // A signal ends it early, and nothing is lost by that.
        let _ = self.poll.poll(&mut events, Some(limit));
    }
}
