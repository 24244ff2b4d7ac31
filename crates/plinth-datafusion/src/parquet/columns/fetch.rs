//! The bytes of column chunks: which a block takes, and reading them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use plinth_format::scan::source::{BlockId, ColumnId};
use plinth_format::{FormatError, Result};
use plinth_io::{Held, Merged, Need, Reading, Request};

use super::columns::ParquetColumns;
use super::resolved::page_locations;
use super::tape::Tape;

/// Ranges closer than this are read as one.
const READ_GAP: u64 = 16 << 10;

/// A merged read is not grown beyond this, and a longer range is read in pieces of this size.
const READ_MOST: u64 = 1 << 20;

/// How much further than its share of the rows a chunk without a page index is read for a block.
const SLACK: u64 = 128 << 10;

/// Reads under way.
#[derive(Debug)]
pub(crate) struct Fetch {
    reading: Reading,
    merged: Merged,
    parts: Vec<Part>,
    held: Vec<Option<Arc<Held>>>,
    blocks: Vec<BlockId>,
}

/// A part of a column chunk that one of the reads brings.
#[derive(Debug)]
struct Part {
    tape: Arc<Tape>,
    range: Range<u64>,
    read: usize,
}

impl AsRef<Reading> for Fetch {
    fn as_ref(&self) -> &Reading {
        &self.reading
    }
}

impl Fetch {
    /// Waits for the reads, and puts what they bring where it belongs: the blocks it is of.
    pub(super) fn finish(self) -> Result<Vec<BlockId>> {
        let Self { reading, merged, parts, held, blocks } = self;
        let buffers = reading.wait()?;
        for Part { tape, range, read } in parts {
            let bytes = merged.part(read, &range, &buffers);
            let bytes = bytes.ok_or_else(|| FormatError::InvalidArgument("a read returned too few bytes".into()))?;
            tape.put(range.start, bytes, held.get(read).cloned().flatten());
        }
        Ok(blocks)
    }
}

impl ParquetColumns {
    /// What is there of a leaf's chunk.
    pub(super) fn tape(&self, group: usize, leaf: usize) -> Arc<Tape> {
        let mut tapes = self.tapes.borrow_mut();
        let tape = tapes.entry((group, leaf)).or_insert_with(|| {
            let (start, len) = self.file.metadata.row_group(group).column(leaf).byte_range();
            let range = start..start.saturating_add(len);
            Arc::new(Tape::new(Arc::clone(&self.file.source), Arc::clone(&self.metrics), range))
        });
        Arc::clone(tape)
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
    pub(super) fn start_reading(&self, wanted: &[(ColumnId, BlockId)], need: Need) -> Result<Option<Fetch>> {
        let mut parts: Vec<(Range<u64>, Arc<Tape>)> = Vec::new();
        for &(column, at) in wanted {
            let (group, rows) = (self.group(at.group)?, self.rows(at)?);
            for &leaf in self.column(column)?.leaves() {
                let tape = self.tape(group, leaf);
                let (mut ranges, mut missing) = (Vec::new(), Vec::new());
                self.ranges(group, leaf, &rows, &mut ranges);
                ranges.into_iter().for_each(|range| tape.missing(range, &mut missing));
                parts.extend(missing.into_iter().map(|range| (range, Arc::clone(&tape))));
            }
        }
        // Ahead of its time only what there is memory for, and a page takes some once it is decoded.
        if need == Need::Ahead && !parts.is_empty() && self.memory.budget().left() == 0 {
            return Ok(None);
        }
        let mut blocks: Vec<BlockId> = wanted.iter().map(|&(_, at)| at).collect();
        blocks.dedup();
        let mut pieces: Vec<(Range<u64>, Arc<Tape>)> = Vec::new();
        parts.sort_by_key(|(range, _)| (range.start, range.end));
        for (range, tape) in parts {
            // Several blocks may want the same page.
            let from = match pieces.last() {
                Some((last, known)) if Arc::ptr_eq(known, &tape) => range.start.max(last.end),
                _ => range.start,
            };
            let mut at = from;
            while at < range.end {
                let end = range.end.min(at.saturating_add(READ_MOST));
                pieces.push((at..end, Arc::clone(&tape)));
                at = end;
            }
        }
        let mut merged = Merged::new(READ_GAP, READ_MOST);
        let part = |(range, tape)| Part { read: merged.add(&range), tape, range };
        let parts: Vec<Part> = pieces.into_iter().map(part).collect();
        let request = Request { ranges: merged.reads(), need, query_bytes: self.query_bytes };
        let Some(reading) = self.file.source.start(&request)? else { return Ok(None) };
        parts.iter().for_each(|part| part.tape.ask(part.range.clone()));
        self.metrics.bytes_read.fetch_add(merged.bytes(), Relaxed);
        let io = self.file.source.io();
        let held = merged.reads().iter().map(|read| io.map(|io| Arc::new(io.hold(read.end - read.start)))).collect();
        Ok(Some(Fetch { reading, merged, parts, held, blocks }))
    }
}
