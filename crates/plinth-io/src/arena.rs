//! Slabs that many share, those of reads and those of kept blocks: how many there may be, and what is done without when there are
//! no more.
//!
//! Memory is asked for in two voices. Looking ahead is done without where the arena is full. What a scan needs to go on at
//! all is never refused: the arena's floor is reserved for it, and beyond that it is counted above the limit, so that no scan
//! waits for memory that its own consumer holds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use plinth_core::sync::lock;

use crate::budget::{MemoryBudget, Reclaim, Reservation};
use crate::options::IoOptions;
use crate::slab::{Extent, HUGE_PAGE, Slab};

/// Slabs are as large where the arena holds many of them.
const SLAB: usize = 8 << 20;

/// How the memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The reader can't go on without.
    Now,
    /// It would be read early.
    Ahead,
}

/// What gives back the memory of slabs that a ring may have registered.
pub(crate) type Release = Box<dyn Fn(Arc<Slab>) + Send + Sync>;

/// Slabs within a budget.
pub(crate) struct Arena {
    state: Mutex<State>,
    /// What may be made of it by those who can do without.
    most: u64,
    slab_bytes: usize,
    huge_pages: bool,
    release: Release,
    counters: Arc<Counters>,
}

struct State {
    slabs: Vec<Arc<Slab>>,
    mapped: u64,
    reserved: Reservation,
    floor: u64,
}

/// What the arena did and holds, in bytes unless said otherwise.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Slabs mapped so far.
    pub(crate) slabs: AtomicU64,
    /// Extents handed out so far.
    pub(crate) extents: AtomicU64,
    /// Extents that scans hold: reads under way and what waits to be decoded.
    pub(crate) held: AtomicU64,
}

/// Counts bytes as held by a scan, until it is dropped.
#[derive(Debug)]
pub struct Held {
    counters: Arc<Counters>,
    bytes: u64,
}

impl Arena {
    /// The slabs that an engine's reads go into.
    pub(crate) fn of_reads(budget: &Arc<MemoryBudget>, options: &IoOptions, release: Release) -> Arc<Self> {
        let most = options.arena_bytes.unwrap_or(budget.limit() / 4).min(budget.limit());
        let floor = (budget.limit() / 32).min(most);
        let reserved = budget.reserve("reads", floor).unwrap_or_else(|_| budget.open("reads"));
        Self::new(budget, reserved, most, options.huge_pages, release)
    }

    /// Slabs of at most so many bytes, none of them reserved before.
    pub(crate) fn of(budget: &Arc<MemoryBudget>, consumer: &str, most: u64, huge_pages: bool) -> Arc<Self> {
        Self::new(budget, budget.open(consumer), most, huge_pages, Box::new(drop))
    }

    fn new(
        budget: &Arc<MemoryBudget>,
        reserved: Reservation,
        most: u64,
        huge_pages: bool,
        release: Release,
    ) -> Arc<Self> {
        let slab_bytes = if most >= 8 * SLAB as u64 { SLAB } else { HUGE_PAGE };
        let floor = reserved.bytes();
        let state = Mutex::new(State { slabs: Vec::new(), mapped: 0, reserved, floor });
        let arena = Arc::new(Self { state, most, slab_bytes, huge_pages, release, counters: Arc::default() });
        let weak: std::sync::Weak<Self> = Arc::downgrade(&arena);
        budget.register(weak);
        arena
    }

