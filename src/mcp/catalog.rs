//! What never changes while a server runs, built once for each revision: the result of
//! `initialize` or `server/discover`, and the pages of `tools/list`.

use std::borrow::Cow;

use super::revision::{Revision, RevisionId, stateless_versions};
use super::tool::{CowText, Icon, ToolSpec};
use crate::limits::{CACHE_TTL_MS, FRAME_PADDING_BYTES, TOOL_NAME_BYTES_MAX, TOOLS_MAX};
use crate::wire::json::{Parser, minified};
use crate::wire::outbox::Outbox;
use crate::wire::writer::{ObjectWriter, Sink};

/// What a server says of itself (`Implementation`, and the `instructions` of a server). Texts are
/// passed on as they are.
///
/// ```
/// let info = rocco::Info::new("words", "1.0.0")
///     .title("Words")
///     .website_url("https://example.com/words")
///     .icon(rocco::Icon::new("https://example.com/words.png").mime_type("image/png"))
///     .instructions("Ask word_count how long a text is.");
/// # let _ = info;
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until a Server has it"]
pub struct Info {
    pub(super) name: CowText,
    pub(super) version: CowText,
    pub(super) title: Option<CowText>,
    pub(super) description: Option<CowText>,
    pub(super) website_url: Option<CowText>,
    pub(super) icons: Vec<Icon>,
    pub(super) instructions: Option<CowText>,
}

