//! Every bound of the server, with its reason and the relations between them.
//!
//! Nothing else in the crate contains a bare size. `limits.md` beside this file has the same bounds
//! as a table for people, and a test compares each row.

/// The longest frame in bytes, its LF not counted. A task with its goal, scope and acceptance is
/// a few KiB; a mebibyte leaves two decimal orders, and sets the parser's memory (see
/// [`PARSER_BYTES_PER_FRAME_BYTE`]).
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The ring holds one partial frame of the longest kind and as much again, so that reading goes
/// on while one frame waits for the outbox.
pub const RING_BYTES: usize = 2 * FRAME_BYTES_MAX;

/// What one `read` may take: a pipe's capacity, which keeps a turn short and the touched part of
/// the ring small.
pub const READ_BYTES_MAX: usize = 64 << 10;

/// A partial frame up to this size is moved to the front of the ring before the next read, so
/// that steady traffic stays in the same few pages. Moving a page costs less than touching one.
pub const RING_PULL_BYTES_MAX: usize = 4 << 10;

/// Readable bytes that the parser needs behind a frame.
pub const FRAME_PADDING_BYTES: usize = 64;

/// Nesting of objects and arrays in a frame. No message needs a tenth of it.
pub const DEPTH_MAX: usize = 1024;

/// Frames up to this size are parsed with buffers that stay; a longer one gets buffers of its own
/// that are given back right after its reply.
pub const FRAME_BYTES_WARM: usize = 16 << 10;

/// What the parser may claim for each byte of a frame: a tape node of 24 bytes and a structural
/// index of 4, doubled by growth, for a frame of structural bytes alone.
pub const PARSER_BYTES_PER_FRAME_BYTE: usize = 34;

/// Messages in one batch of revision 2025-03-26. Its reply is one line and has to be held whole.
pub const BATCH_MESSAGES_MAX: usize = 1024;

/// Above this many unsent bytes no further frame is served until the client reads. It is four
/// pipes' capacity, so that a burst of requests shares few writes.
pub const OUTBOX_HIGH_WATER_BYTES: usize = 256 << 10;

/// What the results of one frame may take. A single result rarely passes a few KiB; what does not
/// fit is answered with an internal error.
pub const RESULTS_BYTES_MAX: usize = 3 << 20;

/// What the ids and versions of one frame take when echoed: three bytes of U+2028 become six.
pub const IDS_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// One error reply without its id: a sentence, and a quote of which every byte may need three.
pub const ERROR_BYTES_MAX: usize = 1024;

/// The outbox holds what was unsent when a frame was begun and all that the frame may add.
pub const OUTBOX_BYTES: usize = OUTBOX_HIGH_WATER_BYTES
    + RESULTS_BYTES_MAX
    + IDS_BYTES_MAX
    + BATCH_MESSAGES_MAX * ERROR_BYTES_MAX;

/// How much of a client's own text (a tool's name, an unknown member) an error repeats.
pub const QUOTE_BYTES_MAX: usize = 128;

/// The arena of one frame: what a tool call needs for its lists. A task of 1,024 files needs a
/// tenth of it.
pub const ARENA_BYTES_MAX: usize = 1 << 20;

/// The arena's first chunk, enough for a typical call.
pub const ARENA_BYTES_WARM: usize = 4 << 10;

/// Buffers that have touched more than this are given back when the server comes to rest.
pub const RESTING_BYTES_MAX: usize = 64 << 10;

/// How long input stays silent before the server rests: it reads once more, in case a short read
/// was not the end, and gives large buffers back.
pub const REST_AFTER_MS: u64 = 100;

/// The longest time that `--busy-poll` may spin before it sleeps, in microseconds. Beyond a
/// millisecond the CPU that it burns buys nothing.
pub const BUSY_POLL_US_MAX: u64 = 1_000;

/// Turns that may pass without a look at signals and at the reader while spinning finds input.
pub const BUSY_TURNS_MAX: u32 = 64;

