//! A part of a plan that occurs more than once, computed once.
//!
//! Each occurrence is a [`SharedExec`] over a plan of its own, all of which give the same rows. The first that is asked for rows of a run computes
//! them all; the others have them from memory. Where memory is refused before any row has left, each computes its own.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use arrow_array::RecordBatch;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_common_runtime::JoinSet;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, Statistics,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use plinth_core::sync::lock;
use plinth_io::MemoryBudget;
use tokio::sync::OnceCell;

use crate::error::from_join;

/// Of the memory, the share that the rows of all parts may take: they can't give way to operators that need it.
const SHARE: u64 = 32;

/// The occurrences of one part, and their runs.
#[derive(Debug)]
pub struct Occurrences {
    /// Occurrences there are.
    count: usize,
    /// Bytes that rows may take.
    limit: u64,
    /// One of each run of the plan, by its context.
    runs: Mutex<Vec<(Weak<TaskContext>, Arc<Run>)>>,
}

/// What one run of the plan shares.
#[derive(Default)]
struct Run {
    outcome: OnceCell<Outcome>,
    readers: Mutex<Readers>,
}

/// The streams that read a run's rows.
#[derive(Debug, Default)]
struct Readers {
    open: usize,
    ended: usize,
    /// Whether one was given up before its end: others may never be asked for.
    given_up: bool,
}

enum Outcome {
    /// The rows of each partition, and what they take.
    Rows { parts: Vec<Vec<RecordBatch>>, _memory: Vec<MemoryReservation> },
    /// There is no memory for them: the occurrence that found out begins anew.
    Refused { tried: Arc<dyn ExecutionPlan>, anew: Arc<dyn ExecutionPlan> },
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("readers", &self.readers).finish_non_exhaustive()
    }
}

impl Occurrences {
    /// So many occurrences of a part, one of so many parts.
    pub fn new(count: usize, parts: usize, budget: &MemoryBudget) -> Self {
        Self { count, limit: budget.limit() / SHARE / parts.max(1) as u64, runs: Mutex::default() }
    }

    /// The run of a context.
    fn run(&self, context: &Arc<TaskContext>) -> Arc<Run> {
        let mut runs = lock(&self.runs);
        runs.retain(|(of, _)| of.strong_count() > 0);
        if let Some((_, run)) = runs.iter().find(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(context))) {
            return Arc::clone(run);
        }
        let run = Arc::new(Run::default());
        runs.push((Arc::downgrade(context), Arc::clone(&run)));
        run
    }
}

/// A stream that reads a run's rows. The last of all lets go of these.
struct Reader {
    occurrences: Arc<Occurrences>,
    run: Arc<Run>,
    /// Streams of an occurrence.
    partitions: usize,
    at_end: bool,
}

impl Reader {
    fn new(occurrences: &Arc<Occurrences>, partitions: usize, context: &Arc<TaskContext>) -> Self {
        let run = occurrences.run(context);
        lock(&run.readers).open += 1;
        Self { occurrences: Arc::clone(occurrences), run, partitions, at_end: false }
    }

    /// All rows have been read.
    fn end(&mut self) {
        self.at_end = true;
    }

    /// The rows, computed by the first to ask.
    async fn outcome(&self, input: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Result<&Outcome> {
        self.run.outcome.get_or_try_init(|| collected(input, context, self.occurrences.limit)).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = lock(&self.run.readers);
        readers.open -= 1;
        readers.ended += usize::from(self.at_end);
        readers.given_up |= !self.at_end;
        let all = readers.ended >= self.occurrences.count * self.partitions;
        if readers.open == 0 && (all || readers.given_up) {
            lock(&self.occurrences.runs).retain(|(_, run)| !Arc::ptr_eq(run, &self.run));
        }
    }
}

/// All rows of a plan.
async fn collected(input: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>, limit: u64) -> Result<Outcome> {
    let partitions = input.output_partitioning().partition_count();
    let share = limit / partitions.max(1) as u64;
    let mut tasks = JoinSet::new();
    for partition in 0..partitions {
        let mut rows = input.execute(partition, Arc::clone(context))?;
        let memory = MemoryConsumer::new("rows of a shared part").register(context.memory_pool());
        tasks.spawn(async move {
            let mut kept = Vec::new();
            while let Some(batch) = rows.try_next().await? {
                let bytes = batch.get_array_memory_size();
                if memory.size() as u64 + bytes as u64 > share || memory.try_grow(bytes).is_err() {
                    return Ok::<_, DataFusionError>(None);
                }
                kept.push(batch);
            }
            Ok(Some((partition, kept, memory)))
        });
    }
    let (mut parts, mut memory) = (vec![Vec::new(); partitions], Vec::new());
    while let Some(part) = tasks.join_next().await {
        let part = match part.map_err(from_join)? {
            // What is kept may be what operators below lack.
            Err(error) if matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) => None,
            part => part?,
        };
        let Some((partition, rows, reserved)) = part else {
            let (tried, anew) = (Arc::clone(input), reset_plan_states(Arc::clone(input))?);
            return Ok(Outcome::Refused { tried, anew });
        };
        if let Some(part) = parts.get_mut(partition) {
            *part = rows;
        }
        memory.push(reserved);
    }
    Ok(Outcome::Rows { parts, _memory: memory })
}

/// An occurrence of a part.
#[derive(Debug)]
pub struct SharedExec {
    input: Arc<dyn ExecutionPlan>,
    occurrences: Arc<Occurrences>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SharedExec {
    /// An occurrence that is planned so.
    pub fn new(input: Arc<dyn ExecutionPlan>, occurrences: Arc<Occurrences>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Self { input, occurrences, properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => write!(f, "occurrences={}", self.occurrences.count),
            _ => write!(f, "SharedExec: occurrences={}", self.occurrences.count),
        }
    }
}

impl ExecutionPlan for SharedExec {
    fn name(&self) -> &'static str {
        "SharedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => {
                let metrics = self.metrics.clone();
                Ok(Arc::new(Self { metrics, ..Self::new(input, Arc::clone(&self.occurrences)) }))
            }
            Err(children) => internal_err!("a shared part has one input, not {}", children.len()),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.output_partitioning().partition_count();
        if partition >= partitions {
            return internal_err!("a shared part has {partitions} partitions, none of number {partition}");
        }
        let mut reader = Reader::new(&self.occurrences, partitions, &context);
        let (input, metrics) = (Arc::clone(&self.input), BaselineMetrics::new(&self.metrics, partition));
        let batches = stream::once(async move {
            let rows = match reader.outcome(&input, &context).await? {
                // However many partitions the occurrence had that computed them.
                Outcome::Rows { parts, .. } => {
                    let own: Vec<RecordBatch> =
                        parts.iter().skip(partition).step_by(partitions).flatten().cloned().collect();
                    stream::iter(own.into_iter().map(Ok)).boxed()
                }
                Outcome::Refused { tried, anew } => {
                    let own = if Arc::ptr_eq(tried, &input) { anew } else { &input };
                    own.execute(partition, context)?.boxed()
                }
            };
            let rows = rows.inspect_ok(move |batch: &RecordBatch| {
                metrics.record_output(batch.num_rows());
            });
            let end = stream::poll_fn(move |_| {
                reader.end();
                std::task::Poll::Ready(None)
            });
            Ok::<_, DataFusionError>(rows.chain(end))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches.try_flatten())))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        match inputs {
            [of_input] => Ok(Arc::clone(of_input)),
            _ => internal_err!("a shared part has one input, not {}", inputs.len()),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
