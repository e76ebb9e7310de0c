//! Serves a front: its requests one after the other.

use std::fmt;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use crate::executor::api::lines::{LineReader, ReadLine, read_line};
use crate::executor::api::outgoing::{Outgoing, send, write_standing};
use crate::executor::api::paging::page;
use crate::executor::daemon::Daemon;
use crate::executor::run::brief::{PreviousTask, instructions};
use crate::executor::run::git;
use crate::executor::run::repo::{Repo, RepoRefused};
use crate::executor::run::scope;
use crate::executor::schedule::queue::{Admission, TaskEntry};
use crate::executor::schedule::task::{Content, Task};
use crate::executor::store::full_disk::{self, in_words};
use crate::executor::threads::{self, locked, wait};
use crate::executor::{clock, json};
use crate::executor_protocol::PROTOCOL;
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::executor_protocol::state::TaskState;
use crate::limits::{
    EXECUTOR_FAULT_BYTES_MAX, EXECUTOR_FAULTS_MAX, EXECUTOR_LIST_MAX, EXECUTOR_PAGE_BYTES_MAX,
    EXECUTOR_VIOLATIONS_MAX, TASK_GOAL_LISTED_BYTES_MAX,
};
use crate::task::id::TaskId;
use crate::wire::json::{Object, Value};
use crate::wire::message::Id;
use crate::wire::writer::{ObjectWriter, start_of};

/// A request cannot be served.
struct ApiError {
    number: i64,
    code: TaskErrorCode,
    message: String,
    retry_after_ms: Option<u64>,
    faults: Vec<SubmissionFault>,
}

/// What is wrong with a member of a submission.
struct SubmissionFault {
    /// The member, as a JSON Pointer.
    pointer: String,
    reason: String,
}

impl ApiError {
    fn new(code: TaskErrorCode, message: impl Into<String>) -> Self {
        Self {
            number: -32_000,
            code,
            message: message.into(),
            retry_after_ms: None,
            faults: Vec::new(),
        }
    }

    /// All faults of a submission, and what else is to be said of them.
    fn of_faults(code: TaskErrorCode, faults: Vec<SubmissionFault>, more: &str) -> Self {
        let told = faults.iter();
        let told = told.map(|fault| format!("{} {}", fault.pointer, fault.reason));
        let told = told.collect::<Vec<_>>().join("; ");
        Self {
            faults,
            ..Self::new(code, told + more)
        }
    }

    fn protocol(number: i64, message: impl Into<String>) -> Self {
        Self {
            number,
            ..Self::new(TaskErrorCode::ExecutorProtocol, message)
        }
    }
}

/// Refuses a task whose scope leads out of its repository, or has a pattern, which would cover
/// nothing that the agent does.
fn look_at_files(repo: &Repo, content: &Content) -> Result<(), ApiError> {
    let faults = |reason: &str, is_fault: &dyn Fn(&str) -> bool| -> Vec<SubmissionFault> {
        let files = content.files.iter().flatten().enumerate();
        let files = files.filter(|(_, file)| is_fault(file));
        files
            .map(|(at, file)| SubmissionFault {
                pointer: format!("/files/{at}"),
                reason: format!("{reason}: {file:?}"),
            })
            .collect()
    };
    let outside = faults("leads out of the repository", &|file| {
        !scope::lies_within(repo.real(), file)
    });
    if !outside.is_empty() {
        let code = TaskErrorCode::PathNotAllowed;
        return Err(ApiError::of_faults(code, outside, ""));
    }
    let what = "is a pattern, and covers nothing (name the files, or their directory)";
    let patterns = faults(what, &|file| scope::is_pattern(repo.real(), file));
    match patterns.is_empty() {
        true => Ok(()),
        false => {
            let code = TaskErrorCode::InvalidArguments;
            Err(ApiError::of_faults(code, patterns, ""))
        }
    }
}

