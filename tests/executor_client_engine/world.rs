//! An engine with a port, between a client and an executor that are made up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rocco::Info;
use rocco::internals::engine::Engine;
use rocco::internals::executor_client::errors::Absence;
use rocco::internals::executor_client::{ClientSettings, ExecutorClient};
use rocco::internals::task::id::TaskId;
use serde_json::{Value, json};

/// Lines that no executor should write.
pub(crate) const GARBAGE: [&str; 9] = [
    "garbage\n",
    "\n",
    "[]\n",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task/submit\",\"params\":{}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"task/unheard-of\"}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"task/update\",\"params\":{\"task_id\":7}}\n",
];

const STATES: [&str; 11] = [
    "queued",
    "running",
    "verifying",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "interrupted",
    "needs_input",
    "expired",
];

/// The longest that a request without a wait takes: a greeting, a call, and one that is asked again
/// when its task has ended.
const CALL_MS_MAX: u64 = 5_000 + 2_000 + 2_000;

/// What a client asks, of a task by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    Submit(usize),
    Status(usize, u64),
    List,
    Page(usize),
    Cancel(usize),
    TaskGet(usize),
    TaskUpdate(usize),
    TaskCancel(usize),
}

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Move {
    Ask(Call),
    CancelRequest(usize),
    AskTwice(usize),
    Answer(usize, usize),
    Update(usize, u64, usize),
    Garbage(usize),
    Available(bool),
    HangUp,
    Pass(u64),
    ClientReads(bool),
    ExecutorReads(usize),
}

/// A request that was not answered.
#[derive(Debug)]
struct Open {
    call: Option<Call>,
    goal: Option<String>,
    asked_at_ms: u64,
    cancelled: bool,
}

/// What an honest executor knows of a task.
#[derive(Debug, Clone)]
struct Work {
    state: usize,
    seq: u64,
}

pub(crate) struct World {
    engine: Engine,
    now_ms: u64,
    honest: Option<bool>,
    available: bool,
    connected: bool,
    reads_max: usize,
    /// What the executor has read and not taken apart.
    heard: Vec<u8>,
    /// Requests that it may answer.
    asked: Vec<Value>,
    /// Answers that were made up and not sent.
    held: VecDeque<String>,
    work: BTreeMap<String, Work>,
    submits: usize,
    client_reads: bool,
    /// Whether it read at all times, so that times can be judged.
    client_read_always: bool,
    open: BTreeMap<u64, Open>,
    next_id: u64,
    replies: Vec<Value>,
    /// Goals of which the client was told something.
    judged: BTreeSet<String>,
    ended: bool,
}

fn task_id(number: usize) -> String {
    TaskId::new(number as u128).to_string()
}

fn envelope() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "world", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities":
            {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        "progressToken": "token",
    })
}

impl World {
    pub(crate) fn new() -> Self {
        let mut next_task = 0;
        let port = ExecutorClient::new(ClientSettings {
            version: "0",
            depth: 0,
            random: Box::new(move || {
                next_task += 1;
                next_task - 1
            }),
        });
        Self {
            engine: Engine::with_executor_client(
                &Info::new("rocco", "0"),
                Vec::new(),
                16,
                Some(port),
            ),
            now_ms: 0,
            honest: None,
            available: false,
            connected: false,
            reads_max: usize::MAX,
            heard: Vec::new(),
            asked: Vec::new(),
            held: VecDeque::new(),
            work: BTreeMap::new(),
            submits: 0,
            client_reads: true,
            client_read_always: true,
            open: BTreeMap::new(),
            next_id: 0,
            replies: Vec::new(),
            judged: BTreeSet::new(),
            ended: false,
        }
    }

    /// A world whose executor keeps to the protocol, and sends updates or does not.
    pub(crate) fn honest(progress: bool) -> Self {
        let mut world = Self::new();
        world.honest = Some(progress);
        world
    }

    pub(crate) fn replies(&self) -> usize {
        self.replies.len()
    }

