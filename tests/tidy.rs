//! Rules of the house that no compiler checks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;

/// The rooms of the library, in reading order: each may know those before it.
const ROOMS: [&str; 9] = [
    "limits",
    "wire",
    "mcp",
    "task",
    "port",
    "engine",
    "event_loop",
    "server",
    "executor",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file under a folder, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path
                    .file_name()
                    .is_some_and(|name| name != "target" && name != "node_modules")
                {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// The room that a file of src/ is in; none for the program and lib.rs.
fn room(path: &Path) -> Option<&'static str> {
    let first = path.components().nth(1)?.as_os_str().to_str()?;
    let name = first.trim_end_matches(".rs");
    ROOMS.into_iter().find(|room| *room == name)
}

/// The text before the tests of a file.
fn production(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

#[test]
fn rooms_know_only_those_before_them() {
    for (path, text) in sources("src") {
        let Some(own) = room(&path) else { continue };
        let rank = ROOMS.iter().position(|room| *room == own).unwrap();
        for line in production(&text)
            .lines()
            .filter(|line| !line.trim().starts_with("//"))
        {
            for (other_rank, other) in ROOMS.iter().enumerate() {
                if line.contains(&format!("crate::{other}")) {
                    assert!(
                        other_rank <= rank,
                        "{}: {own} knows {other}: {line}",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn only_the_event_loop_knows_the_system() {
    let banned = [
        "mio::",
        "libc::",
        "std::io",
        "std::fs",
        "std::env",
        "std::time",
        "Instant",
        "std::os",
    ];
    for (path, text) in sources("src") {
        let left = matches!(
            room(&path),
            Some("limits" | "wire" | "mcp" | "task" | "port" | "engine")
        );
        for line in production(&text)
            .lines()
            .filter(|line| left && !line.trim().starts_with("//"))
        {
            for word in banned {
                assert!(!line.contains(word), "{}: {word}: {line}", path.display());
            }
        }
    }
}

#[test]
fn unsafe_is_where_the_system_is_called() {
    for (path, text) in sources("src") {
        let allowed =
            room(&path) == Some("event_loop") || path == Path::new("src/executor/process.rs");
        assert!(allowed || !text.contains("unsafe "), "{}", path.display());
    }
}

#[test]
fn files_open_with_their_purpose_and_lines_are_short() {
    for folder in ["src", "tests", "benches", "profiling"] {
        for (path, text) in sources(folder) {
            assert!(
                text.starts_with("//! "),
                "{} lacks a first line",
                path.display()
            );
            for (number, line) in text.lines().enumerate() {
                let columns = line.chars().count();
                let place = format!("{}:{}", path.display(), number + 1);
                let data = line.contains('"');
                assert!(
                    columns <= LINE_COLUMNS_MAX || data,
                    "{place} has {columns} columns"
                );
                assert!(line.trim_end() == line, "{place} has trailing space");
            }
        }
    }
}

#[test]
fn functions_fit_on_a_screen() {
    for (path, text) in sources("src") {
        let mut start = None;
        for (number, line) in production(&text).lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            if line.trim_start().split('(').next().unwrap().contains("fn ")
                && line.trim_end().ends_with('{')
            {
                start = Some((number, indent));
            }
            if let Some((first, at)) = start
                && indent == at
                && line.trim() == "}"
            {
                let lines = number + 1 - first;
                let place = format!("{}:{}", path.display(), first + 1);
                assert!(lines <= FUNCTION_LINES_MAX, "{place} has {lines} lines");
                start = None;
            }
        }
    }
}

#[test]
fn every_limit_is_in_the_readme_with_its_value() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let limits = fs::read_to_string(root().join("src/limits.rs")).unwrap();
    let names: BTreeSet<&str> = limits
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.split(':').next())
        .filter(|name| !name.contains('('))
        .collect();
    assert!(names.len() > 20);
    for name in names {
        assert!(readme.contains(&format!("`{name}`")), "README lacks {name}");
    }
    for (name, value) in [
        ("FRAME_BYTES_MAX", rocco::limits::FRAME_BYTES_MAX),
        ("RING_BYTES", rocco::limits::RING_BYTES),
        ("OUTBOX_BYTES", rocco::limits::OUTBOX_BYTES),
        (
            "OUTBOX_HIGH_WATER_BYTES",
            rocco::limits::OUTBOX_HIGH_WATER_BYTES,
        ),
        ("DEPTH_MAX", rocco::limits::DEPTH_MAX),
        ("BATCH_MESSAGES_MAX", rocco::limits::BATCH_MESSAGES_MAX),
        ("TASK_GOAL_BYTES_MAX", rocco::limits::TASK_GOAL_BYTES_MAX),
        ("TASK_FILES_MAX", rocco::limits::TASK_FILES_MAX),
    ] {
        let row = readme
            .lines()
            .find(|line| line.contains(&format!("`{name}`")))
            .unwrap();
        assert!(
            row.contains(&format!("| {} |", grouped(value))),
            "{row} should say {value}"
        );
    }
}

/// A number with a comma behind each thousand.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[test]
fn the_schema_says_the_same_bounds_as_the_limits() {
    let schema: serde_json::Value = serde_json::from_str(rocco::task::schema::INPUT).unwrap();
    let at = |pointer: &str| schema.pointer(pointer).unwrap().as_u64().unwrap() as usize;
    use rocco::limits as l;
    assert_eq!(at("/properties/goal/maxLength"), l::TASK_GOAL_BYTES_MAX);
    assert_eq!(at("/properties/repo/maxLength"), l::TASK_REPO_BYTES_MAX);
    assert_eq!(at("/properties/files/maxItems"), l::TASK_FILES_MAX);
    assert_eq!(
        at("/properties/files/items/maxLength"),
        l::TASK_FILE_BYTES_MAX
    );
    assert_eq!(
        at("/properties/acceptance/maxItems"),
        l::TASK_ACCEPTANCE_MAX
    );
    assert_eq!(
        at("/properties/acceptance/items/maxLength"),
        l::TASK_ACCEPTANCE_BYTES_MAX
    );
}

#[test]
fn invariants_name_tests_that_exist() {
    let invariants = fs::read_to_string(root().join("INVARIANTS.md")).unwrap();
    let mut texts: String = sources("src").into_iter().map(|(_, text)| text).collect();
    texts.extend(sources("tests").into_iter().map(|(_, text)| text));
    let rows: Vec<&str> = invariants
        .lines()
        .filter(|line| line.starts_with("| I"))
        .collect();
    assert!(rows.len() >= 10);
    for row in rows {
        let enforced = row.split('|').nth(4).unwrap();
        let named: Vec<&str> = enforced.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test in: {row}");
        for test in named {
            let exists = texts.contains(&format!("fn {test}("))
                || root().join(test.split(' ').next().unwrap()).exists();
            assert!(exists, "{test} does not exist: {row}");
        }
    }
}

#[test]
fn the_dependencies_are_the_expected_ones() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("[dependencies]\n").unwrap();
    let (section, _) = rest.split_once("\n\n").unwrap();
    let names: Vec<&str> = section
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["bumpalo", "libc", "memchr", "mio", "simd-json"]);
}
