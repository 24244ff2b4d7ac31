//! From a part of a Parquet file to a stream of batches.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use datafusion_common::config::ParquetOptions;
use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::file_stream::{FileOpenFuture, FileOpener};
use datafusion_datasource::{FileRange, PartitionedFile, TableSchema};
use datafusion_datasource_parquet::{Int96Coercer, ParquetFileReaderFactory, apply_file_schema_type_coercions};
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{FutureExt, StreamExt};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use plinth_encoding::expr::Expr;
use plinth_format::scan::{AdaptiveStats, LOOK_AHEAD, Plan};
use plinth_format::{DynamicFilter, Scan, ScanMetrics};
use plinth_io::{Io, LocalFile, Source};

use super::arrays::guarded;
use super::columns::ParquetColumns;
use super::fallback::Fallback;
use super::file::{ParquetFile, one_line, time_unit};
use crate::columns::FileColumns;
use crate::error::{from_format, from_join};
use crate::location::{self, Remote};
use crate::metrics::{PartitionMetrics, ScanReporter};
use crate::opener::Batches;
use crate::predicates::Predicates;
use crate::profile::spawn_blocking;
use crate::projection::FileProjection;

/// What to do with every file of a partition.
#[derive(Clone)]
pub(super) struct ParquetOpener {
    pub(super) options: ParquetOptions,
    pub(super) fallback: Fallback,
    pub(super) table: TableSchema,
    /// The schema of the projection over the table.
    pub(super) output: SchemaRef,
    pub(super) projection: ProjectionExprs,
    pub(super) predicates: Arc<Predicates>,
    pub(super) limit: Option<usize>,
    pub(super) batch_size: usize,
    pub(super) io: Io,
    /// Read footers, and keep them for the session.
    pub(super) readers: Arc<dyn ParquetFileReaderFactory>,
    pub(super) remote: Remote,
    /// Bytes of all files of the scan.
    pub(super) table_bytes: u64,
    pub(super) partition: usize,
    pub(super) metrics: PartitionMetrics,
    pub(super) metrics_set: ExecutionPlanMetricsSet,
}

/// What became of a part of a file.
enum Opened {
    Batches(Box<Batches<ParquetColumns>>),
    Nothing,
    /// It is not for us.
    Theirs,
}

impl FileOpener for ParquetOpener {
    fn open(&self, part: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(async move {
            // A selection of a file's rows comes in DataFusion's terms.
            if !part.extensions.is_empty() {
                return opener.fallback.open(part);
            }
            let metadata = opener.metadata(&part).await?;
            let started = if opener.remote.is_some() {
                let (opener, part) = (opener.clone(), part.clone());
                spawn_blocking(move || opener.start(&part, metadata)).await.map_err(from_join)?
            } else {
                opener.start(&part, metadata)
            };
            match started? {
                Opened::Batches(mut batches) => {
                    Ok(futures::stream::poll_fn(move |context| batches.poll(context.waker())).boxed())
                }
                Opened::Nothing => Ok(futures::stream::empty().boxed()),
                Opened::Theirs => opener.fallback.open(part),
            }
        }
        .boxed())
    }
}

