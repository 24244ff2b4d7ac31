//! Lists and texts that a window has once for each row of a partition: `array_agg(x) OVER ()` of a million rows is a million lists of
//! as many values, which nothing was asked for.

use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use datafusion_common::Result;
use datafusion_common::utils::evaluate_partition_ranges;
use datafusion_physical_expr::PhysicalSortExpr;
use datafusion_physical_expr::window::{PlainAggregateWindowExpr, WindowExpr};
use datafusion_physical_plan::windows::WindowAggExec;

/// Aggregates that make a text of all texts.
const TEXTS: [&str; 3] = ["string_agg", "listagg", "group_concat"];

/// An aggregate whose result may be as large as all that it was given.
pub(super) fn gathering(expr: &dyn WindowExpr) -> Option<&PlainAggregateWindowExpr> {
    let plain: &PlainAggregateWindowExpr = expr.as_any().downcast_ref()?;
    let of = plain.get_aggregate_expr();
    (of.field().data_type().is_nested() || TEXTS.contains(&of.fun().name())).then_some(plain)
}

/// The bytes of such results over some whole partitions; what FILTER leaves out is counted, too.
pub(super) fn bytes_of(window: &WindowAggExec, keys: &[PhysicalSortExpr], batches: &[RecordBatch]) -> Result<usize> {
    let gathering: Vec<_> = window.window_expr().iter().filter_map(|expr| gathering(expr.as_ref())).collect();
    if gathering.is_empty() {
        return Ok(0);
    }
    let rows = concat_batches(&window.input().schema(), batches)?;
    let columns = keys.iter().map(|key| key.evaluate_to_sort_column(&rows)).collect::<Result<Vec<_>>>()?;
    let partitions = evaluate_partition_ranges(rows.num_rows(), &columns)?;
    let mut bytes = 0_usize;
    for expr in gathering {
        let args = expr.evaluate_args(&rows)?;
        for partition in &partitions {
            let slices: Vec<_> = args.iter().map(|arg| arg.slice(partition.start, partition.len())).collect();
            let mut accumulator = expr.get_aggregate_expr().create_accumulator()?;
            accumulator.update_batch(&slices)?;
            // A result may lie within buffers that all partitions share.
            let each = accumulator.evaluate()?.to_array()?.to_data().get_slice_memory_size()?;
            bytes = bytes.saturating_add(each.saturating_mul(partition.len()));
        }
    }
    Ok(bytes)
}
