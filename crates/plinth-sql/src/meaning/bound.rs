//! Subqueries that depend on the row around them and can't be taken out of it.
//!
//! Where their outer columns stand below an outer join:
//! The engine takes a condition on the row around a subquery out of it, past all joins. Past an outer join that fills up the side
//! where the condition stood with NULL, it would drop rows that are to be filled up: counts and answers of EXISTS and IN would be wrong.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, Subquery};
use datafusion::optimizer::AnalyzerRule;

use super::marks::depends;

/// Refuses them.
#[derive(Debug)]
pub(super) struct Bound;

impl AnalyzerRule for Bound {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Subquery(lateral) = node {
                check(lateral)?;
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    match expr {
                        Expr::ScalarSubquery(subquery)
                        | Expr::Exists(Exists { subquery, .. })
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

fn check(subquery: &Subquery) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() && !depends(&subquery.subquery) {
        return Ok(());
    }
    subquery.subquery.apply(|node| {
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
