//! What a client sends: valid and hostile messages of all revisions, mixed as a seed decides.

use rocco::internals::limits::{DEPTH_MAX, FRAME_BYTES_MAX, TASK_FILES_MAX};

use super::prng::Prng;
use super::server::{CURSOR, FILL_BYTES_MAX, NEEDED, TOOLS};

pub const GOOD_TASK: &str = r#"{"goal":"g","repo":"/r","acceptance":["a"]}"#;
pub const BAD_TASK: &str = r#"{"goal":"","repo":"r","files":["..","a","a"],"more":1}"#;

const VERSIONS: [&str; 6] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    "1999-01-01",
];

const METHODS: [&str; 10] = [
    "ping",
    "tools/list",
    "tools/call",
    "server/discover",
    "subscriptions/listen",
    "initialize",
    "resources/list",
    "logging/setLevel",
    "nonsense",
    "",
];

/// Ids by which clients have been led astray, and what only looks like one.
const IDS: [&str; 28] = [
    "0",
    "1",
    "2",
    "-1",
    "-0",
    "\"1\"",
    "\"\"",
    "\"a\\\"b\\n\\u0000\"",
    "\"\\u00e9\\u2028\\ud83d\\ude00\"",
    "\"\u{2028}\u{e9}\"",
    "2147483648",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775808",
    "7",
    "\"7\"",
    "18446744073709551616",
    "-9223372036854775809",
    "1.5",
    "1e2",
    "null",
    "true",
    "{}",
    "[1]",
    "{\"id\":1}",
    "-1.0",
];
const GOOD_IDS: usize = 18;

const SOUP: [&str; 24] = [
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "null", "true", "1", "-", ".", "e",
    "0", " ", "\t", "\r", "\u{0}", "\u{feff}", "\"id\"", "1e999",
];

/// How often each kind of line comes.
const WEIGHTS: usize = 13;

/// The habits of one client.
pub struct Traffic {
    prng: Prng,
    weights: [usize; WEIGHTS],
    /// Ids count upwards, as those of well-behaved clients do.
    counts: bool,
    /// Every id may be something that is none.
    odd_ids: bool,
    crlf: bool,
    big_fills: bool,
    next_id: u64,
}

impl Traffic {
    pub fn new(mut prng: Prng) -> Self {
        let mut weights = [0; WEIGHTS];
        for weight in &mut weights {
            if !prng.one_in(3) {
                *weight = prng.wild(64);
            }
        }
        weights[1] += 1;
        weights[HEAVY] = weights[HEAVY].min(16);
        Self {
            weights,
            counts: prng.one_in(2),
            odd_ids: prng.one_in(3),
            crlf: prng.one_in(5),
            big_fills: prng.one_in(12),
            next_id: 0,
            prng,
        }
    }

    /// All lines of a session, each with what ends it.
    pub fn lines(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        if !self.prng.one_in(4) {
            let line = self.initialize(true);
            lines.push(self.ended(line.into_bytes()));
        }
        if self.prng.one_in(4) {
            self.flood(&mut lines);
        }
        for _ in 0..8 + self.prng.wild(300) {
            let line = self.line();
            lines.push(self.ended(line));
        }
        // Long lines cost a debug build much time, so that they come to few clients.
        if self.prng.one_in(10) {
            let line = self.huge();
            let at = self.prng.below(lines.len() + 1);
            lines.insert(at, self.ended(line));
        }
        if self.prng.one_in(8) && !lines.is_empty() {
            lines[0].splice(..0, *b"\xEF\xBB\xBF");
        }
        // The end may come in the middle of a line.
        if let Some(last) = lines.last_mut().filter(|_| self.prng.one_in(3)) {
            let kept = self.prng.below(last.len() + 1);
            last.truncate(kept);
        }
        lines
    }