    /// Memory for a read of so many bytes; `None` if it is asked for ahead and there is no more.
    ///
    /// # Errors
    /// If the operating system has no memory.
    pub(crate) fn take(&self, len: usize, priority: Priority) -> std::io::Result<Option<Extent>> {
        let mut state = self.lock();
        let found = state.slabs.iter().find_map(|slab| slab.take(len));
        let extent = match found {
            Some(extent) => extent,
            None => {
                let bytes = len.max(self.slab_bytes);
                if !state.grow(bytes as u64, priority, self.most) {
                    return Ok(None);
                }
                let slab = Slab::new(bytes, self.huge_pages).inspect_err(|_| state.settle())?;
                state.mapped += slab.byte_len() as u64;
                state.settle();
                self.counters.slabs.fetch_add(1, Relaxed);
                let extent = slab.take(len).ok_or(std::io::ErrorKind::OutOfMemory)?;
                state.slabs.push(slab);
                extent
            }
        };
        self.counters.extents.fetch_add(1, Relaxed);
        Ok(Some(extent))
    }

    /// The slabs made last, of so many bytes if there are so many; none while another thread takes from them.
    pub(crate) fn last(&self, bytes: u64) -> Vec<Arc<Slab>> {
        let Ok(state) = self.state.try_lock() else { return Vec::new() };
        let mut left = bytes;
        let wanted = |slab: &&Arc<Slab>| {
            let wanted = left > 0;
            left = left.saturating_sub(slab.byte_len() as u64);
            wanted
        };
        state.slabs.iter().rev().take_while(wanted).cloned().collect()
    }

    /// Bytes that a slab has at least.
    pub(crate) fn slab_bytes(&self) -> u64 {
        self.slab_bytes as u64
    }

    /// Counts bytes as held by a scan.
    pub(crate) fn hold(&self, bytes: u64) -> Held {
        self.counters.held.fetch_add(bytes, Relaxed);
        Held { counters: Arc::clone(&self.counters), bytes }
    }

    /// Bytes of extents that are handed out.
    pub(crate) fn used(&self) -> u64 {
        self.lock().slabs.iter().map(|slab| slab.used() as u64).sum()
    }

    /// Whether so much is on loan to consumers that more should be copied: a quarter of what look-ahead may take.
    pub(crate) fn is_lent_out(&self) -> bool {
        self.used().saturating_sub(self.counters.held.load(Relaxed)) > self.most / 4
    }

    /// Bytes of all slabs.
    pub(crate) fn mapped(&self) -> u64 {
        self.lock().mapped
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Counts more slabs; whether there may be more.
    fn grow(&mut self, bytes: u64, priority: Priority, most: u64) -> bool {
        let bytes = bytes.next_multiple_of(HUGE_PAGE as u64);
        let wanted = (self.mapped + bytes).saturating_sub(self.reserved.bytes());
        let fits = self.mapped + bytes <= most;
        match priority {
            Priority::Ahead => fits && self.reserved.try_grow(wanted).is_ok(),
            Priority::Now => {
                if self.reserved.try_grow(wanted).is_err() {
                    self.reserved.charge(wanted);
                }
                true
            }
        }
    }

    /// Reserves just what is mapped, or the floor.
    fn settle(&mut self) {
        let excess = self.reserved.bytes().saturating_sub(self.mapped.max(self.floor));
        self.reserved.shrink(excess);
    }
}

impl Reclaim for Arena {
    fn reclaim(&self, bytes: u64) -> u64 {
        let Ok(mut state) = self.state.try_lock() else { return 0 };
        let before = state.reserved.bytes();
        let mut wanted = bytes;
        let mut gone = Vec::new();
        // Those made last: the first ones are used first.
        for i in (0..state.slabs.len()).rev() {
            if wanted == 0 {
                break;
            }
            // Only the holder of the lock can take from it, so it stays unused.
            if state.slabs[i].used() == 0 {
                let slab = state.slabs.remove(i);
                let len = slab.byte_len() as u64;
                state.mapped -= len;
                wanted = wanted.saturating_sub(len);
                gone.push(slab);
            }
        }
        state.settle();
        let given = before - state.reserved.bytes();
        drop(state);
        gone.into_iter().for_each(|slab| (self.release)(slab));
        given
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.counters.held.fetch_sub(self.bytes, Relaxed);
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("most", &self.most).field("counters", &self.counters).finish_non_exhaustive()
    }
}
