//! Every bound of the crate, with its reason, and the relations between the bounds.
//!
//! The name of a bound ends in its unit and its qualifier. No other file contains a bare size.
//! `limits.md` beside this file has the same bounds as a table for people, and a test compares
//! each row.

/// The longest frame, its LF not counted. A task with its goal, scope and acceptance is a few KiB;
/// a mebibyte leaves two decimal orders, and sets the parser's memory (see
/// [`PARSER_BYTES_PER_FRAME_BYTE`]).
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The input ring: one partial frame of the longest kind and as much again, so that reading goes on
/// while one frame waits for the outbox.
pub const RING_BYTES: usize = 2 * FRAME_BYTES_MAX;

/// The bytes that one `read` takes: a pipe's capacity, which keeps a turn of the loop short and the
/// touched part of the ring small.
pub const READ_BYTES_MAX: usize = 64 << 10;

/// A partial frame up to this size is moved to the front of the ring before the next read, so
/// that steady traffic stays in the same few pages. Moving a page costs less than touching one.
pub const RING_COMPACT_BYTES_MAX: usize = 4 << 10;

/// Readable bytes that the parser needs behind a frame.
pub const FRAME_PADDING_BYTES: usize = 64;

/// Nested objects and arrays in a frame. No message of the protocol needs a tenth of it.
pub const DEPTH_MAX: usize = 1024;

/// The parser keeps the buffers that a frame of this size needs. The buffers of a longer frame are
/// freed right after its reply.
pub const FRAME_BYTES_WARM: usize = 16 << 10;

/// Memory that the parser claims for each byte of a frame: a tape node of 24 bytes and a structural
/// index of 4, doubled by growth, for a frame of structural bytes alone.
pub const PARSER_BYTES_PER_FRAME_BYTE: usize = 34;

/// Messages in one batch of revision 2025-03-26. The reply to a batch is one line, and the outbox
/// holds all of it.
pub const BATCH_MESSAGES_MAX: usize = 1024;

/// Unsent bytes above which no further frame is served until the client reads. Four pipes'
/// capacity, so that a burst of requests shares few writes.
pub const OUTBOX_HIGH_WATER_BYTES: usize = 256 << 10;

/// The results of one frame. A single result rarely passes a few KiB; a result that does not fit is
/// answered with an internal error.
pub const RESULTS_BYTES_MAX: usize = 3 << 20;

/// The ids and protocol versions of one frame that its replies echo: three bytes of U+2028 become
/// six.
pub const IDS_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

/// One error reply without its id: a sentence, and a quote of which every byte may need three.
pub const ERROR_BYTES_MAX: usize = 1024;

/// The outbox: the replies that were unsent when a frame was begun, and all that the frame may add.
pub const OUTBOX_BYTES: usize = OUTBOX_HIGH_WATER_BYTES
    + RESULTS_BYTES_MAX
    + IDS_BYTES_MAX
    + BATCH_MESSAGES_MAX * ERROR_BYTES_MAX;

/// The start of a client's own text (a tool's name, an unknown member) that an error repeats.
pub const QUOTE_BYTES_MAX: usize = 128;

/// The scratch memory of one frame, from which a tool call takes its lists. A task of 1,024 files
/// needs a tenth of it.
pub const ARENA_BYTES_MAX: usize = 1 << 20;

/// The first chunk of the scratch memory, enough for a typical call.
pub const ARENA_BYTES_WARM: usize = 4 << 10;

/// A buffer of which more than this was touched is freed and claimed anew when the server comes to
/// rest.
pub const RESTING_BYTES_MAX: usize = 64 << 10;

/// Silence of the input after which the server rests: it reads once more, in case a short read was
/// not the end, and frees large buffers.
pub const REST_AFTER_MS: u64 = 100;

/// The longest time that `--busy-poll` may spin before it sleeps. Beyond a millisecond the CPU time
/// that it burns buys nothing.
pub const BUSY_POLL_US_MAX: u64 = 1_000;

