//! Rows found by postings: what that costs beside a scan, and their numbers.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use plinth_encoding::EncodingError;
use plinth_encoding::postings::{Codes, Cost, Postings};
use plinth_io::{MemoryBudget, Reservation};

use crate::error::{FormatError, Result};
use crate::file::Inner;

/// What a read costs beside its bytes, in bytes.
const READ: u64 = 16 << 10;

/// A row from a list, and one whose packed code is tested, in bytes that are read: 8 ns where lists are decoded and merged,
/// a quarter of one where codes are compared, at 2 GB/s.
const LISTED_ROW: u64 = 16;
const TESTED_ROWS: u64 = 2;

/// Whether reading lists costs less than a scan.
pub(crate) fn pays(lists: &Cost, scan: u64) -> bool {
    lists.bytes + lists.reads * READ + lists.rows * LISTED_ROW < scan
}

/// What testing the codes of some row groups costs, in bytes that are read: as if zone maps ruled out nothing.
pub(crate) fn scan_cost(file: &Inner, stream: usize, groups: Range<usize>) -> Result<u64> {
    let meta = file.stream_meta(stream)?;
    let chunks = meta.chunks.get(groups).unwrap_or_default().iter().filter(|chunk| chunk.dictionary.is_some());
    let blocks = chunks.flat_map(|chunk| &chunk.blocks);
    Ok(blocks.map(|block| u64::from(block.len) + u64::from(block.values) / TESTED_ROWS).sum())
}

/// Lists with more than one in so many rows are put in order by a bitmap, others by sorting.
const SPARSE: u64 = 64;

/// What the lists of a column's codes, some of each of its dictionaries, cost together.
pub(crate) fn cost(listed: &[(&Postings, &Codes)]) -> Cost {
    listed.iter().fold(Cost::default(), |sum, (postings, codes)| sum + postings.cost(codes))
}

/// The rows of a column's codes, some of each of its dictionaries, that lie in a range of the file's: in order, and the memory
/// they take.
pub(crate) fn located(
    listed: &[(&Postings, &Codes)],
    within: Range<u64>,
    budget: &Arc<MemoryBudget>,
) -> plinth_encoding::Result<(Vec<u64>, Reservation)> {
    let span = within.end.saturating_sub(within.start);
    let lists: u64 = listed.iter().map(|(_, codes)| codes.len()).sum();
    let mut count = 0_u64;
    for (postings, codes) in listed.iter().filter(|_| lists > 1) {
        count = count.saturating_add(postings.count(codes)?);
    }
    let dense = count.saturating_mul(SPARSE) > span;
    let mut memory = budget.open("row numbers");
    let mut grow = |bytes: u64| {
        let refused = |e| EncodingError::Fetch(Arc::new(FormatError::Memory(e)));
        memory.try_grow(bytes).map_err(refused)
    };
    let mut rows = Vec::new();
    let here = |list: &[u64]| {
        let from = list.partition_point(|&row| row < within.start);
        from..list.partition_point(|&row| row < within.end)
    };
    if dense {
        let len = usize::try_from(span).unwrap_or(usize::MAX);
        grow(span / 8)?;
        let mut bits = BooleanBufferBuilder::new(len);
        bits.append_n(len, false);
        for (postings, codes) in listed {
            postings.for_each(codes, |_, list| {
                for &row in &list[here(list)] {
                    bits.set_bit(usize::try_from(row - within.start).unwrap_or(usize::MAX), true);
                }
                Ok(())
            })?;
        }
        let bits: BooleanBuffer = bits.finish();
        let count = bits.count_set_bits();
        grow(count as u64 * size_of::<u64>() as u64)?;
        rows.reserve_exact(count);
        rows.extend(bits.set_indices().map(|row| within.start + row as u64));
    } else {
        for (postings, codes) in listed {
            postings.for_each(codes, |_, list| {
                let list = &list[here(list)];
                if rows.capacity() - rows.len() < list.len() {
                    let more = rows.len().max(list.len());
                    grow(more as u64 * size_of::<u64>() as u64)?;
                    rows.reserve_exact(more);
                }
                rows.extend_from_slice(list);
                Ok(())
            })?;
        }
        if lists > 1 {
            rows.sort_unstable();
        }
    }
    Ok((rows, memory))
}
