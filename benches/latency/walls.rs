//! What the walls around a program of a task cost: its start within them, beside its start with
//! none.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rocco::internals::executor::walls::bounds::Bounds;
use rocco::internals::executor::walls::entry;
use rocco::internals::executor::walls::standing::{self, Walls, WallsWanted};
use rocco::internals::executor::walls::view::View;

use crate::measure::Figures;

/// Measures from the start to the end of a program that does nothing, within each set of walls that
/// stands here, in turns.
pub(crate) fn starts(figures: &mut Figures, rounds: usize) {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_rocco"));
    let dir = tempfile::tempdir().expect("a directory");
    let view = View {
        readable: vec![program.to_owned()],
        writable: vec![dir.path().to_owned()],
        tmp: dir.path().to_owned(),
        dir: dir.path().to_owned(),
        network: true,
        unix_sockets: false,
    };
    let stands = |walls: &Walls| standing::find(WallsWanted::Exactly(*walls), program).is_ok();
    let mut measured: Vec<(Walls, Vec<Duration>)> = Walls::ALL
        .into_iter()
        .filter(stands)
        .map(|walls| (walls, Vec::new()))
        .collect();
    for _ in 0..rounds {
        for (walls, times) in &mut measured {
            let inner = ["/bin/true".into()];
            let words = entry::argv(*walls, &view, Bounds::default(), program, &inner);
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null());
            let started = Instant::now();
            let ended = command.status().expect("the walls stood a moment ago");
            times.push(started.elapsed());
            assert!(ended.success(), "{walls}: {ended}");
        }
    }
    let medians = measured.into_iter().map(|(walls, mut times)| {
        times.sort_unstable();
        (walls, times[times.len() / 2].as_secs_f64() * 1e6)
    });
    let medians: Vec<(Walls, f64)> = medians.collect();
    let none = medians.iter().find(|(walls, _)| *walls == Walls::Neither);
    let none = none.expect("no wall always stands").1;
    for (walls, median) in medians {
        figures.insert(format!("walls/{walls}/start_us"), median);
        if walls != Walls::Neither {
            figures.insert(format!("walls/{walls}/start_added_us"), median - none);
        }
    }
}
