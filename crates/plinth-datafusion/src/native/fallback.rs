//! What becomes of groups for which there is no memory: the engine's final aggregate, which can spill.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use plinth_core::sync::lock;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Batches of states under way.
const IN_FLIGHT: usize = 4;

/// Where the states of groups go that give way.
pub(super) type States = Sender<Result<RecordBatch>>;

/// The final aggregate of states that come by and by, in so many partitions.
pub(super) fn fallback(last: &AggregateExec, partitions: usize) -> Result<(States, Arc<dyn ExecutionPlan>)> {
    let schema = last.input().schema();
    let (states, receiver) = channel(IN_FLIGHT);
    let equivalences = EquivalenceProperties::new(Arc::clone(&schema));
    let one = Partitioning::UnknownPartitioning(1);
    let properties = PlanProperties::new(equivalences, one, EmissionType::Incremental, Boundedness::Bounded);
    let receiver = Mutex::new(Some(receiver));
    let mut input: Arc<dyn ExecutionPlan> = Arc::new(StatesExec { schema, receiver, properties: Arc::new(properties) });
    let keys: Vec<Arc<dyn PhysicalExpr>> = last.group_expr().input_exprs();
    let mut mode = AggregateMode::Final;
    if partitions > 1 && !keys.is_empty() {
        input = Arc::new(RepartitionExec::try_new(input, Partitioning::Hash(keys, partitions))?);
        mode = AggregateMode::FinalPartitioned;
    }
    let aggregate = AggregateExec::try_new(
        mode,
        last.group_expr().clone(),
        last.aggr_expr().to_vec(),
        last.filter_expr().to_vec(),
        input,
        last.input_schema(),
    )?;
    Ok((states, Arc::new(aggregate)))
}

/// The states, in the order they come in.
struct StatesExec {
    schema: SchemaRef,
    receiver: Mutex<Option<Receiver<Result<RecordBatch>>>>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for StatesExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatesExec").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl DisplayAs for StatesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatesExec")
    }
}

impl ExecutionPlan for StatesExec {
    fn name(&self) -> &'static str {
        "StatesExec"
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

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let receiver = lock(&self.receiver).take();
        let mut receiver = receiver.ok_or_else(|| internal_datafusion_err!("states of groups are read twice"))?;
        let batches = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}
