//! A frame: room for a page, and what is known of the page in it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};

use crate::latch::Latch;
use crate::page::{Page, Swip};
use crate::region::Zeroed;

/// What is known of a page in memory: one cache line. All of it is zero in a frame that was never used.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Frame<L> {
    /// Protects the page and everything here that says so.
    pub(crate) latch: L,
    /// Where the page was written last, or will be first. Changes while the latch is held.
    pub(crate) home: AtomicU64,
    /// The home that its parent's image names. Changes while the parent's latch is held.
    pub(crate) named: AtomicU64,
    /// The word its parent holds. Changes while the parent's latch is held.
    pub(crate) word: AtomicU64,
    /// The frame of its parent, as a word. Changes while the parent's latch is held.
    pub(crate) parent: AtomicU64,
    /// Children in memory. Changes while the latch is held.
    pub(crate) children: AtomicU32,
    /// Who is about to put a child below it, and wants to find it then.
    pins: AtomicU32,
    /// Whose page it is, plus one; 0 if it is free. Changes while the latch is held.
    owner: AtomicU32,
    /// Whether storage has another state of the page. Set while the latch is held.
    pub(crate) dirty: AtomicBool,
    /// Whether it is being written to storage.
    pub(crate) cleaning: AtomicBool,
    /// Whether it was used since the clock's hand came by.
    hot: AtomicBool,
    /// Whether the clock has it.
    pub(crate) queued: AtomicBool,
}

// SAFETY: a latch of zero bytes is valid (`Latch`), and so are atomics.
#[allow(unsafe_code)]
unsafe impl<L: Latch> Zeroed for Frame<L> {}

impl<L> Frame<L> {
    /// Notes a use. Reads first, so that a cache line which many threads use stays with all of them.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.hot.load(Relaxed) {
            self.hot.store(true, Relaxed);
        }
    }

    /// Whether a child is about to be put below it. Its latch is held.
    pub(crate) fn is_pinned(&self) -> bool {
        // A thread that pins it looks at the latch afterwards; here it is the other way round, so one of the two sees the other.
        fence(SeqCst);
        self.pins.load(Relaxed) > 0
    }

    pub(crate) fn cool(&self) -> bool {
        self.hot.swap(false, Relaxed)
    }

    pub(crate) fn owner(&self) -> Option<u32> {
        self.owner.load(Relaxed).checked_sub(1)
    }

    pub(crate) fn set_owner(&self, owner: Option<u32>) {
        self.owner.store(owner.map_or(0, |o| o + 1), Relaxed);
    }

    pub(crate) fn home(&self) -> Swip {
        Swip(self.home.load(Relaxed))
    }

    /// Whether the image of its parent names another home.
    pub(crate) fn has_moved(&self) -> bool {
        self.home.load(Relaxed) != self.named.load(Relaxed)
    }
}

/// A frame with its page.
#[derive(Debug)]
pub(crate) struct Node<'p, L> {
    /// Its name.
    pub(crate) swip: Swip,
    pub(crate) frame: &'p Frame<L>,
    pub(crate) page: Page<'p>,
}

impl<L> Clone for Node<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Node<'_, L> {}

/// A node that is being read. What was read counts once [`Reading::check`] has said so.
#[derive(Debug)]
pub(crate) struct Reading<'p, L: Latch> {
    pub(crate) node: Node<'p, L>,
    ticket: L::Ticket,
}

impl<'p, L: Latch> Reading<'p, L> {
    #[inline]
    pub(crate) fn begin(node: Node<'p, L>, shared: bool) -> Self {
        let ticket = if shared { node.frame.latch.read_shared() } else { node.frame.latch.read() };
        Self { node, ticket }
    }

    #[inline]
    pub(crate) fn check(&self) -> bool {
        self.node.frame.latch.check(self.ticket)
    }

    /// Goes on as the writer, if no other has written meanwhile.
    pub(crate) fn upgrade(self) -> Option<Writing<'p, L>> {
        let (node, ticket) = (self.node, self.ticket);
        std::mem::forget(self);
        // Only then is there a `Writing`: dropping one unlocks, even what another holds.
        node.frame.latch.upgrade(ticket).then(|| Writing { node })
    }
}

/// Keeps a page in memory.
#[derive(Debug)]
pub(crate) struct Pin<'p, L>(&'p Frame<L>);

impl<'p, L: Latch> Pin<'p, L> {
    /// Of the page that is being read, if no other has written meanwhile.
    pub(crate) fn new(reading: &Reading<'p, L>) -> Option<Self> {
        reading.node.frame.pins.fetch_add(1, Relaxed);
        fence(SeqCst);
        let pin = Self(reading.node.frame);
        reading.check().then_some(pin)
    }
}

impl<L> Drop for Pin<'_, L> {
    fn drop(&mut self) {
        self.0.pins.fetch_sub(1, Relaxed);
    }
}

impl<L: Latch> Drop for Reading<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.node.frame.latch.release(self.ticket);
    }
}

/// A node that no other thread reads or writes.
#[derive(Debug)]
pub(crate) struct Writing<'p, L: Latch> {
    pub(crate) node: Node<'p, L>,
}

impl<'p, L: Latch> Writing<'p, L> {
    pub(crate) fn begin(node: Node<'p, L>) -> Self {
        node.frame.latch.lock();
        Self { node }
    }

    /// As [`Writing::begin`], unless that takes long.
    pub(crate) fn begin_soon(node: Node<'p, L>) -> Option<Self> {
        for turn in 1..10_000_i32 {
            if node.frame.latch.try_lock() {
                return Some(Self { node });
            }
            if turn % 64 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        None
    }

    pub(crate) fn try_begin(node: Node<'p, L>) -> Option<Self> {
        // As in `upgrade`: not made before the latch is had.
        node.frame.latch.try_lock().then(|| Self { node })
    }

    /// Notes that storage has another state from now on.
    pub(crate) fn dirty(&self) {
        self.node.frame.dirty.store(true, Relaxed);
    }

    /// Goes on as a reader.
    pub(crate) fn downgrade(self) -> Reading<'p, L> {
        let node = self.node;
        std::mem::forget(self);
        Reading { node, ticket: node.frame.latch.downgrade() }
    }
}

impl<L: Latch> Drop for Writing<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.node.frame.latch.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::latch::Hybrid;

    #[test]
    fn who_does_not_get_a_latch_leaves_it_to_its_holder() {
        let latch = Hybrid::new();
        let zero = || AtomicU64::new(0);
        let flag = || AtomicBool::new(false);
        let frame = Frame {
            latch,
            home: zero(),
            named: zero(),
            word: zero(),
            parent: zero(),
            children: AtomicU32::new(0),
            pins: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            dirty: flag(),
            cleaning: flag(),
            hot: flag(),
            queued: flag(),
        };
        let node = Node { swip: Swip(0), frame: &frame, page: Page::new(&[]) };
        let reading = Reading::begin(node, false);
        let writing = Writing::begin(node);
        assert!(reading.upgrade().is_none());
        assert!(Writing::try_begin(node).is_none());
        assert!(!frame.latch.try_lock());
        drop(writing);
        assert!(frame.latch.try_lock());
    }
}
