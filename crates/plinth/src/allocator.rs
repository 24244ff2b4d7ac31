//! The program's allocator: jemalloc, which gives back what queries free, and quickly has it again.
//!
//! Chosen by measurement (ARCHITECTURE.md). A library leaves this to the program that it is part of.
#![allow(unsafe_code)]

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Freed memory goes back to the system over a second, not over ten: within a memory limit, what one operator has freed is what
/// the next one needs.
// SAFETY: jemalloc looks for this name, and finds a pointer to a string that ends with a zero.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub(crate) static CONFIGURATION: &std::ffi::CStr = c"dirty_decay_ms:1000,muzzy_decay_ms:0";

/// Within so little memory what is freed goes back at once, which costs time. What a query frees and takes again within a second
/// is otherwise held twice: a GROUP BY of text within 256 MB then holds 300 MB, with this 180.
const LITTLE: u64 = 1 << 30;

/// Has freed memory go back at once if the limit is low. Threads that exist already keep theirs for a while.
pub(crate) fn within(limit: u64) {
    if limit > LITTLE {
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
