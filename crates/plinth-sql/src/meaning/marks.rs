//! Marks: columns that say of each row of a plan whether a subquery has a row that fits it.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, plan_datafusion_err, plan_err};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

/// A plan that gets columns more, and how many names it has used up.
pub(super) struct Marks<'a> {
    pub(super) plan: LogicalPlan,
    names: &'a mut usize,
}

impl<'a> Marks<'a> {
    pub(super) fn new(plan: Arc<LogicalPlan>, names: &'a mut usize) -> Self {
        Self { plan: Arc::unwrap_or_clone(plan), names }
    }

    fn name(&mut self) -> String {
        *self.names += 1;
        format!("__sq_{}", self.names)
    }

    /// A column that has the value of an expression, so that it is evaluated once.
    pub(super) fn column(&mut self, value: Expr) -> Result<Expr> {
        if matches!(value, Expr::Column(_)) {
            return Ok(value);
        }
        let name = self.name();
        let mut columns = columns_of(&self.plan);
        columns.push(value.alias(&name));
        self.plan = LogicalPlanBuilder::from(self.plan.clone()).project(columns)?.build()?;
        Ok(Expr::Column(Column::new_unqualified(name)))
    }

    /// A column that is true in the rows for which a subquery has one that a condition holds of.
    pub(super) fn mark(
        &mut self,
        subquery: &LogicalPlan,
        exists: bool,
        condition: impl FnOnce(Column) -> Option<Expr>,
    ) -> Result<Expr> {
        let name = self.name();
        let (subquery, mut conditions) = uncorrelated(subquery, exists, &name)?;
        let first = Column::from(subquery.schema().qualified_field(0));
        conditions.extend(condition(first));
        let condition = conjunction(conditions).unwrap_or_else(|| lit(true));
        let joined = LogicalPlanBuilder::from(self.plan.clone()).join_on(subquery, JoinType::LeftMark, [condition]);
        self.plan = joined.and_then(LogicalPlanBuilder::build).map_err(|error| {
            plan_datafusion_err!(
                "a subquery that depends on rows beyond the query next to it: not supported here; write a join ({})",
                error.strip_backtrace()
            )
        })?;
        Ok(Expr::Column(Column::new(Some(name), "mark")))
    }
}

/// The columns of a plan.
pub(super) fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// A subquery that does not depend on the query around it, under a name, and the conditions that make up for that.
fn uncorrelated(subquery: &LogicalPlan, exists: bool, name: &str) -> Result<(LogicalPlan, Vec<Expr>)> {
    if !depends(subquery) {
        return Ok((LogicalPlanBuilder::from(subquery.clone()).alias(name)?.build()?, Vec::new()));
    }
    let mut pull = PullUpCorrelatedExpr::new().with_exists_sub_query(exists);
    let plan = subquery.clone().rewrite(&mut pull).data()?;
    if !pull.can_pull_up || pull.pulled_up_scalar_agg || pull.pull_up_having_expr.is_some() {
        return plan_err!(
            "IN, ANY, ALL or EXISTS of a subquery that depends on the row and has LIMIT, a window or an aggregate: not \
             supported here; write a join"
        );
    }
    let plan = LogicalPlanBuilder::from(plan).alias(name)?.build()?;
    let inner: BTreeSet<Column> = pull.correlated_subquery_cols_map.into_values().flatten().collect();
    let renamed = |condition: Expr| {
        condition.transform_up(|expr| match expr {
            Expr::Column(column) if inner.contains(&column) => {
                Ok(Transformed::yes(Expr::Column(Column::new(Some(name), column.name))))
            }
            other => Ok(Transformed::no(other)),
        })
    };
    let conditions = pull.join_filters.into_iter().map(|condition| renamed(condition).data());
    Ok((plan, conditions.collect::<Result<_>>()?))
}

/// Whether a subquery names columns of a query around it.
pub(super) fn depends(subquery: &LogicalPlan) -> bool {
    !subquery.all_out_ref_exprs().is_empty()
}
