//! The public API is what `public.txt` says, so that a change of it is seen in a review.
//!
//! `ROCCO_API_BLESS=1 cargo test --test api` writes the file anew.

#[path = "../support/mod.rs"]
mod support;

mod listing;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use listing::{Listing, Module, Modules, listing};

const BLESS: &str = "ROCCO_API_BLESS";

/// More than these, and nobody reads them all.
const ITEMS_MAX: usize = 60;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of src/ by their modules.
fn modules() -> Modules {
    let src = root().join("src");
    let (mut modules, mut folders) = (Modules::new(), vec![src.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let inner = path.strip_prefix(&src).unwrap().with_extension("");
                let names = inner.iter().map(|name| name.to_str().unwrap());
                let names = names.filter(|name| *name != "mod" && *name != "lib");
                let module: Vec<&str> = ["crate"].into_iter().chain(names).collect();
                let text = fs::read_to_string(&path).unwrap();
                modules.insert(module.join("::"), Module::parse(text));
            }
        }
    }
    modules
}

fn text(listing: &Listing) -> String {
    let mut text = String::new();
    for (head, lines) in listing {
        text += &format!("{head}\n");
        for line in lines {
            text += &format!("    {line}\n");
        }
    }
    text
}

/// Each line with the item that it belongs to.
fn lines(text: &str) -> BTreeSet<(String, String)> {
    let mut head = "";
    let pairs = text.lines().map(|line| {
        if !line.starts_with(' ') {
            head = line;
        }
        (head.to_owned(), line.trim().to_owned())
    });
    pairs.collect()
}

/// What was taken away and what was added; nothing if the two are the same.
fn difference(before: &str, after: &str) -> String {
    let (before_lines, after_lines) = (lines(before), lines(after));
    let taken = before_lines
        .difference(&after_lines)
        .map(|line| ("-", line));
    let added = after_lines
        .difference(&before_lines)
        .map(|line| ("+", line));
    let mut changes: Vec<_> = taken.chain(added).collect();
    changes.sort_by_key(|(_, line)| *line);
    let shown = changes
        .iter()
        .map(|(sign, (head, line))| match head == line {
            true => format!("{sign} {line}\n"),
            false => format!("{sign} {head}: {line}\n"),
        });
    let shown: String = shown.collect();
    match shown.is_empty() && before != after {
        true => "the order of lines\n".to_owned(),
        false => shown,
    }
}

#[test]
fn the_public_api_is_what_the_file_says() {
    let path = root().join("tests/api/public.txt");
    let now = text(&listing(&modules()));
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, &now).unwrap();
    }
    let then = fs::read_to_string(&path).unwrap_or_default();
    let changes = difference(&then, &now);
    assert!(
        changes.is_empty(),
        "the public API has changed:\n\n{changes}\nIf that is wanted, say so in CHANGELOG.md, and \
         write the file anew: {BLESS}=1 cargo test --test api"
    );
}

#[test]
fn the_api_is_small() {
    let items = listing(&modules()).len();
    assert!((10..=ITEMS_MAX).contains(&items), "{items} items");
}

/// Whoever is given a type can name it, and none is of another crate.
#[test]
fn every_type_in_a_signature_is_public_or_of_std() {
    const OF_STD: &str = "Arguments Box Clone Copy Cow Debug Default Display Duration Eq Error \
                          ExitCode Fn FnMut FnOnce Into Iterator Option PartialEq Result Self \
                          Send Vec";
    const PLAIN: &str = "EMPTY Item N OsString PathBuf T";
    let listing = listing(&modules());
    let name = |head: &str| {
        let word = head.split(' ').nth(1).unwrap_or_default();
        let name = word.split(|c: char| !c.is_alphanumeric()).next();
        name.unwrap_or_default().to_owned()
    };
    let public: BTreeSet<String> = listing.keys().map(|head| name(head)).collect();
    for (head, lines) in &listing {
        let is_enum = head.starts_with("enum ");
        for line in lines.iter().filter(|line| !line.contains("#[doc(hidden)]")) {
            let variant = is_enum.then(|| line.split(['(', ' ']).next().unwrap_or_default());
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            for word in words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())) {
                let known = public.contains(word)
                    || OF_STD.split(' ').any(|known| known == word)
                    || PLAIN.split(' ').any(|known| known == word)
                    || variant == Some(word);
                assert!(known, "{head}: nobody can name {word}: {line}");
            }
        }
    }
}

