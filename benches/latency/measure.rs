//! The measurements, and how often each is repeated.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rocco::internals::engine::Engine;
use rocco::internals::task::submit::SubmitTask;
use rocco::{Info, Server};

use crate::client::{self, Channel, INITIALIZE, Placement};
use crate::executor;
use crate::floor::Floor;

/// Figures by name. Names end in their unit; `ratio` is rocco's figure by the floor's.
pub(crate) type Figures = BTreeMap<String, f64>;

/// How often tasks are measured that are measured alone.
pub(crate) const TASKS: usize = 5;

/// How often each measurement is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    exchanges: usize,
    bursts: usize,
    large_frames: usize,
    starts: usize,
    in_process: usize,
    /// Files of the repositories on which tasks are done, each so often.
    task_files: &'static [usize],
    tasks: usize,
    /// Whether valgrind and strace count too.
    counted: bool,
}

impl Effort {
    pub(crate) const FULL: Self = Self {
        exchanges: 20_000,
        bursts: 2_000,
        large_frames: 100,
        starts: 100,
        in_process: 200_000,
        task_files: &[300, 30_000],
        tasks: TASKS,
        counted: true,
    };
    pub(crate) const QUICK: Self = Self {
        exchanges: 2_000,
        bursts: 200,
        large_frames: 20,
        starts: 20,
        in_process: 20_000,
        task_files: &[300],
        tasks: TASKS,
        counted: true,
    };
    pub(crate) const TEST: Self = Self {
        exchanges: 40,
        bursts: 2,
        large_frames: 1,
        starts: 2,
        in_process: 10,
        task_files: &[3],
        tasks: 1,
        counted: false,
    };
}

/// Exchanges of one server's turn.
const TURN: usize = 200;
const BURST: usize = 64;

pub(crate) const KINDS: [(&str, &str); 3] = [
    (
        "ping",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n",
    ),
    (
        "tools_list",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}\n",
    ),
    (
        "tools_call",
        concat!(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"larry_submit_task","#,
            r#""arguments":{"goal":"Stop after five attempts.","repo":"/srv/uploader","#,
            r#""files":["src/upload.rs"],"acceptance":["the tests pass"]}}}"#,
            "\n"
        ),
    ),
];

/// Takes all measurements.
pub(crate) fn all(effort: Effort) -> Figures {
    let mut figures = Figures::new();
    in_process(&mut figures, effort);
    for channel in [Channel::Pipe, Channel::Socket] {
        for placement in [Placement::OneCpu, Placement::TwoCpus] {
            for (kind, request) in KINDS {
                let place = format!(
                    "{}/{}/{kind}",
                    channel_name(channel),
                    placement_name(placement)
                );
                let pair = Pair::start(channel, placement, request);
                let (reply_bytes, waits) = (pair.reply_bytes, true);
                let argv = Floor { reply_bytes, waits }.argv();
                let waiting = client::Server::start(&argv, channel, placement);
                let servers = [pair.rocco, pair.floor, waiting];
                one_in_flight(&mut figures, &place, servers, request, effort.exchanges);
            }
        }
        in_bursts(&mut figures, channel, effort.bursts);
        large_frames(&mut figures, channel, effort.large_frames);
    }
    for placement in [Placement::OneCpu, Placement::TwoCpus] {
        executor::calls(&mut figures, placement, effort.exchanges / 2);
    }
    starts(&mut figures, effort.starts);
    #[cfg(all(feature = "executor", target_os = "linux"))]
    crate::walls::starts(&mut figures, effort.starts);
    for files in effort.task_files {
        figures.append(&mut tasks(*files, effort.tasks));
    }
    if effort.counted {
        counts(&mut figures);
    }
    figures
}

/// Measures tasks on a repository of this many files, each kind so often. Nothing is measured where
/// there is no executor.
pub(crate) fn tasks(files: usize, rounds: usize) -> Figures {
    let mut figures = Figures::new();
    if cfg!(all(feature = "executor", target_os = "linux")) {
        crate::tasks::costs(&mut figures, files, rounds);
    }
    figures
}

fn channel_name(channel: Channel) -> &'static str {
    match channel {
        Channel::Pipe => "pipe",
        Channel::Socket => "socket",
    }
}

pub(crate) fn placement_name(placement: Placement) -> &'static str {
    match placement {
        Placement::OneCpu => "one_cpu",
        Placement::TwoCpus => "two_cpus",
    }
}

pub(crate) fn rocco_argv() -> Vec<String> {
    vec![env!("CARGO_BIN_EXE_rocco").into(), "mcp".into()]
}

