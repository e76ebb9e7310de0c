//! What the bodies are fed: valid texts, near misses and noise.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Bytes that show themselves as what `printf %b` takes.
#[derive(Clone)]
pub struct Soup(pub Vec<u8>);

impl std::fmt::Debug for Soup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("printf %b '")?;
        for &byte in &self.0 {
            match byte {
                b'\\' | b'\'' | ..=0x1f | 0x7f.. => write!(f, "\\x{byte:02x}")?,
                plain => write!(f, "{}", char::from(plain))?,
            }
        }
        f.write_str("'")
    }
}

type Bytes = BoxedStrategy<Vec<u8>>;

pub fn soup(bytes: Bytes) -> impl Strategy<Value = Soup> {
    bytes.prop_map(Soup)
}

/// Texts of a fixed list.
fn one_of(list: &'static str) -> BoxedStrategy<String> {
    let items: Vec<String> = list.lines().map(str::to_owned).collect();
    select(items).boxed()
}

fn noise() -> Bytes {
    prop::collection::vec(any::<u8>(), 0..120).boxed()
}

/// One way to spoil bytes. Places are shares of the length.
#[derive(Debug, Clone)]
enum Spoil {
    Flip(Index, u8),
    Cut(Index, Index),
    Copy(Index, Index, Index),
    Insert(Index, String),
}

fn spoils() -> impl Strategy<Value = Spoil> {
    let place = any::<Index>;
    prop_oneof![
        (place(), 0u8..8).prop_map(|(at, bit)| Spoil::Flip(at, bit)),
        (place(), place()).prop_map(|(from, to)| Spoil::Cut(from, to)),
        (place(), place(), place()).prop_map(|(from, to, at)| Spoil::Copy(from, to, at)),
        (place(), one_of(TOKENS)).prop_map(|(at, token)| Spoil::Insert(at, token)),
    ]
}

fn spoil(bytes: &mut Vec<u8>, spoil: Spoil) {
    let place = |index: Index, bytes: &[u8]| index.index(bytes.len() + 1);
    let range = |from: Index, to: Index, bytes: &[u8]| {
        let (from, to) = (place(from, bytes), place(to, bytes));
        from.min(to)..from.max(to)
    };
    match spoil {
        Spoil::Flip(at, bit) if !bytes.is_empty() => {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        Spoil::Flip(..) => {}
        Spoil::Cut(from, to) => drop(bytes.drain(range(from, to, bytes))),
        Spoil::Copy(from, to, at) => {
            let copy = bytes[range(from, to, bytes)].to_vec();
            let at = place(at, bytes);
            bytes.splice(at..at, copy);
        }
        Spoil::Insert(at, token) => {
            let at = place(at, bytes);
            bytes.splice(at..at, token.into_bytes());
        }
    }
}

/// Some as they are, most spoiled in a few places.
fn spoiled(bytes: Bytes) -> Bytes {
    let spoils = prop_oneof![
        2 => Just(Vec::new()),
        3 => prop::collection::vec(spoils(), 1..4),
    ];
    let spoiled = (bytes, spoils).prop_map(|(mut bytes, spoils)| {
        spoils.into_iter().for_each(|one| spoil(&mut bytes, one));
        bytes
    });
    spoiled.boxed()
}

/// Short runs of the bytes that framing looks at; now and then halves of the longest frame.
pub fn streams() -> Bytes {
    let letters = |heavy: u32| {
        prop_oneof![
            12 => select(b"a\n\n\r {".to_vec()),
            3 => select(b"\xEF\xBB\xBF".to_vec()),
            heavy => Just(0xFE),
        ]
    };
    prop_oneof![
        20 => prop::collection::vec(letters(0), 0..60),
        4 => prop::collection::vec(letters(0), 60..2000),
        1 => prop::collection::vec(letters(6), 0..30),
    ]
    .boxed()
}

const TOKENS: &str = r#"{
}
[
]
,
:
"
\
"a"
"id"
""
null
true
0
-0
-1
1.5
1e400
18446744073709551616
"\u0069d"
"\ud83d\ude00"
"\ud800"
é
"#;

