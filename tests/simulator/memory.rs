//! Counts the heap of the server, and of it alone: what the simulated system and the oracle claim
//! is left out by switching the count off while they run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNTS: Cell<bool> = const { Cell::new(false) };
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

fn add(bytes: isize) {
    if COUNTS.get() {
        LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
        PEAK_BYTES.set(PEAK_BYTES.get().max(LIVE_BYTES.get()));
    }
}

// SAFETY: every call is handed to the system's allocator as it came; only counters of the thread
// are added, which claim no memory themselves.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the conditions of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the conditions of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller keeps the conditions of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sets the count on or off while it lives.
pub struct Scope(bool);

impl Scope {
    pub fn server() -> Self {
        Self(COUNTS.replace(true))
    }

    pub fn system() -> Self {
        Self(COUNTS.replace(false))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        COUNTS.set(self.0);
    }
}

/// Forgets what was counted on this thread.
pub fn start_over() {
    LIVE_BYTES.set(0);
    PEAK_BYTES.set(0);
}

pub fn live_bytes() -> usize {
    LIVE_BYTES.get().max(0) as usize
}

pub fn peak_bytes() -> usize {
    PEAK_BYTES.get().max(0) as usize
}
