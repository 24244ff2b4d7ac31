//! Plinth as a file format of the engine's own listing tables, COPY and CREATE EXTERNAL TABLE.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, GetExt, Result, Statistics};
use datafusion_datasource::TableSchema;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_compression_type::FileCompressionType;
use datafusion_datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_datasource::file_sink_config::FileSinkConfig;
use datafusion_datasource::source::DataSourceExec;
use datafusion_physical_expr_common::sort_expr::LexRequirement;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::Session;
use futures::future::BoxFuture;
use object_store::{ObjectMeta, ObjectStore};
use plinth_encoding::Effort;
use plinth_format::WriterOptions;

use crate::error::from_join;
use crate::handles::Handles;
use crate::location::Remote;
use crate::sink::WriteExec;
use crate::source::{PlinthSource, of_config};
use crate::{EXTENSION, FileOptions, location, schema, statistics};

/// The Plinth file format. Files it has looked at stay open as long as it lives.
#[derive(Debug, Default)]
pub struct PlinthFormat {
    options: WriterOptions,
    handles: Arc<Handles>,
}

impl PlinthFormat {
    /// A format that opens and writes files with these options.
    pub fn new(options: FileOptions) -> Self {
        Self { options: options.writer, handles: Arc::new(Handles::new(options.open)) }
    }

    /// How it writes.
    pub fn options(&self) -> &WriterOptions {
        &self.options
    }

    /// Looks at files, on a thread that may wait for a store that is far away.
    async fn look<T: Send + 'static>(
        &self,
        store: &Arc<dyn ObjectStore>,
        look: impl FnOnce(&Handles, &Remote) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match location::remote(store, self.handles.options().objects.as_ref()) {
            None => look(&self.handles, &None),
            remote => {
                let handles = Arc::clone(&self.handles);
                tokio::task::spawn_blocking(move || look(&handles, &remote)).await.map_err(from_join)?
            }
        }
    }
}

impl FileFormat for PlinthFormat {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        if compression.is_compressed() {
            return Err(DataFusionError::NotImplemented(
                "Plinth files are compressed inside and can't be compressed again; leave the compression out"
                    .to_owned(),
            ));
        }
        Ok(self.get_ext())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    fn infer_schema<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        _state: &'b dyn Session,
        store: &'c Arc<dyn ObjectStore>,
        objects: &'d [ObjectMeta],
    ) -> BoxFuture<'e, Result<SchemaRef>> {
        let objects = objects.to_vec();
        Box::pin(self.look(store, move |handles, remote| {
            let files = objects.iter().map(|object| handles.open_object(remote, object)).collect::<Result<Vec<_>>>()?;
            schema::unite(&files)
        }))
    }

    fn infer_stats<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        _state: &'b dyn Session,
        store: &'c Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &'d ObjectMeta,
    ) -> BoxFuture<'e, Result<Statistics>> {
        let object = object.clone();
        Box::pin(self.look(store, move |handles, remote| {
            let file = handles.open_object(remote, &object)?;
            statistics::of_files(std::slice::from_ref(&file), &table_schema, |_| true)
        }))
    }

    fn create_physical_plan<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        _state: &'b dyn Session,
        config: FileScanConfig,
    ) -> BoxFuture<'c, Result<Arc<dyn ExecutionPlan>>> {
        let plan = of_config(&config).map(|_| ());
        let plan = plan.map(|()| DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>);
        Box::pin(std::future::ready(plan))
    }

    fn create_writer_physical_plan<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        input: Arc<dyn ExecutionPlan>,
        _state: &'b dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> BoxFuture<'c, Result<Arc<dyn ExecutionPlan>>> {
        let plan =
            WriteExec::try_new(input, &config, self.options.clone(), self.handles.options().objects.as_ref(), order);
        Box::pin(std::future::ready(plan.map(|plan| Arc::new(plan) as Arc<dyn ExecutionPlan>)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(PlinthSource::with_handles(table_schema, Arc::clone(&self.handles)))
    }
}

/// Makes [`PlinthFormat`]s, for `STORED AS PLINTH`, `COPY ... TO 'x.plinth'` and listing tables.
///
/// `OPTIONS` it knows: `effort` (`plain`, `fast`, `balanced` or `compact`), `index` (columns to index, with commas between them),
/// `row_group_rows`, `threads`, and `replace` (`true` to replace an existing file).
#[derive(Debug, Default)]
pub struct PlinthFormatFactory {
    options: FileOptions,
}

impl PlinthFormatFactory {
    /// Formats with default options.
    pub fn new() -> Self {
        Self::with_options(FileOptions::default())
    }

    /// Formats that open and write files with these options where a statement does not say otherwise.
    pub fn with_options(options: FileOptions) -> Self {
        Self { options }
    }
}

impl GetExt for PlinthFormatFactory {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }
}

impl FileFormatFactory for PlinthFormatFactory {
    fn create(&self, _state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let FileOptions { open, writer } = self.options.clone();
        Ok(Arc::new(PlinthFormat::new(FileOptions { open, writer: with_options(writer, options)? })))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(PlinthFormat::new(self.options.clone()))
    }
}

/// Applies a statement's OPTIONS.
fn with_options(mut writer: WriterOptions, options: &HashMap<String, String>) -> Result<WriterOptions> {
    for (key, value) in options {
        let name = key.strip_prefix("format.").unwrap_or(key);
        let bad = |expected: &str| {
            DataFusionError::Configuration(format!("option {name}: expected {expected}, found {value:?}"))
        };
        let number = || match value.parse::<usize>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(bad("a positive number")),
        };
        match name {
            "effort" => {
                writer.effort = match value.to_ascii_lowercase().as_str() {
                    "plain" => Effort::Plain,
                    "fast" => Effort::Fast,
                    "balanced" => Effort::Balanced,
                    "compact" => Effort::Compact,
                    _ => return Err(bad("plain, fast, balanced or compact")),
                }
            }
            "index" => writer.index = value.split(',').map(|column| column.trim().to_owned()).collect(),
            "row_group_rows" => writer.row_group_rows = number()?,
            "threads" => writer.threads = number()?,
            "replace" => {
                writer.replace = match value.to_ascii_lowercase().as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err(bad("true or false")),
                }
            }
            _ => {
                return Err(DataFusionError::Configuration(format!(
                    "option {name} is not one of those for Plinth files: effort, index, row_group_rows, threads, replace"
                )));
            }
        }
    }
    Ok(writer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
