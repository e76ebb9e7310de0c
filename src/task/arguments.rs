//! The arguments of a task: checks them against the rules.
//!
//! Only syntax is checked: no file or program that an argument names is opened or run.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::fault::{Fault, Faults, Pointer, Reason};
use super::id::TaskId;
use crate::limits::{
    ARENA_BYTES_MAX, TASK_ACCEPTANCE_BYTES_MAX, TASK_ACCEPTANCE_MAX, TASK_FAULTS_MAX,
    TASK_FILE_BYTES_MAX, TASK_FILES_MAX, TASK_GOAL_BYTES_MAX, TASK_KEY_BYTES_MAX,
    TASK_REPO_BYTES_MAX, TASK_TIMEOUT_S_MAX,
};
use crate::wire::json::{Array, Object, Value};

/// The arguments of a task, which keep the rules.
#[derive(Debug, Clone, Copy)]
pub struct TaskRequest<'a> {
    /// The goal, for the agent.
    pub goal: &'a str,
    /// The repository: an absolute path.
    pub repo: &'a str,
    /// The files that may be changed, all strings; none if no scope was declared.
    pub files: Option<Array<'a>>,
    /// The checks that decide that the task is done, all strings.
    pub acceptance: Array<'a>,
}

/// Further arguments of a task, which exist only if an executor is configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskOptions<'a> {
    /// The client's name for the task, which makes a repeated call give the same task.
    pub idempotency_key: Option<&'a str>,
    /// The ended task that this task continues.
    pub follow_up_to: Option<TaskId>,
    /// The time for which the task may run.
    pub timeout_s: Option<u64>,
}

/// Members that known hosts add to the arguments of every call, and that mean nothing to a tool:
/// n8n adds the first, Gemini CLI the second.
const HOST_MEMBERS: [&str; 2] = ["toolCallId", "wait_for_previous"];

/// Whether a known host adds such a member by itself.
pub fn is_of_host(name: &str) -> bool {
    HOST_MEMBERS.contains(&name)
}

/// The value of an optional member: `null` is its absence, since clients in strict mode cannot
/// leave a member out.
pub fn given(value: Option<Value<'_>>) -> Option<Value<'_>> {
    value.filter(|value| !matches!(value, Value::Null))
}

/// The names of [`TaskOptions`].
const OPTIONS: [&str; 3] = ["idempotency_key", "follow_up_to", "timeout_s"];

const _: () = {
    // A list that grows doubles its memory and leaves its old copies in the arena.
    let faults_bytes = 4 * TASK_FAULTS_MAX * size_of::<Fault<'static>>();
    let files_bytes = TASK_FILES_MAX * size_of::<(&str, usize)>();
    assert!(faults_bytes + files_bytes <= ARENA_BYTES_MAX / 2);
};

impl<'a> TaskRequest<'a> {
    /// Checks arguments against the rules.
    ///
    /// # Errors
    ///
    /// All faults at once, so that a model can correct its call in one go.
    pub fn parse(arguments: Object<'a>, arena: &'a Bump) -> Result<Self, Faults<'a>> {
        let mut faults = Faults::new(arena);
        let members = TaskMembers::from_object(arguments);
        let request = Self::read(&members, arena, &mut faults);
        if members.count() < arguments.len() {
            report_unknown_or_repeated(arguments, &[], &mut faults);
        }
        match request {
            Some(request) if faults.listed().is_empty() => Ok(request),
            _ => Err(faults),
        }
    }

    /// As [`TaskRequest::parse`], with [`TaskOptions`].
    ///
    /// # Errors
    ///
    /// As [`TaskRequest::parse`].
    pub fn parse_with_options(
        arguments: Object<'a>,
        arena: &'a Bump,
    ) -> Result<(Self, TaskOptions<'a>), Faults<'a>> {
        let mut faults = Faults::new(arena);
        let request = Self::read(&TaskMembers::from_object(arguments), arena, &mut faults);
        let options = TaskOptions::read(arguments, &mut faults);
        report_unknown_or_repeated(arguments, &OPTIONS, &mut faults);
        match request {
            Some(request) if faults.listed().is_empty() => Ok((request, options)),
            _ => Err(faults),
        }
    }

    fn read(members: &TaskMembers<'a>, arena: &'a Bump, faults: &mut Faults<'a>) -> Option<Self> {
        let goal = string_argument("goal", members.goal, faults, goal_fault);
        let repo = string_argument("repo", members.repo, faults, repo_fault);
        let acceptance = acceptance(members.acceptance, faults);
        let files = files(members.files, arena, faults);
        Some(Self {
            goal: goal?,
            repo: repo?,
            files,
            acceptance: acceptance?,
        })
    }
}

impl<'a> TaskOptions<'a> {
    /// Reads the options. Of a repeated option the first value counts.
    fn read(arguments: Object<'a>, faults: &mut Faults<'a>) -> Self {
        let option = |name| given(arguments.get(name));
        let key = option("idempotency_key").and_then(|key| {
            string_argument("idempotency_key", Some(key), faults, |key| {
                too_long(key, TASK_KEY_BYTES_MAX)
                    .or_else(|| blank(key))
                    .or_else(|| control_character(key))
            })
        });
        let follow_up_to = option("follow_up_to").and_then(|task| {
            string_argument("follow_up_to", Some(task), faults, |task| {
                TaskId::parse(task).is_none().then_some(Reason::NotATask)
            })
        });
        Self {
            idempotency_key: key,
            follow_up_to: follow_up_to.and_then(TaskId::parse),
            timeout_s: option("timeout_s").and_then(|time| seconds(time, faults)),
        }
    }
}

fn seconds(value: Value<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    let reason = match value.as_whole_u64() {
        Some(time) if (1..=TASK_TIMEOUT_S_MAX).contains(&time) => return Some(time),
        _ if value.is_whole() => Reason::OutOfRange {
            min: 1,
            max: TASK_TIMEOUT_S_MAX,
        },
        _ => wrong_type("an integer", &value),
    };
    faults.push(Pointer::Member("timeout_s"), reason);
    None
}

/// The members by name. Of a repeated member the first value counts.
#[derive(Default)]
struct TaskMembers<'a> {
    goal: Option<Value<'a>>,
    repo: Option<Value<'a>>,
    files: Option<Value<'a>>,
    acceptance: Option<Value<'a>>,
}

