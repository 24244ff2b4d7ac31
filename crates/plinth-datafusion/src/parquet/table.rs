//! Parquet files as a table: those that an import would read, with the columns that it would make of them.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::config::TableParquetOptions;
use datafusion_common::stats::Precision;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::FileScanConfigBuilder;
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource::{PartitionedFile, TableSchema, TableSchemaBuilder, compute_all_files_statistics};
use datafusion_datasource_parquet::Int96Coercer;
use datafusion_datasource_parquet::metadata::{DFParquetMetadata, ordering_from_parquet_metadata};
use datafusion_datasource_parquet::source::ParquetSource;
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_session::{Session, TableProvider};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::ObjectMeta;
use parquet::arrow::parquet_to_arrow_schema;
use plinth_ingest::{IngestError, Listing};
use plinth_table::SchemaUnion;

use super::arrays::guarded;
use super::file::{one_line, time_unit};
use super::footers::Footers;
use super::members;

/// Files of Parquet as a table.
///
/// Its columns are what an import of the files would make of them: united by name as those of Plinth files are, in the narrowest type
/// that holds the values of all, dictionaries as their values, and behind them those that the names of folders are. Which files there are is known when the
/// table is opened; of those whose folders rule them out a scan reads nothing.
#[derive(Debug)]
pub struct ParquetTable {
    options: TableParquetOptions,
    store: ObjectStoreUrl,
    schema: TableSchema,
    files: Vec<PartitionedFile>,
}

impl ParquetTable {
    /// Reads the footers of files that were listed.
    ///
    /// # Errors
    /// If one can't be read, names two columns alike, or has a column of another type than the others that no type has in common with
    /// it; the message names the file.
    pub async fn open(session: &dyn Session, listing: &Listing) -> Result<Self> {
        let options = session.default_table_options().parquet;
        let (store, members) = members::located(listing)?;
        let footers = Footers::new(session, &store)?;
        let concurrency = session.config_options().execution.meta_fetch_concurrency.get();
        let schemas = members.iter().map(|(path, meta)| schema_of(&footers, &options, path, meta).boxed());
        let schemas = stream::iter(schemas.collect::<Vec<_>>()).buffered(concurrency).try_collect::<Vec<_>>().await?;
        let mut union = SchemaUnion::new();
        let mut last: Option<SchemaRef> = None;
        let mut files = Vec::with_capacity(members.len());
        for (((path, meta), schema), (.., values)) in members.into_iter().zip(schemas).zip(listing.files()) {
            // Thousands of files of one kind share one schema.
            let schema = match last.take().filter(|last| **last == schema) {
                Some(last) => last,
                None => {
                    plinth_ingest::check_names(path, &schema).map_err(external)?;
                    let schema = Arc::new(schema);
                    union.add(&path.display().to_string(), &schema).map_err(crate::from_format)?;
                    schema
                }
            };
            last = Some(Arc::clone(&schema));
            let values = values.iter().map(|value| ScalarValue::Utf8View(value.clone())).collect();
            files.push(PartitionedFile::new_from_meta(meta).with_arrow_schema(schema).with_partition_values(values));
        }
        let united = union.schema();
        listing.check_columns(united.fields().iter().map(|field| field.name().as_str())).map_err(external)?;
        let of_folders = listing.columns().iter().map(|name| Arc::new(Field::new(name, DataType::Utf8View, true)));
        let schema =
            TableSchemaBuilder::from(&united).with_table_partition_cols(of_folders.collect::<Vec<_>>()).build();
        Ok(Self { options, store, schema, files })
    }

    /// The files that filters on the columns of their folders leave.
    fn left_by(&self, state: &dyn Session, filters: &[Expr]) -> Vec<PartitionedFile> {
        let columns = self.schema.table_partition_cols();
        let mut filters = filters.iter().filter(|filter| is_of(filter, columns)).peekable();
        if filters.peek().is_none() {
            return self.files.clone();
        }
        // What can't be told now is told row by row.
        let passes = conjunction(filters.cloned()).and_then(|filter| self.passing(state, filter).ok());
        match passes {
            Some(passes) => {
                self.files.iter().zip(passes).filter(|(_, passes)| *passes).map(|(file, _)| file.clone()).collect()
            }
            None => self.files.clone(),
        }
    }

    /// Which files a filter on the columns of folders lets pass.
    fn passing(&self, state: &dyn Session, filter: Expr) -> Result<Vec<bool>> {
        let columns = self.schema.table_partition_cols();
        let values = (0..columns.len()).map(|at| {
            let of_file = |file: &PartitionedFile| match file.partition_values.get(at) {
                Some(ScalarValue::Utf8View(value)) => value.clone(),
                _ => None,
            };
            Arc::new(self.files.iter().map(of_file).collect::<StringViewArray>()) as ArrayRef
        });
        let schema = Arc::new(Schema::new(columns.to_vec()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), values.collect())?;
        // Filters may name the table, of which these columns know nothing.
        let filter = filter.transform(|node| {
            Ok(match node {
                Expr::Column(column) if column.relation.is_some() => {
                    Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
                }
                other => Transformed::no(other),
            })
        })?;
        let filter = state.create_physical_expr(filter.data, &DFSchema::try_from(schema)?)?;
        let truth = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
        let truth = arrow_array::cast::as_boolean_array(&truth).clone();
        Ok(truth.iter().map(|passes| passes == Some(true)).collect())
    }

