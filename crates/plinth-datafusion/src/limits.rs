//! Sorts above a LIMIT stay there: `SELECT * FROM (SELECT * FROM t LIMIT 10) ORDER BY x`.
//!
//! The engine moves such a sort below the limit, where it takes the ten least of all rows. Any ten would do, but those that come first do without
//! reading the rest, and a recursion without an end has no least ones. While sorts are placed, limits stand behind an operator that
//! no sort passes.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::CardinalityEffect;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_session::PhysicalOptimizerRule;

/// Puts the operator above limits. Its place is before the rule that places sorts.
#[derive(Debug)]
pub struct HoldLimits;

/// Takes it away. Its place is behind that rule.
#[derive(Debug)]
pub struct ReleaseLimits;

impl PhysicalOptimizerRule for HoldLimits {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let is_limit = plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>();
            Ok(match is_limit {
                true => Transformed::yes(Arc::new(HeldExec { limit: plan }) as _),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "hold_limits"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl PhysicalOptimizerRule for ReleaseLimits {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match plan.downcast_ref::<HeldExec>() {
                Some(held) => Transformed::yes(Arc::clone(&held.limit)),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "release_limits"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of a limit.
#[derive(Debug)]
struct HeldExec {
    limit: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for HeldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldExec")
    }
}

impl ExecutionPlan for HeldExec {
    fn name(&self) -> &'static str {
        "HeldExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.limit.properties()
    }

    /// It does, but what says so lets sorts pass.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.limit]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(match children.pop() {
            Some(limit) => Arc::new(Self { limit }),
            None => self,
        })
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.limit.execute(partition, context)
    }
}
