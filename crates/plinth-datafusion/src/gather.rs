//! Rows of several partitions as one, in the order in which files have them.
//!
//! The engine gathers partitions as their batches come, so that a file's rows are mixed anew in each run. Here a scan below nothing but
//! filters and projections has a partition for each row group: threads take these in order, and what they find waits in memory until all before
//! it has gone out. Where the engine deals the batches of one partition out to several, they are dealt out in order, some at a time.

mod dealt;
mod queue;

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, internal_err};
use datafusion_common_runtime::JoinSet;
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion_physical_plan::limit::LocalLimitExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::unnest::UnnestExec;
use datafusion_physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use datafusion_session::PhysicalOptimizerRule;
use futures::{StreamExt, stream};

use self::dealt::{Dealt, Source};
use self::queue::Queue;
use crate::around::{Around, AroundExec};
use crate::error::from_join;
use crate::source::{PlinthSource, bytes_of};

/// Of files of other formats, bytes of a partition.
const PIECE: u64 = 4 << 20;
/// Partitions at most of a scan of these.
const PARTITIONS: usize = 8192;
/// Bytes that a thread may be ahead of the rows that go out.
const AHEAD: usize = 32 << 20;
/// Of the memory, what all may be ahead.
const SHARE: usize = 8;

/// Has rows of files come in the order of the files, where they come out of a plan or are gathered within it. It comes after all rules that
/// look for the scans of a plan or change how these are divided.
#[derive(Debug)]
pub struct RowsInOrder;

impl PhysicalOptimizerRule for RowsInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let threads = config.execution.target_partitions;
        let plan = gathers(plan, true, threads)?;
        if plan.output_partitioning().partition_count() < 2 {
            return Ok(plan);
        }
        // The engine gathers what is left of partitions as the plan starts.
        Ok(in_order(&plan, None, threads)?.unwrap_or(plan))
    }

    fn name(&self) -> &'static str {
        "rows_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A plan that keeps the order wherever it gathers what has one, and the order matters.
fn gathers(plan: Arc<dyn ExecutionPlan>, matters: bool, threads: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let matters = matters_below(&plan, matters);
    let children = plan.children().into_iter().map(|child| gathers(Arc::clone(child), matters, threads));
    let children = children.collect::<Result<Vec<_>>>()?;
    let plan = replace_children_if_necessary(plan, children)?;
    match plan.downcast_ref::<CoalescePartitionsExec>() {
        Some(gather) if matters => Ok(in_order(gather.input(), gather.fetch(), threads)?.unwrap_or(plan)),
        _ => Ok(plan),
    }
}

/// Whether the order of an operator's input is to be seen in its result, given that of the result is.
fn matters_below(plan: &Arc<dyn ExecutionPlan>, matters: bool) -> bool {
    let mixes = plan.is::<AggregateExec>()
        || plan.is::<SortExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<NestedLoopJoinExec>();
    let picks = plan.fetch().is_some() || plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>();
    !mixes && (matters || picks)
}

/// The rows of a plan, or the first of them, gathered in order; `None` if they have none.
fn in_order(
    input: &Arc<dyn ExecutionPlan>,
    fetch: Option<usize>,
    threads: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (input, dealt) = match divided(input, threads)? {
        Some(divided) => (divided, None),
        None => match dealt(input)? {
            Some((input, dealt)) => (input, Some(dealt)),
            None => return Ok(None),
        },
    };
    let gather = CoalescePartitionsExec::new(input).with_fetch(fetch);
    Ok(Some(AroundExec::over(Arc::new(gather), InOrder { threads, dealt })))
}

/// A plan of more than one partition whose rows lie one partition after the other, divided so that several threads work near each other;
/// `None` if its rows have no order.
fn divided(plan: &Arc<dyn ExecutionPlan>, threads: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.output_partitioning().partition_count() < 2 {
        return Ok(Some(Arc::clone(plan)));
    }
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else { return Ok(None) };
        return Ok(pieces(config, threads)?.map(|config| DataSourceExec::from_data_source(config) as _));
    }
    // Batches that were dealt out again: for a scan that has partitions of its own that is no use.
    if let Some(dealt) = plan.downcast_ref::<RepartitionExec>()
        && matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_))
    {
        let scan = dealt.input().is::<DataSourceExec>();
        return Ok(divided(dealt.input(), threads)?.filter(|below| scan && is_of_files(below)));
    }
    if !row_by_row(plan) && !plan.is::<UnionExec>() {
        return Ok(None);
    }
    let mut children = Vec::new();
    for child in plan.children() {
        let Some(child) = divided(child, threads)? else { return Ok(None) };
        children.push(child);
    }
    replace_children_if_necessary(Arc::clone(plan), children).map(Some)
}

/// Whether each row of an operator is made of one of its input, in the same order.
fn row_by_row(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || plan.is::<LocalLimitExec>() || plan.is::<UnnestExec>()
}

