//! The task's rules, told a second time over serde_json, and held against the published schema.

use std::collections::HashSet;
use std::sync::LazyLock;

use bumpalo::Bump;
use jsonschema::Validator;
use rocco::internals::limits::{
    TASK_ACCEPTANCE_BYTES_MAX, TASK_ACCEPTANCE_MAX, TASK_FAULTS_MAX, TASK_FILE_BYTES_MAX,
    TASK_FILES_MAX, TASK_GOAL_BYTES_MAX, TASK_REPO_BYTES_MAX,
};
use rocco::internals::task::arguments::TaskRequest;
use rocco::internals::task::schema::INPUT;
use serde_json::Value as Serde;

use super::naive::{self, Members};
use super::parsed;

pub fn body(data: &[u8]) {
    let Some(read) = naive::read(data) else {
        return;
    };
    let Some(members) = read.json.as_object() else {
        return;
    };
    let Ok(arguments) = serde_json::from_slice::<Serde>(data) else {
        return; // It nests deeper than serde_json goes.
    };
    let accepted = parsed(data, b' ', |value| {
        let arena = Bump::new();
        let object = value.as_object().expect("the naive reader says so");
        match TaskRequest::parse(object, &arena) {
            Ok(task) => {
                assert_eq!(Some(task.goal), arguments["goal"].as_str());
                assert_eq!(Some(task.repo), arguments["repo"].as_str());
                assert_eq!(task.files.is_some(), !arguments["files"].is_null());
                true
            }
            Err(faults) => {
                assert!((1..=TASK_FAULTS_MAX).contains(&faults.listed().len()));
                assert!(!faults.to_string().contains(char::is_control));
                false
            }
        }
    });
    let accepted = accepted.expect("JSON is taken for JSON");
    assert_eq!(accepted, keeps_the_rules(members, &arguments));
    if accepted {
        let schema: &Validator = &SCHEMA;
        assert!(
            schema.is_valid(&arguments),
            "the schema refuses {arguments}"
        );
    }
}

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(INPUT).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is a schema")
});

/// README's table.
fn keeps_the_rules(members: &Members, arguments: &Serde) -> bool {
    let names = members.iter().map(|(name, _)| name.as_str());
    let of_a_host = ["toolCallId", "wait_for_previous"];
    let given: Vec<&str> = names.filter(|name| !of_a_host.contains(name)).collect();
    let names: HashSet<&str> = given.iter().copied().collect();
    let known = ["goal", "repo", "acceptance", "files"];
    let closed = names.len() == given.len() && names.iter().all(|name| known.contains(name));
    let text = |name: &str| arguments[name].as_str();
    let goal = text("goal").is_some_and(|goal| is_said(goal, TASK_GOAL_BYTES_MAX));
    let repo = text("repo").is_some_and(|repo| {
        is_said(repo, TASK_REPO_BYTES_MAX) && repo.starts_with('/') && !has_control(repo)
    });
    closed && goal && repo && acceptance(arguments) && files(arguments)
}

fn is_said(text: &str, bytes_max: usize) -> bool {
    text.len() <= bytes_max && text.chars().any(|c| !c.is_whitespace())
}

fn has_control(path: &str) -> bool {
    path.chars().any(char::is_control)
}

/// The entries of a list of texts.
fn texts(value: &Serde) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Serde::as_str).collect()
}

fn acceptance(arguments: &Serde) -> bool {
    texts(&arguments["acceptance"]).is_some_and(|entries| {
        (1..=TASK_ACCEPTANCE_MAX).contains(&entries.len())
            && entries
                .iter()
                .all(|entry| is_said(entry, TASK_ACCEPTANCE_BYTES_MAX))
    })
}

fn files(arguments: &Serde) -> bool {
    let files = &arguments["files"];
    if files.is_null() {
        return true;
    }
    texts(files).is_some_and(|files| {
        let different: HashSet<&&str> = files.iter().collect();
        files.len() <= TASK_FILES_MAX
            && different.len() == files.len()
            && files.iter().all(|file| is_file(file))
    })
}

fn is_file(file: &str) -> bool {
    is_said(file, TASK_FILE_BYTES_MAX)
        && !file.starts_with(['-', '/'])
        && !file.split('/').any(|part| part == "..")
        && !has_control(file)
}
