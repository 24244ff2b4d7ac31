//! The leaf of every plan that reads Plinth files.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result, Statistics};
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_groups::{FileGroup, FileGroupPartitioner};
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::file_stream::FileOpener;
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_physical_expr::conjunction_opt;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, fmt_sql};
use datafusion_physical_expr_common::sort_expr::LexOrdering;
use datafusion_physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayFormatType, ExecutionPlan};
use object_store::ObjectStore;
use object_store::path::Path as Location;
use plinth_encoding::expr::{Path, Scalar};
use plinth_format::{AccessPath, CodeValues, File, RowGroupBound, ScanBuilder};
use plinth_rowstore::SegmentRows;

use crate::columns::FileColumns;
use crate::counted::Counted;
use crate::enlarging::enlarges;
use crate::error::from_format;
use crate::handles::Handles;
use crate::location;
use crate::metrics::PartitionMetrics;
use crate::opener::PlinthOpener;
use crate::predicates::Predicates;
use crate::split::{in_order, one_after_the_other, one_by_one, split};
use crate::statistics::Told;

/// Files that are asked for the bounds of a column: more would take longer than numbers that widen on the way.
const ASKED: usize = 32;

/// Partitions at most of a scan whose rows stay in order: each has counters of its own.
const PARTITIONS: u64 = 8192;
/// Their rows at least.
const PIECE: u64 = 64 << 10;

/// Reads Plinth files for a [`FileScanConfig`].
///
/// Takes projections whole (a struct field reads that field's columns only), and every conjunct it can own. Conjuncts that
/// change while the query runs (from TopK, hash joins, MIN and MAX) are kept apart and looked at again at every block.
#[derive(Clone)]
pub struct PlinthSource {
    pub(crate) table: TableSchema,
    pub(crate) projection: ProjectionExprs,
    pub(crate) predicates: Arc<Predicates>,
    pub(crate) batch_size: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
    pub(crate) handles: Arc<Handles>,
    /// One of the files, to tell how they will be read.
    pub(crate) example: Option<File>,
    /// What is counted and not read, if blocks may be.
    counted: Option<Arc<Counted>>,
}

impl PlinthSource {
    /// A source that reads all columns of a table.
    pub fn new(table: impl Into<TableSchema>) -> Self {
        Self::with_handles(table.into(), Arc::default())
    }

    pub(crate) fn with_handles(table: TableSchema, handles: Arc<Handles>) -> Self {
        let all: Vec<usize> = (0..table.schema_without_virtual_columns().fields().len()).collect();
        let projection = ProjectionExprs::from_indices(&all, table.table_schema());
        Self {
            table,
            projection,
            predicates: Arc::default(),
            batch_size: None,
            metrics: ExecutionPlanMetricsSet::new(),
            handles,
            example: None,
            counted: None,
        }
    }

    /// How the rows of a file are found that pass conjuncts on columns with postings; `None` if there are no such columns, or
    /// if it can't be told now: then the query will.
    fn access_path(&self) -> Option<AccessPath> {
        let file = self.example.clone().or_else(|| self.handles.any_local())?;
        let columns = FileColumns::new(&self.table, file.schema(), &[]).ok()?;
        let owned = self.predicates.translate(&columns).ok()?.owned.clone();
        owned.into_iter().fold(file.scan(), ScanBuilder::filter).access_path().ok()?
    }

    /// Whether the scan of a piece begins with a look-up, of which there should be few then.
    pub(crate) fn looks_up(&self) -> bool {
        !self.predicates.owned.is_empty() && matches!(self.access_path(), Some(AccessPath::Postings { .. }))
    }

    /// Parts of files in many partitions, in order: for threads that take one after the other.
    pub(crate) fn piece_by_piece(&self, groups: &[FileGroup], threads: usize) -> Vec<FileGroup> {
        let far = groups
            .iter()
            .flat_map(FileGroup::iter)
            .any(|part| self.handles.opened(part).is_some_and(|file| file.is_far()));
        let of = |all: u64| {
            if far {
                // Each piece waits for its first rows.
                return (all / threads.max(1) as u64).clamp(PIECE, 16 * PIECE).max(all / PARTITIONS);
            }
            // Where a filter leaves little, what a piece costs by itself counts.
            let most = if self.predicates.owned.is_empty() { PIECE } else { 4 * PIECE };
            let share = all / (8 * threads.max(1) as u64);
            (all / PARTITIONS).max(share.clamp(PIECE, most))
        };
        one_by_one(groups, of, self.looks_up(), |part| self.handles.opened(part))
    }

