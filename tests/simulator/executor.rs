//! The second simulated system: a client that hands over tasks, and an executor at the other end of
//! a channel, with the real engine and the real loop between them.
//!
//! What must hold is plain: a request gets one reply, within its time, whatever the executor does;
//! one that needs no executor is answered before the loop waits again; no task runs twice; and when
//! the client has left, so does the loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rocco::Info;
use rocco::internals::engine::Engine;
use rocco::internals::event_loop::run::{drive, drive_busily};
use rocco::internals::event_loop::{Channel, Ended, Transport, Wakeup, Want};
use rocco::internals::executor_client::errors::Absence;
use rocco::internals::executor_client::{ClientSettings, ExecutorClient};
use rocco::internals::limits::memory_budget_bytes;
use rocco::internals::task::id::TaskId;
use serde_json::{Value, json};

use super::executor_plan::Plan;
use super::faults::Faults;
use super::memory::{self, Scope};
use super::prng::Prng;
use super::run::KEPT_BYTES_MAX;
use super::schemas;
use super::trace::Trace;

/// What may go wrong.
pub const FAULTS: [&str; 14] = [
    "absent",
    "dies",
    "forgets",
    "silent",
    "slow",
    "garbage",
    "twice",
    "shapes",
    "refuses",
    "stale",
    "floods",
    "pieces",
    "interruptions",
    "spurious",
];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const STEPS_MAX: u64 = 60_000;
/// Waits in a row in which nothing moves and no time passes.
const QUIET_STEPS_MAX: u64 = 50;
/// A greeting, a call, and one that is asked again when its task has ended.
const CALL_MAX: Duration = Duration::from_secs(5 + 2 + 2);
const SLACK: Duration = Duration::from_millis(250);
const STATES: [&str; 5] = ["queued", "running", "verifying", "running", "succeeded"];

struct Open {
    asked: Duration,
    within: Duration,
    token: bool,
    method: String,
    revision: &'static str,
}

#[derive(Clone)]
struct Work {
    state: usize,
    seq: u64,
    next: Option<Duration>,
}

/// The executor behind the channel.
#[derive(Default)]
struct Executor {
    connected: bool,
    gone: bool,
    heard: Vec<u8>,
    /// What it says, and when.
    said: VecDeque<(Duration, Vec<u8>)>,
    work: BTreeMap<String, Work>,
    /// Every task that it has begun to do, each once.
    begun: Vec<String>,
    absent_until: Duration,
    edge: bool,
}

pub struct World {
    prng: Prng,
    faults: Faults,
    calm: bool,
    calm_step: u64,
    now: Duration,
    script: VecDeque<(Duration, u64, String)>,
    input: VecDeque<u8>,
    input_edge: bool,
    closed: Option<Duration>,
    leaves_early: bool,
    output: Vec<u8>,
    open: BTreeMap<u64, Open>,
    cancelled: BTreeSet<u64>,
    /// Requests that are to be answered before the next wait, in their order.
    at_once: VecDeque<u64>,
    progress: u64,
    executor: Executor,
    steps: u64,
    quiet_steps: u64,
    fault: Option<String>,
    trace: Trace,
    pub replies: u64,
    pub strikes: u64,
}

fn task(number: usize) -> String {
    TaskId::new(number as u128).to_string()
}

