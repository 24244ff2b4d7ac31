//! Subqueries that depend on the row around them and on chance, which would be computed once for all rows: they are refused.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery, lit};
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
                        Expr::Exists(Exists { subquery, .. })
                        | Expr::ScalarSubquery(subquery)
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

fn check(subquery: &Subquery) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() && !depends(&subquery.subquery) {
        return Ok(());
    }
    subquery.subquery.apply(|node| {
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
