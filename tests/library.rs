//! The library as another program uses it: tools of its own, in every revision.

mod support;

use rocco::internals::limits::{OUTBOX_HIGH_WATER_BYTES, RESULTS_BYTES_MAX, SUBSCRIPTIONS_MAX};
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
