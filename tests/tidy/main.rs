//! Rules of the house that no compiler checks.

#[path = "../support/mod.rs"]
mod support;

mod paths;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use paths::{Named, paths_of};

const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;

/// The layers of the library, in reading order: each may know those before it.
const LAYERS: [&str; 11] = [
    "limits",
    "wire",
    "mcp",
    "task",
    "executor_protocol",
    "executor_client",
    "engine",
    "event_loop",
    "server",
    "executor",
    "cli",
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

/// The layer that a file of src/ is in; none for the program and lib.rs.
fn layer(path: &Path) -> Option<&'static str> {
    let first = path.components().nth(1)?.as_os_str().to_str()?;
    let name = first.trim_end_matches(".rs");
    LAYERS.into_iter().find(|layer| *layer == name)
}

/// The path of a file's module, from the crate on.
fn module(path: &Path) -> Vec<String> {
    let inner = path.strip_prefix("src").unwrap().with_extension("");
    let names = inner.iter().map(|name| name.to_str().unwrap().to_owned());
    names
        .filter(|name| name != "mod" && name != "lib")
        .collect()
}

/// The text before the tests of a file.
fn production(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

/// Every path that a file of src/ names outside of its tests.
fn paths(path: &Path, text: &str) -> Vec<Named> {
    paths_of(&module(path), &syn::parse_file(text).unwrap())
}

/// What lib.rs shows at its root, with the layer that it comes from.
fn root_names() -> HashMap<String, String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let named = paths(Path::new("src/lib.rs"), &text).into_iter();
    named
        .filter_map(|named| match &named.segments[..] {
            [layer, .., name] if LAYERS.contains(&layer.as_str()) => {
                Some((name.clone(), layer.clone()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn layers_know_only_those_before_them() {
    let shown = root_names();
    assert!(shown.contains_key("Server"), "{shown:?}");
    let mut looked_at = 0;
    for (path, text) in sources("src") {
        let Some(own) = layer(&path) else { continue };
        let rank = |name: &str| LAYERS.iter().position(|layer| *layer == name);
        for named in paths(&path, &text) {
            let [first, name, ..] = &named.segments[..] else {
                continue;
            };
            if first != "crate" {
                continue;
            }
            let other = shown.get(name).unwrap_or(name);
            let place = format!("{}:{}", path.display(), named.line);
            let other_rank = rank(other);
            let other_rank = other_rank.unwrap_or_else(|| panic!("{place}: what is {other}?"));
            assert!(
                Some(other_rank) <= rank(own),
                "{place}: {own} knows {other}: {}",
                named.segments.join("::")
            );
            looked_at += 1;
        }
    }
    assert!(looked_at > 300, "only {looked_at} paths were looked at");
}

/// A name that stands for two things sends a reader to the wrong one.
#[test]
fn no_type_name_stands_twice() {
    let mut seen: HashMap<String, PathBuf> = HashMap::new();
    for (path, text) in sources("src") {
        for name in types(&syn::parse_file(&text).unwrap().items) {
            if let Some(other) = seen.insert(name.clone(), path.clone()) {
                panic!("{name} is in {} and {}", other.display(), path.display());
            }
        }
    }
    assert!(seen.len() > 150, "only {} types were looked at", seen.len());
}

/// The types that items define, those of modules within included.
fn types(items: &[syn::Item]) -> Vec<String> {
    let names = items.iter().map(|item| match item {
        syn::Item::Struct(item) => vec![item.ident.to_string()],
        syn::Item::Enum(item) => vec![item.ident.to_string()],
        syn::Item::Trait(item) => vec![item.ident.to_string()],
        syn::Item::Type(item) => vec![item.ident.to_string()],
        syn::Item::Union(item) => vec![item.ident.to_string()],
        syn::Item::Mod(item) => item
            .content
            .as_ref()
            .map_or(vec![], |(_, items)| types(items)),
        _ => vec![],
    });
    names.flatten().collect()
}

#[test]
fn every_folder_of_src_is_a_layer() {
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let layer = name.trim_end_matches(".rs").trim_end_matches(".md");
        let is_known = LAYERS.contains(&layer);
        assert!(is_known || name == "lib.rs" || name == "main.rs", "{name}");
    }
}

#[test]
fn only_the_event_loop_and_what_stands_on_it_know_the_system() {
    let banned_crates = ["mio", "libc", "rustix"];
    let banned_of_std = ["io", "fs", "env", "time", "os", "net", "process", "thread"];
    for (path, text) in sources("src") {
        let sans_io = LAYERS.iter().take_while(|layer| **layer != "event_loop");
        if !layer(&path).is_some_and(|own| sans_io.clone().any(|layer| *layer == own)) {
            continue;
        }
        for named in paths(&path, &text) {
            let first = named.segments[0].as_str();
            let second = named.segments.get(1).map_or("", String::as_str);
            let banned = banned_crates.contains(&first)
                || (first == "std" && banned_of_std.contains(&second));
            let place = format!("{}:{}", path.display(), named.line);
            assert!(!banned, "{place}: {}", named.segments.join("::"));
        }
    }
}

#[test]
fn unsafe_is_where_the_system_is_called() {
    for (path, text) in sources("src") {
        let allowed = path.starts_with("src/event_loop/sys")
            || path == Path::new("src/executor/run/process.rs");
        assert!(allowed || !text.contains("unsafe "), "{}", path.display());
    }
}

/// `thread::spawn` panics when the system has no thread left, and a panic ends the process.
#[test]
fn every_thread_is_started_so_that_it_can_fail() {
    for (path, text) in sources("src") {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut lines = code.lines().map(str::trim_start);
        let bare = lines.any(|line| !line.starts_with("//") && line.contains("thread::spawn("));
        assert!(!bare, "{} starts a thread that panics", path.display());
    }
}

#[test]
fn files_open_with_their_purpose_and_lines_are_short() {
    let mut faults = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        for (path, text) in sources(folder) {
            if !text.starts_with("//! ") {
                faults.push(format!("{} lacks a first line", path.display()));
            }
            for (number, line) in text.lines().enumerate() {
                let columns = line.chars().count();
                let place = format!("{}:{}", path.display(), number + 1);
                if columns > LINE_COLUMNS_MAX && !line.contains('"') {
                    faults.push(format!("{place} has {columns} columns"));
                }
                if line.trim_end() != line {
                    faults.push(format!("{place} has trailing space"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
fn the_schema_says_the_same_bounds_as_the_limits() {
    use rocco::internals::limits as l;
    let text = rocco::internals::task::schema::INPUT_WITH_OPTIONS;
    let schema: serde_json::Value = serde_json::from_str(text).unwrap();
    for (argument, bound) in [
        ("goal", format!("at most {} bytes", l::TASK_GOAL_BYTES_MAX)),
        ("repo", format!("at most {} bytes", l::TASK_REPO_BYTES_MAX)),
        (
            "files",
            format!("each at most {} bytes", l::TASK_FILE_BYTES_MAX),
        ),
        ("files", format!("at most {} of them", l::TASK_FILES_MAX)),
        (
            "acceptance",
            format!("1 to {} of them", l::TASK_ACCEPTANCE_MAX),
        ),
        (
            "acceptance",
            format!("each at most {} bytes", l::TASK_ACCEPTANCE_BYTES_MAX),
        ),
        (
            "idempotency_key",
            format!("at most {} bytes", l::TASK_KEY_BYTES_MAX),
        ),
        ("timeout_s", format!("at most {}", l::TASK_TIMEOUT_S_MAX)),
    ] {
        let described = schema["properties"][argument]["description"]
            .as_str()
            .unwrap();
        assert!(described.contains(&bound), "{argument}: {bound}");
    }
    let timeout = &schema["properties"]["timeout_s"];
    assert_eq!(timeout["maximum"], l::TASK_TIMEOUT_S_MAX);
}

/// Rows of a table whose cell at a place names tests: each names some, and all of them exist.
fn name_tests_that_exist(rows: &[&str], cell: usize) {
    let mut texts: String = sources("src").into_iter().map(|(_, text)| text).collect();
    texts.extend(sources("tests").into_iter().map(|(_, text)| text));
    for row in rows {
        let enforced = row.split('|').nth(cell).unwrap();
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
fn invariants_name_tests_that_exist() {
    let invariants = fs::read_to_string(root().join("INVARIANTS.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| I");
    let rows: Vec<&str> = invariants.lines().filter(is_row).collect();
    assert!(rows.len() >= 10);
    name_tests_that_exist(&rows, 4);
}

#[test]
fn every_attack_has_tests_that_exist() {
    let attacks = fs::read_to_string(root().join("tests/walls/attacks.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| # ");
    let rows: Vec<&str> = attacks.lines().filter(is_row).collect();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row.split(' ').nth(1).unwrap())
        .collect();
    let numbers: Vec<String> = (1..=23).chain([26, 28]).map(|it| it.to_string()).collect();
    let wanted = numbers
        .iter()
        .map(String::as_str)
        .chain(["links", "goal", "text", "held"]);
    assert_eq!(names, wanted.collect::<Vec<_>>());
    name_tests_that_exist(&rows, 5);
}

#[test]
fn the_dependencies_are_the_expected_ones() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("[dependencies]\n").unwrap();
    let (section, _) = rest.split_once("\n\n").unwrap();
    let (optional, always): (Vec<&str>, Vec<&str>) = section
        .lines()
        .partition(|line| line.contains("optional = true"));
    let first_words = |lines: Vec<&str>| -> Vec<String> {
        let words = lines.iter().map(|line| line.split(' ').next().unwrap());
        words.map(str::to_owned).collect()
    };
    assert_eq!(
        first_words(always),
        ["bumpalo", "libc", "memchr", "mio", "rustix", "simd-json"]
    );
    assert_eq!(
        first_words(optional),
        ["clap", "clap_complete", "clap_mangen", "strsim"]
    );
}
