//! What of a plan may leave the process that made it, and what a worker runs.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::{HigherOrderFunctionExpr, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{DistributedCodec, DistributedLeafExec};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use plinth_datafusion::{PlinthSource, Shipped, is_operator};
use prost::Message;

/// Bytes of a plan that leaves: rows that statements hold travel within it.
const LARGEST: usize = 16 << 20;

/// Operators that run anywhere.
const OPERATORS: [&str; 31] = [
    "AggregateExec",
    "BoundedWindowAggExec",
    "BroadcastExec",
    "BufferExec",
    "ChildrenIsolatorUnionExec",
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "CrossJoinExec",
    "EmptyExec",
    "FilterExec",
    "GlobalLimitExec",
    "HashJoinExec",
    "InterleaveExec",
    "LazyMemoryExec",
    "LocalLimitExec",
    "NestedLoopJoinExec",
    "NetworkBroadcastExec",
    "NetworkCoalesceExec",
    "NetworkShuffleExec",
    "PlaceholderRowExec",
    "ProjectionExec",
    "RepartitionExec",
    "ScalarSubqueryExec",
    "SortExec",
    "SortExec(TopK)",
    "SortMergeJoinExec",
    "SortPreservingMergeExec",
    "UnionExec",
    "UnnestExec",
    "WindowAggExec",
];

/// Functions that keep something in the session, or ask it.
const OF_THE_SESSION: [&str; 3] = ["nextval", "currval", "plinth_variable"];

