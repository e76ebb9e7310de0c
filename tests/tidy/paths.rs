//! Every path that a Rust file names, resolved to where it leads.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, UseTree};

/// A path as it is resolved: `crate`, or the name of another crate, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
}

/// The paths of a file, whose module has this path from the crate on. Tests are passed over: they
/// may know every layer.
pub(crate) fn paths_of(module: &[String], file: &File) -> Vec<Named> {
    let mut finder = Finder {
        module: module.to_vec(),
        found: Vec::new(),
    };
    finder.visit_file(file);
    finder.found
}

struct Finder {
    module: Vec<String>,
    found: Vec<Named>,
}

impl Finder {
    fn name(&mut self, segments: &[String], line: usize) {
        if let Some(segments) = resolved(&self.module, segments) {
            self.found.push(Named { segments, line });
        }
    }

    fn name_use(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| {
            let mut path = prefix.to_vec();
            path.push(name.to_string());
            path
        };
        match tree {
            UseTree::Path(path) => self.name_use(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.name(&with(&name.ident), name.ident.span().start().line),
            UseTree::Rename(name) => self.name(&with(&name.ident), name.ident.span().start().line),
            UseTree::Glob(glob) => self.name(prefix, glob.star_token.spans[0].start().line),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.name_use(prefix, tree);
                }
            }
        }
    }

    /// The paths in the arguments of a macro, which is not parsed: every run of names and `::`.
    fn name_tokens(&mut self, tokens: TokenStream) {
        let mut run: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.name(&std::mem::take(&mut run), line);
                        line = name.span().start().line;
                    }
                    run.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !run.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.name_tokens(group.stream()),
                _ => {}
            }
            self.name(&std::mem::take(&mut run), line);
            colons = 0;
        }
        self.name(&run, line);
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.name_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.name(&names, path.segments[0].ident.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.name_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Ident>()
            .is_ok_and(|word| word == "test")
}

/// Where a path leads, from the crate or another crate on. A single name leads nowhere that `use`
/// has not said already.
fn resolved(module: &[String], segments: &[String]) -> Option<Vec<String>> {
    let first = segments.first()?;
    let up = segments.iter().take_while(|name| *name == "super").count();
    let of_crate = |path: &[String]| {
        let mut whole = vec!["crate".to_owned()];
        whole.extend_from_slice(path);
        whole
    };
    match first.as_str() {
        "crate" => Some(of_crate(&segments[1..])),
        "super" => {
            let parent = &module[..module.len().checked_sub(up)?];
            Some(of_crate(&[parent, &segments[up..]].concat()))
        }
        "self" => Some(of_crate(&[module, &segments[1..]].concat())),
        _ if segments.len() > 1 => Some(segments.to_vec()),
        _ => None,
    }
}

#[test]
fn no_way_of_naming_a_layer_is_missed() {
    for text in [
        "use crate::cli;",
        "use crate::{wire::json, cli};",
        "use crate::{cli as other};",
        "use crate::cli::*;",
        "use super::super::cli::main;",
        "fn f() { crate::cli::main(); }",
        "fn f() -> super::super::cli::Command { todo() }",
        "fn f() { format!(\"{}\", crate::cli::main()); }",
        "fn f() { vec![(1, super::super::cli::main())]; }",
        "mod inner { use super::super::super::cli; }",
        "impl crate::cli::Show for u8 {}",
    ] {
        let module = ["wire".to_owned(), "json".to_owned()];
        let found = paths_of(&module, &syn::parse_file(text).unwrap());
        let named = found.iter().any(|named| named.segments.starts_with(&cli()));
        assert!(named, "{text}: {found:?}");
    }
    let tests = syn::parse_file("#[cfg(test)] mod tests { use crate::cli; }").unwrap();
    assert_eq!(paths_of(&[], &tests), []);
}

fn cli() -> [String; 2] {
    ["crate".to_owned(), "cli".to_owned()]
}
