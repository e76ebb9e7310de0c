//! Child processes: what they do before they become another program, and their ends. Nothing here
//! waits for a child: one that does not die at once would hold whoever waits.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, setsid, waitid};

/// What a child does for itself between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It leads a session of its own.
    OwnSession,
    /// It gets this signal when the thread that has started it ends, however that ends. Elsewhere
    /// than on Linux nothing is done.
    SignalledWithParent(Signal),
}

impl Step {
    /// Takes the step. It makes system calls alone.
    fn take(self, parent: u32) -> io::Result<()> {
        match self {
            Self::OwnSession => {
                setsid()?;
            }
            #[cfg(target_os = "linux")]
            Self::SignalledWithParent(signal) => {
                rustix::process::set_parent_process_death_signal(Some(signal))?;
                // The parent may have died before.
                if std::os::unix::process::parent_id() != parent {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
            #[cfg(not(target_os = "linux"))]
            Self::SignalledWithParent(_) => {
                let _ = parent;
            }
        }
        Ok(())
    }
}

/// Has the child that a command starts take these steps first.
pub fn before_exec(command: &mut Command, steps: &'static [Step]) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made, which are safe there, and an error
    // is made of a number, which claims no memory.
    unsafe { command.pre_exec(move || steps.iter().try_for_each(|step| step.take(parent))) };
}

/// Sends a signal to a child and to what it has started in its group. The child was not waited
/// for, so its number is its own.
pub fn signal_group(child: &Child, signal: Signal) {
    // A group that is gone needs no signal.
    let _ = kill_process_group(Pid::from_child(child), signal);
}

/// What is known of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It has not ended.
    Runs,
    /// It has ended, and its number is its own as long as nobody waits for it.
    Ended(ExitStatus),
    /// Nobody knows: it was waited for, or the system waits for every child since SIGCHLD is
    /// ignored, which a process can inherit.
    Gone,
}

/// Looks at a child. It is not waited for, so that its number stays its own until what it has
/// started is ended as well.
pub fn look(child: &Child) -> Life {
    let looking = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), looking) {
        Ok(None) | Err(Errno::INTR) => Life::Runs,
        Ok(Some(status)) => {
            // As wait(2) has it: a code in the second byte, or a signal in the first.
            let code = status.exit_status().map(|code| code << 8);
            let code = code.or(status.terminating_signal());
            Life::Ended(ExitStatus::from_raw(code.unwrap_or_default()))
        }
        Err(_) => Life::Gone,
    }
}

/// Kills what a child has left in its group and lets go of its number, if it has ended. Tells
/// whether it has.
pub fn let_go(child: &mut Child) -> bool {
    match look(child) {
        Life::Runs => false,
        Life::Ended(_) => {
            signal_group(child, Signal::KILL);
            // It has ended, so this does not wait.
            matches!(child.try_wait(), Ok(Some(_)))
        }
        Life::Gone => true,
    }
}