fn meta(prng: &mut Prng) -> Value {
    match prng.below(3) {
        0 => json!({}),
        1 => json!({"progressToken": 7}),
        _ => json!({
            VERSION: "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                {"extensions": {"io.modelcontextprotocol/tasks": {}}}}),
    }
}

/// One request of a client: its line but for the id, and how long it may wait for a task.
fn request(prng: &mut Prng) -> (&'static str, Value, u64) {
    let number = prng.below(5);
    let wait_s = if prng.one_in(2) {
        prng.below(46) as u64
    } else {
        0
    };
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    match prng.below(10) {
        0 => ("ping", json!({}), 0),
        1 => ("tools/list", json!({}), 0),
        2..=4 => {
            let files: Vec<String> = (0..prng.wild(300)).map(|it| format!("f{it}")).collect();
            let arguments = json!({"goal": "g", "repo": "/r", "acceptance": ["a"], "files": files});
            ("tools/call", call("larry_submit_task", arguments), 0)
        }
        5 | 6 => {
            let arguments = json!({"task_id": task(number), "wait_s": wait_s});
            ("tools/call", call("larry_task_status", arguments), wait_s)
        }
        7 => ("tools/call", call("larry_task_status", json!({})), 0),
        8 => {
            let arguments = json!({"task_id": task(number)});
            ("tools/call", call("larry_cancel_task", arguments), 0)
        }
        _ => {
            let arguments = json!({"task_id": task(number), "part": "log"});
            ("tools/call", call("larry_task_result", arguments), 0)
        }
    }
}

fn script(prng: &mut Prng) -> VecDeque<(Duration, u64, String)> {
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "s", "version": "0"}}});
    let mut script = VecDeque::from([(Duration::ZERO, 0, format!("{opening}\n"))]);
    let (mut time, rush) = (Duration::ZERO, prng.one_in(4));
    let count = if rush { 150 } else { 10 + prng.below(50) };
    for id in 2..2 + count as u64 {
        let pause = if rush { 2 } else { 1 + prng.wild(3_000) };
        time += Duration::from_millis(prng.below(pause) as u64);
        let (method, mut params, wait_s) = request(prng);
        if method == "tools/call" {
            params["_meta"] = meta(prng);
        }
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        script.push_back((time, wait_s, format!("{line}\n")));
        if prng.one_in(12) {
            let which = 2 + prng.below(id as usize) as u64;
            let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": which}});
            script.push_back((time, 0, format!("{line}\n")));
        }
    }
    script
}

/// Runs a plan twice, and demands the same trace.
pub fn twice(plan: &Plan) -> Result<World, String> {
    let (first, second) = (once(plan)?, once(plan)?);
    match first.trace.hash() == second.trace.hash() {
        true => Ok(first),
        false => Err("two runs of the seed differ".into()),
    }
}

/// Runs a plan. A panic of the server is a fault like any other.
pub fn once(plan: &Plan) -> Result<World, String> {
    memory::start_over();
    let run = catch_unwind(AssertUnwindSafe(|| session(plan)));
    run.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without words")))
    })
}

