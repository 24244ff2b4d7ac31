//! What sessions use of `plinth-datafusion`, in one place.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::Result;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::listing::ListingTable;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;
use plinth_datafusion::{
    CurrentSession, FileOptions, PathTables, PlinthFormatFactory, PlinthTable, StoreTable, Stores,
};
use plinth_format::{FileSummary, OpenOptions, WriterOptions};
use plinth_ingest::SourceOptions;
use plinth_rowstore::TableOptions;

use crate::error::SqlError;

/// Opens Plinth files as one table.
pub(crate) fn open(files: Vec<PathBuf>, options: &FileOptions) -> Result<Arc<PlinthTable>> {
    PlinthTable::open_with(files, options).map(Arc::new)
}

/// Opens a folder of Plinth files, of which `before` may have some open.
pub(crate) fn open_folder(
    folder: PathBuf,
    before: Option<&PlinthTable>,
    options: &FileOptions,
) -> Result<Arc<PlinthTable>> {
    PlinthTable::open_folder_with(folder, before, options).map(Arc::new)
}

/// Tables by path: `FROM 'x.plinth'`, `FROM 'x.csv'`, and what `others` knows.
pub(crate) fn path_tables(
    others: Arc<dyn UrlTableFactory>,
    session: Arc<dyn CurrentSession>,
    options: FileOptions,
    text: SourceOptions,
    stores: &Arc<Stores>,
) -> Arc<dyn UrlTableFactory> {
    let tables = PathTables::new(others, session).with_options(options).with_text(text);
    Arc::new(tables.with_stores(Arc::clone(stores)))
}

/// Has the errors of a factory say what could not be opened.
#[derive(Debug)]
pub(crate) struct Naming(pub(crate) Arc<dyn UrlTableFactory>);

impl UrlTableFactory for Naming {
    // `async_trait`'s signature, written out.
    fn try_new<'a: 'c, 'b: 'c, 'c>(&'a self, url: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move { self.0.try_new(url).await.map_err(|e| naming(url, SqlError::from(e)).into()) })
    }
}

/// A failure that says what it is about.
pub(crate) fn naming(name: &str, failure: SqlError) -> SqlError {
    match failure {
        SqlError::Message(kind, what) if !what.contains(name) => SqlError::of(kind, format!("{name}: {what}")),
        other => other,
    }
}

/// How writable tables are opened: what they keep is a small part of the memory.
pub(crate) fn store_options(open: &OpenOptions, writer: WriterOptions, memory: u64) -> TableOptions {
    let defaults = TableOptions::default();
    let share = (memory / 16).max(1 << 20);
    TableOptions {
        cache_bytes: defaults.cache_bytes.min(share),
        merge_bytes: defaults.merge_bytes.min(share),
        import_bytes: defaults.import_bytes.min(share),
        writer,
        open: open.clone(),
        ..defaults
    }
}

/// The file format for `COPY TO` and `STORED AS`.
pub(crate) fn format_factory(options: FileOptions) -> Arc<dyn FileFormatFactory> {
    Arc::new(PlinthFormatFactory::with_options(options))
}

/// A table of Plinth files with the columns of some names alone; any other as it is.
pub(crate) fn of_columns(table: Arc<dyn TableProvider>, named: impl Fn(&str) -> bool) -> Arc<dyn TableProvider> {
    let any: &dyn Any = table.as_ref();
    match any.downcast_ref::<PlinthTable>().and_then(|table| table.of_columns(named)) {
        Some(narrow) => Arc::new(narrow),
        None => table,
    }
}

/// Whether a table is made of Plinth files.
pub(crate) fn is_plinth(table: &Arc<dyn TableProvider>) -> bool {
    let any: &dyn Any = table.as_ref();
    any.is::<PlinthTable>()
        || any.downcast_ref::<ListingTable>().is_some_and(|t| t.options().format.get_ext().ends_with("plinth"))
}

/// Whether a table can be written to.
pub(crate) fn is_store(table: &Arc<dyn TableProvider>) -> bool {
    let any: &dyn Any = table.as_ref();
    any.is::<StoreTable>()
}

/// What a table that can be written to keeps beside its columns.
pub(crate) fn notes(table: &Arc<dyn TableProvider>) -> Option<&BTreeMap<String, String>> {
    let any: &dyn Any = table.as_ref();
    any.downcast_ref::<StoreTable>().map(StoreTable::notes)
}

/// The folder of Plinth files that a table is.
pub(crate) fn folder(table: &Arc<dyn TableProvider>) -> Option<PathBuf> {
    let any: &dyn Any = table.as_ref();
    any.downcast_ref::<PlinthTable>()?.folder().map(Path::to_path_buf)
}

/// The Plinth files a table is made of, if it is: how many, their rows and their bytes.
pub fn plinth_files(table: &Arc<dyn TableProvider>) -> Option<(u64, u64, u64)> {
    let any: &dyn Any = table.as_ref();
    if let Some(table) = any.downcast_ref::<StoreTable>() {
        return table.size().ok();
    }
    let table = any.downcast_ref::<PlinthTable>()?;
    let (files, bytes) = table.files().fold((0, 0), |(n, bytes), (_, file)| (n + 1, bytes + file.byte_len()));
    Some((files, table.num_rows(), bytes))
}

/// An index of a table: its name, its columns, and whether it is unique.
pub type IndexOfTable = (String, Vec<String>, bool);

/// The key of a table that can be written to, and its indexes.
pub fn key_and_indexes(table: &Arc<dyn TableProvider>) -> Option<(Vec<String>, Vec<IndexOfTable>)> {
    let any: &dyn Any = table.as_ref();
    let table = any.downcast_ref::<StoreTable>()?;
    let indexes = table.indexes().ok()?.into_iter().map(|index| (index.name, index.columns, index.unique));
    Some((table.key().to_vec(), indexes.collect()))
}

/// Writes what a plan produces to a Plinth file.
pub(crate) async fn write(
    plan: &Arc<dyn ExecutionPlan>,
    context: &TaskContext,
    path: &Path,
    options: WriterOptions,
) -> Result<FileSummary> {
    plinth_datafusion::write_plan(plan, context, path, options).await
}
