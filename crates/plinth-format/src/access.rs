//! Two ways to find the rows of some codes, and which costs less.

use std::ops::Range;

use plinth_encoding::postings::Cost;

use crate::error::Result;
use crate::file::Inner;

/// How rows that hold some values of a column are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// By what costs less.
    #[default]
    Auto,
    /// The codes of all rows are tested.
    Scan,
    /// Their numbers are read from the column's postings.
    Postings,
}

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
    let chunks = meta.chunks.get(groups).unwrap_or_default().iter().filter(|chunk| chunk.coded);
    let blocks = chunks.flat_map(|chunk| &chunk.blocks);
    Ok(blocks.map(|block| u64::from(block.len) + u64::from(block.values) / TESTED_ROWS).sum())
}