const SCALARS: &str = r#"null
true
false
0
-0
1
-1
18446744073709551615
18446744073709551616
-9223372036854775808
-9223372036854775809
1.0
-0.0
1e2
1E+2
2.5e-3
1e308
1.7976931348623157e308
4.9e-324
1e-400
123456789012345678901234567890
0.1000000000000000055511151231257827
9007199254740993.0
""
"a"
"id"
"2.0"
"method"
"\u0061"
"\"\\\/\b\f\n\r\t"
"\\"
"\\\" \\"
"\ud83d\ude00"
"é€😀"
" ""#;

const NAMES: &str = r#""a"
"id"
""
"method"
"b"
"\u0061"
"\u0069d""#;

/// JSON texts, some with white space between their tokens.
pub fn json() -> BoxedStrategy<String> {
    let space = || select(vec!["", "", "", " ", "\t", "\r", "\n", "  "]);
    let tree = one_of(SCALARS).prop_recursive(6, 60, 8, move |inner| {
        let element = (space(), inner.clone(), space());
        let element =
            element.prop_map(|(before, value, behind)| format!("{before}{value}{behind}"));
        let member = (one_of(NAMES), space(), element.clone());
        let member = member.prop_map(|(name, behind, value)| format!("{name}{behind}:{value}"));
        prop_oneof![
            (prop::collection::vec(element, 0..8), space())
                .prop_map(|(list, space)| format!("[{space}{}]", list.join(","))),
            prop::collection::vec(member, 0..8).prop_map(|list| format!("{{{}}}", list.join(","))),
        ]
    });
    tree.boxed()
}

/// Nesting around the bounds of both parsers, perhaps unbalanced.
fn nests() -> Bytes {
    let depth = prop_oneof![1usize..200, 1020usize..1030];
    let shape = (
        depth,
        any::<bool>(),
        prop_oneof![4 => Just(0), 1 => 0usize..3],
    );
    let nest = shape.prop_map(|(depth, objects, missing)| {
        let (open, close) = if objects {
            ("{\"a\":", "}")
        } else {
            ("[", "]")
        };
        let text = open.repeat(depth) + "0" + &close.repeat(depth.saturating_sub(missing));
        text.into_bytes()
    });
    nest.boxed()
}

pub fn texts() -> Bytes {
    let tokens = prop::collection::vec(one_of(TOKENS), 0..12).prop_map(|tokens| tokens.concat());
    prop_oneof![
        8 => spoiled(json().prop_map(String::into_bytes).boxed()),
        2 => tokens.prop_map(String::into_bytes),
        1 => nests(),
        1 => noise(),
    ]
    .boxed()
}

const MEMBERS: &str = r#""jsonrpc":"2.0"
"jsonrpc":"1.0"
"id":1
"id":"x"
"id":-0
"id":null
"id":1.5
"id":{}
"method":"ping"
"method":"initialize"
"method":7
"result":{}
"error":{"code":1,"message":"m"}
"params":{}
"params":[]
"params":null
"other":{"id":5}"#;

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28"
"io.modelcontextprotocol/protocolVersion":"2025-11-25"
"io.modelcontextprotocol/protocolVersion":1
"io.modelcontextprotocol/clientCapabilities":{}
"io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":1}
"io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/panels":{}}}
"io.modelcontextprotocol/clientCapabilities":[]
"io.modelcontextprotocol/clientInfo":{"name":"n","version":"v"}
"io.modelcontextprotocol/logLevel":"debug"
"io.modelcontextprotocol/logLevel":"loud"
"progressToken":1"#;

fn some_of(list: &'static str, at_most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(one_of(list), 0..at_most).prop_map(|members| members.join(","))
}

