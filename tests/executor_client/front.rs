//! A real server between a test, which is its client, and a scripted executor.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::schema::{STATELESS, schemas};
use crate::support::session::replies_of;
use crate::support::wait::{PATIENCE, end_of, signal, wait_until};

pub(crate) const ROCCO: &str = env!("CARGO_BIN_EXE_rocco");
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/executor_client");

/// Processes of a test carry its mark in this variable.
const MARK: &str = "ROCCO_TEST_MARK";

/// How the executor is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutorAddr {
    Child,
    Socket,
}

pub(crate) const WAYS: [ExecutorAddr; 2] = [ExecutorAddr::Child, ExecutorAddr::Socket];

/// A folder of a test's own, with the journal of its executors.
pub(crate) struct Place {
    mark: String,
    daemon: Option<Child>,
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("rocco-port-{}-{number}", std::process::id());
        let folder = tempfile::Builder::new().prefix("rocco-").tempdir();
        Self {
            mark,
            daemon: None,
            folder: folder.unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A command whose processes can be found by the mark of this place.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env(MARK, &self.mark);
        command
    }

    /// The command line of a scripted executor.
    pub(crate) fn executor(&self, modes: &str) -> String {
        format!(
            "python3 {FOLDER}/fake.py --journal {} {modes}",
            self.path("journal")
        )
    }

    /// Starts a daemon, and waits until it listens.
    pub(crate) fn start_daemon(&mut self, modes: &str) {
        let socket = self.path("socket");
        let _ = fs::remove_file(&socket);
        let mut command = self.command("python3");
        command.arg(format!("{FOLDER}/fake.py"));
        command.args(["--socket", &socket, "--journal", &self.path("journal")]);
        command.args(modes.split_whitespace()).stdin(Stdio::null());
        self.daemon = Some(command.spawn().unwrap());
        wait_until("the daemon listens", || fs::exists(&socket).unwrap());
    }

    pub(crate) fn kill_daemon(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        end_of(&mut daemon);
    }

    /// The options by which a server reaches its executor.
    pub(crate) fn options(&self, way: ExecutorAddr, modes: &str) -> [String; 2] {
        match way {
            ExecutorAddr::Child => ["--executor".into(), self.executor(modes)],
            ExecutorAddr::Socket => ["--executor-socket".into(), self.path("socket")],
        }
    }

    /// A server, and a daemon for it where it needs one that is not there.
    pub(crate) fn front(&mut self, way: ExecutorAddr, modes: &str, era: Era) -> Front {
        if way == ExecutorAddr::Socket && self.daemon.is_none() {
            self.start_daemon(modes);
        }
        self.front_with(&self.options(way, modes), era)
    }

    pub(crate) fn front_with(&self, options: &[String], era: Era) -> Front {
        let mut command = self.command(ROCCO);
        command.arg("mcp").args(options);
        Front::start(command, era)
    }

    /// A server that is started by a client which can be killed.
    pub(crate) fn front_of_client(&self, options: &[String], era: Era) -> Front {
        let mut command = self.command("python3");
        command.arg(format!("{FOLDER}/client.py"));
        command.args([ROCCO, "mcp"]).args(options);
        Front::start(command, era)
    }

    /// What the executors have written down.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read(self.path("journal")).unwrap_or_default();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let whole = lines.filter(|line| line.ends_with(b"\n"));
        whole
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// How many events of a kind there were.
    pub(crate) fn count(&self, at: &str) -> usize {
        self.journal()
            .iter()
            .filter(|event| event["at"] == at)
            .count()
    }

    pub(crate) fn wait_for(&self, at: &str, count: usize) {
        wait_until(at, || self.count(at) >= count);
    }

    /// The processes of this place that are alive, but for the daemon.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let own = self.daemon.as_ref().map(Child::id);
        let mark = format!("{MARK}={}", self.mark);
        let numbers = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
        let marked = numbers.filter(|number| {
            // A process that has ended has no environment.
            let environ = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        });
        let others = marked.filter(|number| Some(*number) != own);
        others
            .map(|number| {
                let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                (number, line)
            })
            .collect()
    }

    /// The one executor that a server has started.
    pub(crate) fn child(&self) -> u32 {
        let mut found = self.processes();
        found.retain(|(_, line)| line.contains("fake.py") && !line.contains(" mcp "));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].0
    }

    pub(crate) fn nothing_is_left(&self) {
        wait_until("all processes have gone", || self.processes().is_empty());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // After a test that has failed.
        for (process, _) in self.processes() {
            signal(process, libc::SIGKILL);
        }
    }
}

