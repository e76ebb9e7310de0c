//! The socket of an executor: who may connect, and how many.

use std::fs;
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::executor::api::connection::{self, FrontIo, refusal_line};
use crate::executor::api::lines::SocketReader;
use crate::executor::api::peer::{self, Peer};
use crate::executor::daemon::{Daemon, warn};
use crate::executor::threads::{self, locked};
use crate::limits::{
    FRONT_ACCEPT_RETRY_MS, FRONT_HELLO_MS, FRONT_STALL_MS, FRONTS_MAX, FRONTS_PER_PEER_MAX,
};

/// Listens on a socket that only this user can reach.
///
/// # Errors
///
/// What is in the way, and what to do about it.
pub fn listen(path: &Path) -> Result<UnixListener, String> {
    let show = path.display();
    // A path without a directory means the current one, which is told by its name.
    let whole = std::path::absolute(path).map_err(|error| format!("{show}: {error}"))?;
    private_parent(whole.parent().unwrap_or(&whole))?;
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(format!(
                "{show} exists and is not a socket; name another path with --socket"
            ));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(format!("another process listens on {show} already"));
        }
        fs::remove_file(path).map_err(|error| format!("{show}: {error}"))?;
    }
    let listener = UnixListener::bind(path).map_err(|error| format!("{show}: {error}"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .map_err(|error| format!("{show}: {error}"))?;
    Ok(listener)
}

/// Makes the directory of the socket, or finds it closed to other users.
fn private_parent(dir: &Path) -> Result<(), String> {
    let show = dir.display();
    let of_system = |error: io::Error| format!("{show}: {error}");
    if !dir.exists() {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(dir);
        made.map_err(of_system)?;
    }
    let found = fs::metadata(dir).map_err(of_system)?;
    if found.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "{show} is open to other users: the directory of the socket needs the mode 0700; name a \
             socket in a directory of its own with --socket"
        ));
    }
    Ok(())
}

/// The places of fronts. One peer has at most a part of them, so that none locks all others out.
#[derive(Debug, Default)]
pub struct Places {
    taken: Mutex<Vec<Peer>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
struct Place<'p> {
    places: &'p Places,
    peer: Peer,
}

impl Places {
    /// Takes a place, or says why there is none.
    fn take(&self, peer: Peer) -> Result<(), String> {
        let mut taken = locked(&self.taken);
        let of_peer = taken.iter().filter(|other| other.shares_with(peer)).count();
        if taken.len() >= FRONTS_MAX {
            return Err(format!(
                "{FRONTS_MAX} clients are connected to the executor, which is the most"
            ));
        }
        if of_peer >= FRONTS_PER_PEER_MAX {
            return Err(format!(
                "one client has {FRONTS_PER_PEER_MAX} connections to the executor, which is the most"
            ));
        }
        taken.push(peer);
        Ok(())
    }

    fn give_back(&self, peer: Peer) {
        let mut taken = locked(&self.taken);
        if let Some(at) = taken.iter().position(|other| *other == peer) {
            taken.swap_remove(at);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.places.give_back(self.peer);
    }
}

/// Takes in connections of this user for as long as the process lives.
pub fn accept(daemon: &Arc<Daemon>, listener: &UnixListener) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => admit(daemon, stream),
            // Descriptors may be short for a moment.
            Err(_) => std::thread::sleep(Duration::from_millis(FRONT_ACCEPT_RETRY_MS)),
        }
    }
}

/// Gives a connection a place and a thread. One that gets neither is told why and closed.
fn admit(daemon: &Arc<Daemon>, stream: UnixStream) {
    let Some(peer) = peer::of(&stream) else {
        return;
    };
    if let Err(why) = daemon.places.take(peer) {
        return refuse(&stream, &why);
    }
    // Dropped with the thread, also with one that was never started.
    let stream = Arc::new(stream);
    let started = {
        let (daemon, stream) = (Arc::clone(daemon), Arc::clone(&stream));
        threads::start("front", move || {
            let place = Place {
                places: &daemon.places,
                peer,
            };
            if let Err(error) = serve(&daemon, &stream, peer) {
                refuse(&stream, &format!("the executor cannot serve now: {error}"));
            }
            drop(place);
        })
    };
    if let Err(error) = started {
        daemon.places.give_back(peer);
        refuse(&stream, &format!("the executor cannot serve now: {error}"));
    }
}

fn serve(daemon: &Arc<Daemon>, stream: &Arc<UnixStream>, peer: Peer) -> io::Result<()> {
    // One that takes nothing for so long would hold its place and its replies for ever.
    stream.set_write_timeout(Some(Duration::from_millis(FRONT_STALL_MS)))?;
    let io = FrontIo {
        reader: BufReader::new(SocketReader::new(Arc::clone(stream))),
        writer: Box::new(stream.try_clone()?),
        hello_by: Some(Instant::now() + Duration::from_millis(FRONT_HELLO_MS)),
        socket: Some(Arc::clone(stream)),
        without_say: match peer {
            Peer::Inside(why) => Some(why),
            Peer::Outside(_) => None,
        },
    };
    connection::serve(daemon, io)
}

/// Tells a peer in one line why it is not served, if that can be done without waiting.
fn refuse(stream: &UnixStream, why: &str) {
    let told = stream
        .set_nonblocking(true)
        .and_then(|()| (&*stream).write_all(refusal_line(why).as_bytes()));
    if let Err(error) = told {
        warn(&format!("a client was not told why it is refused: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_cannot_take_every_place() {
        let places = Places::default();
        for _ in 0..FRONTS_PER_PEER_MAX {
            places.take(Peer::Inside(peer::OF_TASK)).unwrap();
        }
        let refused = places.take(Peer::Inside(peer::UNPLACED)).unwrap_err();
        assert!(refused.starts_with("one client has"), "{refused}");
        let mut pid = 2;
        while places.take(Peer::Outside(pid)).is_ok() {
            pid += 1;
        }
        assert_eq!(pid as usize - 2, FRONTS_MAX - FRONTS_PER_PEER_MAX);
        places.give_back(Peer::Outside(2));
        assert!(places.take(Peer::Outside(1)).is_ok());
    }
}
