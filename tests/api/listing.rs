//! The public API as lines of text, read from the source.
//!
//! What `lib.rs` re-exports is followed to its definition and to every `impl` for it. An item is a
//! line, and what belongs to it stands indented below: attributes that callers feel, fields,
//! variants, functions, and traits. Lines of one item are sorted where their order means nothing.

use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::{Attribute, Fields, File, ImplItem, Item, ItemImpl, UseTree, Visibility};

/// Each module by its path, `crate::mcp::tool`.
pub(crate) type Modules = BTreeMap<String, Module>;

/// Each item by its line, with the lines below it.
pub(crate) type Listing = BTreeMap<String, Vec<String>>;

/// A module with its text, which spans point into.
pub(crate) struct Module {
    pub(crate) text: String,
    file: File,
}

pub(crate) fn listing(modules: &Modules) -> Listing {
    let mut listing = Listing::new();
    let root = &modules["crate"];
    let mut names = Vec::new();
    for item in &root.file.items {
        match item {
            Item::Use(item) if is_public(&item.vis) => flatten("crate", &item.tree, &mut names),
            Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                listing.insert(format!("mod {}", item.ident), vec![]);
            }
            Item::Macro(item) if item.ident.is_some() => panic!("a macro is not listed yet"),
            Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Fn(_) | Item::Const(_) => {
                panic!("lib.rs defines nothing itself")
            }
            _ => {}
        }
    }
    for (path, name) in &names {
        let module = modules.get(path);
        let module = module.unwrap_or_else(|| panic!("{path}::{name} is not of this crate"));
        let (head, mut lines) = module.definition(name);
        let of_type = modules.values().flat_map(|module| module.impls_of(name));
        let mut of_type: Vec<String> = of_type.collect();
        of_type.sort();
        lines.extend(of_type);
        assert!(listing.insert(head, lines).is_none(), "{name} stands twice");
    }
    listing
}

/// The module and the name of everything that a `use` shows.
fn flatten(prefix: &str, tree: &UseTree, names: &mut Vec<(String, String)>) {
    match tree {
        UseTree::Path(path) => flatten(&format!("{prefix}::{}", path.ident), &path.tree, names),
        UseTree::Name(name) => names.push((prefix.to_owned(), name.ident.to_string())),
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(prefix, tree, names);
            }
        }
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("each name is re-exported as it is"),
    }
}

impl Module {
    pub(crate) fn parse(text: String) -> Self {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        Self { text, file }
    }

    /// The source of a node, on one line.
    fn source(&self, node: &impl Spanned) -> String {
        let text = &self.text[node.span().byte_range()];
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (from, to) in [
            ("( ", "("),
            (", )", ")"),
            (" )", ")"),
            ("< ", "<"),
            (", >", ">"),
            ("(mut self", "(self"),
        ] {
            line = line.replace(from, to);
        }
        line
    }

    /// The line of an item, and those of what it is made of.
    fn definition(&self, name: &str) -> (String, Vec<String>) {
        for item in &self.file.items {
            match item {
                Item::Struct(item) if item.ident == name => {
                    let head = format!("struct {name}{}", self.source(&item.generics));
                    let mut lines = attributes(&item.attrs);
                    lines.extend(self.fields(&item.fields));
                    return (head, lines);
                }
                Item::Enum(item) if item.ident == name => {
                    let head = format!("enum {name}{}", self.source(&item.generics));
                    let mut lines = attributes(&item.attrs);
                    lines.extend(item.variants.iter().map(|variant| self.variant(variant)));
                    return (head, lines);
                }
                Item::Trait(item) if item.ident == name => {
                    let head = format!(
                        "trait {name}{}: {}",
                        self.source(&item.generics),
                        self.source(&item.supertraits)
                    );
                    let mut lines = attributes(&item.attrs);
                    lines.extend(item.items.iter().map(|item| self.of_trait(item)));
                    return (head, lines);
                }
                Item::Type(item) if item.ident == name => return (self.source(item), vec![]),
                Item::Fn(item) if item.sig.ident == name => {
                    return (self.source(&item.sig), attributes(&item.attrs));
                }
                Item::Const(item) if item.ident == name => {
                    return (format!("const {name}: {}", self.source(&item.ty)), vec![]);
                }
                _ => {}
            }
        }
        panic!("{name} is not defined where lib.rs takes it from");
    }

