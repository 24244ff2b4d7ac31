//! Blocks kept as they were stored, checked.
//!
//! A block is let in when it is read for the second time: a scan that reads each block once leaves the cache as it was. What
//! goes when room is needed is the cache's own choice (an S3-FIFO).
//!
//! What the page cache holds too is kept only where there is room to spare: it spares a copy and a checksum, a
//! third of what it takes to compare packed codes. Of more blocks than there is room for, those that came first stay,
//! or all would be copied in turn for nothing; one in some is let in still, so that the cache follows what is read.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use arrow_buffer::Buffer;
use plinth_core::sync::lock;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};

use crate::arena::{Arena, Priority};
use crate::budget::{MemoryBudget, Reclaim};
use crate::reading::BackingStore;
use crate::slab::PAGE;

/// Which block: a number for the open file, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// From [`BlockCache::new_file`].
    pub file: u64,
    /// Offset in bytes.
    pub offset: u64,
}

/// Of blocks of the page cache without room, so many give one that is let in still.
const ONE_IN: u64 = 32;

/// Blocks seen lately are remembered by so many bits each of which stands for many.
const SEEN_BITS: usize = 1 << 20;

/// Blocks of any number of files, within a budget.
///
/// They lie in slabs of huge pages: the second time that data is read would else go into getting memory, page by page.
pub struct BlockCache {
    blocks: Cache<BlockKey, Buffer, Pages>,
    arena: Arc<Arena>,
    budget: Arc<MemoryBudget>,
    /// Blocks of the page cache that found no room.
    refused: AtomicU64,
    seen: Seen,
    files: AtomicU64,
    hits: AtomicU64,
    held: Mutex<Held>,
}

/// Whose blocks are here: at most so many, for blocks leave unseen.
#[derive(Default)]
struct Held {
    blocks: HashMap<u64, usize>,
    /// Files that were closed, and their blocks.
    closed: HashSet<u64>,
    closed_blocks: usize,
}

/// Blocks of closed files leave once they are one in so many: to look for them goes through all, and there may be many files.
const CLOSED_PART: usize = 8;

/// What a block takes of its slab.
#[derive(Clone)]
struct Pages;

impl Weighter<BlockKey, Buffer> for Pages {
    fn weight(&self, _: &BlockKey, block: &Buffer) -> u64 {
        block.len().next_multiple_of(PAGE) as u64
    }
}

/// Which blocks were read lately, more or less: two generations of bits.
struct Seen {
    bits: [Vec<AtomicU64>; 2],
    count: AtomicU64,
    hasher: RandomState,
}

impl BlockCache {
    /// A cache for at most half of a budget, as far as others leave it.
    pub(crate) fn new(budget: &Arc<MemoryBudget>, huge_pages: bool) -> Arc<Self> {
        let most = budget.limit() / 2;
        let arena = Arena::of(budget, "kept blocks", most, huge_pages);
        // Less than the slabs may hold, for they are never full to the last page.
        let capacity = most - most / 8;
        let items = usize::try_from(capacity / (64 << 10)).unwrap_or(usize::MAX).clamp(64, 1 << 24);
        let hasher = DefaultHashBuilder::default();
        let blocks = Cache::with(items, capacity, Pages, hasher, quick_cache::sync::DefaultLifecycle::default());
        let (zero, seen, budget) = (|| AtomicU64::new(0), Seen::new(), Arc::clone(budget));
        let (refused, files, hits, held) = (zero(), zero(), zero(), Mutex::default());
        let cache = Arc::new(Self { blocks, arena, budget, refused, seen, files, hits, held });
        let weak: Weak<Self> = Arc::downgrade(&cache);
        cache.budget.register(weak);
        cache
    }

    /// A number for a file that was opened.
    pub fn new_file(&self) -> u64 {
        self.files.fetch_add(1, Relaxed)
    }

    /// A block, if it is here.
    pub fn get(&self, key: BlockKey) -> Option<Buffer> {
        if self.blocks.is_empty() {
            return None;
        }
        let block = self.blocks.get(&key)?;
        self.hits.fetch_add(1, Relaxed);
        Some(block)
    }

