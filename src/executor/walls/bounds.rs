//! What a program of a task may use up, as far as the kernel bounds it for each process or user.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::cgroup::Controllers;
use super::standing::Walls;
use crate::limits::{TASK_QUEUES_BYTES_MAX, TASK_SIGNALS_MAX};
use crate::wire::writer::ObjectWriter;

/// The bounds. None stands for what the system allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Memory in bytes: that one process may claim and, in a control group, all together.
    pub memory_bytes: Option<u64>,
    /// Processes and threads that the program may have beside those that its user has already.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// The length of one file, in bytes.
    pub file_bytes: Option<u64>,
}

impl Bounds {
    /// The bounds as words of a command line.
    pub fn to_word(self) -> OsString {
        let number = |bound: Option<u64>| bound.map_or("-".to_owned(), |bound| bound.to_string());
        let all = [
            self.memory_bytes,
            self.processes,
            self.open_files,
            self.file_bytes,
        ];
        all.map(number).join(",").into()
    }

    /// The bounds that a word says.
    pub fn parse(word: &OsStr) -> Option<Self> {
        let mut numbers = word.to_str()?.split(',').map(|number| match number {
            "-" => Some(None),
            number => number.parse().ok().map(Some),
        });
        let mut next = || numbers.next().flatten();
        Some(Self {
            memory_bytes: next()?,
            processes: next()?,
            open_files: next()?,
            file_bytes: next()?,
        })
    }

    /// Bounds this process and all that it starts. The kernel counts processes by user, and
    /// `others` is how many of them are not the program's.
    ///
    /// # Errors
    ///
    /// The system does not set a bound.
    pub fn apply(self, others: u64) -> io::Result<()> {
        let processes = self.processes.map(|bound| bound.saturating_add(others));
        let bounds = [
            // Address space is reserved far beyond what is used, so that data alone is bounded.
            (Resource::Data, self.memory_bytes),
            (Resource::Nproc, processes),
            (Resource::Nofile, self.open_files),
            (Resource::Fsize, self.file_bytes),
            (Resource::Core, Some(0)),
            (Resource::Sigpending, Some(TASK_SIGNALS_MAX)),
            (Resource::Msgqueue, Some(TASK_QUEUES_BYTES_MAX)),
        ];
        for (resource, bound) in bounds {
            if let Some(bound) = bound {
                let highest = rustix::process::getrlimit(resource).maximum;
                let bound = highest.map_or(bound, |highest| bound.min(highest));
                let limit = Rlimit {
                    current: Some(bound),
                    maximum: Some(bound),
                };
                setrlimit(resource, limit)?;
            }
        }
        Ok(())
    }
}

/// Over what a bound is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All that a task has, its agent and its gates.
    Task,
    /// All processes of an agent or of a gate together.
    Program,
    /// Each process by itself.
    Process,
    /// All processes of the user together.
    User,
    /// There is no such bound.
    Nothing,
}

impl Scope {
    /// The name in a record and in `hello`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Program => "program",
            Self::Process => "process",
            Self::User => "user",
            Self::Nothing => "none",
        }
    }
}

/// Over what each bound is counted on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Of memory.
    pub memory: Scope,
    /// Of processes and threads.
    pub processes: Scope,
    /// Of open files, and of the length of a file.
    pub files: Scope,
}

impl Reach {
    /// What resource limits reach within these walls, for an executor of root or of another user.
    pub fn of_limits(walls: Walls, is_root: bool) -> Self {
        // Root may raise its own limits, as long as no wall takes that right away, and its
        // processes are not counted.
        let each = match is_root && walls == Walls::Neither {
            true => Scope::Nothing,
            false => Scope::Process,
        };
        let processes = match (is_root, walls.has_bubblewrap()) {
            (true, _) => Scope::Nothing,
            // A namespace of the program's own has a count of its own.
            (false, true) => Scope::Program,
            (false, false) => Scope::User,
        };
        Self {
            memory: each,
            processes,
            files: each,
        }
    }

