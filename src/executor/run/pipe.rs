//! Pipes that are read without waiting for those who hold their other ends.

use std::io::{self, Read as _};
use std::time::Duration;

use mio::unix::pipe::Receiver;
use mio::{Events, Interest, Poll, Token};

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
        Ok(Self { poll, pipes })
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

    /// Waits until there is more to read, or for so long. All that was there must have been read.
    pub fn wait(&mut self, limit: Duration) {
        let mut events = Events::with_capacity(COUNT);
        // A signal ends it early, and nothing is lost by that.
        let _ = self.poll.poll(&mut events, Some(limit));
    }
}