/// The members of a result.
type ResultWriter = Box<dyn FnOnce(&mut ObjectWriter<'_>)>;
type ApiResult = Result<ResultWriter, ApiError>;

/// What a front is heard and answered on.
pub struct FrontIo<R> {
    /// What it says.
    pub reader: R,
    /// What it is told.
    pub writer: Box<dyn Write + Send>,
    /// When it must have said hello; none if it may take its time.
    pub hello_by: Option<Instant>,
    /// The socket under both; none for stdin and stdout.
    pub socket: Option<Arc<UnixStream>>,
    /// Why what is at the other end has no say in tasks, if it has none.
    pub without_say: Option<&'static str>,
}

impl<R> fmt::Debug for FrontIo<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontIo").finish_non_exhaustive()
    }
}

/// A front's connection.
struct Connection<'s> {
    daemon: &'s Daemon,
    front: Arc<Outgoing>,
    /// When hello must have come, until it has.
    hello_by: Option<Instant>,
    is_greeted: bool,
    without_say: Option<&'static str>,
    /// The front says that it serves what runs for a task.
    is_nested: bool,
}

/// Serves a front to the end of its connection.
///
/// # Errors
///
/// The system gives no thread to write with. Nothing was read.
pub fn serve(daemon: &Arc<Daemon>, io: FrontIo<impl LineReader>) -> io::Result<()> {
    let front = Arc::new(Outgoing::default());
    let socket = io.socket;
    // One that is closed already needs no closing.
    let close = |socket: &Option<Arc<UnixStream>>| {
        socket
            .iter()
            .for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    };
    let writing = {
        let (daemon, front, socket) = (Arc::clone(daemon), Arc::clone(&front), socket.clone());
        threads::start("front-out", move || {
            send(&daemon, &front, io.writer);
            // Whoever takes nothing is not heard any more either.
            close(&socket);
        })?
    };
    locked(&daemon.connections).push(Arc::downgrade(&front));
    let mut connection = Connection {
        daemon,
        front: Arc::clone(&front),
        hello_by: io.hello_by,
        is_greeted: false,
        without_say: io.without_say,
        is_nested: false,
    };
    connection.read(io.reader);
    front.close();
    close(&socket);
    writing
        .join()
        .expect("a thread that panics takes the process with it");
    Ok(())
}

/// The line that tells a client that it is not served. It answers no request, so that its id is
/// null.
pub fn refusal_line(why: &str) -> String {
    let line = json::object(|reply| {
        reply.string("jsonrpc", "2.0");
        reply.raw("id", "null");
        let refusal = ApiError::new(TaskErrorCode::QueueFull, why);
        reply.object("error", |error| write_refusal(error, &refusal));
    });
    line + "\n"
}

