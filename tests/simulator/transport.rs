//! The simulated system: an input, an output, a client at their other ends, and a clock.
//!
//! Readiness is edge-triggered, as epoll has it: an event comes once for each change, and says how
//! things are when it is delivered. Every call checks what must hold at that moment, and a breach
//! is an error that the loop cannot survive.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

use rocco::internals::event_loop::{Transport, Wakeup, Want};
use rocco::internals::limits::{
    BUSY_TURNS_MAX, FLUSH_SIGNAL_MS, FLUSH_STALL_MS, FLUSH_TOTAL_MS, OUTBOX_BYTES,
    OUTBOX_HIGH_WATER_BYTES, READ_BYTES_MAX, RING_BYTES, memory_budget_bytes,
};

use super::expect::Fault;
use super::faults::Faults;
use super::memory::{self, Scope};
use super::oracle::Oracle;
use super::plan::{Doom, Plan};
use super::prng::Prng;
use super::trace::Trace;

/// Waits in a row in which no byte moves, before a loop that should work on is said not to.
const QUIET_STEPS_MAX: usize = 12;
/// Reads between two waits: one, and two for each turn in which a server that looks for input
/// before it sleeps may find some. What else happens is told by waits alone.
const READS_MAX: u32 = 1 + 2 * BUSY_TURNS_MAX;
/// Waits in a row that time out with no byte moved.
const TIMEOUTS_MAX: usize = 40;
/// What the simulated clock may be behind by, where a bound on time is checked.
const SLACK: Duration = Duration::from_millis(250);

/// What a run has come to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub steps: u64,
    pub faults: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// The client's end of the input.
struct Input {
    bytes: Vec<u8>,
    /// `bytes[read..written]` is in the pipe.
    read: usize,
    written: usize,
    /// Where a packet ends, for a pipe of packets.
    packets: VecDeque<usize>,
    capacity: usize,
    piece_max: usize,
    closed: bool,
    /// When the next event is delivered; none if nothing has changed since the last one.
    edge: Option<Duration>,
    /// When the client writes on.
    due: Option<Duration>,
    /// The error that a read meets behind the data.
    error: Option<io::Error>,
    /// The server has met the end.
    ended: bool,
    /// The server was told that no more will come.
    told: Option<Duration>,
}

/// The client's end of the output.
struct Output {
    held: usize,
    capacity: usize,
    take_max: usize,
    /// A write has met no room since the last event.
    met_no_room: bool,
    /// No room until the client reads, whatever is held.
    jammed: bool,
    /// The server asks for room.
    wanted: bool,
    edge: Option<Duration>,
    due: Option<Duration>,
    /// What the last write offered and was not taken.
    unsent: usize,
    moved: Duration,
}

/// The simulated system.
pub struct World {
    prng: Prng,
    faults: Faults,
    doom: Doom,
    doom_step: usize,
    calm_step: usize,
    now: Duration,
    input: Input,
    output: Output,
    /// The doom has come, and whether the server knows.
    doomed: Option<Duration>,
    doom_told: bool,
    calm: bool,
    quiet_steps: usize,
    /// Reads that have found something since the last wait.
    reads: u32,
    timeouts: usize,
    base_bytes: usize,
    pub oracle: Oracle,
    pub trace: Trace,
    pub fault: Option<Fault>,
    pub counts: Counts,
}

