//! Scans: the rows of a file that pass a predicate, column by column, block by block.
//!
//! The executor is generic over a [`source`] of columns. For each row group it drops the blocks that zone maps rule out,
//! evaluates the predicate's conjuncts (cheapest first, on encoded data where the encoding can), and decodes the other
//! columns under the selection that is left. A column that a predicate had to decode is not decoded again.

mod batches;
mod blocks;
mod columns;
mod executor;
mod predicate;
pub mod source;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Poll, Waker};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use plinth_encoding::expr::{Expr, Path};

pub(crate) use columns::FunctionCache;
pub use source::ScanColumn;

use crate::error::{FormatError, Result};
use crate::file::File;
use batches::{Batches, Next};
use blocks::Blocks;
use columns::FileColumns;
use executor::{Executor, Plan, Step};

/// Rows of an output batch unless asked otherwise.
const BATCH_ROWS: usize = 8192;

/// A predicate that tightens while the scan runs: TopK, hash joins, MIN and MAX.
pub trait DynamicFilter: Debug + Send + Sync {
    /// The predicate as it is now, if it is newer than version `seen`. Versions start at 1.
    fn newer_than(&self, seen: u64) -> Option<(u64, Expr)>;
}

/// What to scan.
#[derive(Debug)]
pub struct ScanBuilder {
    file: File,
    columns: Option<Vec<Path>>,
    predicate: Vec<Expr>,
    dynamic: Vec<Arc<dyn DynamicFilter>>,
    row_groups: Range<usize>,
    limit: Option<u64>,
    batch_rows: usize,
    table_bytes: u64,
}

/// Rows that passed, column by column.
#[derive(Debug)]
pub struct Chunk {
    /// Rows.
    pub rows: usize,
    /// In the order asked for.
    pub columns: Vec<ScanColumn>,
}

/// A running scan: an iterator of record batches. Reading and decoding happen on the thread that asks for the next.
#[derive(Debug)]
pub struct Scan {
    schema: SchemaRef,
    metrics: Arc<ScanMetrics>,
    executor: Executor<FileColumns>,
    batches: Batches,
}

/// What a scan did so far. Counters only grow, and may be read while it runs.
#[derive(Debug, Default)]
pub struct ScanMetrics {
    /// Row groups looked at.
    pub row_groups_total: AtomicU64,
    /// Row groups of which zone maps left no block.
    pub row_groups_pruned: AtomicU64,
    /// Blocks of rows in the row groups looked at.
    pub blocks_total: AtomicU64,
    /// Blocks of rows that zone maps ruled out.
    pub blocks_pruned: AtomicU64,
    /// Rows of the blocks that were not ruled out.
    pub rows_in: AtomicU64,
    /// Rows that came out.
    pub rows_out: AtomicU64,
    /// Bytes of blocks read.
    pub bytes_read: AtomicU64,
    /// Column blocks decoded.
    pub blocks_decoded: AtomicU64,
    /// Column blocks on which a predicate was answered without decoding them.
    pub blocks_evaluated: AtomicU64,
}

impl ScanBuilder {
    pub(crate) fn new(file: File) -> Self {
        let row_groups = 0..file.row_groups().len();
        Self {
            table_bytes: file.byte_len(),
            file,
            columns: None,
            predicate: Vec::new(),
            dynamic: Vec::new(),
            row_groups,
            limit: None,
            batch_rows: BATCH_ROWS,
        }
    }