/// A plan over batches that the engine deals out of one partition, and where they are put instead.
fn dealt(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<(Arc<dyn ExecutionPlan>, Dealt)>> {
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        let deals = matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
        let of_one = repartition.input().output_partitioning().partition_count() == 1;
        let dealt = Dealt::default();
        return Ok((deals && of_one).then(|| (AroundExec::over(Arc::clone(plan), dealt.clone()), dealt)));
    }
    match plan.children().as_slice() {
        [child] if row_by_row(plan) => {
            let Some((child, dealt)) = dealt(child)? else { return Ok(None) };
            Ok(Some((replace_children_if_necessary(Arc::clone(plan), vec![child])?, dealt)))
        }
        _ => Ok(None),
    }
}

fn is_of_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<DataSourceExec>().is_some_and(|scan| scan.data_source().is::<FileScanConfig>())
}

/// A scan in many partitions, one after the other.
fn pieces(config: &FileScanConfig, threads: usize) -> Result<Option<FileScanConfig>> {
    // It says already how its rows lie.
    if config.output_partitioning.is_some() {
        return Ok(None);
    }
    let mut divided = config.clone();
    if let Some(source) = config.file_source.downcast_ref::<PlinthSource>() {
        divided.file_groups = source.piece_by_piece(&config.file_groups, threads);
    } else {
        let pieces = usize::try_from(bytes_of(config) / PIECE).unwrap_or(PARTITIONS).min(PARTITIONS).max(threads);
        if let Some(more) = config.file_source.repartitioned(pieces, 0, None, config)? {
            divided = more;
        }
    }
    divided.preserve_order = true;
    Ok(Some(divided))
}

/// Gathers partitions one after the other, while so many threads work on these and those behind them.
#[derive(Clone)]
struct InOrder {
    threads: usize,
    /// Where batches of one partition are dealt out, if they are.
    dealt: Option<Dealt>,
}

impl Around for InOrder {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(gather) = operator.downcast_ref::<CoalescePartitionsExec>() else {
            return internal_err!("{} gathers nothing", operator.name());
        };
        let (input, fetch) = (Arc::clone(gather.input()), gather.fetch());
        let count = input.output_partitioning().partition_count();
        if count == 1 && fetch.is_none() {
            return input.execute(partition, context);
        }
        let source = match &self.dealt {
            Some(dealt) => Some(Arc::new(Source::new(dealt, &input, &context)?)),
            None => None,
        };
        let share = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / SHARE,
            _ => usize::MAX,
        };
        let memory = MemoryConsumer::new("rows that wait for those before").register(context.memory_pool());
        let most = share.min(AHEAD.saturating_mul(self.threads));
        // Where few rows are wanted the first partition may have them all.
        let known = source.is_none().then_some(count);
        let queue = Arc::new(Queue::new(known, memory, most, fetch.is_some()));
        let mut workers = JoinSet::new();
        for _ in 0..self.threads.min(count) {
            let worker = Worker {
                queue: Arc::clone(&queue),
                source: source.clone(),
                input: Arc::clone(&input),
                context: Arc::clone(&context),
            };
            workers.spawn(worker.work());
        }
        let gathered = Gathered { queue, workers, left: fetch };
        let rows = stream::try_unfold(gathered, |mut gathered| async move {
            Ok(gathered.next().await?.map(|batch| (batch, gathered)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(operator.schema(), rows)))
    }

    fn remark(&self) -> Option<String> {
        Some("in order".to_owned())
    }
}

/// What takes partitions and puts their rows into the queue.
struct Worker {
    queue: Arc<Queue>,
    source: Option<Arc<Source>>,
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl Worker {
    /// Works until there are no more, or one has failed.
    async fn work(self) {
        while let Some((place, partition)) = self.take().await {
            let rows = partition.and_then(|partition| self.input.execute(partition, Arc::clone(&self.context)));
            let failed = match rows {
                Ok(rows) => self.pass(place, rows).await,
                Err(error) => {
                    self.queue.push(place, Err(error)).await;
                    true
                }
            };
            if failed {
                return;
            }
            self.queue.end(place);
        }
    }

    /// The next place in the queue, and the partition whose rows come there.
    async fn take(&self) -> Option<(usize, Result<usize>)> {
        match &self.source {
            None => self.queue.take().await.map(|partition| (partition, Ok(partition))),
            Some(source) => source.take(&self.queue).await,
        }
    }

    /// Puts rows into the queue; whether they end with an error.
    async fn pass(&self, place: usize, mut rows: SendableRecordBatchStream) -> bool {
        while let Some(batch) = rows.next().await {
            let failed = batch.is_err();
            self.queue.push(place, batch).await;
            if failed {
                return true;
            }
        }
        false
    }
}

/// What goes out.
struct Gathered {
    queue: Arc<Queue>,
    /// They end with it.
    workers: JoinSet<()>,
    /// Rows that are still wanted, if there is a limit.
    left: Option<usize>,
}

impl Gathered {
    async fn next(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let batch = loop {
            tokio::select! {
                biased;
                batch = self.queue.next() => break batch.transpose()?,
                Some(ended) = self.workers.join_next() => ended.map_err(from_join)?,
            }
        };
        let Some(mut batch) = batch else { return Ok(None) };
        if let Some(left) = &mut self.left {
            if batch.num_rows() > *left {
                batch = batch.slice(0, *left);
            }
            *left -= batch.num_rows();
        }
        Ok(Some(batch))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
