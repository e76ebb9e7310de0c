//! What a tool is: how it describes itself, what a call gives it, and how it answers.

use core::time::Duration;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use bumpalo::Bump;

use super::prepared::Prepared;
use super::revision::Revision;
use crate::wire::json::Object;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink, quote_between};

/// Text that is fixed or made at start.
pub type CowText = Cow<'static, str>;

/// A tool of a server.
///
/// A server serves one call after the other on one thread, so that a tool may keep state without a
/// lock, and a tool that takes long has every other request wait. It is [`Send`], so that a server
/// can be built in one thread and serve in another. See [`Server`](crate::Server) for a whole one.
pub trait Tool: Send {
    /// How the tool describes itself. Asked once, when the server is built.
    fn spec(&self) -> ToolSpec;

    /// Answers one call. An [`Answered`] comes from the methods of this [`Reply`] alone, so a tool
    /// cannot forget to answer, cannot answer twice, and cannot pass off another answer as this.
    ///
    /// A panic is not caught: it ends the server, and nothing of the answer is sent.
    fn call<'r>(&mut self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r>;
}

/// What `tools/list` says of a tool.
#[derive(Debug, Clone)]
#[must_use = "a description does nothing until a tool gives it"]
pub struct ToolSpec {
    pub(crate) name: CowText,
    pub(super) title: Option<CowText>,
    pub(super) description: CowText,
    pub(super) input_schema: CowText,
    pub(super) output_schema: Option<CowText>,
    pub(super) annotations: Option<Annotations>,
    pub(super) icons: Vec<Icon>,
    pub(super) needs: Option<&'static str>,
}

impl ToolSpec {
    /// A tool with a name of 1 to 64 letters, digits, `_`, `-` or `.`, a description that a model
    /// can act on, and a JSON Schema of its arguments, an object with `"type": "object"`.
    ///
    /// The schema is published, not enforced: a tool checks its arguments, since it alone can say
    /// what to mend. What is not as said here is a panic when the server is built.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        input_schema: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            needs: None,
        }
    }

    /// A name for people, shown where the revision has a place for it (2025-06-18 and later).
    pub fn title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// A JSON Schema of `structuredContent`, an object with `"type": "object"` (2025-06-18 and
    /// later, Tools, Output Schema). A tool that has one answers with [`Reply::structured`] or
    /// [`Reply::error`], whose members it must cover.
    pub fn output_schema(mut self, schema: impl Into<Cow<'static, str>>) -> Self {
        self.output_schema = Some(schema.into());
        self
    }

    /// Hints on what the tool does to the world.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// A further icon, shown where the revision has a place for it (2025-11-25 and later).
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// A capability of the client that the tool cannot do without, or an extension such as
    /// `com.example/panels`. A stateless request (2026-07-28) that does not declare it is refused
    /// with -32021. The handshake revisions have no such error, and their calls come through.
    pub fn needs_client_capability(mut self, name: &'static str) -> Self {
        self.needs = Some(name);
        self
    }
}

/// Hints of a tool (2025-03-26 and later, `ToolAnnotations`). They start as the protocol's
/// defaults: a tool that may change and destroy things beyond this machine.
///
/// ```
/// let looks_only = rocco::Annotations::new().read_only(true).open_world(false);
/// # let _ = looks_only;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "hints do nothing until a ToolSpec has them"]
pub struct Annotations {
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
    pub(super) open_world: bool,
}

impl Annotations {
    /// The protocol's defaults.
    pub const fn new() -> Self {
        Self {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        }
    }

    /// Whether the tool changes nothing; false unless it is said.
    pub const fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether the tool may destroy something; true unless it is said.
    pub const fn destructive(mut self, destructive: bool) -> Self {
        self.destructive = destructive;
        self
    }

    /// Whether another call with the same arguments changes nothing further; false unless it is
    /// said.
    pub const fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Whether the tool reaches beyond this machine or this program; true unless it is said.
    pub const fn open_world(mut self, open_world: bool) -> Self {
        self.open_world = open_world;
        self
    }
}

impl Default for Annotations {
    fn default() -> Self {
        Self::new()
    }
}

/// An icon (2025-11-25 and later, `Icon`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an icon is not shown until an Info or a ToolSpec has it"]
pub struct Icon {
    pub(super) src: CowText,
    pub(super) mime_type: Option<CowText>,
}

impl Icon {
    /// An icon at an `https:` or `data:` address, which is passed on as it is.
    pub fn new(src: impl Into<Cow<'static, str>>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
        }
    }

    /// Its media type, such as `image/png`.
    pub fn mime_type(mut self, mime_type: impl Into<Cow<'static, str>>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

/// What a call gives a tool. All of it is borrowed from the line that the client sent, and ends
/// with the call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The arguments; empty if none were sent.
    pub arguments: Object<'a>,
    pub(crate) arena: &'a Bump,
}

impl<'a> Call<'a> {
    pub(super) fn new(arguments: Object<'a>, arena: &'a Bump) -> Self {
        Self { arguments, arena }
    }

