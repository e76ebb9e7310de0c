//! Runs every transcript against the server: each is a session as data.
//!
//! A line of `tests/transcripts/*.txt` is `> ` and a line of the client, `< ` and the exact line
//! that the server has to write, `# ` and a comment, or blank. The server gets all lines of the
//! client at once and then the end of its input. `ROCCO_BLESS=1` writes the lines of the server
//! anew, each below the line that called for it; read the difference before you keep it.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use support::schema::{HANDSHAKE, schemas};
use support::session::replies_of;

/// A session takes milliseconds. A server that is still running by then hangs.
const DEADLINE: Duration = Duration::from_secs(10);

/// A line of a transcript that one of the two sides wrote.
struct Line<'a> {
    number: usize,
    side: Side,
    text: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

#[test]
fn every_transcript_is_what_the_server_says() {
    let mut faults = String::new();
    for path in transcripts() {
        if blessing() {
            rewrite(&path);
        }
        if let Err(fault) = check(&path) {
            writeln!(faults, "{}:{fault}", path.display()).expect("a string takes all");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The transcripts of each revision with a handshake, taken together, leave no method and no
/// error code out.
#[test]
fn every_method_and_error_code_of_a_handshake_revision_has_its_line() {
    if blessing() {
        return; // The other test is rewriting them.
    }
    for revision in HANDSHAKE {
        let mut methods = BTreeSet::new();
        let mut codes = BTreeSet::new();
        for path in transcripts()
            .iter()
            .filter(|path| name(path).starts_with(revision))
        {
            for line in lines(&read(path)) {
                let value: Value = serde_json::from_str(line.text).unwrap_or_default();
                methods.extend(value["method"].as_str().map(str::to_owned));
                codes.extend(value["error"]["code"].as_i64());
            }
        }
        for method in [
            "initialize",
            "ping",
            "tools/list",
            "tools/call",
            "server/discover",
        ] {
            assert!(
                methods.contains(method),
                "{revision} has no line for {method}"
            );
        }
        for method in ["initialized", "cancelled"].map(|it| format!("notifications/{it}")) {
            assert!(
                methods.contains(&method),
                "{revision} has no line for {method}"
            );
        }
        for code in [-32700, -32600, -32601, -32602] {
            assert!(codes.contains(&code), "{revision} has no line for {code}");
        }
    }
}

/// Runs a transcript, and holds stdout against it byte for byte and against the schemas.
///
/// The fault begins with the number of its line.
fn check(path: &Path) -> Result<(), String> {
    let text = read(path);
    let lines = lines(&text);
    let stdin = input(&lines);
    let stdout = serve(&stdin).map_err(|fault| format!("0: {fault}"))?;
    let mut came = stdout.split_inclusive('\n');
    for line in lines.iter().filter(|line| line.side == Side::Server) {
        let reply = came.next().unwrap_or_default();
        if reply.strip_suffix('\n') != Some(line.text) {
            return Err(format!(
                "{}:\nwanted {}\ncame   {reply}",
                line.number, line.text
            ));
        }
    }
    if let Some(reply) = came.next() {
        return Err(format!(
            "{}:\nwanted no more\ncame   {reply}",
            text.lines().count()
        ));
    }
    check_schemas(&lines, &stdin, &stdout)
}

/// In a transcript the request of each reply is known, so each is to be checked in full.
fn check_schemas(lines: &[Line], stdin: &str, stdout: &str) -> Result<(), String> {
    let Some(schemas) = schemas() else {
        return Ok(());
    };
    let tally = replies_of(schemas, stdin.as_bytes(), stdout.as_bytes()).map_err(|faults| {
        // The faults count the lines of stdout, which are those of the server, in order.
        format!("0: against the schemas:\n{}", faults.join("\n"))
    })?;
    let replies = lines
        .iter()
        .filter(|line| line.side == Side::Server && !line.text.starts_with('['));
    let checked = tally.results + tally.errors + tally.notifications;
    if tally.envelopes > 0 || checked < replies.count() {
        return Err(format!("0: not every reply could be checked: {tally:?}"));
    }
    Ok(())
}

/// Writes the lines of the server anew, each below the line of the client that called for it:
/// those that the session has with this line and did not have without it.
fn rewrite(path: &Path) {
    let text = read(path);
    let lines = lines(&text);
    let sent: Vec<&Line> = lines
        .iter()
        .filter(|line| line.side == Side::Client)
        .collect();
    let said = |count: usize| {
        let stdin: String = sent[..count]
            .iter()
            .map(|line| format!("{}\n", line.text))
            .collect();
        serve(&stdin).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
    };
    let all = said(sent.len());
    let all: Vec<&str> = all.lines().collect();
    let (mut count, mut written) = (0, 0);
    let mut output = String::new();
    for raw in text
        .split_terminator('\n')
        .filter(|raw| !raw.starts_with('<'))
    {
        writeln!(output, "{raw}").expect("a string takes all");
        if raw.starts_with('>') {
            count += 1;
            // What comes at the end of input belongs below the last line.
            let so_far = said(count);
            let same = all
                .iter()
                .zip(so_far.lines())
                .take_while(|(a, b)| **a == *b);
            let due = match count == sent.len() {
                true => all.len(),
                false => same.count(),
            };
            for reply in &all[written..due.max(written)] {
                writeln!(output, "< {reply}").expect("a string takes all");
            }
            written = due.max(written);
        }
    }
    std::fs::write(path, output).expect("a transcript can be written");
}

/// Runs the server over pipes with this input, and returns what it wrote before it ended well.
fn serve(stdin: &str) -> Result<String, String> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_rocco"))
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the server: {error}"))?;
    let mut input = server.stdin.take().expect("stdin is a pipe");
    let mut output = server.stdout.take().expect("stdout is a pipe");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let outcome = output.read_to_string(&mut text).map(|_| text);
        let _ = sender.send(outcome);
    });
    let written = input.write_all(stdin.as_bytes());
    drop(input);
    let Ok(outcome) = receiver.recv_timeout(DEADLINE) else {
        let _ = server.kill();
        let _ = server.wait();
        return Err(format!(
            "still running {DEADLINE:?} after the end of its input"
        ));
    };
    let status = support::wait::end_of(&mut server);
    if !status.success() {
        return Err(format!("ended with {status}"));
    }
    written.map_err(|error| format!("did not read its input: {error}"))?;
    outcome.map_err(|error| format!("stdout: {error}"))
}

/// What the client of a transcript writes.
fn input(lines: &[Line]) -> String {
    let sent = lines.iter().filter(|line| line.side == Side::Client);
    sent.map(|line| format!("{}\n", line.text)).collect()
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (index, raw) in text.split_terminator('\n').enumerate() {
        let side = match raw.as_bytes().first() {
            Some(b'>') => Side::Client,
            Some(b'<') => Side::Server,
            Some(b'#') | None => continue,
            Some(_) => panic!("line {} belongs to nobody: {raw}", index + 1),
        };
        let text = raw[1..].strip_prefix(' ').unwrap_or(&raw[1..]);
        lines.push(Line {
            number: index + 1,
            side,
            text,
        });
    }
    lines
}

fn blessing() -> bool {
    std::env::var_os("ROCCO_BLESS").is_some()
}

fn transcripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let entries = std::fs::read_dir(folder).expect("the transcripts are there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    assert!(!paths.is_empty(), "no transcripts");
    paths
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a file has a name")
        .to_string_lossy()
        .into_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a transcript is UTF-8")
}
