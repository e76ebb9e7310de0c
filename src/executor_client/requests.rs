//! From the client: a call, or a method of the tasks extension, becomes a line for the executor,
//! or is answered from what is known.

use crate::executor_client::dispatcher::{
    Dispatcher, PageRequest, PendingCall, Purpose, RefusalReason, Stage, compose,
};
use crate::executor_client::errors::ToolRefusal;
use crate::executor_client::link::Features;
use crate::executor_client::responses::{status_members, task_members};
use crate::executor_client::task_update::Snapshot;
use crate::executor_client::tools::{
    CancelArguments, ExecutorTool, ResultArguments, StatusArguments, TOOLS,
};
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::limits::{CLIENT_INFO_BYTES_MAX, EXECUTOR_LIST_MAX, TASK_POLL_MS};
use crate::mcp::delegate::{DelegatedRequest, Replies, RequestHandle, RequestKind};
use crate::mcp::errors::RpcError;
use crate::mcp::tool::Call;
use crate::task::arguments::{TaskOptions, TaskRequest};
use crate::task::id::TaskId;
use crate::task::submit;
use crate::wire::json::Array;
use crate::wire::writer::{ArrayWriter, ObjectWriter, start_of};

/// What cannot be asked is refused at once.
type Asked = Result<(), ToolRefusal>;

impl Dispatcher {
    /// Takes a request on.
    pub fn ask(
        &mut self,
        request: DelegatedRequest<'_>,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    ) {
        let asked = match request.kind {
            RequestKind::Call(number, call) => match TOOLS[number] {
                ExecutorTool::Submit => self.submit(request, call, handle, replies),
                ExecutorTool::Status => self.status(call, handle, replies),
                ExecutorTool::Result => self.page(call, handle),
                ExecutorTool::Cancel => self.cancel(call, handle),
            },
            RequestKind::TaskGet(task)
            | RequestKind::TaskUpdate(task)
            | RequestKind::TaskCancel(task) => {
                return match TaskId::parse(task) {
                    Some(task) => self.task_method(request.kind, task, handle, replies),
                    None => {
                        replies.refuse(handle, RpcError::invalid_params("the task is not known"))
                    }
                };
            }
        };
        if let Err(refusal) = asked {
            replies.answer(handle, |reply| refusal.write(reply));
        }
    }

    /// Hears that nobody waits for an answer any more. What was submitted stays submitted.
    pub fn forget(&mut self, handle: RequestHandle) {
        let forgotten =
            |pending: &PendingCall| pending.handle == handle && pending.purpose != Purpose::Submit;
        for pending in self.pending.iter().filter(|pending| forgotten(pending)) {
            self.link.unanswered.answer(pending.serial);
        }
        self.pending.retain(|pending| !forgotten(pending));
    }

    fn submit(
        &mut self,
        request: DelegatedRequest<'_>,
        call: Call<'_>,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    ) -> Asked {
        let (task_request, options) =
            match TaskRequest::parse_with_options(call.arguments, call.arena) {
                Ok(task_request) => task_request,
                Err(faults) => {
                    replies.answer(handle, |reply| submit::invalid_arguments(&faults, reply));
                    return Ok(());
                }
            };
        if self.settings.depth > 0 {
            let what = format_args!("this is a task already, and a task cannot submit another");
            return Err(ToolRefusal::new(TaskErrorCode::DepthExceeded, what));
        }
        let task = TaskId::new((self.settings.random)());
        self.begin(
            Purpose::Submit,
            handle,
            Some(task),
            "task/submit",
            |params| {
                submission(params, task, &task_request, options, request.client);
            },
        )
    }

