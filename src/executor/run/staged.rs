//! What the agent's index holds of a file that the index of the checkout does not, as far as it can
//! be believed. Git converts what it adds by what its index has of it: a file with CR that was
//! moved, or committed as it is, stays as it is.

use std::collections::{HashMap, HashSet};
use std::fs;

use crate::executor::run::files_taken::Intaking;
use crate::executor::run::git::Git;
use crate::executor::run::index_file::IndexEntry;
use crate::executor::run::intake::{FoundFile, Intake};

/// Entries that become part of the index of the result.
#[derive(Debug, Default)]
pub struct Staged<'t> {
    /// The entries. Their objects are there.
    pub entries: Vec<&'t IndexEntry>,
    /// Paths of those whose files are nothing else: git would not look at them again.
    pub settled: HashSet<&'t [u8]>,
}

impl Git<'_> {
    /// Finds out what of the agent's index is so: its objects are those of the checkout, or what
    /// their files hold now. No object of the agent's is read.
    pub(super) fn staged<'t>(
        &self,
        of: Intaking<'_>,
        intake: &Intake<'t>,
        checkout: &[IndexEntry],
    ) -> Result<Staged<'t>, String> {
        let known: HashSet<&str> = checkout.iter().map(|entry| &entry.object[..]).collect();
        let files = of.tree.files.iter();
        let files: HashMap<&[u8], &FoundFile> = files.map(|file| (&file.path[..], file)).collect();
        let is_file = |entry: &&&IndexEntry| {
            let found = fs::symlink_metadata(of.path(&entry.path));
            found.is_ok_and(|found| found.is_file())
        };
        let hashed: Vec<&IndexEntry> = intake.staged.iter().filter(is_file).copied().collect();
        let objects = self.hashed(of, &hashed)?;
        let mut staged = Staged::default();
        for (entry, object) in hashed.into_iter().zip(&objects) {
            let is_clean = files.get(&entry.path[..]).map(|file| file.stat) == Some(entry.stat);
            let is_held = *object == entry.object;
            if is_held || known.contains(&entry.object[..]) {
                staged.entries.push(entry);
            }
            if is_held && is_clean {
                staged.settled.insert(&entry.path);
            }
        }
        Ok(staged)
    }

    /// Takes files in as they are, and tells the objects that hold them.
    fn hashed(&self, of: Intaking<'_>, entries: &[&IndexEntry]) -> Result<Vec<String>, String> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let list: Vec<Vec<u8>> = entries.iter().map(|entry| quoted(&entry.path)).collect();
        let words = ["hash-object", "-w", "--no-filters", "--stdin-paths"];
        let command = self.on_list(of.command(self, &words), of.git_dir, &list.concat())?;
        let printed = self.run(command)?;
        let objects = String::from_utf8_lossy(&printed);
        let objects: Vec<String> = objects.lines().map(str::to_owned).collect();
        match objects.len() == entries.len() {
            true => Ok(objects),
            false => Err("git hash-object did not tell of each file".into()),
        }
    }
}

/// A path on a line of its own, in quotes as git reads them.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            0..0x20 | 0x7f => line.extend(format!("\\{byte:03o}").bytes()),
            _ => line.push(*byte),
        }
    }
    line.extend(b"\"\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_is_one_line() {
        assert_eq!(quoted(b"a b"), b"\"a b\"\n");
        assert_eq!(quoted(b"\"\n\\\xff"), b"\"\\\"\\012\\\\\xff\"\n");
    }
}
