//! The work of a sort of all rows, in the place of the engine's: what it holds is counted to the byte, and a
//! refusal has it write to disk. What is held beside that, such as decoded dictionaries, may still end a query.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use datafusion_common::config::{ConfigOptions, SpillCompression};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput, SpillMetrics,
};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_session::PhysicalOptimizerRule;
use futures::{StreamExt, TryStreamExt, stream};
use plinth_exec::sort::{Memory, Sort, Sorted, Sorter};
use plinth_exec::top::OrderColumn;
use plinth_exec::{ExecError, error};

use crate::around::{Around, AroundExec};
use crate::config::is_native;
use crate::error::{from_exec, from_join};
use crate::profile::spawn_blocking;

/// Rows of a limit up to which the engine's heap of the first rows is less than what a sort gathers: it can't spill, and each partition has one.
const FEW: usize = 4 << 10;

/// From so much memory on the engine sorts: it is faster where rows fit, for it sorts each batch while the batch is in the cache.
const ENGINE: u64 = 1 << 30;
/// Of the memory of a thread, a piece of a run.
const PIECE: u64 = 256;
const LEAST_PIECE: u64 = 32 << 10;
const LARGEST_PIECE: u64 = 1 << 20;
/// Of the memory of a thread, what merging takes at most.
const MERGING: u64 = 4;

/// Has sorts of all rows done by [`plinth_exec::sort`] where there is little memory. It comes after all rules that look for sorts.
#[derive(Clone, Debug)]
pub struct ExternalSorts {
    memory: u64,
    folder: PathBuf,
}

impl ExternalSorts {
    /// Sorts within so much memory, whose runs are written to a folder.
    pub fn new(memory: u64, folder: PathBuf) -> Self {
        Self { memory, folder }
    }

    fn replace(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let Some(sort) = plan.downcast_ref::<SortExec>() else { return Ok(Transformed::no(plan)) };
        let schema = sort.input().schema();
        let many = sort.fetch().is_none_or(|rows| rows > FEW);
        let sorted = || sort.input().equivalence_properties().ordering_satisfy(sort.expr().iter().cloned());
        if !many || !schema.fields().iter().all(|field| Sort::is_known(field.data_type())) || sorted()? {
            return Ok(Transformed::no(plan));
        }
        for key in sort.expr() {
            if !Sort::is_key(&key.expr.data_type(&schema)?) {
                return Ok(Transformed::no(plan));
            }
        }
        let threads = config.execution.target_partitions.max(1) as u64;
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let piece = (self.memory / PIECE / threads).clamp(LEAST_PIECE, LARGEST_PIECE);
        let external = External {
            piece: bytes(piece),
            merging: bytes(self.memory / MERGING / threads),
            folder: self.folder.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        };
        Ok(Transformed::yes(AroundExec::over(plan, external)))
    }
}

impl PhysicalOptimizerRule for ExternalSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if is_native(config) && self.memory < ENGINE {
            plan.transform_up(|plan| self.replace(plan, config)).data()
        } else {
            Ok(plan)
        }
    }

    fn name(&self) -> &'static str {
        "external_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct External {
    piece: usize,
    merging: usize,
    folder: PathBuf,
    metrics: ExecutionPlanMetricsSet,
}

impl External {
    fn sort(&self, sort: &SortExec, context: &TaskContext) -> Result<Sort> {
        let schema = sort.input().schema();
        let column = |key: &datafusion_physical_expr::PhysicalSortExpr| {
            Ok(OrderColumn { data_type: key.expr.data_type(&schema)?, options: key.options })
        };
        let order = sort.expr().iter().map(column).collect::<Result<_>>()?;
        let exprs: Vec<_> = sort.expr().iter().map(|key| Arc::clone(&key.expr)).collect();
        let keys = move |batch: &RecordBatch| -> error::Result<_> {
            let values = exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(batch.num_rows()));
            values.collect::<Result<_>>().map_err(ExecError::source)
        };
        let options = context.session_config().options();
        Ok(Sort {
            schema: Arc::clone(&schema),
            order,
            keys: Arc::new(keys),
            fetch: sort.fetch(),
            rows: context.session_config().batch_size(),
            piece: self.piece,
            merging: self.merging,
            folder: self.folder.clone(),
            compression: match options.execution.spill_compression {
                SpillCompression::Uncompressed => None,
                SpillCompression::Lz4Frame => Some(arrow_ipc::CompressionType::LZ4_FRAME),
                SpillCompression::Zstd => Some(arrow_ipc::CompressionType::ZSTD),
            },
            cancelled: Arc::default(),
        })
    }
}

impl Around for External {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(sort) = operator.downcast_ref::<SortExec>() else {
            return internal_err!("{} is no sort", operator.name());
        };
        let input = sort.input().execute(partition, Arc::clone(&context))?;
        let (sort, schema) = (self.sort(sort, &context)?, operator.schema());
        let cancel = Cancel(Arc::clone(&sort.cancelled));
        let consumer = MemoryConsumer::new(format!("Sorter[{partition}]")).with_can_spill(true);
        let sorter = Sorter::new(Arc::new(sort), Held(consumer.register(context.memory_pool()))).map_err(from_exec)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let spills = SpillMetrics::new(&self.metrics, partition);
        let (time, rows) = (metrics.elapsed_compute().clone(), metrics);
        let batches = stream::once(async move {
            let sorted = gather(sorter, input, &spills).await?;
            Ok::<_, DataFusionError>(stream::try_unfold((sorted, cancel), move |(mut sorted, cancel)| {
                let timer = time.timer();
                let next = sorted.next_batch().map_err(from_exec);
                timer.done();
                async move { Ok(next?.map(|batch| (batch, (sorted, cancel)))) }
            }))
        });
        let batches = batches.try_flatten().map(move |batch| batch.record_output(&rows));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self, _operator: &dyn ExecutionPlan) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Sorts all rows of an input. What sorts and writes many of them is done by a thread that may block.
async fn gather(
    mut sorter: Sorter<Held>,
    mut input: SendableRecordBatchStream,
    spills: &SpillMetrics,
) -> Result<Sorted<Held>> {
    while let Some(batch) = input.next().await.transpose()? {
        if let Some(rest) = sorter.offer(&batch).map_err(from_exec)? {
            drop(batch);
            let work = move || sorter.push(&rest).map(|()| sorter);
            sorter = spawn_blocking(work).await.map_err(from_join)?.map_err(from_exec)?;
        }
    }
    drop(input);
    let sorted = spawn_blocking(|| sorter.finish()).await.map_err(from_join)?.map_err(from_exec)?;
    let written = sorted.written();
    spills.spill_file_count.add(written.runs);
    spills.spilled_bytes.add(usize::try_from(written.bytes).unwrap_or(usize::MAX));
    spills.spilled_rows.add(written.rows);
    Ok(sorted)
}

/// Ends the work of a thread that sorts once its rows are not wanted any more.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Memory of the engine's pool.
struct Held(MemoryReservation);

impl Memory for Held {
    fn try_resize(&mut self, bytes: usize) -> bool {
        self.0.try_resize(bytes).is_ok()
    }

    fn resize(&mut self, bytes: usize) {
        self.0.resize(bytes);
    }
}
