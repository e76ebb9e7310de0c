//! What a result changes, and its way into the user's repository.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use crate::executor::run::git::{Git, result_ref};
use crate::executor::run::repo::Repo;
use crate::executor_protocol::grammar::RAW_BYTE_MARK;
use crate::task::id::TaskId;

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path in the repository, in which a byte that is no part of UTF-8 is marked.
    pub path: String,
    /// Added, modified, deleted or type-changed: A, M, D or T.
    pub status: String,
    /// Lines that were added; none for a binary file.
    pub added: Option<u64>,
    /// Lines that were removed.
    pub removed: Option<u64>,
    /// What was there before.
    pub before: TreeEntry,
    /// What is there now.
    pub after: TreeEntry,
    /// Other names of the path, by which links that were there lead to it.
    pub other_names: Vec<String>,
    /// The uppermost directory above it that was not there.
    pub new_dir: Option<String>,
    /// Whether a makefile that was there knows it, or a directory above it, as something to make.
    pub may_be_made: bool,
}

impl FileChange {
    /// Its path, and its other names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.other_names.iter().map(String::as_str);
        std::iter::once(self.path.as_str()).chain(others)
    }

    /// Whether something is there now.
    pub fn is_kept(&self) -> bool {
        self.status != "D"
    }

    /// Whether it is called so, in any directory.
    fn is_called(&self, name: &str) -> bool {
        let rest = self.path.strip_suffix(name);
        rest.is_some_and(|dir| dir.is_empty() || dir.ends_with('/'))
    }

    /// Whether it is a file now, or nothing; a link or a submodule otherwise.
    pub fn is_file(&self) -> bool {
        !matches!(self.after.mode.as_str(), LINK_MODE | MODULE_MODE)
    }
}

/// What stands in a tree; zeros for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeEntry {
    /// What it is, in digits.
    pub mode: String,
    /// The object that holds it.
    pub object: String,
}

