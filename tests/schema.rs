//! Tests of the validator of server messages, so that it is known to be able to fail.

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::schema::{BATCHING, STATELESS, revisions, schemas};
use support::session::{Tally, base64, check_recording, replies_of};

/// What a member of a plain reply may be: the method, the place, the value (`gone` removes it), and
/// the revisions that allow it, from..to, or none.
const MEMBERS: &str = r##"
# The envelope of a result.
tools/call /id "" ..
tools/call /id 18446744073709551615 ..
tools/call /id gone none
tools/call /id null none
tools/call /id 1.5 none
tools/call /id true none
tools/call /id [1] none
tools/call /jsonrpc gone none
tools/call /jsonrpc "1.0" none
tools/call /extra 1 none
tools/call /result gone none
tools/call /result null none
# The envelope of an error. One whose request was read has an id.
nonsense /id gone none
nonsense /id null none
nonsense /id 1.5 none
nonsense /extra 1 none
nonsense /result {} none
nonsense /error/extra 1 none
nonsense /error/data [1] ..
nonsense /error/message gone none
nonsense /error/message null none
nonsense /error/code -32603 ..
nonsense /error/code -32000 none
nonsense /error/code -32601.5 none
nonsense /error/code 1 none
# A result without content has at most metadata.
ping /result/_meta {"any":1} ..
ping /result/_meta null none
ping /result/resultType "complete" none
# What the two sides agree on.
initialize /result/instructions "i" ..
initialize /result/instructions null none
initialize /result/protocolVersion "2024-10-07" none
initialize /result/resultType "complete" none
initialize /result/serverInfo/version gone none
initialize /result/serverInfo/title "T" 2025-06-18..
initialize /result/serverInfo/description "d" 2025-11-25..
initialize /result/serverInfo/websiteUrl "http://x" 2025-11-25..
initialize /result/capabilities/tools/listChanged false ..
initialize /result/capabilities/tools/extra 1 none
initialize /result/capabilities/completions {} 2025-03-26..
initialize /result/capabilities/tasks {} 2025-11-25..
initialize /result/capabilities/extensions {} none
# Tools, whose own schemas have to be good too.
tools/list /result/nextCursor "" ..
tools/list /result/nextCursor null none
tools/list /result/resultType "complete" 2026-07-28..
tools/list /result/resultType gone ..2025-11-25
tools/list /result/ttlMs gone ..2025-11-25
tools/list /result/ttlMs -1 none
tools/list /result/cacheScope gone ..2025-11-25
tools/list /result/cacheScope "shared" none
tools/list /result/tools/0/extra 1 none
tools/list /result/tools/0/title "T" 2025-06-18..
tools/list /result/tools/0/_meta {"any":1} 2025-06-18..
tools/list /result/tools/0/icons [] 2025-11-25..
tools/list /result/tools/0/execution {} 2025-11-25..2025-11-25
tools/list /result/tools/0/annotations/readOnlyHint true 2025-03-26..
tools/list /result/tools/0/annotations/extraHint true none
tools/list /result/tools/0/inputSchema {} none
tools/list /result/tools/0/inputSchema/additionalProperties false ..
tools/list /result/tools/0/inputSchema/minProperties -1 none
tools/list /result/tools/0/outputSchema/type "object" 2025-06-18..
tools/list /result/tools/0/outputSchema/type "strin" none
# The results of tools.
tools/call /result/isError true ..
tools/call /result/isError null none
tools/call /result/content [] ..
tools/call /result/content gone none
tools/call /result/content/0/extra 1 none
tools/call /result/content/0/_meta {} 2025-06-18..
tools/call /result/structuredContent {"any":1} 2025-06-18..
tools/call /result/structuredContent [1] 2026-07-28..
tools/call /result/resultType gone ..2025-11-25
tools/call /result/resultType "complete" 2026-07-28..
# The stateless counterpart of initialize names the server in its metadata.
server/discover /result/ttlMs gone none
server/discover /result/supportedVersions null none
server/discover /result/serverInfo {} none
server/discover /result/_meta/other~1key 1 ..
server/discover /result/_meta/io.modelcontextprotocol~1serverInfo {} none
server/discover /result/capabilities/extensions {} ..
server/discover /result/capabilities/tasks {} none
"##;

