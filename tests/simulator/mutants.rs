//! Bugs planted on purpose. The simulator's own test: it has to find each within its fixed band.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A mutant that runs for so long hangs, which is found as well.
const PATIENCE: Duration = Duration::from_secs(120);

/// One bug: a text of one file and what stands there instead.
struct Mutant {
    name: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
}

const MUTANTS: [Mutant; 24] = [
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

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The place where the mutants are built, which they share with their dependencies.
fn nursery() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants")
}

/// Demands that each text that a mutant replaces is there, and once.
pub fn demand_all_apply() {
    for mutant in &MUTANTS {
        let text = fs::read_to_string(root().join("src").join(mutant.file)).unwrap();
        let times = text.matches(mutant.find).count();
        assert_eq!(times, 1, "{}: its text is in {}", mutant.name, mutant.file);
    }
}

/// Builds each mutant and demands that the fixed band finds it. That it finds nothing in the
/// server as it is says the test of the band itself.
pub fn demand_all_found() {
    demand_all_apply();
    plant();
    let mut missed = Vec::new();
    for mutant in &MUTANTS {
        let started = Instant::now();
        let (passed, said) = band(mutant);
        let seconds = started.elapsed().as_secs();
        if passed {
            missed.push(mutant.name);
        }
        println!("{}: {said} ({seconds} s)", mutant.name);
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Copies what the simulator's test binary is built from, but for the schemas, whose validator
/// takes minutes to build.
fn plant() {
    let nursery = nursery();
    for folder in ["src", "tests"] {
        let _ = fs::remove_dir_all(nursery.join(folder));
    }
    copy(&root().join("src"), &nursery.join("src"));
    copy(
        &root().join("tests/simulator"),
        &nursery.join("tests/simulator"),
    );
    fs::write(nursery.join("tests/simulator/schemas.rs"), NO_SCHEMAS).unwrap();
    let support = nursery.join("tests/support");
    fs::create_dir(&support).unwrap();
    fs::write(support.join("mod.rs"), SUPPORT).unwrap();
    fs::copy(
        root().join("tests/support/watchdog.rs"),
        support.join("watchdog.rs"),
    )
    .unwrap();
    fs::copy(root().join("Cargo.lock"), nursery.join("Cargo.lock")).unwrap();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("\n\n").unwrap();
    let manifest = format!("{MANIFEST}{dependencies}\n");
    fs::write(nursery.join("Cargo.toml"), manifest).unwrap();
}

const NO_SCHEMAS: &str = "//! A mutant is found without the schemas.
pub fn check(_: &str, _: Option<&str>, _: &serde_json::Value) -> Result<(), String> {
    Ok(())
}
";

const SUPPORT: &str = "pub(crate) mod watchdog;\n";

const MANIFEST: &str = "[package]
name = \"rocco\"
version = \"0.1.0\"
edition = \"2024\"
autobins = false

[workspace]

[profile.dev]
debug = false
opt-level = 1

[dev-dependencies]
serde_json = \"1.0\"

[dependencies]
";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Whether the fixed band passes on the planted server with a mutant, and the first words of what
/// it says otherwise.
fn band(mutant: &Mutant) -> (bool, String) {
    let path = nursery().join("src").join(mutant.file);
    let sound = fs::read_to_string(&path).unwrap();
    fs::write(&path, sound.replace(mutant.find, mutant.replace)).unwrap();
    let program = build(mutant);
    let outcome = watch(&program);
    fs::write(&path, sound).unwrap();
    outcome
}

/// Builds the planted simulator and tells where its program is.
fn build(mutant: &Mutant) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--no-run", "--test", "simulator"])
        .current_dir(nursery())
        .env("CARGO_TARGET_DIR", nursery().join("target"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", mutant.name);
    let (_, program) = said.rsplit_once("(").expect("cargo names the program");
    program.trim().trim_end_matches(')').to_owned()
}

fn watch(program: &str) -> (bool, String) {
    let log = nursery().join("log");
    let file = fs::File::create(&log).unwrap();
    let mut child = Command::new(nursery().join(program))
        .arg("the_fixed_band_holds")
        .current_dir(nursery())
        .env("ROCCO_SIM_SHRINK", "0")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    let passed = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.success();
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            break false;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    let fault = said.lines().find(|line| line.contains(" fails: "));
    let fault = fault.or(said.lines().find(|line| line.contains("error")));
    (
        passed,
        fault.unwrap_or("no word").chars().take(160).collect(),
    )
}