/// How the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Handshake(&'static str),
    Stateless { tasks: bool },
}

impl Era {
    pub(crate) fn of(revision: &'static str) -> Self {
        match revision {
            STATELESS => Self::Stateless { tasks: false },
            _ => Self::Handshake(revision),
        }
    }
}

/// The newest revision with a handshake, which most of the tests use.
pub(crate) const NEWEST: Era = Era::Handshake("2025-11-25");
pub(crate) const TASKS: Era = Era::Stateless { tasks: true };

/// A server and its client. Whatever it says is checked when it is closed.
pub(crate) struct Front {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    era: Era,
    next_id: u64,
    asked: Vec<u8>,
    said: Vec<u8>,
    /// Lines that came while another one was waited for.
    early: Vec<Value>,
}

impl Front {
    pub(crate) fn start(mut command: Command, era: Era) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::sync_channel(0);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                let count = stdout.read_until(b'\n', &mut line);
                if !matches!(count, Ok(1..)) || sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let (asked, said, early) = (Vec::new(), Vec::new(), Vec::new());
        let mut front = Self {
            child,
            stdin,
            lines,
            era,
            next_id: 0,
            asked,
            said,
            early,
        };
        if let Era::Handshake(revision) = era {
            let id = front.ask(
                "initialize",
                json!({"protocolVersion": revision,
                "capabilities": {}, "clientInfo": {"name": "tests", "version": "7"}}),
            );
            front.reply(id);
        }
        front
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line of any kind.
    pub(crate) fn write(&mut self, line: &str) {
        self.asked.extend_from_slice(line.as_bytes());
        self.asked.push(b'\n');
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends a request, and tells its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let params = self.dressed(params);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&line.to_string());
        id
    }

    /// Params with an envelope, where the era wants one.
    fn dressed(&self, mut params: Value) -> Value {
        if let Era::Stateless { tasks } = self.era {
            let extensions = match tasks {
                true => json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
                false => json!({}),
            };
            let mut meta = params["_meta"]
                .as_object()
                .cloned()
                .unwrap_or_else(Map::new);
            let name = |word: &str| format!("io.modelcontextprotocol/{word}");
            meta.insert(name("protocolVersion"), STATELESS.into());
            meta.insert(name("clientInfo"), json!({"name": "tests", "version": "7"}));
            meta.insert(name("clientCapabilities"), extensions);
            params["_meta"] = meta.into();
        }
        params
    }

    /// The next line that a look accepts; the others are kept.
    fn await_line(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.early.iter().position(&wanted) {
            return self.early.remove(index);
        }
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{what} never came"));
            self.said.extend_from_slice(&line);
            let line: Value = serde_json::from_slice(&line).unwrap();
            if wanted(&line) {
                return line;
            }
            self.early.push(line);
        }
    }

    /// The reply to a request.
    pub(crate) fn reply(&mut self, id: u64) -> Value {
        self.await_line("a reply", |line| line["id"] == id)
    }

    /// The next notification of a method.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        self.await_line(method, |line| line["method"] == method)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.reply(id)
    }

    /// Begins a call of a tool.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool; what its result says, in whatever form.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        Self::said(&self.reply_surely(tool, arguments))
    }

    /// Calls a tool, again where an executor on a busy machine needs longer than a call is given.
    /// A submit is never called again: it may have been taken.
    pub(crate) fn reply_surely(&mut self, tool: &str, arguments: Value) -> Value {
        loop {
            let id = self.begin(tool, arguments.clone());
            let reply = self.reply(id);
            let late = reply["result"]["content"][0]["text"]
                .as_str()
                .is_some_and(|text| text.starts_with("executor_timeout:"));
            if !late || tool == "larry_submit_task" {
                return reply;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the result of a call says. The text says it in every revision.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        Self::said(&self.reply(id))
    }

    fn said(reply: &Value) -> Value {
        let result = &reply["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("no result of a call: {reply}"));
        if result["isError"] == true {
            let said = result["structuredContent"]["error"].clone();
            let code = text.split(':').next().unwrap();
            assert!(said.is_null() || said["code"] == code, "{reply}");
            assert!(
                said.is_null() || text == format!("{code}: {}", said["message"].as_str().unwrap()),
                "{reply}"
            );
            return json!({"code": code, "text": text, "error": said});
        }
        serde_json::from_str(text).unwrap()
    }

    pub(crate) fn begin_submit(&mut self, goal: &str) -> u64 {
        self.begin("larry_submit_task", submission(goal))
    }

    /// Submits a task, and tells what came of it.
    pub(crate) fn submit(&mut self, goal: &str) -> Value {
        self.call("larry_submit_task", submission(goal))
    }

    /// Submits a task that is taken, as a client has to: where the machine is too busy for an
    /// answer in time, it asks how the task stands.
    pub(crate) fn submit_surely(&mut self, goal: &str) -> String {
        let name = self.submit_surely_of(goal);
        self.status_surely(&name, 0);
        name
    }

    /// Submits a task that is taken, of which nothing may be asked yet.
    pub(crate) fn submit_surely_of(&mut self, goal: &str) -> String {
        loop {
            let id = self.begin_submit(goal);
            let reply = self.reply(id);
            if let Some(task) = reply["result"]["taskId"].as_str() {
                return task.to_owned();
            }
            let said = Self::said(&reply);
            let known = [&said["task_id"], &said["error"]["details"]["task_id"]];
            if let Some(task) = known.into_iter().find_map(Value::as_str) {
                return task.to_owned();
            }
            // It was not handed over, since an executor could not start in time.
            assert_eq!(said["code"], "executor_not_connected", "{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn status(&mut self, task: &str, wait_s: u64) -> Value {
        let arguments = json!({"task_id": task, "wait_s": wait_s});
        let id = self.begin("larry_task_status", arguments);
        self.answer(id)
    }

    /// Begins to wait for a task, and comes back when the executor was asked for it.
    pub(crate) fn begin_wait(&mut self, place: &Place, task: &str) -> u64 {
        let gets = place.count("task/get");
        let id = self.begin("larry_task_status", json!({"task_id": task, "wait_s": 45}));
        place.wait_for("task/get", gets + 1);
        id
    }

    /// Asks how a task stands until there is an answer.
    pub(crate) fn status_surely(&mut self, task: &str, wait_s: u64) -> Value {
        loop {
            let said = self.status(task, wait_s);
            if said["state"].is_string() {
                return said;
            }
            assert_eq!(said["error"]["retryable"], true, "{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end of a task, however often.
    pub(crate) fn await_end(&mut self, task: &str) -> Value {
        loop {
            let said = self.status_surely(task, 45);
            if said["record"].is_object() {
                return said;
            }
        }
    }

    /// Waits until a task is in a state.
    pub(crate) fn await_state(&mut self, task: &str, state: &str) {
        wait_until(state, || self.status_surely(task, 0)["state"] == state);
    }

    /// That others are served at once, whatever the executor does: not one line of another
    /// request's comes before.
    pub(crate) fn serves_others(&mut self) {
        if let Era::Handshake(_) = self.era {
            let pong = self.request("ping", json!({}));
            assert_eq!(pong["result"], json!({}));
        }
        let tools = self.request("tools/list", json!({}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 4);
    }

    /// Whether a request was not answered among what has come.
    pub(crate) fn has_no_reply(&self, id: u64) -> bool {
        self.early.iter().all(|line| line["id"] != id)
    }

    /// Gives the next request the id of the last one.
    pub(crate) fn repeat_id(&mut self) {
        self.next_id -= 1;
    }

    /// Gives the next request the id of an older one.
    pub(crate) fn repeat_id_of(&mut self, id: u64) {
        self.next_id = id - 1;
    }

    /// The replies to a batch.
    pub(crate) fn batch(&mut self) -> Vec<Value> {
        let replies = self.await_line("a batch", Value::is_array);
        replies.as_array().unwrap().clone()
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        1024 * line
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    }

    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Ends the input, waits for the end, and checks all that was said.
    pub(crate) fn close(mut self) {
        self.close_input();
        self.ended_well();
    }

    /// Waits for the end, and checks all that was said. Tells whether the last request was
    /// answered.
    pub(crate) fn ended_well(mut self) -> bool {
        let mut answered = false;
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.said.extend_from_slice(&line);
            let line: Value = serde_json::from_slice(&line).unwrap();
            answered |= line["id"] == self.next_id;
        }
        let status = end_of(&mut self.child);
        assert!(status.success(), "{status}");
        self.check();
        answered
    }

    /// Kills it, and checks what was said before.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        end_of(&mut self.child);
        self.check();
    }

    fn check(&mut self) {
        if let Some(schemas) = schemas() {
            let checked = replies_of(schemas, &self.asked, &self.said);
            if let Err(faults) = checked {
                panic!("{}", faults.join("\n"));
            }
        }
    }
}

/// The arguments of a task.
pub(crate) fn submission(goal: &str) -> Value {
    json!({"goal": goal, "repo": "/srv/r", "acceptance": ["it is done"]})
}
