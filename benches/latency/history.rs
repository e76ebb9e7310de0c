//! The history: the figures of earlier runs, one line of JSON each, in profiling/history.jsonl.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::measure::Figures;

/// The file of the history.
pub(crate) const PATH: &str = "profiling/history.jsonl";

/// One run.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    pub(crate) toolchain: String,
    pub(crate) figures: Figures,
}

impl Line {
    /// A run of this moment, on this machine and this working tree.
    pub(crate) fn now(figures: Figures) -> Self {
        let dirty = !said("git", &["status", "--porcelain", "--", "src", "Cargo.toml"]).is_empty();
        let commit = said("git", &["rev-parse", "--short=12", "HEAD"]);
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        let model = model.unwrap_or("unknown").trim_matches([' ', '\t', ':']);
        let count = cpus
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        Self {
            commit: if dirty { commit + "+" } else { commit },
            date: said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            cpu: format!("{count} x {model}"),
            kernel: said("uname", &["-sr"]),
            toolchain: said("rustc", &["--version"]),
            figures,
        }
    }

    fn json(&self) -> Value {
        // No figure is more precise than three decimals.
        let rounded = |figure: &f64| (figure * 1000.0).round() / 1000.0;
        let figures: serde_json::Map<String, Value> = self
            .figures
            .iter()
            .map(|(name, figure)| (name.clone(), json!(rounded(figure))))
            .collect();
        json!({
            "commit": self.commit, "date": self.date, "cpu": self.cpu, "kernel": self.kernel,
            "toolchain": self.toolchain, "figures": figures,
        })
    }

    fn of(value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let figures = value.get("figures")?.as_object()?;
        let figures = figures
            .iter()
            .filter_map(|(name, figure)| Some((name.clone(), figure.as_f64()?)));
        Some(Self {
            commit: text("commit")?,
            date: text("date")?,
            cpu: text("cpu")?,
            kernel: text("kernel")?,
            toolchain: text("toolchain")?,
            figures: figures.collect(),
        })
    }

    /// Prints a table: a row for each thing that was measured beside the floor, with the ratio of
    /// the floor that waits, then the rest.
    pub(crate) fn print(&self) {
        println!(
            "{} on {}, {}, {}",
            self.commit, self.cpu, self.kernel, self.toolchain
        );
        println!(
            "\n{:<28} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6}",
            "one in flight", "p50 us", "floor", "ratio", "(waiting)", "p99 us", "ratio"
        );
        let figure = |name: &str| self.figures.get(name).copied();
        for name in self.figures.keys() {
            let Some(place) = name.strip_suffix("/p50_ratio") else {
                continue;
            };
            let of = |name: &str| figure(&format!("{place}/{name}")).unwrap_or(f64::NAN);
            println!(
                "{place:<28} {:>9.2} {:>9.2} {:>6.2} {:>9.2} {:>9.2} {:>6.2}",
                of("p50_ns") / 1e3,
                of("floor_p50_ns") / 1e3,
                of("p50_ratio"),
                of("waiting_p50_ratio"),
                of("p99_ns") / 1e3,
                of("p99_ratio"),
            );
        }
        println!(
            "\n{:<28} {:>9} {:>9}",
            "with an executor", "p50 us", "p99 us"
        );
        for name in self.figures.keys() {
            let call = name.strip_prefix("executor/");
            if let Some(call) = call.and_then(|call| call.strip_suffix("/p50_ns")) {
                let of = |name: &str| figure(&format!("executor/{call}/{name}"));
                let [p50, p99] = ["p50_ns", "p99_ns"].map(|name| of(name).unwrap_or(f64::NAN));
                println!("{call:<28} {:>9.2} {:>9.2}", p50 / 1e3, p99 / 1e3);
            }
        }
        println!();
        let shown = |name: &str| {
            ["p50", "p90", "p99", "p999", "max"]
                .iter()
                .any(|quantile| name.contains(&format!("{quantile}_")))
        };
        for (name, figure) in self.figures.iter().filter(|(name, _)| !shown(name)) {
            println!("{name:<46} {figure:>14.2}");
        }
    }
}

/// All lines, oldest first.
pub(crate) fn all() -> Vec<Line> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    let values = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    values.filter_map(|value: Value| Line::of(&value)).collect()
}

/// The newest line of a commit.
pub(crate) fn find(commit: &str) -> Option<Line> {
    all()
        .into_iter()
        .rfind(|line| line.commit.starts_with(commit))
}

/// Adds a line.
pub(crate) fn append(line: &Line) {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .append(true)
        .open(path())
        .expect("the history is writable");
    writeln!(file, "{}", line.json()).expect("the history is writable");
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PATH)
}

/// The output of a program, or an empty text where the program is not installed.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}