/// After the end of input: how long the reader may take no byte before its replies are given up.
pub const FLUSH_STALL_MS: u64 = 1_500;

/// After the end of input: how long flushing may take in all.
pub const FLUSH_TOTAL_MS: u64 = 10_000;

/// After the end of input: how long before a full output is tried again. A socket tells of room
/// only when most of its buffer is free, though a slow reader has taken some.
pub const FLUSH_RETRY_MS: u64 = 100;

/// After a signal: how long flushing may take. Clients send SIGKILL soon after SIGTERM.
pub const FLUSH_SIGNAL_MS: u64 = 50;

/// A terminal takes its output in pieces of this size, since no larger one is sure not to block.
pub const BLOCKING_WRITE_BYTES_MAX: usize = 512;

/// Subscriptions that are open at once. A client has use for one or two.
pub const SUBSCRIPTIONS_MAX: usize = 32;

/// An id that outlives its frame: of a subscription, or of a call that is answered later. Clients
/// count, or use a UUID.
pub const KEPT_ID_BYTES_MAX: usize = 128;

/// Requests that were taken on and are answered later: calls of the executor, those that wait for a
/// task, and one more that is told that there is no room for it.
pub const DEFERRED_MAX: usize = EXECUTOR_CALLS_MAX + EXECUTOR_WAITS_MAX + 1;

/// A client's name, and its version, as they are told to an executor.
pub const CLIENT_WORD_BYTES_MAX: usize = 64;

/// How long a client may keep what `server/discover` and `tools/list` say. It cannot change while
/// a server runs, so only an upgrade is noticed that much later.
pub const CACHE_TTL_MS: u64 = 3_600_000;

/// Tools of one server. `tools/list` is prebuilt per revision and page.
pub const TOOLS_MAX: usize = 1024;

/// A tool's name: the longest that the specification and the conformance suite both accept.
pub const TOOL_NAME_BYTES_MAX: usize = 64;

/// An answer that is always the same, [`Prepared`](crate::mcp::prepared::Prepared). It is written
/// into a buffer of this size, which has to be of the small kind of the allocator: glibc keeps the
/// memory of every large block once one of its size was given back.
pub const PREPARED_BYTES_MAX: usize = 65_536;

/// `goal` of a task, in bytes of UTF-8.
pub const TASK_GOAL_BYTES_MAX: usize = 64 << 10;

/// `repo` of a task: Linux's PATH_MAX.
pub const TASK_REPO_BYTES_MAX: usize = 4 << 10;

/// Entries of `acceptance`.
pub const TASK_ACCEPTANCE_MAX: usize = 64;

/// One entry of `acceptance`.
pub const TASK_ACCEPTANCE_BYTES_MAX: usize = 4 << 10;

/// Entries of `files`.
pub const TASK_FILES_MAX: usize = 1024;

/// One entry of `files`: Linux's PATH_MAX.
pub const TASK_FILE_BYTES_MAX: usize = 4 << 10;

/// Faults that one refusal lists. Further ones are counted.
pub const TASK_FAULTS_MAX: usize = 256;

/// One line to or from an executor, its LF not counted (rocco-exec/1, Transport).
pub const EXECUTOR_LINE_BYTES_MAX: usize = 256 << 10;

/// The ring of an executor's lines, as [`RING_BYTES`] is that of a client's.
pub const EXECUTOR_RING_BYTES: usize = 2 * EXECUTOR_LINE_BYTES_MAX;

/// Lines to an executor that were not sent or not answered. They are kept to be sent again.
pub const EXECUTOR_UNANSWERED_BYTES_MAX: usize = 1 << 20;

/// How many such lines there may be, those that were answered out of their order included.
pub const EXECUTOR_UNANSWERED_MAX: usize = 1024;

/// Of those bytes, what is kept for short lines, such as the question after a task that somebody
/// waits for.
pub const EXECUTOR_SHORT_LINES_BYTES: usize = 64 << 10;

