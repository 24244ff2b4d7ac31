//! A wrapper around an operator that is the operator to all others: what is done around its work does not change the plan.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, Statistics};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, InvariantLevel, ReplaceChildrenOptions,
};
use datafusion_physical_plan::metrics::MetricsSet;
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    StatisticsArgs,
};

/// What is done around an operator's work.
pub(crate) trait Around: Clone + Send + Sync + 'static {
    /// The rows of one of its partitions.
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;

    /// What is known of it.
    fn metrics(&self, operator: &dyn ExecutionPlan) -> Option<MetricsSet> {
        operator.metrics()
    }

    /// What plans show of the operator beside what it shows itself.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// An operator, to all who look at the plan, and what is done around its work.
pub(crate) struct AroundExec<A> {
    operator: Arc<dyn ExecutionPlan>,
    around: A,
}

impl<A: Around> AroundExec<A> {
    pub(crate) fn over(operator: Arc<dyn ExecutionPlan>, around: A) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { operator, around })
    }

    /// What is done around it.
    pub(crate) fn what(&self) -> &A {
        &self.around
    }

    fn around(&self, operator: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Self::over(operator, self.around.clone())
    }
}

impl<A: Around> fmt::Debug for AroundExec<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt(f)
    }
}

impl<A: Around> DisplayAs for AroundExec<A> {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt_as(t, f)?;
        match (self.around.remark(), t) {
            (None, _) => Ok(()),
            (Some(remark), DisplayFormatType::TreeRender) => writeln!(f, "{remark}"),
            (Some(remark), _) => write!(f, ", {remark}"),
        }
    }
}

impl<A: Around> ExecutionPlan for AroundExec<A> {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.operator.as_ref())
    }

    fn schema(&self) -> SchemaRef {
        self.operator.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.operator.properties()
    }

    fn check_invariants(&self, check: InvariantLevel) -> Result<()> {
        self.operator.check_invariants(check)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.operator.dynamic_expressions_produced()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.operator.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.operator.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.operator.maintains_input_order()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.operator.benefits_from_input_partitioning()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.operator.children()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.around(Arc::clone(&self.operator).replace_children(children, options)?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.operator.apply_expressions(f)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.around(Arc::clone(&self.operator).reset_state()?))
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(self.around(self.operator.with_new_state(state)?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.around.execute(&self.operator, partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.around.metrics(self.operator.as_ref())
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.operator.statistics_from_inputs(inputs, args)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.operator.child_stats_requests(partition)
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.operator.supports_limit_pushdown()
    }

    fn fetch(&self) -> Option<usize> {
        self.operator.fetch()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.operator.cardinality_effect()
    }
}
