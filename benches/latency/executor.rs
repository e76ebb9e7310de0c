//! Calls that go through an executor: a submit with its acknowledgement, and the status of a task
//! that runs. The executor is this program itself, started with `--executor`: it answers at once
//! and does nothing.

use std::io::{BufRead as _, Write as _};

use crate::client::{Channel, INITIALIZE, Placement, Server};
use crate::measure::{Figures, KINDS, placement_name, quantile, rocco_argv};

const SUBMIT: &str = concat!(
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"larry_submit_task","#,
    r#""arguments":{"goal":"Stop after five attempts.","repo":"/srv/uploader","#,
    r#""files":["src/upload.rs"],"acceptance":["the tests pass"]}}}"#,
    "\n"
);

const TASK_ID_BYTES: usize = 30;

/// Whether this process was started as the executor.
pub(crate) fn asked_for(mut arguments: impl Iterator<Item = String>) -> bool {
    arguments.any(|argument| argument == "--executor")
}

/// Answers every line at once.
pub(crate) fn serve() {
    let (stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.lines() {
        let Ok(line) = line else { return };
        let id = behind(&line, "\"id\":", |byte| byte.is_ascii_digit());
        let task = behind(&line, "\"task_id\":\"", |byte| byte != b'"');
        let result = if line.contains("\"method\":\"hello\"") {
            concat!(
                r#"{"protocol":"rocco-exec/1","executor":{"name":"bench","version":"0"},"#,
                r#""features":["progress"]}"#
            )
            .to_owned()
        } else {
            format!(
                r#"{{"task_id":"{task}","state":"running","created_at":"2026-01-01T00:00:00Z"}}"#
            )
        };
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        if stdout.write_all(answer.as_bytes()).is_err() || stdout.flush().is_err() {
            return;
        }
    }
}

/// The characters behind a text, as long as they are of one kind.
fn behind<'l>(line: &'l str, word: &str, of_kind: impl Fn(u8) -> bool) -> &'l str {
    let rest = line.split_once(word).map_or("", |(_, rest)| rest);
    let end = rest.bytes().position(|byte| !of_kind(byte));
    &rest[..end.unwrap_or(rest.len())]
}

/// Both calls beside `tools/list` on the same server, in turns.
pub(crate) fn calls(figures: &mut Figures, placement: Placement, count: usize) {
    let program = std::env::current_exe().expect("this program has a path");
    let mut argv = rocco_argv();
    argv.extend([
        "--executor".into(),
        format!("'{}' --executor", program.display()),
    ]);
    let mut server = Server::start(&argv, Channel::Pipe, placement);
    server.exchange(INITIALIZE);
    server.send(SUBMIT.as_bytes());
    let reply = server.line();
    let at = reply.find("tsk_").expect("the task is accepted");
    let status = format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"#,
            r#""name":"larry_task_status","arguments":{{"task_id":"{}"}}}}}}"#,
            "\n"
        ),
        &reply[at..at + TASK_ID_BYTES]
    );
    let requests = [
        ("tools_list", KINDS[1].1),
        ("submit", SUBMIT),
        ("status", &status),
    ];
    let mut times = [const { Vec::new() }; 3];
    while times[0].len() < count {
        for ((_, request), times) in requests.iter().zip(&mut times) {
            times.extend((0..count.min(100)).map(|_| server.exchange(request.as_bytes())));
        }
    }
    for ((name, _), mut times) in requests.into_iter().zip(times) {
        times.sort_unstable();
        for (figure, share) in [("p50", 0.5), ("p99", 0.99)] {
            let place = placement_name(placement);
            figures.insert(
                format!("executor/{place}/{name}/{figure}_ns"),
                quantile(&times, share),
            );
        }
    }
    server.close();
}
