//! Where the process stands that has connected: outside of all tasks, or inside of one. Whoever
//! cannot be placed is taken to be inside.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::event_loop::sys::{peer, pidfd};
use crate::executor::run::process;
use crate::limits::{PEER_GENERATIONS_MAX, PEER_LOOKS_MAX};

/// What runs for a task has no say in tasks: an agent would see what others do, and could end it.
pub const OF_TASK: &str = "what runs for a task has no say in tasks";

/// Neither has a process of which nobody knows where it stands.
pub const UNPLACED: &str = "the process that has connected to the executor has ended, or is not to \
                            be seen from here, so that it may run for a task and has no say in \
                            tasks: connect from a process that lives, in the executor's own PID \
                            namespace";

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Something that runs for a task, whichever process it is, or that cannot be placed: an agent
    /// may have any number of processes. With the reason for which it has no say.
    Inside(&'static str),
    /// A process of the user's.
    Outside(u32),
}

impl Peer {
    /// Whether both have the places of one peer.
    pub fn shares_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Inside(_), Self::Inside(_)) => true,
            _ => self == other,
        }
    }
}

/// Finds out who has connected. None for another user.
pub fn of(stream: &UnixStream) -> Option<Peer> {
    let (user, pid) = peer::credentials(stream).ok()?;
    if user != peer::own_user() {
        return None;
    }
    let held = match peer::process(stream) {
        // Before Linux 6.5 there is only the number, which may have passed to another process
        // before it is held here.
        Err(error) if error.raw_os_error() == Some(NO_SUCH_OPTION) => pidfd::open(pid).ok(),
        held => held.ok(),
    };
    let placed = held.and_then(|held| lineage(&held, std::process::id()));
    Some(match placed.as_deref() {
        Some([.., oldest]) if *oldest == std::process::id() => Peer::Inside(OF_TASK),
        Some([pid, ..]) => Peer::Outside(*pid),
        _ => Peer::Inside(UNPLACED),
    })
}

const NO_SUCH_OPTION: i32 = rustix::io::Errno::NOPROTOOPT.raw_os_error();

/// The process that a descriptor stands for and its ancestors, up to one of them or to the oldest.
/// None if it has ended, or does not come to an end of them.
fn lineage(held: &OwnedFd, until: u32) -> Option<Vec<u32>> {
    (0..PEER_LOOKS_MAX).find_map(|_| {
        let line = ancestors(number(held)?, until)?;
        // A number may have passed to another process while the line was read. From the oldest to
        // the youngest, and then the descriptor: each of them was the same all along if the one
        // that it has started says so afterwards.
        let mut pairs = line.windows(2).rev();
        let stands = pairs.all(|pair| process::parent(pair[0]) == Some(pair[1]))
            && number(held) == Some(line[0]);
        stands.then_some(line)
    })
}

/// A process and its ancestors, up to one of them or to the oldest that is to be seen from here.
fn ancestors(pid: u32, until: u32) -> Option<Vec<u32>> {
    let mut line = vec![pid];
    while line.len() <= PEER_GENERATIONS_MAX {
        let oldest = line[line.len() - 1];
        let parent = process::parent(oldest)?;
        if oldest == until || parent == 0 {
            return Some(line);
        }
        line.push(parent);
    }
    None
}

/// The number of the process that a descriptor stands for, while the process has one here.
fn number(held: &OwnedFd) -> Option<u32> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", held.as_raw_fd())).ok()?;
    let number = told.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // One that has ended has -1, and one in a namespace out of sight 0.
    number.trim().parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_process_is_placed_by_its_ancestors_while_it_lives() {
        let own = std::process::id();
        let mut child = sleeper();
        let pid = child.id();
        let held = pidfd::open(pid).unwrap();
        assert_eq!(lineage(&held, own), Some(vec![pid, own]));
        assert_eq!(lineage(&held, pid), Some(vec![pid]));
        // Up to the oldest, if it descends from nobody that is asked for.
        let whole = lineage(&held, u32::MAX).unwrap();
        assert_eq!(whole[..2], [pid, own]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lineage(&held, own), None);
    }

    #[test]
    fn the_number_of_one_that_has_not_been_waited_for_places_nobody() {
        let mut child = sleeper();
        let held = pidfd::open(child.id()).unwrap();
        child.kill().unwrap();
        let ended = || process::parent(child.id()).is_none();
        while !ended() {
            std::thread::yield_now();
        }
        assert_eq!(lineage(&held, std::process::id()), None);
        child.wait().unwrap();
    }

    #[test]
    fn whoever_has_connected_and_lives_is_placed() {
        let (one, _other) = UnixStream::pair().unwrap();
        // This test is the executor here, so that it stands within itself.
        assert_eq!(of(&one), Some(Peer::Inside(OF_TASK)));
    }
}