    /// Memory for `len` values of `fill` that lives as long as the arguments and claims no heap
    /// once the server is warm; none if it does not fit into what is left of the 1,048,576 bytes of
    /// a call, of which the memory needs a little for itself.
    ///
    /// ```
    /// use rocco::{Call, Value};
    ///
    /// /// The numbers of an array, sorted.
    /// fn sorted<'a>(call: &Call<'a>) -> Option<&'a [u64]> {
    ///     let numbers = call.arguments.get("numbers")?.as_array()?;
    ///     let sorted = call.scratch(numbers.len(), 0)?;
    ///     for (place, value) in sorted.iter_mut().zip(numbers.iter()) {
    ///         *place = value.as_u64()?;
    ///     }
    ///     sorted.sort_unstable();
    ///     Some(sorted)
    /// }
    /// # let _ = sorted;
    /// ```
    // The arena hands out each slice once.
    #[allow(clippy::mut_from_ref)]
    pub fn scratch<T: Copy>(&self, len: usize, fill: T) -> Option<&'a mut [T]> {
        self.arena.try_alloc_slice_fill_copy(len, fill).ok()
    }
}

/// A failure that the model should see and can act on. It is made on the stack of a call.
///
/// ```
/// use rocco::{Answered, Reply, ToolError};
///
/// fn missing<'r>(path: &str, reply: Reply<'r>) -> Answered<'r> {
///     reply.error(
///         ToolError::new("not_found", format_args!("there is no file {path:?}"))
///             .advice("List the folder and call again with a path that is there"),
///     )
/// }
/// # let _ = missing;
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "an error does nothing until a Reply writes it"]
pub struct ToolError<'a> {
    code: &'a str,
    what: fmt::Arguments<'a>,
    advice: &'a str,
    retryable: bool,
    retry_after_ms: Option<u64>,
}

impl<'a> ToolError<'a> {
    /// A failure that the same call will meet again. `code` is a short name in lower case, such as
    /// `not_found`, for programs; `what` says what happened, without a full stop.
    pub fn new(code: &'a str, what: fmt::Arguments<'a>) -> Self {
        Self {
            code,
            what,
            advice: "",
            retryable: false,
            retry_after_ms: None,
        }
    }

    /// What to do now, a sentence without a full stop.
    pub fn advice(mut self, advice: &'a str) -> Self {
        self.advice = advice;
        self
    }

    /// The same call may succeed later.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same call may succeed after so long, which is told in whole milliseconds.
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retryable = true;
        self.retry_after_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    pub(crate) fn of_row(
        (code, retryable, advice): (&'static str, bool, &'static str),
        what: fmt::Arguments<'a>,
        retry_after_ms: Option<u64>,
    ) -> Self {
        Self {
            code,
            what,
            advice,
            retryable,
            retry_after_ms,
        }
    }
}

impl fmt::Display for ToolError<'_> {
    /// As the text of the result has it: `<code>: <what happened>. <what to do>.`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}.", self.code, self.what)?;
        match self.advice {
            "" => Ok(()),
            advice => write!(f, " {advice}."),
        }
    }
}

impl std::error::Error for ToolError<'_> {}

/// The proof that the call was answered whose [`Reply`] has this lifetime, and no other.
///
/// A tool returns what the methods of its reply give it:
///
/// ```
/// use rocco::{Answered, Prepared, Reply};
///
/// fn prepared(reply: Reply<'_>) -> Answered<'_> {
///     let hello = Prepared::new(|inner| inner.text("hello"));
///     reply.prepared(&hello)
/// }
/// # let _ = prepared;
/// ```
///
/// Nothing else has the type. The answer to the reply of a [`Prepared`] is not this one:
///
/// ```compile_fail,E0521
/// use rocco::{Answered, Prepared, Reply};
///
/// fn prepared(reply: Reply<'_>) -> Answered<'_> {
///     let taken = std::cell::RefCell::new(None);
///     let hello = Prepared::new(|inner| {
///         taken.replace(Some(inner.text("hello")));
///         unreachable!()
///     });
///     taken.take().unwrap()
/// }
/// ```
///
/// Nor is that to another reply:
///
/// ```compile_fail,E0621
/// use rocco::{Answered, Reply};
///
/// fn other<'r>(reply: Reply<'r>, other: Reply<'_>) -> Answered<'r> {
///     other.text("hello")
/// }
/// ```
///
/// Nor one of an earlier call, which cannot be kept:
///
/// ```compile_fail
/// use rocco::{Answered, Call, Reply, Tool, ToolSpec};
///
/// struct Keeps<'r>(Option<Answered<'r>>);
///
/// impl<'k> Tool for Keeps<'k> {
///     fn spec(&self) -> ToolSpec {
///         ToolSpec::new("keeps", "Keeps.", "{}")
///     }
///     fn call<'r>(&mut self, call: Call<'_>, reply: Reply<'r>) -> Answered<'r> {
///         self.0.replace(reply.text("kept")).unwrap()
///     }
/// }
/// ```
#[derive(Debug)]
#[must_use = "a tool returns it"]
pub struct Answered<'r>(Brand<'r>);

