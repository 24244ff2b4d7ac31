//! Sorted text keeps whole what it was picked from: a batch that a sort gives has its rows from all over, and each of its
//! views keeps the buffer of the batch it came from. Whoever holds such batches holds many times their size. Here their
//! text is copied together.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray, RecordBatch};
use datafusion::arrow::datatypes::{BinaryViewType, ByteViewType, DataType, StringViewType};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::each::{Each, EachBatchExec};

/// Text is copied where its buffers are so many times as large.
const WASTE: usize = 2;

/// Copies text together that comes out of sorts.
#[derive(Debug)]
pub(super) struct DenseSorts;

impl PhysicalOptimizerRule for DenseSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let dense = |plan: Arc<dyn ExecutionPlan>| {
            let any: &dyn std::any::Any = plan.as_ref();
            let views = |plan: &dyn ExecutionPlan| plan.schema().fields().iter().any(|f| is_view(f.data_type()));
            // What a limit leaves is copied out by the sort itself.
            if any.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none()) && views(plan.as_ref()) {
                return Ok(Transformed::yes(EachBatchExec::over(
                    "DenseTextExec",
                    plan,
                    |_: usize, _: &TaskContext| each(),
                )));
            }
            Ok(Transformed::no(plan))
        };
        plan.transform_up(dense).data()
    }

    fn name(&self) -> &'static str {
        "dense_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

fn each() -> Each {
    Box::new(|batch| {
        let columns = batch.columns().iter().map(|column| match column.data_type() {
            DataType::Utf8View => gathered(column.as_byte_view::<StringViewType>(), column),
            DataType::BinaryView => gathered(column.as_byte_view::<BinaryViewType>(), column),
            _ => Arc::clone(column),
        });
        Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
    })
}

fn gathered<T: ByteViewType>(views: &GenericByteViewArray<T>, whole: &ArrayRef) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    if held > WASTE * views.total_buffer_bytes_used() { Arc::new(views.gc()) } else { Arc::clone(whole) }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn text_that_keeps_much_more_than_itself_is_copied() {
        let long = |i: usize| format!("a value too long to lie in its view, {i}");
        let all: StringViewArray = (0..1000).map(|i| Some(long(i))).collect();
        let few: ArrayRef = Arc::new(all.slice(10, 3));
        let all: ArrayRef = Arc::new(all);
        for (array, copied) in [(&all, false), (&few, true)] {
            let batch = RecordBatch::try_from_iter([("s", Arc::clone(array))]).unwrap();
            let dense = each()(batch.clone()).unwrap();
            assert_eq!(dense, batch);
            assert_eq!(dense.get_array_memory_size() < batch.get_array_memory_size() / 10, copied);
        }
    }
}