/// The plainest good reply to a method; none where the revision does not have it.
fn plain(revision: &str, method: &str) -> Option<Value> {
    let stateless = revision == STATELESS;
    let mut result = match (method, stateless) {
        ("initialize", false) => json!({
            "protocolVersion": revision,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "n", "version": "1"},
        }),
        ("ping", false) => json!({}),
        ("tools/list", _) => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        ("tools/call", _) => json!({"content": [{"type": "text", "text": "t"}]}),
        ("server/discover", true) => {
            json!({"supportedVersions": [STATELESS], "capabilities": {"tools": {}}})
        }
        ("nonsense", _) => return Some(error(-32601)),
        _ => return None,
    };
    if stateless {
        result["resultType"] = json!("complete");
        if method != "tools/call" {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("public");
        }
    }
    Some(json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

fn error(code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m"}})
}

/// Puts a value at a place, or removes what is there.
fn put(line: &mut Value, place: &str, text: &str) {
    let mut names: Vec<String> = place
        .split('/')
        .skip(1)
        .map(|name| name.replace("~1", "/"))
        .collect();
    let last = names.pop().expect("a place has a name");
    let holder = names
        .iter()
        .fold(line, |value, name| match name.parse::<usize>() {
            Ok(index) => &mut value[index],
            Err(_) => &mut value[name.as_str()],
        });
    if text == "gone" {
        holder.as_object_mut().map(|members| members.remove(&last));
    } else {
        holder[last] = serde_json::from_str(text).expect("the value is JSON");
    }
}

fn allows(revisions: &str, revision: &str) -> bool {
    revisions
        .split_once("..")
        .is_some_and(|(first, last)| first <= revision && (last.is_empty() || revision <= last))
}

/// Wants a message to pass under a revision.
#[track_caller]
fn good(revision: &str, method: &str, line: &Value) {
    let Some(schemas) = schemas() else { return };
    let outcome = schemas.check(revision, Some(method), line);
    assert_eq!(outcome, Ok(()), "{revision} {method} {line}");
}

/// Wants a message to fail under a revision, with a fault that has one of these words.
#[track_caller]
fn bad(revision: &str, method: &str, line: &Value, words: &[&str]) {
    let Some(schemas) = schemas() else { return };
    match schemas.check(revision, Some(method), line) {
        Ok(()) => panic!("passed: {revision} {method} {line}"),
        Err(fault) => {
            let told = words.iter().any(|word| fault.contains(word));
            assert!(told, "{revision} {method} {line}: {fault}");
        }
    }
}

/// Wants the replies of a session to pass, and to be so many of each kind.
#[track_caller]
fn session(stdin: &str, stdout: &str, want: Tally) {
    let Some(schemas) = schemas() else { return };
    assert_eq!(
        replies_of(schemas, stdin.as_bytes(), stdout.as_bytes()),
        Ok(want),
        "{stdout}"
    );
}

/// Wants one fault in the replies of a session, with these words.
#[track_caller]
fn faulty_session(stdin: &str, stdout: &str, words: &str) {
    let Some(schemas) = schemas() else { return };
    let faults = replies_of(schemas, stdin.as_bytes(), stdout.as_bytes()).expect_err(stdout);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains(words), "{faults:?}");
}

#[test]
fn plain_replies_pass() {
    let methods = [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "server/discover",
        "nonsense",
    ];
    for (revision, method) in
        revisions().flat_map(|revision| methods.map(|method| (revision, method)))
    {
        if let Some(line) = plain(revision, method) {
            good(revision, method, &line);
        }
    }
}

#[test]
fn members_are_those_of_the_revision() {
    for row in MEMBERS
        .lines()
        .filter(|row| !row.is_empty() && !row.starts_with('#'))
    {
        let columns: Vec<&str> = row.split(' ').collect();
        let [method, place, text, span] = columns[..] else {
            panic!("four columns: {row}")
        };
        for revision in revisions() {
            let Some(mut line) = plain(revision, method) else {
                continue;
            };
            put(&mut line, place, text);
            if allows(span, revision) {
                good(revision, method, &line);
            } else {
                // A fault names the member, or its holder where the revision lacks that.
                let names: Vec<&str> = place.rsplit(['/', '~']).take(2).collect();
                bad(revision, method, &line, &names);
            }
        }
    }
}

