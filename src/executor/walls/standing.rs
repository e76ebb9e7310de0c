//! Which walls stand on this machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::bounds::Bounds;
use super::entry;
use super::view::View;
use crate::executor::run::command::{self, CommandBounds};
use crate::executor::store::removal::remove_tree;
use crate::limits::COMMAND_MEMORY_MIB;

/// How long finding out may take.
const PROBE: Duration = Duration::from_secs(10);

/// Which walls stand around a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walls {
    /// bubblewrap, and Landlock within.
    Both,
    /// bubblewrap alone.
    Bubblewrap,
    /// Landlock alone.
    Landlock,
    /// None.
    Neither,
}

/// Which walls the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallsWanted {
    /// The strongest that stand, and at least one.
    Auto,
    /// These and no others. Neither is among them.
    Exactly(Walls),
}

impl Walls {
    /// Every choice, the strongest first.
    pub const ALL: [Self; 4] = [Self::Both, Self::Landlock, Self::Bubblewrap, Self::Neither];

    /// The name in a record, in `hello` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "bubblewrap+landlock",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Neither => "none",
        }
    }

    /// Whether the outer wall is among them.
    pub fn has_bubblewrap(self) -> bool {
        matches!(self, Self::Both | Self::Bubblewrap)
    }

    /// Whether the inner wall is among them.
    pub fn has_landlock(self) -> bool {
        matches!(self, Self::Both | Self::Landlock)
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Finds the walls that the operator wants. `program` is the executor's own program.
///
/// # Errors
///
/// Why they do not stand, and what to do, in a sentence.
pub fn find(wanted: WallsWanted, program: &Path) -> Result<Walls, String> {
    match wanted {
        WallsWanted::Exactly(Walls::Neither) => Ok(Walls::Neither),
        WallsWanted::Exactly(walls) => try_out(walls, program)
            .map(|()| walls)
            .map_err(|why| format!("the sandbox {walls} does not work here: {why}")),
        WallsWanted::Auto => {
            let mut reasons = Vec::new();
            for walls in [Walls::Both, Walls::Landlock, Walls::Bubblewrap] {
                match try_out(walls, program) {
                    Ok(()) => return Ok(walls),
                    Err(why) => reasons.push(format!("{walls}: {why}")),
                }
            }
            Err(format!(
                "no sandbox works here ({}). Install bubblewrap and allow user namespaces, use a \
                 kernel with Landlock, or take the risk with --sandbox off: an agent could then do \
                 all that you can",
                reasons.join("; ")
            ))
        }
    }
}

/// Starts this program within the walls, to say its version.
fn try_out(walls: Walls, program: &Path) -> Result<(), String> {
    let tmp = tempdir().map_err(|error| error.to_string())?;
    let view = View {
        readable: vec![program.to_owned()],
        writable: vec![tmp.clone()],
        tmp: tmp.clone(),
        dir: tmp.clone(),
        network: false,
        unix_sockets: false,
    };
    let command = [program.into(), "--version".into()];
    let words = entry::argv(walls, &view, Bounds::default(), program, &command);
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let bounds = CommandBounds {
        until: Instant::now() + PROBE,
        bytes_max: 4096,
        memory_bytes_max: COMMAND_MEMORY_MIB << 20,
        is_stopped: &|| false,
    };
    let outcome = command::output(&mut command, &bounds);
    clear(&tmp);
    match outcome {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.trim().replace('\n', " "))
        }
        Err(error) => Err(format!("{} cannot be started: {error}", words[0].display())),
    }
}

/// Removes the directory of a trial, with what the outer wall has made in it to mount on.
fn clear(tmp: &Path) {
    // What cannot be removed is only untidy.
    let _ = remove_tree(tmp);
}

/// An empty directory of this user's alone. Its name cannot be guessed, so that no other user has
/// taken it before.
fn tempdir() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut bits = [0; 8];
    // So few bytes come whole, and without being interrupted (getrandom(2)).
    rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty())?;
    let name = format!("rocco-probe-{:016x}", u64::from_ne_bytes(bits));
    let path = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// bubblewrap mounts in the directory, and what it made for that was left in /tmp for ever.
    #[test]
    fn trying_out_leaves_nothing() {
        let tmp = tempdir().expect("a directory");
        std::fs::create_dir(tmp.join("a place to mount")).expect("a directory");
        clear(&tmp);
        assert!(!tmp.exists());
    }
}
