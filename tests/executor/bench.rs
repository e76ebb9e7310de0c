//! A folder of its own for each test, with a repository and an executor in it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::wait::{Patient, end_of, output, signal};

pub(crate) use crate::support::wait::wait_for;

/// A gate that leaves traces wherever it can, and one that demands that there are none.
const SCRIBBLES: &str = "echo right > a.txt; git config x.y z; git add a.txt; git branch trace; \
    git stash -q; touch $HOME/trace $TMPDIR/trace; touch /tmp/trace-of-a-gate; \
    setsid sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; \
    for found in ../../*/a.txt ../a.txt a.txt; do echo right > $found; done; done' & true";
const PRISTINE: &str = "sleep 0.2; grep -qx first a.txt && ! git config x.y && \
    git diff --cached --quiet && ! git rev-parse -q --verify trace && \
    test -z \"$(git stash list; ls -A $HOME $TMPDIR | grep trace)\" && \
    ! test -e /tmp/trace-of-a-gate";

pub const FINAL: [&str; 6] = [
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "interrupted",
    "needs_input",
];

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// A name for a task that no other has in this run.
pub fn new_id() -> String {
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    format!(
        "tsk_{:026}",
        u64::from(std::process::id()) * 100_000 + number
    )
}

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/executor")
        .join(name)
}

/// A folder with a repository `repo`, and everything that a test needs.
pub struct Bench {
    pub root: PathBuf,
    pub repo: PathBuf,
    _folder: TempDir,
}

