//! Turns a line from the executor into a reply to whoever waits for the line, or into a change of a
//! task.

use crate::executor_client::dispatcher::{Dispatcher, PageRequest, PendingCall, Purpose, Stage};
use crate::executor_client::errors::{Absence, NamedFaults, ToolRefusal};
use crate::executor_client::snapshots::SnapshotChange;
use crate::executor_client::task_update::{Snapshot, TaskUpdate};
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::executor_protocol::grammar;
use crate::executor_protocol::record::{Record, Subject};
use crate::executor_protocol::sanitize::Sanitized;
use crate::executor_protocol::state::{Outcome, TaskState};
use crate::limits::{
    EXECUTOR_ENVELOPE_BYTES_MAX, EXECUTOR_FIELD_BYTES_MAX, EXECUTOR_LIST_MAX,
    EXECUTOR_MESSAGE_BYTES_MAX, EXECUTOR_PAGE_BYTES_MAX, EXECUTOR_RECORD_BYTES_MAX, TASK_POLL_MS,
    TASK_POLL_QUEUED_MS, TASK_TTL_MS,
};
use crate::mcp::delegate::{Replies, RequestHandle};
use crate::mcp::errors::{self, RpcError};
use crate::task::id::TaskId;
use crate::wire::json::{Object, Value};
use crate::wire::writer::ObjectWriter;

/// What a model should do while a task works.
const NEXT: &str = "Call larry_task_status with this task_id and wait_s 45 until it has ended.";

impl Dispatcher {
    /// Takes in one line of so many bytes.
    pub fn line(&mut self, root: Value<'_>, bytes: usize, replies: &mut Replies<'_>) {
        let Value::Object(message) = root else {
            return self.record_violation("a line that is not a JSON object");
        };
        match (message.get("method"), message.get("id")) {
            (Some(Value::String(method)), None) => {
                let params = message.get("params").and_then(|params| params.as_object());
                if method == "task/update"
                    && let Some(update) = params.and_then(TaskUpdate::parse)
                {
                    self.update(&update);
                }
            }
            (None, Some(Value::Unsigned(serial))) if self.is_asked(serial) => {
                self.answer(serial, message, bytes, replies);
            }
            (None, Some(Value::Null)) if self.link.is_greeting() => self.turned_away(message),
            _ => self.record_violation("an answer to a request that it was not sent"),
        }
    }

    /// The executor does not serve this connection, and says why without having read hello.
    fn turned_away(&mut self, message: Object<'_>) {
        let error = message.get("error").and_then(|error| error.as_object());
        let why = error.map(|error| ToolRefusal::from_executor(error).what);
        let why = why.as_ref().map_or("it gave no reason", |why| why.as_str());
        let what = format_args!("the executor does not serve this connection: {why}");
        self.lost(ToolRefusal::absent(Absence::HandshakeFailed, what));
    }

    /// Counts a line that violates the protocol. The third one ends the connection.
    pub fn record_violation(&mut self, what: &str) {
        if self.link.record_violation() {
            let why = format_args!("the executor violated rocco-exec/1: it sent {what}");
            self.lost(ToolRefusal::absent(Absence::Lost, why));
        }
    }

    /// Takes in an update of a task, for the callers that wait for the task.
    fn update(&mut self, update: &TaskUpdate<'_>) {
        let connection = self.link.connection();
        let mut pending = self.pending.iter();
        let wanted = pending.any(|pending| pending.task == Some(update.task));
        let news = self
            .snapshots
            .update(update, connection, wanted, self.now_ms);
        if let Some(news) = news {
            self.pass_news(update.task, news);
        }
    }

    /// Tells those who wait for a task what was learned of it. When it has ended, whoever wants to
    /// know how it stands is asked for again: an answer that is under way may be older than that.
    fn pass_news(&mut self, task: TaskId, news: SnapshotChange) {
        for index in 0..self.pending.len() {
            let pending = &mut self.pending[index];
            if !pending.wants_state_of(task) {
                continue;
            }
            if news.ended {
                self.ask_again(index);
            } else if let Stage::Waiting { changed, .. } = &mut pending.stage {
                *changed |= news.changed;
            }
        }
    }

