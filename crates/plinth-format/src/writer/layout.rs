//! How many rows a block and a row group hold.

use super::WriterOptions;
use crate::footer::MOST_BLOCK_ROWS;

/// Rows that are looked at before the layout is fixed: always the file's first, however they were batched.
pub(super) const SAMPLE_ROWS: usize = 1024;

/// The sample ends early where rows are so large.
pub(super) const SAMPLE_BYTES: u64 = 16 << 20;

/// A row group may end at rows of these multiples only, so that how rows were batched has no say.
pub(super) const STEP: usize = 8;

/// What a block of one column may take, judged by the sample; blocks are decoded whole.
const BLOCK_BYTES: u64 = 16 << 20;

/// The rows of a file's blocks and row groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) row_group_rows: usize,
    pub(super) block_rows: usize,
}

impl Layout {
    /// `widths` are the bytes in memory of each column's first `rows` rows.
    pub(super) fn plan(widths: &[u64], rows: usize, options: &WriterOptions) -> Self {
        let rows = rows.max(1) as u64;
        let widest = widths.iter().copied().max().unwrap_or(0);
        let total: u64 = widths.iter().sum();
        let fit = |most: usize, width: u64, budget: u64| {
            let mut fitting = most;
            while fitting > STEP && (width / rows).saturating_mul(fitting as u64) > budget {
                fitting /= 2;
            }
            fitting
        };
        let block_rows = fit(options.block_rows.clamp(1, MOST_BLOCK_ROWS as usize), widest, BLOCK_BYTES);
        let row_group_rows = fit(options.row_group_rows.max(1), total, options.row_group_bytes);
        // Whole blocks, so that only a row group's last one is short.
        Self { row_group_rows: row_group_rows.next_multiple_of(block_rows), block_rows }
    }
}

#[cfg(test)]
mod tests;
