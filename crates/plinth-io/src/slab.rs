//! Memory that reads go into: large aligned slabs, cut into extents.
//!
//! A device moves bytes faster into memory that lies together, so a slab starts at a huge page's boundary and asks for
//! huge pages. What it costs to get and to register such memory is paid once: extents that are given back are used again,
//! the lowest first, which is also the memory most likely still in a core's cache.
//!
//! An [`Extent`] may outlive the read that filled it: Arrow buffers borrow from it. Its slab lives as long.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut, Range, RangeTo};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex};

use arrow_buffer::Buffer;
use plinth_core::sync::lock;

/// What slabs are aligned to and multiples of: a huge page.
pub const HUGE_PAGE: usize = 2 << 20;

/// What extents are aligned to and multiples of, which is also what direct reads ask for everywhere.
pub const PAGE: usize = 4096;

/// A slab's slot in a ring's table of buffers if it has none.
const NOT_REGISTERED: u32 = u32::MAX;

/// Bytes of all slabs.
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// Bytes that the slabs of this process take and no allocator knows of: none where slabs are the allocator's.
pub fn mapped_bytes() -> u64 {
    if cfg!(unix) { MAPPED.load(Relaxed) } else { 0 }
}

/// A piece of memory that extents are cut from.
pub struct Slab {
    start: NonNull<u8>,
    len: usize,
    free: Mutex<FreeSpace>,
    /// Bytes of its extents.
    used: AtomicUsize,
    slot: AtomicU32,
    /// The process it is mapped in: a forked child does not have it.
    process: u32,
}

// SAFETY: a slab is plain memory at a fixed place. Its bytes are reached through extents only, which do not overlap, and
// each is owned by one; the rest is atomics and a lock.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    /// Maps memory for at least so many bytes.
    ///
    /// # Errors
    /// If the operating system has none.
    pub fn new(len: usize, huge_pages: bool) -> std::io::Result<Arc<Self>> {
        let len = len
            .max(1)
            .checked_next_multiple_of(HUGE_PAGE)
            .filter(|&len| isize::try_from(len).is_ok())
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        let start = map::aligned(len, huge_pages)?;
        MAPPED.fetch_add(len as u64, Relaxed);
        let free = Mutex::new(FreeSpace(vec![(0, len)]));
        let (used, slot) = (AtomicUsize::new(0), AtomicU32::new(NOT_REGISTERED));
        Ok(Arc::new(Self { start, len, free, used, slot, process: std::process::id() }))
    }

    /// Bytes.
    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// Bytes of its extents.
    pub fn used(&self) -> usize {
        // A thread that sees that an extent came back sees what was done with it, such as registering the slab for it.
        self.used.load(Acquire)
    }

    /// Cuts off an extent of at least so many bytes, if it has so many together.
    pub fn take(self: &Arc<Self>, len: usize) -> Option<Extent> {
        let len = len.max(1).checked_next_multiple_of(PAGE)?;
        if len > self.len - self.used().min(self.len) {
            return None;
        }
        let offset = lock(&self.free).take(len)?;
        self.used.fetch_add(len, Relaxed);
        Some(Extent { slab: Arc::clone(self), offset, len })
    }

    /// Whether something lies in it.
    pub(crate) fn contains(&self, at: *const u8) -> bool {
        (self.start.as_ptr() as usize..self.start.as_ptr() as usize + self.len).contains(&(at as usize))
    }

    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn slot(&self) -> Option<u16> {
        u16::try_from(self.slot.load(Relaxed)).ok()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn set_slot(&self, slot: Option<u16>) {
        self.slot.store(slot.map_or(NOT_REGISTERED, u32::from), Relaxed);
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("len", &self.len).field("used", &self.used).finish_non_exhaustive()
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // In a forked child something else may lie there by now.
        if self.process == std::process::id() {
            map::unmap(self.start, self.len);
            MAPPED.fetch_sub(self.len as u64, Relaxed);
        }
    }
}

/// Which parts of a slab no extent has: offset and length, by offset, none touching the next.
#[derive(Debug)]
struct FreeSpace(Vec<(usize, usize)>);

impl FreeSpace {
    /// The first that is large enough.
    fn take(&mut self, len: usize) -> Option<usize> {
        let i = self.0.iter().position(|&(_, free)| free >= len)?;
        let (offset, free) = self.0[i];
        if free == len {
            self.0.remove(i);
        } else {
            self.0[i] = (offset + len, free - len);
        }
        Some(offset)
    }