    /// What is reached where each program is in a control group with these controllers.
    pub fn in_cgroup(self, controllers: Controllers) -> Self {
        let by = |is_counted, scope| if is_counted { Scope::Program } else { scope };
        Self {
            memory: by(controllers.memory, self.memory),
            processes: by(controllers.processes, self.processes),
            files: self.files,
        }
    }

    /// Each bound by its name in a record and in `hello`.
    pub fn named(self) -> [(&'static str, Scope); 5] {
        [
            ("memory", self.memory),
            ("processes", self.processes),
            ("open_files", self.files),
            ("file_size", self.files),
            ("disk", Scope::Task),
        ]
    }

    /// Writes the members of an object.
    pub fn write(self, object: &mut ObjectWriter<'_>) {
        for (name, scope) in self.named() {
            object.string(name, scope.name());
        }
    }
}

/// How many processes and threads the user of this process has, as far as /proc shows.
pub fn processes_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_processes = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str()
            .is_some_and(|name| name.parse::<u32>().is_ok())
    });
    let threads = of_processes.filter_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        threads_of(&status, user)
    });
    threads.sum()
}

/// The threads of a process by its status, if it is one of the user's (proc_pid_status(5)).
fn threads_of(status: &str, user: u32) -> Option<u64> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let real_user: u32 = field("Uid:")?.split_whitespace().next()?.parse().ok()?;
    let threads = field("Threads:")?.trim().parse().ok()?;
    (real_user == user).then_some(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_read_back() {
        for bounds in [
            Bounds::default(),
            Bounds {
                memory_bytes: Some(1 << 32),
                processes: Some(512),
                open_files: None,
                file_bytes: Some(0),
            },
        ] {
            assert_eq!(Bounds::parse(&bounds.to_word()), Some(bounds));
        }
        for word in ["", "1,2,3", "1,2,3,x"] {
            assert_eq!(Bounds::parse(OsStr::new(word)), None, "{word}");
        }
    }
    #[test]
    fn a_thread_is_counted_for_its_user() {
        let status = "Name:\tx\nUid:\t7\t8\t8\t8\nThreads:\t3\n";
        assert_eq!(threads_of(status, 7), Some(3));
        assert_eq!(threads_of(status, 8), None);
        assert_eq!(threads_of("Name:\tUid:\t7\n", 7), None);
        assert!(processes_of_user() >= 1);
    }

    /// A bound that does not hold is said, and never claimed.
    #[test]
    fn what_is_not_bounded_is_said() {
        use Scope::{Nothing, Process, Program, User};
        for (walls, is_root, memory, processes) in [
            (Walls::Both, false, Process, Program),
            (Walls::Bubblewrap, false, Process, Program),
            (Walls::Landlock, false, Process, User),
            (Walls::Neither, false, Process, User),
            (Walls::Both, true, Process, Nothing),
            (Walls::Landlock, true, Process, Nothing),
            (Walls::Neither, true, Nothing, Nothing),
        ] {
            let reach = Reach::of_limits(walls, is_root);
            assert_eq!(
                (reach.memory, reach.processes),
                (memory, processes),
                "{walls}"
            );
            let counted = reach.in_cgroup(Controllers {
                memory: false,
                processes: true,
            });
            assert_eq!((counted.memory, counted.processes), (memory, Program));
        }
    }
    #[test]
    fn the_description_of_the_protocol_has_every_bound_and_every_scope() {
        let page = include_str!("../../executor_protocol/protocol.md");
        let row = page.lines().find(|line| line.starts_with("| `bounds` |"));
        let row = row.expect("a row");
        let of_bounds = Reach::of_limits(Walls::Both, false).named();
        let scopes = [
            Scope::Task,
            Scope::Program,
            Scope::Process,
            Scope::User,
            Scope::Nothing,
        ];
        let names = of_bounds.map(|(name, _)| name).into_iter();
        for word in names.chain(scopes.map(Scope::name)) {
            assert!(row.contains(&format!("`{word}`")), "{word}");
        }
    }
}
