//! Windows that look at all rows of a partition gather these without asking for memory. Here they are made to.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::windows::WindowAggExec;

use super::each::{Each, EachBatchExec};

/// A window has its rows twice: as they came, and end to end.
const COPIES: usize = 2;

/// Reserves memory for what goes into each window that gathers its input, until that lets go.
#[derive(Debug)]
pub(super) struct ChargeWindows;

impl PhysicalOptimizerRule for ChargeWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let charge = |plan: Arc<dyn ExecutionPlan>| {
            let any: &dyn std::any::Any = plan.as_ref();
            let Some(window) = any.downcast_ref::<WindowAggExec>() else { return Ok(Transformed::no(plan)) };
            let input = EachBatchExec::over("ChargedExec", Arc::clone(window.input()), reserve);
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

fn reserve(partition: usize, context: &TaskContext) -> Each {
    let held = MemoryConsumer::new(format!("window[{partition}]")).register(context.memory_pool());
    Box::new(move |batch| {
        held.try_grow(get_record_batch_memory_size(&batch).saturating_mul(COPIES))?;
        Ok(batch)
    })
}
