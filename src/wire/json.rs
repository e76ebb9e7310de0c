//! JSON values of a frame, borrowed from it, and JSON text that was checked.
//!
//! simd-json parses the frame in place and leaves a tape of nodes; [`Value`] is a view of it that
//! walks by skipping, never by recursion.

use std::fmt;

use simd_json::{Buffers, ErrorType, Node, StaticNode, Tape};

use crate::limits::{DEPTH_MAX, FRAME_BYTES_WARM, FRAME_PADDING_BYTES};

const _: () = assert!(FRAME_PADDING_BYTES >= simd_json::INPUT_PADDING);

/// The bytes are not one JSON text of UTF-8 (RFC 8259), or nest deeper than 1,024, or hold a number
/// beyond the range of a double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson {
    is_too_deep: bool,
}

impl NotJson {
    #[cold]
    fn new(error: &simd_json::Error) -> Self {
        Self {
            is_too_deep: *error.error() == ErrorType::DepthLimitExceeded,
        }
    }

    /// Whether the text nests too deeply. What stands behind that place was not looked at.
    pub(crate) fn is_too_deep(self) -> bool {
        self.is_too_deep
    }
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_too_deep {
            let what = "the text nests objects and arrays deeper than";
            return write!(f, "{what} {DEPTH_MAX} levels");
        }
        f.write_str(
            "the text is not one valid JSON value, or holds a number beyond the range of a double",
        )
    }
}

impl std::error::Error for NotJson {}

/// A parser with buffers that stay warm for small frames.
pub struct Parser {
    buffers: Buffers,
    tape: Tape<'static>,
}

/// A frame that was parsed. Hand it back with [`Parser::recycle`], so that its buffers serve the
/// next frame.
#[derive(Debug)]
pub struct Document<'f> {
    tape: Tape<'f>,
    warm: bool,
}

impl fmt::Debug for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser").finish_non_exhaustive()
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser whose buffers grow with the first frames and then stay.
    pub fn new() -> Self {
        Self {
            buffers: Buffers::with_max_depth(0, DEPTH_MAX),
            tape: Tape(Vec::new()),
        }
    }

    /// Parses the first `bytes` bytes of `frame` in place. The rest of it is padding, at least
    /// [`FRAME_PADDING_BYTES`] long and left as it is. Strings are unescaped where they stand,
    /// even when the parse fails later on.
    pub fn parse<'f>(
        &mut self,
        frame: &'f mut [u8],
        bytes: usize,
    ) -> Result<Document<'f>, NotJson> {
        if bytes > FRAME_BYTES_WARM {
            let mut tape = Tape(Vec::new());
            let mut buffers = Buffers::with_max_depth(0, DEPTH_MAX);
            return simd_json::fill_tape_padded(frame, bytes, &mut buffers, &mut tape)
                .map(|()| Document { tape, warm: false })
                .map_err(|error| NotJson::new(&error));
        }
        let mut tape = std::mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let parsed = simd_json::fill_tape_padded(frame, bytes, &mut self.buffers, &mut tape);
        let document = Document { tape, warm: true };
        match parsed {
            Ok(()) => Ok(document),
            Err(error) => {
                self.recycle(document);
                Err(NotJson::new(&error))
            }
        }
    }

    /// Takes the buffers of a document back. Those of a long frame are freed instead.
    pub fn recycle(&mut self, document: Document<'_>) {
        if document.warm {
            self.tape = document.tape.reset();
        }
    }
}

impl Document<'_> {
    /// The value that the frame holds.
    pub fn root(&self) -> Value<'_> {
        Value::first(&self.tape.0).0
    }
}

