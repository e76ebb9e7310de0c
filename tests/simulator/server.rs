//! The server under test: the real one, with tools that give the simulator something to see.

use std::sync::LazyLock;

use rocco::internals::engine::Engine;
use rocco::internals::task::submit::SubmitTask;
use rocco::{Info, Server, ToolSpec, Value};

/// The names of the tools, two on a page.
pub const TOOLS: [&str; 4] = ["larry_submit_task", "echo", "fill", "needy"];
/// The cursor of the second page.
pub const CURSOR: &str = "page-1";
/// The capability that the tool `needy` cannot do without.
pub const NEEDED: &str = "sampling";
/// What `echo` and `needy` say if they are given no text.
pub const WORDLESS: &str = "nothing";
/// The longest text of `fill`: more than a result may have.
pub const FILL_BYTES_MAX: usize = 4 << 20;

static FILLING: LazyLock<String> = LazyLock::new(|| "x".repeat(FILL_BYTES_MAX));

pub fn engine() -> Engine {
    LazyLock::force(&FILLING);
    let plain = |name: &'static str| ToolSpec::new(name, "A tool.", r#"{"type":"object"}"#);
    Server::new(Info::new("rocco", "0").title("R"))
        .tool(SubmitTask::new())
        .tool_fn(plain("echo"), |call, reply| {
            let text = call.arguments.get("text").and_then(|text| text.as_str());
            reply.text(text.unwrap_or(WORDLESS))
        })
        .tool_fn(plain("fill"), |call, reply| {
            let bytes = match call.arguments.get("bytes") {
                Some(Value::Unsigned(bytes)) => bytes as usize,
                _ => 0,
            };
            reply.text(&FILLING[..bytes.min(FILL_BYTES_MAX)])
        })
        .tool_fn(
            plain("needy").needs_client_capability(NEEDED),
            |_, reply| reply.text(WORDLESS),
        )
        .page_size(2)
        .into_engine()
}