    async fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = self.schema.table_schema();
        let collect = state.config().collect_statistics();
        let footers = Footers::new(state, &self.store)?;
        let concurrency = state.config_options().execution.meta_fetch_concurrency.get();
        let files = self.left_by(state, filters).into_iter().map(|file| match collect {
            true => self.measured(&footers, file).boxed(),
            false => std::future::ready(Ok(file)).boxed(),
        });
        let mut files = stream::iter(files.collect::<Vec<_>>()).buffered(concurrency);
        // Rows that are wanted, where no filter takes any away: files behind them need not be read.
        let wanted = limit.filter(|_| filters.is_empty());
        let (mut read, mut rows, mut cut) = (Vec::new(), 0usize, false);
        while let Some(file) = files.try_next().await? {
            if wanted.is_some_and(|wanted| rows >= wanted) {
                cut = true;
                break;
            }
            let exact = file.statistics.as_ref().and_then(|known| match known.num_rows {
                Precision::Exact(rows) => Some(rows),
                _ => None,
            });
            rows = rows.saturating_add(exact.unwrap_or(0));
            read.push(file);
        }
        drop(files);
        if read.is_empty() {
            let schema = projection.map(|columns| table.project(columns)).transpose()?.map(Arc::new);
            return Ok(Arc::new(EmptyExec::new(schema.unwrap_or_else(|| Arc::clone(table)))));
        }
        let ordering = members::common_ordering(&read);
        let groups = FileGroup::new(read).split_files(state.config().target_partitions());
        let (groups, statistics) = compute_all_files_statistics(groups, Arc::clone(table), collect, cut)?;
        let mut source = ParquetSource::new(self.schema.clone())
            .with_table_parquet_options(self.options.clone())
            .with_parquet_file_reader_factory(Arc::new(footers));
        if let Some(hint) = self.options.global.metadata_size_hint {
            source = source.with_metadata_size_hint(hint);
        }
        let config = FileScanConfigBuilder::new(self.store.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .with_output_ordering(ordering.into_iter().collect())
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// A file with what its footer says of its values and their order.
    async fn measured(&self, footers: &Footers, mut file: PartitionedFile) -> Result<PartitionedFile> {
        let metadata = reader(footers, &self.options, &file.object_meta).fetch_metadata().await?;
        let own = file.arrow_schema.clone().unwrap_or_else(|| Arc::clone(self.schema.file_schema()));
        let known = DFParquetMetadata::statistics_from_parquet_metadata(&metadata, &own)?;
        if members::is_ordered_whole(&metadata) {
            file.ordering = ordering_from_parquet_metadata(&metadata, self.schema.file_schema())?;
        }
        let told = members::Told { known, metadata: &metadata };
        file.statistics = Some(Arc::new(told.statistics(&own, &self.schema, &file.partition_values)));
        Ok(file)
    }
}

fn external(error: IngestError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What reads a footer, and keeps it for the session.
fn reader<'a>(footers: &'a Footers, options: &TableParquetOptions, meta: &'a ObjectMeta) -> DFParquetMetadata<'a> {
    DFParquetMetadata::new(footers.client(), meta)
        .with_metadata_size_hint(options.global.metadata_size_hint)
        .with_file_metadata_cache(Some(footers.of(meta)))
}

/// The columns of a file in the types of their values.
async fn schema_of(footers: &Footers, options: &TableParquetOptions, path: &Path, meta: &ObjectMeta) -> Result<Schema> {
    let name = path.display();
    let damaged = |what: &str| {
        DataFusionError::Execution(match what.contains("encryption feature") {
            true => format!("{name}: the file is encrypted, which can't be read; decrypt it first"),
            false => {
                let what = what.trim_start_matches("Invalid Parquet file. ");
                format!("{name}: not a readable Parquet file: {what}")
            }
        })
    };
    let reader = reader(footers, options, meta);
    // The parser of footers is a dependency's: a panic in it is an error of the file.
    let metadata = match AssertUnwindSafe(reader.fetch_metadata()).catch_unwind().await {
        Ok(Ok(metadata)) => metadata,
        Ok(Err(DataFusionError::ParquetError(e))) => return Err(damaged(&one_line(&e))),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(damaged("its footer is damaged")),
    };
    let schema = guarded(|| {
        plinth_ingest::check_types(&metadata)?;
        let file = metadata.file_metadata();
        let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
        let Some(unit) = options.global.coerce_int96.as_deref().and_then(time_unit) else { return Ok(schema) };
        let zone = options.global.coerce_int96_tz.as_deref().map(Arc::from);
        let coercer = Int96Coercer::new(file.schema_descr(), &schema, &unit).with_timezone(zone);
        Ok(coercer.coerce().unwrap_or(schema))
    });
    let schema = schema.map_err(|e| damaged(&one_line(&e)))?;
    Ok(plinth_ingest::value_schema(&schema, options.global.binary_as_string))
}

/// Whether a filter asks for nothing but some columns, so that it has one value where they have.
fn is_of(filter: &Expr, columns: &[Arc<Field>]) -> bool {
    let mut is_of = !filter.is_volatile();
    // The closure returns no error.
    let visited = filter.apply(|node| {
        is_of &= match node {
            Expr::Column(column) => columns.iter().any(|field| *field.name() == column.name),
            Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::ScalarSubquery(_)
            | Expr::SetComparison(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::Placeholder(_) => false,
            _ => true,
        };
        Ok(if is_of { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    is_of && visited.is_ok()
}

impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    // `async_trait`'s signature, written out as elsewhere.
    fn scan<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        state: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        filters: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'e, Result<Arc<dyn ExecutionPlan>>> {
        self.plan(state, projection, filters, limit).boxed()
    }
}