/// Aggregates that are found by name, by whichever rule they were put into a plan.
const OF_THE_ENGINE: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// Whether a worker runs a plan of this shape, whatever its files: operators that compute, and scans of ours.
///
/// # Errors
/// If not; what is in the way.
pub(crate) fn operators(plan: &Arc<dyn ExecutionPlan>) -> Result<(), String> {
    let mut refused = None;
    let walked = plan.apply(|node| {
        refused = refusal(node);
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match (walked, refused) {
        (Ok(_), None) => Ok(()),
        (_, Some(what)) => Err(what),
        (Err(e), None) => Err(e.to_string()),
    }
}

fn refusal(node: &Arc<dyn ExecutionPlan>) -> Option<String> {
    if let Some(leaf) = node.downcast_ref::<DistributedLeafExec>() {
        return leaf.variants().iter().find_map(refusal);
    }
    if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
        let source = scan.data_source();
        if let Some(config) = source.downcast_ref::<FileScanConfig>() {
            return match config.file_source().downcast_ref::<PlinthSource>() {
                Some(_) => Shipped::of(config).err(),
                None => {
                    Some(format!("{} files are read where the statement is planned", config.file_source().file_type()))
                }
            };
        }
        let is_memory = source.downcast_ref::<MemorySourceConfig>().is_some();
        return (!is_memory).then(|| "it reads what no worker can".to_owned());
    }
    if !is_partitioned_by_order(node) {
        return Some("a window over partitions that a filter makes one runs where the statement is planned".to_owned());
    }
    let name = node.name();
    let known = OPERATORS.contains(&name) || name == "WholeExec" || name == "DistributedExec";
    (!known).then(|| format!("{name} runs where the statement is planned"))
}

/// Whether the partitions of a window, if it is one, can be told by the order of its rows alone: that a column has one value is known
/// of the filter below, and no more once an exchange lies between.
fn is_partitioned_by_order(node: &Arc<dyn ExecutionPlan>) -> bool {
    let windows = match (node.downcast_ref::<WindowAggExec>(), node.downcast_ref::<BoundedWindowAggExec>()) {
        (Some(window), _) => window.window_expr(),
        (_, Some(window)) => window.window_expr(),
        _ => return true,
    };
    let ordering = node.children().first().and_then(|input| input.output_ordering());
    let is_ordered = |key: &Arc<dyn PhysicalExpr>| {
        ordering.is_some_and(|ordering| ordering.iter().any(|by| by.expr.as_ref() == key.as_ref()))
    };
    windows.iter().flat_map(|window| window.partition_by()).all(is_ordered)
}

/// Whether a part of a plan can be sent, and means there what it means here.
///
/// # Errors
/// If not; what is in the way.
pub(crate) fn shippable(plan: &Arc<dyn ExecutionPlan>, state: &SessionState) -> Result<(), String> {
    operators(plan)?;
    let mut refused = None;
    let walked = plan.apply(|node| {
        refused = functions(node, state);
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    if let Some(what) = refused {
        return Err(what);
    }
    walked.map_err(|e| e.to_string())?;
    let codec = DistributedCodec::new_combined_with_user(state.config());
    let sent = PhysicalPlanNode::try_from_physical_plan(representative(plan)?, &codec);
    let sent = sent.map_err(|e| plinth_sql::one_line(&e.strip_backtrace()).chars().take(300).collect::<String>())?;
    match sent.encoded_len() {
        len if len > LARGEST => Err(format!("it holds {} MB of rows itself", len >> 20)),
        _ => Ok(()),
    }
}

/// The plan as the first of its tasks is sent it.
fn representative(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, String> {
    use datafusion::common::tree_node::Transformed;
    use datafusion_distributed::NetworkBoundaryExt;
    let first = |node: Arc<dyn ExecutionPlan>| {
        if node.is_network_boundary() {
            let schema = node.schema();
            let empty: Arc<dyn ExecutionPlan> = Arc::new(datafusion::physical_plan::empty::EmptyExec::new(schema));
            return Ok(Transformed::new(empty, true, TreeNodeRecursion::Jump));
        }
        Ok(match node.downcast_ref::<DistributedLeafExec>().and_then(|leaf| leaf.variants().first().cloned()) {
            Some(variant) => Transformed::yes(variant),
            None => Transformed::no(node),
        })
    };
    let first = Arc::clone(plan).transform_down(first);
    first.map(|plan| plan.data).map_err(|e| e.to_string())
}

/// What a node computes that means something here alone.
fn functions(node: &Arc<dyn ExecutionPlan>, state: &SessionState) -> Option<String> {
    let mut refused = None;
    let mut look = |expr: &Arc<dyn PhysicalExpr>| {
        let walked = expr.apply(|expr| {
            if expr.is::<HigherOrderFunctionExpr>() {
                refused = Some("a function of functions runs where the statement is planned".to_owned());
            }
            if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>()
                && !is_known(function.fun(), state)
            {
                refused = Some(format!("{} is a function of this session", function.fun().name()));
            }
            Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        walked.map(|_| TreeNodeRecursion::Continue)
    };
    if let Err(e) = node.apply_expressions(&mut look) {
        return Some(e.to_string());
    }
    if refused.is_some() {
        return refused;
    }
    let aggregates = node.downcast_ref::<AggregateExec>().map(|node| node.aggr_expr().to_vec()).unwrap_or_default();
    for aggregate in aggregates {
        let name = aggregate.fun().name();
        // The engine's optimizer has its own of these, which mean what the session's do.
        if OF_THE_ENGINE.contains(&name) {
            continue;
        }
        if state.aggregate_functions().get(name).is_none_or(|known| known.as_ref() != aggregate.fun()) {
            return Some(format!("{name} is a function of this session"));
        }
    }
    None
}

/// Whether a worker knows a function by its name, and knows the same one.
fn is_known(function: &ScalarUDF, state: &SessionState) -> bool {
    if is_operator(function) || plinth_sql::is_of_plans(function) {
        return true;
    }
    let name = function.name();
    let known = state.scalar_functions().get(name);
    !OF_THE_SESSION.contains(&name) && known.is_some_and(|known| known.as_ref() == function)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn what_writes_or_reads_by_another_way_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("a.csv"), "x\n1\n").unwrap();
        let plan = |sql: String| -> Arc<dyn ExecutionPlan> {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let context = SessionContext::new();
                let listed = format!("CREATE EXTERNAL TABLE listed STORED AS CSV LOCATION '{}'", path("a.csv"));
                context.sql(&listed).await.unwrap().collect().await.unwrap();
                context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap()
            })
        };
        for refused in [
            "SELECT * FROM listed".to_owned(),
            format!("COPY (SELECT 1) TO '{}' STORED AS CSV", path("b.csv")),
            format!("COPY (SELECT 1) TO '{}' STORED AS PARQUET", path("b.parquet")),
            "EXPLAIN ANALYZE SELECT 1".to_owned(),
            "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t WHERE x < 9) SELECT * FROM t".to_owned(),
        ] {
            assert!(operators(&plan(refused.clone())).is_err(), "{refused}");
        }
        operators(&plan("SELECT x, count(*) FROM (VALUES (1), (2)) AS v(x) GROUP BY x ORDER BY 2 LIMIT 1".to_owned()))
            .unwrap();
    }
}