impl Connection<'_> {
    fn read(&mut self, mut reader: impl LineReader) {
        let (mut line, mut faults) = (Vec::new(), 0);
        while faults < EXECUTOR_VIOLATIONS_MAX && !self.front.is_closed() {
            let served = match read_line(&mut reader, &mut line, self.hello_by) {
                ReadLine::End => return,
                ReadLine::TooLong => false,
                ReadLine::Whole if line.iter().all(u8::is_ascii_whitespace) => true,
                ReadLine::Whole => json::with(&line, |message| self.serve(message)).is_some(),
            };
            faults += u32::from(!served);
        }
    }

    /// Serves a message. One that is not a request is dropped.
    fn serve(&mut self, message: Object<'_>) {
        let Some(id) = message.get("id").and_then(Id::from_value) else {
            return;
        };
        let Some(method) = json::text(message, "method") else {
            return;
        };
        let params = message.get("params").and_then(|params| params.as_object());
        let answered = self.answer(method, params.unwrap_or(Object::EMPTY));
        self.front.reply(json::object(|reply| {
            reply.string("jsonrpc", "2.0");
            reply.member("id", |sink| sink.id(id));
            match answered {
                Ok(fill) => reply.object("result", fill),
                Err(refusal) => reply.object("error", |error| write_refusal(error, &refusal)),
            }
        }));
    }

    fn answer(&mut self, method: &str, params: Object<'_>) -> ApiResult {
        match (method, self.without_say) {
            ("hello", _) => self.hello(params),
            _ if !self.is_greeted => Err(ApiError::protocol(-32_600, "hello comes first")),
            (_, Some(why)) => Err(ApiError::new(TaskErrorCode::DepthExceeded, why)),
            ("task/submit", _) => self.submit(params),
            ("task/get", _) => self.get(params),
            ("task/list", _) => self.list(params),
            ("task/cancel", _) => self.cancel(params),
            _ => Err(ApiError::protocol(-32_601, "this method is not known")),
        }
    }

    fn hello(&mut self, params: Object<'_>) -> ApiResult {
        if json::text(params, "protocol") != Some(PROTOCOL) {
            return Err(ApiError::protocol(
                -32_602,
                format!("this executor speaks {PROTOCOL}"),
            ));
        }
        self.is_greeted = true;
        self.hello_by = None;
        self.is_nested = json::unsigned(params, "depth").unwrap_or(0) > 0;
        let (policy, durable) = (&self.daemon.policy, self.daemon.journal.durable());
        let bounds = policy.bounds();
        let deadline_s = policy.config.deadline_s;
        let (walls, reach) = (policy.walls, policy.reach);
        Ok(Box::new(move |result| {
            result.string("protocol", PROTOCOL);
            result.object("executor", |executor| {
                executor.string("name", "rocco-executor");
                executor.string("version", env!("CARGO_PKG_VERSION"));
            });
            result.string("durable", durable.name());
            result.object("limits", |limits| {
                limits.unsigned("max_running", bounds.running_max as u64);
                limits.unsigned("max_queued", bounds.queued_max as u64);
                limits.unsigned("max_task_s", deadline_s);
            });
            result.array("features", |features| {
                ["progress", "page", "list"]
                    .iter()
                    .for_each(|feature| features.string(feature));
            });
            result.string("sandbox", walls.name());
            result.object("bounds", |bounds| reach.write(bounds));
        }))
    }

    fn submit(&mut self, params: Object<'_>) -> ApiResult {
        let invalid = |what| ApiError::new(TaskErrorCode::InvalidArguments, what);
        if self.is_nested {
            return Err(ApiError::new(
                TaskErrorCode::DepthExceeded,
                "a task cannot submit a task",
            ));
        }
        let now_ms = clock::now_ms();
        let mut task = Task::submitted(params, now_ms).map_err(invalid)?;
        let id = task.id;
        match self.reserve(&task) {
            Admission::New => {}
            admission => return self.admitted(&admission),
        }
        // The place is kept while git looks and the disk writes, and nobody else waits for either.
        let accepted = self.accept(&mut task);
        let uptime_ms = self.daemon.uptime.ms();
        let mut queue = locked(&self.daemon.queue);
        queue.release(id);
        if accepted.is_ok() {
            let entry = TaskEntry::new(Arc::new(task), TaskState::Queued, now_ms);
            queue.accept(entry, uptime_ms);
        }
        drop(queue);
        self.daemon.changed.notify_all();
        accepted.and_then(|()| self.admitted(&Admission::Known(id)))
    }

    /// Keeps a place for a submission. One that is being accepted on another connection is waited
    /// for.
    fn reserve(&self, task: &Task) -> Admission {
        let mut queue = locked(&self.daemon.queue);
        loop {
            match queue.reserve(task, self.daemon.uptime.ms()) {
                Admission::Pending => queue = wait(&self.daemon.changed, queue),
                admission => return admission,
            }
        }
    }

    /// Looks at what a task names, and keeps the task as durably as hello promises.
    fn accept(&self, task: &mut Task) -> Result<(), ApiError> {
        let storage = |what| ApiError::new(TaskErrorCode::Storage, what);
        let (repo, before) = self.look_at(task)?;
        let goal = instructions(&task.content, before.as_ref());
        let git = &self.daemon.git;
        git.pin(&repo, task.id, &task.base).map_err(storage)?;
        self.daemon.journal.accept(task, &goal).map_err(|error| {
            // A pin that cannot be removed costs nothing but its name.
            let _ = git.unpin(&repo, task.id);
            let why = in_words(self.daemon.journal.state_dir().root(), &error);
            storage(format!("the task cannot be kept: {why}"))
        })
    }

    /// What a front hears of its submission.
    fn admitted(&self, admission: &Admission) -> ApiResult {
        let (id, duplicate) = match *admission {
            Admission::Known(id) => (id, false),
            Admission::Duplicate(id) => (id, true),
            Admission::KeyConflict => {
                let what = "the key belongs to a task with other content";
                return Err(ApiError::new(TaskErrorCode::KeyConflict, what));
            }
            Admission::Full {
                why,
                retry_after_ms,
            } => {
                return Err(ApiError {
                    retry_after_ms: Some(retry_after_ms),
                    ..ApiError::new(TaskErrorCode::QueueFull, why)
                });
            }
            Admission::New | Admission::Pending => {
                unreachable!("a new task is in the queue by now")
            }
        };
        let queue = locked(&self.daemon.queue);
        let entry = queue.get(id).ok_or_else(|| unknown(id))?;
        self.front.follow(id, entry);
        let (entry, position) = (entry.clone(), queue.position(id));
        Ok(Box::new(move |result| {
            result.formatted("task_id", format_args!("{id}"));
            result.unsigned("seq", entry.seq);
            result.string("state", entry.state.name());
            if let Some(position) = position {
                result.unsigned("position", position as u64);
            }
            result.string("created_at", &clock::stamp(entry.task.created_ms));
            result.string("updated_at", &clock::stamp(entry.updated_ms));
            result.boolean("duplicate", duplicate);
        }))
    }

    /// Looks at what a task names: the repository, the files, the gates, the earlier task.
    fn look_at(&self, task: &mut Task) -> Result<(Repo, Option<PreviousTask>), ApiError> {
        let (daemon, content) = (self.daemon, &task.content);
        let invalid = |what: String| match full_disk::is_told(&what) {
            true => ApiError::new(TaskErrorCode::Storage, what),
            false => ApiError::new(TaskErrorCode::InvalidArguments, what),
        };
        let repo = daemon
            .git
            .open(content.repo.as_ref(), daemon.policy.allowed());
        let repo = repo.map_err(|refused| match refused {
            RepoRefused::NotAllowed(what) => ApiError::new(TaskErrorCode::RepoNotAllowed, what),
            RepoRefused::Unusable(what) => invalid(what),
        })?;
        look_at_files(&repo, content)?;
        self.look_at_gates(content)?;
        let head = daemon.git.commit(&repo, "HEAD");
        let mut before = None;
        if let Some(id) = content.follow_up_to {
            let (earlier, text) = self.earlier(id)?;
            if earlier.repo_real != repo.real() {
                let real = earlier.repo_real.display();
                return Err(invalid(format!(
                    "{id}, which is to be continued, is of {real}"
                )));
            }
            before = Some(text);
            if let Ok(result) = daemon.git.commit(&repo, &git::result_ref(id)) {
                // What the user has taken over needs no second judgement.
                let taken_over = head.as_ref().is_ok_and(|head| {
                    let git = &daemon.git;
                    git.is_taken_over(&repo, &earlier.origin, &result, head)
                });
                task.origin = match taken_over {
                    true => result.clone(),
                    false => earlier.origin.clone(),
                };
                task.base = result;
            }
        }
        if task.base.is_empty() {
            task.base = head.map_err(invalid)?;
            task.origin.clone_from(&task.base);
        }
        task.repo_real = repo.real().to_owned();
        Ok((repo, before))
    }

    /// Refuses a task whose gates are not all defined, and names all that are not. A gate whose
    /// program is not there would fail after an agent's work.
    fn look_at_gates(&self, content: &Content) -> Result<(), ApiError> {
        let policy = &self.daemon.policy;
        let undefined: Vec<SubmissionFault> = content
            .named_gates()
            .filter(|(_, name)| policy.gate(name).is_none())
            .map(|(at, name)| SubmissionFault {
                pointer: format!("/acceptance/{at}"),
                reason: format!("the gate {name:?} is not defined"),
            })
            .collect();
        if undefined.is_empty() {
            let names = content.named_gates().map(|(_, name)| name);
            let mut gates = names.filter_map(|name| policy.gate(name));
            return match gates.find_map(|gate| Some((gate, policy.missing_of(gate)?))) {
                None => Ok(()),
                Some((gate, what)) => {
                    let what = format!("the gate {:?} cannot be started: {what}", gate.name);
                    Err(ApiError::new(TaskErrorCode::Unsupported, what))
                }
            };
        }
        let defined = policy.gates.iter().map(|gate| gate.name.as_str());
        let defined = defined.collect::<Vec<_>>().join(", ");
        let more = match defined.is_empty() {
            true => "; this executor has no gates (--gates)".to_owned(),
            false => format!("; defined are: {defined}"),
        };
        let code = TaskErrorCode::InvalidArguments;
        Err(ApiError::of_faults(code, undefined, &more))
    }

    /// The task that is continued. It must have ended.
    fn earlier(&self, id: TaskId) -> Result<(Arc<Task>, PreviousTask), ApiError> {
        let entry = self.entry(id)?;
        if entry.state.outcome().is_none() {
            let what = format!("{id}, which is to be continued, has not ended");
            return Err(ApiError::new(TaskErrorCode::NotFinished, what));
        }
        let record = self.record(id);
        let before = PreviousTask::from_record(&entry.task.content.goal, record.as_bytes());
        Ok((entry.task, before))
    }

    /// A task as it stands. No file is read with the lock held.
    fn entry(&self, id: TaskId) -> Result<TaskEntry, ApiError> {
        let entry = locked(&self.daemon.queue).get(id).cloned();
        entry.ok_or_else(|| self.missing(id))
    }

    fn missing(&self, id: TaskId) -> ApiError {
        if self.daemon.journal.state_dir().is_expired(id) {
            ApiError::new(
                TaskErrorCode::Expired,
                format!("the record of {id} is past its keep time"),
            )
        } else {
            unknown(id)
        }
    }

    /// A record that was lost is told as none.
    fn record(&self, id: TaskId) -> String {
        self.daemon
            .journal
            .state_dir()
            .record(id)
            .unwrap_or_default()
    }

    fn get(&mut self, params: Object<'_>) -> ApiResult {
        let id = task_id(params)?;
        let part = match json::text(params, "part") {
            None | Some("summary") => return self.summary(id),
            Some("diff") => ("diff", "diff.patch"),
            Some("log") => ("log", "log"),
            Some("gates") => ("gates", "gates"),
            Some(_) => {
                return Err(ApiError::new(
                    TaskErrorCode::Unsupported,
                    "part must be summary, diff, log or gates",
                ));
            }
        };
        let state = self.entry(id)?.state;
        if state.outcome().is_none() && part.0 != "log" {
            return Err(ApiError::new(
                TaskErrorCode::NotFinished,
                format!("{id} has not ended"),
            ));
        }
        let path = self.daemon.journal.state_dir().dir(id).join(part.1);
        let offset = json::unsigned(params, "offset").unwrap_or(0);
        let limit = json::unsigned(params, "limit").unwrap_or(0);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let limit = if limit == 0 {
            EXECUTOR_PAGE_BYTES_MAX
        } else {
            limit
        };
        let page = page(&path, offset, limit.min(EXECUTOR_PAGE_BYTES_MAX));
        let page = page.map_err(|error| {
            ApiError::new(
                TaskErrorCode::Storage,
                format!("the {} of {id} cannot be read: {error}", part.0),
            )
        })?;
        Ok(Box::new(move |result| {
            result.formatted("task_id", format_args!("{id}"));
            result.string("state", state.name());
            result.string("text", &page.text);
            match page.next_offset {
                Some(next) => result.unsigned("next_offset", next),
                None => result.raw("next_offset", "null"),
            }
            result.unsigned("total", page.total);
            result.string("path", &path.to_string_lossy());
        }))
    }

    fn summary(&self, id: TaskId) -> ApiResult {
        let known = {
            let queue = locked(&self.daemon.queue);
            let entry = queue.get(id).cloned();
            entry
                .inspect(|entry| {
                    if entry.state.outcome().is_none() {
                        self.front.follow(id, entry);
                    }
                })
                .map(|entry| (entry, queue.position(id)))
        };
        let (entry, position) = known.ok_or_else(|| self.missing(id))?;
        let record = entry
            .state
            .outcome()
            .map(|_| self.record(id))
            .unwrap_or_default();
        Ok(Box::new(move |result| {
            write_standing(result, &entry);
            if let Some(position) = position {
                result.unsigned("position", position as u64);
            }
            result.string("created_at", &clock::stamp(entry.task.created_ms));
            result.raw("record", if record.is_empty() { "null" } else { &record });
        }))
    }

    fn list(&self, params: Object<'_>) -> ApiResult {
        let repo = json::text(params, "repo");
        let limit = json::unsigned(params, "limit").unwrap_or(EXECUTOR_LIST_MAX as u64);
        let limit = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .clamp(1, EXECUTOR_LIST_MAX);
        let queue = locked(&self.daemon.queue);
        let newest = queue.newest(repo).into_iter().take(limit);
        let entries: Vec<TaskEntry> = newest.cloned().collect();
        Ok(Box::new(move |result| {
            result.array("tasks", |tasks| {
                for entry in &entries {
                    tasks.object(|task| {
                        let content = &entry.task.content;
                        task.formatted("task_id", format_args!("{}", entry.task.id));
                        task.string("state", entry.state.name());
                        task.string("goal", start_of(&content.goal, TASK_GOAL_LISTED_BYTES_MAX));
                        task.string("repo", &content.repo);
                        task.string("created_at", &clock::stamp(entry.task.created_ms));
                        task.string("updated_at", &clock::stamp(entry.updated_ms));
                    });
                }
            });
        }))
    }

    fn cancel(&self, params: Object<'_>) -> ApiResult {
        let id = task_id(params)?;
        let state = self.daemon.cancel(id).ok_or_else(|| self.missing(id))?;
        Ok(Box::new(move |result| {
            result.formatted("task_id", format_args!("{id}"));
            result.string("state", state.name());
        }))
    }
}