/// Turns of a spinning loop that find input, before the loop looks at signals and at the reader.
pub const BUSY_TURNS_MAX: u32 = 64;

/// After the end of input: the time in which the reader takes no byte before the replies are given
/// up.
pub const FLUSH_STALL_MS: u64 = 1_500;

/// After the end of input: the time for sending all replies.
pub const FLUSH_TOTAL_MS: u64 = 10_000;

/// After the end of input: the time before a full output is tried again. A socket reports room only
/// when most of its buffer is free, though a slow reader has taken some.
pub const FLUSH_RETRY_MS: u64 = 100;

/// After a signal: the time for sending all replies. Clients send SIGKILL soon after SIGTERM.
pub const FLUSH_SIGNAL_MS: u64 = 50;

/// One write to a terminal. No larger write is sure not to block.
pub const BLOCKING_WRITE_BYTES_MAX: usize = 512;

/// Subscriptions that are open at once. A client has use for one or two.
pub const SUBSCRIPTIONS_MAX: usize = 32;

/// An id that outlives its frame: the id of a subscription, or of a request that is answered later.
/// Clients count, or use a UUID.
pub const OWNED_ID_BYTES_MAX: usize = 128;

/// Requests that are answered later: the calls of the executor, the calls that wait for a task, and
/// one more, which is refused because those two are full.
pub const DEFERRED_MAX: usize = EXECUTOR_CALLS_MAX + EXECUTOR_WAITS_MAX + 1;

/// A client's name, and a client's version, as an executor is told.
pub const CLIENT_INFO_BYTES_MAX: usize = 64;

/// The time for which a client may keep the results of `server/discover` and `tools/list`. They do
/// not change while a server runs, so a client notices only an upgrade that much later.
pub const CACHE_TTL_MS: u64 = 3_600_000;

/// Tools of one server. The pages of `tools/list` are built once for each revision.
pub const TOOLS_MAX: usize = 1024;

/// A tool's name: the longest that the specification and the conformance suite both accept.
pub const TOOL_NAME_BYTES_MAX: usize = 64;

/// An answer that is always the same ([`Prepared`](crate::mcp::prepared::Prepared)). It is written
/// into a buffer of this size, which must be a small block for the allocator: glibc keeps the
/// memory of every large block once one of its size was freed.
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

/// Faults that one refusal of a task lists. Further faults are counted.
pub const TASK_FAULTS_MAX: usize = 256;

/// One line to or from an executor, its LF not counted (rocco-exec/1, Transport).
pub const EXECUTOR_LINE_BYTES_MAX: usize = 256 << 10;

/// The ring of an executor's lines, twice the longest line as [`RING_BYTES`] is twice the longest
/// frame.
pub const EXECUTOR_RING_BYTES: usize = 2 * EXECUTOR_LINE_BYTES_MAX;

/// The bytes of all lines to an executor that were not sent or not answered. They are kept to be
/// sent again.
pub const EXECUTOR_UNANSWERED_BYTES_MAX: usize = 1 << 20;

/// Lines to an executor that are kept to be sent again, including lines that were answered before
/// an earlier one.
pub const EXECUTOR_UNANSWERED_MAX: usize = 1024;

/// The part of [`EXECUTOR_UNANSWERED_BYTES_MAX`] that only short lines may use, such as the
/// question for a task that somebody waits for.
pub const EXECUTOR_SHORT_LINES_RESERVE_BYTES: usize = 64 << 10;

/// A line to an executor that counts as short, its LF included.
pub const EXECUTOR_SHORT_LINE_BYTES_MAX: usize = 512;

/// Calls of the executor's tools that are under way at once, apart from those that wait for a task.
pub const EXECUTOR_CALLS_MAX: usize = 64;

/// Calls of the executor's tools that wait for a task at once.
pub const EXECUTOR_WAITS_MAX: usize = 32;

/// Tasks whose last known state is remembered. The tasks that ended first are forgotten first; a
/// forgotten task costs a question to the executor.
pub const EXECUTOR_SNAPSHOTS_MAX: usize = 256;

