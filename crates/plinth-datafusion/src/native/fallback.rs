//! What becomes of groups for which there is no memory: the engine's final aggregate, which can spill.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use plinth_core::sync::lock;
use tokio::sync::mpsc::{Sender, channel};

use super::leaf::LeafExec;

/// Batches of states under way.
const IN_FLIGHT: usize = 4;

/// Where the states of groups go that give way.
pub(super) type States = Sender<Result<RecordBatch>>;

/// The final aggregate of states that come by and by, in so many partitions.
pub(super) fn fallback(last: &AggregateExec, partitions: usize) -> Result<(States, Arc<dyn ExecutionPlan>)> {
    let schema = last.input().schema();
    let (states, receiver) = channel(IN_FLIGHT);
    let receiver = Mutex::new(Some(receiver));
    let given = Arc::clone(&schema);
    let leaf = LeafExec::new("StatesExec", &schema, 1, move |_, _| {
        let receiver = lock(&receiver).take();
        let mut receiver = receiver.ok_or_else(|| internal_datafusion_err!("states of groups are read twice"))?;
        let batches = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&given), batches)))
    });
    let mut input: Arc<dyn ExecutionPlan> = Arc::new(leaf);
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