    pub(crate) fn submits_that_came(&self) -> usize {
        self.submits
    }

    /// The code of the typed error that came last.
    pub(crate) fn last_code(&self) -> Option<&str> {
        let last = self.replies.last()?;
        last["result"]["structuredContent"]["error"]["code"].as_str()
    }

    pub(crate) fn play(&mut self, each: Move) {
        match each {
            Move::Ask(call) => self.ask(call),
            Move::CancelRequest(which) => self.cancel(which),
            Move::AskTwice(which) => self.ask_twice(which),
            Move::Answer(which, how) => self.answer(which, how),
            Move::Update(task, seq, state) => {
                let line = json!({"jsonrpc": "2.0", "method": "task/update", "params": {
                    "task_id": task_id(task), "seq": seq, "state": STATES[state],
                    "message": "\u{1b}[31mred\u{7}", "progress": 0.5}});
                self.say(&format!("{line}\n"));
            }
            Move::Garbage(which) => self.say(GARBAGE[which]),
            Move::Available(available) => self.available = available,
            Move::HangUp => self.hang_up(),
            Move::Pass(time_ms) => {
                self.pass(time_ms);
                return;
            }
            Move::ClientReads(reads) => {
                self.client_reads = reads;
                self.client_read_always &= reads;
            }
            Move::ExecutorReads(bytes_max) => self.reads_max = bytes_max,
        }
        self.turns();
    }

    fn send(&mut self, line: &Value) {
        let line = format!("{line}\n");
        if self.ended || self.engine.space().len() < line.len() {
            return;
        }
        self.engine.space()[..line.len()].copy_from_slice(line.as_bytes());
        self.engine.fill(line.len());
    }

    fn ask(&mut self, call: Call) {
        self.next_id += 1;
        let id = self.next_id;
        let tool = |name: &str, arguments: Value| {
            let params = json!({"name": name, "arguments": arguments, "_meta": envelope()});
            ("tools/call", params)
        };
        let task = |method, task| {
            (
                method,
                json!({"taskId": task_id(task), "_meta": envelope()}),
            )
        };
        let mut goal = None;
        let (method, params) = match call {
            Call::Submit(padding) => {
                let name = format!("goal {id} ");
                goal = Some(name.clone());
                let arguments = json!({"goal": name + &"x".repeat(30_000 * padding),
                    "repo": "/r", "acceptance": ["a"]});
                tool("larry_submit_task", arguments)
            }
            Call::Status(task, wait_s) => {
                let arguments = json!({"task_id": task_id(task), "wait_s": wait_s});
                tool("larry_task_status", arguments)
            }
            Call::List => tool("larry_task_status", json!({})),
            Call::Page(task) => {
                let arguments = json!({"task_id": task_id(task), "part": "diff"});
                tool("larry_task_result", arguments)
            }
            Call::Cancel(task) => tool("larry_cancel_task", json!({"task_id": task_id(task)})),
            Call::TaskGet(number) => task("tasks/get", number),
            Call::TaskUpdate(number) => task("tasks/update", number),
            Call::TaskCancel(number) => task("tasks/cancel", number),
        };
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if self.ended || self.engine.space().len() < line.to_string().len() + 1 {
            return;
        }
        let asked_at_ms = self.now_ms;
        let call = Some(call);
        let open = Open {
            call,
            goal,
            asked_at_ms,
            cancelled: false,
        };
        self.open.insert(id, open);
        self.send(&line);
    }