/// A task's record (rocco-exec/1, The record).
pub const EXECUTOR_RECORD_BYTES_MAX: usize = 32 << 10;

/// The rest of an executor's answer around a record or a page: ids, times and a message.
pub const EXECUTOR_ENVELOPE_BYTES_MAX: usize = 4 << 10;

/// A page of a diff, a log or the gates' output, also for a call that asks for no size.
pub const EXECUTOR_PAGE_BYTES_MAX: usize = 24 << 10;

/// The one line in which an executor tells people about a task.
pub const EXECUTOR_MESSAGE_BYTES_MAX: usize = 200;

/// A phase, a time or a reason in an executor's answer.
pub const EXECUTOR_FIELD_BYTES_MAX: usize = 64;

/// Faults of a submission that an executor names. Further faults are counted.
pub const EXECUTOR_FAULTS_MAX: usize = 64;

/// The pointer of such a fault, and its reason.
pub const EXECUTOR_FAULT_BYTES_MAX: usize = 200;

/// Tasks in one list of tasks.
pub const EXECUTOR_LIST_MAX: usize = 20;

/// Lines of one connection that may break the executor protocol before the connection is ended.
pub const EXECUTOR_VIOLATIONS_MAX: u32 = 3;

/// The time in which an executor answers a call. Answers come within microseconds; a client waits a
/// minute at least.
pub const EXECUTOR_CALL_MS: u64 = 2_000;

/// The time in which an executor starts and answers `hello`.
pub const EXECUTOR_HELLO_MS: u64 = 5_000;

/// The time before the first attempt to connect again. Each further attempt doubles it.
pub const EXECUTOR_RETRY_MS: u64 = 50;

/// The longest time between two attempts to connect.
pub const EXECUTOR_RETRY_MS_MAX: u64 = 5_000;

/// The longest time for which a call waits for a task: below the 60 seconds after which clients
/// give up.
pub const EXECUTOR_WAIT_S_MAX: u64 = 45;

/// The time after which a waiting client is told that the task goes on, though nothing has
/// happened.
pub const EXECUTOR_PROGRESS_MS: u64 = 15_000;

/// The shortest time between two progress notifications about one task.
pub const EXECUTOR_PROGRESS_MS_MIN: u64 = 250;

/// After the end of input: the time for calls that are under way.
pub const EXECUTOR_DRAIN_MS: u64 = 50;

/// After the end: the time in which an executor that is a child exits before it is killed.
pub const EXECUTOR_EXIT_MS: u64 = 40;

/// After the end: the time in which a child that was killed dies. Most die within a millisecond; a
/// child that the system does not let die is left to the system.
pub const EXECUTOR_REAP_MS: u64 = 500;

/// The longest `timeout_s` of a task: a day.
pub const TASK_TIMEOUT_S_MAX: u64 = 86_400;

/// An idempotency key. A UUID has 36 bytes.
pub const TASK_KEY_BYTES_MAX: usize = 128;

/// The time after which a client should ask again for a task that runs.
pub const TASK_POLL_MS: u64 = 2_000;

/// The time after which a client should ask again for a task that waits for its turn.
pub const TASK_POLL_QUEUED_MS: u64 = 5_000;

/// The time for which an executor keeps a task that has ended, and for which a client may ask for
/// it: a week.
pub const TASK_TTL_MS: u64 = 7 * 86_400_000;

// The bounds of `rocco executor`, which is another process.

/// Tasks that run at once unless the operator says otherwise. Agents are heavy.
pub const TASKS_RUNNING: usize = 2;

/// The most tasks that an operator may let run at once.
pub const TASKS_RUNNING_MAX: usize = 64;

/// Tasks that wait for their turn unless the operator says otherwise.
pub const TASKS_QUEUED: usize = 32;

/// The most tasks that an operator may let wait for their turn.
pub const TASKS_QUEUED_MAX: usize = 1024;

