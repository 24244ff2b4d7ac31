//! Subqueries that depend on the row around them and can't be taken out of it.
//!
//! Where their outer columns stand below an outer join:
//! The engine takes a condition on the row around a subquery out of it, past all joins. Past an outer join that fills up the side
//! where the condition stood with NULL, it would drop rows that are to be filled up: counts and answers of EXISTS and IN would be wrong.
//! Past a window, whose rows would then be those of all rows around; past groups of all rows that HAVING keeps or drops, of which it makes
//! none where no row is left.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, Subquery, lit};
use datafusion::optimizer::AnalyzerRule;

use super::marks::depends;

/// Refuses them.
#[derive(Debug)]
pub(super) struct Bound;

impl AnalyzerRule for Bound {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan =
            plan.transform_up_with_subqueries(|node| node.map_expressions(|expr| expr.transform_up(always))).data()?;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Subquery(lateral) = node {
                check(lateral)?;
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    match expr {
                        Expr::Exists(Exists { subquery, .. }) => {
                            check(subquery)?;
                            check_rows(subquery)?;
                        }
                        Expr::ScalarSubquery(subquery)
                        | Expr::InSubquery(InSubquery { subquery, .. })
                        | Expr::SetComparison(SetComparison { subquery, .. }) => check(subquery)?,
                        _ => {}
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "subqueries_bound_to_rows"
    }
}

/// EXISTS of groups of all rows, of which there is one whatever rows there are.
fn always(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = &expr else { return Ok(Transformed::no(expr)) };
    let mut plan = subquery.subquery.as_ref();
    loop {
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Aggregate(groups) if groups.group_expr.is_empty() => {
                return Ok(Transformed::yes(lit(!*negated)));
            }
            _ => return Ok(Transformed::no(expr)),
        };
    }
}

/// EXISTS behind OFFSET, which the engine reads past.
fn check_rows(subquery: &Subquery) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() && !depends(&subquery.subquery) {
        return Ok(());
    }
    subquery.subquery.apply(|node| {
        match node {
            LogicalPlan::Limit(limit) if limit.skip.is_some() && depends(&limit.input) => plan_err!(
                "EXISTS of a subquery that depends on the row around it and has OFFSET: not supported; compare a count of its rows"
            ),
            _ => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    Ok(())
}

fn check(subquery: &Subquery) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() && !depends(&subquery.subquery) {
        return Ok(());
    }
    subquery.subquery.apply(|node| {
        if let LogicalPlan::Window(window) = node
            && depends(&window.input)
        {
            return plan_err!(
                "a window over rows that depend on the row around their subquery: not supported; number the rows of all with PARTITION \
                 BY, and join them"
            );
        }
        if let LogicalPlan::Filter(having) = node
            && let LogicalPlan::Aggregate(groups) = having.input.as_ref()
            && groups.group_expr.is_empty()
            && depends(&groups.input)
        {
            return plan_err!(
                "HAVING without GROUP BY in a subquery that depends on the row around it: not supported; compare the aggregate outside of \
                 the subquery"
            );
        }
        if let LogicalPlan::Projection(columns) = node
            && let LogicalPlan::Aggregate(groups) = columns.input.as_ref()
            && groups.group_expr.is_empty()
            && depends(&groups.input)
            && let Some(constant) = columns.expr.iter().find(|expr| expr.column_refs().is_empty())
        {
            return plan_err!(
                "{constant} beside an aggregate in a subquery that depends on the row around it: not supported; write it outside of the \
                 subquery"
            );
        }
        if let LogicalPlan::Join(join) = node {
            let (left, right) = (depends(&join.left), depends(&join.right));
            let wrong = match join.join_type {
                JoinType::Left => right,
                JoinType::Right => left,
                JoinType::Full => left || right,
                _ => false,
            };
            if wrong {
                return plan_err!(
                    "a subquery that depends on the row around it below the side of an outer JOIN that is filled up with NULL: not \
                     supported; put the condition behind the join, or write the subquery as a join"
                );
            }
        }
        // It would be computed once, for all rows.
        node.apply_expressions(|expr| {
            if expr.is_volatile() {
                return plan_err!(
                    "a subquery that depends on the row around it and on chance or a sequence ({expr}): not supported; compute that beside it"
                );
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
