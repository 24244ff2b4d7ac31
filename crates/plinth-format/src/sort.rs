//! Sorting rows, more of them than memory holds.
//!
//! Rows gather until they fill the memory, are sorted by their keys and go to a scratch file as a run, in chunks; at the
//! end the runs are merged, chunk by chunk. Keys are compared as bytes (arrow-row's order-preserving rows), the first
//! eight beside the row's number, so that most comparisons touch nothing else. Rows with equal keys keep their order, so
//! what comes out depends on the input alone: not on memory, threads or batches.
//!
//! Merging with a tree of losers is from Knuth, "Sorting and Searching", 5.4.1.

mod keys;
mod merge;
mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use plinth_io::Spool;
use plinth_profile::{Profiler, Stage, scope};

use crate::error::{FormatError, Result};
use crate::shred::normalise;
use crate::types::{Node, Tree};
use crate::writer::weigh;
use keys::{Keys, Ranking};
use run::Run;

pub use merge::SortedRows;

/// A column to sort by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Its name.
    pub column: String,
    /// From the largest value to the smallest; nulls come last in ascending and first in descending order.
    pub descending: bool,
}

/// How to sort. Nothing here changes the order.
#[derive(Clone, Debug)]
pub struct SortOptions {
    /// Bytes of rows to hold at once while they come in: half gather while half are sorted and written.
    pub gather_bytes: u64,
    /// Bytes of rows to hold at once while runs are merged.
    pub merge_bytes: u64,
    /// Threads.
    pub threads: usize,
    /// Where scratch files go.
    pub folder: PathBuf,
    /// Set from elsewhere to stop.
    pub cancelled: Arc<AtomicBool>,
}

/// Takes rows in any order.
pub struct Sorter {
    shared: Arc<Shared>,
    /// The types columns are brought to as they come in.
    stored: Vec<DataType>,
    gathered: Vec<(RecordBatch, Keys)>,
    bytes: u64,
    rows: usize,
    /// The run under way, which has the scratch file.
    spilling: Option<JoinHandle<Result<(Run, Spool)>>>,
    spool: Spool,
    runs: Vec<Run>,
}

/// What every stage of a sort needs.
pub(crate) struct Shared {
    pub(crate) schema: SchemaRef,
    pub(crate) ranking: Ranking,
    pub(crate) options: SortOptions,
    pub(crate) pool: rayon::ThreadPool,
    /// Of the thread that started the sort.
    pub(crate) profiler: Profiler,
    /// Set when the rows are not wanted any more.
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl Shared {
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        let stop = [&self.options.cancelled, &self.abandoned].iter().any(|flag| flag.load(Ordering::Relaxed));
        if stop { Err(FormatError::Cancelled) } else { Ok(()) }
    }
}

pub(crate) fn fail(error: impl std::fmt::Display) -> FormatError {
    FormatError::InvalidArgument(format!("sorting: {error}"))
}

/// A row's share of what sorting needs beside its values: its number, its first key bytes, its key's offset.
const ROW_OVERHEAD: u64 = 40;