    /// Only these columns, in this order; a name may be repeated.
    #[must_use]
    pub fn select<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.project(names.into_iter().map(Path::column).collect())
    }

    /// Only these columns or struct fields, each an output column named by the last part of its path.
    #[must_use]
    pub fn project(mut self, paths: Vec<Path>) -> Self {
        self.columns = Some(paths);
        self
    }

    /// Keeps the rows for which the predicate is true; a further call means AND. No row that fails comes out.
    #[must_use]
    pub fn filter(mut self, predicate: Expr) -> Self {
        predicate::conjuncts(&predicate, &mut self.predicate);
        self
    }

    /// A predicate that may change while the scan runs; each block meets the version that is current when its turn comes.
    #[must_use]
    pub fn dynamic_filter(mut self, filter: Arc<dyn DynamicFilter>) -> Self {
        self.dynamic.push(filter);
        self
    }

    /// Only these row groups.
    #[must_use]
    pub fn row_groups(mut self, groups: Range<usize>) -> Self {
        self.row_groups = groups;
        self
    }

    /// Stops after this many rows.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Rows an output batch should have; only the last has fewer (default 8,192).
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Bytes of all files of the table, if this one is only a part of it: a query that reads more than fits in memory does
    /// so past the page cache.
    #[must_use]
    pub fn table_bytes(mut self, bytes: u64) -> Self {
        self.table_bytes = bytes;
        self
    }

    /// Checks columns, predicates and row groups, and starts the first reads.
    ///
    /// # Errors
    /// If a column or row group does not exist, or a constant does not fit the column it is compared with.
    pub fn build(self) -> Result<Scan> {
        let groups = self.file.row_groups().len();
        if self.row_groups.end > groups {
            let what = format!("{}: row groups {:?} of {groups}", self.file.name(), self.row_groups);
            return Err(FormatError::InvalidArgument(what));
        }
        let paths = self
            .columns
            .unwrap_or_else(|| self.file.schema().fields().iter().map(|field| Path::column(field.name())).collect());
        let mut fields = Vec::with_capacity(paths.len());
        for path in &paths {
            let (node, nullable) = self.file.0.node(path)?;
            fields.push(Field::clone(&node.arrow_field()).with_nullable(nullable));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, self.file.schema().metadata().clone()));
        let metrics = Arc::<ScanMetrics>::default();
        let query_bytes = share_of(self.table_bytes, self.file.0.bytes_of(&paths)?, self.file.byte_len());
        let blocks = Blocks::new(Arc::clone(&self.file.0), Arc::clone(&metrics), query_bytes);
        let source = FileColumns::new(blocks);
        let plan = Plan {
            columns: paths,
            predicate: self.predicate,
            dynamic: self.dynamic,
            row_groups: self.row_groups,
            limit: self.limit,
        };
        let mut executor = Executor::new(source, plan, Arc::clone(&metrics))?;
        executor.begin();
        let batches = Batches::new(Arc::clone(&schema), self.batch_rows);
        Ok(Scan { schema, metrics, executor, batches })
    }

    /// [`ScanBuilder::build`], for those who iterate.
    ///
    /// # Errors
    /// As [`ScanBuilder::build`].
    pub fn batches(self) -> Result<Scan> {
        self.build()
    }
}

/// `part` in `whole`, of `bytes`.
fn share_of(bytes: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl Scan {
    /// The schema of its batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Counters, live.
    pub fn metrics(&self) -> &Arc<ScanMetrics> {
        &self.metrics
    }

    /// The next rows that passed, at most a block of them, dictionary columns as codes. Not to be mixed with batches.
    ///
    /// # Errors
    /// If the file can't be read or is damaged, or a predicate fails on a row that passes all others.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            match self.executor.step()? {
                Step::Chunk(chunk) => return Ok(Some(chunk)),
                Step::End => return Ok(None),
                Step::Waiting => self.executor.wait(),
            }
        }
    }

    /// The next batch if it is there, for those who have other things to do while the storage is read: `waker` is told when
    /// it is worth asking again.
    ///
    /// # Errors
    /// As [`Scan::next_chunk`].
    pub fn poll_batch(&mut self, waker: &Waker) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            match self.batches.next(&mut self.executor) {
                Ok(Next::Batch(batch)) => return Poll::Ready(Some(Ok(batch))),
                Ok(Next::End) => return Poll::Ready(None),
                Ok(Next::Waiting) => {
                    if self.executor.waits_for().is_some_and(|reading| reading.poll(waker).is_pending()) {
                        return Poll::Pending;
                    }
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.batches.next(&mut self.executor) {
                Ok(Next::Batch(batch)) => return Some(Ok(batch)),
                Ok(Next::End) => return None,
                Ok(Next::Waiting) => self.executor.wait(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