/// Tasks that are accepted within a minute: a model that has gone astray submits for ever.
pub const TASK_SUBMISSIONS_PER_MINUTE_MAX: usize = 30;

/// Tasks that are kept. The tasks that ended first go first.
pub const TASKS_KEPT_MAX: usize = 10_000;

/// The files on disk of all tasks that have ended. The largest clones go first, then the largest
/// records.
pub const TASKS_BYTES_MAX: u64 = 1 << 30;

/// The time between two searches for tasks that are kept no longer.
pub const TASK_EXPIRY_MS: u64 = 3_600_000;

/// The ids of tasks that are no longer kept. The oldest ids go first.
pub const EXPIRED_IDS_BYTES_MAX: usize = 1 << 20;

/// The time for which a task runs unless the task or the operator says otherwise.
pub const TASK_DEADLINE_S: u64 = 3_600;

/// The time for which an agent may print nothing unless the operator says otherwise.
pub const TASK_SILENCE_S: u64 = 600;

/// The time that a process has to leave after SIGTERM, before SIGKILL.
pub const TASK_KILL_MS: u64 = 5_000;

/// The time for killing the processes that are left of a task. Only processes that cannot be killed
/// need it.
pub const TASK_SWEEP_MS: u64 = 5_000;

/// The time after which the clone of an executor that was killed is made safe to look at: its agent
/// is killed as soon as the executor has gone.
pub const TASK_SETTLE_MS: u64 = 20;

/// The time between two looks at a task that runs.
pub const TASK_TICK_MS: u64 = 50;

/// The time that an executor that starts waits for the programs that look at its tasks. A look
/// takes microseconds.
pub const STATE_LOCK_MS_MAX: u64 = 5_000;

/// The time that an executor that starts waits for one that may have been killed: a program that it
/// was about to start holds its lock until the program is loaded, which a busy machine makes long.
pub const STATE_OWNER_MS_MAX: u64 = 1_000;
const _: () = assert!(STATE_OWNER_MS_MAX < STATE_LOCK_MS_MAX);

/// The time that whoever cancels a task waits for the disk, and the end for the last state: half of
/// what a front waits for an answer.
pub const TASK_WRITE_WAIT_MS: u64 = 1_000;

/// The time for which a change of state may wait before it is synced to the disk, where it need not
/// be there at once.
pub const TASK_SYNC_MS: u64 = 50;

/// One line that the executor writes: twice what it reads, since escapes may double it.
pub const TASK_JSON_BYTES_MAX: usize = 1 << 20;

/// A file of the state directory that is read whole: a task, its states, its record, and the list
/// of tasks that are no longer kept. The executor writes none that is larger.
pub const STATE_FILE_BYTES_MAX: usize = 2 << 20;

/// A task's log. Of a longer one the start and the end are kept.
pub const TASK_LOG_BYTES_MAX: u64 = 16 << 20;

/// The output of a task's gates. Of a longer one the start and the end are kept.
pub const GATES_LOG_BYTES_MAX: u64 = 4 << 20;

/// The end of a gate's output that a record holds.
pub const GATE_TAIL_BYTES_MAX: usize = 2 << 10;

/// The longest line of a gate that counts tests.
pub const GATE_LINE_BYTES_MAX: usize = 4 << 10;

/// What an operator's pattern for a summary takes in memory. The time for a line grows with it.
pub const GATE_PATTERN_BYTES_MAX: usize = 64 << 10;

/// The report that a gate writes of its tests, the output of all of them included.
pub const GATE_REPORT_BYTES_MAX: u64 = 16 << 20;

/// Elements of such a report that lie in one another. Suites of people nest five or six deep.
pub const GATE_REPORT_LEVELS_MAX: usize = 64;

/// Gates that an operator defines, and gates in a record.
pub const GATES_MAX: usize = 32;

/// The file that defines the gates, which is read as a whole at the start: 32 KiB for each gate.
pub const GATES_FILE_BYTES_MAX: usize = 1 << 20;

/// The time for which a gate runs unless its definition says otherwise.
pub const GATE_TIMEOUT_S: u64 = 600;