    /// An answer that nobody waits for any more was late, and does no harm.
    fn answer(
        &mut self,
        serial: u64,
        message: Object<'_>,
        bytes: usize,
        replies: &mut Replies<'_>,
    ) {
        let result = match (message.get("result"), message.get("error")) {
            (Some(Value::Object(result)), None) => Ok(result),
            (None, Some(Value::Object(error))) => Err(ToolRefusal::from_executor(error)),
            _ => {
                let what = "the executor's answer has neither a result nor an error";
                Err(ToolRefusal::new(
                    TaskErrorCode::ExecutorProtocol,
                    format_args!("{what}"),
                ))
            }
        };
        if self.link.is_hello(serial) {
            return self.greeted(result);
        }
        self.link.is_well();
        self.link.unanswered.answer(serial);
        let asked = |pending: &PendingCall| {
            pending.serial == serial && matches!(pending.stage, Stage::Asked { .. })
        };
        let index = self.pending.iter().position(asked);
        let pending = index.map(|index| self.pending.swap_remove(index));
        let told = result.ok().and_then(TaskUpdate::parse);
        let changed = told.is_some_and(|told| self.note(&told, pending.as_ref()));
        let Some(pending) = pending else {
            return;
        };
        let refused = match result {
            Ok(result) => self.pass_on(pending, result, bytes, changed, replies),
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = refused {
            // What an executor refuses to take is not a task.
            let is_none = pending.purpose == Purpose::Submit && refusal.code.is_for_executors();
            let refusal = refusal.of_task(pending.task.filter(|_| !is_none));
            if is_none {
                let error = message.get("error").and_then(|error| error.as_object());
                let faults = error.map(NamedFaults::of).unwrap_or_default();
                return replies.answer(pending.handle, |reply| refusal.write_with(faults, reply));
            }
            self.refuse(
                pending.purpose,
                pending.handle,
                pending.task,
                &refusal,
                replies,
            );
        }
    }

    /// Remembers what an answer tells, if it tells enough and of the task that was asked for. An
    /// executor sends updates to who has submitted a task or asked for its summary. Tells whether
    /// it stands otherwise than before.
    fn note(&mut self, told: &TaskUpdate<'_>, pending: Option<&PendingCall>) -> bool {
        let fits = pending.is_none_or(|pending| is_told_of(pending, told));
        if told.created_at.is_empty() || !fits {
            return false;
        }
        let sends = pending.is_some_and(|pending| {
            let asks = matches!(
                pending.purpose,
                Purpose::Submit | Purpose::Status { .. } | Purpose::TaskGet | Purpose::TaskUpdate
            );
            asks && pending.task == Some(told.task)
        });
        let connection = self.link.connection();
        let news = self.snapshots.note(told, connection, sends, self.now_ms);
        self.pass_news(told.task, news);
        news.changed
    }

    fn greeted(&mut self, result: Result<Object<'_>, ToolRefusal>) {
        let greeted = match result {
            Ok(result) => self.link.greeted(result),
            Err(refusal) => {
                let why = format_args!("the executor refused hello: {}", refusal.what.as_str());
                Err(ToolRefusal::absent(Absence::HandshakeFailed, why))
            }
        };
        match greeted {
            Ok(()) => self.is_up(),
            Err(refusal) => self.lost(refusal),
        }
    }

    /// Passes the executor's result on to who waits for it.
    fn pass_on(
        &mut self,
        pending: PendingCall,
        result: Object<'_>,
        bytes: usize,
        changed: bool,
        replies: &mut Replies<'_>,
    ) -> Result<(), ToolRefusal> {
        let handle = pending.handle;
        if pending.purpose == Purpose::List {
            return list(result, handle, replies);
        }
        let told = TaskUpdate::parse(result).filter(|told| is_told_of(&pending, told));
        let told = told.ok_or_else(not_understood)?;
        match pending.purpose {
            Purpose::List => unreachable!("it has no task"),
            Purpose::Page(page) => pages(page, &told, result, handle, replies),
            Purpose::Submit => {
                let snapshot = self.snapshot(&told)?;
                if replies.wants_tasks(handle) {
                    replies.task(handle, |task| task_members(task, snapshot, "working"));
                } else {
                    replies.answer(handle, |reply| {
                        reply.structured(|result| accepted(result, snapshot, told.duplicate))
                    });
                }
                Ok(())
            }
            Purpose::Cancel => {
                replies.answer(handle, |reply| {
                    reply.structured(|result| {
                        result.formatted("task_id", format_args!("{}", told.task));
                        result.string("state", told.state.name());
                    })
                });
                Ok(())
            }
            Purpose::TaskUpdate | Purpose::TaskCancel => {
                replies.complete(handle, |_| {});
                Ok(())
            }
            Purpose::Status { .. } | Purpose::TaskGet => {
                if bytes > EXECUTOR_RECORD_BYTES_MAX + EXECUTOR_ENVELOPE_BYTES_MAX {
                    let what = format_args!("the task's record is longer than 32768 bytes");
                    return Err(ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what));
                }
                let snapshot = *self.snapshot(&told)?;
                if snapshot.state.is_final() && !told.state.is_final() {
                    let what = format_args!("the executor says that a task works which has ended");
                    return Err(ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what));
                }
                self.stands(pending, &told, &snapshot, changed, replies)
            }
        }
    }

    /// What is now remembered of a task that was told of.
    fn snapshot(&self, told: &TaskUpdate<'_>) -> Result<&Snapshot, ToolRefusal> {
        let snapshot = self.snapshots.get(told.task);
        let snapshot = snapshot.filter(|snapshot| !snapshot.created_at.is_empty());
        snapshot.ok_or_else(|| {
            let what = format_args!("the executor's answer does not say when it took the task");
            ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what)
        })
    }

    /// Says how a task stands, or waits for its end.
    fn stands(
        &mut self,
        pending: PendingCall,
        told: &TaskUpdate<'_>,
        snapshot: &Snapshot,
        changed: bool,
        replies: &mut Replies<'_>,
    ) -> Result<(), ToolRefusal> {
        let handle = pending.handle;
        let record = record_of(told);
        match pending.purpose {
            Purpose::TaskGet => task_stands(told, record, snapshot, handle, replies),
            Purpose::Status { wait_until_ms }
                if !told.state.is_final()
                    && self.now_ms < wait_until_ms
                    && self.ending_ms.is_none() =>
            {
                self.wait(pending, changed);
            }
            _ => {
                let record = record?;
                replies.answer(handle, |reply| {
                    reply.structured(|result| {
                        status_members(result, snapshot);
                        if let Some(record) = record {
                            result.object("record", |writer| record.write(writer));
                        }
                    })
                });
            }
        }
        Ok(())
    }

    /// Tells somebody that what was asked is not done.
    pub fn refuse(
        &mut self,
        purpose: Purpose,
        handle: RequestHandle,
        task: Option<TaskId>,
        refusal: &ToolRefusal,
        replies: &mut Replies<'_>,
    ) {
        match purpose {
            Purpose::TaskGet | Purpose::TaskUpdate | Purpose::TaskCancel => {}
            _ => return replies.answer(handle, |reply| refusal.write(reply)),
        }
        if matches!(
            refusal.code,
            TaskErrorCode::NotFound | TaskErrorCode::Expired
        ) {
            return replies.refuse(handle, RpcError::invalid_params("the task is not known"));
        }
        let known = task.and_then(|task| self.snapshots.get(task));
        match known.filter(|_| purpose == Purpose::TaskGet) {
            Some(snapshot) if self.now_ms < snapshot.since_ms + TASK_TTL_MS => {
                let message = refusal.what.as_str();
                replies.complete(handle, |result| {
                    members(result, snapshot, "working", Some(message));
                });
            }
            Some(snapshot) => replies.complete(handle, |result| {
                task_members(result, snapshot, "failed");
                result.object("error", |error| {
                    error.signed("code", errors::RpcErrorCode::Internal as i64);
                    error.string("message", refusal.what.as_str());
                });
            }),
            None => {
                let quote = refusal.what.as_str();
                let what = "the executor cannot be asked";
                let error = RpcError::quoting(errors::RpcErrorCode::Internal, what, quote);
                replies.refuse(handle, error);
            }
        }
    }
}

