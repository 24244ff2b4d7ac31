//! What readers of text have in common: the columns they fill, the batches they hand on, and what becomes of bad records.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{ArrowError, SchemaRef};
use plinth_profile::{Stage, scope};

use super::ahead::Item;
use super::fault::Fault;
use super::fault::Place;
use super::unknown::UnknownKeys;
use crate::error::{BadRecord, IngestError, Result};
use crate::options::{Misfits, Rejects, SourceOptions};
use crate::values::types::width;

/// Decoded bytes of a batch, about.
pub(crate) const BATCH_BYTES: usize = 8 << 20;

/// The same in values.
pub(crate) const BATCH_VALUES: usize = BATCH_BYTES / 16;

/// Rows of a batch.
pub(crate) const BATCH_ROWS: std::ops::RangeInclusive<usize> = 64..=65_536;

/// Bytes of an oversized record that are kept, at most.
pub(crate) const EXCERPT: usize = 512;

/// Bytes of a bad record that are kept.
const KEPT: usize = 64 << 10;

/// Bytes of the name of its column that are kept.
const KEPT_NAME: usize = 512;

/// The columns, and how they are to be filled.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) schema: SchemaRef,
    /// Whether the schema was given; else it was inferred, maybe from a sample.
    pub(crate) given: bool,
    /// Whether it was inferred just now, and others may be.
    open: bool,
    /// Bytes that a record may have.
    pub(crate) record: usize,
    pub(crate) batch_rows: usize,
    collect: bool,
    misfits: Misfits,
    /// Per column, whether any file had it.
    seen: Vec<AtomicBool>,
    /// Whether anything came that could have columns: a header, or a record.
    named: AtomicBool,
}

impl Plan {
    pub(crate) fn new(schema: SchemaRef, options: &SourceOptions) -> Self {
        let columns = schema.fields().len();
        let row = schema.fields().iter().map(|f| width(f.data_type())).fold(1, usize::saturating_add);
        Self {
            given: options.schema.is_some() && !options.whole.as_ref().is_some_and(|whole| whole.inferred),
            open: options.schema.is_none(),
            record: options.record_bytes.max(1),
            batch_rows: (BATCH_VALUES / row).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end()),
            collect: matches!(options.rejects, Rejects::Collect { .. }),
            misfits: options.misfits,
            seen: (0..columns).map(|_| AtomicBool::new(false)).collect(),
            named: AtomicBool::new(false),
            schema,
        }
    }

    pub(crate) fn saw(&self, column: usize) {
        if let Some(seen) = self.seen.get(column) {
            seen.store(true, Ordering::Relaxed);
        }
    }

    /// Takes note of something that could have columns.
    pub(crate) fn named(&self) {
        self.named.store(true, Ordering::Relaxed);
    }

    /// Whether every column was found somewhere, if any could have been.
    pub(crate) fn check_all_seen(&self) -> Result<()> {
        let wanted = self.given && self.named.load(Ordering::Relaxed);
        let columns = self.schema.fields().iter().zip(&self.seen);
        match columns.into_iter().find(|(_, seen)| wanted && !seen.load(Ordering::Relaxed)) {
            Some((field, _)) => Err(IngestError::MissingColumn { column: field.name().clone() }),
            None => Ok(()),
        }
    }
}

/// What became of a chunk.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) batch: Option<RecordBatch>,
    pub(crate) bad: Vec<BadRecord>,
    pub(crate) unknown: UnknownKeys,
    /// Bytes of the file as stored.
    pub(crate) stored: u64,
    pub(crate) path: Arc<Path>,
}

/// What was decoded of a chunk and not handed on yet: rows and bad records go together, so both keep their order however
/// many batches a chunk gives.
pub(crate) struct ChunkOutput<'a> {
    plan: &'a Plan,
    path: &'a Path,
    /// Per row, whether it is sound: as a rule all are, which takes no memory.
    pub(crate) keep: NullBufferBuilder,
    bad: Vec<BadRecord>,
    bad_bytes: usize,
    /// Bytes of the file that the chunk accounts for, until they are handed on.
    stored: Option<u64>,
    /// Whether more is wanted.
    pub(crate) wanted: bool,
    give: &'a mut dyn FnMut(Item<Decoded>) -> bool,
}

