//! The outer wall: bubblewrap, in which a program has a file system, processes and, unless it needs
//! the network, a network of its own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::view::{self, View};
use crate::limits::TASK_SHARED_MEMORY_BYTES_MAX;

/// The program.
pub const PROGRAM: &str = "bwrap";

/// The user that root is within.
const NOBODY: &str = "65534";

/// Where the executor's own program is seen within.
pub const ENTRY: &str = "/run/rocco";

/// Directories within that are the program's own and can be changed, beside those of its view.
pub const OWN: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts"];

/// How a path comes into the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mount {
    Readable,
    Writable,
}

/// The command that puts the outer wall around another. `program` is the executor's own program,
/// which is the first process within.
pub fn argv(view: &View, program: &Path, inner: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![PROGRAM.into()];
    let mut add = |given: &[&OsStr]| words.extend(given.iter().map(|word| (*word).to_owned()));
    for flag in [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        // The first process within is ours, so that nothing that could be asked or traced knows
        // how the program ended.
        "--as-pid-1",
    ] {
        add(&[flag.as_ref()]);
    }
    if !view.network {
        add(&["--unshare-net".as_ref()]);
    }
    if rustix::process::geteuid().is_root() {
        // Root by number has rights that no capability stands for.
        add(&[
            "--uid".as_ref(),
            NOBODY.as_ref(),
            "--gid".as_ref(),
            NOBODY.as_ref(),
        ]);
    }
    add(&["--cap-drop".as_ref(), "ALL".as_ref()]);
    // What is mounted later lies in what was mounted before: a view may name places below /tmp.
    for place in ["/tmp", "/var/tmp"] {
        add(&["--bind".as_ref(), view.tmp.as_ref(), place.as_ref()]);
    }
    // Settings of the kernel are root's by number, which takes no capability.
    add(&["--proc", "/proc", "--remount-ro", "/proc"].map(OsStr::new));
    add(&["--dev", "/dev"].map(OsStr::new));
    let shared_memory = TASK_SHARED_MEMORY_BYTES_MAX.to_string();
    add(&[
        "--size".as_ref(),
        shared_memory.as_ref(),
        "--tmpfs".as_ref(),
        "/dev/shm".as_ref(),
    ]);
    for (path, mount) in mounts(view) {
        match (path.read_link(), mount) {
            (Ok(target), Mount::Readable) => {
                add(&["--symlink".as_ref(), target.as_ref(), path.as_ref()]);
            }
            (_, Mount::Readable) => add(&["--ro-bind".as_ref(), path.as_ref(), path.as_ref()]),
            (_, Mount::Writable) => add(&["--bind".as_ref(), path.as_ref(), path.as_ref()]),
        }
    }
    add(&["--ro-bind".as_ref(), program.as_ref(), ENTRY.as_ref()]);
    // What is written there takes memory that nothing bounds.
    add(&["--remount-ro".as_ref(), "/dev".as_ref()]);
    add(&["--remount-ro".as_ref(), "/".as_ref()]);
    add(&[
        "--chdir".as_ref(),
        view.dir.as_ref(),
        "--".as_ref(),
        ENTRY.as_ref(),
    ]);
    words.extend(inner.iter().cloned());
    words
}

/// What is mounted, the outer before the inner, so that none hides another. A path that lies in one
/// of the same kind needs no mount of its own.
fn mounts(view: &View) -> Vec<(PathBuf, Mount)> {
    let readable = view::of_the_system()
        .into_iter()
        .chain(view.readable.iter().cloned());
    let readable = readable.map(|path| (path, Mount::Readable));
    let writable = view
        .writable
        .iter()
        .cloned()
        .map(|path| (path, Mount::Writable));
    let mut all: Vec<(PathBuf, Mount)> = readable.chain(writable).collect();
    all.sort_by_key(|(path, mount)| (path.components().count(), path.clone(), *mount));
    let mut kept: Vec<(PathBuf, Mount)> = Vec::new();
    for (path, mount) in all {
        let innermost = kept.iter().rev().find(|(outer, _)| path.starts_with(outer));
        match innermost {
            Some((_, outer_mount)) if *outer_mount >= mount => {}
            _ => kept.push((path, mount)),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(network: bool) -> String {
        let view = View {
            readable: vec!["/src/objects".into(), "/usr/bin/true".into()],
            writable: vec!["/state/t/work".into(), "/state/t/tmp".into()],
            tmp: "/state/t/tmp".into(),
            dir: "/state/t/work".into(),
            network,
            unix_sockets: false,
        };
        let words = argv(&view, Path::new("/bin/rocco"), &["executor-wall".into()]);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn only_what_the_view_names_is_mounted() {
        let words = words(true);
        assert!(words.contains("--ro-bind /usr /usr"), "{words}");
        assert!(
            words.contains("--ro-bind /src/objects /src/objects"),
            "{words}"
        );
        assert!(
            words.contains("--bind /state/t/work /state/t/work"),
            "{words}"
        );
        assert!(words.contains("--bind /state/t/tmp /tmp"), "{words}");
        assert!(!words.contains("/usr/bin/true"), "it lies in /usr: {words}");
        assert!(!words.contains(" / / "), "{words}");
        let end =
            "--remount-ro /dev --remount-ro / --chdir /state/t/work -- /run/rocco executor-wall";
        assert!(words.ends_with(end), "{words}");
    }

    #[test]
    fn a_gate_has_no_network_and_an_agent_has() {
        assert!(words(false).contains("--unshare-net"));
        assert!(!words(true).contains("--unshare-net"));
    }

    #[test]
    fn what_is_writable_within_what_is_readable_stays_writable() {
        let view = View {
            readable: vec!["/a/b/c".into(), "/a".into()],
            writable: vec!["/a/b".into()],
            tmp: "/t".into(),
            dir: "/a".into(),
            network: false,
            unix_sockets: false,
        };
        let named = mounts(&view);
        let named: Vec<_> = named
            .iter()
            .filter(|(path, _)| path.starts_with("/a"))
            .collect();
        let wanted = [
            &("/a".into(), Mount::Readable),
            &("/a/b".into(), Mount::Writable),
        ];
        assert_eq!(named, wanted);
    }
}
