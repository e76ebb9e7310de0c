//! Drives a server with `rmcp` 3.x.
//!
//!     rmcp-client [MODE] -- SERVER ARGS...
//!
//! The modes are those of the library:
//!
//! - `initialize`, its default: the handshake. The library asks for the newest
//!   revision that it knows, though that one has no handshake, and takes the
//!   newest that has one.
//! - `auto`: asks `server/discover`, and falls back to the handshake.
//! - `discover`: the same without a fallback.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, process};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, PingRequest, ProtocolVersion,
    ServerResult,
};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Client = RunningService<RoleClient, ()>;

/// A client waits for ever for a reply, and a test run should not.
const PATIENCE: Duration = Duration::from_secs(30);

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record.sh");
const TOOL: &str = "larry_submit_task";

/// Those that are there with an executor alone.
const FOLLOWING: [&str; 3] = [
    "larry_task_status",
    "larry_task_result",
    "larry_cancel_task",
];

const INVALID_PARAMS: i32 = -32602;

/// What the caller asked for.
struct Drive {
    mode: ClientLifecycleMode,
    revision: ProtocolVersion,
    server: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(drive) = parse(env::args().skip(1).collect()) else {
        eprintln!("usage: rmcp-client [initialize|auto|discover] -- SERVER ARGS...");
        return ExitCode::from(2);
    };
    let revision = drive.revision.clone();
    match run(drive).await {
        Ok(()) => {
            println!("spoke {revision}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads `MODE -- SERVER ARGS...`; the mode may be left out.
fn parse(mut given: Vec<String>) -> Option<Drive> {
    let split = given.iter().position(|argument| argument == "--")?;
    let server = given.split_off(split + 1);
    let name = match &given[..split] {
        [] => "initialize",
        [name] => name.as_str(),
        _ => return None,
    };
    let modern = ProtocolVersion::V_2026_07_28;
    let (mode, revision) = match name {
        "initialize" => (
            ClientLifecycleMode::Initialize,
            ProtocolVersion::V_2025_11_25,
        ),
        "auto" => (
            ClientLifecycleMode::Auto {
                preferred_versions: vec![modern.clone()],
                legacy_version: None,
            },
            modern,
        ),
        "discover" => (
            ClientLifecycleMode::Discover {
                preferred_versions: vec![modern.clone()],
            },
            modern,
        ),
        _ => return None,
    };
    (!server.is_empty()).then_some(Drive {
        mode,
        revision,
        server,
    })
}

/// Runs the whole journey and leaves nothing behind, neither files nor servers.
async fn run(drive: Drive) -> Outcome {
    let directory = env::temp_dir().join(format!("rocco-client-{}", process::id()));
    fs::create_dir(&directory)?;
    let outcome = match tokio::time::timeout(PATIENCE, journey(&directory, drive)).await {
        Ok(Ok(())) => check_run(&directory),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(format!("no end after {} s", PATIENCE.as_secs()).into()),
    };
    kill_leftovers(&directory);
    // A server that was just killed may still get its note; the outcome matters more.
    let _ = fs::remove_dir_all(&directory);
    outcome
}

async fn journey(directory: &Path, drive: Drive) -> Outcome {
    let mut command = Command::new("sh");
    command.arg(RECORD).arg(directory).args(&drive.server);
    let transport = TokioChildProcess::new(command)?;
    let client = ().serve_with_lifecycle(transport, drive.mode).await?;
    let executor = drive.server.iter().any(|argument| argument == "--executor");
    let outcome = converse(&client, &drive.revision, executor).await;
    client.cancel().await?;
    outcome
}

async fn converse(client: &Client, revision: &ProtocolVersion, executor: bool) -> Outcome {
    let info = client
        .peer_info()
        .ok_or("the server told nothing of itself")?;
    expect("the negotiated revision", &info.protocol_version, revision)?;

    let tools = client.list_all_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let following: &[&str] = if executor { &FOLLOWING } else { &[] };
    expect(
        "the names of the tools",
        &names,
        &[&[TOOL], following].concat(),
    )?;
    expect(
        "the type of the input schema",
        &tools[0].input_schema.get("type"),
        &Some(&json!("object")),
    )?;
    let title = tools[0].title.as_deref().unwrap_or_default();
    expect("the tool lacks a title", &title.is_empty(), &false)?;

    let task = json!({
        "goal": "Retry the upload when the connection is reset.",
        "repo": "/srv/uploader",
        "acceptance": ["cargo test passes"],
        "files": ["src/upload.rs"],
    });
    if executor {
        hand_over(client, task).await?;
    } else {
        expect_tool_error(client, TOOL, task, "executor_not_connected").await?;
    }

    // The repository is missing and the goal is no string.
    let malformed = json!({ "goal": 7, "acceptance": ["cargo test passes"] });
    expect_tool_error(client, TOOL, malformed, "invalid_arguments").await?;

    match client
        .call_tool(CallToolRequestParams::new("no_such_tool"))
        .await
    {
        Err(ServiceError::McpError(error)) => {
            expect(
                "the code for an unknown tool",
                &error.code.0,
                &INVALID_PARAMS,
            )?;
        }
        other => return Err(format!("an unknown tool was not refused: {other:?}").into()),
    }

    // The newer revision has no ping.
    if revision.has_initialize() {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        match client.send_request(ping).await? {
            ServerResult::EmptyResult(_) => {}
            other => return Err(format!("the reply to a ping: {other:?}").into()),
        }
    }
    Ok(())
}

/// Has tests/executor_client/executor.py do a task, and calls each of the tools.
async fn hand_over(client: &Client, task: Value) -> Outcome {
    let submitted = expect_success(client, TOOL, task.clone()).await?;
    let id = &submitted["task_id"];
    let [status, page, cancel] = FOLLOWING;
    let ended = expect_success(client, status, json!({ "task_id": id, "wait_s": 45 })).await?;
    expect(
        "the state after the wait",
        &ended["state"],
        &json!("succeeded"),
    )?;
    expect("the summary", &ended["record"]["summary"], &task["goal"])?;
    // That executor has no pages, and a task that has ended stays as it is.
    let diff = json!({ "task_id": id, "part": "diff" });
    expect_tool_error(client, page, diff, "unsupported").await?;
    let cancelled = expect_success(client, cancel, json!({ "task_id": id })).await?;
    expect(
        "the state after a cancel that came too late",
        &cancelled["state"],
        &json!("succeeded"),
    )
}

async fn expect_success(client: &Client, tool: &'static str, arguments: Value) -> Outcome<Value> {
    let result = call(client, tool, arguments).await?;
    if result.is_error == Some(true) {
        return Err(format!("{tool} failed: {:?}", result.content).into());
    }
    Ok(result.structured_content.unwrap_or_default())
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Outcome<CallToolResult> {
    let Value::Object(arguments) = arguments else {
        return Err("arguments are an object".into());
    };
    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
    Ok(client.call_tool(call).await?)
}

async fn expect_tool_error(
    client: &Client,
    tool: &'static str,
    arguments: Value,
    code: &str,
) -> Outcome {
    let result = call(client, tool, arguments).await?;
    expect(
        &format!("isError where {code} is expected"),
        &result.is_error,
        &Some(true),
    )?;
    let text = result.content.first().and_then(|block| block.as_text());
    let text = text.map_or("", |content| content.text.as_str());
    if !text.starts_with(code) {
        return Err(format!("the text should start with {code}: {text:?}").into());
    }
    Ok(())
}

/// Checks that the server ran once and ended by itself, in good order and silently.
fn check_run(directory: &Path) -> Outcome {
    let runs = runs(directory)?;
    expect("how often the server was started", &runs.len(), &1)?;
    let end = fs::read_to_string(runs[0].join("end"))
        .map_err(|_| "the server had not ended when its client was done")?;
    expect(
        "how the server ended: exit code and signal",
        &end.trim(),
        &"0 none",
    )?;
    let stderr = fs::read_to_string(runs[0].join("stderr"))?;
    expect("the stderr of the server", &stderr.as_str(), &"")
}

/// Ends the servers that outlived their client.
fn kill_leftovers(directory: &Path) {
    for run in runs(directory).unwrap_or_default() {
        if run.join("end").exists() {
            continue;
        }
        if let Ok(pid) = fs::read_to_string(run.join("pid")) {
            let _ = process::Command::new("kill")
                .args(["-9", pid.trim()])
                .status();
        }
    }
}

fn runs(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(directory)? {
        runs.push(entry?.path());
    }
    Ok(runs)
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, wanted: &T) -> Outcome {
    if seen == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {seen:?} instead of {wanted:?}").into())
    }
}
