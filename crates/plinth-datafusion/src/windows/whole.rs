//! Aggregates over all rows, the same for each: `sum(x) OVER ()`.
//!
//! The engine puts all rows end to end to see a partition whole. An aggregate needs each of them once: they are kept as they came, on the
//! drive where memory ends, until the last has been seen.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::{Result, ScalarValue};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion_expr::{Accumulator, WindowFrameBound, WindowFrameUnits};
use datafusion_physical_expr::window::{PlainAggregateWindowExpr, WindowExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion_physical_plan::spill::{SpillManager, get_record_batch_memory_size};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::windows::WindowAggExec;
use futures::{StreamExt, TryStreamExt, stream};

use super::repeated;

/// Whether all that a window computes are aggregates over all rows.
pub(super) fn is_whole(window: &WindowAggExec) -> bool {
    window.window_expr().iter().all(|expr| of_all_rows(expr.as_ref()).is_some())
}

fn of_all_rows(expr: &dyn WindowExpr) -> Option<&PlainAggregateWindowExpr> {
    let plain: &PlainAggregateWindowExpr = expr.as_any().downcast_ref()?;
    let frame = expr.get_window_frame();
    let is_open = |bound: &WindowFrameBound| match bound {
        // All rows are peers where nothing orders them.
        WindowFrameBound::CurrentRow => frame.units == WindowFrameUnits::Range && expr.order_by().is_empty(),
        bound => bound.is_unbounded(),
    };
    let is_whole = expr.partition_by().is_empty() && is_open(&frame.start_bound) && is_open(&frame.end_bound);
    // A filter is told in no other way. What has one stays the engine's.
    (is_whole && repeated::gathering(expr).is_none() && format!("{plain:?}").ends_with("filter: None }"))
        .then_some(plain)
}

/// The rows of a window whose aggregates are over all of them.
pub(super) fn rows(
    window: &WindowAggExec,
    metrics: &ExecutionPlanMetricsSet,
    partition: usize,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let mut input = window.input().execute(partition, Arc::clone(context))?;
    let held = MemoryConsumer::new(format!("window[{partition}]")).with_can_spill(true).register(context.memory_pool());
    let states = MemoryConsumer::new(format!("window values[{partition}]")).register(context.memory_pool());
    let spills = SpillMetrics::new(metrics, partition);
    let spills = SpillManager::new(context.runtime_env(), spills, input.schema())
        .with_compression_type(context.session_config().spill_compression());
    let exprs = window.window_expr().to_vec();
    let (schema, given) = (window.schema(), window.schema());
    let gather = async move {
        let aggregates: Vec<_> = exprs.iter().filter_map(|expr| of_all_rows(expr.as_ref())).collect();
        let made = aggregates.iter().map(|expr| expr.get_aggregate_expr().create_accumulator());
        let mut accumulators = made.collect::<Result<Vec<Box<dyn Accumulator>>>>()?;
        let mut kept = Kept { held, spills, batches: Vec::new(), file: None };
        while let Some(batch) = input.next().await.transpose()? {
            for (expr, accumulator) in aggregates.iter().zip(&mut accumulators) {
                accumulator.update_batch(&expr.evaluate_args(&batch)?)?;
            }
            let bytes = accumulators.iter().map(|accumulator| accumulator.size()).sum();
            if states.try_resize(bytes).is_err() {
                kept.spill()?;
                states.try_resize(bytes)?;
            }
            kept.push(batch)?;
        }
        drop(input);
        let values = accumulators.iter_mut().map(|accumulator| accumulator.evaluate()).collect::<Result<Vec<_>>>()?;
        kept.into_rows(given, values)
    };
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(gather).try_flatten())))
}

/// A scratch file, whose type the engine does not give out: takes batches, and without one ends.
type Scratch = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

/// Rows that wait for the last one.
struct Kept {
    held: MemoryReservation,
    spills: SpillManager,
    batches: Vec<RecordBatch>,
    /// Once they have no room: all of them, in the order in which they came.
    file: Option<Scratch>,
}

impl Kept {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if self.file.is_none() && self.held.try_grow(get_record_batch_memory_size(&batch)).is_err() {
            self.spill()?;
        }
        match &mut self.file {
            Some(file) => file(Some(&batch)).map(|_| ()),
            None => {
                self.batches.push(batch);
                Ok(())
            }
        }
    }

    /// Makes room: all rows go to the drive.
    fn spill(&mut self) -> Result<()> {
        if self.file.is_none() {
            let mut scratch = self.spills.create_in_progress_file("rows of a window")?;
            let mut file: Scratch = Box::new(move |batch| match batch {
                Some(batch) => scratch.append_batch(batch).map(|_| None),
                None => scratch.finish(),
            });
            for batch in self.batches.drain(..) {
                file(Some(&batch))?;
            }
            self.file = Some(file);
            self.held.free();
        }
        Ok(())
    }

    /// The rows, each with the same values behind it.
    fn into_rows(mut self, schema: SchemaRef, values: Vec<ScalarValue>) -> Result<SendableRecordBatchStream> {
        let spilled: Option<Arc<dyn SpillFile>> = match &mut self.file {
            Some(file) => file(None)?,
            None => None,
        };
        let rows = match spilled {
            Some(file) => self.spills.read_spill_as_stream(file, None)?,
            None => {
                let batches = std::mem::take(&mut self.batches).into_iter().map(Ok);
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.spills.schema()), stream::iter(batches)))
            }
        };
        let of = Arc::clone(&schema);
        let held = self.held;
        let rows = rows.map(move |batch| {
            let batch = batch?;
            // What is given away is counted by who has it.
            held.shrink(get_record_batch_memory_size(&batch).min(held.size()));
            let values = values.iter().map(|value| value.to_array_of_size(batch.num_rows()));
            let columns = batch.columns().iter().cloned().map(Ok).chain(values).collect::<Result<Vec<_>>>()?;
            Ok(RecordBatch::try_new(Arc::clone(&of), columns)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
