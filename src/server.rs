//! A server with tools of your own.

use std::process::ExitCode;
use std::time::Duration;

use crate::engine::Engine;
use crate::event_loop::sys::executor_channel::{ExecutorAddr, random_bits};
use crate::event_loop::{self, Ended, Failure};
use crate::executor_client::{ClientSettings, ExecutorClient};
use crate::limits::{BUSY_POLL_US_MAX, TOOLS_MAX};
use crate::mcp::catalog::Info;
use crate::mcp::tool::{Answered, Call, Reply, Tool, ToolSpec};

/// An MCP server: who it is, and its tools.
///
/// ```no_run
/// use rocco::{Answered, Call, Info, Reply, Server, Tool, ToolError, ToolSpec};
///
/// /// Counts the words of a text.
/// struct WordCount;
///
/// impl Tool for WordCount {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new(
///             "word_count",
///             "Counts the words of a text.",
///             r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
///         )
///         .output_schema(r#"{"type":"object","properties":{"words":{"type":"integer"}}}"#)
///     }
///
///     fn call(&mut self, call: Call<'_>, reply: Reply<'_>) -> Answered {
///         match call.arguments.get("text").and_then(|text| text.as_str()) {
///             Some(text) => reply.structured(|result| {
///                 result.unsigned("words", text.split_whitespace().count() as u64);
///             }),
///             None => reply.error(ToolError {
///                 code: "invalid_arguments",
///                 what: format_args!("/text must be a string"),
///                 advice: "Call again with a text",
///                 retryable: false,
///             }),
///         }
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     Server::new(Info::new("words", "1.0.0")).tool(WordCount).run_stdio()
/// }
/// ```
///
/// The arguments are borrowed from the frame and the result goes straight into the outbox: a call
/// claims no heap unless the tool does.
pub struct Server {
    info: Info,
    tools: Vec<Box<dyn Tool>>,
    page_tools: usize,
    busy_poll: Duration,
    executor: Option<(ExecutorAddr, u64)>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server without tools.
    pub fn new(info: Info) -> Self {
        Self {
            info,
            tools: Vec::new(),
            page_tools: TOOLS_MAX,
            busy_poll: Duration::ZERO,
            executor: None,
        }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Box::new(tool));
        self
    }

    /// Adds a tool that is a description and a function.
    ///
    /// ```
    /// use rocco::{Info, Server, ToolSpec};
    ///
    /// let spec = ToolSpec::new("hello", "Says hello.", r#"{"type":"object"}"#);
    /// let server = Server::new(Info::new("greeter", "1.0.0"))
    ///     .tool_fn(spec, |_call, reply| reply.text("Hello."));
    /// ```
    pub fn tool_fn(
        self,
        spec: ToolSpec,
        call: impl FnMut(Call<'_>, Reply<'_>) -> Answered + 'static,
    ) -> Self {
        self.tool(ToolFn { spec, call })
    }

    /// How many tools a page of `tools/list` holds. Without a word, all of them.
    pub fn page_size(mut self, tools: usize) -> Self {
        self.page_tools = tools;
        self
    }

    /// Looks for input for so long before sleeping, at most
    /// [`BUSY_POLL_US_MAX`]: a faster reply where a CPU can be
    /// spared. Without a word it sleeps at once.
    pub fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = time.min(Duration::from_micros(BUSY_POLL_US_MAX));
        self
    }

    /// Hands coding tasks to an executor, and adds the four tools for it. `depth` is how many tasks
    /// this process is inside of; a task does not submit another.
    pub fn executor(mut self, way: ExecutorAddr, depth: u64) -> Self {
        self.executor = Some((way, depth));
        self
    }

    /// The server without a transport, for tests and for transports of your own.
    ///
    /// # Panics
    ///
    /// If a tool's spec is not what [`ToolSpec::new`] asks for, or two tools share a name.
    pub fn into_engine(self) -> Engine {
        let client = self.executor.map(|(_, depth)| {
            ExecutorClient::new(ClientSettings {
                version: env!("CARGO_PKG_VERSION"),
                depth,
                random: Box::new(random_bits),
            })
        });
        Engine::with_executor_client(&self.info, self.tools, self.page_tools, client)
    }

    /// Serves on stdin and stdout until the client leaves or a signal asks for the end. What
    /// signals did before, they do again afterwards. One server of a process can do so at a time.
    ///
    /// # Errors
    ///
    /// If the system fails the server: see [`Failure`].
    ///
    /// # Panics
    ///
    /// As [`Server::into_engine`].
    pub fn serve_stdio(self) -> Result<Ended, Failure> {
        let busy_poll = self.busy_poll;
        let way = self.executor.as_ref().map(|(way, _)| way.clone());
        event_loop::serve_stdio(&mut self.into_engine(), way, busy_poll)
    }

    /// As [`Server::serve_stdio`], with one line on stderr and exit code 1 for a failure: a whole
    /// `main`, which is why it may change two things for the whole process. glibc's allocator hands
    /// large blocks back to the system as soon as they are freed, and signals that come after the
    /// end are ignored.
    pub fn run_stdio(self) -> ExitCode {
        event_loop::sys::allocator::return_large_blocks();
        let busy_poll = self.busy_poll;
        let way = self.executor.as_ref().map(|(way, _)| way.clone());
        match event_loop::serve_stdio_and_exit(&mut self.into_engine(), way, busy_poll) {
            Ok(_) => ExitCode::SUCCESS,
            Err(failure) => {
                event_loop::complain(format_args!("{failure}"));
                ExitCode::FAILURE
            }
        }
    }
}

/// A tool that is a description and a function.
struct ToolFn<F> {
    spec: ToolSpec,
    call: F,
}

impl<F: FnMut(Call<'_>, Reply<'_>) -> Answered> Tool for ToolFn<F> {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&mut self, call: Call<'_>, reply: Reply<'_>) -> Answered {
        (self.call)(call, reply)
    }
}
