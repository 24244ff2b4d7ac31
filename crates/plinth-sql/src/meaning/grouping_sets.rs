//! What is known of columns ends where GROUPING SETS put NULL into them.
//!
//! The engine takes columns that are equal, or constant, below such a grouping for equal and constant above it, and leaves keys out of an
//! ORDER BY that sort rows by those NULLs.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};

/// Has such groupings know nothing of their input.
#[derive(Debug)]
pub(super) struct Unknown;

impl PhysicalOptimizerRule for Unknown {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(grouping) = plan.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(plan)) };
            let input = grouping.input();
            let is_known = !input.equivalence_properties().eq_group().is_empty();
            if !grouping.group_expr().has_grouping_set() || !is_known {
                return Ok(Transformed::no(plan));
            }
            let input = Arc::new(UnknownExec::new(Arc::clone(input)));
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(Arc::clone(&plan).replace_children(vec![input], options)?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "grouping_sets_of_unknown_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of a plan, of which nothing is known but their types.
#[derive(Debug)]
struct UnknownExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UnknownExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let unknown = EquivalenceProperties::new(input.schema());
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(unknown);
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for UnknownExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnknownExec")
    }
}

impl ExecutionPlan for UnknownExec {
    fn name(&self) -> &'static str {
        "UnknownExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children.as_slice() else { return internal_err!("UnknownExec has one input") };
        Ok(Arc::new(Self::new(Arc::clone(input))))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
