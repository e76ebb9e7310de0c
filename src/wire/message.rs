//! JSON-RPC 2.0 messages: a JSON value is a request, a notification, a response, or not a message.
//!
//! Each value gets exactly one of these kinds. The module does not know any method.

use super::json::{Object, Value};

/// A request's id, echoed with the same type and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    /// A string.
    String(&'a str),
    /// An integer without a sign.
    Unsigned(u64),
    /// An integer with a minus sign, -0 included.
    Signed(i64),
}

impl<'a> Id<'a> {
    /// Reads an id. MCP allows strings and integers. An integer beyond 64 bits would lose digits,
    /// so it is not an id.
    pub fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::String(text)),
            Value::Unsigned(number) => Some(Self::Unsigned(number)),
            Value::Signed(number) => Some(Self::Signed(number)),
            _ => None,
        }
    }
}

/// A message that gets exactly one reply.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The id that the reply carries.
    pub id: Id<'a>,
    /// The name of the method.
    pub method: &'a str,
    /// The parameters of the method.
    pub params: Option<Value<'a>>,
}

/// A message that gets no reply.
#[derive(Debug, Clone, Copy)]
pub struct Notification<'a> {
    /// The name of the method.
    pub method: &'a str,
    /// The parameters of the method.
    pub params: Option<Value<'a>>,
}

/// A JSON value by its kind in JSON-RPC.
#[derive(Debug, Clone, Copy)]
pub enum Message<'a> {
    /// A message that gets exactly one reply.
    Request(Request<'a>),
    /// A message that gets no reply.
    Notification(Notification<'a>),
    /// A response. This side makes no requests, so it is ignored.
    Response,
    /// A value that is not a message.
    Invalid {
        /// The id for the error reply, if an id could be read.
        id: Option<Id<'a>>,
        /// The message of the error reply.
        fault: &'static str,
    },
}

/// The members of a message by name, and the first repeated one.
#[derive(Default)]
struct MessageMembers<'a> {
    jsonrpc: Option<Value<'a>>,
    id: Option<Value<'a>>,
    method: Option<Value<'a>>,
    params: Option<Value<'a>>,
    has_result_or_error: bool,
    duplicate: Option<&'static str>,
}

impl<'a> MessageMembers<'a> {
    fn from_object(object: Object<'a>) -> Self {
        let mut members = Self::default();
        for (name, value) in object.iter() {
            let (slot, name) = match name {
                "jsonrpc" => (&mut members.jsonrpc, "jsonrpc"),
                "id" => (&mut members.id, "id"),
                "method" => (&mut members.method, "method"),
                "params" => (&mut members.params, "params"),
                "result" | "error" => {
                    members.has_result_or_error = true;
                    continue;
                }
                _ => continue,
            };
            // A repeated id outweighs any other: an error reply cannot carry either of two ids.
            if slot.replace(value).is_some() && members.duplicate != Some("id") {
                members.duplicate = Some(name);
            }
        }
        members
    }
}

impl<'a> Message<'a> {
    /// Tells the kind of a value that is a line or an element of a batch.
    pub fn from_value(value: Value<'a>) -> Self {
        let Value::Object(object) = value else {
            return Self::Invalid {
                id: None,
                fault: "a message must be a JSON object",
            };
        };
        let members = MessageMembers::from_object(object);
        // The id of a response is an id of this side. An error reply with that id would look like
        // the response to a request of the client.
        let is_response = members.has_result_or_error && members.method.is_none();
        let id = members.id.filter(|_| !is_response).and_then(Id::from_value);
        if let Some(name) = members.duplicate {
            let (id, fault) = match name {
                "id" => (None, "\"id\" is given more than once"),
                "method" => (id, "\"method\" is given more than once"),
                "params" => (id, "\"params\" is given more than once"),
                _ => (id, "\"jsonrpc\" is given more than once"),
            };
            return Self::Invalid { id, fault };
        }
        if members.jsonrpc.and_then(|value| value.as_str()) != Some("2.0") {
            return Self::Invalid {
                id,
                fault: "\"jsonrpc\" must be \"2.0\"",
            };
        }
        match members.method {
            Some(method) => Self::request_or_notification(method.as_str(), id, &members),
            None => Self::response(id, &members),
        }
    }