    /// The client cancels one of its open requests.
    fn cancel(&mut self, which: usize) {
        let Some(id) = self.pick(which) else { return };
        let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}});
        if self.ended || self.engine.space().len() < line.to_string().len() + 1 {
            return;
        }
        self.send(&line);
        self.open.get_mut(&id).unwrap().cancelled = true;
    }

    /// The client uses an id that is in use. As long as nothing was read of the reply to either,
    /// two replies are owed.
    fn ask_twice(&mut self, which: usize) {
        let Some(id) = self.pick(which) else { return };
        if !self.client_reads || !self.engine.pending().is_empty() || self.open[&id].cancelled {
            return;
        }
        let before = self.replies.len();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        self.engine.serve();
        let said = self.engine.pending().to_vec();
        self.engine.consume(said.len());
        let said = String::from_utf8(said).unwrap();
        let wanted = self.ended || said.contains("-32600");
        assert!(wanted && before == self.replies.len(), "{said}");
    }

    fn pick(&self, which: usize) -> Option<u64> {
        let ids: Vec<u64> = self.open.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[which % ids.len()])
    }

    /// The executor writes.
    fn say(&mut self, text: &str) {
        let Some(port) = self.engine.executor_client().filter(|_| self.connected) else {
            return;
        };
        if port.has_space() && text.len() <= port.space().len() {
            port.space()[..text.len()].copy_from_slice(text.as_bytes());
            port.fill(text.len());
        }
    }

    fn hang_up(&mut self) {
        if self.connected {
            self.engine.executor_client().unwrap().end("it hung up");
        }
    }

    /// One of the requests that the executor has is answered, well or not.
    fn answer(&mut self, which: usize, how: usize) {
        if self.asked.is_empty() {
            return;
        }
        let request = self.asked.remove(which % self.asked.len());
        let line = match how {
            0..=3 => self.good_answer(&request),
            _ => self.bad_answer(&request, how),
        };
        self.say(&line);
    }

    fn good_answer(&mut self, request: &Value) -> String {
        let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
        let task = params["task_id"].as_str().unwrap_or_default().to_owned();
        let known = self.work.get(&task).cloned();
        let work = known.unwrap_or(Work { state: 1, seq: 0 });
        let mut result = json!({"task_id": task, "seq": work.seq, "state": STATES[work.state],
            "created_at": "2026-12-01T00:00:00Z", "updated_at": "2026-12-01T00:00:00Z"});
        match method {
            "hello" => {
                let progress = self.honest.unwrap_or(true);
                let features: &[&str] = match progress {
                    true => &["progress", "list", "page"],
                    false => &["list", "page"],
                };
                result = json!({"protocol": "rocco-exec/1", "features": features,
                    "executor": {"name": "w", "version": "1"}});
            }
            "task/list" => result = json!({"tasks": [result]}),
            "task/get" if params["part"] != "summary" => {
                result["text"] = "text".into();
                result["total"] = 4.into();
            }
            "task/get" if work.state > 3 => {
                result["record"] = json!({"outcome": STATES[work.state], "verification": "none"});
            }
            _ => {}
        }
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
        )
    }

    fn bad_answer(&mut self, request: &Value, how: usize) -> String {
        let id = &request["id"];
        let error = |code: &str| json!({"code": -32000, "message": "no.", "data": {"code": code}});
        let answer = match how {
            4 => json!({"jsonrpc": "2.0", "id": id, "error": error("not_found")}),
            5 => json!({"jsonrpc": "2.0", "id": id, "error": error("executor_timeout")}),
            6 => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "?"}}),
            7 => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            8 => json!({"jsonrpc": "2.0", "id": id, "result": []}),
            9 => json!({"jsonrpc": "2.0", "id": id}),
            10 => json!({"jsonrpc": "2.0", "id": id, "result": {"task_id": task_id(77),
                "state": "running", "created_at": "x", "text": "", "total": 0}}),
            11 => {
                // Said twice.
                let line = self.good_answer(request);
                return line.clone() + &line;
            }
            12 => {
                json!({"jsonrpc": "2.0", "id": id, "result": {
                    "task_id": request["params"]["task_id"], "state": "succeeded",
                    "created_at": "x", "record": {"outcome": "succeeded"}}})
            }
            _ => json!({"jsonrpc": "2.0", "id": id.as_u64().unwrap() + 1, "result": {}}),
        };
        format!("{answer}\n")
    }

    /// An honest executor works on a task: it changes its state and says so, or takes an answer
    /// that it has prepared and sends it late.
    pub(crate) fn work(&mut self, task: usize, which: usize, late: bool) {
        self.turns();
        if !self.asked.is_empty() {
            let request = self.asked.remove(which % self.asked.len());
            let line = self.good_answer(&request);
            self.held.push_back(line);
        }
        self.advance(task, if which.is_multiple_of(3) { 5 } else { 1 });
        if !late {
            self.say_what_is_held();
        }
        self.turns();
    }

    fn say_what_is_held(&mut self) {
        while let Some(line) = self.held.pop_front() {
            self.say(&line);
        }
    }

    /// A task that was taken goes on by so many states, and the executor says so.
    fn advance(&mut self, task: usize, states: usize) {
        let task = task_id(task);
        let Some(work) = self.work.get_mut(&task).filter(|work| work.state < 4) else {
            return;
        };
        work.state = (work.state + states).min(4);
        work.seq += 1;
        let update = json!({"jsonrpc": "2.0", "method": "task/update", "params": {
            "task_id": task, "seq": work.seq, "state": STATES[work.state]}});
        if self.honest == Some(true) {
            self.say(&format!("{update}\n"));
        }
    }

    pub(crate) fn answer_all(&mut self) {
        self.turns();
        while !self.asked.is_empty() || !self.held.is_empty() {
            self.say_what_is_held();
            if !self.asked.is_empty() {
                self.answer(0, 0);
            }
            self.turns();
        }
    }

    /// Every task ends.
    pub(crate) fn finish_all(&mut self) {
        self.answer_all();
        for task in 0..self.work.len() {
            self.advance(task, 9);
            self.turns();
        }
        self.answer_all();
    }

    /// Whoever asked for a task that has ended is answered, when so much time has passed.
    pub(crate) fn everybody_is_told_within(&mut self, time_ms: u64) {
        self.pass(time_ms);
        self.answer_all();
        assert!(self.open.is_empty(), "{:?}", self.open);
        let told = self.replies.iter().filter(|reply| {
            let result = &reply["result"]["structuredContent"];
            result["state"] == "succeeded"
                && result["record"].is_null()
                && result.get("duplicate").is_none()
        });
        assert_eq!(told.count(), 0, "an end without its record");
    }

    /// Lets time pass, from deadline to deadline.
    fn pass(&mut self, time_ms: u64) {
        let until_ms = self.now_ms + time_ms;
        loop {
            self.turns();
            match self.engine.deadline_ms() {
                Some(deadline_ms) if deadline_ms <= until_ms => self.now_ms = deadline_ms,
                _ => break,
            }
        }
        self.now_ms = until_ms;
        self.turns();
    }

    /// As the event loop does it, until nothing is left to do. A loop that never ends is one that
    /// would take all of a CPU.
    fn turns(&mut self) {
        for _ in 0..10_000 {
            if !self.turn() {
                return;
            }
        }
        panic!("the engine never comes to rest");
    }

    /// One turn. Tells whether there is more to do at once.
    fn turn(&mut self) -> bool {
        let now_ms = self.now_ms;
        self.engine.executor_client().unwrap().set_time(now_ms);
        self.engine.serve();
        self.client();
        let port = self.engine.executor_client().unwrap();
        if self.connected && !port.is_open() {
            self.connected = false;
            self.heard.clear();
            self.asked.clear();
            self.held.clear();
        }
        if port.wants_open() {
            match self.available {
                true => {
                    port.opened();
                    self.connected = true;
                }
                false => port.absent(Absence::ConnectFailed, "nobody is there"),
            }
        }
        let count = port.pending().len().min(self.reads_max);
        if self.connected && count > 0 {
            self.heard.extend_from_slice(&port.pending()[..count]);
            port.consume(count);
            self.reads_max -= if self.reads_max == usize::MAX {
                0
            } else {
                count
            };
            self.hear();
        }
        let due = self.engine.deadline_ms();
        let due = due.is_some_and(|due_ms| due_ms <= now_ms);
        let port = self.engine.executor_client().unwrap();
        let tells = self.connected && self.reads_max > 0 && !port.pending().is_empty();
        let differs = self.connected != port.is_open();
        self.engine.can_serve() || due || tells || differs
    }

    /// The executor takes apart what it has read.
    fn hear(&mut self) {
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            let request: Value = serde_json::from_slice(&line).expect("a line is JSON");
            if request["method"] == "task/submit" {
                let params = &request["params"];
                self.submits += 1;
                let goal = params["goal"].as_str().unwrap().trim_end_matches('x');
                assert!(!self.judged.contains(goal), "{goal} was given up before");
                let task = params["task_id"].as_str().unwrap().to_owned();
                self.work.entry(task).or_insert(Work { state: 0, seq: 0 });
            }
            let greets = request["method"] == "hello";
            self.asked.push(request);
            if greets && self.honest.is_some() {
                self.answer(0, 0);
            }
        }
    }

    /// The client reads what there is.
    fn client(&mut self) {
        if !self.client_reads {
            return;
        }
        let said = self.engine.pending().to_vec();
        self.engine.consume(said.len());
        for line in said.split_inclusive(|byte| *byte == b'\n') {
            assert!(line.ends_with(b"\n"), "half a line");
            let line: Value = serde_json::from_slice(line).expect("a reply is JSON");
            match line.get("method") {
                Some(_) => self.progress(&line["params"]),
                None => self.reply(line),
            }
        }
    }

    fn progress(&mut self, params: &Value) {
        assert_eq!(params["progressToken"], "token");
        let message = params["message"].as_str().unwrap();
        assert!(
            message.len() <= 200 && !message.contains(char::is_control),
            "{message:?}"
        );
        assert!(params["progress"].as_u64() > Some(0));
        assert!(!self.open.is_empty(), "progress of nothing");
    }

    fn reply(&mut self, reply: Value) {
        let id = reply["id"].as_u64().expect("a reply has its id");
        let open = self.open.remove(&id);
        let open = open.unwrap_or_else(|| panic!("nobody asked for it: {reply}"));
        assert!(reply.get("result").is_some() != reply.get("error").is_some());
        let taken = self.now_ms - open.asked_at_ms;
        let wait_ms = match open.call {
            Some(Call::Status(_, wait_s)) => 1_000 * wait_s,
            _ => 0,
        };
        let in_time = taken <= wait_ms + CALL_MS_MAX;
        assert!(
            in_time || !self.client_read_always,
            "{open:?} after {taken} ms: {reply}"
        );
        if let Some(goal) = open.goal {
            // A part of its line may be on its way, which has to be sent to its end.
            if !self.line_on_its_way().contains(&goal) {
                self.judged.insert(goal);
            }
        }
        self.replies.push(reply);
    }

    /// The line of which the executor has read a part, with what it has not read.
    fn line_on_its_way(&mut self) -> String {
        let mut line = self.heard.clone();
        if let Some(port) = self.engine.executor_client().filter(|_| !line.is_empty()) {
            line.extend(
                port.pending()
                    .split_inclusive(|byte| *byte == b'\n')
                    .next()
                    .unwrap_or(b""),
            );
        }
        String::from_utf8_lossy(&line).into_owned()
    }

    /// The client reads again, time passes, and everything owed has come.
    pub(crate) fn settle(&mut self, ends: bool) {
        self.client_reads = true;
        self.turns();
        if ends {
            self.ended = true;
            self.engine.end_of_input();
            self.pass(50);
        } else {
            self.pass(45_000 + CALL_MS_MAX);
        }
        let owed = self.open.iter().filter(|(_, open)| !open.cancelled);
        let owed: Vec<_> = owed.collect();
        assert!(owed.is_empty(), "never answered: {owed:?}");
        if ends {
            assert!(self.engine.is_drained());
        }
    }
}
