//! Versioned latches: readers write nothing.
//!
//! A latch is one word: a version and a state. A writer of a page holds its latch exclusively and leaves with the next
//! version. A reader notes the version, reads, and asks whether the version is still that: if so, what it read was one state
//! of the page; if not, it forgets what it read and starts again. A reader that had to start again too often, or reads for
//! long, takes the latch shared, which keeps writers out and other readers unbothered.
//! (Leis, Haubenschild, Neumann, "Optimistic Lock Coupling", IEEE DEB 2019; Böttcher et al., "Scalable and Robust Latches",
//! DaMoN 2020.)
//!
//! What orders the reads of a page and of its version (Boehm, "Can seqlocks get along with programming language memory
//! models?", MSPC 2012): the words of a page are atomics, loaded and stored relaxed. A writer's release fence stands between
//! taking the latch and its stores, a reader's acquire fence between its loads and the second look at the version. So a
//! reader that saw any of the stores sees that the latch was taken.

use crate::sync::{AtomicU64, Ordering, fence, spin_loop, yield_now};

/// What protects a page. The index is generic over it, so that kinds of latches can be compared.
///
/// An exclusive holder releases with [`Latch::unlock`] or [`Latch::downgrade`]; a reader's ticket is given back with
/// [`Latch::release`] or [`Latch::upgrade`], once.
///
/// # Safety
/// While one thread holds a latch exclusively, no other does, and no [`Latch::check`] of a ticket from before it is true
/// afterwards. A latch whose bytes are all zero is a valid, free latch.
#[allow(unsafe_code)]
pub unsafe trait Latch: Send + Sync + 'static {
    /// What a reader holds.
    type Ticket: Copy;

    /// Whether readers keep no thread out, themselves included: then one thread may read many pages at once.
    const IS_OPTIMISTIC: bool;

    /// Begins to read, once no thread writes.
    fn read(&self) -> Self::Ticket;

    /// Begins to read such that no thread writes until the ticket is given back.
    fn read_shared(&self) -> Self::Ticket;

    /// Whether no thread has written since the ticket was had.
    fn check(&self, ticket: Self::Ticket) -> bool;

    /// Ends reading.
    fn release(&self, ticket: Self::Ticket);

    /// Ends reading and begins to write, if no thread has written since and no other holds the latch.
    fn upgrade(&self, ticket: Self::Ticket) -> bool;

    /// Begins to write, once no other thread holds the latch.
    fn lock(&self);

    /// Begins to write if no other thread holds the latch.
    fn try_lock(&self) -> bool;

    /// Ends writing.
    fn unlock(&self);

    /// Ends writing and begins to read what was written.
    fn downgrade(&self) -> Self::Ticket;
}

/// The latch of this crate: optimistic, with a shared fall-back.
#[derive(Debug)]
#[repr(transparent)]
pub struct Hybrid(AtomicU64);

/// The lower 16 bits: 0 if free, the number of shared holders, or this.
const EXCLUSIVE: u64 = 0xffff;
const STATE: u64 = 0xffff;
const VERSION: u64 = 1 << 16;

/// What a reader of a [`Hybrid`] holds: a version, or a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// The latch's word without its state.
    Version(u64),
    /// One of the shared holders.
    Shared,
}

/// Waits for a holder, which never waits for a device: it is done soon, unless it is not running.
fn pause(turn: &mut u32) {
    *turn += 1;
    if (*turn).is_multiple_of(64) { yield_now() } else { spin_loop() }
}

impl Hybrid {
    /// A free latch.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn take(&self, free: u64) -> bool {
        let taken = self.0.compare_exchange(free, free | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            // Before the stores to the page: who sees one of them sees the latch taken.
            fence(Ordering::Release);
        }
        taken
    }
}

impl Default for Hybrid {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: `take` succeeds for one thread only, from a free state, and until `unlock` or `downgrade` no other succeeds, as the
// state is not free; these two raise the version, which `check` compares. Zero is free, at version 0.
#[allow(unsafe_code)]
unsafe impl Latch for Hybrid {
    type Ticket = Ticket;
    const IS_OPTIMISTIC: bool = true;

    #[inline]
    fn read(&self) -> Ticket {
        let mut turn = 0;
        loop {
            let word = self.0.load(Ordering::Acquire);
            if word & STATE != EXCLUSIVE {
                return Ticket::Version(word & !STATE);
            }
            pause(&mut turn);
        }
    }

    fn read_shared(&self) -> Ticket {
        let mut turn = 0;
        loop {
            let word = self.0.load(Ordering::Relaxed);
            let free = word & STATE < EXCLUSIVE - 1;
            if free && self.0.compare_exchange(word, word + 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ticket::Shared;
            }
            pause(&mut turn);
        }
    }

    #[inline]
    fn check(&self, ticket: Ticket) -> bool {
        let Ticket::Version(version) = ticket else { return true };
        fence(Ordering::Acquire);
        let word = self.0.load(Ordering::Relaxed);
        word & !STATE == version && word & STATE != EXCLUSIVE
    }

    #[inline]
    fn release(&self, ticket: Ticket) {
        if ticket == Ticket::Shared {
            self.0.fetch_sub(1, Ordering::Release);
        }
    }

    #[inline]
    fn upgrade(&self, ticket: Ticket) -> bool {
        match ticket {
            Ticket::Version(version) => self.take(version),
            Ticket::Shared => {
                let word = self.0.load(Ordering::Relaxed);
                let upgraded = word & STATE == 1
                    && self.0.compare_exchange(word, word | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed).is_ok();
                if upgraded {
                    fence(Ordering::Release);
                } else {
                    self.release(ticket);
                }
                upgraded
            }
        }
    }

    fn lock(&self) {
        let mut turn = 0;
        while !self.try_lock() {
            pause(&mut turn);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & STATE == 0 && self.take(word)
    }

    #[inline]
    fn unlock(&self) {
        let version = self.0.load(Ordering::Relaxed) & !STATE;
        self.0.store(version.wrapping_add(VERSION), Ordering::Release);
    }

    #[inline]
    fn downgrade(&self) -> Ticket {
        let version = (self.0.load(Ordering::Relaxed) & !STATE).wrapping_add(VERSION);
        self.0.store(version, Ordering::Release);
        Ticket::Version(version)
    }
}
