//! A statement on its way: work on the runtime's threads, rows in the caller's.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::channel::{mpsc, oneshot};
use futures::{FutureExt, SinkExt, Stream, StreamExt};
use plinth_datafusion::{PlinthConfig, within_digits};
use plinth_profile::{Profile, Profiler, ProfilerOptions, Stage};

use crate::error::{Result, SqlError};
use crate::statements::Planned;
use crate::{Params, Session};

/// Batches that wait for their reader.
const AHEAD: usize = 2;

impl Session {
    /// What records a statement: if `plinth.profile` is set, or if the statement asks how it ran.
    pub fn profiler(&self, statement: &Statement) -> Profiler {
        let analyzes = matches!(statement, Statement::Explain(explain) if explain.options.analyze);
        let state = self.context.state_ref();
        let is_set =
            || state.read().config_options().extensions.get::<PlinthConfig>().is_some_and(|plinth| plinth.profile);
        // What sets a variable is nothing to look at afterwards.
        let sets =
            matches!(statement, Statement::Statement(statement) if matches!(**statement, ast::Statement::Set(_)));
        if analyzes || (is_set() && !sets) {
            let title = statement.to_string();
            Profiler::start(ProfilerOptions { title, threads: self.threads, ..ProfilerOptions::default() })
        } else {
            Profiler::off()
        }
    }

    /// What a statement's profiler recorded, which `plinth_profile()` shows from now on.
    pub fn profiled(&self, profiler: &Profiler) -> Option<Profile> {
        self.profiles.keep(profiler, self.objects.traffic())
    }

    /// Starts a statement on the runtime's threads and hands its rows over. The thread that waits for them does none of the work,
    /// and so hears the user at any moment; dropping the stream ends the work. Rows that are found by a key are there at once.
    ///
    /// # Errors
    /// If the statement is refused, or fails before its rows come.
    pub async fn start(
        self: &Arc<Self>,
        statement: Statement,
        params: &Params,
        profiler: &Profiler,
    ) -> Result<SendableRecordBatchStream> {
        self.profiles.begin(self.objects.traffic());
        if !profiler.is_recording()
            && let Some(rows) = self.row_at_once(&statement, params).await
        {
            return Ok(checked(rows));
        }
        let (session, params, planner) = (Arc::clone(self), params.clone(), profiler.clone());
        // Planning is not handing over rows, though it happens on the way.
        profiler.part_of(Stage::Plan.into(), None);
        let begun = async move { planner.around(Stage::Plan, session.execute_with(statement, &params)).await };
        hand_over(begun, profiler.clone()).await
    }

    /// Plans a statement on the runtime's threads. A query waits for [`Query::start`], or is never run; any other statement is over
    /// when this returns, but for the rows that it answers.
    ///
    /// # Errors
    /// If the statement is refused, or is no query and fails.
    pub async fn plan(self: &Arc<Self>, statement: Statement, params: &Params) -> Result<Query> {
        if let Some(rows) = self.row_at_once(&statement, params).await {
            return Ok(Query(Planned::Found(rows)));
        }
        let (session, params) = (Arc::clone(self), params.clone());
        let planned = SpawnedTask::spawn(async move { session.planned(statement, &params).await }).await;
        Ok(Query(planned.map_err(|_| SqlError::new(PANICKED))??))
    }
}

/// A statement that [`Session::plan`] has planned.
pub struct Query(Planned);

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("waits", &self.waits()).field("schema", &self.schema()).finish()
    }
}

impl Query {
    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        match &self.0 {
            Planned::Query(plan) => plan.schema(),
            Planned::Found(rows) | Planned::Done(rows) => rows.schema(),
        }
    }

    /// Whether it is a query, which has changed nothing and of which no rows were handed over.
    pub fn waits(&self) -> bool {
        !matches!(self.0, Planned::Done(_))
    }

    /// Starts it as [`Session::start`] does.
    ///
    /// # Errors
    /// If it fails before its rows come.
    pub async fn start(self) -> Result<SendableRecordBatchStream> {
        self.start_with(&Profiler::off()).await
    }

    /// As [`Query::start`], with what records where the time goes.
    ///
    /// # Errors
    /// As [`Query::start`].
    pub async fn start_with(self, profiler: &Profiler) -> Result<SendableRecordBatchStream> {
        match self.0 {
            Planned::Found(rows) if !profiler.is_recording() => Ok(checked(rows)),
            planned => hand_over(async move { Ok(planned.rows()?) }, profiler.clone()).await,
        }
    }
}

/// Rows as they are handed over.
fn checked(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = rows.schema();
    Box::pin(RecordBatchStreamAdapter::new(schema, rows.map(|batch| batch.and_then(within_digits))))
}

/// Lets the rows of what begins be made by a task of its own.
async fn hand_over(
    begun: impl Future<Output = Result<SendableRecordBatchStream>> + Send + 'static,
    profiler: Profiler,
) -> Result<SendableRecordBatchStream> {
    let (started, schema) = oneshot::channel();
    let (mut sender, batches) = mpsc::channel(AHEAD);
    let work = async move {
        let mut stream = match begun.await {
            Ok(stream) => stream,
            Err(error) => return drop(started.send(Err(error))),
        };
        if started.send(Ok(stream.schema())).is_err() {
            return;
        }
        while let Some(batch) = stream.next().await {
            if sender.send(batch.and_then(within_digits)).await.is_err() {
                return;
            }
        }
    };
    let task = SpawnedTask::spawn(async move { profiler.around(Stage::Output, work).await });
    match schema.await {
        Ok(schema) => Ok(Box::pin(Rows { schema: schema?, batches, task: Some(task) })),
        // The panic hook has told what happened.
        Err(_) => Err(SqlError::new(PANICKED)),
    }
}

const PANICKED: &str = "the statement was given up: see above";

struct Rows {
    schema: SchemaRef,
    batches: mpsc::Receiver<EngineResult<RecordBatch>>,
    /// Asked when the batches end, whether it came to its end too.
    task: Option<SpawnedTask<()>>,
}

impl Stream for Rows {
    type Item = EngineResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(batch) = std::task::ready!(self.batches.poll_next_unpin(context)) {
            return Poll::Ready(Some(batch));
        }
        let Some(task) = &mut self.task else { return Poll::Ready(None) };
        let ended = std::task::ready!(task.poll_unpin(context));
        self.task = None;
        Poll::Ready(ended.is_err().then(|| Err(DataFusionError::Execution(PANICKED.to_owned()))))
    }
}

impl RecordBatchStream for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
