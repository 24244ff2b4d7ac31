//! What the C library's allocator does with memory that is freed.
#![allow(unsafe_code)]

/// Lets the process keep what it frees in pieces of up to 4 MiB, and up to 64 MiB of it, for what it allocates next.
///
/// By default glibc gives pieces of 128 KiB and more back to the system at once, and the decoded values of a block are of
/// that size: each block then pays for new pages, filled with zeros, one fault at a time. For programs, at their start: a
/// library leaves this to the program it is part of. Elsewhere than on Linux with glibc it does nothing.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (what, bytes) in [(libc::M_MMAP_THRESHOLD, 4 << 20), (libc::M_TRIM_THRESHOLD, 64 << 20)] {
        // SAFETY: a plain call that sets a number; where it is refused, the default stays.
        unsafe { libc::mallopt(what, bytes) };
    }
}