/// A JSON value, borrowed from the line that it came in.
///
/// JSON has no further kinds of values (RFC 8259, section 3), so a `match` may name them all.
///
/// ```
/// fn truth(value: rocco::Value<'_>) -> Option<bool> {
///     match value {
///         rocco::Value::Bool(truth) => Some(truth),
///         rocco::Value::Unsigned(number) => Some(number != 0),
///         _ => None,
///     }
/// }
/// # let _ = truth;
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer without a sign, digit for digit.
    Unsigned(u64),
    /// An integer with a minus sign, digit for digit; `-0` is `Signed(0)`.
    Signed(i64),
    /// A number with a fraction or an exponent, or an integer beyond 64 bits.
    Float(f64),
    /// A string, unescaped.
    String(&'a str),
    /// An array.
    Array(Array<'a>),
    /// An object.
    Object(Object<'a>),
}

impl<'a> Value<'a> {
    /// The first value of the nodes, and the nodes behind it. Nodes come from a successful parse,
    /// so there is one.
    #[inline]
    fn first(nodes: &'a [Node<'a>]) -> (Self, &'a [Node<'a>]) {
        let (node, rest) = nodes
            .split_first()
            .expect("a tape is never short of a node");
        match *node {
            Node::String(text) => (Self::String(text), rest),
            Node::Static(StaticNode::U64(number)) => (Self::Unsigned(number), rest),
            Node::Static(StaticNode::I64(number)) => (Self::Signed(number), rest),
            Node::Static(StaticNode::F64(number)) => (Self::Float(number), rest),
            Node::Static(StaticNode::Bool(truth)) => (Self::Bool(truth), rest),
            Node::Static(StaticNode::Null) => (Self::Null, rest),
            Node::Array { len, count } => {
                let (nodes, rest) = rest.split_at(count);
                (Self::Array(Array { nodes, len }), rest)
            }
            Node::Object { len, count } => {
                let (nodes, rest) = rest.split_at(count);
                (Self::Object(Object { nodes, len }), rest)
            }
        }
    }

    /// The truth of `true` or `false`; none for any other value.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    /// An integer from 0 to 2^64 - 1; none for `-0`, `1.0` and any other value.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    /// An integer from 0 to 2^64 - 1 as JSON Schema knows integers: `-0`, `1.0` and `6e2` are some.
    pub(crate) fn as_whole_u64(&self) -> Option<u64> {
        const END: f64 = 18_446_744_073_709_551_616.0;
        match *self {
            Self::Unsigned(number) => Some(number),
            Self::Signed(0) => Some(0),
            Self::Float(number) if self.is_whole() && (0.0..END).contains(&number) => {
                Some(number as u64)
            }
            _ => None,
        }
    }

    /// Whether this is an integer as JSON Schema knows integers, of any size.
    pub(crate) fn is_whole(&self) -> bool {
        match *self {
            Self::Unsigned(_) | Self::Signed(_) => true,
            Self::Float(number) => number.fract() == 0.0,
            _ => false,
        }
    }

    /// An integer from -2^63 to 2^63 - 1; none for `1.0` and any other value.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::Unsigned(number) => number.try_into().ok(),
            Self::Signed(number) => Some(number),
            _ => None,
        }
    }

    /// Any number, as the double that is nearest to it; none for any other value.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Unsigned(number) => Some(number as f64),
            // A minus sign before a zero is kept.
            Self::Signed(0) => Some(-0.0),
            Self::Signed(number) => Some(number as f64),
            Self::Float(number) => Some(number),
            _ => None,
        }
    }

    /// The text of a string, unescaped; none for any other value.
    pub fn as_str(&self) -> Option<&'a str> {
        match *self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The members of an object; none for any other value.
    pub fn as_object(&self) -> Option<Object<'a>> {
        match *self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The elements of an array; none for any other value.
    pub fn as_array(&self) -> Option<Array<'a>> {
        match *self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The name of the value's type, as JSON Schema has it: `null`, `boolean`, `integer`, `number`,
    /// `string`, `array` or `object`. A number that was written with a fraction or an exponent is a
    /// `number`, `1.0` included.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Unsigned(_) | Self::Signed(_) => "integer",
            Self::Float(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

/// The elements of a JSON array, in order.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    nodes: &'a [Node<'a>],
    len: usize,
}

impl<'a> Array<'a> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let mut nodes = self.nodes;
        std::iter::from_fn(move || {
            if nodes.is_empty() {
                return None;
            }
            let (value, rest) = Value::first(nodes);
            nodes = rest;
            Some(value)
        })
    }
}

/// The members of a JSON object, in order and with every duplicate.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    nodes: &'a [Node<'a>],
    len: usize,
}

/// A member that was asked for by [`Object::take`] stands in the object more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateMember {
    name: &'static str,
}

impl DuplicateMember {
    /// The name that stands there more than once.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Display for DuplicateMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the member {:?} is given more than once", self.name)
    }
}

impl std::error::Error for DuplicateMember {}