/// An agent's summary of its work, and an agent's question.
pub const TASK_SUMMARY_BYTES_MAX: usize = 4 << 10;

/// A word of a record, such as a commit or the name of a gate, as it stands there.
pub const RECORD_WORD_BYTES_MAX: usize = 128;

/// A path or an argument in a record, as it stands there.
pub const RECORD_PATH_BYTES_MAX: usize = 1 << 10;

/// The message of a record's error, as it stands there.
pub const RECORD_SENTENCE_BYTES_MAX: usize = 1 << 10;

/// A warning of a record, as it stands there.
pub const RECORD_WARNING_BYTES_MAX: usize = 512;

/// The names in a warning, or in the message of an error: the rest are counted.
pub const LISTED_NAMES_BYTES_MAX: usize = 320;

/// One of these names, so that it leaves room for another.
pub const LISTED_NAME_BYTES_MAX: usize = 128;

// The sentence around them, the words behind a name, and the count have the rest.
const _: () = assert!(LISTED_NAMES_BYTES_MAX + 192 <= RECORD_WARNING_BYTES_MAX);
const _: () = assert!(2 * LISTED_NAME_BYTES_MAX <= LISTED_NAMES_BYTES_MAX);

/// Warnings of a record, those that count what was left out of its lists included.
pub const RECORD_WARNINGS_MAX: usize = 16;

/// Arguments of one gate in a record.
pub const RECORD_ARGUMENTS_MAX: usize = 64;

/// All of a record but its lists: a summary and a question, the message of its error, three paths,
/// four words, and what stands around them.
pub const RECORD_TEXTS_BYTES: usize = 2 * TASK_SUMMARY_BYTES_MAX
    + RECORD_SENTENCE_BYTES_MAX
    + 3 * RECORD_PATH_BYTES_MAX
    + 4 * RECORD_WORD_BYTES_MAX
    + 512;

/// The share of each gate in a record: its name and how it ended, without which it says nothing.
pub const RECORD_GATE_BYTES: usize = 320;

/// The share of the warnings in a record.
pub const RECORD_WARNINGS_BYTES: usize = 3 << 10;

/// The share of the sentences that count what was left out of its lists.
pub const RECORD_COUNTS_BYTES: usize = 512;

/// The share of the paths out of scope in a record.
pub const RECORD_SCOPE_BYTES: usize = 2 << 10;

/// The share of the files in a record, which get besides what the others do not need.
pub const RECORD_FILES_BYTES: usize = 3 << 10;

/// The file in which an agent leaves its summary or its question.
pub const TASK_OUTCOME_BYTES_MAX: usize = 64 << 10;

/// Paths in one list of a record.
pub const TASK_PATHS_LISTED_MAX: usize = 200;

/// A goal in a list of tasks.
pub const TASK_GOAL_LISTED_BYTES_MAX: usize = 200;

/// The time that a command over its limit has to leave after SIGTERM, before SIGKILL. Git removes
/// its locks in less.
pub const COMMAND_KILL_MS: u64 = 100;

/// The time between two looks at a command that prints nothing, at first.
pub const COMMAND_TICK_MS: u64 = 1;

/// The time between two looks at a command that has been silent for a while, so that a long command
/// costs little.
pub const COMMAND_TICK_MS_MAX: u64 = 16;

/// The time for one git command.
pub const GIT_TIMEOUT_S: u64 = 120;

/// How long the work of an agent that ran out of time may at least be collected for, in seconds:
/// the files of an ordinary clone are taken in within it. A task with a longer deadline has as long
/// as its deadline was, and `GIT_TIMEOUT_S` at most.
pub const TASK_COLLECT_S_MIN: u64 = 5;
const _: () = assert!(TASK_COLLECT_S_MIN < GIT_TIMEOUT_S);

/// The memory that each process of a command of the executor's own may claim, in MiB: git reads
/// some files whole, whatever their length, and compares files of half a GiB at most.
pub const COMMAND_MEMORY_MIB: u64 = 2 << 10;

