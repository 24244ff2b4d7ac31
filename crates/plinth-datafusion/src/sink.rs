//! From the streams of a plan to a file, or to one more file of a folder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, SchemaExt};
use datafusion_datasource::file_sink_config::{FileOutputMode, FileSinkConfig};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::dml::InsertOp;
use datafusion_physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion_physical_expr_common::sort_expr::{LexRequirement, OrderingRequirements};
use datafusion_physical_plan::execution_plan::{EvaluationType, SchedulingType, execute_input_stream};
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricCategory, MetricsSet};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;
use plinth_format::{FileSummary, OpenOptions, Writer, WriterOptions};
use plinth_io::Objects;
use plinth_io::objects::is_url;
use plinth_profile::{Stage, scope};
use plinth_table::{Appender, ObjectWriter, TableFolder};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::digits::within_digits;
use crate::error::{from_format, from_join};
use crate::location;
use crate::profile::spawn_blocking;
use crate::source::in_order_of_rows;

/// Batches that may wait between the engine and the writer, besides one a partition.
const IN_FLIGHT: usize = 2;

/// What travels to the writer's thread.
enum Message {
    /// Rows of a partition.
    Batch(usize, RecordBatch),
    /// There are no more. A channel that closes without it means a stream failed or its receiver is gone.
    End,
}

/// Writes what a plan produces to a new Plinth file. The partitions run side by side, and their rows lie one partition
/// after the other in the file, so rows that come in order stay in order.
///
/// The file appears whole at the end or not at all: if a partition fails, the writer fails, or the returned future is
/// dropped, nothing is left.
///
/// # Errors
/// Whatever a partition raises first; whatever the writer raises, for instance that the file exists.
pub async fn write_plan(
    plan: &Arc<dyn ExecutionPlan>,
    context: &TaskContext,
    path: impl AsRef<Path>,
    options: WriterOptions,
) -> Result<FileSummary> {
    let schema = plan.schema();
    write_streams(partitions(plan, &schema, context)?, schema, path, options).await
}

/// The streams of a plan's partitions, each with just the rows that the plan gave it.
fn partitions(
    plan: &Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
    context: &TaskContext,
) -> Result<Vec<SendableRecordBatchStream>> {
    // Partitions of a scan take pieces of files in turn and from each other, which would mix the rows of neighbours.
    let plan = &in_order_of_rows(Arc::clone(plan))?;
    let mut config = context.session_config().clone();
    config.options_mut().execution.enable_file_stream_work_stealing = false;
    let context = Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ));
    let count = plan.output_partitioning().partition_count();
    (0..count).map(|i| execute_input_stream(Arc::clone(plan), Arc::clone(schema), i, Arc::clone(&context))).collect()
}

/// As [`write_plan`], for streams that run already: side by side, their rows one after the other in the file.
///
/// # Errors
/// As [`write_plan`].
pub async fn write_streams(
    streams: Vec<SendableRecordBatchStream>,
    schema: SchemaRef,
    path: impl AsRef<Path>,
    options: WriterOptions,
) -> Result<FileSummary> {
    let path = path.as_ref().to_path_buf();
    pour(streams, move || Writer::create(path, &schema, options)).await
}

/// What rows can be written to.
trait Output: Send + 'static {
    fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> plinth_format::Result<()>;
    /// Completes the file, and tells how to publish it. It goes if that is dropped.
    fn complete(self) -> plinth_format::Result<Publish>;
}

type Publish = Box<dyn FnOnce() -> plinth_format::Result<FileSummary> + Send>;

impl Output for Writer {
    fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> plinth_format::Result<()> {
        Self::write_lane(self, lane, batch)
    }

    fn complete(self) -> plinth_format::Result<Publish> {
        let (file, rows) = Self::complete(self)?;
        file.sync()?;
        Ok(Box::new(move || Ok(FileSummary { rows, file_bytes: file.commit()? })))
    }
}

impl Output for Appender {
    fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> plinth_format::Result<()> {
        Self::write_lane(self, lane, batch)
    }

    fn complete(self) -> plinth_format::Result<Publish> {
        let appended = Self::complete(self)?;
        Ok(Box::new(move || appended.publish()))
    }
}

