//! Gates: what the operator has defined to decide whether a task is done. No I/O.

use std::path::{Component, Path};

use crate::executor::json;
use crate::executor::run::counts::Counts;
use crate::executor::run::runners::Runner;
use crate::limits::{GATE_TIMEOUT_S, GATES_MAX, TASK_TIMEOUT_S_MAX};
use crate::wire::json::{Object, Value};

/// A gate as the operator defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// What `acceptance` calls it.
    pub name: String,
    /// What is run, without a shell.
    pub argv: Vec<String>,
    /// How long it may run.
    pub timeout_s: u64,
    /// What its tests are counted by.
    pub counts: Counts,
    /// What it runs of the repository: a task that changes it is told of.
    pub files: Vec<String>,
    /// What it is given of the executor's environment.
    pub pass_env: Vec<String>,
}

/// Reads the text of a gates file: an object with a member for each gate.
///
/// # Errors
///
/// What is wrong with it, in words.
pub fn read(text: &[u8]) -> Result<Vec<Gate>, String> {
    let gates = json::with(text, |object| {
        let gates: Result<Vec<Gate>, String> = object
            .iter()
            .map(|(name, value)| gate(name, value))
            .collect();
        gates
    });
    let gates = gates.ok_or("it is not one JSON object")??;
    if gates.len() > GATES_MAX {
        return Err(format!("it has more than {GATES_MAX} gates"));
    }
    let mut names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("the gate {:?} is defined twice", pair[0])),
        None => Ok(gates),
    }
}

fn gate(name: &str, value: Value<'_>) -> Result<Gate, String> {
    let wrong = |what: &str| format!("the gate {name:?} {what}");
    let object = value.as_object().ok_or_else(|| wrong("is not an object"))?;
    for (member, _) in object.iter() {
        if !["argv", "timeout_s", "counts", "files", "pass_env"].contains(&member) {
            return Err(wrong(&format!("has an unknown member {member:?}")));
        }
    }
    let argv = texts(object, "argv").map_err(|what| wrong(&what))?;
    if argv.first().is_none_or(String::is_empty) {
        return Err(wrong("needs argv, a list of the program and its arguments"));
    }
    cannot_work(name, &argv).map_err(wrong)?;
    let timeout_s = match object.get("timeout_s") {
        None => GATE_TIMEOUT_S,
        Some(Value::Unsigned(seconds @ 1..=TASK_TIMEOUT_S_MAX)) => seconds,
        Some(_) => return Err(wrong("has a timeout_s that is not a number of seconds")),
    };
    let counts = match object.get("counts") {
        None => Runner::recognised(&argv).map_or(Counts::Nothing, Counts::Runner),
        Some(value) => Counts::read(value).map_err(|what| wrong(&what))?,
    };
    let files = texts(object, "files").map_err(|what| wrong(&what))?;
    if let Some(file) = files.iter().find(|file| !is_inner(file)) {
        let what = "which is not a path within the repository";
        return Err(wrong(&format!("has {file:?} in files, {what}")));
    }
    if let Some(file) = files.iter().find(|file| file.contains(['*', '?'])) {
        let what = "which is a pattern, and matches nothing: name the files, or their directory";
        return Err(wrong(&format!("has {file:?} in files, {what}")));
    }
    let pass_env = texts(object, "pass_env").map_err(|what| wrong(&what))?;
    if let Some(variable) = pass_env.iter().find(|name| !is_variable(name)) {
        let what = "which is not the name of a variable";
        return Err(wrong(&format!("has {variable:?} in pass_env, {what}")));
    }
    Ok(Gate {
        name: name.to_owned(),
        argv,
        timeout_s,
        counts,
        files,
        pass_env,
    })
}

/// Why no task can ask for a gate of this name, or why no system starts its program.
fn cannot_work(name: &str, argv: &[String]) -> Result<(), &'static str> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err("needs a name without control characters");
    }
    match argv.iter().any(|argument| argument.contains('\0')) {
        true => Err("has a NUL character in argv, which no program can be given"),
        false => Ok(()),
    }
}

/// Whether a path names something within a repository, if anything.
fn is_inner(path: &str) -> bool {
    let inner = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && !path.contains('\0') && Path::new(path).components().all(inner)
}

/// Whether an environment can have a variable of this name.
pub fn is_variable(name: &str) -> bool {
    let is_known = |character: char| !character.is_whitespace() && !character.is_control();
    !name.is_empty() && !name.contains('=') && name.chars().all(is_known)
}

fn texts(object: Object<'_>, name: &str) -> Result<Vec<String>, String> {
    match object.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) if list.iter().all(|entry| entry.as_str().is_some()) => {
            Ok(json::strings(list))
        }
        Some(_) => Err(format!("has {name} that is not a list of strings")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gates_file_is_read_or_refused_with_the_reason() {
        let read = |text: &str| read(text.as_bytes());
        let gates = read(
            r#"{"test":{"argv":["cargo","test"],"files":["tests/"]},
                "x":{"argv":["./x"],"counts":"go","timeout_s":5,"pass_env":["HOME"]}}"#,
        )
        .unwrap();
        assert_eq!(gates[0].counts, Counts::Runner(Runner::Cargo));
        assert_eq!(gates[0].timeout_s, GATE_TIMEOUT_S);
        assert_eq!(gates[1].counts, Counts::Runner(Runner::Go));
        assert_eq!(gates[1].timeout_s, 5);
        assert_eq!(read("{}"), Ok(Vec::new()));
        for (text, wanted) in [
            ("[]", "it is not one JSON object"),
            (r#"{"a":1}"#, "the gate \"a\" is not an object"),
            (r#"{"a":{}}"#, "the gate \"a\" needs argv"),
            (
                r#"{"a":{"argv":"cargo test"}}"#,
                "the gate \"a\" has argv that is not a list",
            ),
            (
                r#"{"a":{"argv":["x"],"shell":true}}"#,
                "the gate \"a\" has an unknown member",
            ),
            (
                r#"{"a":{"argv":["x"],"counts":"x"}}"#,
                "the gate \"a\" counts what is not known",
            ),
            (
                r#"{"a":{"argv":["x"]},"a":{"argv":["x"]}}"#,
                "the gate \"a\" is defined twice",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(wanted), "{said}");
        }
    }

    /// Each of these was taken at the start, and then failed every task or did nothing.
    #[test]
    fn a_gate_that_cannot_work_is_refused_at_the_start() {
        for (text, wanted) in [
            (r#"{"":{"argv":["x"]}}"#, "needs a name"),
            (r#"{"a\u001b":{"argv":["x"]}}"#, "needs a name"),
            (
                r#"{"a":{"argv":["x","\u0000"]}}"#,
                "a NUL character in argv",
            ),
            (
                r#"{"a":{"argv":["x"],"files":["/etc"]}}"#,
                "\"/etc\" in files",
            ),
            (r#"{"a":{"argv":["x"],"files":["b/../../c"]}}"#, "in files"),
            (r#"{"a":{"argv":["x"],"files":[""]}}"#, "in files"),
            (
                r#"{"a":{"argv":["x"],"pass_env":["A=B"]}}"#,
                "\"A=B\" in pass_env",
            ),
            (r#"{"a":{"argv":["x"],"pass_env":[""]}}"#, "in pass_env"),
        ] {
            let said = read(text.as_bytes()).unwrap_err();
            assert!(said.contains(wanted), "{said}");
        }
    }
}