/// Objects of the members that matter, in any order, with some twice or not at all.
pub fn messages() -> Bytes {
    let usual = r#""jsonrpc":"2.0","method":"initialize","id":3"#;
    let beside = prop_oneof![
        6 => Just(String::new()),
        1 => Just("\"protocolVersion\":\"2025-11-25\",".to_owned()),
        1 => Just("\"_meta\":{},".to_owned()),
    ];
    let envelope = (beside, some_of(META, 5)).prop_map(move |(beside, meta)| {
        format!("{{{usual},\"params\":{{{beside}\"_meta\":{{{meta}}}}}}}")
    });
    let any_members = some_of(MEMBERS, 7).prop_map(|members| format!("{{{members}}}"));
    let with_version = some_of(MEMBERS, 5).prop_map(|members| match members.as_str() {
        "" => "{\"jsonrpc\":\"2.0\"}".to_owned(),
        members => format!("{{\"jsonrpc\":\"2.0\",{members}}}"),
    });
    let bytes = |text: String| text.into_bytes();
    prop_oneof![
        2 => any_members.prop_map(bytes),
        4 => with_version.prop_map(bytes),
        4 => envelope.prop_map(bytes),
        1 => texts(),
    ]
    .boxed()
}

/// Text with whatever an escape may be needed for.
pub fn writings() -> Bytes {
    let special = select(
        "\"\\\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}\u{2028}\u{2029}\u{2027}â€é😀,e/"
            .chars()
            .collect::<Vec<_>>(),
    );
    let character = prop_oneof![3 => special, 2 => any::<char>(), 3 => Just('a')];
    let text = prop::collection::vec(character, 0..80)
        .prop_map(|characters| characters.into_iter().collect::<String>().into_bytes());
    prop_oneof![4 => text, 1 => noise()].boxed()
}

pub fn deeds() -> Bytes {
    prop::collection::vec(any::<u8>(), 0..400).boxed()
}

/// Every line that a transcript's client says.
static LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).expect("there are transcripts") {
        let text = fs::read_to_string(entry.expect("a file").path()).expect("a transcript is text");
        let said = text.lines().filter_map(|line| line.strip_prefix("> "));
        lines.extend(said.map(|line| line.as_bytes().to_vec()));
    }
    lines.sort();
    lines.dedup();
    assert!(lines.len() > 100);
    lines
});

/// Lines of clients, some spoiled, and messages of all kinds between them.
pub fn sessions() -> Bytes {
    let line = || select(LINES.as_slice());
    let lines = prop_oneof![
        6 => line(),
        3 => spoiled(line().boxed()),
        2 => messages(),
        2 => calls().prop_map(String::into_bytes),
        3 => subscribing().prop_map(String::into_bytes),
        1 => noise(),
    ];
    let ends = select(vec!["\n", "\n", "\n", "\r\n", "\n\n", ""]);
    let session = prop::collection::vec((lines, ends), 1..16).prop_map(|lines| {
        let lines = lines
            .into_iter()
            .map(|(line, end)| [line, end.as_bytes().to_vec()].concat());
        let mut session = OPENING.as_bytes().to_vec();
        session.extend(lines.flatten());
        session
    });
    prop_oneof![5 => session.clone(), 1 => spoiled(session.boxed()), 1 => noise()].boxed()
}

/// Opens a session with batches, which is the one with the most to go wrong.
const OPENING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"o","method":"initialize","params":{"protocolVersion":"2025-03-26","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
);

/// Subscriptions, and cancellations of a few of the same ids.
fn subscribing() -> impl Strategy<Value = String> {
    let id = || select(vec!["0", "-0", "1", "3", "\"3\"", "\"\\u0033\"", "null"]);
    let listen = (id(), some_of(META, 1)).prop_map(|(id, extra)| {
        let comma = if extra.is_empty() { "" } else { "," };
        let envelope = META
            .lines()
            .step_by(3)
            .take(2)
            .collect::<Vec<_>>()
            .join(",");
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"subscriptions/listen\",\"params\":\
             {{\"notifications\":{{}},\"_meta\":{{{envelope}{comma}{extra}}}}}}}"
        )
    });
    let cancel = (id(), any::<bool>()).prop_map(|(id, twice)| {
        let again = if twice { ",\"requestId\":3" } else { "" };
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":\
             {{\"requestId\":{id}{again}}}}}"
        )
    });
    prop_oneof![2 => listen, 1 => cancel]
}