    /// What opens the parts of a partition.
    pub(crate) fn opener(
        &self,
        store: &Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<PlinthOpener> {
        Ok(PlinthOpener {
            table: self.table.clone(),
            output: Arc::new(self.projection.project_schema(self.table.table_schema())?),
            projection: self.projection.clone(),
            predicates: Arc::clone(&self.predicates),
            limit: config.limit,
            batch_size: self.batch_size,
            handles: Arc::clone(&self.handles),
            remote: location::remote(store, self.handles.options().objects.as_ref()),
            table_bytes: bytes_of(config),
            counted: self.counted.clone().map(|counted| (counted, partition)),
            narrow: false,
            metrics: PartitionMetrics::new(&self.metrics, partition),
        })
    }

    /// An output column as an expression over the table's columns.
    pub(crate) fn output(&self, column: usize) -> Option<Arc<dyn PhysicalExpr>> {
        self.projection.expr_iter().nth(column)
    }

    /// A column of the table, or a field of one, that the files of some parts store in the type that the table has it in: the files, each once, and
    /// where in them it is. None if one of them is not open, or there are more than `most`: each is asked before the first row is read.
    fn stored(
        &self,
        parts: &[PartitionedFile],
        expr: Option<&Arc<dyn PhysicalExpr>>,
        most: usize,
    ) -> Result<Option<Vec<(File, Path)>>> {
        let Some(expr) = expr else { return Ok(None) };
        let (mut seen, mut files) = (HashSet::new(), Vec::new());
        for part in parts {
            if !seen.insert(&part.object_meta.location) {
                continue;
            }
            if seen.len() > most {
                return Ok(None);
            }
            let Some(file) = self.handles.opened(part) else { return Ok(None) };
            let columns = FileColumns::new(&self.table, file.schema(), &part.partition_values)?;
            match columns.leaf(expr) {
                Some(leaf) if leaf.stored == *leaf.field.data_type() => files.push((file, leaf.path)),
                _ => return Ok(None),
            }
        }
        Ok(Some(files))
    }

    /// The dictionary that all rows of an output column are coded by, if there is one: of the one file that some parts are of.
    pub(crate) fn sole_dictionary(&self, parts: &[PartitionedFile], output: usize) -> Result<Option<CodeValues>> {
        match self.stored(parts, self.output(output).as_ref(), 1)?.as_deref() {
            Some([(file, path)]) => file.sole_dictionary(path).map_err(from_format),
            _ => Ok(None),
        }
    }

    /// A name of an output column, if all rows of some parts are codes of dictionaries of it, of which there are several: the files it is in, and where.
    pub(crate) fn coded_column(&self, parts: &[PartitionedFile], output: usize) -> Result<Option<String>> {
        use std::fmt::Write;
        let Some(stored) = self.stored(parts, self.output(output).as_ref(), ASKED)? else { return Ok(None) };
        let (mut name, several) = (String::new(), stored.len() > 1);
        for (file, path) in stored {
            let is_coded = file.has_several_dictionaries(&path).map_err(from_format)?
                || (several && file.sole_dictionary(&path).map_err(from_format)?.is_some());
            if !is_coded {
                return Ok(None);
            }
            // Text takes whatever is written.
            let _ = write!(name, "{}\n{path:?}\n", file.name());
        }
        Ok(Some(name))
    }

    /// How small, or how large, the values of an output column are in each row group of a part's file; `None` if the file is not open or does not
    /// store them in the type that the table has them in.
    pub(crate) fn row_group_bounds(
        &self,
        part: &PartitionedFile,
        output: usize,
        largest: bool,
    ) -> Result<Option<(File, Vec<Option<RowGroupBound>>)>> {
        let Some(file) = self.handles.opened(part) else { return Ok(None) };
        let columns = FileColumns::new(&self.table, file.schema(), &part.partition_values)?;
        let leaf = self.projection.as_ref().get(output).and_then(|projected| columns.leaf(&projected.expr));
        let Some(leaf) = leaf.filter(|leaf| leaf.stored == *leaf.field.data_type()) else { return Ok(None) };
        let bound = |group| file.row_group_bound(&leaf.path, group, largest).map_err(from_format);
        let bounds = (0..file.row_groups().len()).map(bound).collect::<Result<_>>()?;
        Ok(Some((file, bounds)))
    }

    /// Reads some of the output columns only.
    pub(crate) fn with_outputs(&self, columns: &[usize]) -> Self {
        let exprs = columns.iter().filter_map(|&column| self.projection.as_ref().get(column).cloned());
        Self { projection: ProjectionExprs::new(exprs), ..self.clone() }
    }

    /// The same, of which blocks all of whose rows pass are counted and not read, as far as metadata tells what is wanted.
    pub(crate) fn counting(self, counted: Arc<Counted>) -> Self {
        Self { counted: Some(counted), ..self }
    }

    /// The type of a column of the table.
    pub(crate) fn table_type(&self, column: usize) -> Option<DataType> {
        self.table.table_schema().fields().get(column).map(|field| field.data_type().clone())
    }

    /// The same columns of all rows, counted elsewhere.
    pub(crate) fn unfiltered(&self, metrics: &ExecutionPlanMetricsSet) -> Self {
        Self { predicates: Arc::default(), metrics: metrics.clone(), counted: None, ..self.clone() }
    }

    /// The bounds of the integers of an output column, as far as files tell.
    pub(crate) fn integers(&self, parts: &[PartitionedFile], output: usize) -> Result<Option<(i128, i128)>> {
        let mut bounds: Option<(i128, i128)> = None;
        for (file, path) in self.stored(parts, self.output(output).as_ref(), ASKED)?.unwrap_or_default() {
            let statistics = file.statistics(&path).map_err(from_format)?;
            let (Some((Scalar::Int(min), _)), Some((Scalar::Int(max), _))) = (statistics.min, statistics.max) else {
                return Ok(None);
            };
            bounds = Some(bounds.map_or((min, max), |(least, greatest)| (least.min(min), greatest.max(max))));
        }
        Ok(bounds)
    }

    /// The one file that some parts are of, if it tells that rows are in the order of an output column's integers, none of which is null; its name.
    pub(crate) fn ascending(&self, parts: &[PartitionedFile], output: usize) -> Result<Option<String>> {
        // A field of a struct is null also where the struct is.
        let column = self.output(output).filter(|expr| expr.is::<Column>());
        let stored = self.stored(parts, column.as_ref(), 1)?;
        let Some([(file, path)]) = stored.as_deref() else { return Ok(None) };
        let statistics = file.statistics(path).map_err(from_format)?;
        let whole = statistics.order.ascends && statistics.null_count == 0;
        let integers = matches!(statistics.min, Some((Scalar::Int(_), _)));
        Ok((whole && integers).then(|| file.name().to_owned()))
    }

    /// Whether an output column has no value in two rows of some parts, and no null, as far as the one file that they are of tells.
    pub(crate) fn is_unique(&self, parts: &[PartitionedFile], output: usize) -> Result<bool> {
        // A field of a struct is null also where the struct is.
        let column = self.output(output).filter(|expr| expr.is::<Column>());
        let stored = self.stored(parts, column.as_ref(), 1)?;
        let Some([(file, path)]) = stored.as_deref() else { return Ok(false) };
        let told = Told::of(file, path)?;
        Ok(told.nulls == 0 && told.distinct == Some(told.rows))
    }

    /// What metadata tells of the rows of some parts and of a column of the table, if all rows of their files are read, and the table has the
    /// column as these store it.
    ///
    /// # Errors
    /// If metadata can't be read.
    pub(crate) fn told(
        &self,
        parts: &[PartitionedFile],
        column: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Option<Told>> {
        let is_whole = |part: &PartitionedFile| {
            part.range.is_none() && part.extension::<SegmentRows>().is_none_or(|segment| segment.kept.is_none())
        };
        let files: HashSet<_> = parts.iter().map(|part| &part.object_meta.location).collect();
        if self.predicates.iter().next().is_some() || files.len() != parts.len() || !parts.iter().all(is_whole) {
            return Ok(None);
        }
        let mut all = Told::default();
        let Some(column) = column else {
            let rows = |part| self.handles.opened(part).map(|file| file.num_rows());
            let rows: Option<u64> = parts.iter().map(rows).sum();
            return Ok(rows.map(|rows| Told { rows, ..all }));
        };
        // A field of a struct is null also where the struct is.
        if column.downcast_ref::<Column>().is_none() {
            return Ok(None);
        }
        let Some(files) = self.stored(parts, Some(column), usize::MAX)? else { return Ok(None) };
        for (at, (file, path)) in files.iter().enumerate() {
            let told = Told::of(file, path)?;
            all = if at == 0 { told } else { all.with(&told) };
        }
        Ok(Some(all).filter(|_| !files.is_empty()))
    }

    /// The conjuncts this source applies exactly, in terms of the table's columns.
    pub fn owned_predicates(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.predicates.owned
    }

    /// The conjuncts that change while the query runs.
    pub fn dynamic_predicates(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.predicates.dynamic
    }
}

impl fmt::Debug for PlinthSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlinthSource")
            .field("projection", &self.projection)
            .field("owned", &self.predicates.owned)
            .field("dynamic", &self.predicates.dynamic)
            .finish_non_exhaustive()
    }
}