impl Git<'_> {
    /// What differs between two trees, file by file.
    pub fn changes(
        &self,
        git_dir: &Path,
        base: &str,
        head: &str,
    ) -> Result<Vec<FileChange>, String> {
        let mut command = self.command(git_dir, git_dir);
        command.args(DIFF);
        command.args([
            "--raw",
            "--numstat",
            "-z",
            "--no-abbrev",
            "--end-of-options",
        ]);
        command.args([base, head]);
        let printed = self.run(command)?;
        changes_in(&printed).ok_or_else(|| "git diff-tree listed other changes than counts".into())
    }

    /// A command that tells something of objects, in their order. All are asked for at once.
    pub(super) fn cat_file(
        &self,
        git_dir: &Path,
        what: &str,
        objects: &[&str],
    ) -> Result<Command, String> {
        let lines = objects.join("\n") + "\n";
        let mut command = self.command(git_dir, git_dir);
        command.args(["cat-file", what]);
        self.on_list(command, git_dir, lines.as_bytes())
    }

    /// Writes the difference between two commits into a file.
    pub fn diff(&self, git_dir: &Path, base: &str, head: &str, to: &Path) -> Result<(), String> {
        let new = to.with_extension("new");
        let file = fs::File::create(&new).map_err(|error| error.to_string())?;
        let mut command = self.command(git_dir, git_dir);
        command
            .args(DIFF)
            .args(["-p", "--binary", "--full-index", "--end-of-options"]);
        command.args([base, head]).stdout(file);
        self.run(command)?;
        fs::rename(&new, to).map_err(|error| error.to_string())
    }

    /// Packs what a result has and its base does not have, into a file. To look for what is alike
    /// in its files would take longer than all else.
    pub fn pack(&self, git_dir: &Path, base: &str, head: &str, to: &Path) -> Result<(), String> {
        let wanted = to.with_extension("wanted");
        let said = |error: std::io::Error| error.to_string();
        fs::write(&wanted, format!("{head}\n^{base}\n")).map_err(said)?;
        let mut command = self.command(git_dir, git_dir);
        command.args([
            "pack-objects",
            "--quiet",
            "--revs",
            "--window=0",
            "--stdout",
        ]);
        command.stdin(File::open(&wanted).map_err(said)?);
        command.stdout(File::create(to).map_err(said)?);
        self.run(command).map(drop)
    }

    /// Brings the objects of a result into the user's repository, and no ref to them. Git looks at
    /// them, but at nothing that is as it was: what was wrong before the task is not its fault.
    pub fn unpack(&self, repo: &Repo, pack: &Path, changes: &[FileChange]) -> Result<(), String> {
        let same_modules = !changes.iter().any(|change| change.path == ".gitmodules");
        let mut ignored = match same_modules {
            true => MODULE_CHECKS.to_vec(),
            false => Vec::new(),
        };
        let unpacked = self.unpack_unchecked(repo, pack, &ignored);
        let is_new =
            |change: &FileChange| change.status == "A" && change.is_called(".gitattributes");
        match unpacked {
            // A git that does not look at attributes does not know the names of these checks.
            Err(what) if what.contains("gitattributes") && !changes.iter().any(is_new) => {
                ignored.extend(ATTRIBUTES_CHECKS);
                self.unpack_unchecked(repo, pack, &ignored)
            }
            unpacked => unpacked,
        }
    }

    /// Unpacks without some of git's checks.
    fn unpack_unchecked(&self, repo: &Repo, pack: &Path, ignored: &[&str]) -> Result<(), String> {
        let mut file = File::open(pack).map_err(|error| error.to_string())?;
        let unpacked = objects_in(&mut file).is_some_and(|objects| objects < LOOSE_OBJECTS_MAX);
        let file = File::open(pack).map_err(|error| error.to_string())?;
        let ignored = ignored.iter().map(|check| format!("{check}=ignore"));
        let ignored: Vec<String> = ignored.collect();
        let strict = match ignored.is_empty() {
            true => "--strict".to_owned(),
            false => format!("--strict={}", ignored.join(",")),
        };
        let stand_in = self.stand_in(repo)?;
        let mut command = stand_in.command(self);
        match unpacked {
            true => command.args(["unpack-objects", "-q", &strict]),
            false => command.args(["index-pack", "--stdin", &strict]),
        };
        command.stdin(file);
        self.run(command).map(drop)
    }

    /// Gives a result its ref in the user's repository, from when on it is delivered.
    pub fn set_result(&self, repo: &Repo, id: TaskId, head: &str) -> Result<(), String> {
        self.update_ref(repo, &[&result_ref(id), head])
    }

    /// Takes the ref of a result away again.
    pub fn remove_result(&self, repo: &Repo, id: TaskId) -> Result<(), String> {
        self.update_ref(repo, &["-d", &result_ref(id)])
    }
}

/// The changes that one diff-tree has printed: all of them with their modes, blobs and status, each
/// of which starts with a colon and has its path behind it, and then all of them with their counts.
fn changes_in(printed: &[u8]) -> Option<Vec<FileChange>> {
    let mut texts = terminated(printed).peekable();
    let mut changes = Vec::new();
    while let Some(words) = texts.next_if(|text| text.starts_with(b":")) {
        changes.push(change_of(words, texts.next()?)?);
    }
    for change in &mut changes {
        // What git does not count stays without counts.
        let is_of_change = |text: &&[u8]| {
            let path = text.splitn(3, |byte| *byte == b'\t').nth(2);
            path.is_some_and(|path| name_of(path) == change.path)
        };
        if let Some(text) = texts.next_if(is_of_change) {
            let mut counts = text.split(|byte| *byte == b'\t');
            let mut count = || std::str::from_utf8(counts.next()?).ok()?.parse().ok();
            (change.added, change.removed) = (count(), count());
        }
    }
    texts.next().is_none().then_some(changes)
}