impl<'a> ChunkOutput<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        path: &'a Path,
        stored: u64,
        give: &'a mut dyn FnMut(Item<Decoded>) -> bool,
    ) -> Self {
        let keep = NullBufferBuilder::new(0);
        Self { plan, path, keep, bad: Vec::new(), bad_bytes: 0, stored: Some(stored), wanted: true, give }
    }

    /// Takes note of a row that was appended though something is wrong with it.
    pub(crate) fn row<'r>(&mut self, fault: Fault, place: impl FnOnce() -> Place<'r>) -> Result<()> {
        let kept = fault.misfit && self.plan.misfits == Misfits::Null;
        self.keep.append(kept);
        self.reject(place(), fault, kept)
    }

    /// Takes note of what is no row.
    pub(crate) fn broken(&mut self, place: Place<'_>, why: impl Into<Cow<'static, str>>) -> Result<()> {
        self.reject(place, Fault { column: Vec::new(), why: why.into(), misfit: false }, false)
    }

    fn reject(&mut self, place: Place<'_>, fault: Fault, kept: bool) -> Result<()> {
        // The same whether the record was found too large by the framer or here.
        let most = if place.len > self.plan.record as u64 { EXCERPT.min(self.plan.record) } else { KEPT };
        let bad = BadRecord {
            path: self.path.display().to_string(),
            line: place.line,
            offset: place.offset,
            column: (!fault.column.is_empty()).then(|| shortened(fault.column.join("."))),
            reason: fault.why.into_owned(),
            raw: place.raw.get(..place.raw.len().min(most)).unwrap_or_default().to_vec(),
            len: place.len,
        };
        let surprise = fault.misfit && self.plan.open;
        if surprise || !(self.plan.collect || kept) {
            return Err(bad_record(bad, surprise));
        }
        self.bad_bytes += size_of::<BadRecord>() + bad.path.len() + bad.reason.len() + bad.raw.len() + KEPT_NAME;
        self.bad.push(bad);
        Ok(())
    }

    /// Whether so many rows, with so many values in lists, should be handed on.
    pub(crate) fn is_full(&self, rows: usize, listed: usize) -> bool {
        rows >= self.plan.batch_rows || listed >= BATCH_VALUES || self.bad_bytes >= BATCH_BYTES
    }

    /// Hands on what there is, of which `finish` makes columns.
    pub(crate) fn give(
        &mut self,
        finish: impl FnOnce() -> Result<Vec<ArrayRef>, ArrowError>,
        unknown: UnknownKeys,
    ) -> Result<()> {
        let build = scope(Stage::Build);
        let rows = self.keep.len();
        let keep = self.keep.finish();
        let damaged = |e: ArrowError| IngestError::damaged(self.path, e.to_string());
        let columns = finish().map_err(damaged)?;
        if columns.len() != self.plan.schema.fields().len() {
            return Err(IngestError::internal("a batch has another number of columns than its schema"));
        }
        let batch = kept(&self.plan.schema, columns, rows, keep).map_err(damaged)?;
        build.rows(batch.num_rows() as u64);
        drop(build);
        self.give_batch(Some(batch), unknown);
        Ok(())
    }

    /// Hands on a batch that is ready.
    pub(crate) fn give_batch(&mut self, batch: Option<RecordBatch>, unknown: UnknownKeys) {
        let bytes = batch.as_ref().map_or(0, RecordBatch::get_array_memory_size) + std::mem::take(&mut self.bad_bytes);
        let (bad, stored) = (std::mem::take(&mut self.bad), self.stored.take().unwrap_or(0));
        self.wanted =
            (self.give)(Item { bytes, value: Decoded { batch, bad, unknown, stored, path: Arc::from(self.path) } });
    }

    /// Whether the end of the chunk has anything to hand on: one without a row still says how far the reader has come.
    pub(crate) fn is_wanting(&self, rows: usize) -> bool {
        self.wanted && (rows > 0 || !self.bad.is_empty() || self.stored.is_some())
    }
}

/// The rows that are kept, in the types of a schema.
fn kept(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
    keep: Option<NullBuffer>,
) -> Result<RecordBatch, ArrowError> {
    let rows = keep.as_ref().map_or(rows, |keep| rows - keep.null_count());
    let keep = keep.map(|keep| BooleanArray::new(keep.into_inner(), None));
    let finish = |(column, field): (ArrayRef, &arrow_schema::FieldRef)| {
        let kept = match &keep {
            None => column,
            Some(keep) => arrow_select::filter::filter(&column, keep)?,
        };
        // With the bad rows gone, parts that must not be null are not.
        if kept.data_type() == field.data_type() { Ok(kept) } else { arrow_cast::cast(&kept, field.data_type()) }
    };
    let columns = columns.into_iter().zip(schema.fields()).map(finish).collect::<Result<Vec<_>, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// A column's name for messages: a record may have keys as long as itself.
fn shortened(mut name: String) -> String {
    if name.len() > KEPT_NAME {
        name.truncate(name.floor_char_boundary(KEPT_NAME));
        name.push('\u{2026}');
    }
    name
}

/// What a bad record is to the caller: a surprise where only a sample was looked at.
fn bad_record(bad: BadRecord, surprise: bool) -> IngestError {
    if surprise { IngestError::Surprise(Box::new(bad)) } else { IngestError::Record(Box::new(bad)) }
}

/// The error that stands for a panic.
pub(crate) fn panicked(place: Option<(&Path, u64)>) -> IngestError {
    match place {
        Some((path, line)) => IngestError::damaged(path, format!("the reader gave up near line {line}")),
        None => IngestError::damaged(Path::new("input"), "the reader gave up on damaged data"),
    }
}
