//! The process that puts the inner wall around itself and then starts a program: `rocco
//! executor-wall`, which nobody types.
//!
//! Within the outer wall it is the first process: it stays, takes in what is left behind, and ends
//! as the program did, at which everything within ends. An exit code does not tell a signal from a
//! program's own 137, so that the process says the number of the signal on its stdout, which it has
//! for itself: the program has its stderr for both. Nobody within can look into it: it is marked as
//! not to be traced, and the calls for that are refused. Without the outer wall the process becomes
//! the program, and whoever started it stands outside of the wall.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};

use rustix::process::{DumpableBehavior, WaitOptions};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::bounds::{self, Bounds};
use super::bubblewrap;
use super::landlock;
use super::seccomp::{self, Allowed};
use super::standing::Walls;
use super::view::{self, View};
use crate::executor::run::process;

/// The word by which the executor starts its own program as this process.
pub const COMMAND: &str = "executor-wall";

/// The exit code of a program that could not be started, as shells have it.
const NOT_STARTED: u8 = 127;

/// The exit code of a wall that does not stand: the program was not started.
const NO_WALL: u8 = 125;

/// What the number of a signal is added to in an exit code, as shells have it.
pub const SIGNAL_BASE: u8 = 128;

/// What the process is told on its command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orders {
    /// It is the first process within the outer wall.
    first: bool,
    /// There is a wall: privileges go, and system calls are filtered.
    confined: bool,
    /// The inner wall is to stand.
    landlock: bool,
    internet: bool,
    unix_sockets: bool,
    bounds: Bounds,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    argv: Vec<OsString>,
}

/// The command that starts a program within the walls that stand. `program` is the executor's own
/// program.
pub fn argv(
    walls: Walls,
    view: &View,
    bounds: Bounds,
    program: &Path,
    argv: &[OsString],
) -> Vec<OsString> {
    let outer = walls.has_bubblewrap();
    let mut words: Vec<OsString> = vec![COMMAND.into()];
    let mut flag = |is_set: bool, word: &str| {
        if is_set {
            words.push(word.into());
        }
    };
    flag(outer, "--first");
    flag(walls != Walls::Neither, "--confined");
    flag(walls.has_landlock(), "--landlock");
    // Within a network of its own a program may do what it likes.
    flag(view.network || outer, "--internet");
    flag(view.unix_sockets, "--unix-sockets");
    words.extend(["--bounds".into(), bounds.to_word()]);
    for path in &view.readable {
        words.extend(["--read".into(), path.into()]);
    }
    for path in &view.writable {
        words.extend(["--write".into(), path.into()]);
    }
    words.push("--".into());
    words.extend(argv.iter().cloned());
    match outer {
        true => bubblewrap::argv(view, program, &words),
        false => {
            words.insert(0, program.into());
            words
        }
    }
}

impl Orders {
    fn parse(words: &[OsString]) -> Option<Self> {
        let mut orders = Self::default();
        let mut words = words.iter();
        loop {
            match words.next()?.to_str()? {
                "--first" => orders.first = true,
                "--confined" => orders.confined = true,
                "--landlock" => orders.landlock = true,
                "--internet" => orders.internet = true,
                "--unix-sockets" => orders.unix_sockets = true,
                "--bounds" => orders.bounds = Bounds::parse(words.next()?)?,
                "--read" => orders.readable.push(words.next()?.into()),
                "--write" => orders.writable.push(words.next()?.into()),
                "--" => break,
                _ => return None,
            }
        }
        orders.argv = words.cloned().collect();
        (!orders.argv.is_empty()).then_some(orders)
    }

    /// Gives up all that the program must not have.
    fn give_up(&self) -> Result<(), String> {
        process::default_signals();
        process::keep_descriptors().map_err(|error| format!("the descriptors: {error}"))?;
        let system = |what: &'static str| move |error| format!("{what}: {error}");
        if self.first {
            let traced_by_nobody = DumpableBehavior::NotDumpable;
            rustix::process::set_dumpable_behavior(traced_by_nobody)
                .map_err(system("the process stays traceable"))?;
        }
        // In a namespace of its own a program has a count of its own.
        let others = if self.first {
            0
        } else {
            bounds::processes_of_user()
        };
        self.bounds
            .apply(others)
            .map_err(|error| format!("the bounds: {error}"))?;
        if !self.confined {
            return Ok(());
        }
        rustix::thread::set_no_new_privs(true).map_err(system("no_new_privs"))?;
        drop_capabilities().map_err(system("the capabilities stay"))?;
        if self.landlock {
            let (readable, writable) = self.rules();
            landlock::restrict(&readable, &writable).map_err(|error| error.to_string())?;
        }
        seccomp::restrict(Allowed {
            internet: self.internet,
            unix_sockets: self.unix_sockets,
            own_numbers: self.first,
        })
    }

