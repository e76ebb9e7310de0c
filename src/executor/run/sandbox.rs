//! The sandbox: bubblewrap, where it is there and works, and a plain word where it is not.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::executor::run::command::{self, CommandBounds};

/// Whether to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxMode {
    /// Not without it.
    Require,
    /// Where it works.
    Auto,
    /// Not at all.
    Off,
}

/// A sandbox that works here.
#[derive(Debug, Clone)]
pub struct Sandbox;

/// What a program in it may do.
#[derive(Debug)]
pub struct SandboxSpec<'a> {
    /// What is hidden: the state directory, with the tasks of others and the socket in it.
    pub hidden: &'a Path,
    /// What can be read all the same, though it lies in what is hidden.
    pub readable: Vec<PathBuf>,
    /// What can be written.
    pub writable: Vec<PathBuf>,
    /// Whether `/tmp` is one of its own. It cannot be if something that is needed lies there.
    pub own_tmp: bool,
    /// Whether there is a network.
    pub network: bool,
}

const PROGRAM: &str = "bwrap";

impl Sandbox {
    /// Finds out whether the sandbox works, by starting something in it.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn probe() -> Result<Self, String> {
        let mut command = Command::new(PROGRAM);
        command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
        command.args([
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-net",
            "--die-with-parent",
            "--new-session",
        ]);
        command.args(["--", "/proc/self/exe", "--version"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let bounds = CommandBounds {
            until: Instant::now() + Duration::from_secs(10),
            bytes_max: 4096,
            is_stopped: &|| false,
        };
        match command::output(&mut command, &bounds) {
            Ok(output) if output.status.success() => Ok(Self),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr)
                    .trim()
                    .replace('\n', " ");
                Err(format!("bwrap does not work here: {said}"))
            }
            Err(error) => Err(format!("bwrap cannot be started: {error}")),
        }
    }

    /// The command that runs a program in a sandbox.
    pub fn argv(&self, spec: &SandboxSpec<'_>, dir: &Path, argv: &[OsString]) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |given: &[&Path]| words.extend(given.iter().map(|word| word.into()));
        let flag = Path::new;
        add(&[flag(PROGRAM), flag("--ro-bind"), flag("/"), flag("/")]);
        add(&[flag("--dev"), flag("/dev"), flag("--proc"), flag("/proc")]);
        if spec.own_tmp {
            add(&[flag("--tmpfs"), flag("/tmp")]);
        }
        add(&[flag("--tmpfs"), spec.hidden]);
        for path in &spec.readable {
            add(&[flag("--ro-bind"), path, path]);
        }
        for path in &spec.writable {
            add(&[flag("--bind"), path, path]);
        }
        add(&[flag("--unshare-pid"), flag("--unshare-ipc")]);
        if !spec.network {
            add(&[flag("--unshare-net")]);
        }
        add(&[flag("--die-with-parent"), flag("--new-session")]);
        add(&[flag("--chdir"), dir, flag("--")]);
        words.extend(argv.iter().cloned());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_has_no_network_and_an_agent_has() {
        let words = |network| {
            let spec = SandboxSpec {
                hidden: Path::new("/state"),
                readable: vec!["/state/a/git".into()],
                writable: vec!["/state/a/work".into()],
                own_tmp: true,
                network,
            };
            let argv = Sandbox.argv(
                &spec,
                Path::new("/state/a/work"),
                &["x".into(), "--y".into()],
            );
            let argv: Vec<String> = argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            argv.join(" ")
        };
        assert!(words(false).contains("--unshare-net"));
        assert!(!words(true).contains("--unshare-net"));
        assert!(words(true).ends_with("--chdir /state/a/work -- x --y"));
        assert!(words(true).contains("--tmpfs /state --ro-bind /state/a/git /state/a/git --bind"));
    }
}