impl World {
    pub fn new(plan: &Plan, oracle: Oracle) -> Self {
        let mut prng = Prng::new(!plan.seed);
        let faults = plan.faults;
        let file = faults.has("file-input");
        let bytes = plan.input();
        let tiny = faults.has("tiny-pipe");
        let mut capacity = || if tiny { prng.wild(8192) } else { 65_536 };
        let (in_capacity, out_capacity) = (capacity(), capacity());
        let drip = faults.has("drip");
        Self {
            input: Input {
                written: if file { bytes.len() } else { 0 },
                bytes,
                read: 0,
                packets: VecDeque::new(),
                capacity: in_capacity,
                piece_max: prng.wild(if drip { 64 } else { 16_384 }),
                closed: file,
                edge: None,
                due: (!file).then_some(Duration::ZERO),
                error: None,
                ended: false,
                told: None,
            },
            output: Output {
                held: 0,
                capacity: out_capacity,
                take_max: prng.wild(if drip { 512 } else { 65_536 }),
                met_no_room: false,
                jammed: false,
                wanted: false,
                edge: None,
                due: Some(Duration::ZERO),
                unsent: 0,
                moved: Duration::ZERO,
            },
            prng,
            faults,
            doom: plan.doom,
            doom_step: plan.doom_step,
            calm_step: plan.calm_step,
            now: Duration::ZERO,
            doomed: None,
            doom_told: false,
            calm: false,
            quiet_steps: 0,
            reads: 0,
            timeouts: 0,
            base_bytes: memory::live_bytes(),
            oracle,
            trace: Trace::new(),
            fault: None,
            counts: Counts::default(),
        }
    }

    /// Whether a fault of this kind happens now.
    fn strikes(&mut self, name: &str, times: usize) -> bool {
        let strikes = !self.calm && self.faults.has(name) && self.prng.one_in(times);
        if strikes {
            self.counts.faults += 1;
            self.quiet_steps = 0;
        }
        strikes
    }

    fn breach(&mut self, fault: Fault) -> io::Error {
        self.fault.get_or_insert(fault);
        io::Error::from(ErrorKind::Other)
    }

    fn demand(&mut self, holds: bool, what: &str) -> io::Result<()> {
        if holds && self.fault.is_none() {
            return Ok(());
        }
        let place = format!("{what} (step {}, {:?})", self.counts.steps, self.now);
        Err(self.breach(place))
    }

    fn fate(&self, doom: Doom) -> bool {
        self.doom == doom && self.doomed.is_some()
    }

    fn moved(&mut self) {
        self.quiet_steps = 0;
        self.timeouts = 0;
    }

    /// A while: mostly none, sometimes long.
    fn pause(&mut self) -> Duration {
        if self.calm {
            return Duration::ZERO;
        }
        if self.strikes("stalls", 10) {
            return Duration::from_millis(self.prng.below(1200) as u64);
        }
        Duration::from_micros(self.prng.below(40) as u64)
    }

    /// When an event of now is delivered.
    fn delivery(&mut self) -> Option<Duration> {
        let late = self.strikes("late", 3);
        let delay = if late { self.prng.wild(20_000) } else { 0 };
        Some(self.now + Duration::from_micros(delay as u64))
    }

    // The client.

    /// Everybody does what is due.
    fn act(&mut self) {
        if self.input.due.is_some_and(|due| due <= self.now) {
            self.client_writes();
        }
        if self.output.due.is_some_and(|due| due <= self.now) {
            self.client_reads();
        }
    }

    fn client_writes(&mut self) {
        let left = self.input.bytes.len() - self.input.written;
        let room = self.input.capacity - (self.input.written - self.input.read);
        let max = if self.calm {
            65_536
        } else {
            self.input.piece_max
        };
        let piece = (1 + self.prng.below(max)).min(left).min(room);
        if left == 0 && self.faults.has("patient") && !self.calm {
            // It waits for its replies before it closes.
            self.input.due = None;
            return;
        }
        if left == 0 {
            self.input.closed = true;
            self.input.due = None;
            if !self.deaf() {
                self.output.due = Some(self.now);
            }
        } else {
            self.input.written += piece;
            self.input.due = Some(self.now + self.pause());
        }
        if piece == 0 && left > 0 {
            // It writes on when the server has made room.
            self.input.due = None;
            return;
        }
        if self.faults.has("packets") && piece > 0 {
            self.input.packets.push_back(self.input.written);
        }
        if self.input.edge.is_none() {
            self.input.edge = self.delivery();
        }
    }

