//! `--peers LIST`: other servers beside rocco and the floor, in turns in one run.
//!
//! A line of LIST is a name, a tab and a command. The figures are printed as one JSON object, by
//! name of the server and of the figure; a figure that a server could not be brought to is null.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Channel, INITIALIZE, Placement, Server};
use crate::measure::{KINDS, floor_argv, quantile, rocco_argv};

const EXCHANGES: usize = 3_000;
const TURN: usize = 100;
const BURST: usize = 64;
const BURSTS: usize = 200;
const LARGE_FRAMES: usize = 20;
const STARTS: usize = 9;
/// Frames of the session whose peak memory is measured, with the two frames that open it.
const SESSION_FRAMES: usize = 5_000;

const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

type Figures = BTreeMap<String, BTreeMap<String, Value>>;

struct Peer {
    name: String,
    argv: Vec<String>,
}

/// The servers: rocco first, then the listed servers. Each reply length has its own floor.
fn listed(list: &str) -> io::Result<Vec<Peer>> {
    let mut peers = vec![Peer {
        name: "rocco".into(),
        argv: rocco_argv(),
    }];
    for line in std::fs::read_to_string(list)?.lines() {
        let (name, command) = line.split_once('\t').ok_or(io::ErrorKind::InvalidData)?;
        peers.push(Peer {
            name: name.into(),
            argv: command.split(' ').map(str::to_owned).collect(),
        });
    }
    Ok(peers)
}

/// Takes all measurements.
pub(crate) fn all(list: &str) -> io::Result<()> {
    let peers = listed(list)?;
    let mut figures = Figures::new();
    for placement in [Placement::OneCpu, Placement::TwoCpus] {
        for (kind, request) in KINDS {
            eprintln!("{kind}, {}", place(placement));
            one_in_flight(&mut figures, &peers, placement, kind, request);
        }
    }
    eprintln!("bursts");
    bursts(&mut figures, &peers);
    for peer in &peers {
        eprintln!("large frames, a long session and starts of {}", peer.name);
        let named = figures.entry(peer.name.clone()).or_default();
        named.insert("large_mb_per_second".into(), json!(large(peer)));
        named.insert("peak_kib".into(), json!(peak_kib(peer)));
        named.insert("first_reply_ns".into(), json!(first_reply(peer)));
    }
    println!("{}", json!(figures));
    Ok(())
}

fn place(placement: Placement) -> &'static str {
    match placement {
        Placement::OneCpu => "one_cpu",
        Placement::TwoCpus => "two_cpus",
    }
}

/// A server with an open session.
fn opened(argv: &[String], placement: Placement) -> Server {
    let mut server = Server::start(argv, Channel::Pipe, placement);
    server.exchange(INITIALIZE);
    server.send(INITIALIZED);
    server
}

/// All servers, and a floor whose replies are as long as rocco's.
fn crew(peers: &[Peer], placement: Placement, request: &str) -> Vec<(String, Server)> {
    let mut crew = Vec::new();
    let mut reply_bytes = 0;
    for peer in peers {
        let mut server = opened(&peer.argv, placement);
        server.send(request.as_bytes());
        let bytes = server.receive(1);
        if reply_bytes == 0 {
            reply_bytes = bytes;
        }
        crew.push((peer.name.clone(), server));
    }
    let floor = Server::start(&floor_argv(reply_bytes), Channel::Pipe, placement);
    crew.push(("floor".into(), floor));
    crew
}

fn one_in_flight(
    figures: &mut Figures,
    peers: &[Peer],
    placement: Placement,
    kind: &str,
    request: &str,
) {
    let mut crew = crew(peers, placement, request);
    let mut times = vec![Vec::with_capacity(EXCHANGES); crew.len()];
    for (_, server) in &mut crew {
        for _ in 0..TURN {
            server.exchange(request.as_bytes());
        }
    }
    while times[0].len() < EXCHANGES {
        for ((_, server), times) in crew.iter_mut().zip(&mut times) {
            times.extend((0..TURN).map(|_| server.exchange(request.as_bytes())));
        }
    }
    for ((name, server), mut times) in crew.into_iter().zip(times) {
        times.sort_unstable();
        let named = figures.entry(name).or_default();
        for (figure, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            let figure = format!("{}/{kind}/{figure}_ns", place(placement));
            named.insert(figure, json!(quantile(&times, share)));
        }
        server.end();
    }
}

/// 64 requests in one write, and 64 replies before the next.
fn bursts(figures: &mut Figures, peers: &[Peer]) {
    let request = KINDS[1].1;
    // Some servers take a second request of an open id for a mistake.
    let numbered =
        (100..100 + BURST).map(|id| request.replace("\"id\":7", &format!("\"id\":{id}")));
    let burst: String = numbered.collect();
    let mut crew = crew(peers, Placement::TwoCpus, request);
    let mut spent = vec![Duration::ZERO; crew.len()];
    let before: Vec<Duration> = crew.iter().map(|(_, server)| server.cpu()).collect();
    for _ in 0..BURSTS {
        for ((_, server), spent) in crew.iter_mut().zip(&mut spent) {
            let start = Instant::now();
            server.send(burst.as_bytes());
            server.receive(BURST);
            *spent += start.elapsed();
        }
    }
    let requests = (BURSTS * BURST) as f64;
    for (((name, server), spent), before) in crew.into_iter().zip(spent).zip(before) {
        let cpu = server.cpu().saturating_sub(before);
        let named = figures.entry(name).or_default();
        let rate = requests / spent.as_secs_f64();
        named.insert("burst_requests_per_second".into(), json!(rate));
        let cpu_ns = cpu.as_nanos() as f64 / requests;
        named.insert("burst_cpu_ns".into(), json!(cpu_ns));
        server.end();
    }
}

/// Frames of a mebibyte, one at a time; none if the server does not answer them.
fn large(peer: &Peer) -> Option<f64> {
    let mut request =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"x\":\"".to_owned();
    request += &"a".repeat((1 << 20) - request.len() - 3);
    request += "\"}}\n";
    let mut server = opened(&peer.argv, Placement::TwoCpus);
    let start = Instant::now();
    for _ in 0..LARGE_FRAMES {
        server.try_exchange(request.as_bytes()).ok()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    server.end();
    Some((LARGE_FRAMES * request.len()) as f64 / 1e6 / seconds)
}

/// Peak memory after a session of calls, lists and pings.
fn peak_kib(peer: &Peer) -> u64 {
    let mut server = opened(&peer.argv, Placement::TwoCpus);
    for index in 0..SESSION_FRAMES {
        server.exchange(KINDS[index % KINDS.len()].1.as_bytes());
    }
    let peak = server.status_kib("VmHWM:");
    server.end();
    peak
}

/// From the start to the first reply, the median.
fn first_reply(peer: &Peer) -> f64 {
    let mut times: Vec<Duration> = (0..STARTS)
        .map(|_| {
            let mut server = Server::start(&peer.argv, Channel::Pipe, Placement::TwoCpus);
            server.send(INITIALIZE);
            server.receive(1);
            let time = server.started.elapsed();
            server.end();
            time
        })
        .collect();
    times.sort_unstable();
    quantile(&times, 0.5)
}