/// A change without its counts: the modes and the blobs, each before and after, and the status.
fn change_of(words: &[u8], path: &[u8]) -> Option<FileChange> {
    let words = std::str::from_utf8(words).ok()?.strip_prefix(':')?;
    let words: Vec<&str> = words.split(' ').collect();
    let &[mode_before, mode, before, after, status] = words.as_slice() else {
        return None;
    };
    let entry = |mode: &str, object: &str| TreeEntry {
        mode: mode.to_owned(),
        object: object.to_owned(),
    };
    Some(FileChange {
        path: name_of(path),
        status: status.to_owned(),
        added: None,
        removed: None,
        before: entry(mode_before, before),
        after: entry(mode, after),
        other_names: Vec::new(),
        new_dir: None,
        may_be_made: false,
    })
}

/// How much changes have changed, in a line as git has it.
pub fn diffstat(changes: &[FileChange]) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let sum = |counts: fn(&FileChange) -> Option<u64>| {
        let counts = changes.iter().filter_map(counts);
        counts.fold(0, u64::saturating_add)
    };
    let files = changes.len() as u64;
    let (added, removed) = (sum(|change| change.added), sum(|change| change.removed));
    let mut line = format!("{files} file{} changed", plural(files));
    if added > 0 || removed == 0 {
        line.push_str(&format!(", {added} insertion{}(+)", plural(added)));
    }
    if removed > 0 || added == 0 {
        line.push_str(&format!(", {removed} deletion{}(-)", plural(removed)));
    }
    line
}

/// Texts that each end in a NUL.
pub(super) fn terminated(texts: &[u8]) -> impl Iterator<Item = &[u8]> {
    let texts = texts.strip_suffix(b"\0").unwrap_or(texts);
    let is_empty = texts.is_empty();
    texts.split(|byte| *byte == 0).filter(move |_| !is_empty)
}

/// The name of a file as text. A byte that is no part of UTF-8 is marked, so that two names never
/// have the same text: what compares texts compares bytes.
pub fn name_of(bytes: &[u8]) -> String {
    text_of(bytes).into_owned()
}

/// The same, which is the name itself where all of it is UTF-8.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(name) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(name);
    }
    let mut name = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            name.push(RAW_BYTE_MARK);
            name.push_str(&format!("{byte:02x}"));
        }
    }
    Cow::Owned(name)
}

/// From how many objects on they stay in a pack, as git has it for what it fetches.
const LOOSE_OBJECTS_MAX: u32 = 100;

/// How many objects a pack has (gitformat-pack(5)).
fn objects_in(pack: &mut File) -> Option<u32> {
    let mut head = [0; 12];
    pack.read_exact(&mut head).ok()?;
    let (mark, count) = head.split_last_chunk::<4>()?;
    mark.starts_with(b"PACK")
        .then(|| u32::from_be_bytes(*count))
}

/// The first blob of what `git cat-file --batch` prints: a line that ends in its length, itself and
/// LF. The rest is left.
pub(super) fn blob<'b>(printed: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (head, rest) = printed.split_at_checked(memchr::memchr(b'\n', printed)? + 1)?;
    let bytes = head.rsplit(|byte| *byte == b' ').next()?.trim_ascii();
    let bytes: usize = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    let (blob, rest) = rest.split_at_checked(bytes)?;
    *printed = rest.get(1..)?;
    Some(blob)
}

/// What git calls a symbolic link.
pub(super) const LINK_MODE: &str = "120000";

/// What git calls a submodule.
pub(super) const MODULE_MODE: &str = "160000";

/// How commits are compared: whole, submodules included.
const DIFF: [&str; 7] = [
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=none",
];

/// What git looks at in a `.gitmodules`.
const MODULE_CHECKS: [&str; 8] = [
    "gitmodulesBlob",
    "gitmodulesLarge",
    "gitmodulesMissing",
    "gitmodulesName",
    "gitmodulesParse",
    "gitmodulesPath",
    "gitmodulesUpdate",
    "gitmodulesUrl",
];