    fn give_back(&mut self, offset: usize, len: usize) {
        let i = self.0.partition_point(|&(start, _)| start < offset);
        self.0.insert(i, (offset, len));
        // With the one behind, then with the one before.
        for i in [i, i.wrapping_sub(1)] {
            if let (Some(&(start, len)), Some(&(next, more))) = (self.0.get(i), self.0.get(i.wrapping_add(1)))
                && start + len == next
            {
                self.0[i].1 += more;
                self.0.remove(i + 1);
            }
        }
    }
}

/// Page-aligned bytes of a slab, given back to it when dropped.
pub struct Extent {
    slab: Arc<Slab>,
    offset: usize,
    len: usize,
}

impl Extent {
    /// What it was cut from.
    pub fn slab(&self) -> &Arc<Slab> {
        &self.slab
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        // SAFETY: `offset` lies within the slab.
        unsafe { self.slab.start.as_ptr().add(self.offset) }
    }

    /// Gives the memory of its first bytes back to the system, whole pages of the system's, where it takes them. They are
    /// anything then, and take memory again where they are written to.
    pub fn discard(&mut self, first: RangeTo<usize>) {
        let len = first.end.min(self.len);
        // SAFETY: these bytes are this extent's, which no other code can reach.
        unsafe { map::discard(self.as_mut_ptr(), len) };
    }

    /// Gives an extent that is all of its slab so many bytes: those that it has, and zeros behind them. They are not copied, their pages
    /// move to where there is room. `false` if that can't be: it is as it was then.
    pub(crate) fn lengthen(&mut self, len: usize) -> bool {
        let (offset, before) = (self.offset, self.len);
        // Each extent of a slab has a part in it, so there are no others.
        let Some(slab) = Arc::get_mut(&mut self.slab) else { return false };
        let wanted = len.checked_next_multiple_of(HUGE_PAGE).filter(|&len| isize::try_from(len).is_ok());
        let (Some(wanted), 0, None) = (wanted.filter(|&len| len > before), offset, slab.slot()) else { return false };
        if before != slab.len || slab.process != std::process::id() {
            return false;
        }
        // SAFETY: the slab is a mapping of its own of this length, and this extent, which is borrowed, alone leads to it.
        let Some(start) = (unsafe { map::lengthened(slab.start, before, wanted) }) else { return false };
        MAPPED.fetch_add((wanted - before) as u64, Relaxed);
        (slab.start, slab.len, *slab.used.get_mut(), self.len) = (start, wanted, wanted, wanted);
        true
    }

    /// Its first `len` bytes from `start` on as an Arrow buffer, which keeps the extent; `None` if it has not so many.
    pub fn into_buffer(self, start: usize, len: usize) -> Option<Buffer> {
        if start.checked_add(len)? > self.len {
            return None;
        }
        let at = NonNull::from(&self[start..]).cast::<u8>();
        // SAFETY: the extent's memory is initialised (it was mapped as zeros), stays where it is and is not written to
        // for as long as the buffer holds the extent, which no other code can reach any more.
        Some(unsafe { Buffer::from_custom_allocation(at, len, Arc::new(self)) })
    }
}

impl Deref for Extent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the extent lies within the slab, its memory is initialised, and extents do not overlap.
        unsafe { std::slice::from_raw_parts(self.slab.start.as_ptr().add(self.offset), self.len) }
    }
}

impl DerefMut for Extent {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is the only way to it.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extent").field("offset", &self.offset).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        lock(&self.slab.free).give_back(self.offset, self.len);
        self.slab.used.fetch_sub(self.len, Release);
    }
}

/// The pages that lie wholly within so many bytes from an address. Pages of a system may be larger than [`PAGE`] (64 KiB on some
/// ARM), and what it is told of a part it does to the whole page, which may be another's, too.
pub fn whole_pages(address: usize, len: usize, page_size: usize) -> Range<usize> {
    let start = address.wrapping_neg() % page_size;
    let end = len.saturating_sub(address.wrapping_add(len) % page_size);
    start.min(end)..end
}

#[cfg(unix)]
mod map {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::HUGE_PAGE;