impl<'a> TaskMembers<'a> {
    fn from_object(arguments: Object<'a>) -> Self {
        let mut members = Self::default();
        for (name, value) in arguments.iter() {
            if let Some(slot) = members.slot(name) {
                slot.get_or_insert(value);
            }
        }
        members
    }

    /// How many members are present.
    fn count(&self) -> usize {
        let members = [self.goal, self.repo, self.files, self.acceptance];
        members.iter().flatten().count()
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<Value<'a>>> {
        match name {
            "goal" => Some(&mut self.goal),
            "repo" => Some(&mut self.repo),
            "files" => Some(&mut self.files),
            "acceptance" => Some(&mut self.acceptance),
            _ => None,
        }
    }
}

/// Reports members that are unknown or repeated.
fn report_unknown_or_repeated<'a>(
    arguments: Object<'a>,
    options: &[&str],
    faults: &mut Faults<'a>,
) {
    let mut seen = TaskMembers::default();
    let mut options_seen = [false; OPTIONS.len()];
    for (name, value) in arguments.iter() {
        match seen.slot(name).map(|slot| slot.replace(value)) {
            None => match options.iter().position(|option| *option == name) {
                None if is_of_host(name) => {}
                None => faults.push(Pointer::Member(name), Reason::Unknown),
                Some(option) if options_seen[option] => {
                    faults.push(Pointer::Member(name), Reason::Repeated);
                }
                Some(option) => options_seen[option] = true,
            },
            Some(Some(_)) => faults.push(Pointer::Member(name), Reason::Repeated),
            Some(None) => {}
        }
    }
}

fn string_argument<'a>(
    name: &'static str,
    value: Option<Value<'a>>,
    faults: &mut Faults<'a>,
    fault: fn(&str) -> Option<Reason>,
) -> Option<&'a str> {
    let reason = match value {
        None => Reason::Missing,
        Some(Value::String(text)) => match fault(text) {
            None => return Some(text),
            Some(reason) => reason,
        },
        Some(other) => wrong_type("a string", &other),
    };
    faults.push(Pointer::Member(name), reason);
    None
}

fn wrong_type(wanted: &'static str, found: &Value<'_>) -> Reason {
    Reason::WrongType {
        wanted,
        found: found.type_name(),
    }
}