/// What git looks at in a `.gitattributes`.
const ATTRIBUTES_CHECKS: [&str; 4] = [
    "gitattributesBlob",
    "gitattributesLarge",
    "gitattributesLineLength",
    "gitattributesMissing",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that are not UTF-8 were all the same text, that of U+FFFD.
    #[test]
    fn bytes_that_are_not_utf_8_keep_names_apart() {
        for (bytes, name) in [
            (&b"\xff"[..], "\0ff"),
            (b"a\xfe/\xc3", "a\0fe/\0c3"),
            (b"\xf0\x9f\x98", "\0f0\09f\098"),
            ("\u{FFFD}é".as_bytes(), "\u{FFFD}é"),
            (b"\\xff", "\\xff"),
        ] {
            assert_eq!(name_of(bytes), name, "{bytes:?}");
        }
        let list: Vec<&[u8]> = terminated(b"a\0\0b\0").collect();
        assert_eq!(list, [&b"a"[..], b"", b"b"]);
        assert_eq!(terminated(b"").count(), 0);
    }

    /// A path may look like a change, and a count may be that of no file.
    #[test]
    fn changes_are_listed_first_and_counted_behind() {
        let kind = |mode: &str, status| format!(":000000 {mode} 00 aa {status}");
        let printed = [
            &kind("100644", "A"),
            ":odd\tname",
            &kind("100644", "M"),
            "bin",
            "2\t1\t:odd\tname",
            "-\t-\tbin",
            "",
        ];
        let printed = printed.join("\0");
        let changes = changes_in(printed.as_bytes()).expect("changes");
        let told: Vec<_> = changes
            .iter()
            .map(|change| (change.path.as_str(), change.added, change.removed))
            .collect();
        assert_eq!(
            told,
            [(":odd\tname", Some(2), Some(1)), ("bin", None, None)]
        );
        assert_eq!(changes[0].after.object, "aa");
        assert_eq!(
            diffstat(&changes),
            "2 files changed, 2 insertions(+), 1 deletion(-)"
        );
        assert_eq!(changes_in(b""), Some(Vec::new()));
        for odd in [
            "1\t0\tunlisted\0",
            ":000000 100644 00 aa A\0",
            ":000000\0a\0",
        ] {
            assert_eq!(changes_in(odd.as_bytes()), None, "{odd:?}");
        }
    }

    /// What git prints itself, with and without lines of either kind.
    #[test]
    fn a_diffstat_is_worded_as_git_words_it() {
        let change = |added, removed| FileChange {
            added,
            removed,
            ..change_of(b":000000 100644 00 aa A", b"a").expect("a change")
        };
        for (changes, line) in [
            (&[(Some(1), Some(0))][..], "1 file changed, 1 insertion(+)"),
            (&[(Some(0), Some(2))], "1 file changed, 2 deletions(-)"),
            (
                &[(None, None)],
                "1 file changed, 0 insertions(+), 0 deletions(-)",
            ),
            (
                &[(Some(2), Some(1)), (Some(3), Some(0))],
                "2 files changed, 5 insertions(+), 1 deletion(-)",
            ),
        ] {
            let changes: Vec<_> = changes
                .iter()
                .map(|(added, removed)| change(*added, *removed))
                .collect();
            assert_eq!(diffstat(&changes), line);
        }
    }

    #[test]
    fn blobs_are_taken_one_by_one() {
        let mut said = &b"aa blob 3\nx\ny\nbb blob 0\n\ncc blob 9\ncut"[..];
        assert_eq!(blob(&mut said), Some(&b"x\ny"[..]));
        assert_eq!(blob(&mut said), Some(&b""[..]));
        assert_eq!(blob(&mut said), None);
        for odd in ["", "dd missing\n", "blob\n", "blob 1\na"] {
            assert_eq!(blob(&mut odd.as_bytes()), None, "{odd:?}");
        }
    }
}
