//! A control group for each program of a task, where there is a hierarchy of version 2 that the
//! executor may write (cgroups(7)): all processes of the program are bounded together, and all of
//! them are killed at once, however fast they fork.
//!
//! ```text
//!   own                        the executor's own group, as it was started
//!   own/executor               the executor, where it has moved to, so that
//!   own/rocco-PID-NUMBER       the groups of programs may be bounded
//! ```
//!
//! The guard of a program is in the group as well, so that whatever descends from it is. The
//! executor is not.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::bounds::Bounds;

/// What a group's name starts with.
const NAME: &str = "rocco-";

/// Where the executor itself moves to.
const EXECUTOR: &str = "executor";

/// The time between two tries to remove a group whose processes are dying.
const REMOVAL_TICK: Duration = Duration::from_millis(1);

/// Where the groups of programs are made.
#[derive(Debug)]
pub struct Cgroups {
    own: PathBuf,
    pid: u32,
    made: AtomicU64,
    controllers: Controllers,
}

/// Which resources a group is bounded in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Controllers {
    /// Memory.
    pub memory: bool,
    /// Processes and threads.
    pub processes: bool,
}

/// The group of a program. It is killed and removed when it is dropped.
#[derive(Debug)]
pub struct Cgroup {
    dir: PathBuf,
    removal_limit: Duration,
}

/// A bound that the processes of a group have met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// They claimed more memory than they may, and were killed.
    Memory,
    /// A process could not be started.
    Processes,
}

impl Cgroups {
    /// The groups that this process may make; none where it may make none.
    pub fn of_this_process() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::find(&mounts, &membership, std::process::id())
    }

    /// The groups that a process may make, by what is mounted (proc_pid_mounts(5)) and by the group
    /// that the process is in (cgroups(7), /proc/PID/cgroup).
    pub fn find(mounts: &str, membership: &str, pid: u32) -> Option<Self> {
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next()? == "cgroup2").then_some(place)
        })?;
        let path = membership
            .lines()
            .find_map(|line| line.strip_prefix("0::/"))?;
        let mut groups = Self {
            own: Path::new(mount).join(path),
            pid,
            made: AtomicU64::new(0),
            controllers: Controllers::default(),
        };
        groups.remove_leftovers();
        // Whether groups can be made is seen when one is.
        drop(groups.make(Bounds::default(), Duration::ZERO).ok()?);
        groups.controllers = groups.enable();
        Some(groups)
    }

    /// Which resources are bounded.
    pub fn controllers(&self) -> Controllers {
        self.controllers
    }

    /// Has the controllers count for the groups of programs, as far as this process alone decides.
    fn enable(&self) -> Controllers {
        let words = |name| fs::read_to_string(self.own.join(name)).unwrap_or_default();
        let has = |text: &str, name: &&str| {
            let mut words = text.split_whitespace();
            words.any(|word| word.trim_start_matches('+') == *name)
        };
        let offered = words("cgroup.controllers");
        let wanted = ["memory", "pids"].into_iter();
        let wanted: Vec<&str> = wanted.filter(|name| has(&offered, name)).collect();
        // Only the root of the hierarchy has processes beside groups that are bounded.
        let is_root = !self.own.join("cgroup.type").exists();
        if wanted.is_empty() || !(is_root || self.move_inward().is_ok()) {
            return Controllers::default();
        }
        let mut enabled = Controllers::default();
        for name in wanted {
            let is_set = fs::write(self.own.join("cgroup.subtree_control"), format!("+{name}"));
            match name {
                "memory" => enabled.memory = is_set.is_ok(),
                _ => enabled.processes = is_set.is_ok(),
            }
        }
        enabled
    }

    /// Moves this process out of its own group, if nobody else is in it, who would have to move as
    /// well.
    fn move_inward(&self) -> io::Result<()> {
        let all = fs::read_to_string(self.own.join("cgroup.procs"))?;
        if all.split_whitespace().ne([self.pid.to_string().as_str()]) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let inner = self.own.join(EXECUTOR);
        match fs::create_dir(&inner) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::write(inner.join("cgroup.procs"), self.pid.to_string())
    }

    /// Makes a group with bounds. When it is dropped, its removal takes so long at most.
    ///
    /// # Errors
    ///
    /// The system does not make it, or does not bound it.
    pub fn make(&self, bounds: Bounds, removal_limit: Duration) -> io::Result<Cgroup> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let dir = self.own.join(format!("{NAME}{}-{number}", self.pid));
        fs::create_dir(&dir)?;
        let group = Cgroup { dir, removal_limit };
        if let (true, Some(bytes)) = (self.controllers.memory, bounds.memory_bytes) {
            group.write("memory.max", &bytes.to_string())?;
            // Without swap a machine has no such file.
            let _ = group.write("memory.swap.max", "0");
            group.write("memory.oom.group", "1")?;
        }
        if let (true, Some(processes)) = (self.controllers.processes, bounds.processes) {
            group.write("pids.max", &processes.to_string())?;
        }
        Ok(group)
    }

    /// Kills whatever runs in any group that this executor has made.
    pub fn kill_all(&self) {
        let prefix = format!("{NAME}{}-", self.pid);
        for dir in self.groups(&prefix) {
            let _ = fs::write(dir.join("cgroup.kill"), "1");
        }
    }

    /// Removes what executors have left that were killed. A group with processes stays, and so does
    /// that of an executor that runs, which may be about to take a process in.
    fn remove_leftovers(&self) {
        for dir in self.groups(NAME) {
            let name = dir.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let maker = name.split('-').nth(1).unwrap_or_default();
            if !Path::new("/proc").join(maker).exists() {
                let _ = fs::remove_dir(&dir);
            }
        }
    }

    fn groups(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.own).into_iter().flatten().flatten();
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(prefix))
        });
        named.map(|entry| entry.path()).collect()
    }
}

