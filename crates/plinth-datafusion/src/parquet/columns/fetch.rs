//! The bytes of column chunks: which a block takes, and reading them.

use std::ops::Range;
use std::sync::Arc;

use plinth_format::Result;
use plinth_format::scan::reads::{Brought, READ_MOST, Reads};
use plinth_format::scan::source::{BlockId, ColumnId};
use plinth_io::{Priority, Reading};

use super::ParquetColumns;
use crate::parquet::chunk_bytes::ChunkBytes;
use crate::parquet::resolved::page_locations;

/// How much further than its share of the rows a chunk without a page index is read for a block.
const SLACK: u64 = 128 << 10;

/// Reads under way.
#[derive(Debug)]
pub(crate) struct Fetch {
    reads: Reads<Arc<ChunkBytes>>,
    blocks: Vec<BlockId>,
}

impl AsRef<Reading> for Fetch {
    fn as_ref(&self) -> &Reading {
        self.reads.as_ref()
    }
}

impl Fetch {
    /// Waits for the reads, and puts what they bring where it belongs: the blocks it is of.
    pub(super) fn finish(self) -> Result<Vec<BlockId>> {
        for Brought { part: chunk_bytes, range, bytes, held } in self.reads.wait()? {
            chunk_bytes.put(range.start, bytes, held);
        }
        Ok(self.blocks)
    }
}

impl ParquetColumns {
    /// What is there of a leaf's chunk.
    pub(super) fn chunk_bytes(&self, group: usize, leaf: usize) -> Arc<ChunkBytes> {
        let mut chunks = self.chunks.borrow_mut();
        let chunk_bytes = chunks.entry((group, leaf)).or_insert_with(|| {
            let (start, len) = self.file.metadata.row_group(group).column(leaf).byte_range();
            let range = start..start.saturating_add(len);
            Arc::new(ChunkBytes::new(Arc::clone(&self.file.source), Arc::clone(&self.metrics), range))
        });
        Arc::clone(chunk_bytes)
    }

    /// The bytes of a leaf's chunk that a block takes, as far as that can be told.
    fn ranges(&self, group: usize, leaf: usize, rows: &Range<usize>, out: &mut Vec<Range<u64>>) {
        let chunk = self.file.metadata.row_group(group).column(leaf);
        let (start, len) = chunk.byte_range();
        let Some(locations) = page_locations(&self.file.metadata, group, leaf) else {
            // Pages say where the next one is: all before the block, and its share of the chunk.
            let all = u64::try_from(self.file.metadata.row_group(group).num_rows()).unwrap_or(0).max(1);
            let share = u128::from(len) * rows.end as u128 / u128::from(all);
            let share = u64::try_from(share).unwrap_or(u64::MAX).saturating_add(SLACK).min(len);
            out.push(start..start.saturating_add(share));
            return;
        };
        let offset = |offset: i64| u64::try_from(offset).unwrap_or(0);
        let first_row = |row: i64| usize::try_from(row).unwrap_or(usize::MAX);
        if let Some(first) = locations.first().filter(|first| offset(first.offset) > start) {
            out.push(start..offset(first.offset));
        }
        let from = locations.partition_point(|page| first_row(page.first_row_index) <= rows.start).saturating_sub(1);
        for page in locations.get(from..).unwrap_or_default() {
            if first_row(page.first_row_index) >= rows.end {
                break;
            }
            let at = offset(page.offset);
            out.push(at..at + u64::try_from(page.compressed_page_size).unwrap_or(0));
        }
    }

    /// Starts to read what is missing of some blocks; `None` if it was asked for ahead and there is no memory for it.
    pub(super) fn start_reading(&self, wanted: &[(ColumnId, BlockId)], priority: Priority) -> Result<Option<Fetch>> {
        let mut parts: Vec<(Range<u64>, Arc<ChunkBytes>)> = Vec::new();
        for &(column, at) in wanted {
            let (group, rows) = (self.group(at.group)?, self.rows(at)?);
            for &leaf in self.column(column)?.leaves() {
                let chunk_bytes = self.chunk_bytes(group, leaf);
                let (mut ranges, mut missing) = (Vec::new(), Vec::new());
                self.ranges(group, leaf, &rows, &mut ranges);
                ranges.into_iter().for_each(|range| chunk_bytes.missing(range, &mut missing));
                parts.extend(missing.into_iter().map(|range| (range, Arc::clone(&chunk_bytes))));
            }
        }
        // Ahead of its time only what there is memory for, and a page takes some once it is decoded.
        if priority == Priority::Ahead && !parts.is_empty() && self.memory.budget().left() == 0 {
            return Ok(None);
        }
        let mut blocks: Vec<BlockId> = wanted.iter().map(|&(_, at)| at).collect();
        blocks.dedup();
        let mut pieces: Vec<(Range<u64>, Arc<ChunkBytes>)> = Vec::new();
        parts.sort_by_key(|(range, _)| (range.start, range.end));
        for (range, chunk_bytes) in parts {
            // Several blocks may want the same page.
            let from = match pieces.last() {
                Some((last, known)) if Arc::ptr_eq(known, &chunk_bytes) => range.start.max(last.end),
                _ => range.start,
            };
            // A longer range is read in pieces.
            let mut at = from;
            while at < range.end {
                let end = range.end.min(at.saturating_add(READ_MOST));
                pieces.push((at..end, Arc::clone(&chunk_bytes)));
                at = end;
            }
        }
        let reads = Reads::start(&*self.file.source, pieces, priority, self.query_bytes, &self.metrics)?;
        let Some(reads) = reads else { return Ok(None) };
        reads.parts().for_each(|(chunk_bytes, range)| chunk_bytes.ask(range.clone()));
        Ok(Some(Fetch { reads, blocks }))
    }
}
