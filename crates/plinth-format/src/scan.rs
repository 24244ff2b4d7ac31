//! Scans: the rows of a file that pass a predicate, column by column, block by block.
//!
//! The executor is generic over a [`source`] of columns. For each row group it drops the blocks that zone maps rule out,
//! evaluates the predicate's conjuncts (cheapest first, on encoded data where the encoding can), and decodes the other
//! columns under the selection that is left. A column that a predicate had to decode is not decoded again.

mod adaptive;
mod ahead;
mod batches;
mod blocks;
mod codes;
mod columns;
mod executor;
mod filter;
mod indexed;
pub(crate) mod postings;
mod predicate;
pub mod reads;
mod single;
pub mod source;
mod stages;
mod totals;

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Poll, Waker};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Field, Schema, SchemaRef};
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{Expr, Path};
use plinth_io::Prefetch;
use plinth_profile::{Stage, scope};

pub use adaptive::{AdaptiveStats, ConjunctReport};
pub use codes::CodeValues;
pub use executor::Plan;
pub use source::ScanColumn;
pub use totals::{ColumnTotal, TotalOf, Totals};

use crate::access::Access;
use crate::error::{FormatError, Result};
use crate::file::File;
use ahead::Ahead;
use batches::{Batches, Next};
use blocks::Blocks;
use columns::FileColumns;
use executor::{Executor, Step};
use source::ColumnSource;

/// Rows of an output batch unless asked otherwise.
const BATCH_ROWS: usize = 8192;

/// Most bytes a scan keeps of blocks that it filtered ahead, unless told otherwise.
pub const LOOK_AHEAD: u64 = 32 << 20;

/// When filters are evaluated. The rows are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PushdownMode {
    /// As is found to be best while the query runs.
    #[default]
    Auto,
    /// Every column of a block is read and decoded, then the block is filtered: what a scan without pushdown does.
    AfterDecode,
    /// All columns are read together; filters are evaluated block by block, and what is left of the others is decoded.
    Interleaved,
    /// Other columns are read once filters have left rows of a block.
    FilterFirst,
}

impl fmt::Display for PushdownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::AfterDecode => "after-decode",
            Self::Interleaved => "interleaved",
            Self::FilterFirst => "filter-first",
        })
    }
}

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
    totals: Option<Vec<TotalOf>>,
    narrow: bool,
    batch_rows: usize,
    table_bytes: u64,
    access: Access,
    mode: PushdownMode,
    stats: Option<Arc<AdaptiveStats>>,
    look_ahead: u64,
    only: Option<BooleanBuffer>,
    anew: bool,
}

/// How a scan finds the rows that pass conjuncts on columns with postings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessPath {
    /// It tests all rows.
    Scan,
    /// It reads their numbers.
    Postings {
        /// The column whose postings these are.
        column: String,
        /// How many rows they name, at most.
        rows: u64,
    },
}

/// Rows that passed, column by column.
#[derive(Debug)]
pub struct Chunk {
    /// Rows.
    pub rows: usize,
    /// In the order asked for.
    pub columns: Vec<ScanColumn>,
    /// Rows of the file before the first of which these are a selection.
    pub first_row: u64,
    /// Which rows they are, counted from the first; all that follow it if there is none.
    pub selection: Option<BooleanBuffer>,
}

/// A running scan of a Plinth file, or of any other source of columns: an iterator of record batches. Reading and decoding
/// happen on the thread that asks for the next.
#[derive(Debug)]
pub struct Scan<S: ColumnSource = FileColumns> {
    schema: SchemaRef,
    metrics: Arc<ScanMetrics>,
    stats: Arc<AdaptiveStats>,
    executor: Executor<S>,
    batches: Batches,
}