/// Whether an answer tells of the task that was asked for. A submit may be answered with an older
/// task that does the same.
fn is_told_of(pending: &PendingCall, told: &TaskUpdate<'_>) -> bool {
    let older = pending.purpose == Purpose::Submit && told.duplicate;
    older || pending.task == Some(told.task)
}

/// The record of a task that has ended, if it is there. One that breaks its grammar is not shown.
fn record_of<'a>(told: &TaskUpdate<'a>) -> Result<Option<Record<'a>>, ToolRefusal> {
    let Some(record) = told.record.filter(|_| told.state.is_final()) else {
        return Ok(None);
    };
    let subject = Subject {
        task: told.task,
        state: told.state,
    };
    Record::check(record, subject).map(Some).map_err(|bad| {
        let what = format_args!("the record of the task is not shown: its {bad}");
        ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what).of_task(Some(told.task))
    })
}

fn not_understood() -> ToolRefusal {
    let what = format_args!("the executor's answer does not name the task and its state");
    ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what)
}

/// A task that was accepted.
fn accepted(result: &mut ObjectWriter<'_>, snapshot: &Snapshot, duplicate: bool) {
    result.formatted("task_id", format_args!("{}", snapshot.task));
    result.string("state", snapshot.state.name());
    if let Some(position) = snapshot.position {
        result.unsigned("position", position);
    }
    result.boolean("duplicate", duplicate);
    result.string("created_at", snapshot.created_at.as_str());
    if !snapshot.state.is_final() {
        result.unsigned("poll_after_ms", poll_ms(snapshot.state));
    }
    result.string("next", NEXT);
}