#[test]
fn what_is_no_message_fails() {
    for revision in revisions() {
        for line in [json!(null), json!(1), json!("x")] {
            bad(revision, "ping", &line, &["neither"]);
        }
        bad(revision, "ping", &json!({}), &["required"]);
    }
}

#[test]
fn an_error_without_id_is_one_whose_request_could_not_be_read() {
    for (revision, code) in
        revisions().flat_map(|revision| [(revision, -32700), (revision, -32600)])
    {
        let mut line = error(code);
        good(revision, "ping", &line);
        put(&mut line, "/id", "gone");
        good(revision, "ping", &line);
    }
}

#[test]
fn the_codes_of_the_stateless_revision_have_data() {
    let mut unsupported = error(-32022);
    bad(STATELESS, "tools/list", &unsupported, &["data"]);
    put(
        &mut unsupported,
        "/error/data",
        r#"{"supported":["2026-07-28"],"requested":"x"}"#,
    );
    good(STATELESS, "tools/list", &unsupported);
    bad("2025-11-25", "tools/list", &unsupported, &["code -32022"]);
    let mut lacking = error(-32021);
    put(
        &mut lacking,
        "/error/data",
        r#"{"requiredCapabilities":["sampling"]}"#,
    );
    bad(STATELESS, "tools/call", &lacking, &["requiredCapabilities"]);
    put(
        &mut lacking,
        "/error/data",
        r#"{"requiredCapabilities":{"sampling":{}}}"#,
    );
    good(STATELESS, "tools/call", &lacking);
}

#[test]
fn a_method_has_a_result_only_where_it_exists() {
    let empty = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}});
    for method in ["ping", "initialize", "logging/setLevel", "nonsense"] {
        bad(STATELESS, method, &empty, &["has none"]);
    }
    for method in [
        "server/discover",
        "subscriptions/listen",
        "resources/list",
        "nonsense",
    ] {
        bad("2025-11-25", method, &empty, &["has none"]);
    }
}