    fn status(
        &mut self,
        call: Call<'_>,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    ) -> Asked {
        let arguments = StatusArguments::parse(call.arguments)?;
        let Some(task) = arguments.task else {
            return self.list(handle);
        };
        let wait_until_ms = match arguments.wait_s {
            0 => 0,
            wait_s => self.now_ms + 1000 * wait_s,
        };
        let purpose = Purpose::Status { wait_until_ms };
        if wait_until_ms == 0
            && let Some(snapshot) = self.live(task)
        {
            replies.answer(handle, |reply| {
                reply.structured(|result| status_members(result, snapshot))
            });
            return Ok(());
        }
        self.begin(purpose, handle, Some(task), "task/get", |params| {
            summary(params, task)
        })
    }

    /// The snapshot of a task that has not ended and whose every change is sent to the client.
    pub fn live(&self, task: TaskId) -> Option<&Snapshot> {
        let snapshot = self.snapshots.get(task)?;
        let is_followed =
            self.link.features()?.progress && snapshot.connection == self.link.connection();
        (is_followed && !snapshot.state.is_final()).then_some(snapshot)
    }

    fn list(&mut self, handle: RequestHandle) -> Asked {
        self.offers(|features| features.list, RefusalReason::NoList)?;
        self.begin(Purpose::List, handle, None, "task/list", |params| {
            params.raw("repo", "null");
            params.unsigned("limit", EXECUTOR_LIST_MAX as u64);
        })
    }

    fn page(&mut self, call: Call<'_>, handle: RequestHandle) -> Asked {
        let arguments = ResultArguments::parse(call.arguments)?;
        self.offers(|features| features.page, RefusalReason::NoPages)?;
        let part = match arguments.part {
            "diff" => "diff",
            "log" => "log",
            _ => "gates",
        };
        let page = PageRequest {
            part,
            offset: arguments.offset,
        };
        let task = arguments.task;
        self.begin(
            Purpose::Page(page),
            handle,
            Some(task),
            "task/get",
            |params| {
                params.formatted("task_id", format_args!("{task}"));
                params.string("part", part);
                params.unsigned("offset", arguments.offset);
                params.unsigned("limit", arguments.limit);
            },
        )
    }

    fn cancel(&mut self, call: Call<'_>, handle: RequestHandle) -> Asked {
        let arguments = CancelArguments::parse(call.arguments)?;
        let (task, reason) = (arguments.task, arguments.reason);
        self.begin(
            Purpose::Cancel,
            handle,
            Some(task),
            "task/cancel",
            |params| {
                cancellation(params, task, reason.unwrap_or("asked for by the client"));
            },
        )
    }

    fn task_method(
        &mut self,
        ask: RequestKind<'_>,
        task: TaskId,
        handle: RequestHandle,
        replies: &mut Replies<'_>,
    ) {
        let (purpose, asked) = match ask {
            RequestKind::TaskCancel(_) => {
                let purpose = Purpose::TaskCancel;
                let asked = self.begin(purpose, handle, Some(task), "task/cancel", |params| {
                    cancellation(params, task, "asked for by the client");
                });
                (purpose, asked)
            }
            RequestKind::TaskUpdate(_) if self.snapshots.get(task).is_some() => {
                // Nothing was asked of the client, so whatever it gives is taken and not used.
                return replies.complete(handle, |_| {});
            }
            ask => {
                let purpose = match ask {
                    RequestKind::TaskUpdate(_) => Purpose::TaskUpdate,
                    _ => Purpose::TaskGet,
                };
                if let Some(snapshot) = self.live(task) {
                    return replies.complete(handle, |result| {
                        task_members(result, snapshot, "working");
                    });
                }
                let asked = self.begin(purpose, handle, Some(task), "task/get", |params| {
                    summary(params, task);
                });
                (purpose, asked)
            }
        };
        if let Err(refusal) = asked {
            self.refuse(purpose, handle, Some(task), &refusal, replies);
        }
    }

    /// Whether the executor offers something, as far as it has said hello yet.
    fn offers(&self, offered: fn(Features) -> bool, why: RefusalReason) -> Asked {
        match self.link.features() {
            Some(features) if !offered(features) => Err(self.refusal(why)),
            _ => Ok(()),
        }
    }

