//! From a part of a file to a stream of batches.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, Waker};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use datafusion_common::Result;
use datafusion_datasource::file_stream::{FileOpenFuture, FileOpener};
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_physical_expr::projection::ProjectionExprs;
use futures::{FutureExt, StreamExt};
use plinth_encoding::expr::Expr;
use plinth_format::scan::source::ColumnSource;
use plinth_format::{DynamicFilter, File, Scan};
use plinth_profile::{Pause, Profiler, Stage, scope};
use plinth_rowstore::SegmentRows;

use crate::columns::FileColumns;
use crate::counted::Counted;
use crate::dynamic::EngineFilter;
use crate::error::{from_format, from_join, from_table};
use crate::handles::Handles;
use crate::location::Remote;
use crate::metrics::{PartitionMetrics, ScanReporter};
use crate::predicates::Predicates;
use crate::profile::spawn_blocking;
use crate::projection::FileProjection;

/// What to do with every file of a partition.
#[derive(Clone)]
pub(crate) struct PlinthOpener {
    pub(crate) table: TableSchema,
    pub(crate) projection: ProjectionExprs,
    /// The schema of the projection over the table.
    pub(crate) output: SchemaRef,
    pub(crate) predicates: Arc<Predicates>,
    pub(crate) limit: Option<usize>,
    pub(crate) batch_size: Option<usize>,
    pub(crate) handles: Arc<Handles>,
    /// Where the files are, if not on the local file system.
    pub(crate) remote: Remote,
    /// Bytes of all files of the scan.
    pub(crate) table_bytes: u64,
    /// What is counted and not read, if blocks may be, and of which partition.
    pub(crate) counted: Option<(Arc<Counted>, usize)>,
    /// Whether decimals come in 64 bits where they are stored so: for those who take chunks.
    pub(crate) narrow: bool,
    pub(crate) metrics: PartitionMetrics,
}

impl FileOpener for PlinthOpener {
    fn open(&self, part: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        // Opening reads the footer and the metadata of the columns asked for; it happens when the partition gets to this
        // file, not when the plan starts.
        Ok(async move {
            let started = if opener.is_far(&part) {
                spawn_blocking(move || opener.start(&part)).await.map_err(from_join)?
            } else {
                opener.start(&part)
            };
            Ok(match started? {
                Some(mut batches) => futures::stream::poll_fn(move |context| batches.poll(context.waker())).boxed(),
                None => futures::stream::empty().boxed(),
            })
        }
        .boxed())
    }
}

impl PlinthOpener {
    fn start(&self, part: &PartitionedFile) -> Result<Option<Batches<impl ColumnSource + use<>>>> {
        Ok(self.begin(part)?.map(Started::batches))
    }

    /// Starts the scan of a part; `None` if no row group starts in it.
    pub(crate) fn begin(&self, part: &PartitionedFile) -> Result<Option<Started>> {
        let file = self.file(part)?;
        let groups = row_groups(part, &file);
        if groups.is_empty() {
            return Ok(None);
        }
        self.scan(part, file, groups, None).map(Some)
    }

    /// Starts the scan of some row groups of a part's file; of some of the file's rows, if these are given, one bit a row.
    pub(crate) fn begin_at(
        &self,
        part: &PartitionedFile,
        groups: Range<usize>,
        rows: Option<BooleanBuffer>,
    ) -> Result<Started> {
        let file = self.file(part)?;
        self.scan(part, file, groups, rows)
    }

    /// Whether to begin with a part may wait for a network.
    pub(crate) fn is_far(&self, part: &PartitionedFile) -> bool {
        self.remote.is_some() || part.extension::<File>().is_some_and(File::is_far)
    }

    /// The file of a part.
    pub(crate) fn file(&self, part: &PartitionedFile) -> Result<File> {
        let _opening = scope(Stage::Open);
        self.handles.open(&self.remote, part)
    }

