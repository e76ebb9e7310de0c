//! The library as another program uses it: tools of its own, in every revision.

mod support;

use rocco::internals::limits::{
    ARENA_BYTES_MAX, BUSY_POLL_US_MAX, DEPTH_MAX, FRAME_BYTES_MAX, OUTBOX_HIGH_WATER_BYTES,
    PREPARED_BYTES_MAX, READ_BYTES_MAX, RESULTS_BYTES_MAX, SUBSCRIPTIONS_MAX, TOOL_NAME_BYTES_MAX,
    TOOLS_MAX,
};
use rocco::{Annotations, Engine, Icon, Info, Server, ToolError, ToolSpec};
use serde_json::{Value, json};

const OBJECT: &str = r#"{ "type": "object" }"#;

fn server() -> Server {
    let info = Info::new("demo", "1.2.3")
        .title("Demo")
        .description("Shows.")
        .website_url("https://example.invalid/")
        .instructions("Call sum.")
        .icon(Icon::new("data:,x").mime_type("text/plain"));
    let sum = ToolSpec::new("sum", "Adds numbers.", OBJECT)
        .title("Sum")
        .output_schema(OBJECT)
        .annotations(Annotations::new().read_only(true))
        .icon(Icon::new("data:,y"));
    Server::new(info)
        .tool_fn(sum, |call, reply| {
            let numbers = call
                .arguments
                .get("numbers")
                .and_then(|value| value.as_array());
            match numbers {
                Some(numbers) => reply.structured(|result| {
                    let sum = numbers.iter().map(|value| match value {
                        rocco::Value::Unsigned(number) => number,
                        _ => 0,
                    });
                    result.unsigned("sum", sum.sum());
                    result.string("note", "a \"quoted\"\n\u{2028}line");
                }),
                None => reply.error(
                    ToolError::new("no_numbers", format_args!("there is nothing to add"))
                        .advice("Send numbers"),
                ),
            }
        })
        .tool_fn(ToolSpec::new("hello", "Says hello.", OBJECT), |_, reply| {
            reply.text("Hello.\n")
        })
        .tool_fn(
            ToolSpec::new("flood", "Says too much.", OBJECT),
            |_, reply| reply.text(&"x".repeat(2 * RESULTS_BYTES_MAX)),
        )
}

fn send(engine: &mut Engine, line: &str) {
    engine.space()[..line.len()].copy_from_slice(line.as_bytes());
    engine.fill(line.len());
}

/// What an engine has to say, as if it were sent.
fn taken(engine: &mut Engine) -> String {
    let said = std::str::from_utf8(engine.pending()).unwrap().to_owned();
    engine.consume(said.len());
    said
}

/// One request to an engine, and its reply.
fn ask(engine: &mut Engine, id: u64, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    send(engine, &format!("{request}\n"));
    engine.serve();
    let said = taken(engine);
    assert_eq!(said.matches('\n').count(), 1, "{said}");
    let reply: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(reply["id"], id);
    reply
}