impl ParquetOpener {
    async fn metadata(&self, part: &PartitionedFile) -> Result<Arc<ParquetMetaData>> {
        let hint = part.metadata_size_hint.or(self.options.metadata_size_hint);
        let mut reader = self.readers.create_reader(self.partition, part.clone(), hint, &self.metrics_set)?;
        let policy = if self.options.enable_page_index { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
        let options = ArrowReaderOptions::new().with_page_index_policy(policy);
        Ok(reader.get_metadata(Some(&options)).await?)
    }

    /// Starts the scan of a part.
    fn start(&self, part: &PartitionedFile, metadata: Arc<ParquetMetaData>) -> Result<Opened> {
        // By their places row groups are divided among parts.
        if let Err(error) = plinth_ingest::check_places(&metadata) {
            return Err(named(&*self.source(part)?, &error));
        }
        let groups: Vec<usize> = metadata
            .row_groups()
            .iter()
            .enumerate()
            .filter(|(_, group)| part.range.as_ref().is_none_or(|range| starts_in(group, range, part.object_meta.size)))
            .map(|(number, _)| number)
            .collect();
        if groups.is_empty() {
            return Ok(Opened::Nothing);
        }
        let source = self.source(part)?;
        let schema = guarded(|| self.schema(part, &metadata)).map_err(|e| named(&*source, &e))?;
        let stored = guarded(|| plinth_ingest::as_stored(&metadata)).map_err(|e| named(&*source, &e))?;
        let Ok(columns) = FileColumns::new(&self.table, &schema, &part.partition_values) else {
            let known = stored.file_metadata().schema_descr() == metadata.file_metadata().schema_descr();
            return if known { Ok(Opened::Theirs) } else { Err(bent(&*source)) };
        };
        let projection = FileProjection::new(self.projection.clone(), part, &columns, Arc::clone(&self.output))?;
        let predicates = self.predicates.translate(&columns)?;
        let dynamic = predicates.dynamic_within(self.limit);

        let metrics = Arc::<ScanMetrics>::default();
        let file = ParquetFile { source, metadata: stored, schema };
        let (row_groups, io) = (0..groups.len(), self.io.clone());
        let mut columns = ParquetColumns::new(file, groups, &io, self.table_bytes, Arc::clone(&metrics));
        if !self.options.bloom_filter_on_read {
            columns = columns.without_bloom_filters();
        }
        if predicates.owned.is_empty() && dynamic.is_empty() {
            columns = columns.with_all_rows();
        }
        let paths = projection.paths();
        let schema = columns.schema(&paths).map_err(from_format)?;
        let predicate: Vec<Expr> = predicates.owned.iter().flat_map(plinth_format::scan::conjuncts).collect();
        let dynamic: Vec<Arc<dyn DynamicFilter>> = dynamic.iter().map(|filter| Arc::clone(filter) as _).collect();
        let plan = Plan {
            columns: paths,
            stats: AdaptiveStats::shared(self.predicates.stats(), &predicate, dynamic.len()),
            predicate,
            dynamic,
            row_groups,
            limit: self.limit.map(|rows| u64::try_from(rows).unwrap_or(u64::MAX)),
            mode: self.predicates.mode(),
            totals: None,
            look_ahead: LOOK_AHEAD,
            budget: Arc::clone(io.budget()),
        };
        let scan = Scan::start(columns, schema, plan, self.batch_size, metrics).map_err(from_format)?;
        self.predicates.share_stats(scan.adaptive_stats());
        let reporter = ScanReporter::new(self.metrics.clone(), Arc::clone(scan.metrics()), None);
        Ok(Opened::Batches(Box::new(Batches::new(scan, projection, reporter))))
    }

    fn source(&self, part: &PartitionedFile) -> Result<Arc<dyn Source>> {
        let object = &part.object_meta;
        Ok(match &self.remote {
            None => {
                let file = LocalFile::open_with(location::to_path(&object.location), &self.io);
                Arc::new(file.map_err(|e| from_format(e.into()))?)
            }
            Some(store) => location::open(store, object, &self.io),
        })
    }

    /// What the file's columns are read as: what its schema says, in the table's text types, as DataFusion has it.
    fn schema(&self, part: &PartitionedFile, metadata: &Arc<ParquetMetaData>) -> parquet::errors::Result<Arc<Schema>> {
        let mut options = ArrowReaderOptions::new();
        if let Some(schema) = &part.arrow_schema {
            options = options.with_schema(Arc::clone(schema));
        }
        let as_stored = ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?;
        let mut schema = Arc::clone(as_stored.schema());
        if let Some(coerced) = apply_file_schema_type_coercions(self.table.file_schema(), &schema) {
            schema = Arc::new(coerced);
        }
        if let Some(unit) = self.options.coerce_int96.as_deref().and_then(time_unit) {
            let zone = self.options.coerce_int96_tz.as_deref().map(Arc::from);
            let coercer = Int96Coercer::new(as_stored.parquet_schema(), &schema, &unit).with_timezone(zone);
            if let Some(coerced) = coercer.coerce() {
                schema = Arc::new(coerced);
            }
        }
        // The decoders' word on whether the file can be read so.
        let options = ArrowReaderOptions::new().with_schema(schema);
        Ok(Arc::clone(ArrowReaderMetadata::try_new(Arc::clone(metadata), options)?.schema()))
    }
}

/// A row group belongs to the part that its first page lies in; where the footer has it elsewhere, to the part nearest to that: whatever
/// reads it says what is wrong.
fn starts_in(group: &RowGroupMetaData, range: &FileRange, size: u64) -> bool {
    let last = i64::try_from(size).unwrap_or(i64::MAX).saturating_sub(1);
    let start = |chunk: &ColumnChunkMetaData| {
        let dictionary = chunk.dictionary_page_offset().filter(|offset| *offset > 0);
        dictionary.unwrap_or_else(|| chunk.data_page_offset())
    };
    range.contains(group.columns().first().map_or(0, start).clamp(0, last.max(0)))
}

/// DataFusion's scan would wrap such timestamps and leave out parts of such intervals.
fn bent(source: &dyn Source) -> DataFusionError {
    let what =
        "holds INT96 timestamps or intervals, and its columns are not those of the table: read it alone, or import it";
    DataFusionError::Execution(format!("{}: {what}", source.name()))
}

fn named(source: &dyn Source, error: &ParquetError) -> DataFusionError {
    DataFusionError::Execution(format!("{}: {}", source.name(), one_line(error)))
}