fn unknown(id: TaskId) -> ApiError {
    ApiError::new(TaskErrorCode::NotFound, format!("no task {id} is known"))
}

fn task_id(params: Object<'_>) -> Result<TaskId, ApiError> {
    let id = params.get("task_id").and_then(|id| match id {
        Value::String(text) => TaskId::parse(text),
        _ => None,
    });
    id.ok_or_else(|| {
        ApiError::new(
            TaskErrorCode::InvalidArguments,
            "/task_id must be the name of a task",
        )
    })
}

fn write_faults(data: &mut ObjectWriter<'_>, faults: &[SubmissionFault]) {
    let listed = &faults[..faults.len().min(EXECUTOR_FAULTS_MAX)];
    data.array("faults", |list| {
        for fault in listed {
            list.object(|object| {
                let reason = start_of(&fault.reason, EXECUTOR_FAULT_BYTES_MAX);
                object.string("pointer", &fault.pointer);
                object.string("reason", reason);
            });
        }
    });
    data.unsigned("unlisted", (faults.len() - listed.len()) as u64);
}

fn write_refusal(error: &mut ObjectWriter<'_>, refusal: &ApiError) {
    error.signed("code", refusal.number);
    error.string("message", start_of(&refusal.message, 1024));
    error.object("data", |data| {
        data.string("code", refusal.code.name());
        data.boolean("retryable", refusal.code.is_retryable());
        if let Some(retry_after_ms) = refusal.retry_after_ms {
            data.unsigned("retry_after_ms", retry_after_ms);
        }
        if !refusal.faults.is_empty() {
            write_faults(data, &refusal.faults);
        }
    });
}