/// One such short line.
pub const EXECUTOR_SHORT_LINE_BYTES_MAX: usize = 512;

/// Calls of the executor's tools that are under way at once.
pub const EXECUTOR_CALLS_MAX: usize = 64;

/// Calls that wait for a task at once, beside those.
pub const EXECUTOR_WAITS_MAX: usize = 32;

/// Tasks of which the last state is remembered. The oldest that have ended go first, and one that
/// is missing costs a question to the executor.
pub const EXECUTOR_SNAPSHOTS_MAX: usize = 256;

/// A task's record (rocco-exec/1, The record).
pub const EXECUTOR_RECORD_BYTES_MAX: usize = 32 << 10;

/// What an answer may have around its record: ids, times and a message.
pub const EXECUTOR_ENVELOPE_BYTES_MAX: usize = 4 << 10;

/// A page of a diff, a log or the gates, and what a call gets that asks for no size.
pub const EXECUTOR_PAGE_BYTES_MAX: usize = 24 << 10;

/// What an executor says of a task in one line for people.
pub const EXECUTOR_MESSAGE_BYTES_MAX: usize = 200;

/// A shorter word of an executor's: a phase, a time, a reason.
pub const EXECUTOR_WORD_BYTES_MAX: usize = 64;

/// How many tasks a list has.
pub const EXECUTOR_LIST_MAX: usize = 20;

/// Lines that an executor may get wrong before its connection is ended.
pub const EXECUTOR_FAULTS_MAX: u32 = 3;

/// How long an executor may take to answer a call. Answers come within microseconds; a client has
/// a minute at least.
pub const EXECUTOR_CALL_MS: u64 = 2_000;

/// How long it may take to start and answer `hello`.
pub const EXECUTOR_HELLO_MS: u64 = 5_000;

/// How long to wait before the first attempt to connect again, doubled with each.
pub const EXECUTOR_RETRY_MS: u64 = 50;

/// The longest time between two attempts.
pub const EXECUTOR_RETRY_MS_MAX: u64 = 5_000;

/// How long a call may wait for a task: below the 60 seconds after which clients give up.
pub const EXECUTOR_WAIT_S_MAX: u64 = 45;

/// How often a client that waits and wants to hear of it is told that nothing has happened.
pub const EXECUTOR_PROGRESS_MS: u64 = 15_000;

/// How often it is told at most that something has.
pub const EXECUTOR_PROGRESS_MS_MIN: u64 = 250;

/// After the end of input: how long calls that are under way may take.
pub const EXECUTOR_END_MS: u64 = 50;

/// After the end: how long a child may take to leave before it is killed.
pub const EXECUTOR_LEAVE_MS: u64 = 40;

/// After the end: how long a child that was killed may take to die. Most take no millisecond; one
/// that the system does not let die is left to it.
pub const EXECUTOR_REAP_MS: u64 = 500;

/// How long a task may be given, in seconds: a day.
pub const TASK_TIMEOUT_S_MAX: u64 = 86_400;

/// An idempotency key. A UUID has 36.
pub const TASK_KEY_BYTES_MAX: usize = 128;

/// How often a client should ask for a task that runs.
pub const TASK_POLL_MS: u64 = 2_000;

/// How often a client should ask for a task that waits for its turn.
pub const TASK_POLL_QUEUED_MS: u64 = 5_000;

/// How long a client may ask for a task: as long as executors keep it, a week.
pub const TASK_TTL_MS: u64 = 7 * 86_400_000;

// `rocco executor`, a process of its own.

/// Tasks that run at once, unless the operator says otherwise. Agents are heavy.
pub const TASKS_RUNNING: usize = 2;

/// Tasks that run at once, at most.
pub const TASKS_RUNNING_MAX: usize = 64;

/// Tasks that wait, unless the operator says otherwise.
pub const TASKS_QUEUED: usize = 32;