    /// What a trait asks for, and whether it has it itself.
    fn of_trait(&self, item: &syn::TraitItem) -> String {
        match item {
            syn::TraitItem::Fn(item) => {
                let given = if item.default.is_some() {
                    " { .. }"
                } else {
                    ""
                };
                format!("{}{given}", self.source(&item.sig))
            }
            other => self.source(other),
        }
    }

    /// The fields that are seen, and whether there are others.
    fn fields(&self, fields: &Fields) -> Vec<String> {
        let (seen, unseen): (Vec<_>, Vec<_>) =
            fields.iter().partition(|field| is_public(&field.vis));
        let mut lines: Vec<String> = seen
            .iter()
            .map(|field| match &field.ident {
                Some(name) => format!("pub {name}: {}", self.source(&field.ty)),
                None => format!("pub {}", self.source(&field.ty)),
            })
            .collect();
        if !unseen.is_empty() {
            lines.push("private fields".to_owned());
        }
        lines
    }

    fn variant(&self, variant: &syn::Variant) -> String {
        let types = |field: &syn::Field| match &field.ident {
            Some(name) => format!("{name}: {}", self.source(&field.ty)),
            None => self.source(&field.ty),
        };
        let fields = variant
            .fields
            .iter()
            .map(types)
            .collect::<Vec<_>>()
            .join(", ");
        let attributes = attributes(&variant.attrs).concat();
        match variant.fields {
            Fields::Unit => format!("{attributes}{}", variant.ident),
            Fields::Named(_) => format!("{attributes}{} {{ {fields} }}", variant.ident),
            Fields::Unnamed(_) => format!("{attributes}{}({fields})", variant.ident),
        }
    }

    /// The public functions of a type and the traits that it has, as far as this module says them.
    fn impls_of(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for item in impls(&self.file.items) {
            if !is_for(item, name) {
                continue;
            }
            let header = match item.generics.params.is_empty() {
                true => String::new(),
                false => format!("{} ", self.source(&item.generics)),
            };
            match &item.trait_ {
                Some((_, path, _)) => {
                    let (path, of) = (self.source(path), self.source(&*item.self_ty));
                    lines.push(format!("impl{header} {path} for {of}"));
                }
                None => lines.extend(item.items.iter().filter_map(|item| self.of_type(item))),
            }
        }
        lines
    }

    fn of_type(&self, item: &ImplItem) -> Option<String> {
        let (visibility, attrs, text) = match item {
            ImplItem::Fn(item) => (&item.vis, &item.attrs, self.source(&item.sig)),
            ImplItem::Const(item) => {
                let text = format!("const {}: {}", item.ident, self.source(&item.ty));
                (&item.vis, &item.attrs, text)
            }
            _ => return None,
        };
        let hidden = if is_hidden(attrs) {
            "#[doc(hidden)] "
        } else {
            ""
        };
        let felt = attributes(attrs).concat();
        is_public(visibility).then(|| format!("{hidden}{felt}{text}"))
    }
}

/// Every `impl` among items, and in modules that stand among them.
fn impls(items: &[Item]) -> Vec<&ItemImpl> {
    let found = items.iter().map(|item| match item {
        Item::Impl(item) => vec![item],
        Item::Mod(item) => item
            .content
            .as_ref()
            .map_or(vec![], |(_, items)| impls(items)),
        _ => vec![],
    });
    found.flatten().collect()
}

/// The attributes that a caller's code feels.
fn attributes(attrs: &[Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attrs {
        let path = attribute.path();
        if path.is_ident("derive") {
            let mut traits = Vec::new();
            let parsed = attribute.parse_nested_meta(|meta| {
                let name = meta.path.segments.last().map(|name| name.ident.to_string());
                traits.extend(name);
                Ok(())
            });
            parsed.expect("a derive names traits");
            traits.sort();
            lines.extend(traits.iter().map(|name| format!("#[derive({name})]")));
        }
        for felt in ["non_exhaustive", "must_use", "deprecated", "cfg"] {
            if path.is_ident(felt) {
                lines.push(format!("#[{felt}]"));
            }
        }
    }
    lines
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "hidden")
    })
}

/// Whether an `impl` is for the type of a name. No name stands for two types of the crate.
fn is_for(item: &ItemImpl, name: &str) -> bool {
    match &*item.self_ty {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == name),
        _ => false,
    }
}
