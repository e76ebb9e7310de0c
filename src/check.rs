//! `rocco mcp --check`: a client of its own, to show what a client will see.

use std::io::{self, Read as _, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rocco::limits::FRAME_PADDING_BYTES;
use rocco::wire::json::{Object, Parser, Value};

/// A server that has not answered and ended by then will not.
const PATIENCE: Duration = Duration::from_secs(10);

const SESSION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"rocco-check","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"larry_submit_task","#,
    r#""arguments":{"goal":"Show that a call arrives.","repo":"/tmp","#,
    r#""acceptance":["the call is answered"]}}}"#,
    "\n",
);

/// Starts `rocco mcp` on a pair of pipes, as a client does, and prints each step.
pub(crate) fn run(out: &mut impl Write) -> io::Result<ExitCode> {
    let program = std::env::current_exe()?;
    writeln!(out, "command     {} mcp", program.display())?;
    let started = Instant::now();
    let child = Command::new(&program)
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let verdict = child
        .and_then(|child| converse(child, SESSION.as_bytes()))
        .map_err(|error| format!("it cannot be started or talked to: {error}"))
        .and_then(|heard| show(out, &heard));
    match verdict {
        Ok(()) => {
            writeln!(
                out,
                "\nAll is well, in {} ms.",
                started.elapsed().as_millis()
            )?;
            writeln!(
                out,
                "If a client cannot connect, give it the command above as it is."
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(fault) => {
            writeln!(out, "FAILED      {fault}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What a person wants to know of a result.
type Digest = fn(Object<'_>) -> Option<String>;

/// What a server said until it ended.
struct Heard {
    stdout: Vec<u8>,
    status: String,
}

/// Says all there is to say, closes the input and listens to the end.
fn converse(mut child: Child, session: &[u8]) -> io::Result<Heard> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut heard = Vec::new();
        let read = stdout.read_to_end(&mut heard).map(|_| heard);
        // Nobody listens any more if the time is up.
        let _ = sender.send(read);
    });
    stdin.write_all(session)?;
    drop(stdin);
    let heard = receiver.recv_timeout(PATIENCE);
    if heard.is_err() {
        child.kill()?;
    }
    let status = child.wait()?.to_string();
    match heard {
        Ok(stdout) => Ok(Heard {
            stdout: stdout?,
            status,
        }),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn show(out: &mut impl Write, heard: &Heard) -> Result<(), String> {
    let mut lines = heard.stdout.split_inclusive(|&byte| byte == b'\n');
    let steps: [(&str, Digest); 3] = [
        ("initialize", agreement),
        ("tools/list", tools),
        ("tools/call", answer),
    ];
    for (step, digest) in steps {
        let line = lines.next().ok_or(format!("no reply to {step} came"))?;
        let seen = result_of(line, digest).ok_or_else(|| {
            let line = String::from_utf8_lossy(line);
            format!("the reply to {step} is not understood: {}", line.trim_end())
        })?;
        writeln!(out, "{step:<12}{seen}").map_err(|error| error.to_string())?;
    }
    match lines.next() {
        Some(_) => Err("more came than was asked for".into()),
        None if heard.status != "exit status: 0" => Err(format!("it ended with {}", heard.status)),
        None => writeln!(
            out,
            "end         it left by itself when its input was closed"
        )
        .map_err(|error| error.to_string()),
    }
}

fn result_of(line: &[u8], digest: Digest) -> Option<String> {
    let line = line.strip_suffix(b"\n")?;
    let mut frame = line.to_vec();
    frame.resize(line.len() + FRAME_PADDING_BYTES, b' ');
    let document = Parser::new().parse(&mut frame, line.len()).ok()?;
    digest(document.root().as_object()?.get("result")?.as_object()?)
}

fn agreement(result: Object<'_>) -> Option<String> {
    let server = result.get("serverInfo")?.as_object()?;
    Some(format!(
        "revision {}, server {} {}",
        result.get("protocolVersion")?.as_str()?,
        server.get("name")?.as_str()?,
        server.get("version")?.as_str()?,
    ))
}

fn tools(result: Object<'_>) -> Option<String> {
    let mut seen = Vec::new();
    for tool in result.get("tools")?.as_array()?.iter() {
        let tool = tool.as_object()?;
        let schema = tool.get("inputSchema")?.as_object()?;
        let properties = schema.get("properties")?.as_object()?;
        let names: Vec<&str> = properties.iter().map(|(name, _)| name).collect();
        seen.push(format!(
            "{}({})",
            tool.get("name")?.as_str()?,
            names.join(", ")
        ));
    }
    Some(seen.join(" "))
}

fn answer(result: Object<'_>) -> Option<String> {
    let Value::Array(content) = result.get("content")? else {
        return None;
    };
    let first = content.iter().next()?.as_object()?;
    Some(first.get("text")?.as_str()?.to_owned())
}