    fn request_or_notification(
        method: Option<&'a str>,
        id: Option<Id<'a>>,
        members: &MessageMembers<'a>,
    ) -> Self {
        let params = members.params;
        match (method, id, members.id) {
            (None, id, _) => Self::Invalid {
                id,
                fault: "\"method\" must be a string",
            },
            (Some(method), None, None) => Self::Notification(Notification { method, params }),
            (Some(method), Some(id), _) => Self::Request(Request { id, method, params }),
            (Some(_), None, Some(_)) => Self::Invalid {
                id: None,
                fault: "\"id\" must be a string or an integer of 64 bits",
            },
        }
    }

    fn response(id: Option<Id<'a>>, members: &MessageMembers<'a>) -> Self {
        let id_is_valid = match members.id {
            None | Some(Value::Null) => true,
            Some(value) => Id::from_value(value).is_some(),
        };
        match (members.has_result_or_error, id_is_valid) {
            (true, true) => Self::Response,
            (true, false) => Self::Invalid {
                id: None,
                fault: "\"id\" must be a string or an integer of 64 bits",
            },
            (false, _) => Self::Invalid {
                id,
                fault: "\"method\" is missing",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_PADDING_BYTES;
    use crate::wire::json::Parser;

    fn kind(text: &str) -> String {
        let mut frame = text.as_bytes().to_vec();
        frame.resize(text.len() + FRAME_PADDING_BYTES, b' ');
        let document = Parser::new().parse(&mut frame, text.len()).unwrap();
        match Message::from_value(document.root()) {
            Message::Request(request) => format!("request {:?} {}", request.id, request.method),
            Message::Notification(notification) => format!("notification {}", notification.method),
            Message::Response => "response".into(),
            Message::Invalid { id, .. } => format!("invalid {id:?}"),
        }
    }

    #[test]
    fn kinds() {
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
                "request Unsigned(1) m",
            ),
            (
                r#"{"jsonrpc":"2.0","id":-0,"method":"m"}"#,
                "request Signed(0) m",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"","method":"m"}"#,
                "request String(\"\") m",
            ),
            (
                r#"{"jsonrpc":"2.0","\u0069d":5,"method":"m"}"#,
                "request Unsigned(5) m",
            ),
            (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification m"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "response"),
            (r#"{"jsonrpc":"2.0","error":{}}"#, "response"),
            (r#"{"jsonrpc":"2.0","id":[],"error":{}}"#, "invalid None"),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
                "invalid None",
            ),
            (r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#, "invalid None"),
            (
                r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"m"}"#,
                "invalid None",
            ),
            (r#"{"jsonrpc":"2.0","id":7}"#, "invalid Some(Unsigned(7))"),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":1}"#,
                "invalid Some(Unsigned(7))",
            ),
            (
                r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#,
                "invalid Some(Unsigned(7))",
            ),
            (r#"{"id":7,"method":"m"}"#, "invalid Some(Unsigned(7))"),
            (
                r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"m"}"#,
                "invalid Some(Unsigned(7))",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m","method":"m"}"#,
                "invalid Some(Unsigned(7))",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m","id":7}"#,
                "invalid None",
            ),
            (r#"{"id":1,"id":2,"params":{},"params":{}}"#, "invalid None"),
            (r#"{"id":7,"result":{}}"#, "invalid None"),
            ("[]", "invalid None"),
            ("null", "invalid None"),
            ("{}", "invalid None"),
        ];
        for (text, wanted) in table {
            assert_eq!(kind(text), wanted, "{text}");
        }
    }
}