impl Info {
    /// A server's name and version.
    pub fn new(name: impl Into<Cow<'static, str>>, version: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
            instructions: None,
        }
    }

    /// A name for people (2025-06-18 and later).
    pub fn title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What the server does, for people (2025-11-25 and later).
    pub fn description(mut self, description: impl Into<Cow<'static, str>>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Where to read more: an address (2025-11-25 and later).
    pub fn website_url(mut self, url: impl Into<Cow<'static, str>>) -> Self {
        self.website_url = Some(url.into());
        self
    }

    /// A further icon (2025-11-25 and later).
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// How to use the server, for a model. Every revision has it.
    pub fn instructions(mut self, instructions: impl Into<Cow<'static, str>>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }
}

/// The prebuilt results.
#[derive(Debug)]
pub struct Catalog {
    /// One for each revision, in their order.
    chapters: Vec<Chapter>,
    cursors: Vec<Box<str>>,
}

/// The prebuilt results of one revision.
#[derive(Debug)]
struct Chapter {
    opening: Box<str>,
    pages: Vec<Box<str>>,
    identity: Box<str>,
    preamble: Box<str>,
}

impl Catalog {
    /// Builds all results. `page_tools` is how many tools a page of `tools/list` holds,
    /// `extensions` are those of the stateless revisions that the server has.
    ///
    /// # Panics
    ///
    /// If two tools share a name, or a name or a schema is not what [`ToolSpec::new`] asks for:
    /// a mistake in the program, which every start would show.
    pub fn new(
        info: &Info,
        tools: &[ToolSpec],
        page_tools: usize,
        extensions: &[&'static str],
        scratch: &mut Outbox,
    ) -> Self {
        assert!(page_tools > 0, "a page holds at least one tool");
        assert!(tools.len() <= TOOLS_MAX, "more than {TOOLS_MAX} tools");
        let tools: Vec<ToolSpec> = tools.iter().map(checked).collect();
        for (index, tool) in tools.iter().enumerate() {
            let twin = tools[..index].iter().find(|twin| twin.name == tool.name);
            assert!(twin.is_none(), "two tools are named {}", tool.name);
        }
        let mut pages: Vec<&[ToolSpec]> = tools.chunks(page_tools).collect();
        if pages.is_empty() {
            pages.push(&[]);
        }
        let cursors: Vec<Box<str>> = (1..pages.len())
            .map(|page| format!("page-{page}").into_boxed_str())
            .collect();
        let chapters = RevisionId::all()
            .map(|revision_id| {
                let revision = revision_id.revision();
                Chapter::new(scratch, info, &pages, &cursors, extensions, revision)
            })
            .collect();
        Self { chapters, cursors }
    }

    /// The result that opens a revision: of `initialize`, or of `server/discover`.
    pub fn opening(&self, revision_id: RevisionId) -> &str {
        &self.chapters[revision_id.index()].opening
    }

    /// The result of `tools/list` at a cursor; none if it is not one of ours.
    pub fn page(&self, revision_id: RevisionId, cursor: Option<&str>) -> Option<&str> {
        let page = match cursor {
            None => 0,
            Some(cursor) => {
                1 + self
                    .cursors
                    .iter()
                    .position(|revision_id| **revision_id == *cursor)?
            }
        };
        Some(&self.chapters[revision_id.index()].pages[page])
    }

    /// Who the server is, as a member of a result's `_meta`. Empty where a result has none.
    pub fn identity(&self, revision_id: RevisionId) -> &str {
        &self.chapters[revision_id.index()].identity
    }

    /// The members that every other result of a revision starts with, each with its comma.
    pub fn preamble(&self, revision_id: RevisionId) -> &str {
        &self.chapters[revision_id.index()].preamble
    }
}

impl Chapter {
    fn new(
        outbox: &mut Outbox,
        info: &Info,
        pages: &[&[ToolSpec]],
        cursors: &[Box<str>],
        extensions: &[&'static str],
        revision: &Revision,
    ) -> Self {
        let opening = rendered(outbox, |object| {
            if revision.stateless {
                discover_result(object, info, extensions, revision);
            } else {
                initialize_result(object, info, revision);
            }
        });
        let next_cursors = cursors.iter().map(|cursor| Some(&**cursor)).chain([None]);
        let pages = pages.iter().zip(next_cursors).map(|(tools, next_cursor)| {
            rendered(outbox, |object| {
                list_result(object, info, tools, next_cursor, revision)
            })
        });
        let pages = pages.collect();
        let (identity, preamble) = if revision.stateless {
            (
                members(outbox, |meta| identity(meta, info, revision)),
                members(outbox, |object| stateless_members(object, info, revision)) + ",",
            )
        } else {
            (String::new(), String::new())
        };
        Self {
            opening,
            pages,
            identity: identity.into(),
            preamble: preamble.into(),
        }
    }
}

fn rendered(outbox: &mut Outbox, write: impl FnOnce(&mut ObjectWriter<'_>)) -> Box<str> {
    let start = outbox.mark();
    outbox.begin_result();
    Sink::plain(outbox).object(write);
    assert!(outbox.end_result(), "the descriptions are too long");
    let text = std::str::from_utf8(outbox.pending()).expect("JSON is UTF-8");
    let text = text.to_owned().into_boxed_str();
    outbox.rewind(start);
    text
}

/// A spec whose schemas stand on one line.
fn checked(spec: &ToolSpec) -> ToolSpec {
    let name = spec.name.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    assert!(
        (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(plain),
        "the tool name {:?} is not 1 to {TOOL_NAME_BYTES_MAX} of letters, digits, _ - .",
        spec.name
    );
    let schema = |text: &CowText| -> CowText {
        match minified_object(text) {
            Some(schema) => schema.into(),
            None => panic!(
                "a schema of {} is not a JSON object with \"type\": \"object\"",
                spec.name
            ),
        }
    };
    let mut spec = spec.clone();
    spec.input_schema = schema(&spec.input_schema);
    spec.output_schema = spec.output_schema.as_ref().map(schema);
    spec
}

/// The members of an object, without its braces.
fn members(outbox: &mut Outbox, write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let object = rendered(outbox, write);
    object[1..object.len() - 1].to_owned()
}

fn identity(meta: &mut ObjectWriter<'_>, info: &Info, revision: &Revision) {
    meta.object("io.modelcontextprotocol/serverInfo", |server| {
        implementation(server, info, revision);
    });
}

/// What every result of a stateless revision has (2026-07-28, Base Protocol, Results).
fn stateless_members(object: &mut ObjectWriter<'_>, info: &Info, revision: &Revision) {
    object.string("resultType", "complete");
    object.object("_meta", |meta| identity(meta, info, revision));
}

/// How long what was said holds, and for whom (2026-07-28, Utilities, Caching).
fn cache_members(object: &mut ObjectWriter<'_>) {
    object.unsigned("ttlMs", CACHE_TTL_MS);
    object.string("cacheScope", "public");
}

fn discover_result(
    object: &mut ObjectWriter<'_>,
    info: &Info,
    extensions: &[&'static str],
    revision: &Revision,
) {
    stateless_members(object, info, revision);
    object.array("supportedVersions", |list| {
        for version in stateless_versions() {
            list.string(version);
        }
    });
    capabilities(object, extensions);
    optional(object, "instructions", &info.instructions);
    cache_members(object);
}

/// What the server offers: tools, whose list never changes while it runs, and extensions.
fn capabilities(object: &mut ObjectWriter<'_>, extensions: &[&'static str]) {
    object.object("capabilities", |capabilities| {
        capabilities.object("tools", |_| {});
        if !extensions.is_empty() {
            capabilities.object("extensions", |object| {
                for name in extensions {
                    object.object(name, |_| {});
                }
            });
        }
    });
}

/// A JSON Schema of an object, on one line.
fn minified_object(text: &str) -> Option<String> {
    let schema = minified(text).ok()?;
    let mut frame = schema.as_bytes().to_vec();
    frame.resize(schema.len() + FRAME_PADDING_BYTES, b' ');
    let document = Parser::new().parse(&mut frame, schema.len()).ok()?;
    let kind = document.root().as_object()?.get("type")?.as_str()?;
    (kind == "object").then_some(schema)
}

fn initialize_result(object: &mut ObjectWriter<'_>, info: &Info, revision: &Revision) {
    object.string("protocolVersion", revision.version);
    capabilities(object, &[]);
    object.object("serverInfo", |server| {
        implementation(server, info, revision)
    });
    optional(object, "instructions", &info.instructions);
}

fn implementation(object: &mut ObjectWriter<'_>, info: &Info, revision: &Revision) {
    object.string("name", &info.name);
    object.string("version", &info.version);
    if revision.titles {
        optional(object, "title", &info.title);
    }
    if revision.icons {
        optional(object, "description", &info.description);
        optional(object, "websiteUrl", &info.website_url);
        icons(object, &info.icons);
    }
}

fn list_result(
    object: &mut ObjectWriter<'_>,
    info: &Info,
    tools: &[ToolSpec],
    next_cursor: Option<&str>,
    revision: &Revision,
) {
    if revision.stateless {
        stateless_members(object, info, revision);
    }
    object.array("tools", |list| {
        for spec in tools {
            list.object(|object| tool(object, spec, revision));
        }
    });
    if let Some(cursor) = next_cursor {
        object.string("nextCursor", cursor);
    }
    if revision.stateless {
        cache_members(object);
    }
}

fn tool(object: &mut ObjectWriter<'_>, spec: &ToolSpec, revision: &Revision) {
    object.string("name", &spec.name);
    if revision.titles {
        optional(object, "title", &spec.title);
    }
    object.string("description", &spec.description);
    object.raw("inputSchema", &spec.input_schema);
    if revision.structured_results
        && let Some(schema) = &spec.output_schema
    {
        object.raw("outputSchema", schema);
    }
    if revision.tool_annotations
        && let Some(hints) = spec.annotations
    {
        object.object("annotations", |object| {
            optional(object, "title", &spec.title);
            object.boolean("readOnlyHint", hints.read_only);
            object.boolean("destructiveHint", hints.destructive);
            object.boolean("idempotentHint", hints.idempotent);
            object.boolean("openWorldHint", hints.open_world);
        });
    }
    if revision.icons {
        icons(object, &spec.icons);
    }
    if revision.tool_execution {
        object.object("execution", |object| {
            object.string("taskSupport", "forbidden");
        });
    }
}

fn icons(object: &mut ObjectWriter<'_>, icons: &[Icon]) {
    if icons.is_empty() {
        return;
    }
    object.array("icons", |list| {
        for icon in icons {
            list.object(|object| {
                object.string("src", &icon.src);
                optional(object, "mimeType", &icon.mime_type);
            });
        }
    });
}

fn optional(object: &mut ObjectWriter<'_>, name: &str, text: &Option<CowText>) {
    if let Some(text) = text {
        object.string(name, text);
    }
}
