//! Marks: columns that say of each row of a plan whether a subquery has a row that fits it; and columns that have the value of one.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, plan_datafusion_err};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use super::unnesting::{Answer, Kind, has_one_row_at_most, is_plain};

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

    /// The value of a subquery that depends on the row.
    pub(super) fn value(&mut self, subquery: &LogicalPlan) -> Result<Expr> {
        let name = self.name();
        let answer = Answer::of(subquery, &self.plan, self.names)?;
        let (answer, value) = answer.value(has_one_row_at_most(subquery), &name)?;
        let on = answer.conditions(None);
        let joined = LogicalPlanBuilder::from(self.plan.clone()).join_on(answer.plan, JoinType::Left, on)?;
        self.plan = joined.build()?;
        Ok(value)
    }

    /// A column that is true in the rows for which a subquery has one that a condition holds of.
    pub(super) fn mark(
        &mut self,
        subquery: &LogicalPlan,
        kind: Kind,
        condition: impl FnOnce(Column) -> Option<Expr>,
    ) -> Result<Expr> {
        let name = self.name();
        let (subquery, mut conditions) = self.uncorrelated(subquery, kind, &name)?;
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

    /// A subquery that does not depend on the query around it, under a name, and the conditions that make up for that.
    fn uncorrelated(&mut self, subquery: &LogicalPlan, kind: Kind, name: &str) -> Result<(LogicalPlan, Vec<Expr>)> {
        if !depends(subquery) {
            return Ok((LogicalPlanBuilder::from(subquery.clone()).alias(name)?.build()?, Vec::new()));
        }
        if is_plain(subquery, kind)
            && let Some(pulled) = pulled_up(subquery, kind, name)?
        {
            return Ok(pulled);
        }
        let answer = Answer::of(subquery, &self.plan, self.names)?;
        let conditions = answer.conditions(Some(name));
        Ok((LogicalPlanBuilder::from(answer.plan).alias(name)?.build()?, conditions))
    }
}

/// The columns of a plan.
pub(super) fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// A subquery without its conditions on the row around, and these, if they can be taken out of it.
fn pulled_up(subquery: &LogicalPlan, kind: Kind, name: &str) -> Result<Option<(LogicalPlan, Vec<Expr>)>> {
    let mut pull = PullUpCorrelatedExpr::new().with_exists_sub_query(kind == Kind::Exists);
    let plan = subquery.clone().rewrite(&mut pull).data()?;
    if !pull.can_pull_up || pull.pulled_up_scalar_agg || pull.pull_up_having_expr.is_some() {
        return Ok(None);
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
    Ok(Some((plan, conditions.collect::<Result<_>>()?)))
}

/// Whether a subquery names columns of a query around it.
pub(super) fn depends(subquery: &LogicalPlan) -> bool {
    !subquery.all_out_ref_exprs().is_empty()
}