/// The floor that blocks in its read.
pub(crate) fn floor_argv(reply_bytes: usize) -> Vec<String> {
    let waits = false;
    Floor { reply_bytes, waits }.argv()
}

/// rocco, and a floor whose replies have the same length.
struct Pair {
    rocco: client::Server,
    floor: client::Server,
    reply_bytes: usize,
}

impl Pair {
    fn start(channel: Channel, placement: Placement, request: &str) -> Self {
        let mut rocco = client::Server::start(&rocco_argv(), channel, placement);
        rocco.exchange(INITIALIZE);
        rocco.send(request.as_bytes());
        let reply_bytes = rocco.receive(1);
        let floor = client::Server::start(&floor_argv(reply_bytes), channel, placement);
        Self {
            rocco,
            floor,
            reply_bytes,
        }
    }

    fn both(&mut self) -> [&mut client::Server; 2] {
        [&mut self.rocco, &mut self.floor]
    }
}

/// Exchanges with rocco, the floor and the floor that waits, in turns.
fn one_in_flight(
    figures: &mut Figures,
    place: &str,
    mut servers: [client::Server; 3],
    request: &str,
    count: usize,
) {
    let mut times: [Vec<Duration>; 3] = Default::default();
    for server in &mut servers {
        for _ in 0..count.min(TURN) {
            server.exchange(request.as_bytes());
        }
    }
    while times[0].len() < count {
        for (server, times) in servers.iter_mut().zip(&mut times) {
            times.extend((0..count.min(TURN)).map(|_| server.exchange(request.as_bytes())));
        }
    }
    let [rocco, floor, waiting] = times.map(|mut times| {
        times.sort_unstable();
        times
    });
    for (name, share) in [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p999", 0.999),
        ("max", 1.0),
    ] {
        let [rocco, floor, waiting] = [&rocco, &floor, &waiting].map(|it| quantile(it, share));
        figures.insert(format!("{place}/{name}_ns"), rocco);
        figures.insert(format!("{place}/floor_{name}_ns"), floor);
        figures.insert(format!("{place}/{name}_ratio"), rocco / floor);
        figures.insert(format!("{place}/waiting_{name}_ratio"), waiting / floor);
    }
    for server in servers {
        server.close();
    }
}

pub(crate) fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let index = ((sorted.len() - 1) as f64 * share) as usize;
    sorted[index].as_nanos() as f64
}

/// 64 requests in one write, and 64 replies before the next.
fn in_bursts(figures: &mut Figures, channel: Channel, bursts: usize) {
    let place = format!("{}/two_cpus/burst", channel_name(channel));
    let request = KINDS[1].1;
    let mut pair = Pair::start(channel, Placement::TwoCpus, request);
    let burst = request.repeat(BURST);
    let mut spent = [Duration::ZERO; 2];
    let before = pair.rocco.cpu();
    for _ in 0..bursts {
        for (server, spent) in pair.both().into_iter().zip(&mut spent) {
            let start = Instant::now();
            server.send(burst.as_bytes());
            server.receive(BURST);
            *spent += start.elapsed();
        }
    }
    let requests = (bursts * BURST) as f64;
    let [rocco, floor] = spent.map(|spent| requests / spent.as_secs_f64());
    let cpu = pair.rocco.cpu().saturating_sub(before);
    figures.insert(format!("{place}/requests_per_second"), rocco);
    figures.insert(format!("{place}/floor_requests_per_second"), floor);
    figures.insert(format!("{place}/rate_ratio"), rocco / floor);
    figures.insert(
        format!("{place}/server_cpu_ns"),
        cpu.as_nanos() as f64 / requests,
    );
    figures.insert(
        format!("{place}/peak_kib"),
        pair.rocco.status_kib("VmHWM:") as f64,
    );
    pair.rocco.close();
    pair.floor.close();
}

/// Frames near the bound, one at a time.
fn large_frames(figures: &mut Figures, channel: Channel, frames: usize) {
    let place = format!("{}/two_cpus/large", channel_name(channel));
    let mut request =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"x\":\"".to_owned();
    request += &"a".repeat(rocco::internals::limits::FRAME_BYTES_MAX - request.len() - 3);
    request += "\"}}\n";
    let mut pair = Pair::start(channel, Placement::TwoCpus, KINDS[0].1);
    let mut spent = [Duration::ZERO; 2];
    for _ in 0..frames {
        for (server, spent) in pair.both().into_iter().zip(&mut spent) {
            *spent += server.exchange(request.as_bytes());
        }
    }
    let megabytes = (frames * request.len()) as f64 / 1e6;
    let [rocco, floor] = spent.map(|spent| megabytes / spent.as_secs_f64());
    figures.insert(format!("{place}/mb_per_second"), rocco);
    figures.insert(format!("{place}/floor_mb_per_second"), floor);
    figures.insert(format!("{place}/rate_ratio"), rocco / floor);
    pair.rocco.close();
    pair.floor.close();
}

