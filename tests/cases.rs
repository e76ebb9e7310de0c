//! The case corpus, against the real program: see tests/cases/README.md.

mod support;

use std::path::Path;
use std::process::Command;

#[test]
fn the_corpus_passes_and_every_reply_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let recording = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("python3");
    command.arg(folder.join("run.py"));
    command.arg("--record").arg(recording.path());
    command.args(["--", env!("CARGO_BIN_EXE_rocco"), "mcp"]);
    // Each case has a time of its own, and the runner one for all.
    let output = command
        .output()
        .expect("the case runner needs python3, 3.9 or newer");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    let last = said.lines().last().unwrap_or_default();
    let passed = last.split(' ').next().and_then(|count| count.parse().ok());
    assert!(passed > Some(300_u32), "too few cases ran: {last}");
    let Some(schemas) = support::schema::schemas() else {
        return;
    };
    let checked = support::session::check_recording(schemas, recording.path());
    assert!(
        checked.as_ref().is_ok_and(|runs| *runs > 300),
        "{checked:?}"
    );
}