impl<'a> Object<'a> {
    /// The object without members.
    pub const EMPTY: Object<'static> = Object { nodes: &[], len: 0 };

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The members in order, each as often as it was sent.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let mut nodes = self.nodes;
        std::iter::from_fn(move || {
            let (name, rest) = nodes.split_first()?;
            let Node::String(name) = name else {
                unreachable!("a member starts with its name")
            };
            let (value, rest) = Value::first(rest);
            nodes = rest;
            Some((*name, value))
        })
    }

    /// The first member of a name. Where it matters that there is no second one, use
    /// [`Object::take`].
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.iter()
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// The members of several names, in the order of the names, in one pass. Other members are
    /// passed over.
    ///
    /// ```
    /// use rocco::{DuplicateMember, Object};
    ///
    /// fn range(arguments: Object<'_>) -> Result<Option<(u64, u64)>, DuplicateMember> {
    ///     let [from, to] = arguments.take(["from", "to"])?;
    ///     let number = |value: Option<rocco::Value<'_>>| value.and_then(|value| value.as_u64());
    ///     Ok(number(from).zip(number(to)))
    /// }
    /// assert_eq!(range(Object::EMPTY), Ok(None));
    /// ```
    ///
    /// # Errors
    ///
    /// A name occurs twice. Layers that disagree on which of two equal names counts have been led
    /// astray by it.
    #[inline]
    pub fn take<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Option<Value<'a>>; N], DuplicateMember> {
        let mut taken = [None; N];
        for (key, value) in self.iter() {
            if let Some(index) = names.iter().position(|&name| name == key)
                && taken[index].replace(value).is_some()
            {
                return Err(DuplicateMember { name: names[index] });
            }
        }
        Ok(taken)
    }
}

/// JSON text that was checked: one valid value on one line, to be written where a value goes.
///
/// To make it costs a parse and memory, to write it a copy. A tool makes what never changes when it
/// is made itself, and not in a call.
///
/// ```
/// use rocco::{Info, RawJson, Server, ToolSpec};
///
/// let limits = RawJson::new(r#"{ "words": 1000, "lines": [1, 50] }"#)?;
/// let spec = ToolSpec::new("limits", "Tells the limits.", r#"{"type":"object"}"#);
/// let server = Server::new(Info::new("counter", "1.0.0")).tool_fn(spec, move |_call, reply| {
///     reply.structured(|result| result.json("limits", &limits))
/// });
/// # let _ = server;
/// # Ok::<(), rocco::NotJson>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Checks a text. White space between its tokens is left out; a member name that stands in an
    /// object twice stays twice.
    ///
    /// # Errors
    ///
    /// It is not one JSON value, nests deeper than 1,024, or holds a number beyond the range of a
    /// double.
    pub fn new(text: &str) -> Result<Self, NotJson> {
        minified(text).map(|text| Self(text.into()))
    }

    /// The text, on one line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON text without the white space between its tokens. A line or paragraph separator (U+2028,
