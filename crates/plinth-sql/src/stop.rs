//! Joins that hear that they should stop.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};

use crate::error::SqlError;
use crate::interrupt::Interrupt;

/// Operators that make many rows of few: what gathers their rows may not come back to its scheduler for minutes, and
/// so not hear that it was cancelled.
const MULTIPLIERS: [&str; 8] = [
    "CrossJoinExec",
    "NestedLoopJoinExec",
    "HashJoinExec",
    "JoinExec",
    "SortMergeJoinExec",
    "PiecewiseMergeJoin",
    "UnnestExec",
    "RecursiveQueryExec",
];

/// The node to put in a node's place, if it is one that may run long without a pause.
pub(crate) fn stoppable(
    node: &Arc<dyn ExecutionPlan>,
    interrupt: &Interrupt,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !MULTIPLIERS.contains(&node.name()) {
        return Ok(None);
    }
    let node = match node.downcast_ref::<NestedLoopJoinExec>().and_then(|join| Some((join, join.filter()?))) {
        // It compares a batch with all rows of the other side before it gives anything back.
        Some((join, filter)) => {
            let condition = Arc::clone(filter.expression());
            let condition = Arc::new(Stoppable { condition, asked: interrupt.flag() });
            let filter = JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()));
            Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?)
        }
        None => Arc::clone(node),
    };
    Ok(Some(Arc::new(CooperativeExec::new(node))))
}

/// A plan that was made elsewhere, whose operators hear that they should stop.
///
/// # Errors
/// If an operator can't be made again.
pub fn stoppable_plan(plan: Arc<dyn ExecutionPlan>, interrupt: &Interrupt) -> Result<Arc<dyn ExecutionPlan>> {
    let one = |node: Arc<dyn ExecutionPlan>| {
        Ok(match stoppable(&node, interrupt)? {
            Some(other) => Transformed::yes(other),
            None => Transformed::no(node),
        })
    };
    Ok(plan.transform_up(one)?.data)
}

/// A condition that is an error once the user has asked to stop.
#[derive(Debug)]
struct Stoppable {
    condition: Arc<dyn PhysicalExpr>,
    asked: Arc<AtomicBool>,
}

impl PartialEq for Stoppable {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Stoppable {}

impl Hash for Stoppable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Stoppable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for Stoppable {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.asked.load(Ordering::Relaxed) {
            return Err(SqlError::Interrupted.into());
        }
        self.condition.evaluate(batch)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(input_schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 1]>::try_from(children) {
            Ok([condition]) => Ok(Arc::new(Self { condition, asked: Arc::clone(&self.asked) })),
            Err(children) => exec_err!("a condition of {} parts", children.len()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
