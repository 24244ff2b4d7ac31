//! A version of the table: all its rows at one moment.
//!
//! A version never changes. Commits make a new one, which shares with the last all that they did not touch; readers hold on to
//! theirs, and with it to the segments and batches that it consists of.

use std::sync::Arc;

use arrow_array::RecordBatch;
use plinth_io::MemoryBudget;

use crate::cache::DecodedBlock;
use crate::deletes::Deletes;
use crate::delta::Delta;
use crate::error::Result;
use crate::index::Indexes;
use crate::key::{KeyColumns, Keys};
use crate::segment::{Live, Near};

/// All rows at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Commits so far: the sequence of the next frame of the log.
    pub(crate) sequence: u64,
    pub(crate) segments: Vec<Live>,
    /// Rows in memory that are being merged.
    pub(crate) frozen: Option<Delta>,
    pub(crate) delta: Delta,
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Delta(u32),
    Frozen(u32),
    Segment(usize, u32),
}

/// A row that was found: a row of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Memory(RecordBatch),
    Block(Arc<DecodedBlock>, usize),
}

impl Version {
    /// No rows.
    pub(crate) fn new(sequence: u64, budget: &Arc<MemoryBudget>, indexes: &Arc<Indexes>) -> Self {
        Self { sequence, segments: Vec::new(), frozen: None, delta: Delta::new(budget, indexes) }
    }

    /// Where the row with a key is.
    pub(crate) fn find(&self, columns: &KeyColumns, key: &[u8], hash: u64) -> Result<Option<Place>> {
        if let Some(place) = self.find_in_memory(key, hash) {
            return Ok(Some(place));
        }
        let found = self.find_in_segments(columns, key, hash)?;
        Ok(found.and_then(|(i, block, at)| {
            let row = u32::try_from(block.rows.start + at as u64).ok()?;
            Some(Place::Segment(i, row))
        }))
    }

    /// The row with a key.
    pub(crate) fn get(&self, columns: &KeyColumns, key: &[u8], hash: u64) -> Result<Option<Found>> {
        match self.find_in_memory(key, hash) {
            Some(Place::Delta(row)) => Ok(self.delta.row(row).map(Found::Memory)),
            Some(Place::Frozen(row)) => Ok(self.frozen.as_ref().and_then(|frozen| frozen.row(row)).map(Found::Memory)),
            _ => {
                let found = self.find_in_segments(columns, key, hash)?;
                Ok(found.map(|(_, block, at)| Found::Block(block, at)))
            }
        }
    }

    fn find_in_memory(&self, key: &[u8], hash: u64) -> Option<Place> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.find(key, hash)).map(Place::Frozen);
        self.delta.find(key, hash).map(Place::Delta).or_else(frozen)
    }

    fn find_in_segments(
        &self,
        columns: &KeyColumns,
        key: &[u8],
        hash: u64,
    ) -> Result<Option<(usize, Arc<DecodedBlock>, usize)>> {
        for (i, live) in self.segments.iter().enumerate().rev() {
            if !live.segment.may_have(key, hash) {
                continue;
            }
            if let Some((block, at)) = live.segment.locate(columns, key, &mut Near::default())? {
                let row = u32::try_from(block.rows.start + at as u64).unwrap_or(u32::MAX);
                if !live.deletes.contains(row) {
                    return Ok(Some((i, block, at)));
                }
            }
        }
        Ok(None)
    }

    /// Whether a row newer than those of a segment has a key.
    pub(crate) fn has_newer(&self, segment: usize, columns: &KeyColumns, key: &[u8], hash: u64) -> Result<bool> {
        if self.find_in_memory(key, hash).is_some() {
            return Ok(true);
        }
        for live in self.segments.iter().skip(segment + 1) {
            if live.segment.find(columns, key, hash)?.is_some_and(|row| !live.deletes.contains(row)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a row away.
    pub(crate) fn delete(&mut self, place: Place) {
        match place {
            Place::Delta(row) => self.delta.deletes.insert(row),
            Place::Frozen(row) => self.frozen.as_mut().is_some_and(|frozen| frozen.deletes.insert(row)),
            Place::Segment(i, row) => self.segments.get_mut(i).is_some_and(|live| live.deletes.insert(row)),
        };
    }

    /// Takes all rows away.
    pub(crate) fn delete_all(&mut self) {
        for live in &mut self.segments {
            live.deletes = Deletes::all(u32::try_from(live.segment.entry.rows).unwrap_or(u32::MAX));
        }
        for delta in self.frozen.iter_mut().chain([&mut self.delta]) {
            delta.deletes = Deletes::all(delta.rows);
        }
    }

    /// Adds rows whose keys no row has.
    pub(crate) fn insert(&mut self, batch: &RecordBatch, keys: &Keys) -> Result<()> {
        self.delta.push(batch, keys)
    }

    /// Rows that are there.
    pub(crate) fn rows(&self) -> u64 {
        let memory = |delta: &Delta| u64::from(delta.rows) - delta.deletes.count().min(u64::from(delta.rows));
        self.segments.iter().map(Live::rows).sum::<u64>() + memory(&self.delta) + self.frozen.as_ref().map_or(0, memory)
    }
}

/// The rows of a batch that are there.
pub(crate) fn kept(batch: &RecordBatch, first: u32, deletes: &Deletes) -> Result<RecordBatch> {
    match deletes.kept(first, batch.num_rows()) {
        None => Ok(batch.clone()),
        Some(kept) => arrow_select::filter::filter_record_batch(batch, &arrow_array::BooleanArray::new(kept, None))
            .map_err(crate::error::arrow),
    }
}