/// The output of a git command that is read. A diff goes to a file instead. The longest list is
/// that of what a result changes: each file with its path, twice, and 200 bytes beside.
pub const GIT_OUTPUT_BYTES_MAX: usize = 64 << 20;
const _: () = assert!(
    2 * RESULT_PATHS_BYTES_MAX + 200 * TASK_RESULT_FILES_MAX as usize <= GIT_OUTPUT_BYTES_MAX
);

/// The paths of the files that a task adds, changes or removes, together.
pub const RESULT_PATHS_BYTES_MAX: usize = 16 << 20;

/// Files of a clone that are looked at when an agent has ended: a larger tree is not one that
/// somebody works in. Each takes some 200 bytes meanwhile.
pub const WORK_FILES_MAX: usize = 1 << 20;
const _: () = assert!((TASK_RESULT_FILES_MAX as usize) < WORK_FILES_MAX);

/// The paths of these files, and those of an index, together: as many with 128 bytes each.
pub const WORK_PATHS_BYTES_MAX: usize = 128 << 20;
const _: () = assert!(RESULT_PATHS_BYTES_MAX < WORK_PATHS_BYTES_MAX);

/// The index of a clone that is read: one of `WORK_FILES_MAX` files whose paths have 60 bytes.
pub const INDEX_BYTES_MAX: usize = 128 << 20;

/// The longest step of the times that a file system keeps: that of FAT.
pub const DISK_TIME_STEP_MS_MAX: u64 = 2_100;

/// Branches, tags and other refs of an agent's clone that are looked at.
pub const AGENT_REFS_MAX: usize = 1 << 16;

/// Symbolic links of a result's tree that are followed together, beside those that the task has
/// changed. A tree with more is a collection of links.
pub const RESULT_LINKS_MAX: usize = 1 << 16;

/// Links that are followed from one link on, as many as Linux follows (path_resolution(7)).
pub const LINK_FOLLOWED_MAX: usize = 40;

/// Names of a changed path that are looked at, beside its own: links that lead to it give them.
/// Links that lead to themselves give as many as one likes.
pub const CHANGE_NAMES_MAX: usize = 64;

/// A path that any system opens (PATH_MAX of Linux). Longer names of a changed path are not looked
/// at.
pub const PATH_BYTES_MAX: usize = 1 << 12;

/// Bytes of paths that are gone through for all links of a result, which takes a part of a second.
pub const LINK_WALK_BYTES_MAX: usize = 32 << 20;

/// Files of a repository's git directory that are looked at for links which lead out of it. A
/// repository with more loose objects and refs is slow to everybody, and `git gc` packs them.
pub const REPO_ENTRIES_MAX: usize = 1 << 20;

/// A file of a git directory that is read as a whole: its configuration, its HEAD, its list of
/// borrowed stores, and where a shallow history ends, which takes 41 bytes a commit.
pub const REPO_FILE_BYTES_MAX: usize = 4 << 20;

/// Memory that one process of a task may claim, unless the operator says otherwise, in MiB: a
/// compiler or a test runner takes a few GiB at its worst.
pub const TASK_MEMORY_MIB: u64 = 8 << 10;

/// Processes and threads of an agent or a gate, unless the operator says otherwise. A parallel
/// build on many cores has some hundred.
pub const TASK_PROCESSES: u64 = 1024;

/// Files that one process of a task may have open, unless the operator says otherwise.
pub const TASK_OPEN_FILES: u64 = 8192;

/// The length of one file that a task writes, unless the operator says otherwise, in MiB.
pub const TASK_FILE_MIB: u64 = 8 << 10;

/// What all files of a task may take on the disk together, unless the operator says otherwise, in
/// MiB: twice the longest file, and more than most builds leave.
pub const TASK_DISK_MIB: u64 = 16 << 10;

/// What the files that a task adds or changes may hold together, unless the operator says
/// otherwise, in MiB: each gate has a copy of them, and their difference to the base is kept as a
/// text.
pub const TASK_RESULT_MIB: u64 = 256;