fn session(plan: &Plan) -> Result<World, String> {
    let server = Scope::server();
    let mut tasks = 0;
    let port = ExecutorClient::new(ClientSettings {
        version: "0",
        depth: 0,
        random: Box::new(move || {
            tasks += 1;
            tasks - 1
        }),
    });
    let mut engine =
        Engine::with_executor_client(&Info::new("rocco", "0"), Vec::new(), 16, Some(port));
    let built_bytes = memory::live_bytes();
    let mut world = {
        let _system = Scope::system();
        World::planned(plan)
    };
    let busily = world.prng.one_in(4);
    let ended = match busily {
        true => drive_busily(&mut engine, &mut world, Duration::from_micros(50)),
        false => drive(&mut engine, &mut world),
    };
    drop(server);
    let owed = world.open.keys();
    let owed: Vec<_> = owed.filter(|id| !world.cancelled.contains(id)).collect();
    match (world.fault.take(), ended) {
        (Some(fault), _) => return Err(fault),
        (None, Ok(Ended::Input)) if owed.is_empty() => {}
        (None, Ok(Ended::Input)) => return Err(format!("{owed:?} were not answered")),
        (None, other) => return Err(format!("it ended with {other:?}")),
    }
    let kept_bytes = memory::live_bytes().saturating_sub(built_bytes);
    if kept_bytes > KEPT_BYTES_MAX {
        return Err(format!("{kept_bytes} bytes are kept at the end"));
    }
    Ok(world)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let often = 1 + prng.below(5);
        let faults = Faults::of(
            &FAULTS,
            FAULTS.into_iter().filter(|_| prng.one_in(1 + often)),
        );
        Self {
            script: script(&mut prng.fork()),
            faults,
            calm: false,
            calm_step: 200 + prng.wild(4_000) as u64,
            now: Duration::ZERO,
            input: VecDeque::new(),
            input_edge: false,
            closed: None,
            leaves_early: prng.one_in(5),
            output: Vec::new(),
            open: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            at_once: VecDeque::new(),
            progress: 0,
            executor: Executor::default(),
            steps: 0,
            quiet_steps: 0,
            fault: None,
            trace: Trace::new(),
            replies: 0,
            strikes: 0,
            prng,
        }
    }

    /// What a seed decides: its faults, and how many lines are sent.
    pub fn drawn(seed: u64) -> (Faults, usize) {
        let world = Self::new(seed);
        (world.faults, world.script.len())
    }

    /// The world of a seed, less what was left out.
    fn planned(plan: &Plan) -> Self {
        let mut world = Self::new(plan.seed);
        world.faults = plan.faults;
        let script = std::mem::take(&mut world.script).into_iter().enumerate();
        let kept = script.filter(|(index, _)| plan.kept.contains(index));
        world.script = kept.map(|(_, line)| line).collect();
        world
    }

    fn strikes(&mut self, name: &str, times: usize) -> bool {
        let strikes = self.faults.has(name) && !self.calm && self.prng.one_in(times);
        self.strikes += u64::from(strikes);
        strikes
    }

    fn breach(&mut self, fault: String) -> io::Error {
        let place = format!("{fault} (step {}, {:?})", self.steps, self.now);
        self.fault.get_or_insert(place);
        ErrorKind::Other.into()
    }

    // The client.

    fn client_writes(&mut self) {
        while self.closed.is_none()
            && let Some((due, ..)) = self.script.front()
            && *due <= self.now
        {
            let (_, wait_s, line) = self.script.pop_front().expect("it was looked at");
            self.sent(&line, wait_s);
            self.input.extend(line.as_bytes());
            self.input_edge = true;
            self.quiet_steps = 0;
        }
        let done = self.script.is_empty() && (self.open.is_empty() || self.leaves_early);
        if done && self.closed.is_none() {
            self.closed = Some(self.now);
            self.input_edge = true;
        }
    }

    fn sent(&mut self, line: &str, wait_s: u64) {
        let line: Value = serde_json::from_str(line).expect("it was made as JSON");
        let Some(id) = line["id"].as_u64() else {
            let id = line["params"]["requestId"].as_u64().unwrap_or(0);
            let needs_executor = !self.at_once.contains(&id);
            if needs_executor && self.open.contains_key(&id) {
                self.cancelled.insert(id);
            }
            return;
        };
        let open = Open {
            asked: self.now,
            within: Duration::from_secs(wait_s) + CALL_MAX,
            token: line["params"]["_meta"].get("progressToken").is_some(),
            method: line["method"].as_str().unwrap_or_default().to_owned(),
            revision: match line["params"]["_meta"].get(VERSION) {
                Some(_) => "2026-07-28",
                None => "2025-11-25",
            },
        };
        self.open.insert(id, open);
        if line["method"] != "tools/call" {
            self.at_once.push_back(id);
        }
    }

    fn client_reads(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.output.extend_from_slice(bytes);
        while let Some(end) = self.output.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.output.drain(..=end).collect();
            let reply: Value =
                serde_json::from_slice(&line).map_err(|it| format!("no JSON: {it}"))?;
            match reply.get("method") {
                Some(_) => self.progress(&reply["params"])?,
                None => self.reply(&reply)?,
            }
        }
        Ok(())
    }

    fn progress(&mut self, params: &Value) -> Result<(), String> {
        let wanted = self.open.values().any(|open| open.token);
        if !wanted || params["progressToken"] != 7 {
            return Err(format!("progress that nobody waits for: {params}"));
        }
        self.progress += 1;
        Ok(())
    }

    fn reply(&mut self, reply: &Value) -> Result<(), String> {
        let id = reply["id"].as_u64().ok_or(format!("no id: {reply}"))?;
        let open = self.open.remove(&id);
        let open = open.ok_or(format!("nobody has asked for it: {reply}"))?;
        if self.at_once.contains(&id) && self.at_once.pop_front() != Some(id) {
            return Err(format!(
                "it came before one that was asked earlier: {reply}"
            ));
        }
        schemas::check(open.revision, Some(&open.method), reply)?;
        let taken = self.now - open.asked;
        if taken > open.within + SLACK {
            return Err(format!("it came after {taken:?}: {reply}"));
        }
        let content = &reply["result"]["structuredContent"];
        let accepted = content["task_id"]
            .as_str()
            .or(reply["result"]["taskId"].as_str());
        let created = content.get("duplicate").is_some() || reply["result"]["resultType"] == "task";
        let known = accepted.is_some_and(|task| self.executor.begun.iter().any(|it| it == task));
        if created && !known {
            return Err(format!("accepted, and no executor has it: {reply}"));
        }
        self.replies += 1;
        Ok(())
    }

    // The executor.

    fn says(&mut self, line: String, after: Duration) {
        let at = self.now + after;
        let at = self
            .executor
            .said
            .back()
            .map_or(at, |(last, _)| at.max(*last));
        self.executor.said.push_back((at, line.into_bytes()));
    }

    fn dies(&mut self) {
        self.executor.gone = true;
        self.executor.edge = true;
        self.executor.heard.clear();
        if self.strikes("forgets", 2) {
            // What it has acknowledged stays; nothing is done twice by itself.
            self.executor.work.retain(|_, work| work.seq > 0);
        }
    }

    fn hears(&mut self) {
        while let Some(end) = self.executor.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.executor.heard.drain(..=end).collect();
            let request: Value = match serde_json::from_slice(&line) {
                Ok(request) => request,
                Err(error) => {
                    self.breach(format!("a line to the executor is no JSON: {error}"));
                    return;
                }
            };
            if self.strikes("dies", 12) {
                return self.dies();
            }
            self.takes(&request);
            if self.strikes("dies", 12) {
                return self.dies();
            }
            if !self.strikes("silent", 4) {
                self.answers(&request);
            }
        }
    }

    /// A submit is one task however often it comes.
    fn takes(&mut self, request: &Value) {
        let task = request["params"]["task_id"].as_str().unwrap_or_default();
        if request["method"] == "task/submit" && !self.executor.begun.iter().any(|it| it == task) {
            self.executor.begun.push(task.to_owned());
            let work = Work {
                state: 0,
                seq: 1,
                next: Some(self.now + Duration::from_millis(self.prng.wild(20_000) as u64)),
            };
            self.executor.work.insert(task.to_owned(), work);
        }
    }

    fn answers(&mut self, request: &Value) {
        let (id, params) = (&request["id"], &request["params"]);
        let task = params["task_id"].as_str().unwrap_or_default();
        let error = |code: &str| json!({"error": {"code": -32000, "message": "no", "data": {"code": code}}});
        let time = "2026-12-01T00:00:00Z";
        let told = |work: &Work| {
            let record =
                (work.state == 4).then(|| json!({"outcome": "succeeded", "verification": "none"}));
            json!({"result": {"task_id": task, "seq": work.seq, "state": STATES[work.state],
                "created_at": time, "updated_at": time, "text": "", "total": 0, "record": record}})
        };
        let mut answer = match (request["method"].as_str(), self.executor.work.get(task)) {
            (Some("hello"), _) => json!({"result": {"protocol": "rocco-exec/1",
                "executor": {"name": "s", "version": "0"},
                "features": ["progress", "page", "list"]}}),
            (Some("task/list"), _) => json!({"result": {"tasks": []}}),
            (_, Some(work)) => told(work),
            (_, None) => error("not_found"),
        };
        let greets = request["method"] == "hello";
        if !greets && self.strikes("refuses", 5) {
            answer = error(["queue_full", "shutting_down", "executor_timeout"][self.prng.below(3)]);
        }
        if self.strikes("shapes", if greets { 30 } else { 6 }) {
            answer = json!({"result": {"task_id": 7, "state": []}});
        }
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        let slow = self.strikes("slow", 5);
        let after = Duration::from_micros(if slow {
            self.prng.wild(4_000_000) as u64
        } else {
            self.prng.below(500) as u64
        });
        let times = if self.strikes("twice", 6) { 2 } else { 1 };
        if self.strikes("garbage", 10) {
            let lines = ["{\n", "[]\n", "{\"id\":99999,\"result\":{}}\n", "\u{0}\n"];
            let line = (*self.prng.pick(&lines)).to_owned();
            self.says(line, Duration::ZERO);
        }
        self.says(format!("{answer}\n").repeat(times), after);
    }

    /// Tasks go on, and the executor says so.
    fn works(&mut self) {
        let due: Vec<String> = self
            .executor
            .work
            .iter()
            .filter(|(_, work)| work.next.is_some_and(|next| next <= self.now))
            .map(|(task, _)| task.clone())
            .collect();
        for task in due {
            let pause = Duration::from_millis(self.prng.wild(15_000) as u64);
            let work = self.executor.work.get_mut(&task).expect("it was found");
            work.state += 1;
            work.seq += 1;
            work.next = (work.state < 4).then_some(self.now + pause);
            let work = work.clone();
            let update = |seq| {
                let line = json!({"jsonrpc": "2.0", "method": "task/update", "params": {
                    "task_id": task, "seq": seq, "state": STATES[work.state]}});
                format!("{line}\n")
            };
            if self.executor.connected && !self.executor.gone {
                let times = if self.strikes("floods", 3) { 200 } else { 1 };
                let stale = self.strikes("stale", 3);
                for number in 0..times {
                    let seq = if stale && number > 0 { 1 } else { work.seq };
                    self.says(update(seq), Duration::ZERO);
                }
            }
        }
    }

    fn executor_edge(&mut self) -> bool {
        let executor = &mut self.executor;
        let due = executor.said.front().is_some_and(|(at, _)| *at <= self.now);
        executor.connected && (due || executor.gone) && std::mem::take(&mut executor.edge)
    }

    // The clock.

    fn act(&mut self) {
        self.client_writes();
        self.works();
        if self
            .executor
            .said
            .front()
            .is_some_and(|(at, _)| *at <= self.now)
        {
            self.executor.edge = true;
        }
    }

    fn next_event(&self) -> Option<Duration> {
        let script = self.script.front().filter(|_| self.closed.is_none());
        let said = self.executor.said.front();
        let work = self.executor.work.values().filter_map(|work| work.next);
        script
            .map(|(at, ..)| *at)
            .into_iter()
            .chain(said.map(|(at, _)| *at))
            .chain(work)
            .filter(|at| *at > self.now)
            .min()
    }

    fn inspect(&mut self, sleeps: bool) -> io::Result<()> {
        self.steps += 1;
        self.quiet_steps += 1;
        if memory::peak_bytes() > memory_budget_bytes() {
            return Err(self.breach("the memory budget is passed".into()));
        }
        if self.steps > STEPS_MAX || self.quiet_steps > QUIET_STEPS_MAX {
            return Err(self.breach("it never comes to rest".into()));
        }
        if sleeps && self.input.is_empty() && !self.at_once.is_empty() {
            let late = format!("{:?} wait though they need no executor", self.at_once);
            return Err(self.breach(late));
        }
        let overdue = self.open.iter().find(|(id, open)| {
            self.now > open.asked + open.within + SLACK && !self.cancelled.contains(id)
        });
        if let Some((id, open)) = overdue {
            let fault = format!("{id} is owed a reply since {:?}", open.asked);
            return Err(self.breach(fault));
        }
        if let Some(closed) = self.closed
            && self.now > closed + Duration::from_millis(100) + SLACK
        {
            return Err(self.breach("it lives on after the end of input".into()));
        }
        Ok(())
    }
}

