//! VALUES with subqueries in them: each row is a SELECT by itself.
//!
//! The engine evaluates VALUES before the subqueries, and fails.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Union, Values};
use datafusion::optimizer::AnalyzerRule;

#[derive(Debug)]
pub(super) struct Rows;

impl AnalyzerRule for Rows {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Values(values) if has_subquery(&values)? => Ok(Transformed::yes(by_row(values)?)),
            other => Ok(Transformed::no(other)),
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "rows_with_subqueries"
    }
}

fn has_subquery(values: &Values) -> Result<bool> {
    let is_subquery = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(Exists { .. })
                | Expr::InSubquery(InSubquery { .. })
                | Expr::SetComparison(SetComparison { .. })
        ))
    };
    for expr in values.values.iter().flatten() {
        if expr.exists(is_subquery)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn by_row(values: Values) -> Result<LogicalPlan> {
    let Values { schema, values } = values;
    let rows = values.into_iter().map(|row| {
        let one = EmptyRelation { produce_one_row: true, schema: Arc::new(DFSchema::empty()) };
        let columns = row.into_iter().zip(schema.iter());
        let columns = columns.map(|(expr, (qualifier, field))| expr.alias_qualified(qualifier.cloned(), field.name()));
        let row = Projection::try_new(columns.collect(), Arc::new(LogicalPlan::EmptyRelation(one)))?;
        Ok(Arc::new(LogicalPlan::Projection(row)))
    });
    let mut rows = rows.collect::<Result<Vec<_>>>()?;
    if rows.len() == 1
        && let Some(row) = rows.pop()
    {
        return Ok(Arc::unwrap_or_clone(row));
    }
    let union = LogicalPlan::Union(Union::try_new_with_loose_types(rows)?);
    // Of the names and types that the rest of the plan knows.
    let columns = union.schema().columns().into_iter().zip(schema.iter());
    let columns: Vec<_> = columns
        .map(|(column, (qualifier, field))| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()))
        .collect();
    LogicalPlanBuilder::from(union).project(columns)?.build()
}
