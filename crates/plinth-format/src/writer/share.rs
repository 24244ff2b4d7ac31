//! How much memory a writer takes, and options for one that takes less.

use std::sync::Arc;

use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use super::{LANES_FULL, WriterOptions};

/// Least memory that a writer can do something useful with.
const LEAST: u64 = 32 << 20;

impl WriterOptions {
    /// Options that keep a writer within so many bytes, where so many lanes are written side by side: smaller row groups
    /// and dictionaries, if the memory does not do for these. Nothing else of the options changes.
    ///
    /// While rows come in, the writer holds a row group for each lane ([up to four](super::Writer::write_lane)), another
    /// while it encodes it, and dictionaries. What these take while they grow and when they are sorted at the end is part of
    /// what they are said to take.
    #[must_use]
    pub fn within(self, memory: u64, lanes: usize) -> Self {
        let memory = memory.max(LEAST);
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            row_group_bytes: self.row_group_bytes.min(memory / (3 * row_groups(lanes))),
            dictionary_bytes: self.dictionary_bytes.min(size(memory / 12)),
            dictionary_total_bytes: self.dictionary_total_bytes.min(size(memory / 2)),
            ..self
        }
    }

    /// As [`WriterOptions::within`] for a part of a budget that the writer reserves when it is created.
    #[must_use]
    pub fn charged_to(self, budget: &Arc<MemoryBudget>, memory: u64, lanes: usize) -> Self {
        Self { charge: Some(Charge { budget: Arc::clone(budget), lanes }), ..self.within(memory, lanes) }
    }

    /// Bytes that a writer with these options holds at most where so many lanes are written side by side, but for rows
    /// that are larger than a row group may be.
    pub fn footprint(&self, lanes: usize) -> u64 {
        // One more for what the values of a row group, were they all new, take in dictionaries before their limits are
        // looked at.
        let row_groups = (row_groups(lanes) + 1).saturating_mul(self.row_group_bytes);
        row_groups.saturating_add(self.dictionary_total_bytes as u64)
    }
}

/// Whose memory a writer takes.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The budget.
    pub budget: Arc<MemoryBudget>,
    /// How many lanes are written side by side.
    pub lanes: usize,
}

impl Charge {
    pub(super) fn reserve(&self, options: &WriterOptions) -> Result<Reservation, OutOfMemory> {
        self.budget.reserve("writer", options.footprint(self.lanes))
    }
}

/// Row groups held at once.
fn row_groups(lanes: usize) -> u64 {
    (lanes.max(1) as u64).min(LANES_FULL) + 1
}

#[cfg(test)]
mod tests;
