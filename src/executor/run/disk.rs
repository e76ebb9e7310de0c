//! Watches the disk while a program of a task runs: what the task takes, and what is left to all.
//!
//! The directory of the task is measured in steps of some milliseconds, one a tick, and the file
//! system is asked at each tick. Whatever a program hides from the measurement, such as a file
//! without a name, it cannot hide from the file system. What the agent has left is measured once,
//! where the programs after it cannot change it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::executor::schedule::queue::StopReason;
use crate::executor::store::measurement::{Closed, Measurement};
use crate::executor::store::state_dir::WORK;
use crate::limits::{TASK_DISK_REST_MS, TASK_DISK_STEP_MS, TASK_TICK_MS};

/// Bounds on the disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskBounds {
    /// What all files of a task may take together: its clone, homes, temporary files and logs.
    pub task_bytes_max: u64,
    /// What has to be free on the file system of the state directory, or no program runs.
    pub free_bytes_min: u64,
}

impl DiskBounds {
    /// Whether too little is free where a directory lies. What the system does not tell is enough.
    pub fn is_full(self, dir: &Path) -> bool {
        self.is_too_full_for(dir, 0)
    }

    /// Whether too little were free where a directory lies, if so many bytes were written there.
    pub fn is_too_full_for(self, dir: &Path, bytes: u64) -> bool {
        let found = rustix::fs::statvfs(dir);
        found.is_ok_and(|found| {
            let free = u128::from(found.f_bavail) * u128::from(found.f_frsize);
            let wanted = u128::from(self.free_bytes_min) + u128::from(bytes);
            // A file system that has no size at all has no bound either.
            let is_full = found.f_blocks > 0 && free < wanted;
            is_full || lacks_files(found.f_files, found.f_favail)
        })
    }
}

/// Whether a file system has room for so few further files that other programs would soon find
/// none: for less than one in a hundred of all. One that tells no number has no bound.
fn lacks_files(all: u64, free: u64) -> bool {
    all > 0 && free < all / 100
}

/// What programs of an agent write, in the directory of the task, and what was moved out of that.
const OF_AGENT: [&str; 4] = [WORK, "home", "tmp", "nested"];

/// The watch over one task while one of its programs runs.
#[derive(Debug)]
pub struct DiskWatch {
    dir: PathBuf,
    bounds: DiskBounds,
    /// What the agent has left takes so much, and is not measured. None if it is to be measured.
    left_bytes: Option<u64>,
    measurement: Measurement,
    begun: Instant,
    next: Instant,
}

impl DiskWatch {
    /// Watches a directory from a time on. What the agent has left takes `left_bytes`, if that is
    /// known, and the program that is watched cannot change it.
    pub fn new(dir: &Path, bounds: DiskBounds, left_bytes: Option<u64>, now: Instant) -> Self {
        Self {
            dir: dir.to_owned(),
            bounds,
            left_bytes,
            measurement: measurement_of(dir, left_bytes.is_some()),
            begun: now,
            next: now,
        }
    }

    /// Looks, if it is time to: why the task is to end, if it is. One look takes some milliseconds
    /// at most.
    pub fn look(&mut self, now: Instant) -> Option<StopReason> {
        if now < self.next {
            return None;
        }
        self.next = now + Duration::from_millis(TASK_TICK_MS);
        if self.bounds.is_full(&self.dir) {
            return Some(StopReason::DiskFull);
        }
        let is_done = self.step(now);
        if self.is_exceeded() {
            return Some(StopReason::Disk);
        }
        if is_done {
            // A large tree is measured as often as a small part of the time allows.
            let took = now - self.begun;
            self.next = now + took.max(Duration::from_millis(TASK_DISK_REST_MS));
            self.begin(self.next);
        }
        None
    }

    /// Measures from the start to the end, when the program has ended. It gives up as soon as the
    /// result is no longer wanted.
    pub fn look_at_the_end(&mut self, is_wanted: impl Fn() -> bool) -> Option<StopReason> {
        if self.bounds.is_full(&self.dir) {
            return Some(StopReason::DiskFull);
        }
        self.begin(Instant::now());
        let mut is_done = false;
        while !is_done && !self.is_exceeded() && is_wanted() {
            is_done = self.step(Instant::now());
        }
        self.is_exceeded().then_some(StopReason::Disk)
    }

    fn begin(&mut self, at: Instant) {
        self.begun = at;
        self.measurement = measurement_of(&self.dir, self.left_bytes.is_some());
    }

    fn step(&mut self, now: Instant) -> bool {
        let until = now + Duration::from_millis(TASK_DISK_STEP_MS);
        self.measurement.advance(until)
    }