    /// Offers a block that was read and checked. The second time, a copy is kept if there is memory for it.
    pub fn offer(&self, key: BlockKey, block: &Buffer, below: BackingStore) {
        if below == BackingStore::Memory || !self.seen.again(key) || self.blocks.contains_key(&key) {
            return;
        }
        let weight = Pages.weight(&key, block);
        if below == BackingStore::PageCache && !self.has_room(weight) {
            return;
        }
        let room = |priority| self.arena.take(block.len(), priority).ok().flatten();
        let extent = room(Priority::Ahead).or_else(|| {
            // The slabs have room in pieces that are too small: a few blocks leave.
            (below == BackingStore::Nothing && self.blocks.weight() > 0).then(|| self.lose(4 * weight))?;
            room(Priority::Ahead)
        });
        let Some(mut extent) = extent else { return };
        extent[..block.len()].copy_from_slice(block);
        if let Some(kept) = extent.into_buffer(0, block.len()) {
            *lock(&self.held).blocks.entry(key.file).or_default() += 1;
            self.blocks.insert(key, kept);
        }
    }

    /// Whether a block that the page cache holds too has room, or its turn has come to drive out others.
    fn has_room(&self, weight: u64) -> bool {
        let share = self.budget.limit() / 4;
        self.budget.left() >= self.arena.slab_bytes()
            && (self.blocks.weight() + weight <= share || self.refused.fetch_add(1, Relaxed).is_multiple_of(ONE_IN))
    }

    /// Forgets a file that was closed.
    pub fn forget(&self, file: u64) {
        let mut held = lock(&self.held);
        let Some(blocks) = held.blocks.remove(&file) else { return };
        held.closed.insert(file);
        held.closed_blocks += blocks;
        if held.closed_blocks * CLOSED_PART < self.blocks.len() {
            return;
        }
        held.closed_blocks = 0;
        let closed = std::mem::take(&mut held.closed);
        drop(held);
        self.blocks.retain(|key, _| !closed.contains(&key.file));
        self.arena.reclaim(u64::MAX);
    }

    /// Loses blocks of so many bytes, those that the cache can do best without.
    fn lose(&self, bytes: u64) {
        let capacity = self.blocks.capacity();
        self.blocks.set_capacity(self.blocks.weight().saturating_sub(bytes).max(1));
        self.blocks.set_capacity(capacity);
    }

    /// Bytes of the blocks here, and how often one was.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.blocks.weight(), self.hits.load(Relaxed))
    }
}

impl Reclaim for BlockCache {
    fn reclaim(&self, bytes: u64) -> u64 {
        // Memory comes back by slabs, so all that lies in some of them leaves.
        let slabs = self.arena.last(bytes);
        if slabs.is_empty() {
            return 0;
        }
        self.blocks.retain(|_, block| !slabs.iter().any(|slab| slab.contains(block.as_ptr())));
        drop(slabs);
        self.arena.reclaim(bytes)
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache").field("bytes", &self.blocks.weight()).finish_non_exhaustive()
    }
}

impl Seen {
    fn new() -> Self {
        let bits = || (0..SEEN_BITS / 64).map(|_| AtomicU64::new(0)).collect();
        Self { bits: [bits(), bits()], count: AtomicU64::new(0), hasher: RandomState::new() }
    }

