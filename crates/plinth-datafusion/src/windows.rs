//! Windows over all rows of a partition, a few partitions at a time.
//!
//! The engine's operator gathers the whole of its input, whatever it is partitioned by, and asks for no memory. Its input comes in the
//! order of the partitions: here it is given some whole partitions after the other, and what they take is asked for. Without
//! PARTITION BY there is one, of which aggregates need no more than each row once (`whole.rs`). Lists that an aggregate gives to each row of its partition are asked for, too.

mod repeated;
pub(crate) mod sliding;
mod text;
mod whole;

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::utils::{evaluate_partition_ranges, get_row_at_idx};
use datafusion_common::{DataFusionError, Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion_physical_plan::spill::get_record_batch_memory_size;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::windows::WindowAggExec;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_session::PhysicalOptimizerRule;
use futures::{StreamExt, TryStreamExt, stream};
use plinth_core::sync::lock;

use crate::around::{Around, AroundExec};

pub use text::WindowsOfText;

/// A window has its rows twice: as they came, and end to end.
const COPIES: usize = 2;
/// Rows that partitions are gathered to have together, so that small ones are not windows of their own.
const ROWS: usize = 32 << 10;

/// Has windows that gather their input gather some partitions at a time, and ask for the memory.
#[derive(Debug)]
pub struct WindowsByPartition;

impl PhysicalOptimizerRule for WindowsByPartition {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if !plan.is::<WindowAggExec>() {
                return Ok(Transformed::no(plan));
            }
            Ok(Transformed::yes(AroundExec::over(plan, ByPartition { metrics: ExecutionPlanMetricsSet::new() })))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "windows_by_partition"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct ByPartition {
    metrics: ExecutionPlanMetricsSet,
}

impl Around for ByPartition {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(window) = operator.downcast_ref::<WindowAggExec>() else {
            return internal_err!("{} is no window", operator.name());
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        if whole::is_whole(window) {
            let rows = whole::rows(window, &self.metrics, partition, &context)?;
            let rows = rows.map(move |batch| batch.record_output(&metrics));
            return Ok(Box::pin(RecordBatchStreamAdapter::new(operator.schema(), rows)));
        }
        let held = MemoryConsumer::new(format!("window[{partition}]")).register(context.memory_pool());
        let chunks = Chunks {
            input: window.input().execute(partition, Arc::clone(&context))?,
            keys: window.partition_by_sort_keys()?,
            held,
            gathered: Vec::new(),
            rows: 0,
            last: None,
            rest: None,
        };
        let operator = Arc::clone(operator);
        let properties = Arc::clone(window.input().properties());
        let schema = operator.schema();
        let windows = stream::try_unfold(chunks, move |mut chunks| {
            let (operator, properties) = (Arc::clone(&operator), Arc::clone(&properties));
            let context = Arc::clone(&context);
            async move {
                let Some(batches) = chunks.next().await? else { return Ok(None) };
                if let Some(window) = operator.downcast_ref::<WindowAggExec>() {
                    chunks.held.try_grow(repeated::bytes_of(window, &chunks.keys, &batches)?)?;
                }
                let chunk = Arc::new(ChunkExec { properties, batches: Mutex::new(Some(batches)) });
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
                let rows = operator.replace_children(vec![chunk], options)?.execute(partition, context)?;
                Ok::<_, DataFusionError>(Some((rows, chunks)))
            }
        });
        let rows = windows.try_flatten().map(move |batch| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self, _operator: &dyn ExecutionPlan) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// A partition of the plan, cut between partitions of the window.
struct Chunks {
    input: SendableRecordBatchStream,
    keys: Vec<PhysicalSortExpr>,
    held: MemoryReservation,
    gathered: Vec<RecordBatch>,
    rows: usize,
    /// The keys of the last row that was gathered.
    last: Option<Vec<ScalarValue>>,
    /// Where the next one starts.
    rest: Option<RecordBatch>,
}

impl Chunks {
    /// Some whole partitions. Those before are done with.
    async fn next(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        self.held.free();
        self.rows = 0;
        loop {
            let batch = match self.rest.take() {
                Some(rest) => rest,
                None => match self.input.next().await.transpose()? {
                    Some(batch) => batch,
                    None => break,
                },
            };
            if batch.num_rows() == 0 {
                continue;
            }
            self.held.try_grow(get_record_batch_memory_size(&batch).saturating_mul(COPIES))?;
            let start = self.last_start(&batch)?.filter(|_| self.rows + batch.num_rows() >= ROWS);
            let Some(start) = start.filter(|&start| start > 0 || !self.gathered.is_empty()) else {
                self.rows += batch.num_rows();
                self.gathered.push(batch);
                continue;
            };
            self.rest = Some(batch.slice(start, batch.num_rows() - start));
            if start > 0 {
                self.gathered.push(batch.slice(0, start));
            }
            return Ok(Some(std::mem::take(&mut self.gathered)));
        }
        let last = std::mem::take(&mut self.gathered);
        Ok((!last.is_empty()).then_some(last))
    }

    /// The row of a batch at which its last partition starts, unless that is the one before it.
    fn last_start(&mut self, batch: &RecordBatch) -> Result<Option<usize>> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let columns = self.keys.iter().map(|key| key.evaluate_to_sort_column(batch)).collect::<Result<Vec<_>>>()?;
        let start = evaluate_partition_ranges(batch.num_rows(), &columns)?.last().map_or(0, |range| range.start);
        let columns: Vec<_> = columns.into_iter().map(|column| column.values).collect();
        let first = get_row_at_idx(&columns, 0)?;
        let starts_here = self.last.as_ref().is_none_or(|last| *last != first);
        self.last = Some(get_row_at_idx(&columns, batch.num_rows() - 1)?);
        Ok((start > 0 || starts_here).then_some(start))
    }
}

/// The input of a window: rows that are there.
struct ChunkExec {
    properties: Arc<PlanProperties>,
    batches: Mutex<Option<Vec<RecordBatch>>>,
}

impl fmt::Debug for ChunkExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChunkExec")
    }
}

impl DisplayAs for ChunkExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChunkExec")
    }
}

impl ExecutionPlan for ChunkExec {
    fn name(&self) -> &'static str {
        "ChunkExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = lock(&self.batches).take();
        let batches = batches.ok_or_else(|| internal_datafusion_err!("a chunk of a window is asked for twice"))?;
        let rows = stream::iter(batches.into_iter().map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