    /// Maps `len` bytes of zeros, aligned to a huge page. `len` is a multiple of that.
    pub(super) fn aligned(len: usize, huge_pages: bool) -> std::io::Result<NonNull<u8>> {
        let whole = len.checked_add(HUGE_PAGE).ok_or(std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address of the system's choice touches no other memory.
        let mapped =
            unsafe { mmap_anonymous(null_mut(), whole, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?
                .cast::<u8>();
        let before = mapped.align_offset(HUGE_PAGE);
        // SAFETY: `before` is less than a huge page, so all of this lies in the mapping just made; what is unmapped is not
        // handed out.
        unsafe {
            let start = mapped.add(before);
            if before > 0 {
                munmap(mapped.cast(), before)?;
            }
            munmap(start.add(len).cast(), HUGE_PAGE - before)?;
            advise(start, len, huge_pages);
            NonNull::new(start).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
        }
    }

    /// Asks for huge pages, and keeps the memory out of forked children: pages that a child shares would be copied when
    /// they are written to, and a read under way would go to the wrong copy.
    ///
    /// # Safety
    /// The memory is a mapping of the caller's.
    #[cfg(target_os = "linux")]
    unsafe fn advise(start: *mut u8, len: usize, huge_pages: bool) {
        use rustix::mm::{Advice, madvise};
        let pages = if huge_pages { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        for advice in [pages, Advice::LinuxDontFork] {
            // SAFETY: neither changes what the memory holds. Where it is refused, reads are slower.
            let _ = unsafe { madvise(start.cast(), len, advice) };
        }
    }

    /// Gives whole pages back: they read as zeros.
    ///
    /// # Safety
    /// The memory is a part of a mapping of the caller's, and no other code looks at it meanwhile.
    #[cfg(target_os = "linux")]
    pub(super) unsafe fn discard(start: *mut u8, len: usize) {
        use rustix::mm::{Advice, madvise};
        let pages = super::whole_pages(start as usize, len, rustix::param::page_size());
        if !pages.is_empty() {
            // SAFETY: private anonymous memory is zeros afterwards. Where it is refused, it stays as it is.
            let _ = unsafe { madvise(start.add(pages.start).cast(), pages.len(), Advice::LinuxDontNeed) };
        }
    }

    #[cfg(not(target_os = "linux"))]
    unsafe fn advise(_start: *mut u8, _len: usize, _huge_pages: bool) {}

    #[cfg(not(target_os = "linux"))]
    pub(super) unsafe fn discard(_start: *mut u8, _len: usize) {}

    /// Moves the pages of a mapping to the beginning of a longer one, aligned to a huge page as it is. `None` if the system refuses.
    ///
    /// # Safety
    /// Its `before` bytes are a mapping of the caller's, and no other code looks at them any more.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub(super) unsafe fn lengthened(start: NonNull<u8>, before: usize, len: usize) -> Option<NonNull<u8>> {
        use rustix::mm::{MremapFlags, mremap_fixed};
        let place = aligned(len, true).ok()?;
        // SAFETY: the new place is a mapping just made that gives way, and the old one is the caller's.
        let moved =
            unsafe { mremap_fixed(start.as_ptr().cast(), before, len, MremapFlags::MAYMOVE, place.as_ptr().cast()) };
        match moved {
            Ok(moved) => NonNull::new(moved.cast()),
            Err(_) => {
                unmap(place, len);
                None
            }
        }
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(super) unsafe fn lengthened(_start: NonNull<u8>, _before: usize, _len: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn unmap(start: NonNull<u8>, len: usize) {
        // SAFETY: the slab that owned the mapping is being dropped, so no extent of it is left; or none was made.
        let _ = unsafe { munmap(start.as_ptr().cast(), len) };
    }
}

#[cfg(not(unix))]
mod map {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    use super::HUGE_PAGE;

    fn layout(len: usize) -> std::io::Result<Layout> {
        Layout::from_size_align(len, HUGE_PAGE).map_err(|_| std::io::ErrorKind::OutOfMemory.into())
    }

    pub(super) fn aligned(len: usize, _huge_pages: bool) -> std::io::Result<NonNull<u8>> {
        // SAFETY: `len` is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout(len)?) }).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }

    pub(super) unsafe fn discard(_start: *mut u8, _len: usize) {}

    pub(super) unsafe fn lengthened(_start: NonNull<u8>, _before: usize, _len: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn unmap(start: NonNull<u8>, len: usize) {
        if let Ok(layout) = layout(len) {
            // SAFETY: allocated with this layout, and no extent is left.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use plinth_core::random::Random;

    use super::*;

    #[test]
    fn an_extent_that_is_a_slab_gets_longer_where_no_other_can_see_it() {
        let slab = Slab::new(HUGE_PAGE, true).unwrap();
        let mut part = slab.take(HUGE_PAGE / 2).unwrap();
        assert!(!part.lengthen(2 * HUGE_PAGE), "the slab is held");
        drop(slab);
        assert!(!part.lengthen(2 * HUGE_PAGE), "it is a part");
        let slab = Slab::new(2 * HUGE_PAGE, true).unwrap();
        let mut whole = slab.take(2 * HUGE_PAGE).unwrap();
        drop(slab);
        whole.fill(3);
        assert!(!whole.lengthen(HUGE_PAGE) && !whole.lengthen(usize::MAX));
        if cfg!(all(target_os = "linux", not(miri))) {
            assert!(whole.lengthen(4 * HUGE_PAGE + 1));
            assert_eq!(
                (whole.len(), whole.slab().byte_len(), whole.slab().used()),
                (5 * HUGE_PAGE, 5 * HUGE_PAGE, 5 * HUGE_PAGE)
            );
            assert!(whole[..2 * HUGE_PAGE].iter().all(|&byte| byte == 3));
            assert!(whole[2 * HUGE_PAGE..].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn extents_are_aligned_do_not_overlap_and_come_back() {
        let slab = Slab::new(1, true).unwrap();
        assert_eq!(slab.byte_len(), HUGE_PAGE);
        assert_eq!(slab.start() as usize % HUGE_PAGE, 0);
        let mut extents: Vec<Extent> = (0..16).map(|i| slab.take(1 + i * PAGE).unwrap()).collect();
        for (i, extent) in extents.iter_mut().enumerate() {
            assert_eq!((extent.as_ptr() as usize % PAGE, extent.len()), (0, (i + 1) * PAGE));
            extent.fill(u8::try_from(i).unwrap());
        }
        for (i, extent) in extents.iter().enumerate() {
            assert!(extent.iter().all(|&byte| usize::from(byte) == i));
        }
        assert_eq!(slab.used(), 136 * PAGE);
        // In any order.
        while !extents.is_empty() {
            extents.swap_remove(extents.len() / 3);
        }
        assert_eq!(slab.used(), 0);
        let whole = slab.take(HUGE_PAGE).unwrap();
        assert!(slab.take(1).is_none());
        drop(whole);
        assert!(slab.take(HUGE_PAGE + 1).is_none());
    }

    #[test]
    fn a_buffer_keeps_its_extent_and_points_into_it() {
        let slab = Slab::new(1, false).unwrap();
        let mut extent = slab.take(PAGE).unwrap();
        extent[100] = 7;
        let at = extent.as_ptr() as usize;
        let buffer = extent.into_buffer(100, 28).unwrap();
        assert_eq!((buffer.as_ptr() as usize, buffer[0], buffer.len()), (at + 100, 7, 28));
        let part = buffer.slice(20);
        drop(buffer);
        assert_eq!(slab.used(), PAGE);
        drop(part);
        assert_eq!(slab.used(), 0);
        assert!(slab.take(PAGE).unwrap().into_buffer(1, PAGE).is_none());
    }

    #[test]
    fn what_is_discarded_is_given_back_and_can_be_used_again() {
        let slab = Slab::new(2 * HUGE_PAGE, true).unwrap();
        let (mut first, mut second) = (slab.take(8 * PAGE).unwrap(), slab.take(8 * PAGE).unwrap());
        first.fill(1);
        second.fill(2);
        first.discard(..3 * PAGE + 5);
        #[cfg(target_os = "linux")]
        let given = whole_pages(first.as_ptr() as usize, 3 * PAGE + 5, rustix::param::page_size());
        #[cfg(not(target_os = "linux"))]
        let given = 0..0;
        assert!(first.iter().enumerate().all(|(at, &byte)| byte == u8::from(!given.contains(&at))));
        second.discard(..0);
        second.discard(..PAGE - 1);
        assert!(second.iter().all(|&byte| byte == 2));
        first.discard(..usize::MAX);
        first.fill(3);
        assert!(first.iter().all(|&byte| byte == 3) && second.iter().all(|&byte| byte == 2));
    }

    #[test]
    fn whole_pages_are_all_those_within_and_no_others() {
        let mut random = Random(3);
        for _ in 0..20_000 {
            let page_size = PAGE << random.index(5);
            let (address, len) = (random.index(64) * 1024, random.index(200) * 1024 + random.index(2));
            let pages = whole_pages(address, len, page_size);
            let within = |page: &usize| address <= page * page_size && (page + 1) * page_size <= address + len;
            let expected: Vec<usize> = (0..300 * 1024 / page_size).filter(within).collect();
            assert_eq!(pages.len(), expected.len() * page_size);
            assert!(expected.first().is_none_or(|first| address + pages.start == first * page_size));
            assert!(pages.end <= len);
        }
    }

    #[test]
    fn random_taking_and_giving_back_keeps_the_free_space_whole() {
        let slab = Slab::new(1, false).unwrap();
        let (mut held, mut random) = (Vec::new(), Random(1));
        for _ in 0..20_000 {
            if random.chance(50) || held.is_empty() {
                held.extend(slab.take(random.index(200 << 10)));
            } else {
                held.swap_remove(random.index(held.len()));
            }
            assert_eq!(slab.used(), held.iter().map(|extent: &Extent| extent.len()).sum::<usize>());
        }
        drop(held);
        assert_eq!(slab.free.lock().unwrap().0, [(0, HUGE_PAGE)]);
    }
}
