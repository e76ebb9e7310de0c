//! What a language loads in the place of a file or a directory that was meant: something else of
//! the same name, which is found before it. No I/O.

use crate::executor::run::path_pattern::FoldedPath;

/// Endings of files that a language finds by a name without one. It takes one for another, and a
/// directory for any of them.
const LOADED: [&[&str]; 4] = [
    &["py", "pyc", "pyo", "pyd", "so"],
    &[
        "js", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "cts", "json", "node", "wasm",
    ],
    &["pm", "pl", "pmc"],
    &["rb"],
];

/// Endings before which a name may say for which version and machine the file is.
const TAGGED: [&str; 2] = ["so", "pyd"];

/// Whether a path may be loaded in the place of a file, or hides a directory.
pub fn hides(path: &FoldedPath, named: &FoldedPath) -> bool {
    let Some(name) = named.name() else {
        return false;
    };
    let Some(entry) = path.entry_of(&named.parent()) else {
        return false;
    };
    let family = name.rsplit_once('.').and_then(|(stem, ending)| {
        let family = LOADED.iter().find(|family| family.contains(&ending))?;
        Some((stem, family))
    });
    match family {
        Some((stem, _)) if entry == stem => true,
        Some((stem, family)) => is_loaded(entry, stem, family),
        None => hides_directory(path, named),
    }
}

/// Whether a path is a file that may be loaded in the place of a directory.
pub fn hides_directory(path: &FoldedPath, named: &FoldedPath) -> bool {
    let entry = path.entry_of(&named.parent());
    let (Some(entry), Some(name)) = (entry, named.name()) else {
        return false;
    };
    LOADED.iter().any(|family| is_loaded(entry, name, family))
}

/// Whether an entry of a directory is loaded by a name, by one of these endings.
fn is_loaded(entry: &str, name: &str, endings: &[&str]) -> bool {
    let ending = entry
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('.'));
    ending.is_some_and(|ending| {
        let last = ending.rsplit('.').next().unwrap_or_default();
        let may_be_tagged = ending == last || TAGGED.contains(&last);
        may_be_tagged && endings.contains(&last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package was found before the module that a gate names, and decided it without a word.
    #[test]
    fn what_is_found_before_a_file_hides_it() {
        for (path, named, hidden) in [
            ("helper/__init__.py", "helper.py", true),
            ("helper", "helper.py", true),
            ("sub/helper/x/y", "sub/helper.py", true),
            ("helper/__init__.py", "sub/helper.py", false),
            ("check.abi3.so", "check.py", true),
            (
                "a/check.cpython-311-x86_64-linux-gnu.so",
                "a/check.py",
                true,
            ),
            ("check.pyc", "check.py", true),
            ("check.test.py", "check.py", false),
            ("check.md", "check.py", false),
            ("checks.py", "check.py", false),
            ("lib/helper", "lib/helper.js", true),
            ("lib/helper.js", "lib/helper.ts", true),
            ("lib/helper.test.js", "lib/helper.js", false),
            ("My.pmc", "my.pm", true),
            ("checks.py", "checks", true),
            ("checks.js", "checks", true),
            ("checks.md", "checks", false),
            ("run", "run.sh", false),
        ] {
            let [path, named] = [path, named].map(FoldedPath::new);
            assert_eq!(hides(&path, &named), hidden, "{path:?} {named:?}");
        }
        assert!(!hides(&FoldedPath::new("a.py"), &FoldedPath::root()));
        let [inner, named] = ["sub/other.py", "sub"].map(FoldedPath::new);
        assert!(!hides_directory(&inner, &named));
    }
}
