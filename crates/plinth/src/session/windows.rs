//! Windows that look at all rows of a partition gather these without asking for memory. Here they are made to.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

/// A window has its rows twice: as they came, and end to end.
const COPIES: usize = 2;

/// Puts a [`ChargedExec`] below each window that gathers its input.
#[derive(Debug)]
pub(super) struct ChargeWindows;

impl PhysicalOptimizerRule for ChargeWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let charge = |plan: Arc<dyn ExecutionPlan>| {
            let any: &dyn std::any::Any = plan.as_ref();
            let Some(window) = any.downcast_ref::<WindowAggExec>() else { return Ok(Transformed::no(plan)) };
            let input = Arc::new(ChargedExec { input: Arc::clone(window.input()) });
            Ok(Transformed::yes(replace_children_if_necessary(plan, vec![input])?))
        };
        plan.transform_up(charge).data()
    }

    fn name(&self) -> &'static str {
        "charge_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes rows on and reserves memory for all that passed, until whoever reads them lets go.
#[derive(Debug)]
struct ChargedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for ChargedExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChargedExec")
    }
}

impl ExecutionPlan for ChargedExec {
    fn name(&self) -> &'static str {
        "ChargedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children.as_slice() else {
            return internal_err!("ChargedExec has one input, not {}", children.len());
        };
        Ok(Arc::new(Self { input: Arc::clone(input) }))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let held = MemoryConsumer::new(format!("window[{partition}]")).register(context.memory_pool());
        let charged = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            held.try_grow(get_record_batch_memory_size(&batch).saturating_mul(COPIES))?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), charged)))
    }
}