/// How a task stands.
pub fn status_members(result: &mut ObjectWriter<'_>, snapshot: &Snapshot) {
    result.formatted("task_id", format_args!("{}", snapshot.task));
    result.string("state", snapshot.state.name());
    if let Some(position) = snapshot.position {
        result.unsigned("position", position);
    }
    let words = [
        ("phase", snapshot.phase.as_str()),
        ("message", snapshot.message.as_str()),
        ("created_at", snapshot.created_at.as_str()),
        ("updated_at", snapshot.updated_at.as_str()),
        ("last_output_at", snapshot.last_output_at.as_str()),
    ];
    for (name, word) in words.into_iter().filter(|(_, word)| !word.is_empty()) {
        result.string(name, word);
    }
    if let Some(progress) = snapshot.progress {
        result.float("progress", progress);
    }
    if !snapshot.state.is_final() {
        result.unsigned("poll_after_ms", poll_ms(snapshot.state));
        result.string("next", NEXT);
    }
}

fn poll_ms(state: TaskState) -> u64 {
    match state {
        TaskState::Queued => TASK_POLL_QUEUED_MS,
        _ => TASK_POLL_MS,
    }
}

/// A task as the tasks extension has it, with what the executor says of it.
pub fn task_members(result: &mut ObjectWriter<'_>, snapshot: &Snapshot, status: &str) {
    members(result, snapshot, status, None);
}

