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

fn server() -> Server {
    Server::new(Info::new("words", "1.0.0")).tool(WordCount)
}

fn main() -> ExitCode {
    server().run_stdio()
}

/// How a tool is tested: as a client calls it, without a process.
#[cfg(test)]
mod tests {
    use super::server;

    /// The reply to a call of a stateless client, which needs no handshake.
    fn called(arguments: &str) -> String {
        let meta = concat!(
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientCapabilities":{}}"#
        );
        let params = format!(r#"{{"name":"word_count","arguments":{arguments},"_meta":{meta}}}"#);
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"#;
        let line = format!("{request}{params}}}\n");
        let mut engine = server().into_engine();
        engine.space()[..line.len()].copy_from_slice(line.as_bytes());
        engine.fill(line.len());
        engine.serve();
        String::from_utf8(engine.pending().to_vec()).unwrap()
    }

    #[test]
    fn words_are_counted() {
        let reply = called(r#"{"text":"three short words"}"#);
        assert!(
            reply.contains(r#""structuredContent":{"words":3}"#),
            "{reply}"
        );
    }

    #[test]
    fn a_missing_text_is_told() {
        let reply = called("{}");
        let text = "invalid_arguments: /text must be a string. Call again with a text.";
        assert!(reply.contains(text), "{reply}");
    }
}
