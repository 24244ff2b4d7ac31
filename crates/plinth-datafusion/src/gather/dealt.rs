//! Batches of one partition that are dealt out in order, some at a time: operators above them run once for each deal, so that what
//! they make of it is known to lie between what they make of those before and behind it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex as Lock;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use datafusion_common::{Result, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::Fuse;
use futures::{StreamExt, stream};
use plinth_core::sync::lock;
use tokio::sync::Mutex;

use super::queue::Queue;
use crate::around::Around;

/// Rows that are dealt at once.
const DEAL: usize = 32 << 10;

/// Deals that wait to be asked for. Each has a number of its own, also if a plan is run several times at once.
#[derive(Clone, Default)]
pub(super) struct Dealt {
    deals: Arc<Lock<HashMap<usize, Vec<RecordBatch>>>>,
    next: Arc<AtomicUsize>,
}

impl Around for Dealt {
    /// The rows of a deal, in the place of a partition.
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        deal: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(batches) = lock(&self.deals).remove(&deal) else {
            return internal_err!("{} has no rows that were dealt as {deal}", operator.name());
        };
        let batches = stream::iter(batches.into_iter().map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(operator.schema(), batches)))
    }
}

/// Where rows come from that are dealt out.
pub(super) struct Source {
    dealt: Dealt,
    rows: Mutex<Fuse<SendableRecordBatchStream>>,
}

impl Source {
    /// Starts what is below the operator that deals.
    pub(super) fn new(dealt: &Dealt, above: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Result<Self> {
        let mut plan = above;
        loop {
            let &[below] = plan.children().as_slice() else {
                return internal_err!("{} stands over no rows that are dealt", plan.name());
            };
            if plan.is::<RepartitionExec>() {
                let rows = below.execute(0, Arc::clone(context))?.fuse();
                return Ok(Self { dealt: dealt.clone(), rows: Mutex::new(rows) });
            }
            plan = below;
        }
    }

    /// The next deal: its place in the queue, and its number or the error that comes there.
    pub(super) async fn take(&self, queue: &Queue) -> Option<(usize, Result<usize>)> {
        // Those who wait for it take what comes after.
        let mut rows = self.rows.lock().await;
        let place = queue.take().await?;
        let (mut batches, mut gathered) = (Vec::new(), 0);
        while gathered < DEAL
            && let Some(batch) = rows.next().await
        {
            match batch {
                Ok(batch) => {
                    gathered += batch.num_rows();
                    batches.push(batch);
                }
                // Rows before it go with it: nothing comes of a query that fails.
                Err(error) => return Some((place, Err(error))),
            }
        }
        if batches.is_empty() {
            queue.none();
            return None;
        }
        drop(rows);
        let deal = self.dealt.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.dealt.deals).insert(deal, batches);
        Some((place, Ok(deal)))
    }
}