/// What a scan did so far. Counters only grow, and may be read while it runs.
#[derive(Debug, Default)]
pub struct ScanMetrics {
    /// Row groups looked at.
    pub row_groups_total: AtomicU64,
    /// Row groups of which zone maps and postings left no block.
    pub row_groups_pruned: AtomicU64,
    /// Blocks of rows in the row groups looked at.
    pub blocks_total: AtomicU64,
    /// Blocks of rows that zone maps or postings ruled out.
    pub blocks_pruned: AtomicU64,
    /// Blocks of rows that all passed, of which metadata told what was wanted.
    pub blocks_counted: AtomicU64,
    /// Rows of the blocks that were not ruled out.
    pub rows_in: AtomicU64,
    /// Rows that came out.
    pub rows_out: AtomicU64,
    /// Bytes of blocks read.
    pub bytes_read: AtomicU64,
    /// Column blocks decoded.
    pub blocks_decoded: AtomicU64,
    /// Column blocks decoded once more: none, unless a column is asked for twice.
    pub blocks_decoded_again: AtomicU64,
    /// Column blocks on which a predicate was answered without decoding them.
    pub blocks_evaluated: AtomicU64,
    /// Conjuncts that were answered by postings.
    pub postings_conjuncts: AtomicU64,
    /// Rows that the postings gave.
    pub postings_rows: AtomicU64,
    /// Bytes of the lists that gave them, whether they were read or kept of an earlier read.
    pub postings_bytes: AtomicU64,
}

impl File {
    /// Starts a scan, of all columns and rows until it is told otherwise.
    pub fn scan(&self) -> ScanBuilder {
        ScanBuilder::new(self.clone())
    }
}