/// U+2029) is escaped, since some clients split lines on those too.
///
/// # Errors
///
/// It is not JSON.
pub fn minified(text: &str) -> Result<String, NotJson> {
    let mut frame = text.as_bytes().to_vec();
    frame.resize(text.len() + FRAME_PADDING_BYTES, b' ');
    Parser::new().parse(&mut frame, text.len())?;
    let (mut in_string, mut escaped) = (false, false);
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{2028}' => kept.push_str("\\u2028"),
            '\u{2029}' => kept.push_str("\\u2029"),
            _ if in_string || !character.is_ascii_whitespace() => kept.push(character),
            _ => {}
        }
        if character == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && character == '\\' && !escaped;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(text: &str, look: impl FnOnce(Value<'_>) -> T) -> Result<T, NotJson> {
        let mut frame = text.as_bytes().to_vec();
        frame.resize(text.len() + FRAME_PADDING_BYTES, b']');
        let mut parser = Parser::new();
        let document = parser.parse(&mut frame, text.len())?;
        let looked = look(document.root());
        parser.recycle(document);
        Ok(looked)
    }

    #[test]
    fn integers_keep_their_sign_and_digits() {
        let kinds = [
            ("0", "Unsigned(0)"),
            ("-0", "Signed(0)"),
            ("18446744073709551615", "Unsigned(18446744073709551615)"),
            ("-9223372036854775808", "Signed(-9223372036854775808)"),
            ("18446744073709551616", "Float(1.8446744073709552e19)"),
            ("1.0", "Float(1.0)"),
            ("1e2", "Float(100.0)"),
        ];
        for (text, kind) in kinds {
            assert_eq!(with(text, |value| format!("{value:?}")).unwrap(), kind);
        }
    }

    #[test]
    fn nested_values_are_skipped_by_their_count() {
        let text = r#"{"a":[[1,{"b":[]}],{}],"c":{"d":{"e":[2,3]}},"f":"g"}"#;
        let names = with(text, |value| {
            let object = value.as_object().unwrap();
            let names: Vec<_> = object.iter().map(|(name, _)| name.to_owned()).collect();
            assert_eq!(object.get("f").unwrap().as_str(), Some("g"));
            let array = object.get("a").unwrap().as_array().unwrap();
            assert_eq!((array.len(), array.iter().count()), (2, 2));
            names
        });
        assert_eq!(names.unwrap(), ["a", "c", "f"]);
    }

    #[test]
    fn a_name_that_is_taken_twice_is_an_error() {
        let taken = with(r#"{"a":1,"b":2,"\u0061":3,"b":4}"#, |value| {
            let object = value.as_object().unwrap();
            (object.take(["a"]).err(), object.take(["c"]).is_ok())
        });
        assert_eq!(taken.unwrap(), (Some(DuplicateMember { name: "a" }), true));
    }

    #[test]
    fn the_frame_is_isolated_from_its_padding() {
        assert!(with("[[1]", |_| ()).is_err());
        assert!(with("", |_| ()).is_err());
        assert!(with("1", |_| ()).is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(with(&nested(DEPTH_MAX), |_| ()).is_ok());
        assert!(with(&nested(DEPTH_MAX + 1), |_| ()).is_err());
    }

    #[test]
    fn minifying_keeps_strings() {
        assert_eq!(
            minified("{ \"a b\" : [ 1 , \"\\\\\" , \"\\\" x\" ] }\n")
                .ok()
                .as_deref(),
            Some("{\"a b\":[1,\"\\\\\",\"\\\" x\"]}")
        );
        assert!(minified("{").is_err());
        assert_eq!(
            minified("\"\u{2028}\\\\\u{2029}\"").ok().as_deref(),
            Some(r#""\u2028\\\u2029""#)
        );
    }

    #[test]
    fn numbers_are_what_they_were_written_as() {
        let numbers = |text| {
            let read = with(text, |value| {
                (value.as_u64(), value.as_i64(), value.as_f64())
            });
            read.unwrap()
        };
        assert_eq!(numbers("7"), (Some(7), Some(7), Some(7.0)));
        assert_eq!(numbers("-7"), (None, Some(-7), Some(-7.0)));
        assert_eq!(numbers("1.0"), (None, None, Some(1.0)));
        assert_eq!(numbers("\"1\""), (None, None, None));
        let most = u64::MAX.to_string();
        assert_eq!(
            numbers(&most),
            (Some(u64::MAX), None, Some(u64::MAX as f64))
        );
        assert!(numbers("-0").2.unwrap().is_sign_negative());
        assert_eq!(with("true", |value| value.as_bool()), Ok(Some(true)));
        assert_eq!(with("1", |value| value.as_bool()), Ok(None));
    }

    #[test]
    fn raw_json_is_one_value_on_one_line() {
        let raw = RawJson::new("{ \"a\" :\n[ 1 , 2 ] }").unwrap();
        assert_eq!(raw.as_str(), "{\"a\":[1,2]}");
        for text in [
            "", "1 2", "{", "\"a\nb\"", "NaN", "1e999", "{}\n{}", ",", "[1,]",
        ] {
            let refused = RawJson::new(text).unwrap_err();
            assert!(!refused.is_too_deep(), "{text:?}");
        }
    }

    /// What nests too deeply was called no JSON, in a short text as in a long one.
    #[test]
    fn what_nests_too_deeply_is_told_from_what_is_not_json() {
        for (levels, space) in [(DEPTH_MAX, 0), (DEPTH_MAX, FRAME_BYTES_WARM)] {
            let nested = |levels: usize| {
                let space = " ".repeat(space);
                format!("{}{space}{}", "[".repeat(levels), "]".repeat(levels))
            };
            assert!(RawJson::new(&nested(levels)).is_ok());
            let refused = RawJson::new(&nested(levels + 1)).unwrap_err();
            assert!(refused.is_too_deep());
            let told = refused.to_string();
            assert!(told.ends_with("deeper than 1024 levels"), "{told}");
            assert!(!RawJson::new(&"[".repeat(levels)).unwrap_err().is_too_deep());
        }
    }
}