/// Calls of the tools that send back what they get, and batches of them.
fn calls() -> impl Strategy<Value = String> {
    let tool = select(vec!["echo", "names", "larry_submit_task", "nope"]);
    let call = (tool, json(), json(), 0u8..5).prop_map(|(tool, value, other, id)| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\
             \"{tool}\",\"arguments\":{{\"text\":{value},\"\\u2028\":{other}}}}}}}"
        )
        .replace('\n', " ")
    });
    let batch = prop::collection::vec(call.clone(), 0..4)
        .prop_map(|calls| format!("[{}]", calls.join(",")));
    prop_oneof![4 => call, 1 => batch]
}

const GOALS: &str = r#""g"
"\u00e9"
" \n\t"
""
"\u2003"
7
null"#;

const REPOS: &str = r#""/r"
"/srv/a b"
"/\u0000"
"/\u0085"
"r"
"-r"
"/"
[]"#;

const FILES: &str = r#""a"
"b/c"
"a..b"
"\u0061"
".."
"a/../b"
"../a"
"/etc"
"-x"
"a\n"
" "
1"#;

/// The arguments of a task: a text, whether it is a member at all, and how often.
pub fn tasks() -> Bytes {
    let list = |list: &'static str, at_most: usize| {
        let entries = prop::collection::vec(one_of(list), 0..at_most);
        entries.prop_map(|entries| format!("[{}]", entries.join(",")))
    };
    let valid_files = select(vec!["[]", "[\"a\",\"b/c\"]", "[\"a..b\"]"]).prop_map(str::to_owned);
    let member = |name: &'static str, value: BoxedStrategy<String>| {
        let usual = value
            .prop_map(move |value| format!("\"{name}\":{value}"))
            .boxed();
        prop_oneof![20 => usual, 1 => Just(String::new())].boxed()
    };
    let long = (select(vec!["g", "/", "\\u00e9", "é"]), bounds())
        .prop_map(|(letter, times)| format!("\"{}\"", letter.repeat(times)))
        .boxed();
    let many = (bounds(), 0usize..3).prop_map(|(count, repeated)| {
        let entries: Vec<String> = (0..count.min(1100)).map(|i| format!("\"{i}\"")).collect();
        format!(
            "[{}]",
            [
                entries.clone(),
                entries[..repeated.min(entries.len())].to_vec()
            ]
            .concat()
            .join(",")
        )
    });
    let of = |usual: &'static str, odd: BoxedStrategy<String>, long: BoxedStrategy<String>| {
        prop_oneof![12 => Just(usual.to_owned()), 4 => odd, 1 => long].boxed()
    };
    let lists = prop_oneof![4 => list(FILES, 5), 1 => many].boxed();
    let goal = member("goal", of("\"g\"", one_of(GOALS), long.clone()));
    let repo = member("repo", of("\"/r\"", one_of(REPOS), long.clone()));
    let checks = member(
        "acceptance",
        of("[\"c\"]", list(GOALS, 3).boxed(), lists.clone()),
    );
    let files = member(
        "files",
        prop_oneof![6 => valid_files, 3 => list(FILES, 5), 1 => lists].boxed(),
    );
    let extra = prop_oneof![
        12 => Just(String::new()),
        1 => one_of("\"goal\":\"g\"\n\"file\":[]\n\"\\u0067oal\":\"g\"\n\"\":0"),
    ];
    let arguments = (goal, repo, checks, files, extra).prop_map(|(a, b, c, d, e)| {
        let members: Vec<String> = [a, b, c, d, e]
            .into_iter()
            .filter(|m| !m.is_empty())
            .collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    });
    prop_oneof![9 => arguments.clone(), 1 => spoiled(arguments.boxed())].boxed()
}

/// Lengths at and beside the bounds of a task.
fn bounds() -> impl Strategy<Value = usize> {
    let around = |bound: usize| [bound - 1, bound, bound + 1];
    select([64, 1024, 2048, 4096, 32_768, 65_536].map(around).concat())
}