/// Checks that each entry of a list is a string that keeps a rule.
fn check_entries<'a>(
    name: &'static str,
    list: Array<'a>,
    faults: &mut Faults<'a>,
    fault: fn(&str) -> Option<Reason>,
) {
    for (index, entry) in list.iter().enumerate() {
        let reason = match entry {
            Value::String(text) => fault(text),
            other => Some(wrong_type("a string", &other)),
        };
        if let Some(reason) = reason {
            faults.push(Pointer::Entry(name, index), reason);
        }
    }
}

fn acceptance<'a>(value: Option<Value<'a>>, faults: &mut Faults<'a>) -> Option<Array<'a>> {
    let reason = match value {
        None => Reason::Missing,
        Some(Value::Array(list)) if list.is_empty() => Reason::Empty,
        Some(Value::Array(list)) if list.len() > TASK_ACCEPTANCE_MAX => Reason::TooMany {
            entries_max: TASK_ACCEPTANCE_MAX,
        },
        Some(Value::Array(list)) => {
            check_entries("acceptance", list, faults, acceptance_fault);
            return Some(list);
        }
        Some(other) => wrong_type("an array of strings", &other),
    };
    faults.push(Pointer::Member("acceptance"), reason);
    None
}

fn files<'a>(
    value: Option<Value<'a>>,
    arena: &'a Bump,
    faults: &mut Faults<'a>,
) -> Option<Array<'a>> {
    let reason = match given(value)? {
        Value::Array(list) if list.len() > TASK_FILES_MAX => Reason::TooMany {
            entries_max: TASK_FILES_MAX,
        },
        Value::Array(list) => {
            check_entries("files", list, faults, file_fault);
            repeated_files(list, arena, faults);
            return Some(list);
        }
        other => wrong_type("an array of strings", &other),
    };
    faults.push(Pointer::Member("files"), reason);
    None
}

/// Reports entries that equal an earlier one. Sorts a copy of the list in the arena.
fn repeated_files<'a>(list: Array<'a>, arena: &'a Bump, faults: &mut Faults<'a>) {
    assert!(list.len() <= TASK_FILES_MAX);
    if list.len() < 2 {
        return;
    }
    let mut sorted = Vec::with_capacity_in(list.len(), arena);
    let texts = list.iter().enumerate();
    sorted.extend(texts.filter_map(|(index, entry)| Some((entry.as_str()?, index))));
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        let ((earlier, _), (later, index)) = (pair[0], pair[1]);
        if earlier == later {
            faults.push(Pointer::Entry("files", index), Reason::Duplicate);
        }
    }
}

fn goal_fault(goal: &str) -> Option<Reason> {
    too_long(goal, TASK_GOAL_BYTES_MAX).or_else(|| blank(goal))
}

fn acceptance_fault(entry: &str) -> Option<Reason> {
    too_long(entry, TASK_ACCEPTANCE_BYTES_MAX).or_else(|| blank(entry))
}

fn repo_fault(repo: &str) -> Option<Reason> {
    if repo.starts_with('-') {
        return Some(Reason::LeadingDash);
    }
    too_long(repo, TASK_REPO_BYTES_MAX)
        .or_else(|| blank(repo))
        .or_else(|| (!repo.starts_with('/')).then_some(Reason::NotAbsolute))
        .or_else(|| control_character(repo))
}

fn file_fault(file: &str) -> Option<Reason> {
    too_long(file, TASK_FILE_BYTES_MAX)
        .or_else(|| blank(file))
        .or_else(|| file.starts_with('-').then_some(Reason::LeadingDash))
        .or_else(|| file.starts_with('/').then_some(Reason::NotRelative))
        .or_else(|| {
            let mut components = file.as_bytes().split(|byte| *byte == b'/');
            let leaves = components.any(|component| component == b"..");
            leaves.then_some(Reason::LeavesRepository)
        })
        .or_else(|| control_character(file))
}

fn too_long(text: &str, bytes_max: usize) -> Option<Reason> {
    (text.len() > bytes_max).then_some(Reason::TooLong { bytes_max })
}

fn blank(text: &str) -> Option<Reason> {
    text.chars()
        .all(char::is_whitespace)
        .then_some(Reason::Blank)
}