impl Bench {
    pub fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("rocco-{name}-"))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .unwrap();
        let root = folder.path().canonicalize().unwrap();
        let bench = Self {
            repo: root.join("repo"),
            root,
            _folder: folder,
        };
        bench.add_repo("repo");
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn add_repo(&self, name: &str) -> PathBuf {
        let repo = self.path(name);
        fs::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        git(&repo, &["config", "user.name", "A User"]);
        git(&repo, &["config", "user.email", "user@localhost"]);
        fs::write(repo.join("a.txt"), "first\n").unwrap();
        fs::create_dir(repo.join("src")).unwrap();
        fs::write(repo.join("src/b.txt"), "second\n").unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "start"]);
        repo
    }

    /// The gates that tests ask for.
    pub fn gates(&self) -> PathBuf {
        let gate = script("gate.py");
        let pids = self.path("gate.pids");
        let gates = json!({
            "holds": {"argv": [gate, "holds", "a.txt", "right"], "counts": "unittest"},
            "empty": {"argv": [gate, "none"], "counts": "unittest"},
            "slow": {"argv": [gate, "hangs", pids], "timeout_s": 1},
            "hangs": {"argv": [gate, "hangs", pids]},
            "sees": {"argv": [gate, "environment"], "pass_env": ["ROCCO_TEST_GATE"]},
            "network": {"argv": [gate, "network"]},
            "words": {"argv": [gate, "words", "$(id) `id`; id && id | id > id", "*"]},
            "scribbles": {"argv": ["sh", "-c", SCRIBBLES], "counts": "nothing"},
            "pristine": {"argv": ["sh", "-c", PRISTINE], "counts": "nothing"},
            "descriptors": {"argv": ["sh", "-c", "ls -l /proc/$$/fd"], "counts": "nothing"},
            "clean": {"argv": ["git", "diff-index", "--quiet", "HEAD"], "counts": "nothing"},
            "describes": {"argv": ["git", "describe", "--tags"], "counts": "nothing"},
            "absent": {"argv": ["rocco-no-such-program"]},
            "plain": {"argv": ["/etc/passwd"]},
            "inner": {"argv": ["./a.txt"]},
            "passed-path": {"argv": ["rocco-no-such-program"], "pass_env": ["PATH"]},
            "fills": {"argv": ["sh", "-c", "head -c 30000000 /dev/zero > $HOME/big; sleep 60"]},
            "fills_half": {"argv": ["sh", "-c", "head -c 12000000 /dev/zero > $HOME/big"]},
            "module": {"argv": ["python3", "-m", "unittest"]},
            "makes": {"argv": ["make", "check"], "counts": "nothing"},
            "makes-deep": {"argv": ["make", "-Csub", "-C", "deep"], "counts": "nothing"},
            "reports": {"argv": [gate, "reports", "a.txt"], "counts": {"junit": "out/report.xml"}},
            "summary": {"argv": ["sh", "a.txt"],
                        "counts": {"pattern": r"^(?<passed>\d+) passed, (?<failed>\d+) failed$"}},
            "linked": {"argv": ["sh", "tests/t.sh"]},
            "touchy": {"argv": [gate, "holds", "a.txt", ""], "files": ["src"]},
        });
        let path = self.path("gates.json");
        fs::write(&path, gates.to_string()).unwrap();
        path
    }

    pub fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocco"));
        command.arg("executor");
        if !flags.contains(&"--state") {
            command.arg("--state").arg(self.path("state"));
        }
        command.arg("--allow-repo").arg(&self.root).args(flags);
        if !flags.contains(&"--sandbox") {
            command.args(["--sandbox", "off"]);
        }
        command.arg("--gates").arg(self.gates());
        command.arg("--").arg(script("agent.py"));
        command
            .env("ROCCO_TEST_SECRET", "secret")
            .env("ROCCO_TEST_GATE", "given");
        command.env_remove("ROCCO_DEPTH").current_dir(&self.root);
        command
    }

    /// Starts an executor that talks on its stdin and stdout.
    pub fn child(&self, flags: &[&str]) -> Executor {
        let mut command = self.command(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        self.started(&mut command)
    }

    /// Starts a command whose stdin and stdout are pipes, and says hello.
    pub fn started(&self, command: &mut Command) -> Executor {
        let mut child = command.spawn().unwrap();
        let mut front = Front::silent(
            Box::new(child.stdin.take().unwrap()),
            Box::new(Patient(child.stdout.take().unwrap())),
        );
        front.greet();
        Executor {
            child,
            front: Some(front),
        }
    }

    /// Starts a server for a client of MCP's, and opens its session.
    pub fn client(&self, command: &mut Command) -> Executor {
        let mut child = command.spawn().unwrap();
        let mut front = Front::silent(
            Box::new(child.stdin.take().unwrap()),
            Box::new(Patient(child.stdout.take().unwrap())),
        );
        let client = json!({"name": "bench", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                           "clientInfo": client});
        assert!(front.call("initialize", hello)["result"].is_object());
        Executor {
            child,
            front: Some(front),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/socket")
    }

    /// Starts an executor that listens on a socket.
    pub fn daemon(&self, flags: &[&str]) -> Executor {
        let socket = self.socket();
        let mut command = self.command(flags);
        command.stdin(Stdio::null());
        // It stands before the two dashes.
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_rocco"));
        daemon
            .arg("executor")
            .arg("--socket")
            .arg(&socket)
            .args(&arguments[1..]);
        daemon
            .stdin(Stdio::null())
            .current_dir(&self.root)
            .env_remove("ROCCO_DEPTH");
        self.listening(&mut daemon, &socket)
    }

    /// Starts a command that listens on a socket.
    pub fn listening(&self, command: &mut Command, socket: &Path) -> Executor {
        let child = command.spawn().unwrap();
        let daemon = Executor { child, front: None };
        wait_for("the socket", || UnixStream::connect(socket).ok());
        daemon
    }

    /// A front of a daemon's.
    pub fn front(&self) -> Front {
        let mut front = self.silent_front();
        front.greet();
        front
    }

    /// One that has not said hello.
    pub fn silent_front(&self) -> Front {
        let stream = UnixStream::connect(self.socket()).unwrap();
        Front::silent(
            Box::new(stream.try_clone().unwrap()),
            Box::new(Patient(stream)),
        )
    }

    /// Runs an executor to its end, which comes by itself.
    pub fn refused(&self, flags: &[&str]) -> Output {
        output(&mut self.command(flags))
    }

    /// `rocco task`.
    pub fn task(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocco"));
        command
            .arg("task")
            .arg("--state")
            .arg(self.path("state"))
            .args(words);
        output(&mut command)
    }

    pub fn task_dir(&self, id: &str) -> PathBuf {
        self.path("state/tasks").join(id)
    }

    /// The states that a task has had, as a person reads them.
    pub fn states(&self, id: &str) -> Vec<String> {
        let text = fs::read_to_string(self.task_dir(id).join("state.ndjson")).unwrap();
        let state = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["state"].as_str().unwrap().to_owned()
        };
        text.lines().map(state).collect()
    }

    /// The processes that noted their numbers in a file, when there are as many as wanted.
    pub fn pids(&self, name: &str, count: usize) -> Vec<u32> {
        wait_for(name, || {
            let text = fs::read_to_string(self.path(name)).ok()?;
            let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            (pids.len() >= count).then_some(pids)
        })
    }

    pub fn show(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }
}

/// Whether a process has not ended.
pub fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

pub fn wait_for_end(pids: &[u32]) {
    wait_for("the end of processes", || {
        (!pids.iter().any(|pid| lives(*pid))).then_some(())
    });
}

