//! Decoded blocks, kept for point reads as far as the memory budget allows.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use arrow_array::RecordBatch;
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, Reclaim, Reservation};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::batches::memory;
use crate::key::Keys;

/// A block's rows and their keys.
#[derive(Debug)]
pub(crate) struct DecodedBlock {
    /// Its rows in the segment.
    pub(crate) rows: Range<u64>,
    pub(crate) batch: RecordBatch,
    pub(crate) keys: Keys,
    bytes: u64,
}

impl DecodedBlock {
    pub(crate) fn new(rows: Range<u64>, batch: RecordBatch, keys: Keys) -> Self {
        let bytes = memory(&batch) + keys.memory() as u64 + 256;
        Self { rows, batch, keys, bytes }
    }
}

/// The number of a segment, and the block's first row in it.
type At = (u64, u64);

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<At, Arc<DecodedBlock>> for Bytes {
    fn weight(&self, _: &At, block: &Arc<DecodedBlock>) -> u64 {
        block.bytes
    }
}

/// The blocks of all segments of a table.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: Cache<At, Arc<DecodedBlock>, Bytes>,
    /// What is reserved for them; grown before one is let in.
    reserved: Mutex<Reservation>,
}

impl Blocks {
    /// For so many bytes at most, and as few as others leave of the budget.
    pub(crate) fn new(most: u64, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        let items = usize::try_from(most / (256 << 10)).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        let blocks = Cache::with(items, most, Bytes, Default::default(), Default::default());
        let cache = Arc::new(Self { blocks, reserved: Mutex::new(budget.open("rows of point reads")) });
        let weak: Weak<Self> = Arc::downgrade(&cache);
        budget.register(weak);
        cache
    }

    pub(crate) fn get(&self, at: At) -> Option<Arc<DecodedBlock>> {
        self.blocks.get(&at)
    }

    /// Keeps a block if there is memory for it.
    pub(crate) fn keep(&self, at: At, block: &Arc<DecodedBlock>) {
        {
            let mut reserved = self.reserved();
            let after = self.blocks.weight() + block.bytes;
            // What leaves to make room is given back below; until then both are counted.
            if after > reserved.bytes() && reserved.resize(after).is_err() {
                return;
            }
        }
        self.blocks.insert(at, Arc::clone(block));
        self.settle(&mut self.reserved());
    }

    /// Forgets a segment's.
    pub(crate) fn forget(&self, segment: u64) {
        self.blocks.retain(|at, _| at.0 != segment);
        self.settle(&mut self.reserved());
    }

    fn settle(&self, reserved: &mut Reservation) {
        let excess = reserved.bytes().saturating_sub(self.blocks.weight());
        reserved.shrink(excess);
    }

    fn reserved(&self) -> MutexGuard<'_, Reservation> {
        lock(&self.reserved)
    }
}

impl Reclaim for Blocks {
    fn reclaim(&self, bytes: u64) -> u64 {
        let Ok(mut reserved) = self.reserved.try_lock() else { return 0 };
        let (capacity, before, weight) = (self.blocks.capacity(), reserved.bytes(), self.blocks.weight());
        if weight > 0 {
            // Shrinking its capacity makes it choose what to lose.
            self.blocks.set_capacity(weight.saturating_sub(bytes).max(1));
            self.blocks.set_capacity(capacity);
        }
        self.settle(&mut reserved);
        before - reserved.bytes()
    }
}