    fn client_reads(&mut self) {
        if self.faults.has("late-reader") && !self.input.closed && !self.calm {
            self.output.due = None;
            return;
        }
        let max = if self.calm {
            usize::MAX
        } else {
            self.output.take_max
        };
        let taken = (1 + self.prng.below(max)).min(self.output.held);
        let taken = if self.calm { self.output.held } else { taken };
        if taken == 0 {
            self.output.due = None;
            return;
        }
        self.output.held -= taken;
        self.output.jammed = false;
        self.output.due = Some(self.now + self.pause());
        let lazy = self.faults.has("lazy-room") && self.output.held > self.output.capacity / 3;
        if self.output.met_no_room && !lazy && self.room() > 0 {
            self.output.met_no_room = false;
            self.output.edge = self.delivery();
        }
    }

    fn room(&self) -> usize {
        match (self.output.jammed, self.faults.has("file-output")) {
            (true, _) => 0,
            (_, true) => usize::MAX,
            _ => self.output.capacity - self.output.held,
        }
    }

    /// The faults stop: the client reads and writes as fast as it can.
    fn calm_down(&mut self) {
        self.calm = true;
        self.input.capacity = self.input.capacity.max(65_536);
        self.output.capacity = self.output.capacity.max(65_536);
        self.output.jammed = false;
        if !self.input.closed && self.input.due.is_none() && !self.cut_off() {
            self.input.due = Some(self.now);
        }
        self.input.due = self.input.due.map(|due| due.min(self.now));
        if !self.fate(Doom::Deaf) && !self.fate(Doom::ReaderGone) {
            self.output.due = Some(self.now);
        }
        self.output.edge = self.output.edge.or(Some(self.now));
        self.input.edge = self.input.edge.map(|edge| edge.min(self.now));
        self.quiet_steps = 0;
    }

    fn doom_comes(&mut self) {
        self.doomed = Some(self.now);
        self.counts.faults += u64::from(self.doom != Doom::Spared);
        let cut_off = |input: &mut Input| {
            input.bytes.truncate(input.written);
            input.due = None;
        };
        match self.doom {
            Doom::Reset | Doom::HangUp => {
                cut_off(&mut self.input);
                self.input.closed = true;
                self.input.edge = Some(self.now);
                let reset = self.doom == Doom::Reset;
                self.input.error = Some(if reset {
                    ErrorKind::ConnectionReset.into()
                } else {
                    ErrorKind::BrokenPipe.into()
                });
            }
            Doom::ParentGone => cut_off(&mut self.input),
            Doom::ReaderGone | Doom::Deaf => self.output.due = None,
            _ => {}
        }
    }

    // What holds at every wait.

