//! A JSON reader so plain that it can be checked by reading. It is slow, keeps every duplicate and
//! every digit, and does not recurse, so it can speak where serde_json cannot.

use rocco::internals::limits::DEPTH_MAX;

/// A JSON value that owns what it holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// An integer without a sign, of 64 bits.
    Unsigned(u64),
    /// An integer with a minus sign, of 64 bits; `-0` is one.
    Signed(i64),
    /// Any other number.
    Float(f64),
    String(String),
    Array(Vec<Json>),
    Object(Members),
}

/// The members of an object in order, with every duplicate.
pub type Members = Vec<(String, Json)>;

impl Json {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Members> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether it can be the id of a request.
    pub fn is_id(&self) -> bool {
        matches!(self, Self::String(_) | Self::Unsigned(_) | Self::Signed(_))
    }
}

/// All members of a name.
pub fn all<'m>(members: &'m Members, name: &str) -> Vec<&'m Json> {
    let named = members.iter().filter(|(key, _)| key == name);
    named.map(|(_, value)| value).collect()
}

/// A text that was read, and how deep it nests.
#[derive(Debug)]
pub struct Read {
    pub json: Json,
    pub depth: usize,
}

/// The one value of a text of UTF-8 that nests at most [`DEPTH_MAX`] deep.
pub fn read(text: &[u8]) -> Option<Read> {
    let rest = std::str::from_utf8(text).ok()?;
    let mut reader = Reader {
        rest,
        open: Vec::new(),
        depth: 0,
    };
    loop {
        reader.space();
        let mut value = reader.value()?;
        // A value may end the container that it is in, and that one its own.
        while let Some(ended) = value {
            value = match reader.put(ended)? {
                Put::Next => break,
                Put::Container(container) => Some(container),
                Put::Root(json) => {
                    let depth = reader.depth;
                    return Some(Read { json, depth });
                }
            };
        }
    }
}

/// A container whose end has not come. An object knows the name of the member to come.
enum Open {
    Array(Vec<Json>),
    Object(Members, String),
}

/// Where an ended value went.
enum Put {
    /// Into a container that goes on: another value is due.
    Next,
    /// Into a container that ended with it.
    Container(Json),
    /// Nowhere: it is the whole text.
    Root(Json),
}

struct Reader<'t> {
    rest: &'t str,
    open: Vec<Open>,
    /// How many containers were open at the most.
    depth: usize,
}

impl<'t> Reader<'t> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn eat(&mut self, token: &str) -> bool {
        let behind = self.rest.strip_prefix(token);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// A scalar or an empty container; nothing if a container was opened; an error if neither.
    fn value(&mut self) -> Option<Option<Json>> {
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ] {
            if self.eat(word) {
                return Some(Some(value));
            }
        }
        if self.eat("[") {
            self.deeper()?;
            if self.eat("]") {
                return Some(Some(Json::Array(Vec::new())));
            }
            self.open.push(Open::Array(Vec::new()));
            return Some(None);
        }
        if self.eat("{") {
            self.deeper()?;
            if self.eat("}") {
                return Some(Some(Json::Object(Vec::new())));
            }
            let name = self.name()?;
            self.open.push(Open::Object(Vec::new(), name));
            return Some(None);
        }
        if self.eat("\"") {
            return self.string().map(|text| Some(Json::String(text)));
        }
        self.number().map(Some)
    }

    /// Counts a container that begins, which may be empty.
    fn deeper(&mut self) -> Option<()> {
        self.space();
        self.depth = self.depth.max(self.open.len() + 1);
        (self.depth <= DEPTH_MAX).then_some(())
    }

    /// Puts an ended value where it belongs, and reads what has to stand behind it.
    fn put(&mut self, value: Json) -> Option<Put> {
        self.space();
        let Some(mut container) = self.open.pop() else {
            return self.rest.is_empty().then_some(Put::Root(value));
        };
        let end = match &mut container {
            Open::Array(elements) => {
                elements.push(value);
                "]"
            }
            Open::Object(members, name) => {
                members.push((std::mem::take(name), value));
                "}"
            }
        };
        if self.eat(end) {
            return Some(Put::Container(match container {
                Open::Array(elements) => Json::Array(elements),
                Open::Object(members, _) => Json::Object(members),
            }));
        }
        if !self.eat(",") {
            return None;
        }
        if let Open::Object(_, name) = &mut container {
            *name = self.name()?;
        }
        self.open.push(container);
        Some(Put::Next)
    }

    /// A member's name and the colon behind it.
    fn name(&mut self) -> Option<String> {
        self.space();
        if !self.eat("\"") {
            return None;
        }
        let name = self.string()?;
        self.space();
        self.eat(":").then_some(name)
    }

    /// A string whose first quote is read.
    fn string(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.character()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                '\0'..='\u{1f}' => return None,
                plain => text.push(plain),
            }
        }
    }

    fn character(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next();
        self.rest = characters.as_str();
        first
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.character()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            same @ ('"' | '\\' | '/') => same,
            'u' => {
                let mut units = vec![self.unit()?];
                if (0xd800..0xdc00).contains(&units[0]) {
                    units.push(self.eat("\\u").then(|| self.unit())??);
                }
                String::from_utf16(&units).ok()?.chars().next()?
            }
            _ => return None,
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.rest.get(..4)?;
        self.rest = &self.rest[4..];
        let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)
    }

    fn number(&mut self) -> Option<Json> {
        let part = |c: char| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        if !is_number(number) {
            return None;
        }
        let float = || number.parse().ok().filter(|float: &f64| float.is_finite());
        if number.contains(['.', 'e', 'E']) {
            return float().map(Json::Float);
        }
        let integer = if number.starts_with('-') {
            number.parse().map(Json::Signed)
        } else {
            number.parse().map(Json::Unsigned)
        };
        integer.ok().or_else(|| float().map(Json::Float))
    }
}

/// RFC 8259, section 6.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (mantissa, None),
    };
    let integer = integer.strip_prefix('-').unwrap_or(integer);
    let exponent = exponent.map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
    digits(integer)
        && (integer == "0" || !integer.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}
