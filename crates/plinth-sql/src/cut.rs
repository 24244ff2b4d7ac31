//! Batches of few rows for expressions that make much of each: eight thousand rows, each with a text of a megabyte, would be
//! in memory at once.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use plinth_datafusion::enlarges;

use super::each::{Each, EachBatchExec};

/// Cuts batches before operators whose expressions make much of a row.
#[derive(Debug)]
pub(crate) struct CutBatches {
    /// Bytes that a batch may be made of.
    bytes: usize,
}

impl CutBatches {
    /// Within so much memory.
    pub(crate) fn within(memory: u64) -> Self {
        let bytes = (memory / SHARE).clamp(LEAST, MOST);
        Self { bytes: usize::try_from(bytes).unwrap_or(usize::MAX) }
    }
}

/// Of the memory, what a batch may be made of. Several are on their way at once.
const SHARE: u64 = 128;
const LEAST: u64 = 64 << 10;
const MOST: u64 = 8 << 20;

impl PhysicalOptimizerRule for CutBatches {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let evaluates = plan.is::<ProjectionExec>() || plan.is::<FilterExec>() || plan.is::<AggregateExec>();
            let rows = if evaluates { most_rows(plan.as_ref(), self.bytes)? } else { None };
            let input = plan.children().first().map(|&input| Arc::clone(input));
            let (Some(rows), Some(input)) = (rows, input) else { return Ok(Transformed::no(plan)) };
            let each = move |_: usize, _: &TaskContext| -> Each {
                Box::new(move |batch| {
                    let starts = (0..batch.num_rows()).step_by(rows);
                    Ok(starts.map(|from| batch.slice(from, rows.min(batch.num_rows() - from))).collect())
                })
            };
            let cut = EachBatchExec::over("FewRowsExec", input, Arc::new(each));
            Ok(Transformed::yes(replace_children_if_necessary(plan, vec![cut])?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "cut_batches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Rows that a batch should have at most for all expressions of an operator.
fn most_rows(plan: &dyn ExecutionPlan, bytes: usize) -> Result<Option<usize>> {
    let mut rows = None;
    plan.apply_expressions(&mut |expr| {
        rows = rows.into_iter().chain(enlarges(expr.as_ref(), bytes)).min();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows)
}
