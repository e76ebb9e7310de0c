//! The tool `larry_submit_task`, not connected, on rmcp: as its documentation sets a server up, and
//! with `--fast` on a single-threaded runtime with the pipes registered with it, instead of on a
//! thread that blocks.

use std::fs::File;
use std::os::fd::FromRawFd as _;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt as _, schemars, tool, tool_handler, tool_router};
use serde_json::json;
use tokio::net::unix::pipe;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One bounded coding task.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
struct Task {
    /// What is to be achieved.
    goal: String,
    /// The local repository to work in: its absolute path.
    repo: String,
    /// The files that may be changed.
    files: Option<Vec<String>>,
    /// What decides that the task is done.
    acceptance: Vec<String>,
}

#[derive(Debug, Clone)]
struct Peer {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Peer {
    #[tool(
        name = "larry_submit_task",
        description = "Hands one bounded coding task to an executor that works on its own in a local repository."
    )]
    fn submit(&self, Parameters(_task): Parameters<Task>) -> CallToolResult {
        let message = "no executor is connected, so the task was not submitted.";
        let mut result = CallToolResult::error(vec![ContentBlock::text(format!(
            "executor_not_connected: {message}"
        ))]);
        result.structured_content = Some(json!({"error": {
            "code": "executor_not_connected",
            "message": message,
            "retryable": false,
            "details": {"reason": "not_configured"},
        }}));
        result
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn peer() -> Peer {
    Peer {
        tool_router: Peer::tool_router(),
    }
}

#[tokio::main]
async fn documented() -> Outcome {
    peer()
        .serve(rmcp::transport::stdio())
        .await?
        .waiting()
        .await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn fast() -> Outcome {
    for fd in [0, 1] {
        // SAFETY: the call takes integers.
        unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
    }
    // SAFETY: nobody else in this program uses these descriptors.
    let (stdin, stdout) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
    let transport = (
        pipe::Receiver::from_file(stdin)?,
        pipe::Sender::from_file(stdout)?,
    );
    peer().serve(transport).await?.waiting().await?;
    Ok(())
}

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("--fast") => fast(),
        _ => documented(),
    }
}