/// From the start to the first reply, and from the end of input to the exit.
fn starts(figures: &mut Figures, starts: usize) {
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..starts {
        for (argv, at) in [(rocco_argv(), 0), (floor_argv(400), 2)] {
            let mut server = client::Server::start(&argv, Channel::Pipe, Placement::TwoCpus);
            server.send(INITIALIZE);
            server.receive(1);
            times[at].push(server.started.elapsed());
            times[at + 1].push(server.close());
        }
    }
    let [first, exit, floor_first, floor_exit] = times.map(|mut times| {
        times.sort_unstable();
        quantile(&times, 0.5)
    });
    figures.insert("start/first_reply_ns".into(), first);
    figures.insert("start/floor_first_reply_ns".into(), floor_first);
    figures.insert("start/first_reply_ratio".into(), first / floor_first);
    figures.insert("start/exit_ns".into(), exit);
    figures.insert("start/floor_exit_ns".into(), floor_exit);
    figures.insert("start/exit_ratio".into(), exit / floor_exit);
}

/// The engine without a system call: the median of rounds.
fn in_process(figures: &mut Figures, effort: Effort) {
    const ROUNDS: usize = 21;
    for (kind, request) in KINDS {
        let mut engine = opened();
        let mut rounds = [Duration::ZERO; ROUNDS];
        for round in &mut rounds {
            let start = Instant::now();
            for _ in 0..effort.in_process / ROUNDS + 1 {
                exchange(&mut engine, request.as_bytes());
            }
            *round = start.elapsed() / (effort.in_process / ROUNDS + 1) as u32;
        }
        rounds.sort_unstable();
        figures.insert(format!("in_process/{kind}_ns"), quantile(&rounds, 0.5));
    }
}

fn opened() -> Engine {
    let server = Server::new(Info::new("rocco", "0")).tool(SubmitTask::new());
    let mut engine = server.into_engine();
    exchange(&mut engine, INITIALIZE);
    engine
}

fn exchange(engine: &mut Engine, frame: &[u8]) {
    engine.space()[..frame.len()].copy_from_slice(frame);
    engine.fill(frame.len());
    engine.serve();
    let replied_bytes = std::hint::black_box(engine.pending()).len();
    assert!(replied_bytes > 0);
    engine.consume(replied_bytes);
}

/// `--steady KIND COUNT`: frames in process, for valgrind to count.
pub(crate) fn steady(kind: &str, count: usize) {
    let Some((_, request)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return;
    };
    let mut engine = opened();
    for _ in 0..count {
        exchange(&mut engine, request.as_bytes());
    }
}

/// Instructions and system calls, where valgrind and strace are installed.
fn counts(figures: &mut Figures) {
    for (kind, request) in KINDS {
        let few = instructions(kind, 1_000);
        let many = instructions(kind, 3_000);
        if let (Some(few), Some(many)) = (few, many) {
            figures.insert(
                format!("in_process/{kind}_instructions"),
                (many - few) / 2_000.0,
            );
        }
        let calls = |times| system_calls(request, times);
        if let (Some(few), Some(many)) = (calls(10), calls(1_010)) {
            figures.insert(format!("pipe/{kind}_system_calls"), (many - few) / 1_000.0);
        }
    }
}

fn instructions(kind: &str, count: usize) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--steady", kind, &count.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, digits) = said.split_once("Collected : ")?;
    digits.split_whitespace().next()?.parse().ok()
}

fn system_calls(request: &str, count: usize) -> Option<f64> {
    let trace = std::env::temp_dir().join(format!("rocco-{}.strace", std::process::id()));
    let mut argv = vec![
        "strace".into(),
        "-qq".into(),
        "-e".into(),
        "signal=none".into(),
    ];
    argv.extend(["-o".into(), trace.to_string_lossy().into_owned()]);
    argv.extend(rocco_argv());
    let there = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    there.ok()?;
    let mut server = client::Server::start(&argv, Channel::Pipe, Placement::TwoCpus);
    server.exchange(INITIALIZE);
    for _ in 0..count {
        server.exchange(request.as_bytes());
    }
    server.close();
    let text = std::fs::read_to_string(&trace).ok()?;
    let _ = std::fs::remove_file(&trace);
    Some(text.lines().count() as f64)
}
