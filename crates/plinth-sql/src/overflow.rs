//! Where integers are looked at that may leave their type ([`plinth_datafusion::checked_arithmetic`]).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_session::Session;
use futures::future::BoxFuture;
use plinth_datafusion::{CheckedPart, bounded_concatenation, checked_arithmetic};
use plinth_io::MemoryBudget;

use crate::shared;
use crate::spread::Spreads;

/// Plans operators of what the optimizer has left, with all integers looked at and joined text held to a budget.
#[derive(Debug)]
pub(crate) struct CheckedPlanner(pub(crate) Arc<MemoryBudget>);

impl QueryPlanner for CheckedPlanner {
    fn create_physical_plan<'s: 'c, 'a: 'c, 'b: 'c, 'c>(
        &'s self,
        plan: &'a LogicalPlan,
        state: &'b dyn Session,
    ) -> BoxFuture<'c, Result<Arc<dyn ExecutionPlan>>>
    where
        Self: 'c,
    {
        Box::pin(async move {
            let plan = checked_arithmetic(plan.clone(), CheckedPart::All)?.data;
            let plan = bounded_concatenation(plan, &self.0)?;
            // Several processes have no memory in common.
            if state.config().get_extension::<Spreads>().is_some() {
                return DefaultPhysicalPlanner::default().create_physical_plan(&plan, state).await;
            }
            let (plan, shared) = shared::marked(plan, &self.0)?;
            let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(shared)]);
            planner.create_physical_plan(&plan, state).await
        })
    }
}

/// Has constants looked at before the optimizer computes them: those that were written, and those that it puts together.
#[derive(Debug)]
pub(crate) struct CheckedConstants;

impl AnalyzerRule for CheckedConstants {
    fn name(&self) -> &'static str {
        "checked_constants"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(checked_arithmetic(plan, CheckedPart::Constants)?.data)
    }
}

impl OptimizerRule for CheckedConstants {
    fn name(&self) -> &'static str {
        "checked_constants"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        checked_arithmetic(plan, CheckedPart::Constants)
    }
}