    /// Whether a block was seen lately; remembers it.
    fn again(&self, key: BlockKey) -> bool {
        let hash = self.hasher.hash_one(key);
        let (word, bit) = (usize::try_from(hash % (SEEN_BITS as u64 / 64)).unwrap_or(0), 1 << (hash >> 58));
        // As many as would fill an eighth of the bits make a generation.
        let generation = self.count.load(Relaxed) / (SEEN_BITS as u64 / 8);
        let even = generation.is_multiple_of(2);
        let (young, old) = (usize::from(!even), usize::from(even));
        let known = self.bits[young][word].load(Relaxed) & bit != 0 || self.bits[old][word].load(Relaxed) & bit != 0;
        if self.bits[young][word].fetch_or(bit, Relaxed) & bit == 0 {
            let before = self.count.fetch_add(1, Relaxed);
            if (before + 1).is_multiple_of(SEEN_BITS as u64 / 8) {
                // The older generation becomes the next younger one.
                self.bits[old].iter().for_each(|word| word.store(0, Relaxed));
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(offset: u64) -> BlockKey {
        BlockKey { file: 0, offset }
    }

    #[test]
    fn a_block_is_kept_when_it_is_read_again() {
        let budget = MemoryBudget::new(8 << 20);
        let cache = BlockCache::new(&budget, true);
        let block = Buffer::from_vec(vec![7_u8; 1000]);
        cache.offer(key(0), &block, BackingStore::Nothing);
        assert!(cache.get(key(0)).is_none());
        cache.offer(key(0), &block, BackingStore::Nothing);
        let kept = cache.get(key(0)).unwrap();
        assert_eq!((kept.as_slice(), kept.as_ptr() as usize % 64), (block.as_slice(), 0));
        assert!(kept.as_ptr() != block.as_ptr(), "a copy: the memory of reads is not kept");
        assert_eq!(budget.used(), cache.arena.slab_bytes());
        cache.forget(0);
        assert!(cache.get(key(0)).is_none());
        assert_eq!(budget.used(), cache.arena.slab_bytes(), "for as long as the block is held");
        drop(kept);
        cache.arena.reclaim(u64::MAX);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn it_stays_within_its_share_and_gives_back_what_others_need() {
        let budget = MemoryBudget::new(32 << 20);
        let cache = BlockCache::new(&budget, true);
        let blocks: Vec<_> = (1..8).map(|i| Buffer::from_vec(vec![1_u8; 10_000 * i])).collect();
        for _ in 0..3 {
            for i in 0..1000_usize {
                cache.offer(key(i as u64), &blocks[i % 7], BackingStore::Nothing);
                assert!(budget.used() <= 16 << 20, "{}", budget.used());
            }
        }
        let (weight, _) = cache.counters();
        assert!(weight > 10 << 20, "{weight}");
        let others = budget.reserve("others", 28 << 20).unwrap();
        assert!(cache.counters().0 <= 4 << 20 && cache.counters().0 > 0);
        drop(others);
        let all = budget.reserve("others", 32 << 20).unwrap();
        cache.offer(key(1_000), &blocks[0], BackingStore::Nothing);
        cache.offer(key(1_000), &blocks[0], BackingStore::Nothing);
        assert!(cache.get(key(1_000)).is_none(), "there is no memory for it");
        drop(all);
        drop(cache);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_the_page_cache_holds_is_kept_where_there_is_room() {
        let budget = MemoryBudget::new(64 << 20);
        let cache = BlockCache::new(&budget, true);
        let block = Buffer::from_vec(vec![3_u8; 25 * PAGE]);
        let read_all = |below| (0..400).for_each(|i| cache.offer(key(i), &block, below));
        read_all(BackingStore::Memory);
        read_all(BackingStore::Memory);
        assert_eq!(cache.counters().0, 0, "what lies in memory has no need of a copy");

        let others = budget.reserve("others", 63 << 20).unwrap();
        read_all(BackingStore::PageCache);
        read_all(BackingStore::PageCache);
        assert_eq!(cache.counters().0, 0, "no cache is asked to make room");
        drop(others);

        read_all(BackingStore::PageCache);
        let first = (0..100).filter(|&i| cache.get(key(i)).is_some()).count();
        assert_eq!(first, 100, "those that came first stay");
        let (weight, _) = cache.counters();
        assert!(weight > 15 << 20 && weight < 17 << 20, "a quarter, and one in some: {weight}");
        for _ in 0..200 {
            read_all(BackingStore::PageCache);
            assert!(budget.used() <= 32 << 20, "{}", budget.used());
        }
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let seen = Seen::new();
        assert!(!seen.again(key(0)) && seen.again(key(0)));
        for i in 1..SEEN_BITS as u64 {
            seen.again(key(i));
        }
        let known = (0..1000).filter(|&i| seen.again(key(i))).count();
        assert!(known < 400, "{known}");
    }
}
