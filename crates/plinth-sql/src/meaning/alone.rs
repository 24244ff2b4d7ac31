//! Groups of all rows, of which there is one whatever is left of them: a filter that names no column stays above.
//!
//! The engine takes it below, where the row would be made of no rows: `SELECT * FROM (SELECT 'a' AS k, count(*) FROM t) q WHERE k = 'b'` had one. No
//! filter goes past a limit, and one of all rows changes nothing.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use super::marks::depends;

/// More rows than there are.
const ALL: usize = usize::MAX >> 1;

/// Puts a limit above groups of all rows that a filter or a join is above.
#[derive(Debug)]
pub(super) struct Alone;

impl AnalyzerRule for Alone {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        fenced(plan, false)
    }

    fn name(&self) -> &'static str {
        "groups_of_all_rows"
    }
}

/// A plan below a filter or a join, or below none.
fn fenced(plan: LogicalPlan, below: bool) -> Result<LogicalPlan> {
    let rows = match &plan {
        LogicalPlan::Aggregate(groups) if below => of_all_rows(groups),
        _ => None,
    };
    let inner = match &plan {
        LogicalPlan::Filter(_) | LogicalPlan::Join(_) => true,
        // A filter that comes to its rows has passed it.
        LogicalPlan::Aggregate(_) | LogicalPlan::Limit(_) => false,
        _ => below,
    };
    // What IN asks for becomes a side of a join.
    let mut asks = false;
    plan.apply_expressions(|expr| {
        asks |= expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    let plan = if asks { plan.map_expressions(|expr| expr.transform_up(asked)).data()? } else { plan };
    let plan = plan.map_children(|child| fenced(child, inner).map(Transformed::yes)).data()?;
    match rows {
        Some(rows) => LogicalPlanBuilder::from(plan).limit(0, Some(rows))?.build(),
        None => Ok(plan),
    }
}

/// The subquery of IN, if it is the same for all rows.
fn asked(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if !depends(&subquery.subquery) => {
            let plan = fenced(subquery.subquery.as_ref().clone(), true)?;
            let subquery = subquery.with_plan(Arc::new(plan));
            Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// How many rows there are at most, if one of them is of all rows.
fn of_all_rows(groups: &Aggregate) -> Option<usize> {
    match groups.group_expr.as_slice() {
        [] => Some(1),
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty).then_some(ALL),
        [Expr::GroupingSet(_)] => Some(ALL),
        _ => None,
    }
}
