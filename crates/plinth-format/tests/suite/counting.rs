//! How much memory this thread has taken and not given back.
#![allow(unsafe_code, clippy::cast_possible_wrap, unreachable_pub, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// The most that this thread had at once while something was done, beyond what it had before.
#[allow(dead_code, reason = "not all suites that count ask for it")]
pub fn peak_of(work: impl FnOnce()) -> i64 {
    let before = live();
    PEAK.set(before);
    work();
    PEAK.get() - before
}

/// Bytes that this thread has allocated beyond those it has freed.
pub fn live() -> i64 {
    LIVE.get()
}

fn count(bytes: i64) {
    // A thread that ends has no counter any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as promised to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as promised to us.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
