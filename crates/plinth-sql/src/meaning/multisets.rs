//! `EXCEPT ALL` and `INTERSECT ALL`: how often rows occur.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, NullEquality, Result};
use datafusion::config::ConfigOptions;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder, WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;

use super::zeros;

/// Numbers equal rows on both sides, and compares the numbers with the rows: the second of one side meets the second of the
/// other. The engine looks only at whether a row is on the other side.
#[derive(Debug)]
pub(super) struct Multisets;

impl AnalyzerRule for Multisets {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Join(join) if is_of_all(&join) => Ok(Transformed::yes(by_number(join)?)),
            other => Ok(Transformed::no(other)),
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "multisets"
    }
}

/// Whether a join is what the planner makes of EXCEPT ALL or INTERSECT ALL: nothing else takes all columns, NULL like NULL,
/// before the optimizer has been there. Of distinct rows there are no second ones.
fn is_of_all(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
        && !join.on.iter().any(|(left, _)| matches!(left, Expr::Column(column) if is_number(column)))
}

const NUMBERS: [&str; 2] = ["__left_number", "__right_number"];

fn is_number(column: &Column) -> bool {
    NUMBERS.contains(&column.name.as_str())
}

fn by_number(join: Join) -> Result<LogicalPlan> {
    let columns = columns_of(&join.left);
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on.iter().cloned().unzip();
    let [left_number, right_number] = NUMBERS;
    let left = numbered(&join.left, left_keys, left_number)?;
    let right = numbered(&join.right, right_keys, right_number)?;
    let mut on = join.on;
    on.push((unqualified(left_number), unqualified(right_number)));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()
}

fn unqualified(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The rows of a plan, and the how-manieth each is among its equals.
fn numbered(plan: &Arc<LogicalPlan>, keys: Vec<Expr>, name: &str) -> Result<LogicalPlan> {
    let keys = keys.into_iter().map(|key| Ok(zeros::alike(key, plan.schema())?.data)).collect::<Result<_>>()?;
    let number = WindowFunction::new(WindowFunctionDefinition::WindowUDF(row_number_udwf()), Vec::new());
    let number = Expr::from(number).partition_by(keys).build()?;
    let its_name = number.schema_name().to_string();
    let mut columns = columns_of(plan);
    columns.push(unqualified(&its_name).alias(name));
    LogicalPlanBuilder::from(Arc::clone(plan)).window([number])?.project(columns)?.build()
}
