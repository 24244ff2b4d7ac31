//! Recursive queries, a row after the other.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;

/// Takes the steps away that hand the batches of a recursion to several threads in turn. They pull for as long as there are
/// rows, so that a LIMIT above them does not end a recursion that has no end; and the steps of a recursion are small.
#[derive(Debug)]
pub(super) struct OneByOne;

impl PhysicalOptimizerRule for OneByOne {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let in_turn = |plan: Arc<dyn ExecutionPlan>| {
            let any: &dyn Any = plan.as_ref();
            let input = any.downcast_ref::<RepartitionExec>().and_then(|repartition| {
                let in_turn = matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
                (in_turn && is_recursive(repartition.input())).then(|| Arc::clone(repartition.input()))
            });
            Ok(input.map_or_else(|| Transformed::no(Arc::clone(&plan)), Transformed::yes))
        };
        plan.transform_up(in_turn).data()
    }

    fn name(&self) -> &'static str {
        "recursions_one_by_one"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_recursive(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let any: &dyn Any = plan.as_ref();
    any.is::<RecursiveQueryExec>() || plan.children().into_iter().any(is_recursive)
}
