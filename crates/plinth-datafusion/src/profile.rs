//! Where the time of the engine's operators goes.
//!
//! While the thread that plans works for a [`Profiler`], the rule [`ProfileOperators`] puts a wrapper around each operator that opens
//! a scope around each poll of its streams. To all others the wrapper is the operator. Tasks that an operator spawns are its own
//! ([`profile_tasks`]); where the tree shows an operator does not depend on which thread ran it.

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_array::{Array, RecordBatch};
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common_runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::execution_plan::replace_children_if_necessary;
use datafusion_physical_plan::metrics::{Gauge, Metric, MetricValue, MetricsSet, Time};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{ExecutionPlan, displayable};
use datafusion_session::PhysicalOptimizerRule;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use plinth_profile::{Anchor, Part, Place, Profile, Profiler, Row, Scope, Stage};
use tokio::task::JoinHandle;

use crate::around::{Around, AroundExec};

/// Has operators recorded by the profiler that the planning thread works for; without one it changes nothing. It comes after all other
/// rules.
#[derive(Debug, Default)]
pub struct ProfileOperators;

impl PhysicalOptimizerRule for ProfileOperators {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let profiler = Profiler::current();
        if profiler.is_recording() { wrap(plan, &profiler, None) } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "profile_operators"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Wraps an operator and all below it.
fn wrap(plan: Arc<dyn ExecutionPlan>, profiler: &Profiler, above: Option<Anchor>) -> Result<Arc<dyn ExecutionPlan>> {
    let label = displayable(plan.as_ref()).one_line().to_string();
    let anchor = profiler.another(Stage::Operator, label.trim_end());
    profiler.part_of(anchor, above);
    let children = plan.children().into_iter().map(|child| wrap(Arc::clone(child), profiler, Some(anchor)));
    let children = children.collect::<Result<Vec<_>>>()?;
    let operator = replace_children_if_necessary(plan, children)?;
    Ok(AroundExec::over(operator, Profiled { profiler: profiler.clone(), anchor }))
}

/// What records an operator's work, if it is recorded: for those who read its rows by another way than `execute`.
pub(crate) fn profiled(operator: &Arc<dyn ExecutionPlan>) -> Option<Profiled> {
    let operator: &dyn Any = operator.as_ref();
    operator.downcast_ref::<AroundExec<Profiled>>().map(|around| around.what().clone())
}

/// What records an operator's work.
#[derive(Clone)]
pub(crate) struct Profiled {
    profiler: Profiler,
    anchor: Anchor,
}

impl Profiled {
    pub(crate) fn scope(&self) -> Scope {
        self.profiler.scope(self.anchor)
    }
}

impl Around for Profiled {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let _scope = self.scope();
        let rows = operator.execute(partition, context)?;
        let schema = rows.schema();
        let mut rows = ProfiledRows { rows: Some(rows), profiled: self.clone() };
        let batches = stream::poll_fn(move |context| rows.next(context));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    /// The operator's own, and the time that threads spent in it and in the stages of its scan.
    fn metrics(&self, operator: &dyn ExecutionPlan) -> Option<MetricsSet> {
        let mut metrics = operator.metrics().unwrap_or_default();
        let profile = self.profiler.snapshot();
        for (name, spent) in times(&profile, self.anchor) {
            let time = Time::new();
            time.add_duration(spent);
            metrics.push(Arc::new(Metric::new(MetricValue::Time { name: name.into(), time }, None)));
        }
        let held: u64 = anchors(&profile, self.anchor).filter_map(|anchor| profile.memory.get(&anchor)).sum();
        if held > 0 {
            let gauge = Gauge::new();
            gauge.set(usize::try_from(held).unwrap_or(usize::MAX));
            metrics.push(Arc::new(Metric::new(MetricValue::Gauge { name: "profile_memory".into(), gauge }, None)));
        }
        Some(metrics)
    }
}

/// The rows of an operator, and of stages within it that are no operators.
fn rows_of(profile: &Profile, anchor: Anchor) -> impl Iterator<Item = &Row> {
    profile.rows.iter().filter(move |row| {
        let mut path = std::iter::once(*row).chain(profile.above(row));
        path.find(|row| row.anchor.stage == Stage::Operator).is_some_and(|operator| operator.anchor == anchor)
    })
}

/// What memory of an operator may be counted for, each once.
fn anchors(profile: &Profile, anchor: Anchor) -> impl Iterator<Item = Anchor> {
    let within = rows_of(profile, anchor).map(|row| row.anchor).filter(|part| part.stage != Stage::Operator);
    // A stage such as a read may be that of several operators: of these the first has it.
    let first = |part: &Anchor| {
        let row = profile.rows.iter().find(|row| row.anchor == *part);
        row.and_then(|row| profile.above(row).find(|row| row.anchor.stage == Stage::Operator))
            .is_some_and(|operator| operator.anchor == anchor)
    };
    std::iter::once(anchor).chain(within.filter(first).collect::<HashSet<_>>())
}

/// The time of an operator, and of stages within it that are no operators.
fn times(profile: &Profile, anchor: Anchor) -> BTreeMap<String, Duration> {
    let mut times = BTreeMap::new();
    for row in rows_of(profile, anchor) {
        let name = match (row.anchor.stage, row.anchor.part) {
            (Stage::Operator, _) => "profile_self".to_owned(),
            (stage, Part::Name(part)) => format!("profile_{stage}_{part}").replace([' ', '-'], "_"),
            (stage, _) => format!("profile_{stage}").replace(' ', "_"),
        };
        *times.entry(name).or_default() += row.time;
    }
    times
}

/// A partition's rows.
struct ProfiledRows {
    /// None after its end: what it held is let go of in its scope.
    rows: Option<SendableRecordBatchStream>,
    profiled: Profiled,
}

impl ProfiledRows {
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let scope = self.profiled.scope();
        let Some(rows) = &mut self.rows else { return Poll::Ready(None) };
        let next = rows.poll_next_unpin(context);
        match &next {
            Poll::Ready(Some(Ok(batch))) if scope.is_recording() => {
                scope.rows(batch.num_rows() as u64);
                scope.bytes(bytes_of(batch));
            }
            Poll::Ready(None) => self.rows = None,
            _ => {}
        }
        next
    }
}

