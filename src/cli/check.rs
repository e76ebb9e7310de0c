//! `rocco mcp --check`: a client of its own, to show what a client will see, and a client of the
//! executor too.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::event_loop::sys::executor_channel::{ExecutorAddr, connect, not_opened};
use crate::executor_client;
use crate::limits::{EXECUTOR_HELLO_MS, EXECUTOR_LINE_BYTES_MAX, FRAME_PADDING_BYTES};
use crate::wire::json::{Object, Parser, Value};

use super::serve::ServeOptions;
use super::words::quoted;

/// A server that has not answered and ended by then will not.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked: to open, to list the tools and to call one.
const REQUESTS: usize = 3;

const OPENING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"rocco-check","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
);

/// With an executor, a task that is submitted would be done. A list of tasks does no harm.
const LIST: &str = concat!(
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"larry_task_status","#,
    r#""arguments":{}}}"#,
    "\n",
);

const SUBMISSION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"larry_submit_task","#,
    r#""arguments":{"goal":"Show that a call arrives.","repo":"/tmp","#,
    r#""acceptance":["the call is answered"]}}}"#,
    "\n",
);

/// Starts `rocco mcp` on a pair of pipes, as a client does, and prints each step.
pub(crate) fn run(options: &ServeOptions, out: &mut impl Write) -> io::Result<ExitCode> {
    let program = std::env::current_exe()?;
    let arguments = std::env::args_os().skip(1);
    let arguments: Vec<_> = arguments.filter(|argument| argument != "--check").collect();
    let words = std::iter::once(program.as_os_str()).chain(arguments.iter().map(|word| &**word));
    let words: Vec<_> = words.map(quoted).collect();
    writeln!(out, "command     {}", words.join(" "))?;
    let started = Instant::now();
    let greeted = options.executor.as_ref().map(greet);
    let session = match &greeted {
        None => format!("{OPENING}{SUBMISSION}"),
        Some(_) => format!("{OPENING}{LIST}"),
    };
    let child = Command::new(&program)
        .args(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let verdict = child
        .and_then(|child| converse(child, session.as_bytes()))
        .map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => format!(
                "the server has not answered and ended within {} s; start the command above by \
                 hand, and see what it prints on stderr",
                PATIENCE.as_secs()
            ),
            _ => format!(
                "the server cannot be started or talked to: {error}; start the command above by \
                 hand, and see what it prints on stderr"
            ),
        })
        .and_then(|heard| show(out, &heard));
    let verdict = match greeted {
        None => verdict,
        Some(Ok(executor)) => {
            writeln!(out, "executor    {executor}")?;
            verdict
        }
        Some(Err(fault)) => verdict.and(Err(fault)),
    };
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

/// Says hello to an executor, as a front does, and tells what it answers.
fn greet(way: &ExecutorAddr) -> Result<String, String> {
    let said = match way {
        ExecutorAddr::Child(argv) => start(argv).map(greet_child),
        ExecutorAddr::Socket(path) => connect(path).map(|stream| greet_daemon(&stream)),
    };
    let said = said
        .map_err(|error| not_opened(way, &error).1)
        .and_then(|said| said.map_err(|error| not_heard(&error)))
        .map_err(|what| format!("{what}; {}", remedy(way)))?;
    executor_client::read_hello(&said, |result| portrait(result).unwrap_or_default())
}

/// Why there is no answer to hello, in the words of the server where they are the same.
fn not_heard(error: &io::Error) -> String {
    match error.kind() {
        // What a socket calls the end of its time is the first.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => executor_client::NO_HELLO.into(),
        io::ErrorKind::UnexpectedEof => {
            "the executor did not say hello: it has ended, or closed its output".into()
        }
        _ => format!("the executor did not say hello: {error}"),
    }
}

/// What to do about an executor that cannot be talked to.
fn remedy(executor: &ExecutorAddr) -> String {
    match executor {
        ExecutorAddr::Socket(path) => {
            let path = quoted(path.as_os_str());
            format!("see that a daemon listens there: rocco executor --socket {path} -- AGENT")
        }
        ExecutorAddr::Child(argv) => {
            let words: Vec<_> = argv.iter().map(|word| quoted(word)).collect();
            let command = words.join(" ");
            format!("start it by hand, and see what it prints on stderr: {command}")
        }
    }
}

fn hello() -> Vec<u8> {
    executor_client::hello(1, env!("CARGO_PKG_VERSION"), 0)
}