impl Transport for World {
    fn wait(&mut self, timeout: Option<Duration>, _: Want) -> io::Result<Wakeup> {
        let _system = Scope::system();
        let sleeps = timeout != Some(Duration::ZERO);
        self.inspect(sleeps)?;
        self.calm |= self.steps >= self.calm_step;
        // Whoever has cancelled waits no longer.
        if sleeps && self.input.is_empty() {
            let cancelled = std::mem::take(&mut self.cancelled);
            self.open.retain(|id, _| !cancelled.contains(id));
        }
        let deadline = timeout.map(|timeout| self.now + timeout);
        let spurious = self.strikes("spurious", 8);
        let wakeup = loop {
            self.act();
            let wakeup = Wakeup {
                input: std::mem::take(&mut self.input_edge),
                input_closed: self.closed.is_some() && !self.input.is_empty(),
                executor_input: self.executor_edge(),
                executor_output: true,
                ..Wakeup::default()
            };
            if wakeup.input || wakeup.executor_input || spurious || deadline == Some(self.now) {
                break wakeup;
            }
            match (self.next_event(), deadline) {
                (Some(event), deadline) if deadline.is_none_or(|deadline| event <= deadline) => {
                    self.now = event;
                    self.quiet_steps = 0;
                }
                (_, Some(deadline)) => {
                    self.now = deadline;
                    self.quiet_steps = 0;
                    break Wakeup {
                        timed_out: true,
                        ..Wakeup::default()
                    };
                }
                (_, None) => {
                    let owed = self.open.len();
                    return Err(self.breach(format!("it waits for ever and owes {owed}")));
                }
            }
        };
        self.trace.word(self.now.as_micros() as u64);
        Ok(wakeup)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let _system = Scope::system();
        if self.strikes("interruptions", 6) {
            return Err(ErrorKind::Interrupted.into());
        }
        if self.input.is_empty() {
            return match self.closed {
                Some(_) => Ok(0),
                None => Err(ErrorKind::WouldBlock.into()),
            };
        }
        let pieces = self.strikes("pieces", 2);
        let max = if pieces {
            1 + self.prng.below(64)
        } else {
            into.len()
        };
        let count = max.min(self.input.len()).min(into.len());
        for (slot, byte) in into.iter_mut().zip(self.input.drain(..count)) {
            *slot = byte;
        }
        // More is there, and is told of once more.
        self.input_edge |= !self.input.is_empty();
        self.quiet_steps = 0;
        Ok(count)
    }

