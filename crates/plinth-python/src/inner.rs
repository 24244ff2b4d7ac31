//! What a connection and its results share: a session, the threads that it works on, and what is open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::catalog::{MemorySchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use plinth_core::sync::lock;
use plinth_datafusion::StoreTable;
use plinth_sql::{OpenTables, Params, Query, Session, SessionOptions, SqlError, Statement};
use tokio::runtime::{Handle, Runtime};

use crate::error::{Failure, Result};
use crate::provider::Provider;
use crate::variables::{Registered, SCHEMA};
use crate::wait::{Stop, wait, without_lock};

/// A session that is open.
#[derive(Debug)]
pub(crate) struct Inner {
    session: Mutex<Option<Arc<Session>>>,
    runtime: Mutex<Option<Runtime>>,
    tables: Mutex<Option<Arc<OpenTables>>>,
    handle: Handle,
    data: Arc<MemorySchemaProvider>,
    /// Statements start one after the other; the rows of queries come side by side.
    starting: futures::lock::Mutex<()>,
    sources: Mutex<Vec<Weak<Source>>>,
    running: Mutex<Vec<Weak<Running>>>,
    /// Asked by [`Inner::interrupt`] of what is being started.
    started: Mutex<Vec<Weak<Stop>>>,
    process: u32,
}

impl Inner {
    pub(crate) fn open(options: SessionOptions) -> Result<Arc<Self>> {
        let tables = options.db.as_deref().map(plinth_adbc::tables_of);
        let options = match &tables {
            Some(tables) => SessionOptions { tables: OpenTables::clone(tables), ..options },
            None => options,
        };
        let session = Session::new(&options)?;
        let runtime = plinth_sql::start_runtime(options.threads)?;
        let data = Arc::new(MemorySchemaProvider::new());
        let catalog = session.context().catalog("datafusion");
        let catalog = catalog.ok_or_else(|| Failure::Interface("the session has no catalog".to_owned()))?;
        catalog.register_schema(SCHEMA, Arc::clone(&data) as _).map_err(SqlError::from)?;
        Ok(Arc::new(Self {
            session: Mutex::new(Some(Arc::new(session))),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            tables: Mutex::new(tables),
            data,
            starting: futures::lock::Mutex::default(),
            sources: Mutex::default(),
            running: Mutex::default(),
            started: Mutex::default(),
            process: std::process::id(),
        }))
    }

    /// The session, while it is open.
    pub(crate) fn session(&self) -> Result<Arc<Session>> {
        if self.process != std::process::id() {
            let what =
                "the process was forked, and the connection's threads were not: connect again in the new process";
            return Err(Failure::Interface(what.to_owned()));
        }
        lock(&self.session).clone().ok_or_else(|| Failure::Interface("the connection is closed".to_owned()))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.session().is_ok()
    }

    /// Asks all that runs to stop.
    pub(crate) fn interrupt(&self) {
        lock(&self.started).iter().filter_map(Weak::upgrade).for_each(|stop| stop.ask());
        lock(&self.running).iter().filter_map(Weak::upgrade).for_each(|running| running.cancel());
    }