impl FileSource for PlinthSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(self.opener(&store, config, partition)?))
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table
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

    fn file_type(&self) -> &str {
        crate::EXTENSION
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(predicate) = self.filter() else { return Ok(()) };
        let access = self.access_path().map(|path| match path {
            AccessPath::Scan => "scan".to_owned(),
            AccessPath::Postings { column, rows } => format!("postings({column}, {rows} rows)"),
        });
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "{}", self.predicates)?;
                access.map_or(Ok(()), |access| write!(f, ", access={access}"))
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "predicate={}", fmt_sql(predicate.as_ref()))?;
                access.map_or(Ok(()), |access| writeln!(f, "access={access}"))
            }
        }
    }

    /// The minimum size is ignored: what counts is row groups, and a small file of several keeps several cores busy.
    fn repartitioned(
        &self,
        target_partitions: usize,
        _repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        let by_bytes = || {
            FileGroupPartitioner::new()
                .with_target_partitions(target_partitions)
                .with_repartition_file_min_size(0)
                .with_preserve_order_within_groups(output_ordering.is_some())
                .repartition_file_groups(&config.file_groups)
        };
        let groups = if output_ordering.is_some() {
            by_bytes()
        } else {
            let looks_up = self.looks_up();
            split(&config.file_groups, target_partitions, looks_up, |part| self.handles.opened(part)).or_else(by_bytes)
        };
        Ok(groups.map(|file_groups| {
            let mut config = config.clone();
            config.file_groups = file_groups;
            config
        }))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        in_order(files)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let with = |predicates| -> Arc<dyn FileSource> { Arc::new(Self { predicates, ..self.clone() }) };
        self.predicates.push_down(filters, &self.table, config, with)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        // What makes much of a row is evaluated above, over batches of few rows.
        if projection.expr_iter().any(|expr| enlarges(expr.as_ref(), 0).is_some()) {
            return Ok(None);
        }
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

/// Bytes of all parts of files that a scan reads.
pub(crate) fn bytes_of(config: &FileScanConfig) -> u64 {
    let of_part = |part: &PartitionedFile| {
        let ranged = part.range.as_ref().map(|range| u64::try_from(range.end.saturating_sub(range.start)).unwrap_or(0));
        ranged.unwrap_or(part.object_meta.size)
    };
    config.file_groups.iter().flat_map(FileGroup::files).map(of_part).sum()
}

/// An open file as a part of a plan, with where the engine finds it.
pub(crate) fn part_of(file: File, location: Location) -> PartitionedFile {
    let mut part = PartitionedFile::new(String::new(), file.byte_len()).with_extension(file);
    part.object_meta.location = location;
    part
}

/// The plan that scans a table's files of the local file system for some of its columns. It has one partition: the optimizer
/// has the source divide it.
pub(crate) fn plan_of(
    table: &SchemaRef,
    parts: Vec<PartitionedFile>,
    statistics: Statistics,
    columns: Vec<usize>,
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let example = parts.first().and_then(|part| part.extension::<File>()).cloned();
    let source = PlinthSource { example, ..PlinthSource::new(Arc::clone(table)) };
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
        .with_file_group(FileGroup::new(parts))
        .with_statistics(statistics)
        .with_limit(limit)
        .with_projection_indices(Some(columns))?
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

/// A plan whose scans have the rows of one partition behind those of the one before.
pub(crate) fn in_order_of_rows(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let scan = |plan: Arc<dyn ExecutionPlan>| {
        let config =
            plan.downcast_ref::<DataSourceExec>().and_then(DataSourceExec::downcast_to_file_source::<PlinthSource>);
        Ok(match config {
            Some((config, _)) if config.file_groups.len() > 1 => {
                let mut config = config.clone();
                config.file_groups = one_after_the_other(&config.file_groups);
                Transformed::yes(DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>)
            }
            _ => Transformed::no(plan),
        })
    };
    plan.transform_up(scan).map(|transformed| transformed.data)
}

/// The source of a config, if it is ours.
pub(crate) fn of_config(config: &FileScanConfig) -> Result<&PlinthSource> {
    config.file_source.downcast_ref::<PlinthSource>().ok_or_else(|| {
        DataFusionError::Internal(format!("a Plinth scan was given a {} source", config.file_source.file_type()))
    })
}
