//! A server with a tool of its own: the library's example, and a second load to measure.
//!
//! `cargo run --release --example words` serves it on stdin and stdout.

use std::process::ExitCode;

use rocco::{Answered, Call, Info, Reply, Server, Tool, ToolError, ToolSpec};

struct WordCount;

impl Tool for WordCount {
    fn spec(&self) -> ToolSpec {
        let input =
            r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
        let output = r#"{"type":"object","properties":{"words":{"type":"integer"}}}"#;
        ToolSpec::new("word_count", "Counts the words of a text.", input)
            .title("Word count")
            .output_schema(output)
    }

    fn call<'r>(&mut self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
        match call.arguments.get("text").and_then(|text| text.as_str()) {
            Some(text) => reply.structured(|result| {
                result.unsigned("words", text.split_whitespace().count() as u64);
            }),
            None => reply.error(
                ToolError::new("invalid_arguments", format_args!("/text must be a string"))
                    .advice("Call again with a text"),
            ),
        }
    }
}

fn main() -> ExitCode {
    Server::new(Info::new("words", "1.0.0"))
        .tool(WordCount)
        .run_stdio()
}