fn open(server: Server, version: &str) -> (Engine, Value) {
    let mut engine = server.into_engine();
    let client = json!({"name": "t", "version": "0"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    let reply = ask(&mut engine, 1, "initialize", params);
    (engine, reply["result"].clone())
}

fn call(engine: &mut Engine, name: &str, arguments: Value) -> Value {
    ask(
        engine,
        2,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

#[test]
fn each_revision_gets_the_fields_it_knows() {
    for (version, titles, icons) in [
        ("2024-11-05", false, false),
        ("2025-03-26", false, false),
        ("2025-06-18", true, false),
        ("2025-11-25", true, true),
    ] {
        let (mut engine, opened) = open(server(), version);
        assert_eq!(opened["protocolVersion"], version);
        assert_eq!(opened["instructions"], "Call sum.");
        let info = &opened["serverInfo"];
        assert_eq!(info.get("title").is_some(), titles, "{version}");
        for member in ["description", "websiteUrl", "icons"] {
            assert_eq!(info.get(member).is_some(), icons, "{version} {member}");
        }
        let listed = ask(&mut engine, 2, "tools/list", json!({}));
        let sum = &listed["result"]["tools"][0];
        assert_eq!(
            sum.get("annotations").is_some(),
            version != "2024-11-05",
            "{version}"
        );
        assert_eq!(sum.get("title").is_some(), titles, "{version}");
        assert_eq!(sum.get("outputSchema").is_some(), titles, "{version}");
        assert_eq!(sum.get("icons").is_some(), icons, "{version}");
        assert_eq!(sum.get("execution").is_some(), icons, "{version}");
    }
}

#[test]
fn a_structured_result_is_mirrored_as_text() {
    let wanted = json!({"sum": 6, "note": "a \"quoted\"\n\u{2028}line"});
    for (version, structured) in [("2025-03-26", false), ("2025-06-18", true)] {
        let (mut engine, _) = open(server(), version);
        let reply = call(&mut engine, "sum", json!({"numbers": [1, 2, 3]}));
        let result = &reply["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), wanted);
        assert_eq!(
            result.get("structuredContent"),
            structured.then_some(&wanted),
            "{version}"
        );
        assert_eq!(result.get("isError"), None);
    }
}

#[test]
fn an_error_has_its_code_and_advice_in_the_text() {
    for (version, structured) in [("2024-11-05", false), ("2025-11-25", true)] {
        let (mut engine, _) = open(server(), version);
        let reply = call(&mut engine, "sum", json!({}));
        let result = &reply["result"];
        assert_eq!(result["isError"], true);
        let text = &result["content"][0]["text"];
        assert_eq!(text, "no_numbers: there is nothing to add. Send numbers.");
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"] == "no_numbers", structured, "{version}");
        assert_eq!(error["retryable"] == false, structured, "{version}");
    }
}

#[test]
fn a_result_that_does_not_fit_is_an_internal_error_and_the_next_one_is_served() {
    let (mut engine, _) = open(server(), "2025-11-25");
    let reply = call(&mut engine, "flood", json!({}));
    assert_eq!(reply["error"]["code"], -32603);
    let reply = call(&mut engine, "hello", json!({}));
    assert_eq!(reply["result"]["content"][0]["text"], "Hello.\n");
}

/// An error's words stand in the text and, copied, in the structured content.
#[test]
fn an_error_that_fits_once_but_not_twice_is_an_internal_error() {
    let server = Server::new(Info::new("demo", "0")).tool_fn(
        ToolSpec::new("wail", "Fails at length.", OBJECT),
        |call, reply| {
            let words = "x".repeat(match call.arguments.get("bytes") {
                Some(rocco::Value::Unsigned(bytes)) => bytes as usize,
                _ => 0,
            });
            reply.error(ToolError::new("wailed", format_args!("{words}")).advice("Go away"))
        },
    );
    let (mut engine, _) = open(server, "2025-11-25");
    let half = RESULTS_BYTES_MAX / 2;
    for (bytes, fits) in [(half - 4096, true), (half + OUTBOX_HIGH_WATER_BYTES, false)] {
        let reply = call(&mut engine, "wail", json!({"bytes": bytes}));
        let error = &reply["result"]["structuredContent"]["error"];
        let message = error["message"].as_str().map(str::len);
        assert_eq!(message, fits.then_some(bytes + ". Go away.".len()));
        assert_eq!(reply["error"]["code"] == -32603, !fits, "{bytes}");
    }
}

#[test]
fn pages_are_followed_to_the_end_and_a_foreign_cursor_is_refused() {
    for page_size in 1..=4 {
        let (mut engine, _) = open(server().page_size(page_size), "2025-11-25");
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let reply = ask(&mut engine, 3, "tools/list", params);
            let tools = reply["result"]["tools"].as_array().unwrap();
            assert!((1..=page_size).contains(&tools.len()));
            names.extend(
                tools
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned()),
            );
            match reply["result"].get("nextCursor") {
                None => break,
                Some(cursor) => params = json!({"cursor": cursor}),
            }
        }
        assert_eq!(names, ["sum", "hello", "flood"]);
        for cursor in [
            json!(""),
            json!("page-0"),
            json!("page-9"),
            json!("page-01"),
            json!(1),
        ] {
            let reply = ask(&mut engine, 4, "tools/list", json!({"cursor": cursor}));
            assert_eq!(reply["error"]["code"], -32602, "{cursor}");
        }
    }
}

#[test]
fn a_server_without_tools_lists_none() {
    let (mut engine, _) = open(Server::new(Info::new("bare", "0")), "2025-06-18");
    let reply = ask(&mut engine, 2, "tools/list", Value::Null);
    assert_eq!(reply["result"], json!({"tools": []}));
}

#[test]
#[should_panic(expected = "two tools are named hello")]
fn twins_are_refused_at_start() {
    let hello = || ToolSpec::new("hello", "Says hello.", OBJECT);
    let server = Server::new(Info::new("twins", "0"));
    let _ = server
        .tool_fn(hello(), |_, reply| reply.text(""))
        .tool_fn(hello(), |_, reply| reply.text(""))
        .into_engine();
}

#[test]
#[should_panic(expected = "a schema of bad is not a JSON object")]
fn a_schema_that_is_no_object_is_refused_at_start() {
    let nested = r#"{"properties":{"a":{"type":"object"}}}"#;
    let spec = ToolSpec::new("bad", "", nested);
    let _ = Server::new(Info::new("bad", "0"))
        .tool_fn(spec, |_, reply| reply.text(""))
        .into_engine();
}

const ENVELOPE_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const ENVELOPE_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn stateless(mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        ENVELOPE_VERSION: "2026-07-28",
        ENVELOPE_CAPABILITIES: capabilities,
    });
    params
}

#[test]
fn a_needed_capability_is_asked_of_each_stateless_call() {
    for (name, missing, declared) in [
        ("sampling", json!({"sampling": {}}), json!({"sampling": {}})),
        (
            "com.example/panels",
            json!({"extensions": {"com.example/panels": {}}}),
            json!({"extensions": {"com.example/panels": {"deep": true}}}),
        ),
    ] {
        let spec = ToolSpec::new("panel", "Shows a panel.", OBJECT).needs_client_capability(name);
        let server = Server::new(Info::new("demo", "0")).tool_fn(spec, |_, reply| reply.text("p"));
        let (mut engine, _) = open(server, "2025-11-25");
        let call = json!({"name": "panel"});
        let reply = ask(
            &mut engine,
            2,
            "tools/call",
            stateless(call.clone(), json!({})),
        );
        assert_eq!(reply["error"]["code"], -32021);
        assert_eq!(
            reply["error"]["data"],
            json!({"requiredCapabilities": missing})
        );
        let reply = ask(
            &mut engine,
            3,
            "tools/call",
            stateless(call.clone(), declared),
        );
        assert_eq!(reply["result"]["content"][0]["text"], "p");
        assert_eq!(reply["result"]["resultType"], "complete");
        let reply = ask(&mut engine, 4, "tools/call", call);
        assert_eq!(
            reply["result"]["content"][0]["text"], "p",
            "the handshake has no such error"
        );
    }
}

#[test]
fn stateless_pages_share_one_scope_and_need_no_session() {
    let mut engine = server().page_size(2).into_engine();
    let reply = ask(
        &mut engine,
        1,
        "tools/list",
        stateless(json!({}), json!({})),
    );
    let first = &reply["result"];
    let cursor = first["nextCursor"].clone();
    let reply = ask(
        &mut engine,
        2,
        "tools/list",
        stateless(json!({"cursor": cursor}), json!({})),
    );
    let last = &reply["result"];
    assert_eq!(first["tools"].as_array().unwrap().len(), 2);
    assert_eq!(last["tools"].as_array().unwrap().len(), 1);
    assert_eq!(last.get("nextCursor"), None);
    for member in ["cacheScope", "ttlMs", "resultType"] {
        assert!(
            first.get(member).is_some() && first[member] == last[member],
            "{member}"
        );
    }
    let reply = ask(
        &mut engine,
        3,
        "tools/list",
        stateless(json!({"cursor": "x"}), json!({})),
    );
    assert_eq!(reply["error"]["code"], -32602);
}

/// Each result has all that the server says of itself, so that together they pass the outbox.
#[test]
fn every_subscription_gets_a_whole_result_however_much_a_server_says_of_itself() {
    let image = format!("data:image/png;base64,{}", "A".repeat(210 << 10));
    let info = Info::new("demo", "0").icon(Icon::new(image));
    let mut engine = Server::new(info).into_engine();
    for id in 0..SUBSCRIPTIONS_MAX {
        let params = stateless(json!({"notifications": {}}), json!({}));
        let method = "subscriptions/listen";
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        send(&mut engine, &format!("{request}\n"));
        engine.serve();
        let said = taken(&mut engine);
        assert!(said.contains("acknowledged"), "{said}");
    }
    engine.end_of_input();
    let mut said = String::new();
    while !engine.is_drained() {
        engine.serve();
        said += &taken(&mut engine);
    }
    assert!(said.ends_with('\n') && said.len() > SUBSCRIPTIONS_MAX * (210 << 10));
    let replies = said.lines().map(|line| {
        let reply: Value = serde_json::from_str(line).expect("a line is one whole JSON text");
        if let Some(schemas) = support::schema::schemas() {
            let checked = schemas.check("2026-07-28", Some("subscriptions/listen"), &reply);
            checked.expect("the schema takes it");
        }
        reply["id"].as_u64().expect("a result has its id")
    });
    assert!(replies.eq(0..SUBSCRIPTIONS_MAX as u64));
}

/// A server is built where its tools are known, and serves where there is time for it.
#[test]
fn a_server_that_is_built_here_serves_in_a_thread() {
    let (sender, requests) = std::sync::mpsc::channel::<String>();
    let mut calls = 0;
    let spec = ToolSpec::new("count", "Counts its calls.", OBJECT);
    let server = Server::new(Info::new("demo", "0")).tool_fn(spec, move |_, reply| {
        calls += 1;
        reply.structured(|result| result.unsigned("calls", calls))
    });
    let served = std::thread::spawn(move || {
        let (mut engine, _) = open(server, "2025-11-25");
        let replies = requests
            .iter()
            .map(|name| call(&mut engine, &name, json!({})));
        let replies: Vec<Value> = replies.collect();
        (engine, replies)
    });
    for _ in 0..2 {
        sender.send("count".to_owned()).unwrap();
    }
    drop(sender);
    let (mut engine, replies) = served.join().unwrap();
    let again = call(&mut engine, "count", json!({}));
    let counted = replies.iter().chain([&again]);
    let counted = counted.map(|reply| reply["result"]["structuredContent"]["calls"].as_u64());
    assert!(counted.eq([Some(1), Some(2), Some(3)]));
}

/// An engine has one stream, so that what goes to an executor would never be answered.
#[test]
#[should_panic(expected = "an engine has no stream to an executor")]
fn an_engine_of_a_server_with_an_executor_is_refused() {
    let addr = rocco::ExecutorAddr::Socket("/nowhere".into());
    let _ = Server::new(Info::new("demo", "0"))
        .executor(addr)
        .into_engine();
}

/// RFC 8259, section 4, lets a name stand twice; what matters here is that the line is whole.
#[test]
fn a_name_that_is_written_twice_stands_there_twice() {
    let raw = rocco::RawJson::new(r#"{ "a": 1, "a": 2 }"#).unwrap();
    let spec = ToolSpec::new("twice", "Says it twice.", OBJECT);
    let server = Server::new(Info::new("demo", "0")).tool_fn(spec, move |_, reply| {
        reply.structured(|result| {
            result.json("twice", &raw);
            result.null("twice");
            result.float("nan", f64::NAN);
        })
    });
    let (mut engine, _) = open(server, "2025-11-25");
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                         "params": {"name": "twice"}});
    send(&mut engine, &format!("{request}\n"));
    engine.serve();
    let said = taken(&mut engine);
    let wanted = r#""structuredContent":{"twice":{"a":1,"a":2},"twice":null,"nan":null}"#;
    assert!(said.contains(wanted), "{said}");
    assert!(said.ends_with("}\n") && said.matches('\n').count() == 1);
}

