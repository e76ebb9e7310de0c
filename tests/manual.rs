//! What the manual repeats of the code is what the code says, row by row.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rocco::internals::executor_protocol::error_code;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table whose first row starts like this, cell by cell.
fn table(text: &str, head: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(head));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "there is no table {head:?}");
    rows
}

fn name(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

/// Every constant of limits.rs with its value.
fn limits() -> BTreeMap<String, u128> {
    let file = syn::parse_file(&text("src/limits.rs")).unwrap();
    let constants = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Const(item) if item.ident != "_" => Some((item.ident.to_string(), *item.expr)),
        _ => None,
    });
    let defined: BTreeMap<String, syn::Expr> = constants.collect();
    let values = defined
        .iter()
        .map(|(name, expr)| (name.clone(), value(expr, &defined)));
    values.collect()
}

/// The value of an expression as limits.rs has them: sums, products and shifts of numbers and of
/// constants.
fn value(expression: &syn::Expr, defined: &BTreeMap<String, syn::Expr>) -> u128 {
    match expression {
        syn::Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Int(number) => number.base10_parse().unwrap(),
            _ => panic!("a bound is not a number"),
        },
        syn::Expr::Path(path) => {
            let name = path.path.require_ident().unwrap().to_string();
            value(&defined[&name], defined)
        }
        syn::Expr::Paren(inner) => value(&inner.expr, defined),
        syn::Expr::Cast(inner) => value(&inner.expr, defined),
        syn::Expr::Binary(both) => {
            let (left, right) = (value(&both.left, defined), value(&both.right, defined));
            match both.op {
                syn::BinOp::Add(_) => left + right,
                syn::BinOp::Sub(_) => left - right,
                syn::BinOp::Mul(_) => left * right,
                syn::BinOp::Shl(_) => left << right,
                _ => panic!("a bound has an operator that this test does not know"),
            }
        }
        _ => panic!("a bound has an expression that this test does not know"),
    }
}

#[test]
fn every_limit_is_in_the_manual_with_its_value() {
    let rows = table(&text("src/limits.md"), "| name | value |");
    let mut told = BTreeMap::new();
    for row in &rows {
        let [limit, value, what] = &row[..] else {
            panic!("a row of other than three cells: {row:?}");
        };
        assert!(!what.is_empty(), "{limit}");
        let value = value.replace(',', "").parse().unwrap();
        assert_eq!(
            told.insert(name(limit), value),
            None,
            "{limit} stands twice"
        );
    }
    assert!(told.len() > 90, "only {} limits were read", told.len());
    assert_eq!(told, limits());
}

/// What the unit of a limit's name says, its row says in words.
#[test]
fn every_limit_tells_its_unit() {
    for row in table(&text("src/limits.md"), "| name | value |") {
        let limit = name(&row[0]);
        let unit = match limit
            .split('_')
            .rfind(|part| ["MS", "US", "S"].contains(part))
        {
            Some("MS") => "; milliseconds",
            Some("US") => "; microseconds",
            Some("S") => "; seconds",
            _ => continue,
        };
        assert!(row[2].ends_with(unit), "{limit}: {}", row[2]);
    }
}

#[test]
fn every_typed_error_is_in_the_manual_and_retryable_as_it_says() {
    let manual = text("src/executor_client/manual.md");
    let rows = table(&manual, "| code | when | the same call may");
    let told: BTreeMap<String, bool> = rows
        .iter()
        .map(|row| (name(&row[0]), row[2].starts_with("yes")))
        .collect();
    let told_count = rows.len();
    let held: BTreeMap<String, bool> = error_code::all()
        .map(|code| (code.name().to_owned(), code.is_retryable()))
        .collect();
    assert_eq!(told, held);
    assert_eq!(told_count, held.len(), "a code stands twice");
}

#[test]
fn every_tool_is_in_the_manual() {
    let manual = text("src/executor_client/manual.md");
    let told: BTreeSet<String> = table(&manual, "| tool | what it does |")
        .iter()
        .map(|row| name(&row[0]))
        .collect();
    let held: BTreeSet<String> = rocco::internals::executor_client::tool_names().collect();
    assert_eq!(told, held);
}

#[test]
fn every_revision_is_in_the_manual() {
    let told: Vec<String> = table(&text("src/mcp/conformance.md"), "| revision | opened by |")
        .iter()
        .map(|row| row[0].clone())
        .collect();
    let held: Vec<&str> = rocco::internals::mcp::revision::REVISIONS
        .iter()
        .map(|revision| revision.version)
        .collect();
    assert_eq!(told, held);
}

#[test]
fn the_readme_names_the_rust_that_is_checked() {
    let manifest = text("Cargo.toml");
    let line = manifest
        .lines()
        .find(|line| line.starts_with("rust-version"));
    let version = line.unwrap().split('"').nth(1).unwrap();
    assert!(
        text("README.md").contains(&format!("Rust {version} or newer")),
        "{version}"
    );
}

/// Markdown that names a file of the project names one that is there.
#[test]
fn every_link_leads_somewhere() {
    for page in [
        "README.md",
        "INVARIANTS.md",
        "profiling/README.md",
        "src/executor/manual.md",
        "src/executor_client/manual.md",
        "src/mcp/conformance.md",
        "tests/robustness.md",
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let folder = folder.parent().unwrap();
        for part in text(page).split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{page} leads to {target}");
            }
        }
    }
}

#[test]
fn the_readme_is_read_in_three_minutes() {
    let lines = text("README.md").lines().count();
    assert!(lines <= 190, "README has {lines} lines");
}
