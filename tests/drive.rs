//! The real loop and engine over a scripted transport: whatever the system does with the bytes,
//! the same replies come out in the same order.

mod support;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

use proptest::prelude::*;
use rocco::internals::event_loop::run::{drive, drive_busily};
use rocco::internals::event_loop::{Ended, Failure, Transport, Wakeup, Want};
use rocco::internals::limits::{FLUSH_RETRY_MS, FLUSH_STALL_MS, REST_AFTER_MS, RING_BYTES};
use rocco::internals::task::submit::SubmitTask;
use rocco::{Engine, Info, Server};

fn engine() -> Engine {
    Server::new(Info::new("rocco", "0"))
        .tool(SubmitTask::new())
        .into_engine()
}

const SESSION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n",
    "\n",
    "{\"jsonrpc\":\"2.0\",\"id\":\"\\u00e9\",\"method\":\"ping\"}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n",
    "garbage\n",
    "[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"x\"},1]\n",
    "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":",
    "{\"name\":\"larry_submit_task\",\"arguments\":{\"goal\":\"\"}}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}",
);

/// What an engine says when all comes at once and the end with it.
fn plain(input: &[u8]) -> Vec<u8> {
    let (mut engine, mut said, mut rest) = (engine(), Vec::new(), input);
    loop {
        let space = engine.space();
        let count = rest.len().min(space.len());
        space[..count].copy_from_slice(&rest[..count]);
        engine.fill(count);
        rest = &rest[count..];
        if rest.is_empty() {
            engine.end_of_input();
        }
        engine.serve();
        said.extend_from_slice(engine.pending());
        engine.consume(engine.pending().len());
        if engine.is_drained() {
            return said;
        }
    }
}

/// A pipe pair and a clock under a seed. Readiness is edge-triggered, as mio has it.
struct Scripted {
    seed: u64,
    /// What the client will write, piece by piece.
    arrivals: VecDeque<Vec<u8>>,
    pipe: VecDeque<u8>,
    closed: bool,
    output: Vec<u8>,
    /// The client reads nothing until so many waits have passed.
    deaf_waits: usize,
    room: usize,
    now: Duration,
    waits: usize,
    signal_at: Option<usize>,
    gone_at: Option<usize>,
}

impl Scripted {
    fn new(input: &[u8], pieces: &[usize], seed: u64) -> Self {
        let (mut arrivals, mut rest) = (VecDeque::new(), input);
        for piece in pieces {
            let (piece, behind) = rest.split_at((*piece).min(rest.len()));
            arrivals.push_back(piece.to_vec());
            rest = behind;
        }
        arrivals.push_back(rest.to_vec());
        Self {
            seed: seed | 1,
            arrivals,
            pipe: VecDeque::new(),
            closed: false,
            output: Vec::new(),
            deaf_waits: 0,
            room: 4096,
            now: Duration::ZERO,
            waits: 0,
            signal_at: None,
            gone_at: None,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed % below as u64) as usize
    }
}

impl Transport for Scripted {
    fn wait(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<Wakeup> {
        self.waits += 1;
        assert!(
            self.waits < 100_000,
            "the loop spins: {timeout:?} {want:?} {:?}",
            self.now
        );
        let mut wakeup = Wakeup {
            signal: self.signal_at.is_some_and(|at| self.waits >= at),
            output_gone: self.gone_at.is_some_and(|at| self.waits >= at),
            ..Wakeup::default()
        };
        if self.random(8) == 0 {
            return Ok(wakeup);
        }
        if want.output && self.waits > self.deaf_waits {
            self.room = 1 + self.random(5000);
            wakeup.output = true;
        }
        if self.random(2) == 0 {
            match self.arrivals.pop_front() {
                Some(piece) => {
                    wakeup.input = !piece.is_empty();
                    self.pipe.extend(piece);
                }
                None if !self.closed => {
                    self.closed = true;
                    wakeup.input_closed = true;
                }
                None => {}
            }
        }
        // A long sleep is cut short, as a signal without meaning would do.
        let nothing = wakeup == Wakeup::default();
        if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero() && nothing) {
            let slept = timeout.min(Duration::from_millis(REST_AFTER_MS));
            self.now += (slept / 10).max(slept.min(Duration::from_millis(1)));
            wakeup.timed_out = slept == timeout;
        }
        Ok(wakeup)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match (self.random(6), self.pipe.len()) {
            (0, _) => Err(ErrorKind::Interrupted.into()),
            (_, 0) if self.closed => Ok(0),
            (_, 0) => Err(ErrorKind::WouldBlock.into()),
            (_, held) => {
                let count = 1 + self.random(held.min(into.len()));
                for (to, from) in into.iter_mut().zip(self.pipe.drain(..count)) {
                    *to = from;
                }
                Ok(count)
            }
        }
    }

