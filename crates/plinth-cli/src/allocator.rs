//! The program's allocator: on Linux jemalloc, which gives back what queries free, and quickly has it again; elsewhere the system's.
//! What is allocated is counted, so that a memory limit holds for what no operator asks for, too.
//!
//! Chosen by measurement (ARCHITECTURE.md), on Linux. A library leaves this to the program that it is part of.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use system::Allocator;
pub(crate) use system::within;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// The allocator, and a count of the bytes it has given out.
struct Counted;

/// Bytes that threads have told of.
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

/// What a thread allocates before it tells: the count is wrong by that much a thread, and costs next to nothing.
const UNTOLD: i64 = 64 << 10;

thread_local! {
    /// What this thread has allocated, less what it has freed, and not yet told of. Without a destructor it can be used at any time.
    static MINE: Cell<i64> = const { Cell::new(0) };
}

/// Counts bytes that came, or went if there are less than none.
#[inline]
fn count(bytes: i64) {
    // A thread that ends has told of all but a little.
    let _ = MINE.try_with(|mine| {
        let sum = mine.get() + bytes;
        if sum.abs() < UNTOLD {
            mine.set(sum);
        } else {
            mine.set(0);
            ALLOCATED.fetch_add(sum, Relaxed);
        }
    });
}

/// A size as a difference. No allocation is larger than `isize::MAX`.
#[inline]
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Bytes that are allocated.
pub(crate) fn allocated() -> u64 {
    u64::try_from(ALLOCATED.load(Relaxed)).unwrap_or(0)
}

// SAFETY: each call goes to the allocator as it came, and what that returns is returned; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counted {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { Allocator.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { Allocator.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { Allocator.dealloc(start, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(signed(new_size) - signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { Allocator.realloc(start, layout, new_size) }
    }
}

/// Within so little memory what a query frees goes back at once, which costs time. What it frees and takes again within a second is otherwise
/// held twice: a GROUP BY of text within 256 MB then holds 300 MB, with this 180.
pub(crate) const LITTLE: u64 = 1 << 30;

/// The same of an import, which holds half of what it may: to give back at once took half of its time at 1 GB.
pub(crate) const LITTLE_OF_IMPORTS: u64 = 256 << 20;

#[cfg(target_os = "linux")]
mod system {
    pub(super) use tikv_jemallocator::Jemalloc as Allocator;

    /// Freed memory goes back to the system over a second, not over ten: within a memory limit, what one operator has freed is what
    /// the next one needs. That of large allocations, too: they would go back at once, and each that follows would come cleared anew.
    // SAFETY: jemalloc looks for this name, and finds a pointer to a string that ends with a zero.
    #[unsafe(export_name = "_rjem_malloc_conf")]
    pub(crate) static CONFIGURATION: &std::ffi::CStr = c"dirty_decay_ms:1000,muzzy_decay_ms:0,oversize_threshold:0";

    /// Has freed memory go back at once if the limit is no more than what is little. Threads that exist already keep theirs for a while.
    pub(crate) fn within(limit: u64, little: u64) {
        if limit > little {
            return;
        }
        for setting in [c"arenas.dirty_decay_ms", c"arena.0.dirty_decay_ms"] {
            let mut decay: isize = 0;
            let value = std::ptr::from_mut(&mut decay).cast();
            // SAFETY: both settings take a number of this size; nothing is asked for in return. If there is no such setting, jemalloc
            // says so, and all stays as it was.
            unsafe {
                let (no_value, no_len) = (std::ptr::null_mut(), std::ptr::null_mut());
                tikv_jemalloc_sys::mallctl(setting.as_ptr(), no_value, no_len, value, size_of::<isize>());
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) use std::alloc::System as Allocator;

    /// Nothing: how soon freed memory goes back is the system's affair.
    pub(crate) fn within(_limit: u64, _little: u64) {}
}