    fn inspect(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<()> {
        let peak = (memory::peak_bytes().max(self.base_bytes) - self.base_bytes)
            + RING_BYTES
            + OUTBOX_BYTES;
        self.demand(peak <= memory_budget_bytes(), "the memory budget is passed")?;
        self.demand(
            !(self.doom == Doom::ReaderGone && self.doom_told),
            "a wait though the reader is known to be gone",
        )?;
        self.demand(self.quiet_steps <= QUIET_STEPS_MAX, "no progress")?;
        self.demand(self.timeouts <= TIMEOUTS_MAX, "it wakes for nothing")?;
        let sleeps = timeout != Some(Duration::ZERO);
        let leaving = self.doom == Doom::Signal && self.doom_told;
        let input = &self.input;
        let readable = !input.ended && (input.read < input.written || input.closed);
        let told = readable && input.edge.is_none() && !self.faults.has("packets");
        let file = self.faults.has("file-input");
        self.demand(
            !(sleeps && told && want.input && !leaving && !file),
            "it sleeps on input of which it was told",
        )?;
        let output = &self.output;
        let told = output.unsent > 0 && self.room() > 0 && output.edge.is_none() && output.wanted;
        let lazy = self.faults.has("lazy-room");
        self.demand(
            !(sleeps && told && want.output && !lazy),
            "it sleeps on room of which it was told",
        )?;
        self.inspect_deadlines(timeout)
    }

    fn inspect_deadlines(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.doom == Doom::Signal
            && self.doom_told
            && let Some(since) = self.doomed
        {
            let bound = since + Duration::from_millis(FLUSH_SIGNAL_MS) + SLACK;
            self.demand(self.now <= bound, "it lives on after a signal")?;
        }
        if let Some(told) = self.input.told
            && self.output.unsent > 0
        {
            let stalled = self.output.moved.max(told) + Duration::from_millis(FLUSH_STALL_MS);
            self.demand(self.now <= stalled + SLACK, "it flushes for too long")?;
            self.demand(timeout.is_some(), "it flushes without a deadline")?;
        }
        Ok(())
    }

    /// Whether giving up the last replies is right.
    pub fn may_stall(&self, unsent_bytes: usize) -> bool {
        let Some(told) = self.input.told else {
            return false;
        };
        let stalled = self.output.moved.max(told) + Duration::from_millis(FLUSH_STALL_MS);
        let overdue = told + Duration::from_millis(FLUSH_TOTAL_MS);
        unsent_bytes >= self.output.unsent.max(1) && self.now >= stalled.min(overdue)
    }

    /// Whether a doom has come to pass.
    pub fn met(&self, doom: Doom) -> bool {
        self.fate(doom)
    }

    /// Whether all that the client has sent was read.
    pub fn all_read(&self) -> bool {
        self.input.read == self.input.bytes.len()
    }

    pub fn ended(&self) -> bool {
        self.input.ended || self.fate(Doom::ParentGone)
    }

    pub fn base_bytes(&self) -> usize {
        self.base_bytes
    }
}

const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOMEM: i32 = 12;

impl World {
    /// The events that are due, as epoll would report them now.
    fn collect(&mut self, want: Want) -> Wakeup {
        let due = |edge: Option<Duration>, now| edge.is_some_and(|edge| edge <= now);
        let mut wakeup = Wakeup::default();
        if due(self.input.edge, self.now) {
            self.input.edge = None;
            wakeup.input = self.input.read < self.input.written;
            wakeup.input_closed = self.input.closed;
        }
        if want.output && due(self.output.edge, self.now) {
            self.output.edge = None;
            wakeup.output = true;
        }
        if !self.doom_told && self.doomed.is_some() {
            wakeup.signal = self.doom == Doom::Signal;
            wakeup.parent_gone = self.doom == Doom::ParentGone;
            wakeup.output_gone = self.doom == Doom::ReaderGone;
            self.doom_told = wakeup.signal || wakeup.parent_gone || wakeup.output_gone;
        }
        if wakeup.input_closed || wakeup.parent_gone {
            self.input.told.get_or_insert(self.now);
        }
        wakeup
    }

    /// A wake-up for nothing, whose hints are lies.
    fn spurious(&mut self) -> Wakeup {
        Wakeup {
            input: self.prng.one_in(3),
            output: self.output.wanted && self.prng.one_in(3),
            ..Wakeup::default()
        }
    }

    /// Room is told of when it is asked for anew, as well as when it comes.
    fn want_output(&mut self, want: Want) {
        if want.output && !self.output.wanted {
            let room = self.room() > 0;
            self.output.edge = if room { self.delivery() } else { None };
        }
        self.output.wanted = want.output;
    }