fn members(
    result: &mut ObjectWriter<'_>,
    snapshot: &Snapshot,
    status: &str,
    message: Option<&str>,
) {
    result.formatted("taskId", format_args!("{}", snapshot.task));
    result.string("status", status);
    match message {
        Some(message) => result.string("statusMessage", message),
        None => result.formatted("statusMessage", format_args!("{}", StatusLine(snapshot))),
    }
    result.string("createdAt", snapshot.created_at.as_str());
    result.string("lastUpdatedAt", snapshot.updated_at.as_str());
    result.unsigned("ttlMs", TASK_TTL_MS);
    if !snapshot.state.is_final() {
        result.unsigned("pollIntervalMs", poll_ms(snapshot.state));
    }
}

/// How a task stands, in one line for people.
#[derive(Debug)]
pub struct StatusLine<'a>(pub &'a Snapshot);

impl std::fmt::Display for StatusLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let snapshot = self.0;
        f.write_str(snapshot.state.name())?;
        if let Some(position) = snapshot.position {
            write!(f, ", number {position} of those that wait")?;
        }
        for word in [snapshot.phase.as_str(), snapshot.message.as_str()] {
            if !word.is_empty() {
                write!(f, ": {word}")?;
            }
        }
        match snapshot.progress {
            Some(part) => write!(f, " ({:.0} %)", 100.0 * part),
            None => Ok(()),
        }
    }
}

/// Answers `tasks/get` (Tasks Extension, Getting Task Status). What did not succeed is a completed
/// task whose result is an error, of which clients show a model the text alone.
fn task_stands(
    told: &TaskUpdate<'_>,
    record: Result<Option<Record<'_>>, ToolRefusal>,
    snapshot: &Snapshot,
    handle: RequestHandle,
    replies: &mut Replies<'_>,
) {
    let completed = |result: &mut ObjectWriter<'_>| task_members(result, snapshot, "completed");
    let record = match record {
        Ok(record) => record,
        Err(refusal) => {
            return replies.complete_with(handle, completed, |reply| refusal.write(reply));
        }
    };
    let fill = |result: &mut ObjectWriter<'_>| {
        status_members(result, snapshot);
        result.object("record", |writer| {
            if let Some(record) = record {
                record.write(writer);
            }
        });
    };
    match told.state {
        TaskState::Ended(Outcome::Cancelled) => {
            replies.complete(handle, |result| task_members(result, snapshot, "cancelled"));
        }
        TaskState::Ended(Outcome::Expired) => {
            replies.refuse(handle, RpcError::invalid_params("the task is not known"))
        }
        TaskState::Ended(Outcome::Succeeded) => {
            replies.complete_with(handle, completed, |reply| reply.structured(fill));
        }
        state if state.is_final() => replies.complete_with(handle, completed, |reply| {
            let why = record.map_or(Sanitized::new("it gave no reason", 64), Record::reason);
            let (name, advice) = (state.name(), advice(state));
            reply.failure(format_args!("{name}: {why}. {advice}."), fill)
        }),
        _ => replies.complete(handle, |result| task_members(result, snapshot, "working")),
    }
}

/// What to do about a task that did not succeed.
fn advice(state: TaskState) -> &'static str {
    match state {
        TaskState::Ended(Outcome::NeedsInput) => {
            "Submit a task with follow_up_to set to this task_id and the answer in its goal"
        }
        TaskState::Ended(Outcome::Interrupted) => {
            "Nothing is run again by itself: look at what is there, then decide"
        }
        TaskState::Ended(Outcome::TimedOut) => {
            "Submit a smaller task, or one with a longer timeout_s"
        }
        _ => "Look at the gates and at the diff with larry_task_result before trying again",
    }
}