    fn short_read_drains(&self) -> bool {
        true
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let count = from.len().min(self.room);
        if self.random(6) == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.room -= count;
        self.output.extend_from_slice(&from[..count]);
        Ok(count)
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn relax(&mut self) {
        self.now += Duration::from_micros(7);
    }
}

proptest! {
    #![proptest_config(support::cases::config(512))]

    #[test]
    fn any_manner_of_delivery_gives_the_same_replies(
        pieces in prop::collection::vec(0usize..200, 0..20),
        seed in any::<u64>(),
        deaf_waits in 0usize..40,
        repeats in 1usize..40,
        busy_us in prop::sample::select(vec![0, 0, 1, 50]),
    ) {
        let input = [SESSION, "\n"].concat().repeat(repeats);
        let mut transport = Scripted::new(input.as_bytes(), &pieces, seed);
        transport.deaf_waits = deaf_waits;
        let busy_poll = Duration::from_micros(busy_us);
        let ended = drive_busily(&mut engine(), &mut transport, busy_poll);
        prop_assert!(matches!(ended, Ok(Ended::Input)), "{ended:?}");
        prop_assert!(transport.output == plain(input.as_bytes()));
    }

    #[test]
    fn a_signal_or_a_vanished_reader_ends_it_at_any_moment(
        seed in any::<u64>(),
        at in 1usize..60,
        signal in any::<bool>(),
    ) {
        let mut transport = Scripted::new(SESSION.repeat(20).as_bytes(), &[300; 20], seed);
        transport.deaf_waits = 200;
        let wanted = if signal {
            transport.signal_at = Some(at);
            Ended::Signal
        } else {
            transport.gone_at = Some(at);
            Ended::Reader
        };
        let ended = drive(&mut engine(), &mut transport).unwrap();
        prop_assert_eq!(ended, wanted);
    }
}

#[test]
fn a_reader_that_never_reads_stops_the_reading_and_ends_with_the_input() {
    let input = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n".repeat(1_000_000);
    let mut transport = Scripted::new(&input, &[], 7);
    transport.deaf_waits = usize::MAX;
    let ended = drive(&mut engine(), &mut transport);
    let Err(Failure::Stalled { unsent_bytes }) = ended else {
        panic!("{ended:?}");
    };
    assert!(unsent_bytes > 0);
    let taken_bytes = input.len() - transport.pipe.len();
    assert!(
        taken_bytes < 2 * RING_BYTES,
        "{taken_bytes} bytes were read"
    );
    assert!(transport.now >= Duration::from_millis(FLUSH_STALL_MS));
}

#[test]
fn a_session_at_rest_waits_without_a_deadline() {
    struct Resting(Scripted, Vec<Option<Duration>>);
    impl Transport for Resting {
        fn wait(&mut self, timeout: Option<Duration>, _: Want) -> io::Result<Wakeup> {
            self.1.push(timeout);
            let signal = timeout.is_none();
            let timed_out = timeout.is_some_and(|timeout| !timeout.is_zero());
            assert!(self.1.len() < 20, "{:?}", self.1);
            Ok(Wakeup {
                signal,
                timed_out,
                ..Wakeup::default()
            })
        }
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
        fn short_read_drains(&self) -> bool {
            true
        }
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.0.write(from)
        }
        fn now(&self) -> Duration {
            self.0.now()
        }
    }
    let mut inner = Scripted::new(b"", &[], 3);
    inner.pipe.extend(SESSION.as_bytes());
    inner.room = usize::MAX;
    let mut transport = Resting(inner, Vec::new());
    assert_eq!(drive(&mut engine(), &mut transport).unwrap(), Ended::Signal);
    assert!(
        transport.0.pipe.is_empty(),
        "the read before resting found the rest"
    );
}

/// Something without meaning wakes the loop more often than the output is to be tried again.
#[test]
fn the_output_is_tried_again_in_its_own_time_whatever_wakes_the_loop() {
    const NOISE: Duration = Duration::from_millis(FLUSH_RETRY_MS * 3 / 5);
    struct Blocked(Scripted, Vec<Duration>);
    impl Transport for Blocked {
        fn wait(&mut self, timeout: Option<Duration>, want: Want) -> io::Result<Wakeup> {
            let timeout = timeout.unwrap();
            if want.rest {
                return Ok(Wakeup {
                    input_closed: true,
                    ..Wakeup::default()
                });
            }
            self.0.now += timeout.min(NOISE);
            Ok(Wakeup {
                timed_out: timeout <= NOISE && !timeout.is_zero(),
                ..Wakeup::default()
            })
        }
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
        fn short_read_drains(&self) -> bool {
            true
        }
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.1.push(self.0.now);
            match self.1.len() {
                ..4 => Err(ErrorKind::WouldBlock.into()),
                _ => Ok(from.len()),
            }
        }
        fn now(&self) -> Duration {
            self.0.now()
        }
    }
    let mut inner = Scripted::new(b"", &[], 3);
    inner.pipe.extend(SESSION.as_bytes());
    inner.closed = true;
    let mut transport = Blocked(inner, Vec::new());
    assert_eq!(drive(&mut engine(), &mut transport).unwrap(), Ended::Input);
    let gaps = transport.1.windows(2).map(|pair| pair[1] - pair[0]);
    let retry = Duration::from_millis(FLUSH_RETRY_MS);
    assert_eq!(gaps.take(3).collect::<Vec<_>>(), [retry; 3]);
}
