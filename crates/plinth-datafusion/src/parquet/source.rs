//! The leaf of plans that read Parquet files by Plinth's executor.

use std::fmt;
use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_datasource::TableSchema;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_datasource::file_stream::FileOpener;
use datafusion_datasource_parquet::DefaultParquetFileReaderFactory;
use datafusion_datasource_parquet::source::ParquetSource;
use datafusion_physical_expr::conjunction_opt;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, fmt_sql};
use datafusion_physical_plan::DisplayFormatType;
use datafusion_physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use object_store::ObjectStore;
use plinth_format::OpenOptions;

use super::fallback::Fallback;
use super::opener::ParquetOpener;
use crate::location;
use crate::metrics::PartitionMetrics;
use crate::predicates::Predicates;
use crate::source::bytes_of;

/// Reads Parquet files for a [`FileScanConfig`]: each conjunct it takes it applies in every file, whatever that file's
/// columns. A file that it can't read in the table's terms DataFusion's source reads, and the conjuncts are applied after.
#[derive(Clone)]
pub struct ParquetScan {
    /// Reads all columns and knows no filter: where options come from, and what reads what we can't.
    theirs: ParquetSource,
    projection: ProjectionExprs,
    predicates: Arc<Predicates>,
    batch_size: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
    options: OpenOptions,
}

impl ParquetScan {
    /// What reads the same as DataFusion's source; `None` if it asks for what only that can do.
    pub fn in_place_of(source: &ParquetSource, options: OpenOptions) -> Option<Self> {
        let table = source.table_schema();
        let theirs = source.table_parquet_options();
        let plain = table.virtual_columns().is_empty()
            && source.filter().is_none()
            && theirs.crypto.file_decryption.is_none()
            && theirs.crypto.factory_id.is_none();
        if !plain {
            return None;
        }
        let mut whole = ParquetSource::new(table.clone()).with_table_parquet_options(theirs.clone());
        if let Some(factory) = source.parquet_file_reader_factory() {
            whole = whole.with_parquet_file_reader_factory(Arc::clone(factory));
        }
        Some(Self {
            theirs: whole,
            projection: source.projection()?.clone(),
            predicates: Arc::default(),
            batch_size: None,
            metrics: source.metrics().clone(),
            options,
        })
    }

    /// The conjuncts this source applies exactly, in terms of the table's columns.
    pub fn owned_predicates(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.predicates.owned
    }
}

impl fmt::Debug for ParquetScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetScan")
            .field("projection", &self.projection)
            .field("owned", &self.predicates.owned)
            .field("dynamic", &self.predicates.dynamic)
            .finish_non_exhaustive()
    }
}

impl FileSource for ParquetScan {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let table = self.theirs.table_schema().clone();
        let readers = match self.theirs.parquet_file_reader_factory() {
            Some(factory) => Arc::clone(factory),
            None => Arc::new(DefaultParquetFileReaderFactory::new(Arc::clone(&store))),
        };
        let batch_size = self.batch_size.ok_or_else(|| internal_datafusion_err!("a scan without a batch size"))?;
        let output = Arc::new(self.projection.project_schema(table.table_schema())?);
        Ok(Arc::new(ParquetOpener {
            options: self.theirs.table_parquet_options().global.clone(),
            fallback: Fallback {
                source: self.theirs.clone(),
                config: Arc::new(config.clone()),
                store: Arc::clone(&store),
                batch_size,
                projection: self.projection.clone(),
                output: Arc::clone(&output),
                predicates: Arc::clone(&self.predicates),
                metrics: self.metrics.clone(),
            },
            table,
            output,
            projection: self.projection.clone(),
            predicates: Arc::clone(&self.predicates),
            limit: config.limit,
            batch_size,
            io: self.options.io.clone(),
            readers,
            remote: location::remote(&store, self.options.objects.as_ref()),
            table_bytes: bytes_of(config),
            partition,
            metrics: PartitionMetrics::new(&self.metrics, partition),
            metrics_set: self.metrics.clone(),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.theirs.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size: Some(batch_size), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        conjunction_opt(self.predicates.iter().cloned())
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &'static str {
        "parquet"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let predicate = self.filter();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "{}, scan=plinth", self.predicates)
            }
            DisplayFormatType::TreeRender => {
                predicate.map_or(Ok(()), |predicate| writeln!(f, "predicate={}", fmt_sql(predicate.as_ref())))?;
                writeln!(f, "scan=plinth")
            }
        }
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let with = |predicates| -> Arc<dyn FileSource> { Arc::new(Self { predicates, ..self.clone() }) };
        self.predicates.push_down(filters, self.table_schema(), config, with)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.try_merge(projection)?;
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let projected = self.projection.iter().map(|projected| &projected.expr);
        datafusion_physical_plan::apply_expression_roots(self.predicates.iter().chain(projected), f)
    }
}
