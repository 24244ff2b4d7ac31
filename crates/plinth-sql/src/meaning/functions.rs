//! Functions of tables that a statement calls more than once, with other arguments.
//!
//! The engine compares scans by the name of their table, which for a function is the function's: it would take `(SELECT count(*) FROM
//! range(3))` and `(SELECT count(*) FROM range(5))` for one subquery, and compute one of them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Result, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableSource};
use datafusion::optimizer::AnalyzerRule;

/// Gives the scans of each call a name of its own, below the function's name. Which scans of ours are calls, it is told.
#[derive(Debug)]
pub(super) struct CallsApart(pub(super) fn(&str) -> bool);

impl AnalyzerRule for CallsApart {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut calls: Vec<(TableReference, Arc<dyn TableSource>)> = Vec::new();
        plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
            if !self.is_call(&scan.table_name) || !scan.filters.is_empty() {
                return Ok(Transformed::no(node));
            }
            let place = calls.iter().position(|(name, of)| *name == scan.table_name && Arc::ptr_eq(of, &scan.source));
            let place = place.unwrap_or_else(|| {
                calls.push((scan.table_name.clone(), Arc::clone(&scan.source)));
                calls.len() - 1
            });
            if calls.iter().take(place).all(|(name, _)| *name != scan.table_name) {
                return Ok(Transformed::no(node));
            }
            let apart = TableReference::bare(format!("{}#{place}", scan.table_name));
            let plan = LogicalPlanBuilder::scan_with_filters_fetch(
                apart,
                Arc::clone(&scan.source),
                scan.projection.clone(),
                Vec::new(),
                scan.fetch,
            )?;
            Ok(Transformed::yes(plan.alias(scan.table_name.clone())?.build()?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "calls_apart"
    }
}

impl CallsApart {
    /// Whether a scan has such a name.
    fn is_call(&self, table: &TableReference) -> bool {
        let TableReference::Bare { table } = table else { return false };
        table.ends_with("()") || self.0(table) || matches!(table.as_ref(), "range" | "generate_series")
    }
}