fn greet_daemon(mut stream: &UnixStream) -> io::Result<String> {
    stream.set_read_timeout(Some(Duration::from_millis(EXECUTOR_HELLO_MS)))?;
    stream.write_all(&hello())?;
    first_line(stream)
}

fn start(argv: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

fn greet_child(mut child: Child) -> io::Result<String> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (sender, receiver) = mpsc::channel();
    // Nobody listens any more if the time is up.
    let listener = Builder::new().spawn(move || sender.send(first_line(stdout)).ok());
    let written = stdin.write_all(&hello());
    let heard = receiver.recv_timeout(Duration::from_millis(EXECUTOR_HELLO_MS));
    drop(stdin);
    // It may have left by itself.
    let _ = child.kill();
    child.wait()?;
    listener?;
    match written {
        // Its end is heard as well.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    heard.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn first_line(stream: impl Read) -> io::Result<String> {
    let mut line = String::new();
    let bytes_max = EXECUTOR_LINE_BYTES_MAX as u64 + 1;
    BufReader::new(stream.take(bytes_max)).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What an executor says of itself.
fn portrait(result: Object<'_>) -> Option<String> {
    let executor = result.get("executor")?.as_object()?;
    let text = |object: Object<'_>, name| match object.get(name) {
        Some(Value::String(text)) => text.escape_debug().to_string(),
        Some(Value::Unsigned(number)) => number.to_string(),
        _ => "?".into(),
    };
    let limits = result.get("limits").and_then(|limits| limits.as_object());
    let limits = limits.unwrap_or(Object::EMPTY);
    let features = result
        .get("features")
        .and_then(|features| features.as_array());
    let features = features.iter().flat_map(|features| features.iter());
    let features: Vec<_> = features
        .filter_map(|feature| Some(feature.as_str()?.escape_debug().to_string()))
        .collect();
    Some(format!(
        "{} {}, durable: {}, {} at once, {} waiting, {} s each, features: {}",
        text(executor, "name"),
        text(executor, "version"),
        text(result, "durable"),
        text(limits, "max_running"),
        text(limits, "max_queued"),
        text(limits, "max_task_s"),
        features.join(" "),
    ))
}

/// What a person wants to know of a result.
type Digest = fn(Object<'_>) -> Option<String>;

/// What a server said until it ended.
struct Heard {
    stdout: Vec<u8>,
    status: ExitStatus,
}

/// Says all there is to say, listens until it is answered, closes the input and listens to the end.
fn converse(mut child: Child, session: &[u8]) -> io::Result<Heard> {
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    stdin.write_all(session)?;
    let (sender, receiver) = mpsc::channel();
    let listener = Builder::new().spawn(move || {
        // Nobody listens any more if the time is up.
        let _ = sender.send(listen(stdin, BufReader::new(stdout)));
    });
    let heard = receiver.recv_timeout(PATIENCE);
    if heard.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    listener?;
    match heard {
        Ok(stdout) => Ok(Heard {
            stdout: stdout?,
            status,
        }),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Reads a reply to each request, and then to the end. The input is closed in between, since an
/// executor that has to start needs longer than calls have after it.
fn listen(stdin: ChildStdin, mut stdout: impl BufRead) -> io::Result<Vec<u8>> {
    let mut heard = Vec::new();
    for _ in 0..REQUESTS {
        stdout.read_until(b'\n', &mut heard)?;
    }
    drop(stdin);
    stdout.read_to_end(&mut heard)?;
    Ok(heard)
}

fn show(out: &mut impl Write, heard: &Heard) -> Result<(), String> {
    let mut lines = heard.stdout.split_inclusive(|&byte| byte == b'\n');
    let steps: [(&str, Digest); REQUESTS] = [
        ("initialize", agreement),
        ("tools/list", tools),
        ("tools/call", answer),
    ];
    for (step, digest) in steps {
        let line = lines.next().ok_or_else(|| {
            let status = heard.status;
            format!(
                "the server did not reply to {step}, and ended with {status}; start the command \
                 above by hand, and see what it prints on stderr"
            )
        })?;
        let seen = result_of(line, digest).ok_or_else(|| {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end().escape_debug();
            format!("the reply to {step} is not understood, which is a bug of rocco: {line}")
        })?;
        writeln!(out, "{step:<12}{seen}").map_err(|error| error.to_string())?;
    }
    match lines.next() {
        Some(_) => {
            Err("the server sent more than one reply a request, which is a bug of rocco".into())
        }
        None if !heard.status.success() => Err(format!(
            "the server ended with {} when its input was closed; see what it prints on stderr",
            heard.status
        )),
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
