//! Every dependency, those of the tests too, has a licence that this crate can live with.

mod support;

use std::process::Command;

use serde_json::Value;

/// Licences that ask for no more than that their words are kept, or not even that.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// A package that names a file instead of a licence, or nothing, is not allowed either.
#[test]
fn every_licence_is_allowed() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--locked"]);
    command.args([
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ]);
    let output = support::wait::output(&mut command);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    assert!(packages.len() > 20, "too few packages were looked at");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_allowed))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Whether some choice that an SPDX expression leaves is allowed. An exception only ever grants
/// more; an old way to write OR is a slash.
fn is_allowed(expression: &str) -> bool {
    let spaced = ["(", ")", "/"]
        .into_iter()
        .fold(expression.to_owned(), |text, mark| {
            text.replace(mark, &format!(" {mark} "))
        });
    let mut tokens = spaced.split_whitespace().peekable();
    let allowed = any_of(&mut tokens);
    assert_eq!(tokens.next(), None, "{expression} is not understood");
    allowed
}

type Tokens<'t, 'e> = &'t mut std::iter::Peekable<std::str::SplitWhitespace<'e>>;

fn any_of(tokens: Tokens<'_, '_>) -> bool {
    let mut allowed = all_of(tokens);
    while tokens
        .next_if(|token| matches!(*token, "OR" | "/"))
        .is_some()
    {
        allowed |= all_of(tokens);
    }
    allowed
}

fn all_of(tokens: Tokens<'_, '_>) -> bool {
    let mut allowed = one(tokens);
    while tokens.next_if_eq(&"AND").is_some() {
        allowed &= one(tokens);
    }
    allowed
}

fn one(tokens: Tokens<'_, '_>) -> bool {
    if tokens.next_if_eq(&"(").is_some() {
        let allowed = any_of(tokens);
        assert_eq!(tokens.next(), Some(")"));
        return allowed;
    }
    let licence = tokens.next().expect("a licence is named");
    if tokens.next_if_eq(&"WITH").is_some() {
        tokens.next();
    }
    ALLOWED.contains(&licence)
}

#[test]
fn expressions_are_understood() {
    for (expression, wanted) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("MIT AND GPL-3.0-only", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-2.0-only OR MPL-2.0) AND MIT", false),
        ("MIT/Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", true),
    ] {
        assert_eq!(is_allowed(expression), wanted, "{expression}");
    }
}
