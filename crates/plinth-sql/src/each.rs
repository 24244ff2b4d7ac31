//! A step of a plan that does something with each batch and passes the rows on as they are, in one batch or several.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

/// What is done with the batches of a partition, one after the other.
pub(crate) type Each = Box<dyn FnMut(RecordBatch) -> Result<Vec<RecordBatch>> + Send>;

/// Makes that for a partition.
pub(crate) type MakeEach = Arc<dyn Fn(usize, &TaskContext) -> Each + Send + Sync>;

/// Does something with each batch of its input, and keeps rows and order.
pub(crate) struct EachBatchExec {
    name: &'static str,
    input: Arc<dyn ExecutionPlan>,
    each: MakeEach,
}

impl EachBatchExec {
    pub(crate) fn over(name: &'static str, input: Arc<dyn ExecutionPlan>, each: MakeEach) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { name, input, each })
    }
}

impl fmt::Debug for EachBatchExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).finish_non_exhaustive()
    }
}

impl DisplayAs for EachBatchExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for EachBatchExec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children.as_slice() else {
            return internal_err!("{} has one input, not {}", self.name, children.len());
        };
        Ok(Self::over(self.name, Arc::clone(input), Arc::clone(&self.each)))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut each = (self.each)(partition, &context);
        let batches = self.input.execute(partition, context)?.map(move |batch| each(batch?));
        let rows = batches.map_ok(|batches| stream::iter(batches.into_iter().map(Ok))).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), rows)))
    }
}