/// Writes streams to whatever `create` makes on a blocking thread.
async fn pour<O: Output>(
    streams: Vec<SendableRecordBatchStream>,
    create: impl FnOnce() -> plinth_format::Result<O> + Send + 'static,
) -> Result<FileSummary> {
    // First of all, so that a path that can't be written to is known before the query has run.
    let writer = spawn_blocking(create).await.map_err(from_join)?.map_err(from_format)?;
    let (to_writer, batches) = mpsc::channel(IN_FLIGHT);
    let writing = spawn_blocking(move || write_all(writer, batches));
    let fed = feed(streams, to_writer).await;
    // Joined in every case: no thread still writes when the caller learns how it ended.
    let written = writing.await.map_err(from_join)?;
    fed?;
    let stopped = || DataFusionError::Internal("the writer stopped before the end of its input".to_owned());
    let publish = written?.ok_or_else(stopped)?;
    // A caller that stops waiting before this leaves nothing, however far the writer had got.
    spawn_blocking(publish).await.map_err(from_join)?.map_err(from_format)
}

/// Sends everything. Returns early without an error if the writer has gone: it has the reason.
async fn feed(streams: Vec<SendableRecordBatchStream>, to_writer: mpsc::Sender<Message>) -> Result<()> {
    let mut tasks: JoinSet<Result<()>> = JoinSet::new();
    for (lane, mut stream) in streams.into_iter().enumerate() {
        let to_writer = to_writer.clone();
        tasks.spawn(async move {
            while let Some(batch) = stream.next().await {
                if to_writer.send(Message::Batch(lane, within_digits(batch?)?)).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
    }
    loop {
        // The others end as the set is dropped.
        tokio::select! {
            done = tasks.join_next() => match done {
                Some(done) => done.map_err(from_join)??,
                None => break,
            },
            () = to_writer.closed() => return Ok(()),
        }
    }
    let _ = to_writer.send(Message::End).await;
    Ok(())
}

/// Writes until the end; `None` if the input stopped before it, in which case the writer is dropped and takes its
/// temporary file along.
fn write_all(mut writer: impl Output, mut batches: mpsc::Receiver<Message>) -> Result<Option<Publish>> {
    let mut next = || {
        let _join = scope(Stage::Join);
        batches.blocking_recv()
    };
    while let Some(message) = next() {
        match message {
            Message::Batch(lane, batch) => writer.write_lane(lane, &batch).map_err(from_format)?,
            Message::End => return writer.complete().map(Some).map_err(from_format),
        }
    }
    Ok(None)
}

/// The end of `COPY ... TO 'x.plinth'` and of an INSERT into a folder of Plinth files: writes its input and tells how
/// many rows that were.
pub struct WriteExec {
    input: Arc<dyn ExecutionPlan>,
    target: Arc<Target>,
    order: Option<LexRequirement>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Output for ObjectWriter {
    fn write_lane(&mut self, lane: usize, batch: &RecordBatch) -> plinth_format::Result<()> {
        Self::write_lane(self, lane, batch)
    }

    fn complete(self) -> plinth_format::Result<Publish> {
        let complete = Self::complete(self)?;
        Ok(Box::new(move || complete.send()))
    }
}

/// What is to be written.
struct Target {
    /// A path, or the URL of an object.
    path: PathBuf,
    /// Where an object goes.
    stores: Option<Arc<dyn Objects>>,
    /// Whether the path is a folder to add a file to.
    folder: bool,
    schema: SchemaRef,
    options: WriterOptions,
}

impl Target {
    async fn write(&self, streams: Vec<SendableRecordBatchStream>) -> Result<FileSummary> {
        let (path, schema, options) = (self.path.clone(), Arc::clone(&self.schema), self.options.clone());
        match (&self.stores, self.folder) {
            (Some(stores), false) => {
                let stores = Arc::clone(stores);
                pour(streams, move || ObjectWriter::create(stores, path, &schema, options)).await
            }
            (Some(stores), true) => {
                let open = OpenOptions { objects: Some(Arc::clone(stores)), ..OpenOptions::default() };
                let folder = TableFolder::with_options(path, open);
                pour(streams, move || Appender::create_in(folder, &schema, options)).await
            }
            (None, true) => pour(streams, move || Appender::create(path, &schema, options)).await,
            (None, false) => pour(streams, move || Writer::create(path, &schema, options)).await,
        }
    }
}

impl WriteExec {
    /// Writes the rows of a plan as a statement wants them written.
    ///
    /// # Errors
    /// If it wants what is not supported: partitioned output, replacing a folder, another file system.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        config: &FileSinkConfig,
        mut options: WriterOptions,
        stores: Option<&Arc<dyn Objects>>,
        order: Option<LexRequirement>,
    ) -> Result<Self> {
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
        let far = Some(PathBuf::from(&config.original_url)).filter(|path| is_url(path)).zip(stores);
        let path = match typed {
            None if far.is_some() => PathBuf::from(&config.original_url),
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
        let stores = far.map(|(_, stores)| Arc::clone(stores));
        match config.insert_op {
            InsertOp::Append => {}
            InsertOp::Overwrite | InsertOp::Replace if single => options.replace = true,
            InsertOp::Overwrite | InsertOp::Replace => {
                return refuse("replacing a folder of Plinth files is not supported: write to a new folder");
            }
        }
        let schema = Arc::clone(config.output_schema());
        Ok(Self::new(input, Arc::new(Target { path, stores, folder: !single, schema, options }), order))
    }

    /// Adds the rows of a plan to the table of a folder.
    ///
    /// # Errors
    /// If the rows are to replace others, or are not the table's.
    pub fn append(
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
        folder: PathBuf,
        schema: SchemaRef,
        options: WriterOptions,
    ) -> Result<Self> {
        if operation != InsertOp::Append {
            return Err(DataFusionError::NotImplemented(format!(
                "{operation} for {}: rows can be added to a folder of Plinth files, not replaced; write another folder",
                folder.display()
            )));
        }
        schema.logically_equivalent_names_and_types(&input.schema())?;
        Ok(Self::new(input, Arc::new(Target { path: folder, stores: None, folder: true, schema, options }), None))
    }

    fn new(input: Arc<dyn ExecutionPlan>, target: Arc<Target>, order: Option<LexRequirement>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(count_schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        )
        .with_scheduling_type(SchedulingType::Cooperative)
        .with_evaluation_type(EvaluationType::Eager);
        Self { input, target, order, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

impl fmt::Debug for WriteExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteExec").field("path", &self.target.path).finish_non_exhaustive()
    }
}

impl DisplayAs for WriteExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "WriteExec: {}", self.target.path.display())
            }
            DisplayFormatType::TreeRender => writeln!(f, "file={}", self.target.path.display()),
        }
    }
}

