//! The simulator's own test: bugs are planted on purpose, one by one, and it has to find each
//! within its fixed band.
//!
//! Every bug is a build, so this target runs when it is named: `cargo test --test mutants`.

#[path = "../simulator/mutants.rs"]
mod mutants;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mutants::{MUTANTS, Mutant};
use support::wait::output;
use support::watchdog;

/// A mutant that runs for so long hangs, which is found as well.
const PATIENCE: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The place where the mutants are built, which they share with their dependencies.
fn nursery() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants")
}

/// Builds each mutant and demands that the fixed band finds it. That it finds nothing in the
/// server as it is says the test of the band itself.
#[test]
fn every_planted_bug_is_found() {
    // A mutant takes some ten seconds to build.
    watchdog::allow(Duration::from_secs(120 * MUTANTS.len() as u64));
    mutants::demand_all_apply();
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
opt-level = 0

# They are built once, and run for every mutant.
[profile.dev.package.\"*\"]
opt-level = 2

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
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--offline", "--no-run", "--test", "simulator"])
        .current_dir(nursery())
        .env("CARGO_TARGET_DIR", nursery().join("target"))
        // A mutant differs from the one before in a line or two, whatever other builds want.
        .env("CARGO_INCREMENTAL", "1");
    let output = output(&mut command);
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
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    let fault = said.lines().find(|line| line.contains(" fails: "));
    let fault = fault.or(said.lines().find(|line| line.contains("error")));
    (
        passed,
        fault.unwrap_or("no word").chars().take(160).collect(),
    )
}