fn control_character(text: &str) -> Option<Reason> {
    // A look at the bytes clears most texts. U+0080 to U+009F begin with 0xC2.
    let suspect =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == 0x7F) | u8::from(byte == 0xC2);
    let suspects = text.bytes().fold(0, |any, byte| any | suspect(byte));
    (suspects != 0 && text.contains(char::is_control)).then_some(Reason::ControlCharacter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_PADDING_BYTES;
    use crate::wire::json::Parser;

    /// The faults of arguments as one text, or "ok".
    fn check(arguments: &str) -> String {
        let mut frame = arguments.as_bytes().to_vec();
        frame.resize(arguments.len() + FRAME_PADDING_BYTES, b' ');
        let document = Parser::new().parse(&mut frame, arguments.len()).unwrap();
        let arena = Bump::new();
        match TaskRequest::parse(document.root().as_object().unwrap(), &arena) {
            Ok(_) => "ok".into(),
            Err(faults) => faults.to_string(),
        }
    }

    /// Arguments of which one member is replaced.
    fn with(name: &str, value: &str) -> String {
        let members = [
            ("goal", r#""Stop after five attempts.""#),
            ("repo", r#""/srv/uploader""#),
            ("files", r#"["src/upload.rs"]"#),
            ("acceptance", r#"["cargo test passes"]"#),
        ];
        let members = members.map(|(known, usual)| {
            let value = if known == name { value } else { usual };
            format!("\"{known}\":{value}")
        });
        format!("{{{}}}", members.join(","))
    }

    fn text(character: &str, times: usize) -> String {
        format!("\"{}\"", character.repeat(times))
    }

    fn list(entry: impl Fn(usize) -> String, times: usize) -> String {
        format!(
            "[{}]",
            (0..times)
                .map(entry)
                .collect::<std::vec::Vec<_>>()
                .join(",")
        )
    }

    #[test]
    fn every_rule() {
        let table = [
            ("goal", r#"" \n\t""#, "/goal must not be blank"),
            ("goal", "7", "/goal must be a string, not integer"),
            ("goal", "null", "/goal must be a string, not null"),
            (
                "repo",
                r#""srv/uploader""#,
                "/repo must be an absolute path",
            ),
            ("repo", r#""-rf""#, "/repo must not start with -"),
            ("repo", r#""""#, "/repo must not be blank"),
            (
                "repo",
                r#""/a\u0000b""#,
                "/repo must not hold control characters",
            ),
            ("repo", "[]", "/repo must be a string, not array"),
            (
                "acceptance",
                "[]",
                "/acceptance must have at least one entry",
            ),
            (
                "acceptance",
                r#"["a"," "]"#,
                "/acceptance/1 must not be blank",
            ),
            (
                "acceptance",
                "[1]",
                "/acceptance/0 must be a string, not integer",
            ),
            (
                "acceptance",
                "{}",
                "/acceptance must be an array of strings, not object",
            ),
            (
                "files",
                r#""src""#,
                "/files must be an array of strings, not string",
            ),
            (
                "files",
                r#"["/etc/passwd"]"#,
                "/files/0 must be relative to the repository",
            ),
            (
                "files",
                r#"["a/../b"]"#,
                "/files/0 must not have a .. component",
            ),
            ("files", r#"["-x"]"#, "/files/0 must not start with -"),
            ("files", r#"[""]"#, "/files/0 must not be blank"),
            (
                "files",
                r#"["a\n"]"#,
                "/files/0 must not hold control characters",
            ),
            (
                "files",
                r#"["b","a","b"]"#,
                "/files/2 stands in the list already",
            ),
            ("files", "[]", "ok"),
            ("files", "null", "ok"),
            ("files", r#"["a..b/c...d"]"#, "ok"),
        ];
        for (name, value, wanted) in table {
            assert_eq!(check(&with(name, value)), wanted, "{name} = {value}");
        }
    }

    #[test]
    fn every_bound_is_exact() {
        let table = [
            ("goal", text("g", 65_536), "ok"),
            (
                "goal",
                text("g", 65_537),
                "/goal must have at most 65536 bytes",
            ),
            (
                "goal",
                text("\u{e9}", 32_769),
                "/goal must have at most 65536 bytes",
            ),
            ("repo", format!("\"/{}\"", "r".repeat(4095)), "ok"),
            (
                "repo",
                format!("\"/{}\"", "r".repeat(4096)),
                "/repo must have at most 4096 bytes",
            ),
            ("acceptance", list(|_| text("a", 1), 64), "ok"),
            (
                "acceptance",
                list(|_| text("a", 1), 65),
                "/acceptance must have at most 64 entries",
            ),
            ("acceptance", list(|_| text("a", 4096), 1), "ok"),
            (
                "acceptance",
                list(|_| text("a", 4097), 1),
                "/acceptance/0 must have at most 4096 bytes",
            ),
            ("files", list(|i| format!("\"f{i}\""), 1024), "ok"),
            (
                "files",
                list(|i| format!("\"f{i}\""), 1025),
                "/files must have at most 1024 entries",
            ),
            ("files", list(|_| text("f", 4096), 1), "ok"),
            (
                "files",
                list(|_| text("f", 4097), 1),
                "/files/0 must have at most 4096 bytes",
            ),
        ];
        for (name, value, wanted) in table {
            assert_eq!(check(&with(name, &value)), wanted, "{name}");
        }
    }

    #[test]
    fn all_faults_come_at_once() {
        assert_eq!(
            check(r#"{"goal":"","files":["..","a","a"],"a/b~":1,"repo":"x","repo":"y"}"#),
            "/goal must not be blank; /repo must be an absolute path; /acceptance is required; \
             /files/0 must not have a .. component; /files/2 stands in the list already; \
             /a~1b~0 is not an argument of this tool; /repo is given more than once"
        );
        assert_eq!(
            check("{}"),
            "/goal is required; /repo is required; /acceptance is required"
        );
    }

    /// The options of arguments, or their faults.
    fn check_options(more: &str) -> String {
        let arguments = with("files", "null").replace('}', &format!(",{more}}}"));
        let mut frame = arguments.as_bytes().to_vec();
        frame.resize(arguments.len() + FRAME_PADDING_BYTES, b' ');
        let document = Parser::new().parse(&mut frame, arguments.len()).unwrap();
        let arena = Bump::new();
        match TaskRequest::parse_with_options(document.root().as_object().unwrap(), &arena) {
            Ok((request, options)) => {
                assert!(request.files.is_none());
                let key = options.idempotency_key;
                let ended = options.follow_up_to.is_some();
                format!("{key:?} {ended} {:?}", options.timeout_s)
            }
            Err(faults) => faults.to_string(),
        }
    }

    #[test]
    fn null_in_an_optional_member_is_its_absence() {
        let nulls = r#""idempotency_key":null,"follow_up_to":null,"timeout_s":null"#;
        assert_eq!(check_options(nulls), "None false None");
        assert_eq!(
            check_options(r#""timeout_s":null,"timeout_s":1"#),
            "/timeout_s is given more than once"
        );
    }

    #[test]
    fn an_integral_number_is_an_integer() {
        for (number, seen) in [
            ("600.0", "None false Some(600)"),
            ("6e2", "None false Some(600)"),
            ("1.5", "/timeout_s must be an integer, not number"),
            ("0.0", "/timeout_s must be 1 to 86400"),
            ("-0.0", "/timeout_s must be 1 to 86400"),
            ("-1.0", "/timeout_s must be 1 to 86400"),
            ("1e300", "/timeout_s must be 1 to 86400"),
            ("18446744073709551616", "/timeout_s must be 1 to 86400"),
            ("\"600\"", "/timeout_s must be an integer, not string"),
        ] {
            assert_eq!(check_options(&format!("\"timeout_s\":{number}")), seen);
        }
    }

    #[test]
    fn what_a_known_host_adds_is_ignored() {
        let added = r#""toolCallId":"call_1","wait_for_previous":true,"toolCallId":2"#;
        assert_eq!(check_options(added), "None false None");
        let arguments = with("files", "[]").replace('}', &format!(",{added}}}"));
        assert_eq!(check(&arguments), "ok");
        assert_eq!(
            check_options(r#""toolcallid":"call_1""#),
            "/toolcallid is not an argument of this tool"
        );
    }

    #[test]
    fn faults_beyond_the_bound_are_counted() {
        let said = check(&with("files", &list(|_| "1".into(), 1000)));
        assert!(
            said.ends_with("; and 744 more"),
            "{}",
            &said[said.len() - 40..]
        );
    }

    #[test]
    fn a_member_that_is_named_at_length_is_cut() {
        let said = check(r#"{"\u001b[31m":1}"#);
        assert!(said.ends_with("/\u{FFFD}[31m is not an argument of this tool"));
        let said = check(&format!("{{\"{}\":1}}", "\u{e9}".repeat(1000)));
        assert!(said.contains(&format!("/{}... is not", "\u{e9}".repeat(64))));
    }
}