impl Cgroup {
    /// Takes a process in.
    ///
    /// # Errors
    ///
    /// The system does not move it.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Kills all processes of the group at once.
    pub fn kill(&self) {
        // Before Linux 5.14 there is no such file, and the guard finds the processes.
        let _ = self.write("cgroup.kill", "1");
    }

    /// Which bound was met, if one was.
    pub fn exceeded(&self) -> Option<Exceeded> {
        let count = |file, event: &str| {
            let events = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            let mut lines = events.lines();
            lines.any(|line| {
                let count = line.strip_prefix(event);
                count.is_some_and(|count| count.starts_with(' ') && count != " 0")
            })
        };
        if count("memory.events", "oom_kill") {
            return Some(Exceeded::Memory);
        }
        count("pids.events", "max").then_some(Exceeded::Processes)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.dir.join(file), text)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.kill();
        let started = Instant::now();
        while fs::remove_dir(&self.dir).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            && started.elapsed() < self.removal_limit
        {
            thread::sleep(REMOVAL_TICK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        memory_bytes: Some(4096),
        processes: Some(7),
        open_files: None,
        file_bytes: None,
    };

    /// A directory that looks like a hierarchy: files are made where they are written.
    fn hierarchy(controllers: &str, processes: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("user/service");
        fs::create_dir_all(&own).expect("a directory");
        for (file, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.procs", processes),
            ("cgroup.type", "domain\n"),
        ] {
            fs::write(own.join(file), text).expect(file);
        }
        let place = folder.path().display();
        let mounts = format!("proc /proc proc rw 0 0\ncgroup2 {place} cgroup2 rw,nosuid 0 0\n");
        (folder, mounts)
    }

    const MEMBERSHIP: &str = "4:memory:/elsewhere\n0::/user/service\n";

    #[test]
    fn a_group_of_ones_own_is_bounded() {
        let (folder, mounts) = hierarchy("cpu memory pids\n", "12\n");
        let groups = Cgroups::find(&mounts, MEMBERSHIP, 12).expect("groups");
        let own = folder.path().join("user/service");
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        assert_eq!(read(&own.join("executor/cgroup.procs")), "12");
        let both = Controllers {
            memory: true,
            processes: true,
        };
        assert_eq!(groups.controllers(), both);
        let group = groups.make(BOUNDS, Duration::ZERO).expect("a group");
        group.add(34).expect("a member");
        for (file, text) in [
            ("memory.max", "4096"),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", "7"),
            ("cgroup.procs", "34"),
        ] {
            assert_eq!(read(&group.dir.join(file)), text, "{file}");
        }
        groups.kill_all();
        assert_eq!(read(&group.dir.join("cgroup.kill")), "1");
    }

    #[test]
    fn what_was_met_is_read_from_the_events() {
        let (_folder, mounts) = hierarchy("memory pids\n", "12\n");
        let groups = Cgroups::find(&mounts, MEMBERSHIP, 12).expect("groups");
        let group = groups.make(BOUNDS, Duration::ZERO).expect("a group");
        assert_eq!(group.exceeded(), None);
        let say = |file, text| group.write(file, text).expect("a file");
        say(
            "memory.events",
            "low 0\nmax 9\noom 0\noom_kill 0\noom_group_kill 0\n",
        );
        say("pids.events", "max 0\n");
        assert_eq!(group.exceeded(), None);
        say("pids.events", "max 12\n");
        assert_eq!(group.exceeded(), Some(Exceeded::Processes));
        say(
            "memory.events",
            "low 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n",
        );
        assert_eq!(group.exceeded(), Some(Exceeded::Memory));
    }

    /// An executor that starts removed the new group of another one, whose agent was not started.
    #[test]
    fn only_the_groups_of_executors_that_are_gone_are_removed() {
        let (folder, mounts) = hierarchy("cpu\n", "12\n");
        let own = folder.path().join("user/service");
        let (gone, running) = (u32::MAX, std::process::id());
        for maker in [gone, running] {
            fs::create_dir(own.join(format!("rocco-{maker}-7"))).expect("a directory");
        }
        Cgroups::find(&mounts, MEMBERSHIP, 12).expect("groups");
        assert!(!own.join(format!("rocco-{gone}-7")).exists());
        assert!(own.join(format!("rocco-{running}-7")).exists());
    }

    /// A group that others are in as well is not ours to divide: no bound is claimed there.
    #[test]
    fn where_others_are_in_the_group_nothing_is_bounded_by_it() {
        for (controllers, processes) in [("memory pids\n", "12\n13\n"), ("cpu\n", "12\n")] {
            let (folder, mounts) = hierarchy(controllers, processes);
            let groups = Cgroups::find(&mounts, MEMBERSHIP, 12).expect("groups");
            assert_eq!(groups.controllers(), Controllers::default());
            let group = groups.make(BOUNDS, Duration::ZERO).expect("a group");
            assert!(!group.dir.join("memory.max").exists());
            assert!(!folder.path().join("user/service/executor").exists());
        }
        let (_folder, mounts) = hierarchy("memory\n", "12\n");
        assert!(Cgroups::find(&mounts, "0::/absent\n", 12).is_none());
        assert!(Cgroups::find(&mounts, "4:memory:/\n", 12).is_none());
        assert!(Cgroups::find("tmpfs /tmp tmpfs rw 0 0\n", MEMBERSHIP, 12).is_none());
    }
}