#[test]
fn an_error_without_advice_ends_where_it_says_what_happened() {
    let spec = ToolSpec::new("fail", "Fails.", OBJECT);
    let server = Server::new(Info::new("demo", "0")).tool_fn(spec, |_, reply| {
        let error = ToolError::new("busy", format_args!("it is in use"));
        assert_eq!(error.to_string(), "busy: it is in use.");
        reply.error(error.retry_after(std::time::Duration::from_micros(1500)))
    });
    let (mut engine, _) = open(server, "2025-11-25");
    let reply = call(&mut engine, "fail", json!({}));
    let result = &reply["result"];
    assert_eq!(result["content"][0]["text"], "busy: it is in use.");
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["retryable"], true);
    assert_eq!(error["retry_after_ms"], 1);
}

/// Scratch memory is bounded for each call, and free again for the next.
#[test]
fn scratch_memory_is_bounded_and_given_back() {
    let spec = ToolSpec::new("fill", "Claims memory.", OBJECT);
    let server = Server::new(Info::new("demo", "0")).tool_fn(spec, |call, reply| {
        let mut blocks = 0;
        while call.scratch(64 << 10, 0_u8).is_some() {
            blocks += 1;
            assert!(blocks <= 16, "more than {ARENA_BYTES_MAX} bytes");
        }
        assert!(call.scratch(usize::MAX, 0_u64).is_none());
        assert_eq!(call.scratch(3, 'x'), Some(&mut ['x'; 3][..]));
        reply.structured(|result| result.unsigned("blocks", blocks))
    });
    let (mut engine, _) = open(server, "2025-11-25");
    let first = call(&mut engine, "fill", json!({}));
    assert!(
        first["result"]["structuredContent"]["blocks"].as_u64() > Some(7),
        "{first}"
    );
    let again = call(&mut engine, "fill", json!({}));
    assert_eq!(first, again);
}

