//! Recursive queries: a row after the other, and no value taken from rows that are still to come.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, RecursiveQuery, TableScan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;

/// Takes the steps away that hand the batches of a recursion to several threads in turn. They pull for as long as there are
/// rows, so that a LIMIT above them does not end a recursion that has no end; and the steps of a recursion are small.
#[derive(Debug)]
pub(super) struct OneByOne;

impl PhysicalOptimizerRule for OneByOne {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let in_turn = |plan: Arc<dyn ExecutionPlan>| {
            let any: &dyn Any = plan.as_ref();
            let input = any.downcast_ref::<RepartitionExec>().and_then(|repartition| {
                let in_turn = matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
                (in_turn && is_recursive(repartition.input())).then(|| Arc::clone(repartition.input()))
            });
            Ok(input.map_or_else(|| Transformed::no(Arc::clone(&plan)), Transformed::yes))
        };
        plan.transform_up(in_turn).data()
    }

    fn name(&self) -> &'static str {
        "recursions_one_by_one"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_recursive(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let any: &dyn Any = plan.as_ref();
    any.is::<RecursiveQueryExec>() || plan.children().into_iter().any(is_recursive)
}

/// Refuses a recursion that has itself in a subquery only, or asks its own rows for one value: `(SELECT max(n) FROM r)` in the
/// step of `r`. The engine takes the first for no recursion; the second it computes once, before the statement, where there are
/// no rows yet, and what it should be differs from step to step.
#[derive(Debug)]
pub(super) struct OnceInFrom;

impl AnalyzerRule for OnceInFrom {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if let Some(name) = open_step(&plan)? {
            return refused(&name);
        }
        plan.apply_with_subqueries(|node| match node {
            LogicalPlan::RecursiveQuery(query) => values_of_itself(query),
            _ => Ok(TreeNodeRecursion::Continue),
        })?;
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "recursions_once_in_from"
    }
}

fn refused<T>(name: &str) -> Result<T> {
    plan_err!("{name} refers to itself in a subquery; a recursive query is to refer to itself in FROM, once")
}

fn values_of_itself(query: &RecursiveQuery) -> Result<TreeNodeRecursion> {
    query.recursive_term.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| match part {
                Expr::ScalarSubquery(value) if value.outer_ref_columns.is_empty() => {
                    match open_step(&value.subquery)? {
                        Some(name) if name == query.name => refused(&name),
                        _ => Ok(TreeNodeRecursion::Continue),
                    }
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(TreeNodeRecursion::Continue)
}

/// The name of a recursion of whose last step a plan has the rows, without being within it.
fn open_step(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut open = None;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::RecursiveQuery(query) => {
                open = open_step(&query.static_term)?;
                if open.is_none() {
                    open = open_step(&query.recursive_term)?.filter(|name| *name != query.name);
                }
            }
            LogicalPlan::TableScan(scan) => open = step_of(scan),
            _ => return Ok(TreeNodeRecursion::Continue),
        }
        Ok(if open.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Jump })
    })?;
    Ok(open)
}

/// The name of the recursion whose last step is scanned.
fn step_of(scan: &TableScan) -> Option<String> {
    let provider = source_as_provider(&scan.source).ok()?;
    let any: &dyn Any = provider.as_ref();
    any.downcast_ref::<CteWorkTable>().map(|table| table.name().to_owned())
}
