//! A plan without inputs, for plans that are made while a query runs: what gives its rows is running already, or not to be changed.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// What gives the rows of a partition.
type Rows = dyn Fn(usize, Arc<TaskContext>) -> Result<SendableRecordBatchStream> + Send + Sync;

/// The rows that a function gives.
pub(super) struct LeafExec {
    name: &'static str,
    rows: Box<Rows>,
    properties: Arc<PlanProperties>,
}

impl LeafExec {
    /// Rows in so many partitions, in no order.
    pub(super) fn new(
        name: &'static str,
        schema: &SchemaRef,
        partitions: usize,
        rows: impl Fn(usize, Arc<TaskContext>) -> Result<SendableRecordBatchStream> + Send + Sync + 'static,
    ) -> Self {
        let equivalences = EquivalenceProperties::new(Arc::clone(schema));
        let partitioning = Partitioning::UnknownPartitioning(partitions);
        let properties =
            PlanProperties::new(equivalences, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        Self { name, rows: Box::new(rows), properties: Arc::new(properties) }
    }
}

impl fmt::Debug for LeafExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).field("schema", &self.schema()).finish_non_exhaustive()
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        (self.rows)(partition, context)
    }
}
