//! Queries whose work is spread over other processes.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use plinth_profile::{Anchor, Profiler, Stage};

use crate::steps::Step;

/// What spreads the queries of a session ([`SessionOptions::spread`](crate::SessionOptions::spread)).
pub trait Spread: Debug + Send + Sync {
    /// Plans a query that was written for `state`: analysed by [`crate::optimized`], then to operators.
    ///
    /// # Errors
    /// If it can't be planned anywhere, or the processes that are to do the work are not there.
    fn plan<'a>(&'a self, state: &'a SessionState, query: &'a LogicalPlan) -> BoxFuture<'a, Result<Spreading>>;

    /// The operators of a plan that [`Spread::plan`] has made, in all processes; with what each did, if it ran.
    ///
    /// # Errors
    /// If that is not known.
    fn explain<'a>(&'a self, plan: &'a Arc<dyn ExecutionPlan>, ran: bool) -> BoxFuture<'a, Result<Step>>;
}

/// What becomes of a query.
#[derive(Debug)]
pub enum Spreading {
    /// A plan that runs in several processes, and what it runs with.
    Over(Arc<dyn ExecutionPlan>, Arc<TaskContext>),
    /// It runs in this process alone; why.
    Here(String),
}

/// Among the extensions of a session's configuration.
#[derive(Debug)]
pub(crate) struct Spreads(pub(crate) Arc<dyn Spread>);

/// The rows of a plan, behind whose last a profiler is told what was done elsewhere: operators, their rows, and in words what they took.
pub(crate) fn recorded(
    rows: SendableRecordBatchStream,
    plan: Arc<dyn ExecutionPlan>,
    spread: Arc<dyn Spread>,
    profiler: Profiler,
) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let told = stream::once(async move {
        // A query whose rows are all there is over, whatever is known of it.
        if let Ok(step) = spread.explain(&plan, true).await {
            record(&profiler, &step, None);
        }
    });
    let told = told.filter_map(|()| std::future::ready(None::<Result<RecordBatch>>));
    Box::pin(RecordBatchStreamAdapter::new(schema, rows.chain(told)))
}

fn record(profiler: &Profiler, step: &Step, above: Option<Anchor>) {
    let done = step.done.unwrap_or_default();
    let time = done.time.map(|time| format!(" ({} of all threads there)", plinth_core::units::duration(time)));
    let label = format!("{}: {}{}", step.name, step.details, time.unwrap_or_default());
    let anchor = profiler.another(Stage::Operator, &label);
    profiler.part_of(anchor, above);
    profiler.scope(anchor).rows(done.rows.unwrap_or(0));
    step.inputs.iter().for_each(|input| record(profiler, input, Some(anchor)));
}
