//! Sorted text keeps whole what it was picked from ([`dense`]). Here it is copied together.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;

use plinth_datafusion::dense;

use super::each::{Each, EachBatchExec};

/// Copies text together that comes out of sorts.
#[derive(Debug)]
pub(crate) struct DenseSorts;

impl PhysicalOptimizerRule for DenseSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let dense = |plan: Arc<dyn ExecutionPlan>| {
            let any: &dyn std::any::Any = plan.as_ref();
            let views = |plan: &dyn ExecutionPlan| plan.schema().fields().iter().any(|f| is_view(f.data_type()));
            // What a limit leaves is copied out by the sort itself.
            if any.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none()) && views(plan.as_ref()) {
                let each = |_: usize, _: &TaskContext| -> Each { Box::new(|batch| Ok(vec![dense(batch, 0)?])) };
                return Ok(Transformed::yes(EachBatchExec::over("DenseTextExec", plan, Arc::new(each))));
            }
            Ok(Transformed::no(plan))
        };
        plan.transform_up(dense).data()
    }

    fn name(&self) -> &'static str {
        "dense_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}