/// Files that a task may add, change or remove, unless the operator says otherwise: somebody has to
/// look at them.
pub const TASK_RESULT_FILES: u64 = 100_000;

/// The highest number of these files that an operator can set: git is asked for all of them at
/// once.
pub const TASK_RESULT_FILES_MAX: u64 = 150_000;
const _: () = assert!(TASK_RESULT_FILES <= TASK_RESULT_FILES_MAX);

/// What has to be free on the file system of the state directory unless the operator says
/// otherwise, in MiB, or no program of a task runs: what the rest of a desktop gets by with for a
/// while.
pub const TASK_DISK_FREE_MIB: u64 = 256;

/// The longest step of a measurement of the disk, of which there is one a tick: a tenth of the time
/// at most.
pub const TASK_DISK_STEP_MS: u64 = 5;

/// The shortest time between two measurements of a task. A disk takes some GiB in it.
pub const TASK_DISK_REST_MS: u64 = 1_000;

/// The highest bound of bytes that an operator can set, in MiB: a PiB, as good as none.
pub const TASK_MIB_MAX: u64 = 1 << 30;

/// The highest bound of a count that an operator can set: what Linux has at most.
pub const TASK_COUNT_MAX: u64 = 1 << 22;

/// Signals that wait for the processes of a program, its timers included. The kernel counts them by
/// user and lets each have some ten thousand, so that most are left to the user.
pub const TASK_SIGNALS_MAX: u64 = 4_096;

/// What the POSIX message queues of a program hold. The kernel counts them by user and lets each
/// have 800 KiB, so that most is left to the user.
pub const TASK_QUEUES_BYTES_MAX: u64 = 256 << 10;

/// Memory that the processes of a program share under /dev/shm, within the outer wall.
pub const TASK_SHARED_MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Fronts that are connected at once.
pub const FRONTS_MAX: usize = 64;

/// Connections of one process, and of all that runs for tasks together: a quarter of all. A front
/// needs one; some hosts start a few fronts in one process.
pub const FRONTS_PER_PEER_MAX: usize = 16;

/// Ancestors of a process that has connected, by which it is placed: some twenty times what a
/// person's session has. Whoever has more is not placed.
pub const PEER_GENERATIONS_MAX: usize = 256;

/// Looks at the ancestors of a process that has connected, where one of them ends meanwhile.
pub const PEER_LOOKS_MAX: u32 = 3;

/// The time that a front has to say hello once it is connected. Until then nobody knows whether it
/// is a front, and it holds a place.
pub const FRONT_HELLO_MS: u64 = 5_000;

/// The time from the first byte of a front's line to its last. The longest line is 256 KiB.
pub const FRONT_LINE_MS: u64 = 10_000;

/// The time that a front may take nothing of what it is told. Then it is disconnected, and may
/// connect again.
pub const FRONT_STALL_MS: u64 = 30_000;

/// The time before a connection is accepted again when the system is short of descriptors.
pub const FRONT_ACCEPT_RETRY_MS: u64 = 200;

/// Replies that wait for a front to take them. The executor reads on when there are fewer.
pub const FRONT_REPLIES_MAX: usize = 64;

