//! What is counted of values while they are written: sums of blocks, whether rows are sorted, and how many values differ.

use plinth_encoding::sketch::Sketch;
use plinth_encoding::summary::{Order, order, sum};
use plinth_encoding::{Column, Physical};

use super::chunk::EncodedBlock;
use super::stream::StreamWriter;
use crate::sorted::SortedRun;
use crate::wire::WireWriter;

/// Values of a stream from which on a sketch of them is written.
const SKETCHED: u64 = 1024;

/// What is counted of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockSummary {
    /// The sum of its integers.
    pub(super) sum: Option<i128>,
    /// None if they are not sorted, or it does not matter any more.
    pub(super) run: Option<SortedRun>,
}

/// What is counted of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkSummary {
    /// Of all blocks; none if one has none.
    sums: Option<Vec<i128>>,
    run: Option<SortedRun>,
}

impl BlockSummary {
    /// Of a block of values that is encoded; whether they are sorted only if that `matters`.
    pub(super) fn of(physical: Physical, column: &Column, block: &EncodedBlock, matters: bool) -> Self {
        let has_values = block.nulls < block.values;
        let order = || order_of(physical, column, block.heads.as_ref());
        let run = if matters { SortedRun::of(order(), block.zone.as_ref(), has_values) } else { None };
        Self { sum: sum(physical, column), run }
    }
}

/// The order of values of which the first of each run may be known: then some are equal.
pub(super) fn order_of(physical: Physical, column: &Column, heads: Option<&Column>) -> Order {
    heads.map_or_else(|| order(physical, column), |heads| Order { differs: false, ..order(physical, heads) })
}

impl ChunkSummary {
    pub(super) fn of(blocks: impl Iterator<Item = BlockSummary>) -> Self {
        let mut chunk = Self { sums: Some(Vec::new()), run: Some(SortedRun::empty()) };
        for block in blocks {
            chunk.run = chunk.run.and_then(|run| run.then(block.run?));
            match (&mut chunk.sums, block.sum) {
                (Some(sums), Some(sum)) => sums.push(sum),
                (sums, _) => *sums = None,
            }
        }
        chunk
    }

    /// Whether its rows are sorted.
    pub(super) fn is_sorted(&self) -> bool {
        self.run.is_some()
    }
}

/// What the metadata of a stream says of all of its values.
#[derive(Debug)]
pub(super) struct StreamSummary {
    pub(super) order: Order,
    pub(super) sum: Option<i128>,
    pub(super) distinct: Option<u64>,
    /// What is read by who asks for it only: a sketch of the distinct values, and the sums of the blocks.
    pub(super) details: Vec<u8>,
}

impl StreamWriter {
    /// What was counted of all values, with the row groups in this order.
    pub(super) fn summary(&self, order: &[usize]) -> StreamSummary {
        let chunks = || order.iter().filter_map(|&group| self.summaries.get(group));
        let all = |run: SortedRun, chunk: &ChunkSummary| run.then(chunk.run.clone()?);
        let known = self.leaf && self.summaries.len() == order.len();
        let run = if known { chunks().try_fold(SortedRun::empty(), all) } else { None };
        let sums: Option<Vec<&[i128]>> = chunks().map(|chunk| chunk.sums.as_deref()).collect();
        let sums = sums.filter(|_| known && matches!(self.physical, Physical::Int { .. } | Physical::Wide { .. }));
        let blocks: usize = sums.iter().flatten().map(|sums| sums.len()).sum();
        let mut sum = sums.as_ref().map(|_| 0_i128);
        for block in sums.iter().flatten().copied().flatten() {
            sum = sum.and_then(|sum| sum.checked_add(*block));
        }
        let sketched = known && self.physical != Physical::Bool;
        let mut details = WireWriter::default();
        let sketch = sketched && self.values - self.nulls >= SKETCHED;
        let sums = sums.filter(|_| blocks > 1);
        if sketch || sums.is_some() {
            details.u8(u8::from(sketch));
            if sketch {
                details.append(|out| self.sketch.write(self.values - self.nulls, out));
            }
            details.u8(u8::from(sums.is_some()));
            sums.iter().flatten().copied().flatten().for_each(|&sum| details.signed(sum));
        }
        let exact = match self.dictionaries.as_slice() {
            [only] if self.direct_values == 0 => Some(u64::from(only.values)),
            _ => None,
        };
        let estimate = || Sketch::estimate(&self.sketch).min(self.values - self.nulls);
        StreamSummary {
            order: run.map_or(Order::NONE, |run| run.order),
            sum,
            distinct: sketched.then(|| exact.unwrap_or_else(estimate)),
            details: details.finish(),
        }
    }
}