/// A change of the source, and what the test says of it.
struct Mutant {
    module: &'static str,
    find: &'static str,
    replace: &'static str,
    said: &'static str,
}

const MUTANTS: [Mutant; 14] = [
    Mutant {
        module: "crate::engine",
        find: "    pub fn consume(",
        replace: "    pub fn surprise(&self) {}\n    pub fn consume(",
        said: "+ struct Engine: fn surprise(&self)",
    },
    Mutant {
        module: "crate::mcp::session",
        find: "impl<D: Delegate> Session<D> {",
        replace: "impl crate::engine::Engine { pub fn surprise(&self) {} }\n\
                  impl<D: Delegate> Session<D> {",
        said: "+ struct Engine: fn surprise(&self)",
    },
    Mutant {
        module: "crate::mcp::tool",
        find: "    pub(crate) fn failure(",
        replace: "    pub fn failure(",
        said: "+ struct Reply<'r>: fn failure(",
    },
    Mutant {
        module: "crate::mcp::tool",
        find: "pub fn text(self, text: &str)",
        replace: "pub fn text(self, text: String)",
        said: "+ struct Reply<'r>: fn text(self, text: String) -> Answered<'r>",
    },
    Mutant {
        module: "crate::mcp::tool",
        find: "pub trait Tool: Send {",
        replace: "pub trait Tool {",
        said: "- trait Tool: Send",
    },
    Mutant {
        module: "crate::mcp::tool",
        find: "    fn spec(&self) -> ToolSpec;",
        replace: "    fn spec(&self) -> ToolSpec;\n    fn surprise(&self);",
        said: "+ trait Tool: Send: fn surprise(&self)",
    },
    Mutant {
        module: "crate::mcp::tool",
        find: "    pub(crate) arena: &'a Bump,",
        replace: "    pub arena: &'a Bump,",
        said: "+ struct Call<'a>: pub arena: &'a Bump",
    },
    Mutant {
        module: "crate::mcp::tool",
        find: "#[must_use = \"a tool returns it\"]\n",
        replace: "",
        said: "- struct Answered<'r>: #[must_use]",
    },
    Mutant {
        module: "crate::event_loop",
        find: "    Reader,\n",
        replace: "    Reader,\n    Surprise,\n",
        said: "+ enum Ended: Surprise",
    },
    Mutant {
        module: "crate::event_loop",
        find: "    Wait(io::Error),",
        replace: "    Wait(io::Error, u32),",
        said: "+ enum Failure: Wait(io::Error, u32)",
    },
    Mutant {
        module: "crate::event_loop",
        find: "#[non_exhaustive]\npub enum Ended",
        replace: "pub enum Ended",
        said: "- enum Ended: #[non_exhaustive]",
    },
    Mutant {
        module: "crate",
        find: "pub use server::Server;",
        replace: "pub use mcp::revision::Revision;\npub use server::Server;",
        said: "+ struct Revision",
    },
    Mutant {
        module: "crate::wire::json",
        find: "impl std::error::Error for NotJson {}",
        replace: "",
        said: "- struct NotJson: impl std::error::Error for NotJson",
    },
    Mutant {
        module: "crate::wire::json",
        find: "#[derive(Debug, Clone, Copy)]\npub enum Value",
        replace: "#[derive(Debug, Clone)]\npub enum Value",
        said: "- enum Value<'a>: #[derive(Copy)]",
    },
];

#[test]
fn every_change_of_the_api_is_seen() {
    let mut modules = modules();
    let before = text(&listing(&modules));
    for mutant in &MUTANTS {
        let source = &modules[mutant.module].text;
        assert_eq!(source.matches(mutant.find).count(), 1, "{}", mutant.find);
        let mutated = Module::parse(source.replace(mutant.find, mutant.replace));
        let sound = modules.insert(mutant.module.to_owned(), mutated).unwrap();
        let said = difference(&before, &text(&listing(&modules)));
        modules.insert(mutant.module.to_owned(), sound);
        assert!(
            said.contains(mutant.said),
            "{} is told as: {said}",
            mutant.replace
        );
    }
}
