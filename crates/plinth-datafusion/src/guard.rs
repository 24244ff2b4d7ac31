//! The last word on memory: a query ends with an error where what it holds in truth is far above the limit.
//!
//! Most operators ask the pool for what they gather, and spill or fail where it refuses. What they do not ask for (state of
//! accumulators that is not counted, rows of windows, values on their way) the pool knows from the program's allocator, and has
//! operators that can spill do so. Where none can, no operator would ask again: so there is a look at each batch that an operator gives.
//!
//! Plans show here, too, why an operator is the engine's where an own one might be.
//!
//! Text of a scan that shares a large dictionary is copied here, too: every batch of it would count for all of the dictionary.

use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_session::PhysicalOptimizerRule;
use futures::{StreamExt, stream};
use plinth_io::MemoryBudget;

use crate::around::{Around, AroundExec};
use crate::config::is_native;
use crate::dense::dense;
use crate::native::left_to_the_engine;
use crate::pool::operator;

/// Of the limit, what the text of a scan's batch may share with others.
const SHARED: u64 = 64;

/// Ends queries that hold far more than the limit of a budget that is measured ([`MemoryBudget::measure`]). It comes after all
/// rules that look for operators.
#[derive(Debug)]
pub struct GuardMemory {
    budget: Arc<MemoryBudget>,
}

impl GuardMemory {
    /// A guard of a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget }
    }

    fn guard(&self, plan: Arc<dyn ExecutionPlan>, above: &str, native: bool) -> Result<Arc<dyn ExecutionPlan>> {
        let children = plan.children().into_iter().map(|child| self.guard(Arc::clone(child), plan.name(), native));
        let children = children.collect::<Result<Vec<_>>>()?;
        let plan = replace_children_if_necessary(plan, children)?;
        let most = self.budget.limit() / SHARED;
        let shared = plan.children().is_empty().then(|| usize::try_from(most).unwrap_or(usize::MAX));
        let not_native = if native { left_to_the_engine(plan.as_ref())? } else { None };
        let guarded = Guarded { budget: Arc::clone(&self.budget), above: operator(above).into(), shared, not_native };
        Ok(AroundExec::over(plan, guarded))
    }
}

impl PhysicalOptimizerRule for GuardMemory {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.guard(plan, "the query", is_native(config))
    }

    fn name(&self) -> &'static str {
        "guard_memory"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Guarded {
    budget: Arc<MemoryBudget>,
    /// Who gets the rows, and may gather them.
    above: Arc<str>,
    /// Of a scan: bytes that the text of a batch may share with others.
    shared: Option<usize>,
    /// Why it is the engine's where an own operator might be.
    not_native: Option<&'static str>,
}

impl Around for Guarded {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = operator.execute(partition, context)?;
        let schema = rows.schema();
        let (mut rows, guarded) = (Some(rows), self.clone());
        let batches = stream::poll_fn(move |context| guarded.next(&mut rows, context));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn remark(&self) -> Option<String> {
        self.not_native.map(|reason| format!("native=no ({reason})"))
    }
}

impl Guarded {
    /// The next of an operator's rows. Where too much is held they end with an error, and let go of what they hold.
    fn next(
        &self,
        rows: &mut Option<SendableRecordBatchStream>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        let Some(batches) = rows else { return Poll::Ready(None) };
        match batches.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(batch))) => {
                if let Err(error) = self.budget.check_held(&self.above) {
                    *rows = None;
                    let error = DataFusionError::ResourcesExhausted(error.to_string());
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(Some(match self.shared {
                    Some(most) => dense(batch, most),
                    None => Ok(batch),
                }))
            }
            next => next,
        }
    }
}