    fn scan(
        &self,
        part: &PartitionedFile,
        file: File,
        groups: Range<usize>,
        rows: Option<BooleanBuffer>,
    ) -> Result<Started> {
        let first = groups.start == 0;
        let columns = FileColumns::new(&self.table, file.schema(), &part.partition_values)?;
        let projection = FileProjection::new(self.projection.clone(), part, &columns, Arc::clone(&self.output))?;
        let predicates = self.predicates.translate(&columns)?;
        let mut scan = file.scan().project(projection.paths()).row_groups(groups).table_bytes(self.table_bytes);
        for conjunct in &predicates.owned {
            scan = scan.filter(conjunct.clone());
        }
        let dynamic = predicates.dynamic_within(self.limit);
        for filter in dynamic {
            scan = scan.dynamic_filter(Arc::clone(filter) as Arc<dyn DynamicFilter>);
        }
        let rows = match (rows, part.extension::<SegmentRows>()) {
            (None, Some(segment)) => self.rows_of(segment, &predicates.owned, dynamic)?,
            (rows, _) => rows,
        };
        if let Some(rows) = rows {
            scan = scan.only_rows(rows);
        }
        if let Some(limit) = self.limit {
            scan = scan.limit(u64::try_from(limit).unwrap_or(u64::MAX));
        }
        if let Some(rows) = self.batch_size {
            scan = scan.batch_rows(rows);
        }
        if self.narrow {
            scan = scan.narrow();
        }
        let totals = self.counted.as_ref().and_then(|(counted, _)| counted.of_file(&columns));
        let counted = self.counted.clone().filter(|_| totals.is_some());
        if let Some(totals) = totals {
            scan = scan.totals(totals);
        }
        if let Some(stats) = self.predicates.stats() {
            scan = scan.adaptive_stats(stats);
        }
        let scan = scan.pushdown_mode(self.predicates.mode()).build().map_err(from_format)?;
        self.predicates.share_stats(scan.adaptive_stats());
        let reporter = ScanReporter::new(self.metrics.clone(), Arc::clone(scan.metrics()), first.then_some(file));
        Ok(Started { scan, projection, reporter, counted })
    }
}

impl PlinthOpener {
    /// The rows of a writable table's segment to look at: those that an index of the table has found, else those that are not
    /// deleted; `None` if that is all.
    ///
    /// What a join or TopK knows by now counts, too: a join with few keys reads only the rows that have them.
    fn rows_of(
        &self,
        segment: &SegmentRows,
        owned: &[Expr],
        dynamic: &[Arc<EngineFilter>],
    ) -> Result<Option<BooleanBuffer>> {
        if segment.is_indexed() {
            let dynamic = dynamic.iter().filter_map(|filter| Some(filter.newer_than(0)?.1));
            let all: Vec<Expr> = owned.iter().cloned().chain(dynamic).collect();
            if let Some(narrowed) = segment.narrow(&all).map_err(from_table)? {
                self.metrics.found_by_index(narrowed.rows.count_set_bits());
                return Ok(Some(narrowed.rows));
            }
        }
        Ok(segment.kept.clone())
    }
}

/// The row groups that start in a part.
pub(crate) fn row_groups(part: &PartitionedFile, file: &File) -> Range<usize> {
    match &part.range {
        Some(range) => {
            let offset = |at: i64| u64::try_from(at).unwrap_or(0);
            file.row_groups_in(offset(range.start)..offset(range.end))
        }
        None => 0..file.row_groups().len(),
    }
}

/// A part whose scan has begun.
pub(crate) struct Started {
    pub(crate) scan: Scan,
    pub(crate) projection: FileProjection,
    pub(crate) reporter: ScanReporter,
    counted: Option<(Arc<Counted>, usize)>,
}

impl Started {
    /// Its rows as the table has them.
    pub(crate) fn batches(self) -> Batches<impl ColumnSource + use<>> {
        Batches { counted: self.counted, ..Batches::new(self.scan, self.projection, self.reporter) }
    }
}

/// The batches of a scan, shaped for the table. Decoding happens on the thread that polls, reading what is not in memory
/// on those of the I/O engine.
pub(crate) struct Batches<S: ColumnSource> {
    /// Gone after its end or first error.
    scan: Option<Scan<S>>,
    projection: FileProjection,
    reporter: ScanReporter,
    /// Where what was counted goes, if blocks may be.
    counted: Option<(Arc<Counted>, usize)>,
    /// While it waits for storage.
    pause: Option<Pause>,
}

impl<S: ColumnSource> Batches<S> {
    pub(crate) fn new(scan: Scan<S>, projection: FileProjection, reporter: ScanReporter) -> Self {
        Self { scan: Some(scan), projection, reporter, counted: None, pause: None }
    }

    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Option<Result<RecordBatch>>> {
        let Some(scan) = &mut self.scan else { return Poll::Ready(None) };
        self.pause = None;
        let Poll::Ready(next) = scan.poll_batch(waker) else {
            self.pause = Some(Profiler::current().pause());
            return Poll::Pending;
        };
        self.reporter.report();
        let mut batch = next.map(|batch| self.projection.apply(&batch.map_err(from_format)?));
        if let (None, Some((counted, partition))) = (&batch, self.counted.take_if(|_| batch.is_none())) {
            batch = counted.add(partition, &scan.take_totals()).err().map(Err);
        }
        if !matches!(batch, Some(Ok(_))) {
            self.scan = None;
        }
        Poll::Ready(batch)
    }
}