pub fn git(repo: &Path, words: &[&str]) -> String {
    let output = output(Command::new("git").arg("-C").arg(repo).args(words));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {words:?}: {said}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// An executor that runs.
pub struct Executor {
    pub child: Child,
    front: Option<Front>,
}

impl Executor {
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        end_of(&mut self.child);
    }

    /// Has it end, and kills it so long after that.
    pub fn terminate_and_kill(&mut self, after: Duration) {
        signal(self.child.id(), libc::SIGTERM);
        std::thread::sleep(after);
        self.kill();
    }

    pub fn terminate(&mut self) {
        signal(self.child.id(), libc::SIGTERM);
        assert_eq!(end_of(&mut self.child).code(), Some(0));
    }

    /// Closes its input, and waits for its end.
    pub fn close(&mut self) {
        self.front = None;
        assert_eq!(end_of(&mut self.child).code(), Some(0));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl std::ops::Deref for Executor {
    type Target = Front;
    fn deref(&self) -> &Front {
        self.front.as_ref().unwrap()
    }
}

impl std::ops::DerefMut for Executor {
    fn deref_mut(&mut self) -> &mut Front {
        self.front.as_mut().unwrap()
    }
}

/// A front that says what it is told to.
pub struct Front {
    writer: Box<dyn Write>,
    reader: BufReader<Box<dyn std::io::Read>>,
    number: u64,
    pub updates: Vec<Value>,
}

impl Front {
    fn silent(writer: Box<dyn Write>, reader: Box<dyn std::io::Read>) -> Self {
        Self {
            writer,
            reader: BufReader::new(reader),
            number: 0,
            updates: Vec::new(),
        }
    }

    fn greet(&mut self) {
        let hello = self.call("hello", json!({"protocol": "rocco-exec/1", "depth": 0}));
        assert_eq!(hello["result"]["protocol"], "rocco-exec/1", "{hello}");
    }

    /// Calls a tool of a server, and takes its structured result.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.call("tools/call", json!({"name": name, "arguments": arguments}));
        answer["result"]["structuredContent"].clone()
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params});
        self.say(&request.to_string());
        loop {
            let message = self.hear().expect("the executor is there");
            if message["id"] == self.number {
                return message;
            }
            assert_eq!(message["method"], "task/update", "{message}");
            self.updates.push(message["params"].clone());
        }
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.writer, "{line}").unwrap();
        self.writer.flush().unwrap();
    }

    pub fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Reads what is left until the executor closes.
    pub fn hear_to_the_end(&mut self) {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).unwrap();
    }

    pub fn submit(&mut self, task: Value) -> Value {
        let answer = self.call("task/submit", task);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Submits a goal and tells the task's name.
    pub fn start(&mut self, repo: &Path, goal: &str) -> String {
        let id = new_id();
        self.submit(task(&id, repo, goal));
        id
    }

    pub fn summary(&mut self, id: &str) -> Value {
        self.call("task/get", json!({"task_id": id, "part": "summary"}))["result"].clone()
    }

    pub fn part(&mut self, id: &str, part: &str) -> String {
        let params = json!({"task_id": id, "part": part, "offset": 0, "limit": 24576});
        let answer = self.call("task/get", params);
        answer["result"]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    pub fn wait_state(&mut self, id: &str, states: &[&str]) -> Value {
        wait_for(&format!("{states:?}"), || {
            let summary = self.summary(id);
            let state = summary["state"].as_str().unwrap_or_default();
            assert!(
                states.contains(&state) || !FINAL.contains(&state),
                "wanted {states:?}: {summary}"
            );
            states.contains(&state).then_some(summary)
        })
    }

    /// The record of a task, when it has ended.
    pub fn record(&mut self, id: &str) -> Value {
        self.wait_state(id, &FINAL)["record"].clone()
    }

    /// Does a task from its submission to its record.
    pub fn done(&mut self, task: Value) -> Value {
        let id = task["task_id"].as_str().unwrap().to_owned();
        self.submit(task);
        self.record(&id)
    }
}

pub fn task(id: &str, repo: &Path, goal: &str) -> Value {
    json!({"task_id": id, "key": null, "goal": goal, "repo": repo, "files": null,
           "acceptance": ["it is done"], "deadline_s": null, "follow_up_to": null,
           "client": {"name": "bench", "version": "1"}})
}

/// A task with some members of its own.
pub fn task_with(repo: &Path, goal: &str, members: Value) -> Value {
    let mut task = task(&new_id(), repo, goal);
    for (name, value) in members.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
