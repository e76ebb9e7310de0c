//! The tool `larry_submit_task`, not connected, on rust-mcp-sdk, as its documentation sets a server
//! up.

use std::sync::Arc;

use async_trait::async_trait;
use rust_mcp_sdk::error::SdkResult;
use rust_mcp_sdk::mcp_server::{McpServerOptions, ServerHandler, server_runtime};
use rust_mcp_sdk::schema::*;
use rust_mcp_sdk::*;
use serde_json::json;

#[macros::mcp_tool(
    name = "larry_submit_task",
    description = "Hands one bounded coding task to an executor that works on its own in a local repository."
)]
#[derive(Debug, ::serde::Deserialize, ::serde::Serialize, macros::JsonSchema)]
pub struct Task {
    /// What is to be achieved.
    goal: String,
    /// The local repository to work in: its absolute path.
    repo: String,
    /// The files that may be changed.
    files: Option<Vec<String>>,
    /// What decides that the task is done.
    acceptance: Vec<String>,
}

#[derive(Default)]
struct Peer;

#[async_trait]
impl ServerHandler for Peer {
    async fn handle_list_tools_request(
        &self,
        _request: Option<PaginatedRequestParams>,
        _runtime: Arc<dyn McpServer>,
    ) -> std::result::Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            tools: vec![Task::tool()],
            meta: None,
            next_cursor: None,
        })
    }

    async fn handle_call_tool_request(
        &self,
        params: CallToolRequestParams,
        _runtime: Arc<dyn McpServer>,
    ) -> std::result::Result<CallToolResult, CallToolError> {
        if params.name != "larry_submit_task" {
            return Err(CallToolError::unknown_tool(params.name));
        }
        let arguments = serde_json::Value::Object(params.arguments.unwrap_or_default());
        serde_json::from_value::<Task>(arguments).map_err(CallToolError::new)?;
        let message = "no executor is connected, so the task was not submitted.";
        let mut result =
            CallToolResult::text_content(vec![format!("executor_not_connected: {message}").into()]);
        result.is_error = Some(true);
        result.structured_content = json!({"error": {
            "code": "executor_not_connected",
            "message": message,
            "retryable": false,
            "details": {"reason": "not_configured"},
        }})
        .as_object()
        .cloned();
        Ok(result)
    }
}

#[tokio::main]
async fn main() -> SdkResult<()> {
    let details = InitializeResult {
        server_info: Implementation {
            name: "rocco".into(),
            version: "0.1.0".into(),
            title: None,
            description: None,
            icons: vec![],
            website_url: None,
        },
        capabilities: ServerCapabilities {
            tools: Some(ServerCapabilitiesTools { list_changed: None }),
            ..Default::default()
        },
        protocol_version: ProtocolVersion::V2025_11_25.into(),
        instructions: None,
        meta: None,
    };
    let transport = StdioTransport::new(TransportOptions::default())?;
    server_runtime::create_server(McpServerOptions {
        server_details: details,
        transport,
        handler: Peer.to_mcp_server_handler(),
        task_store: None,
        client_task_store: None,
        message_observer: None,
    })
    .start()
    .await
}
