//! A table over an ordered list of files.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion_catalog::{ScanArgs, ScanResult};
use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::FileScanConfigBuilder;
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::{Session, TableProvider};
use plinth_format::File;

use crate::error::from_format;
use crate::source::PlinthSource;
use crate::{location, schema, statistics};

/// A table over an ordered list of Plinth files whose columns are united by name; a column that a file lacks is null
/// there. The files stay open, so their footers, and what was read of their columns' metadata, are read once.
#[derive(Debug)]
pub struct PlinthTable {
    files: Vec<Part>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
}

impl PlinthTable {
    /// Opens the files; rows come in the order given where a plan keeps order at all.
    ///
    /// # Errors
    /// If there are none, one can't be read, or two disagree about a column's type.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self> {
        if paths.is_empty() {
            return Err(DataFusionError::Plan("a table needs at least one Plinth file".to_owned()));
        }
        let open = |path: PathBuf| File::open(&path).map(|file| Part { path, file }).map_err(from_format);
        let files = paths.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        let handles: Vec<File> = files.iter().map(|part| part.file.clone()).collect();
        Ok(Self { files, schema: schema::unite(&handles)? })
    }

    /// The open files, in order.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &File)> {
        self.files.iter().map(|part| (part.path.as_path(), &part.file))
    }

    /// Rows of all files.
    pub fn num_rows(&self) -> u64 {
        self.files.iter().map(|part| part.file.num_rows()).sum()
    }

    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&[usize]>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let width = self.schema.fields().len();
        let projection = projection.map_or_else(|| (0..width).collect(), <[usize]>::to_vec);
        if let Some(beyond) = projection.iter().find(|&&i| i >= width) {
            return Err(DataFusionError::Internal(format!("column {beyond} of a table of {width}")));
        }
        let mut wanted = vec![false; width];
        if state.config_options().execution.collect_statistics {
            let filtered =
                filters.iter().flat_map(Expr::column_refs).filter_map(|c| self.schema.index_of(&c.name).ok());
            for i in projection.iter().copied().chain(filtered) {
                wanted[i] = true;
            }
        }
        let files: Vec<File> = self.files.iter().map(|part| part.file.clone()).collect();
        let statistics = statistics::of_files(&files, &self.schema, |i| wanted[i])?;

        let parts = self.files.iter().map(|part| {
            let mut planned =
                PartitionedFile::new(String::new(), part.file.byte_len()).with_extension(part.file.clone());
            planned.object_meta.location = location::from_path(&part.path);
            planned
        });
        // One partition; the optimizer has the source divide it.
        let group = FileGroup::new(parts.collect());
        let source = PlinthSource::new(Arc::clone(&self.schema));
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_group(group)
            .with_statistics(statistics)
            .with_limit(limit)
            .with_projection_indices(Some(projection))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

// The async methods are written out as the boxed futures they are: they need not wait for anything, and a future that
// captures the engine's expressions costs the compiler dearly.
impl TableProvider for PlinthTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        filters: &'life3 [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'async_trait, Result<Arc<dyn ExecutionPlan>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        let plan = self.plan(state, projection.map(Vec::as_slice), filters, limit);
        Box::pin(std::future::ready(plan))
    }

    fn scan_with_args<'a, 'life0, 'life1, 'async_trait>(
        &'life0 self,
        state: &'life1 dyn Session,
        args: ScanArgs<'a>,
    ) -> BoxFuture<'async_trait, Result<ScanResult>>
    where
        'a: 'async_trait,
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        let plan = self.plan(state, args.projection(), args.filters().unwrap_or(&[]), args.limit());
        Box::pin(std::future::ready(plan.map(ScanResult::from)))
    }

    /// `Inexact` though the scan is exact: the filter then still counts while joins are ordered, and the physical
    /// optimizer hands it to the source afterwards.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match filter.is_volatile() {
                true => TableProviderFilterPushDown::Unsupported,
                false => TableProviderFilterPushDown::Inexact,
            })
            .collect())
    }
}
