//! Joins whose sides are too large for the memory there is.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use plinth_datafusion::{expected_rows, gives_way, merge_join};

/// Bytes that a hash table adds to each row.
const ENTRY: u64 = 16;
/// Bytes assumed of values of no fixed width.
const TEXT: u64 = 32;
/// How many times as many rows may come as an estimate has that knows what filters and joins leave.
const UNFORESEEN: f64 = 3.0;

/// Joins by sorting and merging, which can spill to disk, where the build side of a hash join, which can't, would take more
/// than a quarter of the memory as far as statistics tell. The own operator finds out itself: it is passed over only where it is certain
/// that it would take more than half of the memory.
///
/// Its place is between the rule that chooses the build side and the one that sorts what must be in order.
#[derive(Debug)]
pub(crate) struct JoinsWithin {
    memory: u64,
}

/// The rules of an optimizer with [`JoinsWithin`] so many bytes among them.
pub(crate) fn with_joins_within(
    memory: u64,
    mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    if let Some(at) = rules.iter().position(|rule| rule.name() == "join_selection") {
        rules.insert(at + 1, Arc::new(JoinsWithin { memory }));
    }
    rules
}

impl JoinsWithin {
    fn replace(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let any: &dyn std::any::Any = plan.as_ref();
        let Some(join) = any.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
        // What a merge can't do.
        if join.null_aware || join.projection.is_some() || join.on().is_empty() {
            return Ok(Transformed::no(plan));
        }
        let left = join.left().as_ref();
        let too_large = |rows: u64, most: u64| bytes(left, rows) > most;
        let merges = match rows(left) {
            // What it can find out itself it need not be told, unless it is certain.
            Some(Precision::Exact(rows)) if gives_way(join, config) => too_large(rows as u64, self.memory / 2),
            Some(_) if gives_way(join, config) => false,
            // The engine's statistics are cheap, and take much too many rows for what joins leave.
            Some(Precision::Exact(rows) | Precision::Inexact(rows)) => {
                let most = self.memory / 4;
                too_large(rows as u64, most) && expected(left).is_none_or(|rows| too_large(rows, most))
            }
            _ => false,
        };
        if !merges {
            return Ok(Transformed::no(plan));
        }
        let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
        let nulls = join.null_equality();
        let merge = merge_join(left, right, join.on().to_vec(), join.filter(), *join.join_type(), nulls);
        // Keys of a type that has no order stay hashed.
        Ok(merge.map_or_else(|_| Transformed::no(Arc::clone(&plan)), |merge| Transformed::yes(Arc::new(merge))))
    }
}

/// What a hash table of so many of a plan's rows takes.
fn bytes(plan: &dyn ExecutionPlan, rows: u64) -> u64 {
    let width = |data_type: &DataType| data_type.primitive_width().map_or(TEXT, |bytes| bytes as u64);
    let width: u64 = plan.schema().fields().iter().map(|field| width(field.data_type())).sum();
    rows.saturating_mul(width + ENTRY)
}

/// A plan's rows, as far as the engine knows.
fn rows(plan: &dyn ExecutionPlan) -> Option<Precision<usize>> {
    StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok().map(|statistics| statistics.num_rows)
}

/// The most rows that a plan will give if an estimate of them is not far off.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate; what is too large is cut")]
fn expected(plan: &dyn ExecutionPlan) -> Option<u64> {
    expected_rows(plan).map(|rows| (rows * UNFORESEEN) as u64)
}

impl PhysicalOptimizerRule for JoinsWithin {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| self.replace(plan, config)).data()
    }

    fn name(&self) -> &'static str {
        "joins_within_memory"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
