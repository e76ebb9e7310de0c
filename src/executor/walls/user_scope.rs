//! A transient scope of the user's systemd (systemd.scope(5)), in which the executor may make
//! control groups that bound what its programs use up together.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::executor::run::command::{self, CommandBounds};
use crate::limits::COMMAND_MEMORY_MIB;

use super::cgroup::Controllers;

/// Set for a program that was started in a scope, so that no further scope is asked for.
const MARK: &str = "ROCCO_IN_SCOPE";

/// How systemd is asked for a scope whose groups are the executor's own.
const ASK: [&str; 7] = [
    "--user",
    "--scope",
    "--quiet",
    "--collect",
    "--property",
    "Delegate=yes",
    "--",
];

/// How long systemd may take to make a scope.
const ANSWER: Duration = Duration::from_secs(2);

/// Starts this program anew, as the same process and with the same arguments, in a scope of the
/// user's systemd, if that bounds more than what the executor has, and if there is one that works.
/// It comes back where it does not, and then the executor goes on as it is.
pub fn enter(had: Controllers) {
    let has_all = had.memory && had.processes;
    if has_all || env::var_os(MARK).is_some() || !is_served() || !makes_a_scope() {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let mut command = Command::new("systemd-run");
    command.args(ASK).arg(program).args(env::args_os().skip(1));
    // It comes back with an error alone, and the executor is then what it was.
    let _ = command.env(MARK, "1").exec();
}

/// Whether the user has a systemd that could be asked.
fn is_served() -> bool {
    let runtime_dir = env::var_os("XDG_RUNTIME_DIR");
    runtime_dir.is_some_and(|dir| Path::new(&dir).join("systemd/private").exists())
}

/// Whether a scope is made for a program that does nothing. Where this one started itself in the
/// place of such a program, a refusal would be its end.
fn makes_a_scope() -> bool {
    let mut command = Command::new("systemd-run");
    command.args(ASK).arg("true");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let bounds = CommandBounds {
        until: Instant::now() + ANSWER,
        bytes_max: 4096,
        memory_bytes_max: COMMAND_MEMORY_MIB << 20,
        is_stopped: &|| false,
    };
    command::output(&mut command, &bounds).is_ok_and(|output| output.status.success())
}
