//! Column chunks whose rows are lists, maps or structs of several leaves, block by block, by the reader of the `parquet` crate.
//!
//! The reader goes forward. Levels never leave it: what comes out is a block's array. A gap is read over where that is
//! cheap, else the reader is set up anew behind it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector};
use parquet::column::page::PageIterator;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use plinth_ingest::checked_pages;

use super::BLOCK_ROWS;
use super::arrays::{descend, guarded};
use super::chunk_bytes::ChunkBytes;
use super::decodes::Decodes;
use super::resolved::{Resolved, page_locations};

/// Blocks that are decoded for nothing before the reader is set up anew, where the file has no page index to skip by.
const GAP: usize = 16;

/// A column's chunks in one row group.
pub(super) struct NestedChunk {
    /// One a leaf.
    chunks: Vec<(usize, Arc<ChunkBytes>)>,
    metadata: Arc<ParquetMetaData>,
    group: usize,
    column: Arc<Resolved>,
    reader: Option<(usize, ParquetRecordBatchReader)>,
    decodes: Decodes,
}

impl std::fmt::Debug for NestedChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedChunk")
            .field("column", &self.column.path)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl NestedChunk {
    pub(super) fn new(
        chunks: Vec<(usize, Arc<ChunkBytes>)>,
        metadata: Arc<ParquetMetaData>,
        group: usize,
        column: Arc<Resolved>,
        decodes: Decodes,
    ) -> Self {
        Self { chunks, metadata, group, column, reader: None, decodes }
    }

    /// The rows of a block.
    pub(super) fn block(&mut self, block: usize, rows: usize) -> Result<ArrayRef> {
        let array = guarded(|| self.decode(block))?;
        self.chunks.iter().for_each(|(_, chunk_bytes)| chunk_bytes.trim());
        if array.len() == rows {
            return Ok(array);
        }
        Err(ParquetError::EOF(format!("a block of {rows} rows holds {}", array.len())))
    }

    fn decode(&mut self, block: usize) -> Result<ArrayRef> {
        let (mut at, mut reader) = match self.reader.take() {
            Some((at, reader)) if at == block || (at < block && block - at < GAP && !self.skips_by_index()) => {
                (at, reader)
            }
            _ => (block, self.reader_at(block)?),
        };
        loop {
            let batch = reader.next().transpose()?;
            let batch = batch.ok_or_else(|| ParquetError::EOF(format!("its pages end before block {block}")))?;
            self.decodes.decoded(at * BLOCK_ROWS..at * BLOCK_ROWS + batch.num_rows());
            at += 1;
            if at > block {
                self.reader = Some((at, reader));
                let root = batch.columns().first();
                let root = root.ok_or_else(|| ParquetError::General("a reader of no column".to_owned()))?;
                return self.column.meant(&descend(root, self.column.fields())?);
            }
        }
    }

    /// Whether a reader that is set up anew finds its page without reading those before it.
    fn skips_by_index(&self) -> bool {
        self.chunks.iter().all(|(leaf, _)| page_locations(&self.metadata, self.group, *leaf).is_some())
    }

    fn reader_at(&self, block: usize) -> Result<ParquetRecordBatchReader> {
        let rows = usize::try_from(self.metadata.row_group(self.group).num_rows())?;
        let Range { start, end } = block.saturating_mul(BLOCK_ROWS).min(rows)..rows;
        let selection =
            (start > 0).then(|| RowSelection::from(vec![RowSelector::skip(start), RowSelector::select(end - start)]));
        ParquetRecordBatchReader::try_new_with_row_groups(
            &self.column.levels,
            &Chunks { of: self, rows },
            BLOCK_ROWS,
            selection,
        )
    }
}

/// The chunks as the reader wants them.
struct Chunks<'a> {
    of: &'a NestedChunk,
    rows: usize,
}

impl RowGroups for Chunks<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let NestedChunk { chunks, metadata, group, .. } = self.of;
        let (_, chunk_bytes) = chunks
            .iter()
            .find(|(known, _)| *known == leaf)
            .ok_or_else(|| ParquetError::General(format!("leaf {leaf} is not one of the column's")))?;
        let chunk = metadata.row_group(*group).column(leaf);
        let locations = page_locations(metadata, *group, leaf).map(<[_]>::to_vec);
        let reader = SerializedPageReader::new(Arc::clone(chunk_bytes), chunk, self.rows, locations)?;
        Ok(checked_pages(reader, chunk.column_descr()))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.of.metadata.row_group(self.of.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.of.metadata
    }
}