    /// Ends all that runs, and lets go of files and threads.
    pub(crate) fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        let session = lock(&self.session).take();
        self.interrupt();
        let running: Vec<_> = lock(&self.running).drain(..).filter_map(|running| running.upgrade()).collect();
        running.into_iter().for_each(|running| *lock(&running.feed) = Feed::Closed);
        let sources: Vec<_> = lock(&self.sources).drain(..).filter_map(|source| source.upgrade()).collect();
        for source in sources {
            lock(&source.planned).take();
        }
        drop(session);
        if let Some(runtime) = lock(&self.runtime).take() {
            runtime.shutdown_timeout(std::time::Duration::from_secs(2));
        }
        // Once what this session had of them is gone.
        lock(&self.tables).take();
    }

    /// The columns of the key of a table that can be written to; none if it has no key, or is no such table.
    pub(crate) fn key(&self, name: &str) -> Result<Vec<String>> {
        let session = self.session()?;
        let table = async {
            let table = session.context().table_provider(TableReference::bare(name)).await;
            Ok(table.map_err(SqlError::from)?)
        };
        let table = self.run(&Stop::default(), table)?;
        let any: &dyn std::any::Any = table.as_ref();
        Ok(any.downcast_ref::<StoreTable>().map(|table| table.key().to_vec()).unwrap_or_default())
    }

    /// A table or a path as another engine sees it, and the threads that its rows are made by.
    pub(crate) fn provider(&self, what: &str) -> Result<(Provider, Handle)> {
        let session = self.session()?;
        let provider = self.run(&Stop::default(), async { Ok(Provider::new(session, what).await?) })?;
        Ok((provider, self.handle.clone()))
    }

    /// Works on a statement until the end or a request to stop. The caller has let go of the interpreter.
    fn run<T>(&self, stop: &Stop, work: impl Future<Output = Result<T>>) -> Result<T> {
        let _within = self.handle.enter();
        wait(work, stop)?
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (session, runtime) = (lock(&self.session).take(), lock(&self.runtime).take());
        let tables = lock(&self.tables).take();
        if self.process != std::process::id() {
            // Their threads are in another process.
            std::mem::forget((session, runtime, tables));
            return;
        }
        without_lock(move || drop((session, tables)));
        if let Some(runtime) = runtime {
            // A thread may wait for the interpreter, which may wait for this one.
            runtime.shutdown_background();
        }
    }
}

fn remember<T>(all: &Mutex<Vec<Weak<T>>>, one: &Arc<T>) {
    let mut all = lock(all);
    all.retain(|other| other.strong_count() > 0);
    all.push(Arc::downgrade(one));
}