fn list(
    result: Object<'_>,
    handle: RequestHandle,
    replies: &mut Replies<'_>,
) -> Result<(), ToolRefusal> {
    let tasks = result.get("tasks").and_then(|tasks| tasks.as_array());
    let tasks = tasks.ok_or_else(|| {
        let what = format_args!("the executor's answer has no list of tasks");
        ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what)
    })?;
    let objects = || tasks.iter().filter_map(|task| task.as_object());
    // As its client gave it, and every client gives an absolute path.
    let mut repos = objects().filter_map(|task| task.get("repo")?.as_str());
    if !repos.all(|repo| repo.starts_with('/')) {
        let what =
            format_args!("the repo of a task in the executor's list is not an absolute path");
        return Err(ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what));
    }
    let told = objects().filter_map(|task| Some((TaskUpdate::parse(task)?, task)));
    replies.answer(handle, |reply| {
        reply.structured(|result| {
            result.array("tasks", |list| {
                for (told, task) in told.take(EXECUTOR_LIST_MAX) {
                    list.object(|object| listed(object, &told, task));
                }
            });
        })
    });
    Ok(())
}

fn listed(object: &mut ObjectWriter<'_>, told: &TaskUpdate<'_>, task: Object<'_>) {
    let plain = |object: &mut ObjectWriter<'_>, name, text: &str, bytes_max| {
        if !text.is_empty() {
            object.formatted(name, format_args!("{}", Sanitized::new(text, bytes_max)));
        }
    };
    let text = |name| {
        task.get(name)
            .and_then(|text| text.as_str())
            .unwrap_or_default()
    };
    object.formatted("task_id", format_args!("{}", told.task));
    object.string("state", told.state.name());
    plain(object, "goal", text("goal"), EXECUTOR_MESSAGE_BYTES_MAX);
    plain(object, "repo", text("repo"), EXECUTOR_ENVELOPE_BYTES_MAX);
    plain(
        object,
        "created_at",
        told.created_at,
        EXECUTOR_FIELD_BYTES_MAX,
    );
    plain(
        object,
        "updated_at",
        told.updated_at,
        EXECUTOR_FIELD_BYTES_MAX,
    );
}

fn pages(
    page: PageRequest,
    told: &TaskUpdate<'_>,
    result: Object<'_>,
    handle: RequestHandle,
    replies: &mut Replies<'_>,
) -> Result<(), ToolRefusal> {
    let text = result.get("text").and_then(|text| text.as_str());
    let total = result.get("total");
    let (Some(text), Some(Value::Unsigned(total))) = (text, total) else {
        let what = format_args!("the executor's answer has no text and no total");
        return Err(ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what));
    };
    if text.len() > EXECUTOR_PAGE_BYTES_MAX {
        let what = format_args!("the executor's page is longer than 24576 bytes");
        return Err(ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what));
    }
    let next_offset = match result.get("next_offset") {
        Some(Value::Unsigned(next)) if next > page.offset => Some(next),
        _ => None,
    };
    let path = result.get("path").and_then(|path| path.as_str());
    if !path.is_none_or(grammar::is_absolute_path) {
        let what = format_args!("the path of the executor's page is not an absolute path");
        return Err(ToolRefusal::new(TaskErrorCode::ExecutorProtocol, what));
    }
    replies.answer(handle, |reply| {
        reply.structured(|result| {
            result.formatted("task_id", format_args!("{}", told.task));
            result.string("part", page.part);
            result.string("state", told.state.name());
            result.formatted("text", format_args!("{}", Sanitized::file(text)));
            result.unsigned("offset", page.offset);
            match next_offset {
                Some(next_offset) => result.unsigned("next_offset", next_offset),
                None => result.raw("next_offset", "null"),
            }
            result.unsigned("total", total);
            if let Some(path) = path {
                let path = Sanitized::name(path, EXECUTOR_ENVELOPE_BYTES_MAX);
                result.formatted("path", format_args!("{path}"));
            }
        })
    });
    Ok(())
}

const _: () = assert!(EXECUTOR_RECORD_BYTES_MAX == 32_768 && EXECUTOR_PAGE_BYTES_MAX == 24_576);
