//! What a task costs beside the time of its agent and its gates: as a multiple of one
//! `git worktree add` of the same commit, taken in turns with it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::measure::Figures;

/// Files of a directory of the repository.
const DIR_FILES: usize = 30;

/// What an agent does: as little as gives a result, or nothing until it is ended.
const AGENT: &str =
    "#!/bin/sh\ncase $(cat) in *wait*) : > started; exec sleep 600 ;; esac\necho x >> 0/0.txt\n";

/// Measures tasks with and without a gate, on a repository of this many files.
pub(crate) fn costs(figures: &mut Figures, files: usize, rounds: usize) {
    let bench = Bench::new(files);
    let mut executor = Executor::start(bench.folder.path());
    let mut checkouts = Vec::new();
    let mut tasks = [Vec::new(), Vec::new()];
    let (mut starts, mut cancels) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let checkout = bench.checkout();
        checkouts.push(checkout);
        for (kind, ratios) in tasks.iter_mut().enumerate() {
            let cost = executor.task(&bench.repo(), 3 * round + kind, kind == 1);
            ratios.push((cost.as_secs_f64() / checkout.as_secs_f64(), cost));
        }
        let (start, cancel) = executor.cancelled_task(&bench.repo(), 3 * round + 2);
        starts.push(start);
        cancels.push(cancel);
    }
    let place = format!("tasks/{files}_files");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for (name, mut times) in [
        ("worktree_add", checkouts),
        ("agent_start", starts),
        ("cancel", cancels),
    ] {
        times.sort_unstable();
        figures.insert(format!("{place}/{name}_ms"), ms(times[rounds / 2]));
    }
    for (name, mut costs) in ["no_gate", "one_gate"].into_iter().zip(tasks) {
        costs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (ratio, cost) = costs[rounds / 2];
        figures.insert(format!("{place}/{name}_ms"), ms(cost));
        figures.insert(format!("{place}/{name}_ratio"), ratio);
        figures.insert(format!("{place}/{name}_ratio_min"), costs[0].0);
        figures.insert(format!("{place}/{name}_ratio_max"), costs[rounds - 1].0);
    }
}

/// A folder with a repository in it.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(files: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let bench = Self { folder };
        let repo = bench.repo();
        for number in 0..files {
            let dir = repo.join((number / DIR_FILES).to_string());
            if number % DIR_FILES == 0 {
                fs::create_dir_all(&dir).expect("a directory");
            }
            let text = format!("line of file {number}\n").repeat(20 + number % 100);
            fs::write(dir.join(format!("{number}.txt")), text).expect("a file");
        }
        git(&repo, &["init", "-q"]);
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "files"]);
        git(&repo, &["repack", "-q", "-a", "-d"]);
        bench
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn checkout(&self) -> Duration {
        let tree = self.folder.path().join("tree");
        let tree = tree.to_str().expect("a plain name");
        let started = Instant::now();
        git(&self.repo(), &["worktree", "add", "-q", "--detach", tree]);
        let took = started.elapsed();
        git(&self.repo(), &["worktree", "remove", "--force", tree]);
        took
    }
}

fn git(repo: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=u", "-c", "user.email=u@localhost"]);
    let ended = command.args(words).current_dir(repo).status();
    assert!(ended.expect("git").success(), "git {words:?}");
}

/// An executor and its front.
struct Executor {
    process: Child,
    state: PathBuf,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Executor {
    fn start(folder: &Path) -> Self {
        let agent = folder.join("agent");
        fs::write(&agent, AGENT).expect("an agent");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a program");
        let gates = folder.join("gates.json");
        let nothing = json!({"nothing": {"argv": ["true"], "counts": "nothing"}});
        fs::write(&gates, nothing.to_string()).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocco"));
        command
            .arg("executor")
            .arg("--state")
            .arg(folder.join("state"));
        command.arg("--allow-repo").arg(folder.join("repo"));
        command.arg("--gates").arg(gates).arg("--").arg(agent);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("an executor");
        let output = process.stdout.take().expect("a pipe");
        let mut executor = Self {
            state: folder.join("state"),
            input: process.stdin.take(),
            output: BufReader::new(output),
            process,
        };
        executor.say("hello", json!({"protocol": "rocco-exec/1", "depth": 0}));
        executor.hear();
        executor
    }

    fn submit(&mut self, id: &str, repo: &Path, goal: &str, acceptance: &str) {
        self.say(
            "task/submit",
            json!({"task_id": id, "key": null, "goal": goal, "repo": repo, "files": null,
                   "acceptance": [acceptance], "deadline_s": null, "follow_up_to": null,
                   "client": {"name": "bench", "version": "1"}}),
        );
    }

    /// How long a task whose turn it is takes to start its agent, and then to end when it is
    /// cancelled.
    fn cancelled_task(&mut self, repo: &Path, number: usize) -> (Duration, Duration) {
        let id = format!("tsk_{:026}", number + 1);
        self.submit(&id, repo, "wait", "it is done");
        while self.hear()["params"]["state"] != "running" {}
        let turn = Instant::now();
        // An update may tell of the start later.
        let started = self.state.join("tasks").join(&id).join("work/started");
        while !started.exists() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let start = turn.elapsed();
        let cancel = Instant::now();
        self.say("task/cancel", json!({"task_id": id}));
        while self.hear()["params"]["state"] != "cancelled" {}
        (start, cancel.elapsed())
    }

    /// How long a task takes, less what its agent and its gates take.
    fn task(&mut self, repo: &Path, number: usize, has_gate: bool) -> Duration {
        let id = format!("tsk_{:026}", number + 1);
        let acceptance = match has_gate {
            true => "gate:nothing",
            false => "it is done",
        };
        let started = Instant::now();
        self.submit(&id, repo, "g", acceptance);
        while self.hear()["params"]["state"] != "succeeded" {}
        let took = started.elapsed();
        self.say("task/get", json!({"task_id": id, "part": "summary"}));
        let record = self.hear()["result"]["record"].clone();
        let gates = record["gates"].as_array().expect("gates").iter();
        let programs = gates.chain([&record["agent"]]);
        let ms = programs.map(|program| program["duration_ms"].as_u64().expect("a time"));
        took.saturating_sub(Duration::from_millis(ms.sum()))
    }

    fn say(&mut self, method: &str, params: Value) {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let input = self.input.as_mut().expect("a pipe");
        writeln!(input, "{request}").expect("the executor listens");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect("the executor is there");
        let state = &said["params"]["state"];
        assert!(said["error"].is_null() && state != "failed", "{said}");
        said
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // It ends when its input does, and removes what it was about to.
        self.input = None;
        let _ = self.process.wait();
    }
}