/// Tasks that wait, at most.
pub const TASKS_QUEUED_MAX: usize = 1024;

/// Tasks that are accepted within a minute: a model that has gone astray submits for ever.
pub const TASK_SUBMISSIONS_PER_MINUTE_MAX: usize = 30;

/// Tasks that are kept. The oldest that have ended go first.
pub const TASKS_KEPT_MAX: usize = 10_000;

/// What the files of all tasks that have ended may take on disk. The largest clones go first, then the
/// largest records.
pub const TASKS_BYTES_MAX: u64 = 1 << 30;

/// How often it looks for tasks that are past keeping.
pub const TASK_EXPIRY_MS: u64 = 3_600_000;

/// The names of tasks that are no longer kept. The oldest go first.
pub const EXPIRED_BYTES_MAX: usize = 1 << 20;

/// How long a task may run, unless it or the operator says otherwise.
pub const TASK_DEADLINE_S: u64 = 3_600;

/// How long an agent may be silent, unless the operator says otherwise.
pub const TASK_SILENCE_S: u64 = 600;

/// How long what runs has to leave after SIGTERM, before SIGKILL.
pub const TASK_KILL_MS: u64 = 5_000;

/// How long killing what is left of a task may take. Only what cannot be killed needs it.
pub const TASK_SWEEP_MS: u64 = 5_000;

/// How often a task that runs is looked at.
pub const TASK_TICK_MS: u64 = 50;

/// How long an executor that starts waits for those who look at its tasks. A look takes microseconds.
pub const STATE_LOCK_MS_MAX: u64 = 5_000;

/// How long a change of state may wait to be brought to the disk, when it need not be there at
/// once.
pub const TASK_SYNC_MS: u64 = 50;

/// One line that the executor writes: twice what it reads, since escapes may double it.
pub const TASK_JSON_BYTES_MAX: usize = 1 << 20;

/// A task's log; what is between its start and its end is left out.
pub const TASK_LOG_BYTES_MAX: u64 = 16 << 20;

/// What the gates of a task print, in the same way.
pub const GATES_LOG_BYTES_MAX: u64 = 4 << 20;

/// The end of a gate's output in a record.
pub const GATE_TAIL_BYTES_MAX: usize = 2 << 10;

/// Gates that an operator defines, and that a record has.
pub const GATES_MAX: usize = 32;

/// How long a gate may run, unless its definition says otherwise.
pub const GATE_TIMEOUT_S: u64 = 600;

/// What an agent says it did, and what it asks.
pub const TASK_SUMMARY_BYTES_MAX: usize = 4 << 10;

/// The file in which an agent says so.
pub const TASK_OUTCOME_BYTES_MAX: usize = 64 << 10;

/// Paths that a list of a record has.
pub const TASK_PATHS_LISTED_MAX: usize = 200;

/// A goal in a list of tasks.
pub const TASK_GOAL_LISTED_BYTES_MAX: usize = 200;

/// How long a command that took too long has to leave after SIGTERM, before SIGKILL: git removes
/// its locks in less.
pub const COMMAND_KILL_MS: u64 = 100;

/// How soon the end of a command is seen that prints nothing more, at first.
pub const COMMAND_TICK_MS: u64 = 1;

/// The same for one that has been silent for a while: a command that takes long costs little.
pub const COMMAND_TICK_MS_MAX: u64 = 16;

/// How long one command of git may take.
pub const GIT_TIMEOUT_S: u64 = 120;

/// What is read of what git prints. A diff goes to a file instead.
pub const GIT_OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Fronts that are connected at once.
pub const FRONTS_MAX: usize = 64;

/// Replies that wait for a front to take them. The executor reads on when there are fewer.
pub const FRONT_REPLIES_MAX: usize = 64;