impl ExecutionPlan for WriteExec {
    fn name(&self) -> &'static str {
        "WriteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(Into::into)]
    }

    /// Partitions are written side by side as they are; dealing the rows of one out to several would only mix them.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    /// The file's rows lie as the input's partitions give them, so merging these in order is not for nothing.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children.as_slice() else {
            return Err(DataFusionError::Internal(format!("WriteExec has one input, not {}", children.len())));
        };
        Ok(Arc::new(Self::new(Arc::clone(input), Arc::clone(&self.target), self.order.clone())))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(format!("partition {partition} of WriteExec, which has one")));
        }
        let streams = partitions(&self.input, &self.target.schema, &context)?;
        let (target, metrics) = (Arc::clone(&self.target), self.metrics.clone());
        let written = futures::stream::once(async move {
            // Only now: a plan that is merely explained creates nothing.
            let summary = target.write(streams).await?;
            let metric = |category, name, n: u64| {
                let counter = MetricBuilder::new(&metrics).with_category(category).global_counter(name);
                counter.add(usize::try_from(n).unwrap_or(usize::MAX));
            };
            metric(MetricCategory::Rows, "rows_written", summary.rows);
            metric(MetricCategory::Bytes, "bytes_written", summary.file_bytes);
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![summary.rows]));
            Ok(RecordBatch::try_new(count_schema(), vec![count])?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(count_schema(), written)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
