//! The history as one self-contained SVG, readable on light and on dark.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::history::{self, Line};

const PATH: &str = "profiling/history.svg";
const WIDTH: f64 = 860.0;
const PANEL: f64 = 180.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 190.0;

/// A panel: its title, and the figures that are drawn in it.
const PANELS: [(&str, &[&str]); 3] = [
    (
        "one in flight, p50 against the floor, pipe",
        &[
            "pipe/one_cpu/ping/p50_ratio",
            "pipe/one_cpu/tools_list/p50_ratio",
            "pipe/one_cpu/tools_call/p50_ratio",
            "pipe/two_cpus/tools_list/p50_ratio",
        ],
    ),
    (
        "instructions a frame, in process",
        &[
            "in_process/ping_instructions",
            "in_process/tools_list_instructions",
            "in_process/tools_call_instructions",
        ],
    ),
    (
        "64 in flight, rate against the floor",
        &[
            "pipe/two_cpus/burst/rate_ratio",
            "socket/two_cpus/burst/rate_ratio",
        ],
    ),
];

const COLOURS: [&str; 4] = ["#2a78d6", "#d6672a", "#2a9d5c", "#9b59b6"];

/// Draws the history into profiling/history.svg.
pub(crate) fn draw() -> ExitCode {
    let lines = history::all();
    if lines.is_empty() {
        eprintln!("there is no history yet in {}", history::PATH);
        return ExitCode::FAILURE;
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PATH);
    std::fs::write(&path, svg(&lines)).expect("the chart is writable");
    println!("{PATH}: {} runs", lines.len());
    ExitCode::SUCCESS
}

fn svg(lines: &[Line]) -> String {
    let height = PANEL * PANELS.len() as f64 + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<style>text{{fill:#333}}\
         .axis{{stroke:#999;stroke-width:1}}@media(prefers-color-scheme:dark)\
         {{text{{fill:#ddd}}.axis{{stroke:#777}}}}</style>\n"
    );
    for (index, (title, names)) in PANELS.iter().enumerate() {
        panel(&mut svg, lines, title, names, PANEL * index as f64);
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, lines: &[Line], title: &str, names: &[&str], top: f64) {
    let figures = names
        .iter()
        .flat_map(|name| lines.iter().map(|line| line.figures.get(*name)));
    let highest = figures
        .flatten()
        .fold(0.0, |high: f64, figure| high.max(*figure));
    let (bottom, ceiling) = (top + PANEL - 25.0, top + 30.0);
    let x = |run: usize| {
        let steps = (lines.len() - 1).max(1) as f64;
        LEFT + (WIDTH - LEFT - RIGHT) * run as f64 / steps
    };
    let y = |figure: f64| bottom - (bottom - ceiling) * figure / highest.max(f64::MIN_POSITIVE);
    let mut put = |text: String| svg.push_str(&text);
    put(format!(
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{title}</text>\n",
        top + 18.0
    ));
    put(format!(
        "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {ceiling}V{bottom}H{}\"/>\n",
        WIDTH - RIGHT
    ));
    for figure in [0.0, highest / 2.0, highest] {
        let (at, label) = (y(figure) + 4.0, short(figure));
        put(format!(
            "<text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\">{label}</text>\n",
            LEFT - 6.0
        ));
    }
    for (index, name) in names.iter().enumerate() {
        let runs = lines.iter().enumerate();
        let points: Vec<(f64, f64)> = runs
            .filter_map(|(run, line)| Some((x(run), y(*line.figures.get(*name)?))))
            .collect();
        let colour = COLOURS[index % COLOURS.len()];
        put(series(&points, colour));
        let label = name
            .replace("/p50_ratio", "")
            .replace("in_process/", "")
            .replace('_', " ");
        let at = ceiling + 10.0 + 18.0 * index as f64;
        put(format!(
            "<rect x=\"{0}\" y=\"{1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{2}\" y=\"{at}\">{label}</text>\n",
            WIDTH - RIGHT + 10.0,
            at - 9.0,
            WIDTH - RIGHT + 26.0
        ));
    }
}

fn series(points: &[(f64, f64)], colour: &str) -> String {
    let mut text = String::new();
    let path: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1} {y:.1}"))
        .collect();
    if !path.is_empty() {
        let path = path.join("L");
        let _ = writeln!(
            text,
            "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" d=\"M{path}\"/>"
        );
    }
    for (x, y) in points {
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        );
    }
    text
}

fn short(figure: f64) -> String {
    if figure >= 100.0 {
        format!("{figure:.0}")
    } else {
        format!("{figure:.2}")
    }
}
