//! Where own operators take the place of the engine's.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_physical_expr::expressions::Column as Reference;
use datafusion_physical_expr_common::sort_expr::PhysicalSortExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_session::PhysicalOptimizerRule;
use plinth_exec::grouping::{Column, Order, Top};
use plinth_io::MemoryBudget;

use super::aggregate::GroupExec;
use super::metadata::answered;
use super::plan::Plan;
use crate::config::is_native;

/// Puts own operators where the engine's are, as far as they can do their work. Its place is before the rule that adds exchanges: own
/// operators need none.
#[derive(Debug)]
pub struct NativeOperators {
    budget: Arc<MemoryBudget>,
}

impl NativeOperators {
    /// Operators that take their memory of a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget }
    }

    fn replace(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        if let Some(last) = plan.downcast_ref::<AggregateExec>()
            && let Some(partial) = last.input().downcast_ref::<AggregateExec>()
        {
            if let Some(row) = answered(last, partial)? {
                return Ok(Transformed::yes(row));
            }
            let Ok(found) = Plan::of(last, partial)? else { return Ok(Transformed::no(plan)) };
            let group = GroupExec::new(found, last.clone(), partial.clone(), Arc::clone(&self.budget));
            return Ok(Transformed::yes(Arc::new(group)));
        }
        Ok(match first_groups(&plan) {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(plan),
        })
    }
}

/// A sort of groups of which only the first are wanted, with groups that are told so.
fn first_groups(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = plan.downcast_ref::<SortExec>()?;
    let (count, below) = (sort.fetch()?, sort.input());
    let projection = below.downcast_ref::<ProjectionExec>();
    let groups = projection.map_or(below, ProjectionExec::input);
    let group = groups.downcast_ref::<GroupExec>()?;
    let place = |key: &PhysicalSortExpr| {
        let mut column = key.expr.downcast_ref::<Reference>()?.index();
        if let Some(projection) = projection {
            column = projection.expr().get(column)?.expr.downcast_ref::<Reference>()?.index();
        }
        let column = match column.checked_sub(group.keys()) {
            Some(aggregate) => Column::Aggregate(aggregate),
            None => Column::Key(column),
        };
        Some((column, Order { descending: key.options.descending, nulls_first: key.options.nulls_first }))
    };
    let by: Vec<(Column, Order)> = sort.expr().iter().map_while(place).collect();
    if by.is_empty() {
        return None;
    }
    let whole = by.len() == sort.expr().len();
    let group: Arc<dyn ExecutionPlan> = Arc::new(group.with_top(Some(Top { by, whole, count })));
    let below = match projection {
        Some(_) => replace_children_if_necessary(Arc::clone(below), vec![group]).ok()?,
        None => group,
    };
    replace_children_if_necessary(Arc::clone(plan), vec![below]).ok()
}

impl PhysicalOptimizerRule for NativeOperators {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if is_native(config) { plan.transform_up(|plan| self.replace(plan)).data() } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "native_operators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