    /// What the inner wall allows: the view, the system, and what is this program's own within the
    /// outer wall.
    fn rules(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mut readable = view::of_the_system();
        readable.extend(self.readable.iter().cloned());
        readable.push("/proc".into());
        let mut writable = self.writable.clone();
        if self.first {
            writable.extend(bubblewrap::OWN.map(PathBuf::from));
            writable.push("/dev/ptmx".into());
        }
        (readable, writable)
    }
}

/// Gives up every capability for good, also those that root has by its number.
fn drop_capabilities() -> rustix::io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::capability_is_in_bounding_set(capability) {
            // Who may not take one out of the set cannot gain it either: no new privileges.
            Ok(true) => {
                let _ = rustix::thread::remove_capability_from_bounding_set(capability);
            }
            Ok(false) => {}
            Err(_) => break,
        }
    }
    let root_is_nobody = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
    // Without the right to set them, there is no root whose number would mean something.
    let _ = rustix::thread::set_capabilities_secure_bits(root_is_nobody);
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)
}

/// What the process does, with the words behind its own name.
pub fn main(words: &[OsString]) -> ExitCode {
    let Some(orders) = Orders::parse(words) else {
        return failed(
            NO_WALL,
            OsStr::new("rocco executor-wall"),
            "it is for the executor alone",
        );
    };
    let program = orders.argv[0].clone();
    if let Err(what) = orders.give_up() {
        return failed(NO_WALL, &program, &what);
    }
    let mut command = Command::new(&program);
    command.args(&orders.argv[1..]);
    match orders.first {
        false => failed(NOT_STARTED, &program, &command.exec().to_string()),
        true => match start_within(&mut command) {
            Ok(child) => ExitCode::from(tell(attend(child.id()))),
            Err(error) => failed(NOT_STARTED, &program, &error.to_string()),
        },
    }
}

/// Starts the program without the stdout of this process.
fn start_within(command: &mut Command) -> io::Result<Child> {
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    command.stdout(output).spawn()
}

fn failed(code: u8, program: &OsStr, what: &str) -> ExitCode {
    // Nobody may be there to read it.
    let _ = writeln!(
        io::stderr(),
        "rocco: {} cannot be started: {what}",
        program.display()
    );
    ExitCode::from(code)
}

/// Waits for the program, and takes in whatever else ends meanwhile. Gives nothing if the system
/// does not tell how the program ended.
fn attend(program: u32) -> Option<ExitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == program => {
                return Some(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Tells how the program ended: the signal in a byte on stdout, and the exit code, which is for a
/// signal 128 and its number, as shells have it.
fn tell(status: Option<ExitStatus>) -> u8 {
    let Some(status) = status else { return NO_WALL };
    if let Some(signal) = status.signal().and_then(|signal| u8::try_from(signal).ok()) {
        let mut report = io::stdout();
        // Without an executor nobody reads it.
        let _ = report.write_all(&[signal]).and_then(|()| report.flush());
        return SIGNAL_BASE.saturating_add(signal);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_read_back() {
        let view = View {
            readable: vec!["/r".into()],
            writable: vec!["/w".into(), "/w\u{1}".into()],
            tmp: "/w".into(),
            dir: "/w".into(),
            network: true,
            unix_sockets: false,
        };
        let bounds = Bounds::default();
        let command: Vec<OsString> = ["x", "--y", "--"].map(OsString::from).into();
        let words = argv(
            Walls::Landlock,
            &view,
            bounds,
            Path::new("/rocco"),
            &command,
        );
        assert_eq!(words[..2], ["/rocco", COMMAND].map(OsString::from));
        let orders = Orders::parse(&words[2..]).expect("orders");
        assert_eq!(orders.readable, view.readable);
        assert_eq!(orders.writable, view.writable);
        assert_eq!(orders.argv, command);
        assert!(orders.confined && orders.landlock && orders.internet);
        assert!(!orders.first && !orders.unix_sockets);

        let words = argv(Walls::Both, &view, bounds, Path::new("/rocco"), &command);
        assert_eq!(words[0], "bwrap");
        assert!(words.contains(&"--first".into()) && words.ends_with(&command));
        assert_eq!(Orders::parse(&["--".into()]), None);
        assert_eq!(
            Orders::parse(&["--odd".into(), "--".into(), "x".into()]),
            None
        );
    }
}