    fn short_read_drains(&self) -> bool {
        true
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let _system = Scope::system();
        if self.strikes("interruptions", 6) {
            return Err(ErrorKind::Interrupted.into());
        }
        self.trace.bytes(from);
        self.quiet_steps = 0;
        match self.client_reads(from) {
            Ok(()) => Ok(from.len()),
            Err(fault) => Err(self.breach(fault)),
        }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn relax(&mut self) {
        self.now += Duration::from_micros(10);
    }

    fn executor(&mut self) -> Option<&mut dyn Channel> {
        Some(self)
    }
}

impl Channel for World {
    fn open(&mut self) -> Result<(), (Absence, String)> {
        let _system = Scope::system();
        if self.executor.connected {
            self.breach("it opens what is open".into());
        }
        if self.strikes("absent", 3) {
            self.executor.absent_until =
                self.now + Duration::from_millis(self.prng.wild(4_000) as u64);
        }
        if self.now < self.executor.absent_until && !self.calm {
            return Err((Absence::ConnectFailed, "nobody is there".into()));
        }
        self.executor.connected = true;
        self.executor.gone = false;
        self.executor.heard.clear();
        self.executor.said.clear();
        self.quiet_steps = 0;
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let _system = Scope::system();
        if !self.executor.connected {
            return Err(self.breach("it reads what is closed".into()));
        }
        if self.strikes("interruptions", 6) {
            self.executor.edge = true;
            return Err(ErrorKind::Interrupted.into());
        }
        let now = self.now;
        let due = self.executor.said.front_mut().filter(|(at, _)| *at <= now);
        let Some((_, line)) = due else {
            return match self.executor.gone {
                true => Ok(0),
                false => Err(ErrorKind::WouldBlock.into()),
            };
        };
        let count = line.len().min(into.len());
        into[..count].copy_from_slice(&line[..count]);
        line.drain(..count);
        if line.is_empty() {
            self.executor.said.pop_front();
        }
        self.executor.edge |= self.executor.said.front().is_some_and(|(at, _)| *at <= now);
        self.executor.edge |= self.executor.gone;
        self.quiet_steps = 0;
        Ok(count)
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let _system = Scope::system();
        if !self.executor.connected {
            return Err(self.breach("it writes to what is closed".into()));
        }
        if self.executor.gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if self.strikes("interruptions", 6) {
            return Err(ErrorKind::Interrupted.into());
        }
        let pieces = self.strikes("pieces", 2);
        let count = if pieces {
            1 + self.prng.below(from.len())
        } else {
            from.len()
        };
        self.executor.heard.extend_from_slice(&from[..count]);
        self.trace.bytes(&from[..count]);
        self.quiet_steps = 0;
        self.hears();
        Ok(count)
    }

    fn fate(&mut self) -> String {
        "the executor has left".into()
    }

    fn close(&mut self) {
        let _system = Scope::system();
        self.executor.connected = false;
        self.executor.gone = false;
        self.executor.said.clear();
        self.quiet_steps = 0;
    }
}