impl Sorter {
    /// A sorter for rows of a schema; batches may hold dictionaries or runs of the columns' types.
    ///
    /// # Errors
    /// If a key names no column, or one whose values have no order.
    pub fn new(schema: &Schema, by: &[SortKey], options: SortOptions) -> Result<Self> {
        let stored = Tree::from_arrow(schema)?.columns.iter().map(Node::arrow_type).collect::<Vec<_>>();
        let fields = schema.fields().iter().zip(&stored);
        let fields = fields.map(|(field, stored)| field.as_ref().clone().with_data_type(compact(stored)));
        let compact = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let ranking = Ranking::new(&compact, by)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .thread_name(|i| format!("plinth-sort-{i}"))
            .build()
            .map_err(|e| FormatError::InvalidArgument(format!("cannot start {} threads: {e}", options.threads)))?;
        let spool = Spool::new(&options.folder);
        let (profiler, abandoned) = (Profiler::current(), Arc::default());
        let shared = Arc::new(Shared { schema: compact, ranking, options, pool, profiler, abandoned });
        Ok(Self { shared, stored, gathered: Vec::new(), bytes: 0, rows: 0, spilling: None, spool, runs: Vec::new() })
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If they do not fit the schema, the scratch file's device is full, or sorting was cancelled.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.shared.check_cancelled()?;
        let sort = self.shared.profiler.scope(Stage::Sort);
        sort.rows(batch.num_rows() as u64);
        if batch.num_columns() != self.stored.len() {
            return Err(fail(format!("a batch of {} columns for {}", batch.num_columns(), self.stored.len())));
        }
        // A batch larger than what fits is taken in parts.
        let all = 0..batch.num_rows();
        let weight: u64 = batch.columns().iter().map(|column| weigh(column, all.clone())).sum();
        let parts = (weight / (self.shared.options.gather_bytes / 8).max(1) + 1).min(all.len().max(1) as u64);
        let step = all.len().div_ceil(usize::try_from(parts).unwrap_or(1)).max(1);
        for from in all.step_by(step) {
            self.gather(batch.slice(from, step.min(batch.num_rows() - from)))?;
        }
        Ok(())
    }

    fn gather(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let batch = self.unpack(&batch)?;
        let keys = self.shared.ranking.keys(&batch)?;
        let values: u64 = batch.columns().iter().map(|column| weigh(column, 0..rows)).sum();
        let bytes = values + keys.bytes() + ROW_OVERHEAD * rows as u64;
        if self.bytes + bytes > self.shared.options.gather_bytes / 2 && self.rows > 0 {
            self.spill()?;
        }
        self.gathered.push((batch, keys));
        self.bytes += bytes;
        self.rows += rows;
        Ok(())
    }

    /// Dictionaries and runs as the values they stand for; text stays views, which share the input's buffers.
    fn unpack(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(&self.stored).map(|(column, stored)| normalise(column, stored));
        let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>().map_err(fail)?;
        let fields = columns.iter().zip(self.shared.schema.fields());
        let fields = fields.map(|(column, field)| field.as_ref().clone().with_data_type(column.data_type().clone()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, &options)
            .map_err(fail)
    }

    /// Hands what has gathered to a thread that makes a run of it, while more gathers.
    fn spill(&mut self) -> Result<()> {
        self.wait()?;
        let gathered = std::mem::take(&mut self.gathered);
        (self.bytes, self.rows) = (0, 0);
        let (shared, spool) = (Arc::clone(&self.shared), std::mem::replace(&mut self.spool, Spool::new("")));
        let spilling = std::thread::Builder::new().name("plinth-spill".to_owned());
        let spilling = spilling.spawn(move || {
            let _sort = shared.profiler.scope(Stage::Sort);
            run::spill(&shared, gathered, spool)
        });
        self.spilling = Some(spilling.map_err(|e| fail(format!("cannot start a thread: {e}")))?);
        Ok(())
    }

    /// Waits for the run under way.
    fn wait(&mut self) -> Result<()> {
        if let Some(spilling) = self.spilling.take() {
            let _join = scope(Stage::Join);
            let (run, spool) = spilling.join().map_err(|_| fail("the thread that writes a run died"))??;
            self.runs.push(run);
            self.spool = spool;
        }
        Ok(())
    }

    /// The rows in order. Merging happens on a thread of its own, a little ahead of the consumer.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub fn finish(mut self) -> Result<SortedRows> {
        if self.rows > 0 {
            self.spill()?;
        }
        self.wait()?;
        let (runs, spool) = (std::mem::take(&mut self.runs), std::mem::replace(&mut self.spool, Spool::new("")));
        SortedRows::start(Arc::clone(&self.shared), runs, spool)
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        if let Some(spilling) = self.spilling.take() {
            // The rest of the run under way is not wanted.
            self.shared.abandoned.store(true, Ordering::Relaxed);
            let _ = spilling.join();
        }
    }
}

/// A type whose arrays own their bytes: rows are copied again and again, and views would keep whole pages alive.
fn compact(stored: &DataType) -> DataType {
    let field = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(compact(field.data_type())));
    match stored {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::List(item) => DataType::List(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        other => other.clone(),
    }
}
