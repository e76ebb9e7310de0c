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
///     fn call<'r>(&mut self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
///         match call.arguments.get("text").and_then(|text| text.as_str()) {
///             Some(text) => reply.structured(|result| {
///                 result.unsigned("words", text.split_whitespace().count() as u64);
///             }),
///             None => reply.error(
///                 ToolError::new("invalid_arguments", format_args!("/text must be a string"))
///                     .advice("Call again with a text"),
///             ),
///         }
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     Server::new(Info::new("words", "1.0.0")).tool(WordCount).run_stdio()
/// }
/// ```
///
/// The arguments are borrowed from the line that the client sent, and the result goes straight to
/// its output: a call claims no heap unless the tool does.
#[must_use = "a server does nothing until it is run"]
pub struct Server {
    info: Info,
    tools: Vec<Box<dyn Tool>>,
    page_tools: usize,
    busy_poll: Duration,
    executor: Option<ExecutorAddr>,
    task_depth: u64,
}

/// What is built in one thread can serve in another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Server>();
    is_send::<Engine>();
};

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
            task_depth: 0,
        }
    }

    /// Adds a tool, up to 1,024 of them.
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
    /// # let _ = server;
    /// ```
    pub fn tool_fn(
        self,
        spec: ToolSpec,
        call: impl for<'r> FnMut(Call<'_>, Reply<'r>) -> Answered<'r> + Send + 'static,
    ) -> Self {
        self.tool(ToolFn { spec, call })
    }

    /// How many tools a page of `tools/list` holds, at least 1. Without a word, all of them.
    pub fn page_size(mut self, tools: usize) -> Self {
        self.page_tools = tools;
        self
    }

    /// Looks for input for so long before sleeping, at most 1,000 microseconds: a faster reply
    /// where a CPU can be spared. Without a word it sleeps at once.
    pub fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = time.min(Duration::from_micros(BUSY_POLL_US_MAX));
        self
    }

    /// Hands coding tasks to an executor, and adds the four tools for it behind those of the
    /// server: `larry_submit_task`, `larry_task_status`, `larry_task_result` and
    /// `larry_cancel_task`. The executor is reached with the first call that needs it.
    pub fn executor(mut self, addr: ExecutorAddr) -> Self {
        self.executor = Some(addr);
        self
    }

    /// How many tasks this process is inside of. A task does not submit another.
    pub(crate) fn task_depth(mut self, depth: u64) -> Self {
        self.task_depth = depth;
        self
    }

    /// The server without a transport, for tests and for transports of your own.
    ///
    /// # Panics
    ///
    /// If the server has an executor, which [`Server::serve_stdio`] and [`Server::run_stdio`] alone
    /// can reach. And if what it was built from is not what its documentation asks for: two tools
    /// share a name, there are more than 1,024, a name or a schema is not what [`ToolSpec::new`]
    /// takes, a page holds no tool, or the descriptions of all pass 3,145,728 bytes.
    pub fn into_engine(self) -> Engine {
        assert!(
            self.executor.is_none(),
            "an engine has no stream to an executor: use serve_stdio or run_stdio"
        );
        self.built()
    }

    fn built(self) -> Engine {
        let client = self.executor.map(|_| {
            ExecutorClient::new(ClientSettings {
                version: env!("CARGO_PKG_VERSION"),
                depth: self.task_depth,
                random: Box::new(random_bits),
            })
        });
        Engine::with_executor_client(&self.info, self.tools, self.page_tools, client)
    }

    /// Serves on stdin and stdout until the client leaves or a signal asks for the end.
    ///
    /// It takes the calling thread. One server of a process can serve at a time: a second one gets
    /// [`Failure::Busy`]. While it serves, SIGTERM and SIGINT ask for its end, and so does SIGHUP
    /// unless it was ignored; SIGPIPE is ignored. What signals did before, they do again when it
    /// returns. Nothing else of the process may read stdin or write stdout meanwhile. The flags of
    /// the two descriptors are not changed.
    ///
    /// # Errors
    ///
    /// If the system fails the server: see [`Failure`].
    ///
    /// # Panics
    ///
    /// As [`Server::into_engine`], but that it may have an executor.
    pub fn serve_stdio(self) -> Result<Ended, Failure> {
        let (busy_poll, addr) = (self.busy_poll, self.executor.clone());
        event_loop::serve_stdio(&mut self.built(), addr, busy_poll)
    }

    /// As [`Server::serve_stdio`], as the whole of a `main`: exit code 0, or one line on stderr and
    /// exit code 1 for a failure. It may therefore change two things for the whole process: glibc's
    /// allocator hands large blocks back to the system as soon as they are freed, and the signals
    /// that ask for the end are ignored after it, so that a late one does not change the exit code.
    ///
    /// # Panics
    ///
    /// As [`Server::serve_stdio`].
    pub fn run_stdio(self) -> ExitCode {
        event_loop::sys::allocator::return_large_blocks();
        let (busy_poll, addr) = (self.busy_poll, self.executor.clone());
        match event_loop::serve_stdio_and_exit(&mut self.built(), addr, busy_poll) {
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

impl<F> Tool for ToolFn<F>
where
    F: for<'r> FnMut(Call<'_>, Reply<'r>) -> Answered<'r> + Send,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call<'r>(&mut self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
        (self.call)(call, reply)
    }
}
