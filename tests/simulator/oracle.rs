//! What a stream of bytes has to be answered with. It splits at LF, reads one line after another
//! and keeps what is owed in a queue, against which every written line is held.

use std::collections::VecDeque;

use rocco::internals::limits::FRAME_BYTES_MAX;

use super::expect::{Expect, Fault};
use super::model::Model;

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The oracle of one connection.
pub struct Oracle {
    model: Model,
    /// The line that is being read.
    line: Vec<u8>,
    /// No line has ended yet, so that a byte order mark may stand in front.
    first: bool,
    /// The line is over the bound, which is owed an error already.
    oversized: bool,
    owed: VecDeque<Expect>,
    /// The reply that is being written.
    reply: Vec<u8>,
    /// Whether replies are held against the official schemas too.
    validates: bool,
    pub replies: u64,
}

impl Oracle {
    pub fn new(validates: bool) -> Self {
        Self {
            model: Model::default(),
            line: Vec::new(),
            first: true,
            oversized: false,
            owed: VecDeque::new(),
            reply: Vec::new(),
            validates,
            replies: 0,
        }
    }

    /// The server has read these bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            if !self.oversized {
                self.line.extend_from_slice(text);
                let marked = self.first && self.line.starts_with(MARK);
                self.oversized = self.line.len() > FRAME_BYTES_MAX + if marked { 3 } else { 0 };
                if self.oversized {
                    self.owed.push_back(Expect::error(None, -32600));
                }
            }
            if piece.len() > text.len() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !self.oversized {
            let marked = self.first && line.starts_with(MARK);
            let line = if marked { &line[MARK.len()..] } else { &line };
            self.owed.extend(self.model.line(line));
        }
        self.oversized = false;
        self.first = false;
    }

    /// The server has met the end of its input.
    pub fn end(&mut self) {
        self.end_line();
        self.owed.extend(self.model.end());
    }

    /// The server has written these bytes.
    pub fn wrote(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.reply.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.reply);
                let owed = self.owed.pop_front();
                let owed = owed.ok_or_else(|| format!("nothing asked for {}", shown(&line)))?;
                owed.check(&line[..line.len() - 1], self.validates)
                    .map_err(|fault| format!("{fault}: {} for {owed:?}", shown(&line)))?;
                self.replies += 1;
            }
        }
        Ok(())
    }

    /// Whether nothing is owed any more and no line is begun.
    pub fn settled(&self) -> Result<(), Fault> {
        match self.owed.front() {
            Some(owed) => Err(format!("{} replies are owed: {owed:?}", self.owed.len())),
            None if !self.reply.is_empty() => Err(format!("half a line: {}", shown(&self.reply))),
            None => Ok(()),
        }
    }

    /// How many lines are owed.
    pub fn owed(&self) -> usize {
        self.owed.len()
    }
}

/// The start of a line, for people.
pub fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(160)]);
    format!("{:?} ({} bytes)", text, line.len())
}
