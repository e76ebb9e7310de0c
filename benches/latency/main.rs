//! The latency tracker: the real program as a subprocess, beside a floor.
//!
//! `cargo bench --bench latency` measures, prints a table and appends a line to
//! profiling/history.jsonl. `-- --against COMMIT` compares with an earlier line, `-- --quick` takes
//! a tenth of the time, `-- --chart` draws the history and measures nothing, `-- --peers LIST`
//! measures other servers beside rocco (profiling/peers/run.py asks for it), and `-- --tasks FILES`
//! measures nothing but tasks, on a repository of so many files.
//!
//! The floor is this program itself, started with `--floor`: it reads, splices the id into a canned
//! reply of the same length and writes, blocking and without JSON. rocco and the floor are measured
//! in turns in one run, so that every figure is also a ratio to what the machine allows at that
//! moment. A second floor waits by epoll: the least that a server can take which also watches
//! signals and other descriptors.

mod chart;
mod client;
mod compare;
mod executor;
mod floor;
mod history;
mod measure;
mod peers;
mod tasks;
#[cfg(all(feature = "executor", target_os = "linux"))]
mod walls;

use std::process::ExitCode;

use floor::Floor;
use measure::Effort;

const USAGE: &str = "latency [--quick] [--no-history] [--against COMMIT] [--chart] [--peers LIST] \
    [--tasks FILES]";

/// The options of the command line.
#[derive(Debug, Default)]
struct Wish {
    quick: bool,
    no_history: bool,
    against: Option<String>,
    chart: bool,
    peers: Option<String>,
    tasks: Option<String>,
    /// `cargo test --benches`: show that it runs.
    test: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if let Some(floor) = Floor::asked_for(std::env::args()) {
        floor.serve();
        return ExitCode::SUCCESS;
    }
    if executor::asked_for(std::env::args()) {
        executor::serve();
        return ExitCode::SUCCESS;
    }
    if let Some((kind, count)) = steady_asked_for(std::env::args()) {
        measure::steady(&kind, count);
        return ExitCode::SUCCESS;
    }
    // `cargo bench` says `--bench`; without it this is `cargo test --benches`.
    let mut wish = Wish {
        test: true,
        ..Wish::default()
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => wish.quick = true,
            "--no-history" => wish.no_history = true,
            "--chart" => wish.chart = true,
            "--against" => wish.against = arguments.next(),
            "--peers" => wish.peers = arguments.next(),
            "--tasks" => wish.tasks = arguments.next(),
            "--bench" => wish.test = false,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    if wish.chart {
        return chart::draw();
    }
    if let Some(list) = &wish.peers {
        return match peers::all(list) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{list}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match &wish.tasks {
        Some(files) => run_tasks(files),
        None => run(&wish),
    }
}

/// Measures tasks alone, which take minutes on a large repository.
fn run_tasks(files: &str) -> ExitCode {
    let Some(files) = files.parse().ok().filter(|files| *files > 0) else {
        eprintln!("--tasks {files:?} is not a number of files");
        return ExitCode::from(2);
    };
    let figures = measure::tasks(files, measure::TASKS);
    for (name, figure) in &figures {
        println!("{name:<46} {figure:>14.2}");
    }
    match figures.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Whether this process was started to give valgrind something to count.
fn steady_asked_for(mut arguments: impl Iterator<Item = String>) -> Option<(String, usize)> {
    arguments.by_ref().find(|argument| argument == "--steady")?;
    Some((arguments.next()?, arguments.next()?.parse().ok()?))
}

fn run(wish: &Wish) -> ExitCode {
    let effort = match (wish.test, wish.quick) {
        (true, _) => Effort::TEST,
        (_, true) => Effort::QUICK,
        _ => Effort::FULL,
    };
    let figures = measure::all(effort);
    let line = history::Line::now(figures);
    line.print();
    if let Some(commit) = &wish.against {
        match history::find(commit) {
            Some(then) => compare::print(&then, &line),
            None => {
                eprintln!("no line of commit {commit} in {}", history::PATH);
                return ExitCode::FAILURE;
            }
        }
    }
    if !wish.test && !wish.no_history {
        history::append(&line);
    }
    ExitCode::SUCCESS
}
