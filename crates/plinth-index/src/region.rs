//! Reserved memory: zeros that take no memory until they are written to, at addresses that stay valid whatever happens.
//!
//! An optimistic reader may look at a page after it was evicted. It then reads whatever is there now, zeros or another
//! page, as atomics, and finds out when it looks at the latch again; the address must not go away under it.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;

use crate::error::{IndexError, Result};

/// What all-zero memory is a valid value of.
///
/// # Safety
/// A value of the type may have all bytes zero, and the type has no destructor to run.
pub(crate) unsafe trait Zeroed: Send + Sync {}

// SAFETY: an atomic of zero.
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}

/// Many values in reserved memory, all zero at first.
pub(crate) struct Region<T: Zeroed> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: a region owns its values, which may be sent and shared (`Zeroed` asks for both).
unsafe impl<T: Zeroed> Send for Region<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Sync for Region<T> {}

impl<T: Zeroed> Region<T> {
    /// Reserves room for so many values.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let bytes = len.max(1).checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let refuse = |reason: &dyn fmt::Display| IndexError::NoMemory {
            bytes: len.saturating_mul(size_of::<T>()) as u64,
            reason: reason.to_string(),
        };
        let bytes = bytes.ok_or_else(|| refuse(&"there are not so many addresses"))?;
        let start = memory::reserve(bytes, align_of::<T>()).map_err(|e| refuse(&e))?;
        Ok(Self { start: start.cast(), len })
    }

    /// Makes values zero and gives their memory back, if the system takes it: all of it, or none.
    pub(crate) fn discard(&self, range: Range<usize>) -> bool {
        // SAFETY: the range is checked by the slice.
        let Some(values) = self.get(range) else { return false };
        memory::discard(values.as_ptr().cast_mut().cast(), size_of_val(values))
    }
}

impl<T: Zeroed> Deref for Region<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values lie at `start`, aligned; zero is a valid value of them (`Zeroed`), and they are only reached
        // through shared references.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zeroed> Drop for Region<T> {
    fn drop(&mut self) {
        memory::free(self.start.cast(), self.len.max(1) * size_of::<T>(), align_of::<T>());
    }
}

impl<T: Zeroed> fmt::Debug for Region<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Anonymous mappings.
#[cfg(all(target_os = "linux", not(miri)))]
mod memory {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    pub(super) fn reserve(bytes: usize, _: usize) -> std::io::Result<NonNull<u8>> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address the kernel chooses.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        NonNull::new(start.cast()).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }

    pub(super) fn discard(start: *mut u8, bytes: usize) -> bool {
        if plinth_io::whole_pages(start as usize, bytes, rustix::param::page_size()) != (0..bytes) {
            return false;
        }
        // SAFETY: whole pages of a mapping of this module's, whose values may become zero at any time (`Zeroed`) and are
        // only reached as atomics.
        unsafe { madvise(start.cast(), bytes, Advice::LinuxDontNeed).is_ok() }
    }

    pub(super) fn free(start: NonNull<u8>, bytes: usize, _: usize) {
        // SAFETY: the mapping is this region's, which is going away. It can fail only for arguments that are no mapping.
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }
}

/// The allocator, which on most systems maps memory of this size when it is written to, but takes nothing back.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod memory {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    fn layout(bytes: usize, align: usize) -> std::io::Result<Layout> {
        Layout::from_size_align(bytes, align.max(crate::page::UNIT)).map_err(std::io::Error::other)
    }

    pub(super) fn reserve(bytes: usize, align: usize) -> std::io::Result<NonNull<u8>> {
        // SAFETY: the size is not zero: `Region::new` asks for one value at least, and none is of no size.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes, align)?) })
            .ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }

    pub(super) fn discard(_: *mut u8, _: usize) -> bool {
        false
    }

    pub(super) fn free(start: NonNull<u8>, bytes: usize, align: usize) {
        if let Ok(layout) = layout(bytes, align) {
            // SAFETY: allocated with this layout by `reserve`.
            unsafe { dealloc(start.as_ptr(), layout) }
        }
    }
}
