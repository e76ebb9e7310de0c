//! What a tool is: how it describes itself, what a call gives it, and how it answers.

use std::borrow::Cow;
use std::fmt;

use bumpalo::Bump;

use super::prepared::Prepared;
use super::revision::Revision;
use crate::wire::json::Object;
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink, quote_between};

/// Text that is fixed or made at start.
pub type CowText = Cow<'static, str>;

/// A tool of a server.
pub trait Tool {
    /// How the tool describes itself. Asked once, when the server is built.
    fn spec(&self) -> ToolSpec;

    /// Answers one call. [`Answered`] is made by the methods of [`Reply`] alone, so a tool cannot
    /// forget to answer and cannot answer twice.
    fn call(&mut self, call: Call<'_>, reply: Reply<'_>) -> Answered;
}

/// What `tools/list` says of a tool.
#[derive(Debug, Clone)]
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
    /// what to mend.
    pub fn new(
        name: impl Into<CowText>,
        description: impl Into<CowText>,
        input_schema: impl Into<CowText>,
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

    /// A name for people, shown where the revision has a place for it.
    pub fn title(mut self, title: impl Into<CowText>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// A JSON Schema of `structuredContent`, an object with `"type": "object"`. A tool that has
    /// one answers with [`Reply::structured`] or [`Reply::error`], whose members it must cover.
    pub fn output_schema(mut self, schema: impl Into<CowText>) -> Self {
        self.output_schema = Some(schema.into());
        self
    }

    /// Hints on what the tool does to the world.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// An icon, shown where the revision has a place for it.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// A capability of the client that the tool cannot do without, or an extension such as
    /// `com.example/panels`. A stateless request that does not declare it is refused with -32021.
    /// The handshake revisions have no such error, and their calls come through.
    pub fn needs_client_capability(mut self, name: &'static str) -> Self {
        self.needs = Some(name);
        self
    }
}

/// Hints of a tool (2025-03-26 and later, `ToolAnnotations`). The defaults are the protocol's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing further.
    pub idempotent: bool,
    /// It reaches beyond this machine or this program.
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        }
    }
}

/// An icon (2025-11-25 and later, `Icon`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// Where it is: an `https:` or `data:` address.
    pub src: CowText,
    /// Its media type, such as `image/png`.
    pub mime_type: Option<CowText>,
}

/// What a call gives a tool. All of it is borrowed from the frame and ends with the reply.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The arguments; empty if none were sent.
    pub arguments: Object<'a>,
    /// Scratch memory of this frame, at most
    /// [`ARENA_BYTES_MAX`](crate::limits::ARENA_BYTES_MAX). It refuses to grow beyond: use its
    /// `try_` methods.
    pub arena: &'a Bump,
}

/// A failure that the model should see and can act on.
#[derive(Debug, Clone, Copy)]
pub struct ToolError<'a> {
    /// A short name in lower case, such as `not_found`.
    pub code: &'static str,
    /// What happened, without a full stop.
    pub what: fmt::Arguments<'a>,
    /// What to do now, a sentence without a full stop.
    pub advice: &'a str,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// The proof that a call was answered.
#[derive(Debug)]
pub struct Answered(());

/// The answer to a call, written straight into the outbox.
#[derive(Debug)]
pub struct Reply<'r> {
    outbox: &'r mut Outbox,
    revision: &'static Revision,
}

impl<'r> Reply<'r> {
    pub(super) fn new(
        outbox: &'r mut Outbox,
        revision: &'static Revision,
        preamble: &'r str,
    ) -> Self {
        outbox.put(b"{");
        outbox.put(preamble.as_bytes());
        Self { outbox, revision }
    }

    /// A result of one text. Not for a tool with an output schema.
    pub fn text(self, text: &str) -> Answered {
        let mut sink = Sink::plain(self.outbox);
        sink.raw("\"content\":[{\"type\":\"text\",\"text\":");
        sink.string(text);
        sink.raw("}]}");
        Answered(())
    }

    /// The answer that was prepared.
    pub fn prepared(self, answer: &Prepared) -> Answered {
        self.outbox.put(answer.bytes_for(self.revision));
        Answered(())
    }

    /// A result as `structuredContent`, with the same JSON as text for clients that know only
    /// that.
    pub fn structured(self, fill: impl FnOnce(&mut ObjectWriter<'_>)) -> Answered {
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
        Answered(())
    }

    /// A failure: `isError`, the text `<code>: <what happened>. <what to do>.`, and the same as
    /// `structuredContent.error` where the revision has a place for it.
    pub fn error(self, error: ToolError<'_>) -> Answered {
        self.error_with(error, |_| {})
    }

    /// A failure with `details`.
    pub fn error_with(
        self,
        error: ToolError<'_>,
        details: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Answered {
        self.error_retry(error, None, details)
    }

    /// A failure with `details`, and with the time after which the same call may succeed.
    pub fn error_retry(
        self,
        error: ToolError<'_>,
        retry_after_ms: Option<u64>,
        details: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Answered {
        let mut sink = Sink::plain(self.outbox);
        sink.raw("\"content\":[{\"type\":\"text\",\"text\":\"");
        sink.string_part(error.code);
        sink.raw(": ");
        let message = sink.part(|sink| {
            sink.formatted(error.what);
            sink.raw(". ");
            sink.string_part(error.advice);
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
                    if let Some(time) = retry_after_ms {
                        object.unsigned("retry_after_ms", time);
                    }
                    object.object("details", details);
                });
            });
            sink.raw(",");
        }
        sink.raw("\"isError\":true}");
        Answered(())
    }

    /// A failure that a result describes: `isError`, a text of a sentence and the result, and the
    /// result as `structuredContent` where the revision has a place for it. Clients show a model
    /// only the text of a failure.
    pub fn failure(
        self,
        sentence: fmt::Arguments<'_>,
        fill: impl Fn(&mut ObjectWriter<'_>),
    ) -> Answered {
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
        Answered(())
    }
}
