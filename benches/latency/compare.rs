//! Compares the figures of this run with an earlier line of the history.

use crate::history::Line;

/// A change of a ratio below this is noise on a shared machine.
const NOISE: f64 = 0.05;

/// Instruction counts are exact, so a smaller change counts.
const INSTRUCTIONS_NOISE: f64 = 0.02;

/// Prints a row for each ratio and each count that both lines have. It says "slower" only where
/// the ratio to the floor and the instruction count of the same kind agree: a ratio alone moves
/// with the load of the machine, a count alone may not matter.
pub(crate) fn print(then: &Line, now: &Line) {
    println!("\n{} against {} of {}", now.commit, then.commit, then.date);
    if then.cpu != now.cpu {
        println!("the machines differ: {} and {}", then.cpu, now.cpu);
    }
    println!("{:<46} {:>12} {:>12} {:>8}", "", "then", "now", "change");
    for (name, now_figure) in &now.figures {
        let telling = name.ends_with("_ratio")
            || name.ends_with("_instructions")
            || name.ends_with("_system_calls");
        let Some(then_figure) = then.figures.get(name).filter(|_| telling) else {
            continue;
        };
        let change = now_figure / then_figure - 1.0;
        let verdict = if slower(name, then, now) {
            "  slower"
        } else {
            ""
        };
        println!(
            "{name:<46} {then_figure:>12.3} {now_figure:>12.3} {:>+7.1}%{verdict}",
            change * 100.0
        );
    }
}

/// Whether a latency ratio has grown, and the instructions of its kind with it.
fn slower(name: &str, then: &Line, now: &Line) -> bool {
    let Some((place, _)) = name.rsplit_once("/p50_ratio") else {
        return false;
    };
    let kind = place.rsplit('/').next().unwrap_or(place);
    let grown = |name: &str, noise: f64| {
        let figures = (then.figures.get(name), now.figures.get(name));
        matches!(figures, (Some(then), Some(now)) if now / then > 1.0 + noise)
    };
    grown(name, NOISE)
        && grown(
            &format!("in_process/{kind}_instructions"),
            INSTRUCTIONS_NOISE,
        )
}