/// A lifetime that fits itself alone: neither a longer nor a shorter one stands in for it.
type Brand<'r> = PhantomData<fn(&'r ()) -> &'r ()>;

/// The answer to a call, written straight to the client's output. Each method that ends it gives
/// the [`Answered`] that the tool returns.
///
/// Results of one line of a client take at most 3,145,728 bytes in all, escapes included. A result
/// that does not fit is not sent, and its request gets an internal error (-32603).
#[derive(Debug)]
#[must_use = "a call is answered by one of its methods"]
pub struct Reply<'r> {
    outbox: &'r mut Outbox,
    revision: &'static Revision,
    brand: Brand<'r>,
}

impl<'r> Reply<'r> {
    pub(super) fn new(
        outbox: &'r mut Outbox,
        revision: &'static Revision,
        preamble: &'r str,
    ) -> Self {
        outbox.put(b"{");
        outbox.put(preamble.as_bytes());
        Self {
            outbox,
            revision,
            brand: PhantomData,
        }
    }

    /// A result of one text. Not for a tool with an output schema.
    pub fn text(self, text: &str) -> Answered<'r> {
        let mut sink = Sink::plain(self.outbox);
        sink.raw("\"content\":[{\"type\":\"text\",\"text\":");
        sink.string(text);
        sink.raw("}]}");
        Answered(self.brand)
    }

    /// The answer that was prepared, copied.
    pub fn prepared(self, answer: &Prepared) -> Answered<'r> {
        self.outbox.put(answer.bytes_for(self.revision));
        Answered(self.brand)
    }

    /// A result as `structuredContent` where the revision has a place for it (2025-06-18 and later,
    /// Tools, Structured Content), with the same JSON as text for clients that know only that.
    pub fn structured(self, fill: impl FnOnce(&mut ObjectWriter<'_>)) -> Answered<'r> {
        if self.revision.structured_results {
            self.outbox.put(b"\"structuredContent\":");
            let mark = self.outbox.mark();
            Sink::plain(self.outbox).object(fill);
            let end = self.outbox.mark();
            self.outbox
                .put(b",\"content\":[{\"type\":\"text\",\"text\":\"");
            quote_between(self.outbox, mark, end);
        } else {
            self.outbox
                .put(b"\"content\":[{\"type\":\"text\",\"text\":\"");
            Sink::quoted(self.outbox).object(fill);
        }
        self.outbox.put(b"\"}]}");
        Answered(self.brand)
    }

    /// A failure: `isError`, the text `<code>: <what happened>. <what to do>.`, and the same as
    /// `structuredContent.error` where the revision has a place for it: an object of `code`,
    /// `message`, `retryable`, `retry_after_ms` if it is known, and `details`.
    pub fn error(self, error: ToolError<'_>) -> Answered<'r> {
        self.error_with(error, |_| {})
    }

    /// A failure with `details`: see [`Reply::error`].
    pub fn error_with(
        self,
        error: ToolError<'_>,
        details: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Answered<'r> {
        let mut sink = Sink::plain(self.outbox);
        sink.raw("\"content\":[{\"type\":\"text\",\"text\":\"");
        sink.string_part(error.code);
        sink.raw(": ");
        let message = sink.part(|sink| {
            sink.formatted(error.what);
            if !error.advice.is_empty() {
                sink.raw(". ");
                sink.string_part(error.advice);
            }
            sink.raw(".");
        });
        sink.raw("\"}],");
        if self.revision.structured_results {
            sink.raw("\"structuredContent\":");
            sink.object(|content| {
                content.object("error", |object| {
                    object.string("code", error.code);
                    object.string_again("message", message);
                    object.boolean("retryable", error.retryable);
                    if let Some(time) = error.retry_after_ms {
                        object.unsigned("retry_after_ms", time);
                    }
                    object.object("details", details);
                });
            });
            sink.raw(",");
        }
        sink.raw("\"isError\":true}");
        Answered(self.brand)
    }

    /// A failure that a result describes: `isError`, a text of a sentence and the result, and the
    /// result as `structuredContent` where the revision has a place for it. Clients show a model
    /// only the text of a failure.
    pub(crate) fn failure(
        self,
        sentence: fmt::Arguments<'_>,
        fill: impl Fn(&mut ObjectWriter<'_>),
    ) -> Answered<'r> {
        let mut sink = Sink::plain(self.outbox);
        sink.raw("\"content\":[{\"type\":\"text\",\"text\":\"");
        sink.formatted(sentence);
        sink.string_part("\n");
        Sink::quoted(self.outbox).object(&fill);
        let mut sink = Sink::plain(self.outbox);
        sink.raw("\"}],");
        if self.revision.structured_results {
            sink.raw("\"structuredContent\":");
            sink.object(&fill);
            sink.raw(",");
        }
        sink.raw("\"isError\":true}");
        Answered(self.brand)
    }
}