impl ScanBuilder {
    pub(crate) fn new(file: File) -> Self {
        let row_groups = 0..file.row_groups().len();
        Self {
            table_bytes: file.byte_len(),
            access: file.0.access,
            file,
            columns: None,
            predicate: Vec::new(),
            dynamic: Vec::new(),
            row_groups,
            limit: None,
            totals: None,
            narrow: false,
            batch_rows: BATCH_ROWS,
            mode: PushdownMode::Auto,
            stats: None,
            look_ahead: LOOK_AHEAD,
            only: None,
            anew: false,
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

    /// Only these rows of the file, one bit a row: others are as if they were not there.
    #[must_use]
    pub fn only_rows(mut self, rows: BooleanBuffer) -> Self {
        self.only = Some(rows);
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

    /// Decimals of 128 bits come out of [`Scan::next_chunk`] in 64 where they are stored so ([`ScanColumn::Narrow`]): half as many bytes, which
    /// are reckoned with several times as fast. Batches have them as the schema says.
    #[must_use]
    pub fn narrow(mut self) -> Self {
        self.narrow = true;
        self
    }

    /// Blocks all of whose rows pass do not come out, as far as metadata tells these totals of them: [`Scan::take_totals`] gives them.
    /// Only of a scan without a limit, and of nothing where a predicate changes while it runs.
    #[must_use]
    pub fn totals(mut self, wanted: Vec<TotalOf>) -> Self {
        self.totals = Some(wanted);
        self
    }

    /// Most rows an output batch has (default 8,192). It has fewer where more would have to be copied together, and at the end.
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

    /// How the rows are found that pass conjuncts on columns with postings: by these, or by testing all rows as on other
    /// columns (default: as the file was opened, which by default is what costs less). Postings are only asked where there are some.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// When filters are evaluated (default: as is best).
    #[must_use]
    pub fn pushdown_mode(mut self, mode: PushdownMode) -> Self {
        self.mode = mode;
        self
    }

    /// What scans of other files or row groups with the same filters have learned of them, to be shared with this one: as
    /// [`Scan::adaptive_stats`] gives it. Of other filters it is not used.
    #[must_use]
    pub fn adaptive_stats(mut self, stats: Arc<AdaptiveStats>) -> Self {
        self.stats = Some(stats);
        self
    }

    /// Bytes the scan may keep of blocks that it filters ahead of their turn, so that it need not read the other columns of blocks
    /// of which no row is left (default: 32 MiB, as far as the file's memory budget has them). With none, a block is decoded
    /// before the next is filtered; nothing is decoded twice.
    #[must_use]
    pub fn look_ahead(mut self, bytes: u64) -> Self {
        self.look_ahead = bytes;
        self
    }

    /// Reads blocks from storage, although some may be kept in memory.
    pub(crate) fn anew(mut self) -> Self {
        self.anew = true;
        self
    }

    /// How the scan would find its rows; `None` if no conjunct is on a column with postings. Reads no rows.
    ///
    /// # Errors
    /// As [`ScanBuilder::build`].
    pub fn access_path(mut self) -> Result<Option<AccessPath>> {
        // What comes out does not matter, and to prepare it would take longer the more columns there are.
        self.columns = Some(Vec::new());
        self.prepare(false)?.executor.access_path()
    }

    /// Checks columns, predicates and row groups, and starts the first reads.
    ///
    /// # Errors
    /// If a column or row group does not exist, or a constant does not fit the column it is compared with.
    pub fn build(self) -> Result<Scan> {
        let mut scan = self.prepare(true)?;
        scan.executor.begin();
        Ok(scan)
    }

    /// A scan that was not begun; what it `reads` first is, if that is far.
    fn prepare(self, reads: bool) -> Result<Scan> {
        if let Some(only) = self.only.as_ref().filter(|only| only.len() as u64 != self.file.num_rows()) {
            let (name, rows) = (self.file.name(), self.file.num_rows());
            let what = format!("{name}: a selection of {} rows for a file of {rows}", only.len());
            return Err(FormatError::InvalidArgument(what));
        }
        if self.totals.is_some() && self.limit.is_some() {
            let what = format!("{}: the totals of the first rows", self.file.name());
            return Err(FormatError::InvalidArgument(what));
        }
        let groups = self.file.row_groups().len();
        if self.row_groups.end > groups {
            let what = format!("{}: row groups {:?} of {groups}", self.file.name(), self.row_groups);
            return Err(FormatError::InvalidArgument(what));
        }
        let paths = self
            .columns
            .unwrap_or_else(|| self.file.schema().fields().iter().map(|field| Path::column(field.name())).collect());
        let ahead = Ahead::new(&self.file.0, &paths, &self.predicate)?;
        let mut under_way = Prefetch::default();
        if let Some(ahead) = ahead {
            ahead.metadata(&self.file.0)?;
            let bounded = self.limit.is_some() || !self.dynamic.is_empty();
            if reads {
                under_way = ahead.begin(&self.file.0, self.row_groups.clone(), bounded)?;
            }
        }
        let mut fields = Vec::with_capacity(paths.len());
        for path in &paths {
            let (node, nullable) = self.file.0.node(path)?;
            fields.push(Field::clone(&node.arrow_field()).with_nullable(nullable));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, self.file.schema().metadata().clone()));
        let metrics = Arc::<ScanMetrics>::default();
        let query_bytes = share_of(self.table_bytes, self.file.0.bytes_of(&paths)?, self.file.byte_len());
        let mut blocks = Blocks::new(Arc::clone(&self.file.0), Arc::clone(&metrics), query_bytes);
        blocks.anew = self.anew;
        let source = FileColumns::new(blocks, self.access, under_way);
        let source = if self.narrow { source.narrowing() } else { source };
        let budget = Arc::clone(self.file.0.io().budget());
        let stats = AdaptiveStats::shared(self.stats, &self.predicate, self.dynamic.len());
        let plan = Plan {
            columns: paths,
            predicate: self.predicate,
            dynamic: self.dynamic,
            row_groups: self.row_groups,
            limit: self.limit,
            totals: self.totals,
            mode: self.mode,
            stats,
            look_ahead: self.look_ahead,
            budget,
        };
        let mut scan = Scan::prepare(source, schema, plan, self.batch_rows, metrics)?;
        if let Some(only) = self.only {
            scan.executor.only(only);
        }
        Ok(scan)
    }

    /// [`ScanBuilder::build`], to iterate over.
    ///
    /// # Errors
    /// As [`ScanBuilder::build`].
    pub fn batches(self) -> Result<Scan> {
        self.build()
    }
}

/// The conjuncts of a predicate that must all be true.
pub fn conjuncts(predicate: &Expr) -> Vec<Expr> {
    let mut all = Vec::new();
    predicate::conjuncts(predicate, &mut all);
    all
}

/// `part` in `whole`, of `bytes`.
fn share_of(bytes: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl Scan<FileColumns> {
    /// What the codes of an output column stand for that a chunk gave with a dictionary. None if there is no such column.
    pub fn code_values(&self, column: usize, dictionary: &Arc<Dictionary>) -> Option<CodeValues> {
        self.executor.code_values(column, dictionary)
    }
}

impl<S: ColumnSource> Scan<S> {
    /// Starts the scan of a source: binds the predicates and begins the first reads. `schema` is that of the plan's columns
    /// as the source gives them; the source may count into the same `metrics`.
    ///
    /// # Errors
    /// If the source has no such column, or can't compare it with a constant.
    pub fn start(
        source: S,
        schema: SchemaRef,
        plan: Plan,
        batch_rows: usize,
        metrics: Arc<ScanMetrics>,
    ) -> Result<Self> {
        let mut scan = Self::prepare(source, schema, plan, batch_rows, metrics)?;
        scan.executor.begin();
        Ok(scan)
    }

    fn prepare(source: S, schema: SchemaRef, plan: Plan, batch_rows: usize, metrics: Arc<ScanMetrics>) -> Result<Self> {
        let (stats, tightens) = (Arc::clone(&plan.stats), !plan.dynamic.is_empty());
        let executor = Executor::new(source, plan, Arc::clone(&metrics))?;
        let batches = Batches::new(Arc::clone(&schema), batch_rows.max(1), tightens);
        Ok(Self { schema, metrics, stats, executor, batches })
    }

    /// The schema of its batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Counters, live.
    pub fn metrics(&self) -> &Arc<ScanMetrics> {
        &self.metrics
    }

    /// What it has learned of its filters so far, for other scans of the same query and for reports of how they fared.
    pub fn adaptive_stats(&self) -> &Arc<AdaptiveStats> {
        &self.stats
    }

    /// What was counted of blocks that do not come out ([`ScanBuilder::totals`]), since it was last asked for: of all of them once the scan
    /// has ended.
    pub fn take_totals(&mut self) -> Totals {
        self.executor.take_totals()
    }

    /// The next rows that passed, at most a block of them, dictionary columns as codes. Not to be mixed with batches.
    ///
    /// # Errors
    /// If the file can't be read or is damaged, or a predicate fails on a row that passes all others.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let scan = scope(Stage::Scan);
        loop {
            match self.executor.step()? {
                Step::Chunk(chunk) => {
                    scan.rows(chunk.rows as u64);
                    return Ok(Some(chunk));
                }
                Step::End => return Ok(None),
                Step::Waiting => self.executor.wait(),
            }
        }
    }

    /// As [`Scan::next_chunk`], if it is there: else `waker` is told when it is worth asking again.
    ///
    /// # Errors
    /// As [`Scan::next_chunk`].
    pub fn poll_chunk(&mut self, waker: &Waker) -> Poll<Option<Result<Chunk>>> {
        let scan = scope(Stage::Scan);
        loop {
            match self.executor.step() {
                Ok(Step::Chunk(chunk)) => {
                    scan.rows(chunk.rows as u64);
                    return Poll::Ready(Some(Ok(chunk)));
                }
                Ok(Step::End) => return Poll::Ready(None),
                Ok(Step::Waiting) => {
                    if self.executor.waits_for().is_some_and(|reading| reading.poll(waker).is_pending()) {
                        return Poll::Pending;
                    }
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// The next batch if it is there, for callers with other things to do while the storage is read: `waker` is told when
    /// it is worth asking again.
    ///
    /// # Errors
    /// As [`Scan::next_chunk`].
    pub fn poll_batch(&mut self, waker: &Waker) -> Poll<Option<Result<RecordBatch>>> {
        let scan = scope(Stage::Scan);
        loop {
            match self.batches.next(&mut self.executor) {
                Ok(Next::Batch(batch)) => {
                    scan.rows(batch.num_rows() as u64);
                    return Poll::Ready(Some(Ok(batch)));
                }
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

impl<S: ColumnSource> Iterator for Scan<S> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let scan = scope(Stage::Scan);
        loop {
            match self.batches.next(&mut self.executor) {
                Ok(Next::Batch(batch)) => {
                    scan.rows(batch.num_rows() as u64);
                    return Some(Ok(batch));
                }
                Ok(Next::End) => return None,
                Ok(Next::Waiting) => self.executor.wait(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