/// A statement with its values and tables: what its rows are made of, as often as they are asked for.
pub(crate) struct Source {
    inner: Arc<Inner>,
    statement: Statement,
    params: Params,
    tables: Vec<(String, Arc<dyn TableProvider>)>,
    schema: SchemaRef,
    /// The plan of the first time.
    planned: Mutex<Option<(Query, Arc<AtomicBool>)>>,
    /// What another statement than a query has answered.
    answer: Option<Vec<RecordBatch>>,
    /// Why the rows of the last stream ended too early.
    failed: Mutex<Option<Failure>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// A query that was planned, or what another statement has answered.
enum Begun {
    Query(Query, Arc<AtomicBool>),
    Done(SchemaRef, Vec<RecordBatch>),
}

impl Source {
    /// Plans a statement, and runs one that is no query.
    pub(crate) fn new(
        inner: &Arc<Inner>,
        statement: Statement,
        params: Params,
        tables: Vec<(String, Arc<dyn TableProvider>)>,
    ) -> Result<Arc<Self>> {
        let (schema, planned, answer) = match begin(inner, &statement, &params, &tables)? {
            Begun::Query(query, flag) => (query.schema(), Some((query, flag)), None),
            Begun::Done(schema, answer) => (schema, None, Some(answer)),
        };
        let (inner, planned, failed) = (Arc::clone(inner), Mutex::new(planned), Mutex::default());
        let source = Arc::new(Self { inner, statement, params, tables, schema, planned, answer, failed });
        remember(&source.inner.sources, &source);
        Ok(source)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What the statement answered, if it was no query.
    pub(crate) fn answer(&self) -> Option<&[RecordBatch]> {
        self.answer.as_deref()
    }

    /// The rows from their beginning.
    pub(crate) fn open(&self) -> Result<Arc<Running>> {
        self.inner.session()?;
        let running = |feed, flag| {
            let running = Arc::new(Running {
                inner: Arc::clone(&self.inner),
                feed: Mutex::new(feed),
                stop: Stop::default(),
                flag,
            });
            remember(&self.inner.running, &running);
            running
        };
        if let Some(batches) = &self.answer {
            return Ok(running(Feed::Batches(batches.clone().into_iter()), Arc::default()));
        }
        let planned = lock(&self.planned).take();
        let (query, flag) = match planned {
            Some(planned) => planned,
            None => match begin(&self.inner, &self.statement, &self.params, &self.tables)? {
                Begun::Query(query, flag) => (query, flag),
                Begun::Done(..) => return Err(Failure::Interface("a query has become another statement".to_owned())),
            },
        };
        if query.schema().fields() != self.schema.fields() {
            let what = "the tables have other columns than when the query was planned: ask again";
            return Err(Failure::Interface(what.to_owned()));
        }
        let stop = Stop::default();
        let stream = self.inner.run(&stop, async { Ok(query.start().await?) })?;
        Ok(running(Feed::Stream(stream), flag))
    }

    /// Keeps an error for [`Source::take_failure`]: consumers of C hear its text alone.
    pub(crate) fn fail(&self, failure: &Failure) {
        *lock(&self.failed) = Some(failure.again());
    }

    pub(crate) fn take_failure(&self) -> Option<Failure> {
        lock(&self.failed).take()
    }
}

/// Plans a statement; one that is no query is over then, and gives its columns and its answer.
fn begin(
    inner: &Arc<Inner>,
    statement: &Statement,
    params: &Params,
    tables: &[(String, Arc<dyn TableProvider>)],
) -> Result<Begun> {
    let session = inner.session()?;
    let stop = Arc::new(Stop::default());
    remember(&inner.started, &stop);
    let mut statement = statement.clone();
    let asked = Mutex::new(None);
    let work = async {
        let _starting = inner.starting.lock().await;
        let _running = session.interrupt().statement();
        let flag = session.interrupt().flag();
        *lock(&asked) = Some(Arc::clone(&flag));
        let _known = Registered::new(&inner.data, &mut statement, tables).map_err(SqlError::from)?;
        let query = session.plan(statement, params).await?;
        if query.waits() {
            return Ok(Begun::Query(query, flag));
        }
        // Whatever it writes, it writes while these are asked for.
        let schema = query.schema();
        let mut rows = query.start().await?;
        let mut answer = Vec::new();
        while let Some(batch) = rows.next().await {
            answer.push(batch.map_err(Failure::of_rows)?);
        }
        Ok(Begun::Done(schema, answer))
    };
    let result = inner.run(&stop, work);
    if result.is_err()
        && let Some(flag) = lock(&asked).take()
    {
        flag.store(true, Ordering::Relaxed);
    }
    result
}

/// Where rows come from.
enum Feed {
    Stream(SendableRecordBatchStream),
    Batches(std::vec::IntoIter<RecordBatch>),
    Ended,
    Closed,
}

/// Rows on their way.
pub(crate) struct Running {
    inner: Arc<Inner>,
    feed: Mutex<Feed>,
    stop: Stop,
    /// What parts of a plan listen to that come back to their scheduler late.
    flag: Arc<AtomicBool>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Running {
    /// The next rows. The caller has let go of the interpreter.
    pub(crate) fn next(&self) -> Result<Option<RecordBatch>> {
        let mut feed = lock(&self.feed);
        let next = match &mut *feed {
            Feed::Batches(batches) => Ok(batches.next()),
            Feed::Ended => return Ok(None),
            Feed::Closed => return Err(Failure::Interface("the connection is closed".to_owned())),
            Feed::Stream(stream) => match self.inner.session() {
                Ok(_) => {
                    self.inner.run(&self.stop, async { stream.next().await.transpose().map_err(Failure::of_rows) })
                }
                Err(failure) => Err(failure),
            },
        };
        if !matches!(next, Ok(Some(_))) {
            *feed = Feed::Ended;
        }
        if next.is_err() {
            self.flag.store(true, Ordering::Relaxed);
        }
        next
    }

    /// Asks it to stop.
    pub(crate) fn cancel(&self) {
        self.stop.ask();
        self.flag.store(true, Ordering::Relaxed);
    }
}