    /// Many of the same: of small requests, or of calls with much to say.
    fn flood(&mut self, lines: &mut Vec<Vec<u8>>) {
        let (times, kind) = match self.prng.below(8) {
            0..3 => (50 + self.prng.wild(1000), "ping"),
            3..5 => (50 + self.prng.wild(200), "tools/list"),
            5 => (40, "fill"),
            _ => (30 + self.prng.wild(30), "heavy"),
        };
        for _ in 0..times {
            let line = match kind {
                "fill" => {
                    let bytes = 100_000 + self.prng.below(200_000);
                    self.fill(bytes)
                }
                "heavy" => self.heavy(),
                method => {
                    let id = self.id();
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}")
                }
            };
            lines.push(self.ended(line.into_bytes()));
        }
    }

    fn ended(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        if self.crlf && self.prng.one_in(2) {
            line.push(b'\r');
        }
        line.push(b'\n');
        line
    }

    fn line(&mut self) -> Vec<u8> {
        let mut choice = self.prng.below(self.weights.iter().sum());
        let kind = self.weights.iter().position(|&weight| {
            let found = choice < weight;
            choice = choice.wrapping_sub(if found { 0 } else { weight });
            found
        });
        match kind.expect("the choice is below the sum") {
            0 => {
                let well = !self.prng.one_in(3);
                self.initialize(well).into_bytes()
            }
            1 => self.request().into_bytes(),
            2 => self.stateless().into_bytes(),
            3 => self.subscription().into_bytes(),
            4 => self.notification().into_bytes(),
            5 => self.response().into_bytes(),
            6 => self.batch().into_bytes(),
            7 => self.garbage(),
            8 => self.duplicate().into_bytes(),
            9 => self.deep().into_bytes(),
            10 => self.prng.pick(&["", " ", "\t \r", "\r"]).as_bytes().into(),
            11 => self.mutated(),
            _ => self.heavy().into_bytes(),
        }
    }

    fn id(&mut self) -> String {
        if self.odd_ids && self.prng.one_in(4) {
            return (*self.prng.pick(&IDS)).to_owned();
        }
        if self.counts {
            self.next_id += 1;
            return self.next_id.to_string();
        }
        match self.prng.below(8) {
            0 => self.prng.next().to_string(),
            1 => format!("\"{}\"", "x".repeat(self.prng.wild(300))),
            _ => (*self.prng.pick(&IDS[..GOOD_IDS])).to_owned(),
        }
    }

    fn call(&mut self, method: &str, params: &str) -> String {
        let id = self.id();
        match self.prng.below(6) {
            0 => format!(
                "{{\"method\":\"{method}\",\"params\":{params},\"id\":{id},\"jsonrpc\":\"2.0\"}}"
            ),
            1 => format!(
                " {{ \"jsonrpc\" : \"2.0\" , \"x\":[{{}}], \"\\u0069d\" :{id}, \"method\":\"{method}\",\t\"params\" : {params} }}"
            ),
            _ => format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
            ),
        }
    }

    fn initialize(&mut self, well: bool) -> String {
        let version = *self.prng.pick(&VERSIONS);
        let client = r#""clientInfo":{"name":"t","version":"0"}"#;
        let twice = r#""clientInfo":{"name":"t","version":"0","name":"t"}"#;
        let params = if well {
            format!(
                "{{\"protocolVersion\":\"{version}\",\"capabilities\":{{\"x\":{{}}}},{client}}}"
            )
        } else {
            let broken = [
                "null".to_owned(),
                "[]".to_owned(),
                format!("{{\"capabilities\":{{}},{client}}}"),
                format!("{{\"protocolVersion\":1,\"capabilities\":{{}},{client}}}"),
                format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":true,{client}}}"),
                format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":{{}}}}"),
                format!("{{\"protocolVersion\":\"{version}\",\"protocolVersion\":\"x\"}}"),
                format!(
                    "{{\"protocolVersion\":\"{version}\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"t\"}}}}"
                ),
                format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":{{}},{twice}}}"),
            ];
            self.prng.pick(&broken).clone()
        };
        self.call("initialize", &params)
    }

    /// The parameters of a method without their braces.
    fn params(&mut self, method: &str) -> String {
        match method {
            "tools/call" => self.tool_call(),
            "tools/list" => match self.prng.below(4) {
                0 => format!("\"cursor\":\"{CURSOR}\""),
                1 => "\"cursor\":\"bogus\"".to_owned(),
                2 => (*self.prng.pick(&["\"cursor\":null", "\"cursor\":1"])).to_owned(),
                _ => String::new(),
            },
            "subscriptions/listen" => {
                let filters = [
                    "\"notifications\":{}",
                    "\"notifications\":{\"toolsListChanged\":true,\"later\":1}",
                    "\"notifications\":{\"toolsListChanged\":1}",
                    "\"notifications\":{\"resourceSubscriptions\":[\"a\"]}",
                    "\"notifications\":[]",
                    "",
                ];
                let filter = self.prng.below(2) * self.prng.below(filters.len());
                filters[filter].to_owned()
            }
            _ => String::new(),
        }
    }

    fn tool_call(&mut self) -> String {
        let name = *self.prng.pick(&TOOLS);
        match (self.prng.below(12), name) {
            (0, _) => "\"name\":\"nope\"".to_owned(),
            (1, _) => "\"arguments\":{}".to_owned(),
            (2, _) => format!("\"name\":\"{name}\",\"arguments\":[]"),
            (3, _) => format!("\"name\":\"{name}\",\"arguments\":null"),
            (_, "larry_submit_task") => {
                let arguments = *self.prng.pick(&[GOOD_TASK, BAD_TASK]);
                format!("\"name\":\"{name}\",\"arguments\":{arguments}")
            }
            (_, "echo") => {
                let texts = [
                    "plain",
                    "\\u0000\\n\\\"\\\\",
                    "\u{e9}\u{1F600}",
                    "\\u2028\u{2029}",
                    "/",
                ];
                let text = self.prng.pick(&texts).repeat(self.prng.wild(40));
                format!("\"name\":\"echo\",\"arguments\":{{\"text\":\"{text}\"}}")
            }
            (_, "fill") => {
                let bytes = if self.big_fills && self.prng.one_in(4) {
                    self.prng.wild(FILL_BYTES_MAX)
                } else {
                    self.prng.wild(30_000)
                };
                format!("\"name\":\"fill\",\"arguments\":{{\"bytes\":{bytes}}}")
            }
            _ => format!("\"name\":\"{name}\""),
        }
    }

    fn fill(&mut self, bytes: usize) -> String {
        let params = format!("{{\"name\":\"fill\",\"arguments\":{{\"bytes\":{bytes}}}}}");
        self.call("tools/call", &params)
    }

    fn request(&mut self) -> String {
        let method = *self.prng.pick(&METHODS);
        let params = match self.prng.below(12) {
            0 => "[]".to_owned(),
            1 => "null".to_owned(),
            2 => "7".to_owned(),
            3 => format!(
                "{{\"_meta\":{{\"progressToken\":1}},{}}}",
                self.more(method)
            ),
            _ => format!("{{{}}}", self.params(method)),
        };
        self.call(method, &params)
    }

    /// Parameters that may stand behind a comma.
    fn more(&mut self, method: &str) -> String {
        let params = self.params(method);
        if params.is_empty() {
            "\"more\":[1,{}]".to_owned()
        } else {
            params
        }
    }

    fn envelope(&mut self) -> String {
        let prefix = "io.modelcontextprotocol";
        let version = format!("\"{prefix}/protocolVersion\":\"2026-07-28\"");
        let capabilities = format!("\"{prefix}/clientCapabilities\":{{}}");
        match self.prng.below(16) {
            0 => version,
            1 => capabilities,
            2 => format!("\"{prefix}/protocolVersion\":\"2030-01-01\",{capabilities}"),
            3 => format!("\"{prefix}/protocolVersion\":\"2025-11-25\""),
            4 => format!("{version},{version},{capabilities}"),
            5 => format!("{version},{capabilities},\"{prefix}/logLevel\":\"loud\""),
            6 => format!("{version},{capabilities},\"{prefix}/logLevel\":\"info\""),
            7 => format!("\"{prefix}/clientInfo\":{{}}"),
            8 => format!("{version},\"{prefix}/clientCapabilities\":{{\"{NEEDED}\":{{}}}}"),
            _ => format!("{version},{capabilities}"),
        }
    }

    fn stateless(&mut self) -> String {
        let method = *self.prng.pick(&METHODS);
        let (envelope, more) = (self.envelope(), self.more(method));
        self.call(method, &format!("{{\"_meta\":{{{envelope}}},{more}}}"))
    }

    fn subscription(&mut self) -> String {
        let id = self.id();
        if self.prng.one_in(2) {
            return format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}"
            );
        }
        let (envelope, more) = (self.envelope(), self.more("subscriptions/listen"));
        self.call(
            "subscriptions/listen",
            &format!("{{\"_meta\":{{{envelope}}},{more}}}"),
        )
    }

    fn notification(&mut self) -> String {
        let methods = [
            "notifications/initialized",
            "notifications/progress",
            "notifications/cancelled",
            "ping",
            "initialize",
        ];
        let method = *self.prng.pick(&methods);
        let params = *self
            .prng
            .pick(&["{}", "[]", "null", "{\"requestId\":null}"]);
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}")
    }

    fn response(&mut self) -> String {
        let id = self.id();
        let forms = [
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"),
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":1,\"message\":\"\"}}}}"
            ),
            format!("{{\"jsonrpc\":\"1.0\",\"id\":{id},\"result\":{{}}}}"),
            format!("{{\"id\":{id},\"result\":{{}},\"method\":\"ping\"}}"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":7}}"),
            "{\"jsonrpc\":\"2.0\",\"error\":{}}".to_owned(),
            "{}".to_owned(),
        ];
        self.prng.pick(&forms).clone()
    }

    fn batch(&mut self) -> String {
        let count = match self.prng.below(40) {
            0 => 1023 + self.prng.below(3),
            1..4 => 0,
            4 => return format!("[{}]", vec![self.heavy(); 30].join(",")),
            _ => self.prng.wild(20),
        };
        let messages: Vec<String> = (0..count)
            .map(
                |_| match self.prng.below(if count > 1000 { 2 } else { 8 }) {
                    0 => (*self.prng.pick(&["0", "null", "[]", "\"\""])).to_owned(),
                    1 => self.notification(),
                    2 => self.stateless(),
                    3 => self.response(),
                    4 => self.initialize(true),
                    5 => self.subscription(),
                    _ => self.request(),
                },
            )
            .collect();
        format!("[{}]", messages.join(","))
    }

    fn garbage(&mut self) -> Vec<u8> {
        match self.prng.below(6) {
            0 => (0..self.prng.wild(300))
                .map(|_| self.prng.next() as u8)
                .filter(|&byte| byte != b'\n')
                .collect(),
            1 => (0..self.prng.wild(30))
                .flat_map(|_| self.prng.pick(&SOUP).bytes())
                .collect(),
            2 => b"Content-Length: 17\r".to_vec(),
            3 => {
                let mut line = self.request().into_bytes();
                line.truncate(self.prng.below(line.len()));
                line
            }
            4 => b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\xFE\"}".to_vec(),
            _ => {
                let (first, second) = (self.request(), self.request());
                format!("{first}{second}").into_bytes()
            }
        }
    }

    fn duplicate(&mut self) -> String {
        let line = if self.prng.one_in(2) {
            self.request()
        } else {
            self.stateless()
        };
        let members = [
            "\"id\":3",
            "\"jsonrpc\":\"2.0\"",
            "\"method\":\"ping\"",
            "\"params\":{}",
            "\"\\u0069d\":3",
            "\"result\":{}",
            "\"unknown\":1,\"unknown\":2",
        ];
        let member = *self.prng.pick(&members);
        let at = if self.prng.one_in(3) {
            line.rfind('{')
        } else {
            line.find('{')
        };
        let (front, back) = line.split_at(at.map_or(0, |at| at + 1));
        if back.starts_with('}') {
            return format!("{front}{member}{back}");
        }
        format!("{front}{member},{back}")
    }

    /// Much nesting, or many members.
    fn deep(&mut self) -> String {
        let levels = match self.prng.below(4) {
            0 => DEPTH_MAX - 3 + self.prng.below(6),
            1 => 96 + self.prng.below(40),
            _ => self.prng.wild(2 * DEPTH_MAX),
        };
        let (open, close) =
            *self
                .prng
                .pick(&[("[", "]"), ("{\"a\":", "}"), ("[1,{\"b\":[", "]}]")]);
        let close_levels = levels - usize::from(self.prng.one_in(6));
        let nested = format!("{}1{}", open.repeat(levels), close.repeat(close_levels));
        match self.prng.below(3) {
            0 => nested,
            1 => self.call("ping", &format!("{{\"x\":{nested}}}")),
            _ => {
                let wide = "\"k\":[],".repeat(self.prng.wild(2000));
                self.call("tools/list", &format!("{{{wide}\"x\":0}}"))
            }
        }
    }

    /// A good line with a few wrong bytes.
    fn mutated(&mut self) -> Vec<u8> {
        let mut line = match self.prng.below(3) {
            0 => self.request(),
            1 => self.stateless(),
            _ => self.batch(),
        }
        .into_bytes();
        for _ in 0..1 + self.prng.below(3) {
            let at = self.prng.below(line.len());
            match self.prng.below(3) {
                0 => line[at] ^= 1 << self.prng.below(7),
                1 => drop(line.remove(at)),
                _ => line.insert(at, *self.prng.pick(b"{}[],:\"\\ 0e\x00\xC3")),
            }
            line.push(b' ');
        }
        line.retain(|&byte| byte != b'\n');
        line
    }

    /// A call that claims as much of the arena as a call can: the list of its faults grows behind
    /// the sorted copy of its files.
    fn heavy(&mut self) -> String {
        let files = vec!["\"a\""; TASK_FILES_MAX].join(",");
        let params =
            format!("{{\"name\":\"larry_submit_task\",\"arguments\":{{\"files\":[{files}]}}}}");
        self.call("tools/call", &params)
    }

    /// A line around the bound, or far over it.
    fn huge(&mut self) -> Vec<u8> {
        let bytes = match self.prng.below(4) {
            0 | 1 => FRAME_BYTES_MAX + self.prng.wild(FRAME_BYTES_MAX),
            2 => self.prng.wild(FRAME_BYTES_MAX),
            _ => FRAME_BYTES_MAX - 2 + self.prng.below(5),
        };
        let mut line = self.call("ping", "{}").into_bytes();
        let padding = *self.prng.pick(b" {a");
        line.resize(bytes.max(line.len()), padding);
        line
    }
}

const HEAVY: usize = 12;
