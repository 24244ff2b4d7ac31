//! One block of a file, whole: what point reads keep.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use plinth_encoding::expr::Path;
use plinth_io::{Prefetch, Priority};

use super::blocks::Blocks;
use super::columns::FileColumns;
use super::source::{BlockId, ColumnSource};
use crate::access::Access;
use crate::error::{FormatError, Result};
use crate::file::File;

impl File {
    /// The block that has a row.
    fn block_of(&self, row: u64) -> Option<(BlockId, Range<u64>)> {
        let groups = self.row_groups();
        let group = groups.partition_point(|group| group.first_row <= row).checked_sub(1)?;
        let known = groups.get(group).filter(|known| row - known.first_row < known.rows)?;
        let rows = u64::from(self.0.footer.block_rows);
        let block = (row - known.first_row) / rows;
        let first = known.first_row + block * rows;
        let end = (first + rows).min(known.first_row + known.rows);
        Some((BlockId { group, block: usize::try_from(block).ok()? }, first..end))
    }

    /// The rows of the block that has a row.
    ///
    /// # Errors
    /// If the file has no such row.
    pub fn block_rows_at(&self, row: u64) -> Result<Range<u64>> {
        self.block_of(row).map(|(_, rows)| rows).ok_or_else(|| self.no_row(row))
    }

    fn no_row(&self, row: u64) -> FormatError {
        FormatError::InvalidArgument(format!("{}: row {row} of {}", self.name(), self.num_rows()))
    }

    /// All columns of the block that has a row, in memory of their own, so that they may be kept, and which rows of the file they are.
    ///
    /// # Errors
    /// If the file has no such row, can't be read, or is damaged.
    pub fn read_block_at(&self, row: u64) -> Result<(Range<u64>, RecordBatch)> {
        let (at, rows) = self.block_of(row).ok_or_else(|| self.no_row(row))?;
        let mut blocks = Blocks::new(Arc::clone(&self.0), Arc::default(), 0);
        blocks.detached = true;
        let mut source = FileColumns::new(blocks, Access::Scan, Prefetch::default());
        let names = self.schema().fields().iter().map(|field| Path::column(field.name()));
        let columns = names.map(|path| source.resolve(&path)).collect::<Result<Vec<_>>>()?;
        source.set_output(&columns);
        let wanted: Vec<_> = columns.iter().map(|&column| (column, at)).collect();
        if let Some(fetch) = source.start(&wanted, Priority::Now)? {
            source.finish(fetch)?;
        }
        let mut arrays = Vec::with_capacity(columns.len());
        for column in columns {
            let decoded = source.decode(column, at, None)?;
            arrays.push(source.values(column, decoded)?);
        }
        let len = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let batch = RecordBatch::try_new_with_options(Arc::clone(self.schema()), arrays, &options)
            .map_err(|e| FormatError::Corrupt { file: self.name().to_owned(), what: e.to_string() })?;
        Ok((rows, batch))
    }
}
