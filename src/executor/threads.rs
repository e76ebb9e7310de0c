//! Threads, whose start may fail, and what they share, which no failure leaves half done.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Starts a thread. The system may have none left, as when an agent forks up to the user's bound;
/// `std::thread::spawn` would panic then, and end every task.
///
/// # Errors
///
/// The system gives no thread. The error names the thread.
pub fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let started = Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| {
        let what = format!("the thread {name:?} cannot be started: {error}");
        io::Error::new(error.kind(), what)
    })
}

/// A panic is a bug of ours and ends the process (Cargo.toml, `panic`), since it leaves what all
/// threads share between two steps. The next executor puts right what this one leaves on the disk,
/// as after any other end.
const NO_PANIC: &str = "a thread that panics takes the process with it";

/// Locks a mutex.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(NO_PANIC)
}

/// Waits for a change of what a mutex holds.
pub fn wait<'m, T>(changed: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    changed.wait(guard).expect(NO_PANIC)
}

/// The same, while something holds of it, and not longer than this.
pub fn wait_for<'m, T>(
    changed: &Condvar,
    guard: MutexGuard<'m, T>,
    limit: Duration,
    holds: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'m, T> {
    changed
        .wait_timeout_while(guard, limit, holds)
        .expect(NO_PANIC)
        .0
}