fn note(method: &str, params: Value) -> Value {
    let method = format!("notifications/{method}");
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[test]
fn notifications_are_those_of_a_server() {
    let acknowledged = note("subscriptions/acknowledged", json!({"notifications": {}}));
    good(STATELESS, "subscriptions/listen", &acknowledged);
    bad(
        "2025-11-25",
        "subscriptions/listen",
        &acknowledged,
        &["does not know"],
    );
    let unfiltered = note("subscriptions/acknowledged", json!({}));
    bad(
        STATELESS,
        "subscriptions/listen",
        &unfiltered,
        &["required"],
    );
    for revision in revisions() {
        let mut progress = note("progress", json!({"progressToken": 0, "progress": 1}));
        good(revision, "tools/call", &progress);
        put(&mut progress, "/id", "1");
        bad(revision, "tools/call", &progress, &["a request"]);
        bad(
            revision,
            "tools/call",
            &note("initialized", json!({})),
            &["no notification"],
        );
    }
}

#[test]
fn only_one_revision_has_batches() {
    let pong = plain(BATCHING, "ping").expect("ping is there");
    let mut unread = error(-32600);
    put(&mut unread, "/id", "gone");
    let batch = json!([pong, error(-32601), unread]);
    good(BATCHING, "ping", &batch);
    for revision in revisions().filter(|revision| *revision != BATCHING) {
        bad(revision, "ping", &batch, &["an array"]);
    }
    bad(BATCHING, "ping", &json!([]), &["empty"]);
    bad(BATCHING, "ping", &json!([[pong]]), &["not an object"]);
    bad(
        BATCHING,
        "ping",
        &json!([{"jsonrpc": "2.0", "result": {}}]),
        &["id"],
    );
    put(&mut unread, "/id", "null");
    bad(BATCHING, "ping", &json!([unread]), &["id"]);
}

fn asked(id: u32, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
}

fn listing(id: u32) -> String {
    asked(id, "tools/list", &json!({}))
}

fn handshake(id: u32, revision: &str) -> String {
    let client = json!({"name": "c", "version": "1"});
    let params = json!({
        "protocolVersion": revision, "capabilities": {}, "clientInfo": client,
    });
    asked(id, "initialize", &params)
}

/// The plain reply to a request, as a line.
fn answered(id: u32, revision: &str, method: &str) -> String {
    let mut line = plain(revision, method).expect("the revision has the method");
    line["id"] = json!(id);
    line.to_string() + "\n"
}

/// A list with a member that revisions have from 2025-06-18 on.
fn titled(id: u32) -> String {
    answered(id, "2025-11-25", "tools/list")
        .replace("\"name\":\"t\"", "\"name\":\"t\",\"title\":\"T\"")
}

#[test]
fn a_session_is_followed_from_revision_to_revision() {
    let stdin = handshake(1, "2024-11-05")
        + &listing(2)
        + "garbage \u{fffd}\n\n[1,\n"
        + &handshake(3, "2025-11-25")
        + &listing(4);
    let before = answered(1, "2024-11-05", "initialize");
    let between = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"m\"}}\n";
    let after = answered(3, "2025-11-25", "initialize") + &titled(4);
    let old = answered(2, "2024-11-05", "tools/list");
    let want = Tally {
        results: 4,
        errors: 1,
        ..Tally::default()
    };
    session(&stdin, &[&before, &old, between, &after].concat(), want);
    faulty_session(
        &stdin,
        &[&before, &titled(2), between, &after].concat(),
        "title",
    );
}

#[test]
fn a_refused_initialize_changes_nothing() {
    let stdin = handshake(1, "2024-11-05") + &handshake(2, "2025-11-25") + &listing(3);
    let refused = answered(2, "2025-11-25", "nonsense");
    let stdout = answered(1, "2024-11-05", "initialize") + &refused + &titled(3);
    faulty_session(&stdin, &stdout, "title");
}

#[test]
fn an_unknown_version_is_answered_with_the_newest() {
    let want = Tally {
        results: 1,
        ..Tally::default()
    };
    session(
        &handshake(1, STATELESS),
        &answered(1, "2025-11-25", "initialize"),
        want,
    );
    let older = answered(1, "2024-11-05", "initialize");
    faulty_session(&handshake(1, "x"), &older, "protocolVersion");
}

#[test]
fn an_envelope_decides_the_revision_of_its_request() {
    let envelope = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS}});
    let opened = handshake(1, "2025-06-18");
    let stdout = answered(1, "2025-06-18", "initialize") + &answered(2, STATELESS, "tools/list");
    let want = Tally {
        results: 2,
        ..Tally::default()
    };
    session(
        &(opened.clone() + &asked(2, "tools/list", &envelope)),
        &stdout,
        want,
    );
    faulty_session(&(opened + &listing(2)), &stdout, "cacheScope");
}

#[test]
fn the_answer_to_an_id_that_was_used_twice_fits_one_of_its_requests() {
    let stdin = asked(1, "ping", &json!({})) + &listing(1);
    let stdout = answered(1, "2025-11-25", "tools/list") + &answered(1, "2025-11-25", "ping");
    session(
        &stdin,
        &stdout,
        Tally {
            results: 2,
            ..Tally::default()
        },
    );
    faulty_session(&stdin, &answered(1, "2025-11-25", "tools/call"), "content");
}

#[test]
fn an_answer_nobody_asked_for_is_checked_as_far_as_it_can_be() {
    let want = Tally {
        envelopes: 1,
        ..Tally::default()
    };
    let answer = answered(7, "2025-11-25", "tools/call");
    session("{\"id\":7,\"method\":\"ping\"", &answer, want);
    faulty_session("", "{\"jsonrpc\":\"2.0\",\"id\":7}\n", "result");
    let lost = "{\"id\":1,\"method\":\"initialize\"\n".to_owned() + &listing(2);
    session(&lost, &answered(2, "2024-11-05", "tools/list"), want);
}