/// What the process may hold at its worst, term by term: the ring, the outbox, the parser's
/// buffers for the longest frame and those that stay, the arena; and for an executor its ring, what
/// it has not answered, a line that is being written, and the parser's buffers that stay. Its lines
/// are parsed when no frame is.
pub const fn memory_budget_bytes() -> usize {
    RING_BYTES
        + FRAME_PADDING_BYTES
        + OUTBOX_BYTES
        + FRAME_BYTES_MAX * PARSER_BYTES_PER_FRAME_BYTE
        + FRAME_BYTES_WARM * PARSER_BYTES_PER_FRAME_BYTE
        + ARENA_BYTES_MAX
        + EXECUTOR_RING_BYTES
        + FRAME_PADDING_BYTES
        + EXECUTOR_UNANSWERED_BYTES_MAX
        + EXECUTOR_LINE_BYTES_MAX
        + FRAME_BYTES_WARM * PARSER_BYTES_PER_FRAME_BYTE
}

const _: () = {
    assert!(READ_BYTES_MAX <= RING_BYTES - FRAME_BYTES_MAX);
    assert!(RING_PULL_BYTES_MAX <= READ_BYTES_MAX);
    assert!(FRAME_BYTES_WARM < FRAME_BYTES_MAX);
    assert!(FRAME_BYTES_MAX <= u32::MAX as usize);
    assert!(ARENA_BYTES_WARM <= RESTING_BYTES_MAX && RESTING_BYTES_MAX <= ARENA_BYTES_MAX);
    assert!(3 * QUOTE_BYTES_MAX + 256 <= ERROR_BYTES_MAX);
    assert!(TASK_GOAL_BYTES_MAX < FRAME_BYTES_MAX);
    assert!(SUBSCRIPTIONS_MAX <= BATCH_MESSAGES_MAX);
    assert!(6 * KEPT_ID_BYTES_MAX <= ERROR_BYTES_MAX);
    assert!(FLUSH_SIGNAL_MS < FLUSH_STALL_MS && FLUSH_STALL_MS < FLUSH_TOTAL_MS);
    assert!(FLUSH_RETRY_MS < FLUSH_STALL_MS);
    assert!(READ_BYTES_MAX <= EXECUTOR_RING_BYTES - EXECUTOR_LINE_BYTES_MAX);
    assert!(EXECUTOR_LINE_BYTES_MAX < FRAME_BYTES_MAX);
    assert!(DEFERRED_MAX * EXECUTOR_SHORT_LINE_BYTES_MAX <= EXECUTOR_SHORT_LINES_BYTES);
    assert!(EXECUTOR_RECORD_BYTES_MAX + EXECUTOR_ENVELOPE_BYTES_MAX < EXECUTOR_LINE_BYTES_MAX);
    assert!(EXECUTOR_PAGE_BYTES_MAX < EXECUTOR_RECORD_BYTES_MAX);
    assert!(EXECUTOR_END_MS + EXECUTOR_LEAVE_MS < 100);
    assert!(FLUSH_SIGNAL_MS + EXECUTOR_LEAVE_MS < 100);
    assert!(EXECUTOR_RETRY_MS < EXECUTOR_CALL_MS);
    assert!(memory_budget_bytes() <= 48 << 20);
    assert!(2 * EXECUTOR_LINE_BYTES_MAX < TASK_JSON_BYTES_MAX);
    assert!(TASKS_RUNNING <= TASKS_RUNNING_MAX && TASKS_QUEUED <= TASKS_QUEUED_MAX);
    assert!(TASK_DEADLINE_S <= TASK_TIMEOUT_S_MAX && TASK_TICK_MS < TASK_KILL_MS);
    assert!(COMMAND_TICK_MS <= COMMAND_TICK_MS_MAX && COMMAND_TICK_MS_MAX < COMMAND_KILL_MS);
    // Every byte of a page may come out as an escape of six.
    assert!(6 * EXECUTOR_PAGE_BYTES_MAX + EXECUTOR_ENVELOPE_BYTES_MAX < EXECUTOR_LINE_BYTES_MAX);
};