impl Drop for ProfiledRows {
    fn drop(&mut self) {
        if let Some(rows) = self.rows.take() {
            let _scope = self.profiled.scope();
            drop(rows);
        }
    }
}

/// Bytes of a batch's rows.
fn bytes_of(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter();
    columns.map(|column| column.to_data().get_slice_memory_size().unwrap_or(0) as u64).sum()
}

/// Has the tasks that operators spawn work for the profiler of the task that spawned them, in all of this process: a program says so once, at
/// its start. False if the engine has a tracer already.
pub fn profile_tasks() -> bool {
    set_join_set_tracer(&TaskTracer).is_ok()
}

struct TaskTracer;

impl JoinSetTracer for TaskTracer {
    fn trace_future(&self, future: BoxFuture<'static, Box<dyn Any + Send>>) -> BoxFuture<'static, Box<dyn Any + Send>> {
        let place = Place::current();
        if place.anchor().is_none() {
            return future;
        }
        let mut future = future;
        let polled = move |context: &mut Context<'_>| {
            let _scope = place.scope();
            future.poll_unpin(context)
        };
        std::future::poll_fn(polled).boxed()
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        let place = Place::current();
        Box::new(move || {
            let _scope = place.scope();
            work()
        })
    }
}

/// Has a thread that may block do something in the stead of its caller.
pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let place = Place::current();
    tokio::task::spawn_blocking(move || {
        let _scope = place.scope();
        work()
    })
}
