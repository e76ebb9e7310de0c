//! What the agent's index holds of a file that the index of the checkout does not, as far as it can
//! be believed. Git converts what it adds by what its index has of it: a file with CR that was
//! moved, or committed as it is, stays as it is.

use std::collections::HashSet;
use std::fs;

use crate::executor::run::files_taken::Intaking;
use crate::executor::run::git::Git;
use crate::executor::run::index_file::IndexEntry;
use crate::executor::run::intake::Intake;
use crate::executor::run::object_name::ObjectName;

/// Entries that become part of the index of the result.
#[derive(Debug, Default)]
pub struct Staged<'t> {
    /// The entries. Their objects are there.
    pub entries: Vec<&'t IndexEntry>,
    /// Paths of those whose files git would not look at again.
    pub settled: HashSet<&'t [u8]>,
    /// Paths of which the agent's index holds what nobody else has, where that may matter.
    pub unproven: Vec<&'t [u8]>,
}

impl Git<'_> {
    /// Finds out what of the agent's index is so: its objects are those of the checkout or of the
    /// user's repository, or what their files make now, as they are or with the ends of their lines
    /// made anew (`git add --renormalize`). No object of the agent's is read.
    pub(super) fn staged<'t>(
        &self,
        of: Intaking<'_>,
        intake: &Intake<'t>,
        checkout: &[IndexEntry],
    ) -> Result<Staged<'t>, String> {
        let is_file = |entry: &&&IndexEntry| {
            let found = fs::symlink_metadata(of.path(&entry.path));
            found.is_ok_and(|found| found.is_file())
        };
        let entries: Vec<&IndexEntry> = intake.staged.iter().filter(is_file).copied().collect();
        if entries.is_empty() {
            return Ok(Staged::default());
        }
        let known: HashSet<ObjectName> = checkout.iter().map(|entry| entry.object).collect();
        let plain = self.hashed(of, &entries, &["--no-filters"])?;
        let converted = self.hashed(of, &entries, &[])?;
        let made = plain.iter().zip(&converted);
        let is_held = |entry: &IndexEntry, (plain, converted): (&ObjectName, &ObjectName)| {
            entry.object == *plain || entry.object == *converted
        };
        let held: Vec<bool> = entries
            .iter()
            .zip(made.clone())
            .map(|(entry, made)| is_held(entry, made))
            .collect();
        let others = entries.iter().zip(&held);
        let others = others.filter(|(entry, held)| !**held && !known.contains(&entry.object));
        let others: Vec<String> = others.map(|(entry, _)| entry.object.to_string()).collect();
        let lent = self.present(of, &others)?;
        let mut staged = Staged::default();
        for ((entry, is_held), (plain, converted)) in entries.into_iter().zip(held).zip(made) {
            let found = of.tree.file(&entry.path).map(|file| file.stat);
            let is_clean = found == Some(entry.stat);
            let is_lent = known.contains(&entry.object) || lent.contains(&entry.object);
            if is_held || is_lent {
                staged.entries.push(entry);
                staged
                    .settled
                    .extend((is_held && is_clean).then_some(&entry.path[..]));
            } else if is_clean || plain != converted {
                staged.unproven.push(&entry.path);
            }
        }
        Ok(staged)
    }

    /// Which of these objects the user's repository has.
    fn present(&self, of: Intaking<'_>, objects: &[String]) -> Result<HashSet<ObjectName>, String> {
        if objects.is_empty() {
            return Ok(HashSet::new());
        }
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        let command = self.cat_file(of.git_dir, "--batch-check", &objects)?;
        let printed = self.run(command)?;
        let lines = String::from_utf8_lossy(&printed);
        let lines = lines.lines().filter_map(|line| line.split_once(' '));
        let blobs = lines.filter(|(_, what)| what.starts_with("blob "));
        let names = blobs.filter_map(|(object, _)| ObjectName::of_digits(object));
        Ok(names.collect())
    }

    /// Takes files in, and tells the objects that hold them.
    fn hashed(
        &self,
        of: Intaking<'_>,
        entries: &[&IndexEntry],
        more: &[&str],
    ) -> Result<Vec<ObjectName>, String> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let list: Vec<Vec<u8>> = entries.iter().map(|entry| quoted(&entry.path)).collect();
        let words = [&["hash-object", "-w", "--stdin-paths"], more].concat();
        let command = self.on_list(of.command(self, &words), of.git_dir, &list.concat())?;
        let printed = self.run(command)?;
        let objects = String::from_utf8_lossy(&printed);
        let objects: Vec<ObjectName> = objects.lines().filter_map(ObjectName::of_digits).collect();
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