/// Whoever handles them passes them on, to another thread as well.
/// A line that nests too deeply was told not to be JSON.
#[test]
fn a_line_that_nests_too_deeply_is_told_so() {
    let (mut engine, _) = open(server(), "2025-11-25");
    let line = format!("{}{}\n", "[".repeat(1025), "]".repeat(1025));
    send(&mut engine, &line);
    engine.serve();
    let told = taken(&mut engine);
    let wanted = "the line nests objects and arrays deeper than 1024 levels";
    assert!(told.contains("-32700") && told.contains(wanted), "{told}");
}

#[test]
fn the_errors_of_the_api_are_errors() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>(error: &E) -> String {
        error.to_string()
    }
    let failure = rocco::Failure::Stalled { unsent_bytes: 7 };
    assert!(is_error(&failure).contains("7 bytes"));
    let not_json = rocco::RawJson::new("{").unwrap_err();
    assert!(is_error(&not_json).contains("not one valid JSON value"));
    let _ = is_error::<rocco::DuplicateMember>;
}

/// The bounds of the crate's first page are those of the code.
#[test]
fn the_bounds_of_the_first_page_are_those_of_the_code() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("//! | what | at most |").unwrap();
    let rows = table
        .lines()
        .take_while(|line| line.starts_with("//! |") || line.contains("what happens"));
    let rows = rows.skip(2).map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let number: u64 = cells[2].replace(',', "").parse().unwrap();
        (cells[1], number)
    });
    let bounds = [
        ("a line of the client, in bytes", FRAME_BYTES_MAX as u64),
        ("nesting of its JSON, in levels", DEPTH_MAX as u64),
        (
            "the results of one line, in bytes",
            RESULTS_BYTES_MAX as u64,
        ),
        (
            "output that the client has not read, in bytes",
            OUTBOX_HIGH_WATER_BYTES as u64,
        ),
        ("a [`Prepared`] answer, in bytes", PREPARED_BYTES_MAX as u64),
        (
            "[`Call::scratch`] of one call, in bytes",
            ARENA_BYTES_MAX as u64,
        ),
        ("the tools of a server", TOOLS_MAX as u64),
        ("the name of a tool, in bytes", TOOL_NAME_BYTES_MAX as u64),
        ("[`Server::busy_poll`], in microseconds", BUSY_POLL_US_MAX),
        ("[`Engine::space`], in bytes", READ_BYTES_MAX as u64),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), bounds);
}