    /// Why somebody is refused, in words.
    pub fn refusal(&self, why: RefusalReason) -> ToolRefusal {
        let unsupported = |what| ToolRefusal::new(TaskErrorCode::Unsupported, what);
        match why {
            RefusalReason::Absent => self.link.absence(),
            RefusalReason::NoList => {
                unsupported(format_args!("this executor has no list of tasks"))
            }
            RefusalReason::NoPages => {
                unsupported(format_args!("this executor has no pages of results"))
            }
        }
    }

    /// Asks anew about a task for somebody who wants to know how it stands. What was asked before
    /// and not answered counts no more.
    pub fn ask_again(&mut self, index: usize) {
        self.link.unanswered.answer(self.pending[index].serial);
        let serial = self.serial();
        let until_ms = self.call_deadline();
        let Some(task) = self.pending[index].task else {
            unreachable!("who wants to know how a task stands, names it");
        };
        let line = compose(&mut self.scratch, serial, "task/get", |params| {
            summary(params, task);
        });
        let line = line.expect("a question is short");
        let pushed = self.link.unanswered.push(serial, line);
        assert!(pushed.is_ok(), "room is kept for those who wait");
        let pending = &mut self.pending[index];
        pending.serial = serial;
        pending.stage = Stage::Asked { until_ms };
    }

    /// Has somebody wait for the end of a task. An executor that sends no updates is asked again
    /// from time to time.
    pub fn wait(&mut self, pending: PendingCall, changed: bool) {
        let has_updates = self.link.features().is_some_and(|offers| offers.progress);
        let stage = Stage::Waiting {
            changed,
            look_at_ms: (!has_updates).then_some(self.now_ms + TASK_POLL_MS),
        };
        self.pending.push(PendingCall { stage, ..pending });
    }
}

fn submission(
    params: &mut ObjectWriter<'_>,
    task: TaskId,
    request: &TaskRequest<'_>,
    options: TaskOptions<'_>,
    client: Option<(&str, &str)>,
) {
    params.formatted("task_id", format_args!("{task}"));
    text_or_null(params, "key", options.idempotency_key);
    params.string("goal", request.goal);
    params.string("repo", request.repo);
    match request.files {
        Some(files) => params.array("files", |list| texts(list, files)),
        None => params.raw("files", "null"),
    }
    params.array("acceptance", |list| texts(list, request.acceptance));
    match options.timeout_s {
        Some(timeout_s) => params.unsigned("deadline_s", timeout_s),
        None => params.raw("deadline_s", "null"),
    }
    match options.follow_up_to {
        Some(task) => params.formatted("follow_up_to", format_args!("{task}")),
        None => params.raw("follow_up_to", "null"),
    }
    match client.filter(|(name, _)| !name.is_empty()) {
        Some((name, version)) => params.object("client", |client| {
            client.string("name", start_of(name, CLIENT_INFO_BYTES_MAX));
            client.string("version", start_of(version, CLIENT_INFO_BYTES_MAX));
        }),
        None => params.raw("client", "null"),
    }
}

fn text_or_null(params: &mut ObjectWriter<'_>, name: &str, text: Option<&str>) {
    match text {
        Some(text) => params.string(name, text),
        None => params.raw(name, "null"),
    }
}

fn texts(list: &mut ArrayWriter<'_>, entries: Array<'_>) {
    for text in entries.iter().filter_map(|entry| entry.as_str()) {
        list.string(text);
    }
}

fn summary(params: &mut ObjectWriter<'_>, task: TaskId) {
    params.formatted("task_id", format_args!("{task}"));
    params.string("part", "summary");
    params.unsigned("offset", 0);
    params.unsigned("limit", 0);
}

fn cancellation(params: &mut ObjectWriter<'_>, task: TaskId, reason: &str) {
    params.formatted("task_id", format_args!("{task}"));
    params.string("reason", reason);
}