/// The memory that `rocco mcp` holds at its worst: the ring, the outbox, the parser's buffers for
/// the longest frame and those that stay, and the arena; and for an executor its ring, the lines
/// that it has not answered, a line that is being written, and the parser's buffers that stay. An
/// executor's line is parsed while no frame is, so both share the buffers for the longest frame.
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
    assert!(RING_COMPACT_BYTES_MAX <= READ_BYTES_MAX);
    assert!(FRAME_BYTES_WARM < FRAME_BYTES_MAX);
    assert!(FRAME_BYTES_MAX <= u32::MAX as usize);
    assert!(ARENA_BYTES_WARM <= RESTING_BYTES_MAX && RESTING_BYTES_MAX <= ARENA_BYTES_MAX);
    assert!(3 * QUOTE_BYTES_MAX + 256 <= ERROR_BYTES_MAX);
    assert!(TASK_GOAL_BYTES_MAX < FRAME_BYTES_MAX);
    assert!(SUBSCRIPTIONS_MAX <= BATCH_MESSAGES_MAX);
    assert!(6 * OWNED_ID_BYTES_MAX <= ERROR_BYTES_MAX);
    assert!(FLUSH_SIGNAL_MS < FLUSH_STALL_MS && FLUSH_STALL_MS < FLUSH_TOTAL_MS);
    assert!(FLUSH_RETRY_MS < FLUSH_STALL_MS);
    assert!(10 * TASK_DISK_STEP_MS <= TASK_TICK_MS && TASK_TICK_MS < TASK_DISK_REST_MS);
    assert!(TASK_FILE_MIB <= TASK_DISK_MIB && TASK_RESULT_MIB <= TASK_DISK_MIB);
    assert!(READ_BYTES_MAX <= EXECUTOR_RING_BYTES - EXECUTOR_LINE_BYTES_MAX);
    assert!(EXECUTOR_LINE_BYTES_MAX < FRAME_BYTES_MAX);
    assert!(DEFERRED_MAX * EXECUTOR_SHORT_LINE_BYTES_MAX <= EXECUTOR_SHORT_LINES_RESERVE_BYTES);
    assert!(EXECUTOR_RECORD_BYTES_MAX + EXECUTOR_ENVELOPE_BYTES_MAX < EXECUTOR_LINE_BYTES_MAX);
    assert!(EXECUTOR_PAGE_BYTES_MAX < EXECUTOR_RECORD_BYTES_MAX);
    assert!(2 * EXECUTOR_FAULTS_MAX * EXECUTOR_FAULT_BYTES_MAX < EXECUTOR_RECORD_BYTES_MAX);
    assert!(
        12 * EXECUTOR_FAULTS_MAX * EXECUTOR_FAULT_BYTES_MAX + 6 * EXECUTOR_ENVELOPE_BYTES_MAX
            < EXECUTOR_LINE_BYTES_MAX
    );
    assert!(EXECUTOR_DRAIN_MS + EXECUTOR_EXIT_MS < 100);
    assert!(FLUSH_SIGNAL_MS + EXECUTOR_EXIT_MS < 100);
    assert!(EXECUTOR_RETRY_MS < EXECUTOR_CALL_MS);
    assert!(TASK_WRITE_WAIT_MS < EXECUTOR_CALL_MS);
    assert!(2 * FRONTS_PER_PEER_MAX <= FRONTS_MAX);
    assert!(FRONT_HELLO_MS <= FRONT_LINE_MS && FRONT_LINE_MS <= FRONT_STALL_MS);
    assert!(memory_budget_bytes() <= 48 << 20);
    assert!(2 * EXECUTOR_LINE_BYTES_MAX < TASK_JSON_BYTES_MAX);
    assert!(TASK_JSON_BYTES_MAX < STATE_FILE_BYTES_MAX);
    assert!(EXECUTOR_RECORD_BYTES_MAX < STATE_FILE_BYTES_MAX);
    assert!(2 * EXPIRED_IDS_BYTES_MAX <= STATE_FILE_BYTES_MAX);
    assert!(TASKS_RUNNING <= TASKS_RUNNING_MAX && TASKS_QUEUED <= TASKS_QUEUED_MAX);
    assert!(TASK_DEADLINE_S <= TASK_TIMEOUT_S_MAX && TASK_TICK_MS < TASK_KILL_MS);
    assert!(COMMAND_TICK_MS <= COMMAND_TICK_MS_MAX && COMMAND_TICK_MS_MAX < COMMAND_KILL_MS);
    // JSON may write each byte of a page as an escape of six bytes.
    assert!(6 * EXECUTOR_PAGE_BYTES_MAX + EXECUTOR_ENVELOPE_BYTES_MAX < EXECUTOR_LINE_BYTES_MAX);
};