    fn is_exceeded(&self) -> bool {
        let bytes = self.measurement.bytes();
        bytes.saturating_add(self.left_bytes.unwrap_or(0)) > self.bounds.task_bytes_max
    }
}

/// Begins to measure the directory of a task, with what the agent has left or without.
fn measurement_of(dir: &Path, without_left: bool) -> Measurement {
    let measurement = Measurement::of(dir, Closed::Skipped);
    match without_left {
        true => measurement.without(&OF_AGENT),
        false => measurement,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_task_over_its_bound_and_a_full_disk_are_two_reasons() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), vec![1; 1 << 20]).expect("a file");
        let watch = |task_bytes_max, free_bytes_min| {
            let bounds = DiskBounds {
                task_bytes_max,
                free_bytes_min,
            };
            DiskWatch::new(folder.path(), bounds, None, Instant::now())
        };
        let now = Instant::now() + Duration::from_secs(1);
        assert_eq!(watch(2 * MIB, 0).look(now), None);
        assert_eq!(watch(MIB / 2, 0).look(now), Some(StopReason::Disk));
        let full = Some(StopReason::DiskFull);
        assert_eq!(watch(2 * MIB, u64::MAX).look(now), full);
        let small = DiskBounds {
            task_bytes_max: 0,
            free_bytes_min: 0,
        };
        assert!(!small.is_too_full_for(folder.path(), 1));
        assert!(small.is_too_full_for(folder.path(), u64::MAX));
        assert_eq!(watch(2 * MIB, 0).look_at_the_end(|| true), None);
        let exceeded = Some(StopReason::Disk);
        assert_eq!(watch(MIB / 2, 0).look_at_the_end(|| true), exceeded);
        assert_eq!(watch(MIB / 2, 0).look_at_the_end(|| false), None);
        assert_eq!(watch(2 * MIB, u64::MAX).look_at_the_end(|| true), full);
    }

    /// Empty files, which take no block, used up all that a file system has room for.
    #[test]
    fn a_file_system_may_be_full_of_empty_files() {
        assert!(lacks_files(4000, 39) && !lacks_files(4000, 40));
        assert!(!lacks_files(0, 0), "it tells no number");
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..300 {
            fs::write(folder.path().join(number.to_string()), "").expect("a file");
        }
        let bounds = DiskBounds {
            task_bytes_max: MIB,
            free_bytes_min: 0,
        };
        let mut watch = DiskWatch::new(folder.path(), bounds, None, Instant::now());
        assert_eq!(watch.look_at_the_end(|| true), Some(StopReason::Disk));
    }

    /// Each gate had all of the agent's files measured again.
    #[test]
    fn what_the_agent_has_left_is_measured_once_and_counts_ever_after() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |place: &str, bytes: u64| {
            let path = folder.path().join(place);
            fs::create_dir_all(path.parent().expect("above")).expect("a directory");
            fs::write(path, vec![1; usize::try_from(bytes).expect("few")]).expect("a file");
        };
        let watch = |left_bytes| {
            let bounds = DiskBounds {
                task_bytes_max: 4 * MIB,
                free_bytes_min: 0,
            };
            DiskWatch::new(folder.path(), bounds, left_bytes, Instant::now())
        };
        write("work/file", MIB);
        write("home/file", MIB);
        write("log", MIB / 2);
        let stopped = |left_bytes| watch(left_bytes).look_at_the_end(|| true);
        assert_eq!(stopped(None), None);
        assert_eq!(stopped(Some(2 * MIB)), None);
        write("work/more", 4 * MIB);
        write("gate/check/work", MIB);
        assert_eq!(stopped(Some(2 * MIB)), None);
        write("gate/tmp/file", MIB);
        assert_eq!(stopped(Some(2 * MIB)), Some(StopReason::Disk));
    }

    #[test]
    fn what_is_written_meanwhile_is_found_at_the_next_look() {
        let folder = tempfile::tempdir().expect("a folder");
        let bounds = DiskBounds {
            task_bytes_max: MIB,
            free_bytes_min: 0,
        };
        let mut now = Instant::now();
        let mut watch = DiskWatch::new(folder.path(), bounds, None, now);
        assert_eq!(watch.look(now), None);
        fs::write(folder.path().join("file"), vec![1; 2 << 20]).expect("a file");
        let mut looks = 0;
        while watch.look(now).is_none() {
            now += Duration::from_millis(TASK_TICK_MS);
            looks += 1;
            assert!(looks < 100);
        }
        assert!(u64::from(looks as u32) * TASK_TICK_MS >= TASK_DISK_REST_MS);
    }
}
