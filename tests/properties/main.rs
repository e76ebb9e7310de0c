//! What holds for any bytes, tried with bytes made up for the purpose.
//!
//! The bodies are shared with the fuzz targets of tests/fuzz. A failure prints the shortest input
//! that it could find, as a command that writes it into a file; put under
//! `tests/properties/kept/BODY/`, it is tried for ever by `every_kept_input_passes`. proptest's own
//! file of seeds is off, since a seed means something else after any change of a strategy.
//! `PROPTEST_CASES` sets the number of cases of every property.

mod bodies;
mod soup;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use soup::Soup;
use support::cases::config;
use support::schema::{NEWEST_HANDSHAKE, STATELESS, Schemas};

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn the_framer_finds_what_a_split_finds(Soup(bytes) in soup::soup(soup::streams())) {
        bodies::framer::body(&bytes);
    }
}

proptest! {
    #![proptest_config(config(6000))]

    #[test]
    fn the_parser_reads_what_serde_json_reads(Soup(bytes) in soup::soup(soup::texts())) {
        bodies::parser::body(&bytes);
    }

    #[test]
    fn messages_and_envelopes_are_classified_by_the_rules(
        Soup(bytes) in soup::soup(soup::messages()),
    ) {
        bodies::message::body(&bytes);
    }

    #[test]
    fn what_is_written_is_one_line_that_reads_back(Soup(bytes) in soup::soup(soup::writings())) {
        bodies::writer::body(&bytes);
    }

    #[test]
    fn the_tasks_rules_are_those_of_a_second_telling(Soup(bytes) in soup::soup(soup::tasks())) {
        bodies::task::body(&bytes);
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn open_subscriptions_are_a_set(Soup(bytes) in soup::soup(soup::deeds())) {
        bodies::subscriptions::body(&bytes);
    }

    #[test]
    fn whatever_a_tool_writes_is_one_line_of_json(Soup(bytes) in soup::soup(soup::writings())) {
        bodies::tool::body(&bytes);
    }

    #[test]
    fn any_bytes_get_only_the_replies_that_are_due(Soup(bytes) in soup::soup(soup::sessions())) {
        bodies::session::body(&bytes);
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn every_reply_to_any_bytes_is_valid(Soup(bytes) in soup::soup(soup::sessions())) {
        if let Some(schemas) = support::schema::schemas() {
            let checked = valid(schemas, &bytes);
            prop_assert!(checked.is_ok(), "{checked:?}");
        }
    }
}

/// Holds every reply against the schemas. What follows a session there takes an `initialize` for
/// served if anything of its id was, so those that were refused are looked at apart.
fn valid(schemas: &Schemas, bytes: &[u8]) -> Result<(), Vec<String>> {
    let (mut stdin, mut stdout) = (Vec::new(), Vec::new());
    for (line, said) in bodies::session::exchanges(bytes) {
        let reply = serde_json::from_slice::<Value>(&said).unwrap_or_default();
        let opens = bodies::naive::read(&line).is_some_and(|read| {
            let members = read.json.as_object();
            members.is_some_and(|members| {
                let methods = bodies::naive::all(members, "method");
                methods
                    .iter()
                    .any(|method| method.as_str() == Some("initialize"))
            })
        });
        if opens && reply.get("error").is_some() {
            schemas
                .check(NEWEST_HANDSHAKE, None, &reply)
                .or_else(|_| schemas.check(STATELESS, None, &reply))
                .map_err(|fault| vec![fault])?;
            continue;
        }
        stdin.extend([line, b"\n".to_vec()].concat());
        stdout.extend(said);
    }
    support::session::replies_of(schemas, &stdin, &stdout).map(|_| ())
}

/// The inputs that failed once, and the seeds of the fuzzers where they are there.
#[test]
fn every_kept_input_passes() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (name, body) in bodies::BODIES {
        for folder in ["properties/kept", "fuzz/seeds"] {
            let Ok(entries) = fs::read_dir(tests.join(folder).join(name)) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("an entry can be read").path();
                println!("{}", path.display());
                body(&fs::read(path).expect("a kept input can be read"));
            }
        }
    }
}
