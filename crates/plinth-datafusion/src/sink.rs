//! From a stream of batches to a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::file_sink_config::{FileOutputMode, FileSinkConfig};
use datafusion_datasource::sink::DataSink;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::dml::InsertOp;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricCategory, MetricsSet};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType};
use futures::StreamExt;
use plinth_format::{FileSummary, Writer, WriterOptions};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::error::{from_format, from_join};
use crate::location;

/// Batches that may wait between the engine and the writer: one to write next, one to smooth the handover.
const IN_FLIGHT: usize = 2;

/// What travels to the writer's thread.
enum Message {
    Batch(RecordBatch),
    /// There are no more. A channel that closes without it means the stream failed or nobody waits any more.
    End,
}

/// Writes a stream to a new Plinth file, encoding on a blocking thread while the engine makes the next batches.
///
/// The file appears whole at the end or not at all: if the stream fails, the writer fails, or the returned future is
/// dropped, nothing is left.
///
/// # Errors
/// Whatever the stream raises first; whatever the writer raises, for instance that the file exists.
pub async fn write_stream(
    mut stream: SendableRecordBatchStream,
    path: impl AsRef<Path>,
    options: WriterOptions,
) -> Result<FileSummary> {
    let (path, schema) = (path.as_ref().to_path_buf(), stream.schema());
    // First of all, so that a path that can't be written to is known before the query has run.
    let create = move || Writer::create(path, &schema, options);
    let writer = spawn_blocking(create).await.map_err(from_join)?.map_err(from_format)?;
    let (to_writer, batches) = mpsc::channel(IN_FLIGHT);
    let writing = spawn_blocking(move || write_all(writer, batches));
    let fed = feed(&mut stream, &to_writer).await;
    drop(to_writer);
    // Joined in every case: no thread still writes when the caller learns how it ended.
    let written = writing.await.map_err(from_join)?;
    fed?;
    written?.ok_or_else(|| DataFusionError::Internal("the writer stopped before the end of its input".to_owned()))
}

/// Sends everything. Returns early without an error if the writer has gone: it has the reason.
async fn feed(stream: &mut SendableRecordBatchStream, to_writer: &mpsc::Sender<Message>) -> Result<()> {
    while let Some(batch) = stream.next().await {
        if to_writer.send(Message::Batch(batch?)).await.is_err() {
            return Ok(());
        }
    }
    let _ = to_writer.send(Message::End).await;
    Ok(())
}

/// Writes until the end; `None` if the input stopped before it, in which case the writer is dropped and takes its
/// temporary file along.
fn write_all(mut writer: Writer, mut batches: mpsc::Receiver<Message>) -> Result<Option<FileSummary>> {
    while let Some(message) = batches.blocking_recv() {
        match message {
            Message::Batch(batch) => writer.write(&batch).map_err(from_format)?,
            Message::End => return writer.finish().map(Some).map_err(from_format),
        }
    }
    Ok(None)
}

/// The end of `COPY ... TO 'x.plinth'` and of an INSERT into a folder of Plinth files.
pub struct PlinthSink {
    path: PathBuf,
    /// Whether the path is a folder to add a file to.
    folder: bool,
    schema: SchemaRef,
    options: WriterOptions,
    metrics: ExecutionPlanMetricsSet,
}

impl PlinthSink {
    /// A sink for what a plan wants written.
    ///
    /// # Errors
    /// If the plan wants what is not supported: partitioned output, replacing a folder, another file system.
    pub fn try_new(config: &FileSinkConfig, mut options: WriterOptions) -> Result<Self> {
        let refuse = |what: &str| Err(DataFusionError::NotImplemented(what.to_owned()));
        if !config.table_partition_cols.is_empty() {
            return refuse(
                "PARTITIONED BY is not supported for Plinth files: write one file per value, or one file for all",
            );
        }
        let [url] = config.table_paths.as_slice() else {
            return refuse("a Plinth file has one path to be written to");
        };
        // What the user typed, if it is a path: a URL made from it reads `[` and `?` as a pattern.
        let typed = Some(config.original_url.as_str()).filter(|url| !url.is_empty() && !url.contains("://"));
        let path = match typed {
            None => location::of_url(url)?,
            Some(path) => {
                location::check_scheme(url.scheme(), url.as_str())?;
                PathBuf::from(path)
            }
        };
        let single = match (typed, config.file_output_mode) {
            (Some(typed), FileOutputMode::Automatic) => {
                path.extension().is_some() && !typed.ends_with(['/', std::path::MAIN_SEPARATOR]) && !path.is_dir()
            }
            (_, mode) => mode.single_file_output(url),
        };
        match config.insert_op {
            InsertOp::Append => {}
            InsertOp::Overwrite | InsertOp::Replace if single => options.replace = true,
            InsertOp::Overwrite | InsertOp::Replace => {
                return refuse("replacing a folder of Plinth files is not supported: write to a new folder");
            }
        }
        let schema = Arc::clone(config.output_schema());
        Ok(Self { path, folder: !single, schema, options, metrics: ExecutionPlanMetricsSet::new() })
    }
}

/// The path of the next file of a folder, which is created if it is missing.
fn unused_name(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let mut next = 0;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_prefix("part-")?.strip_suffix(".plinth")?.parse::<u64>().ok());
        next = next.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(folder.join(format!("part-{next:05}.{}", crate::EXTENSION)))
}

impl fmt::Debug for PlinthSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlinthSink").field("path", &self.path).finish_non_exhaustive()
    }
}

impl DisplayAs for PlinthSink {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, "PlinthSink({})", self.path.display()),
            DisplayFormatType::TreeRender => writeln!(f, "file={}", self.path.display()),
        }
    }
}

impl DataSink for PlinthSink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn write_all<'life0, 'life1, 'async_trait>(
        &'life0 self,
        data: SendableRecordBatchStream,
        _context: &'life1 Arc<TaskContext>,
    ) -> Pin<Box<dyn Future<Output = Result<u64>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            // Only now: a plan that is merely explained creates nothing.
            let path = if self.folder { unused_name(&self.path)? } else { self.path.clone() };
            let summary = write_stream(data, path, self.options.clone()).await?;
            let metric = |category, name, n: u64| {
                let counter = MetricBuilder::new(&self.metrics).with_category(category).global_counter(name);
                counter.add(usize::try_from(n).unwrap_or(usize::MAX));
            };
            metric(MetricCategory::Rows, "rows_written", summary.rows);
            metric(MetricCategory::Bytes, "bytes_written", summary.file_bytes);
            Ok(summary.rows)
        })
    }
}
