//! The cache of a dictionary: blocks as they were read, and all values once they were decoded, as far as the
//! budget lets them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use crate::dictionary::block::Block;
use crate::dictionary::decoded::Decoded;

/// The name in reports and errors.
const CONSUMER: &str = "decoded dictionaries";

/// What is cached, and whose memory it is.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// `None` if it is not counted.
    budget: Option<Arc<MemoryBudget>>,
    blocks: Vec<Mutex<Option<CachedBlock>>>,
    decoded: Mutex<Option<Arc<Decoded>>>,
    /// Held while all values are decoded, so that only one thread does.
    decoding: Mutex<()>,
    /// Codes turned into values block by block since all were decoded, given back or refused.
    gathered: AtomicUsize,
}

#[derive(Debug)]
struct CachedBlock {
    block: Arc<Block>,
    held: Option<Reservation>,
}

impl Cache {
    pub(super) fn new(blocks: usize) -> Self {
        Self { blocks: (0..blocks).map(|_| Mutex::default()).collect(), ..Self::default() }
    }

    /// A block that is here.
    pub(super) fn block(&self, i: usize) -> Option<Arc<Block>> {
        lock(self.blocks.get(i)?).as_ref().map(|kept| Arc::clone(&kept.block))
    }

    /// Keeps a block if there is room.
    pub(super) fn keep_block(&self, i: usize, block: &Arc<Block>) {
        if let (Some(slot), Ok(held)) = (self.blocks.get(i), self.reserve(block.memory())) {
            *lock(slot) = Some(CachedBlock { block: Arc::clone(block), held });
        }
    }

    /// All values, if they are here.
    pub(super) fn decoded(&self) -> Option<Arc<Decoded>> {
        lock(&self.decoded).clone()
    }

    /// Keeps all values until the room is needed for something else.
    pub(super) fn keep_decoded(&self, decoded: &Arc<Decoded>) {
        *lock(&self.decoded) = Some(Arc::clone(decoded));
    }

    /// Counts codes that are to be turned into values: how many have been since it was last known whether there is room.
    pub(super) fn count_gathered(&self, codes: usize) -> usize {
        self.gathered.fetch_add(codes, Relaxed) + codes
    }

    /// Lets one thread at a time pass.
    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        lock(&self.decoding)
    }

    /// Room for so many bytes.
    fn reserve(&self, bytes: usize) -> Result<Option<Reservation>, OutOfMemory> {
        self.budget.as_ref().map(|budget| budget.reserve(CONSUMER, bytes as u64)).transpose()
    }

    /// Room for all values.
    pub(super) fn reserve_decoded(&self, bytes: usize) -> Result<Option<Reservation>, OutOfMemory> {
        self.gathered.store(0, Relaxed);
        self.reserve(bytes)
    }

    pub(super) fn memory(&self) -> usize {
        let blocks = self.blocks.iter().filter_map(|slot| lock(slot).as_ref().map(|kept| kept.block.memory()));
        self.blocks.capacity() * size_of::<Mutex<Option<CachedBlock>>>()
            + blocks.sum::<usize>()
            + self.decoded().map_or(0, |decoded| decoded.memory())
    }

    /// Counts what is cached from now on.
    pub(super) fn set_budget(&mut self, budget: &Arc<MemoryBudget>) {
        self.budget = Some(Arc::clone(budget));
    }

    /// Gives back as many bytes, if there are so many that are not in use; returns how many.
    pub(super) fn reclaim(&self, bytes: u64) -> u64 {
        let mut given = 0;
        // Values that are being gathered right now would stay.
        if let Ok(mut decoded) = self.decoded.try_lock()
            && decoded.as_ref().is_some_and(|all| Arc::strong_count(all) == 1)
        {
            given += decoded.take().map_or(0, |all| all.held());
            // Not at once again.
            self.gathered.store(0, Relaxed);
        }
        for slot in &self.blocks {
            if given >= bytes {
                break;
            }
            if let Ok(mut slot) = slot.try_lock()
                && slot.as_ref().is_some_and(|kept| Arc::strong_count(&kept.block) == 1)
            {
                given += slot.take().and_then(|kept| kept.held).map_or(0, |held| held.bytes());
            }
        }
        given
    }
}
