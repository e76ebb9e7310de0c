//! The floor: what a server on stdio costs if it does nothing.

use std::os::fd::AsRawFd as _;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

/// A floor: the length of its replies, and how it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    /// The length of each reply.
    pub(crate) reply_bytes: usize,
    /// Whether the floor waits by epoll before it reads, as a server must that has more than one
    /// descriptor to watch.
    pub(crate) waits: bool,
}

impl Floor {
    /// Whether this process was started as the floor, and as which.
    pub(crate) fn asked_for(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let word = arguments.find(|argument| argument.starts_with("--floor"))?;
        Some(Self {
            reply_bytes: arguments.next()?.parse().ok()?,
            waits: word == "--floor-that-waits",
        })
    }

    pub(crate) fn argv(self) -> Vec<String> {
        let program = std::env::current_exe().expect("this program has a path");
        let word = if self.waits {
            "--floor-that-waits"
        } else {
            "--floor"
        };
        let program = program.to_string_lossy().into_owned();
        vec![program, word.into(), self.reply_bytes.to_string()]
    }

    /// Serves to the end of its input.
    pub(crate) fn serve(self) {
        match self.waits {
            true => {
                let mut poll = Poll::new().expect("there is epoll");
                let mut events = Events::with_capacity(8);
                let stdin = std::io::stdin().as_raw_fd();
                let (mut source, interest) = (SourceFd(&stdin), Interest::READABLE);
                let registered = poll.registry().register(&mut source, Token(0), interest);
                registered.expect("it can be waited for");
                serve(self.reply_bytes, || {
                    poll.poll(&mut events, None).expect("it can be waited for");
                });
            }
            false => serve(self.reply_bytes, || {}),
        }
    }
}

/// Reads lines, splices the id of each into a canned reply of `reply_bytes`, and writes. One read
/// and one write a turn, both blocking.
fn serve(reply_bytes: usize, mut wait: impl FnMut()) {
    const START: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    let (mut input, mut output) = (vec![0; 2 << 20], Vec::with_capacity(1 << 20));
    let mut held = 0;
    loop {
        wait();
        // SAFETY: the pointer and the length are those of the rest of a live buffer.
        let count = unsafe { libc::read(0, input[held..].as_mut_ptr().cast(), input.len() - held) };
        let Ok(count @ 1..) = usize::try_from(count) else {
            return;
        };
        held += count;
        let Some(end) = memchr::memrchr(b'\n', &input[..held]) else {
            continue;
        };
        output.clear();
        for line in input[..end].split(|&byte| byte == b'\n') {
            let Some(id) = id_of(line) else { continue };
            output.extend_from_slice(START);
            output.extend_from_slice(id);
            output.extend_from_slice(b",\"result\":\"");
            output.resize(output.len() + reply_bytes.saturating_sub(40), b'x');
            output.extend_from_slice(b"\"}\n");
        }
        input.copy_within(end + 1..held, 0);
        held -= end + 1;
        let mut unsent = &output[..];
        while !unsent.is_empty() {
            // SAFETY: the pointer and the length are those of a live slice.
            let count = unsafe { libc::write(1, unsent.as_ptr().cast(), unsent.len()) };
            let Ok(count @ 1..) = usize::try_from(count) else {
                return;
            };
            unsent = &unsent[count..];
        }
    }
}

/// The digits behind the first `"id":`.
fn id_of(line: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(line, b"\"id\":")? + 5;
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let count = digits.count();
    Some(&line[at..at + count])
}