    fn sleep(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<Wakeup> {
        let deadline = timeout.map(|timeout| self.now + timeout);
        loop {
            self.act();
            let wakeup = self.collect(want);
            if wakeup != Wakeup::default() || timeout == Some(Duration::ZERO) {
                return Ok(wakeup);
            }
            let output_edge = self.output.edge.filter(|_| want.output);
            let events = [
                self.input.due,
                self.input.edge,
                self.output.due,
                output_edge,
            ];
            let next = events.into_iter().flatten().min();
            match (next, deadline) {
                (Some(next), _) if deadline.is_none_or(|deadline| next < deadline) => {
                    self.now = self.now.max(next);
                    self.quiet_steps = 0;
                }
                (_, Some(deadline)) => {
                    self.now = deadline;
                    self.timeouts += 1;
                    self.quiet_steps = 0;
                    return Ok(Wakeup {
                        timed_out: true,
                        ..Wakeup::default()
                    });
                }
                (_, None) => self.nothing_comes()?,
            }
        }
    }

    /// The loop waits without a deadline, and nothing is under way that could wake it.
    fn nothing_comes(&mut self) -> io::Result<()> {
        if self.doomed.is_none() {
            self.doom_comes();
        } else if !self.calm {
            self.calm_down();
        } else if self.fate(Doom::Deaf) && !self.input.closed {
            // A client that reads nothing and is not read from goes away in the end.
            self.input.bytes.truncate(self.input.written);
            self.input.closed = true;
            self.input.edge = Some(self.now);
        } else {
            let owed = self.oracle.owed();
            return self.demand(false, &format!("it waits for ever and owes {owed} lines"));
        }
        Ok(())
    }
}

impl Transport for World {
    fn wait(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<Wakeup> {
        let _system = Scope::system();
        self.counts.steps += 1;
        self.quiet_steps += 1;
        self.reads = 0;
        self.now += Duration::from_micros(self.prng.below(20) as u64);
        self.want_output(want);
        self.inspect(timeout, want)?;
        if self.doomed.is_none() && self.counts.steps as usize >= self.doom_step {
            self.doom_comes();
        }
        if !self.calm && self.counts.steps as usize >= self.calm_step {
            self.calm_down();
        }
        if self.fate(Doom::WaitFails) {
            return Err(io::Error::from_raw_os_error(ENOMEM));
        }
        let file = want.input && self.faults.has("file-input");
        let wakeup = if self.strikes("spurious", 6) {
            self.act();
            self.spurious()
        } else {
            let wakeup = self.sleep(if file { Some(Duration::ZERO) } else { timeout }, want)?;
            Wakeup {
                input: wakeup.input || file,
                ..wakeup
            }
        };
        let hints = [
            wakeup.input,
            wakeup.input_closed,
            wakeup.output,
            wakeup.output_gone,
            wakeup.signal,
            wakeup.parent_gone,
            wakeup.timed_out,
        ];
        let hints = hints
            .into_iter()
            .fold(0, |set, hint| set * 2 + u64::from(hint));
        let timeout = timeout.map_or(u64::MAX, |timeout| timeout.as_micros() as u64);
        self.trace.word(timeout);
        self.trace
            .word(u64::from(want.input) * 2 + u64::from(want.output));
        self.trace.word(hints);
        self.trace.word(self.now.as_micros() as u64);
        Ok(wakeup)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let _system = Scope::system();
        self.trace.word(into.len() as u64);
        let count = self.read_some(into);
        self.trace
            .word(*count.as_ref().unwrap_or(&usize::MAX) as u64);
        let count = count?;
        self.reads += 1;
        self.demand(self.reads <= READS_MAX, "it reads on without a wait")?;
        self.counts.read_bytes += count as u64;
        self.trace.bytes(&into[..count]);
        self.oracle.read(&into[..count]);
        if count == 0 {
            self.input.ended = true;
        }
        if self.input.ended {
            self.input.told.get_or_insert(self.now);
            self.oracle.end();
        }
        self.moved();
        Ok(count)
    }

    fn short_read_drains(&self) -> bool {
        !self.faults.has("lines") && !self.faults.has("file-input")
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let _system = Scope::system();
        self.trace.word(from.len() as u64);
        let count = self.write_some(from);
        self.trace
            .word(*count.as_ref().unwrap_or(&usize::MAX) as u64);
        self.output.unsent = from.len() - *count.as_ref().unwrap_or(&0);
        let count = count?;
        self.counts.written_bytes += count as u64;
        self.trace.bytes(&from[..count]);
        self.output.moved = self.now;
        self.moved();
        match self.oracle.wrote(&from[..count]) {
            Ok(()) => Ok(count),
            Err(fault) => Err(self.breach(fault)),
        }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn relax(&mut self) {
        let _system = Scope::system();
        self.now += Duration::from_micros(self.prng.wild(100) as u64);
        self.act();
        self.trace.word(self.now.as_micros() as u64);
    }
}

impl World {
    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.demand(!self.input.ended, "a read behind the end")?;
        self.demand((1..=READ_BYTES_MAX).contains(&into.len()), "a read's size")?;
        let leaving = self.doom_told && self.doom == Doom::Signal;
        self.demand(!leaving, "a read after a signal")?;
        if self.strikes("interruptions", 5) {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.fate(Doom::ReadFails) {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        let there = self.input.written - self.input.read;
        if there == 0 {
            return self.read_nothing();
        }
        let mut count = there.min(into.len());
        if let Some(&end) = self.input.packets.front() {
            count = count.min(end - self.input.read);
        }
        let from = self.input.read;
        if self.faults.has("lines") {
            let held = &self.input.bytes[from..from + count];
            let line = held.iter().position(|&byte| byte == b'\n');
            count = line.map_or(count, |at| at + 1);
        }
        if self.faults.has("file-input") && self.prng.one_in(2) {
            count = 1 + self.prng.below(count);
        }
        into[..count].copy_from_slice(&self.input.bytes[from..from + count]);
        self.input.read += count;
        if self.input.packets.front() == Some(&self.input.read) {
            self.input.packets.pop_front();
        }
        if self.input.due.is_none() && !self.input.closed && !self.cut_off() {
            self.input.due = Some(self.now + self.pause());
        }
        Ok(count)
    }

    /// Nobody writes on, though nobody has closed the input.
    fn cut_off(&self) -> bool {
        self.fate(Doom::ParentGone)
    }

    fn read_nothing(&mut self) -> io::Result<usize> {
        match self.input.error.take() {
            Some(error) => {
                self.input.ended = true;
                self.input.told.get_or_insert(self.now);
                self.oracle.end();
                Err(error)
            }
            None if self.input.closed => Ok(0),
            None => {
                if self.fate(Doom::ParentGone) && self.doom_told {
                    self.input.ended = true;
                    self.oracle.end();
                }
                Err(ErrorKind::WouldBlock.into())
            }
        }
    }

    fn write_some(&mut self, from: &[u8]) -> io::Result<usize> {
        let gone = self.doom == Doom::ReaderGone && self.doom_told;
        self.demand(!gone, "a write though the reader is known to be gone")?;
        self.demand((1..=OUTBOX_BYTES).contains(&from.len()), "a write's size")?;
        if from.len() > OUTBOX_HIGH_WATER_BYTES && !self.input.ended {
            let last_line = from[..from.len() - 1]
                .iter()
                .rposition(|&byte| byte == b'\n');
            let before = last_line.map_or(0, |at| at + 1);
            self.demand(
                before < OUTBOX_HIGH_WATER_BYTES,
                "a frame was served above the high-water mark",
            )?;
        }
        if self.strikes("interruptions", 5) {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.fate(Doom::ReaderGone) {
            self.doom_told = true;
            return Err(ErrorKind::BrokenPipe.into());
        }
        if self.fate(Doom::WriteFails) {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        let mut count = from.len().min(self.room());
        if count > 1 && self.strikes("short-writes", 3) {
            count = 1 + self.prng.below(count);
            self.output.jammed = count < from.len();
        }
        self.output.met_no_room |= count < from.len();
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        if !self.faults.has("file-output") || self.output.jammed {
            self.output.held += count;
        }
        if self.output.due.is_none() && !self.deaf() {
            self.output.due = Some(self.now + self.pause());
        }
        Ok(count)
    }

    fn deaf(&self) -> bool {
        self.fate(Doom::Deaf) || self.fate(Doom::ReaderGone)
    }
}
