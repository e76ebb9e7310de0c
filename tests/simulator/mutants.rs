//! Bugs planted on purpose. `tests/mutants` plants each and has the simulator find it.

use std::fs;
use std::path::Path;

/// One bug: a text of one file and what stands there instead.
pub struct Mutant {
    pub name: &'static str,
    pub file: &'static str,
    pub find: &'static str,
    pub replace: &'static str,
}

pub const MUTANTS: [Mutant; 24] = [
    Mutant {
        name: "a byte is dropped on a partial write",
        file: "event_loop/run.rs",
        find: "self.engine.consume(count);",
        replace: "self.engine.consume((count + 1).min(pending_bytes));",
    },
    Mutant {
        name: "an id is taken from the previous frame",
        file: "mcp/errors.rs",
        find: "pub fn begin_reply(outbox: &mut Outbox, id: Id<'_>) {",
        replace: "pub fn begin_reply(outbox: &mut Outbox, id: Id<'_>) {
            thread_local!(static LAST: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
            let id = match id {
                Id::Unsigned(number) => Id::Unsigned(LAST.replace(number)),
                other => other,
            };",
    },
    Mutant {
        name: "the arena is not reset",
        file: "mcp/session.rs",
        find: "reset(arena);",
        replace: "",
    },
    Mutant {
        name: "a cancelled id is remembered",
        file: "mcp/subscriptions.rs",
        find: "self.open.retain(|(kept, _)| kept.id() != id);",
        replace: "let _ = id;",
    },
    Mutant {
        name: "the scan goes on from the last frame's length",
        file: "wire/framer.rs",
        find: "ring.consume(bytes + lf);\n        self.scanned = 0;",
        replace: "ring.consume(bytes + lf);\n        \
                  self.scanned = self.scanned.min(ring.received().len());",
    },
    Mutant {
        name: "the end comes before the last line",
        file: "wire/framer.rs",
        find: "if !self.skipping && !ring.received().is_empty()",
        replace: "if self.skipping && !ring.received().is_empty()",
    },
    Mutant {
        name: "a short read ends the reading though the input was closed",
        file: "event_loop/run.rs",
        find: "self.input.ready = !drained || self.input.closed || self.input.orphaned;",
        replace: "self.input.ready = !drained;",
    },
    Mutant {
        name: "the outbox is not compacted",
        file: "wire/outbox.rs",
        find: "if self.tail > OUTBOX_HIGH_WATER_BYTES {",
        replace: "if self.tail > OUTBOX_BYTES {",
    },
    Mutant {
        name: "room for output is not noticed",
        file: "event_loop/run.rs",
        find: "if wakeup.output || self.is_retry_due() {",
        replace: "if self.is_retry_due() {",
    },
    Mutant {
        name: "the rest of an oversized line is taken for a frame",
        file: "wire/framer.rs",
        find: "self.skipping = true;",
        replace: "self.skipping = false;",
    },
    Mutant {
        name: "a batch loses its commas",
        file: "mcp/session.rs",
        find: "outbox.put(b\",\");",
        replace: "outbox.put(b\"\");",
    },
    Mutant {
        name: "the era of an earlier request is remembered",
        file: "mcp/session.rs",
        find: "let revision_id = envelope.revision_id;",
        replace: "let revision_id = envelope.revision_id;\n        self.agreed = Some(revision_id);",
    },
    Mutant {
        name: "an interrupted read is taken for an empty one",
        file: "event_loop/run.rs",
        find: "ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock if self.input.orphaned",
        replace: "ErrorKind::Interrupted => self.input.ready = false,
                ErrorKind::WouldBlock if self.input.orphaned",
    },
    Mutant {
        name: "memory is given back while replies wait",
        file: "wire/outbox.rs",
        find: "if self.touched_bytes > RESTING_BYTES_MAX && self.head == self.tail {",
        replace: "if self.touched_bytes > RESTING_BYTES_MAX {",
    },
    Mutant {
        name: "frames are served without regard to the high-water mark",
        file: "engine.rs",
        find: "while !self.needs_input && self.outbox.is_open() {",
        replace: "while !self.needs_input && self.outbox.pending().len() < (1 << 22) {",
    },
    Mutant {
        name: "a vanished parent cuts off what it has sent",
        file: "event_loop/run.rs",
        find: "self.input.orphaned = true;\n            self.input.ready = true;",
        replace: "self.end_of_input();",
    },
    Mutant {
        name: "while there is input it never looks at anything else",
        file: "event_loop/run.rs",
        find: "if self.busy_turns > BUSY_TURNS_MAX {",
        replace: "if self.busy_turns > u32::MAX - BUSY_TURNS_MAX {",
    },
    Mutant {
        name: "an executor's silence is never noticed",
        file: "executor_client/timers.rs",
        find: "if ending || until_ms.is_some_and(|until_ms| until_ms <= self.now_ms) {",
        replace: "if ending || until_ms.is_some_and(|until_ms| until_ms == 0) {",
    },
    Mutant {
        name: "a greeting is waited for for ever",
        file: "executor_client/timers.rs",
        find: "            && until_ms <= self.now_ms\n        {",
        replace: "            && until_ms == 0\n        {",
    },
    Mutant {
        name: "a wait does not end at its time",
        file: "executor_client/timers.rs",
        find: "if self.ending_ms.is_some() || until_ms <= self.now_ms {",
        replace: "if self.ending_ms.is_some() || until_ms == 0 {",
    },
    Mutant {
        name: "calls under way outlive the client",
        file: "executor_client/timers.rs",
        find: "self.ending_ms = Some(self.now_ms + EXECUTOR_DRAIN_MS);",
        replace: "self.ending_ms = Some(self.now_ms + 1000 * EXECUTOR_DRAIN_MS);",
    },
    Mutant {
        name: "a channel that is done with is not closed",
        file: "event_loop/executor_io.rs",
        find: "channel.close();",
        replace: "",
    },
    Mutant {
        name: "who waits for a first connection is not told that there is none",
        file: "executor_client/timers.rs",
        find: "pending.stage = Stage::Refused(RefusalReason::Absent);",
        replace: "",
    },
    Mutant {
        name: "the end does not wait for what is owed",
        file: "engine.rs",
        find: "drained && !self.session.has_pending_replies()",
        replace: "drained",
    },
];

/// Demands that each text that a mutant replaces is there, and once.
pub fn demand_all_apply() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for mutant in &MUTANTS {
        let text = fs::read_to_string(src.join(mutant.file)).unwrap();
        let times = text.matches(mutant.find).count();
        assert_eq!(times, 1, "{}: its text is in {}", mutant.name, mutant.file);
        assert_ne!(mutant.find, mutant.replace, "{}", mutant.name);
    }
}