#[test]
fn what_the_server_does_not_take_for_a_handshake_changes_nothing() {
    let too_long = handshake(1, "2025-11-25").replace("2025-11-25", &"x".repeat(1 << 20));
    let stdin = handshake(1, "2024-11-05") + &too_long + &listing(2);
    let opened = answered(1, "2024-11-05", "initialize");
    faulty_session(&stdin, &(opened + &titled(2)), "title");
    let batched = format!("[{}]\n", handshake(1, "2025-11-25").trim_end());
    let stdin = handshake(1, BATCHING) + &batched + &listing(2);
    let opened = answered(1, BATCHING, "initialize");
    faulty_session(&stdin, &(opened + &titled(2)), "title");
}

#[test]
fn a_handshake_may_carry_an_envelope_or_follow_a_byte_order_mark() {
    let params = json!({
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS},
    });
    let opened = answered(1, "2024-11-05", "initialize");
    for stdin in [
        asked(1, "initialize", &params),
        "\u{feff}".to_owned() + &handshake(1, "2024-11-05"),
    ] {
        let stdout = opened.clone() + &answered(2, "2024-11-05", "tools/list");
        let want = Tally {
            results: 2,
            ..Tally::default()
        };
        session(&(stdin.clone() + &listing(2)), &stdout, want);
        faulty_session(
            &(stdin + &listing(2)),
            &(opened.clone() + &titled(2)),
            "title",
        );
    }
}

#[test]
fn a_stdout_is_lines_of_json() {
    faulty_session("", "{\"jsonrpc\":\"2.0\"}", "line feed");
    faulty_session("", "starting up\n", "not JSON");
    faulty_session("", "\n", "not JSON");
    faulty_session(&listing(1), "[]\n", "an array");
}

#[test]
fn a_batch_is_checked_as_an_array_and_by_element() {
    let stdin = handshake(1, BATCHING) + &format!("[{}]\n", listing(2).trim_end());
    let opened = answered(1, BATCHING, "initialize");
    let batch = |method| format!("[{}]\n", answered(2, BATCHING, method).trim_end());
    let want = Tally {
        results: 2,
        ..Tally::default()
    };
    session(&stdin, &(opened.clone() + &batch("tools/list")), want);
    faulty_session(&stdin, &(opened.clone() + &batch("tools/call")), "content");
    faulty_session(&stdin, &(opened + "[]\n"), "empty");
}

#[test]
fn base64_is_read_with_every_length_of_padding() {
    for (text, bytes) in [
        ("", ""),
        ("Zg==", "f"),
        ("Zm8=", "fo"),
        ("Zm9v", "foo"),
        ("Zm9", "fo"),
    ] {
        assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
    }
    assert_eq!(base64("+/8A"), Some(vec![0xfb, 0xff, 0x00]));
    assert_eq!(base64("Zm9v!"), None);
}

/// One run that says nothing, and one whose answer has neither a result nor an error.
const RECORDING: &str = concat!(
    r#"{"id":"silent","stdin_b64":"","stdout_b64":""}"#,
    "\n",
    r#"{"id":"empty","stdin_b64":"","stdout_b64":"eyJqc29ucnBjIjoiMi4wIiwiaWQiOjd9Cg=="}"#,
    "\n"
);

/// A recording as `tests/cases/run.py --record` writes it; `ROCCO_RECORDING` may name another one.
#[test]
fn a_recording_obeys_the_schemas() {
    let Some(schemas) = schemas() else {
        return;
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    let (silent, _) = RECORDING.split_once('\n').unwrap();
    std::fs::write(file.path(), silent).unwrap();
    assert_eq!(check_recording(schemas, file.path()), Ok(1));
    std::fs::write(file.path(), RECORDING).unwrap();
    let faults = check_recording(schemas, file.path()).unwrap_err();
    assert!(
        faults.len() == 1 && faults[0].starts_with("empty: "),
        "{faults:?}"
    );
    let Some(path) = std::env::var_os("ROCCO_RECORDING") else {
        return;
    };
    match check_recording(schemas, Path::new(&path)) {
        Ok(runs) => assert!(runs > 0, "an empty recording"),
        Err(faults) => panic!("{} faults:\n{}", faults.len(), faults.join("\n")),
    }
}
