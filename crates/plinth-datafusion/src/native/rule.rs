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
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_session::PhysicalOptimizerRule;
use plinth_exec::domains::Domains;
use plinth_exec::grouping::{Column, Order, Top};
use plinth_io::MemoryBudget;

use super::aggregate::GroupExec;
use super::join::{JoinExec, Rules};
use super::metadata::answered;
use super::plan::Plan;
use super::top::TopExec;
use crate::config::{is_native, joins_natively};
use crate::order::estimates;

/// Puts own operators where the engine's are, as far as they can do their work. Its place is before the rule that adds exchanges: own
/// operators need none.
#[derive(Debug)]
pub struct NativeOperators {
    domains: Arc<Domains>,
    /// For plans that are made while a query runs.
    sorts: Rules,
}

impl NativeOperators {
    /// Operators that take their memory of a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { domains: Domains::new(budget), sorts: Arc::new([]) }
    }

    /// The same with rules for the sorts of a join whose side turns out to have no room in memory.
    #[must_use]
    pub fn with_sorts(self, rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) -> Self {
        Self { sorts: rules.into(), ..self }
    }

    /// `joins` are the rows that hash joins are expected to give, one after the other; none if joins are left to the engine. `filters` tells whether
    /// these ask scans for their keys.
    fn replace(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        joins: Option<&mut std::vec::IntoIter<Option<f64>>>,
        filters: bool,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>()
            && let Some(joins) = joins
        {
            let own = JoinExec::of(join, joins.next().flatten(), filters, &self.sorts, self.domains.budget())?;
            return Ok(own.map_or_else(|| Transformed::no(Arc::clone(&plan)), |own| Transformed::yes(Arc::new(own))));
        }
        if let Some(last) = plan.downcast_ref::<AggregateExec>()
            && let Some(partial) = last.input().downcast_ref::<AggregateExec>()
        {
            if let Some(row) = answered(last, partial)? {
                return Ok(Transformed::yes(row));
            }
            let Ok(found) = Plan::of(last, partial)? else { return Ok(Transformed::no(plan)) };
            let group = GroupExec::new(found, last.clone(), partial.clone(), Arc::clone(&self.domains));
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

/// Puts own operators where sorts with a limit are, right above scans that have taken all filters. Its place is behind the rules that push filters and
/// projections into scans, before the one that hands them filters that change while the query runs.
#[derive(Debug)]
pub struct NativeSorts {
    budget: Arc<MemoryBudget>,
}

impl NativeSorts {
    /// Operators that take their memory of a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget }
    }

    fn replace(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let top = if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
            self.top(merge.input(), merge.fetch())?
        } else if plan.downcast_ref::<SortExec>().is_some_and(|sort| !sort.preserve_partitioning()) {
            self.top(&plan, None)?
        } else {
            None
        };
        Ok(top.map_or_else(|| Transformed::no(plan), Transformed::yes))
    }

    /// The rows of a sort, with projections above it, in one partition; of a merge that takes no fewer than the sort gives.
    fn top(&self, plan: &Arc<dyn ExecutionPlan>, merged: Option<usize>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let below = self.top(projection.input(), merged)?;
            return below.map(|below| replace_children_if_necessary(Arc::clone(plan), vec![below])).transpose();
        }
        let sort = plan.downcast_ref::<SortExec>().filter(|sort| merged.is_none() || sort.fetch() <= merged);
        Ok(sort.and_then(|sort| TopExec::of(sort, &self.budget)).map(|top| Arc::new(top) as _))
    }
}

impl PhysicalOptimizerRule for NativeSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if is_native(config) { plan.transform_up(|plan| self.replace(plan)).data() } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "native_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl PhysicalOptimizerRule for NativeOperators {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !is_native(config) {
            return Ok(plan);
        }
        let mut joins = joins_natively(config).then(|| estimates(&plan).into_iter());
        let filters = config.optimizer.enable_join_dynamic_filter_pushdown;
        plan.transform_up(|plan| self.replace(plan, joins.as_mut(), filters)).data()
    }

    fn name(&self) -> &'static str {
        "native_operators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
