//! Statements on their way: waiting for what they do, and stopping them.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use plinth_core::sync::lock;
use plinth_sql::{Params, Query, Session, Statement, parse};
use tokio::runtime::Handle;

use crate::abi::status;
use crate::c_data::{CStream, Kept, export_with};
use crate::error::{Failure, Result, Told};
use crate::tables::changed;

/// How long a request to stop may go unheard.
const TICK: Duration = Duration::from_millis(50);

/// A request to stop one statement, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    asked: AtomicBool,
    /// What parts of a plan listen to that come back to their scheduler late.
    flag: OnceLock<Arc<AtomicBool>>,
}

impl Stop {
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
        if let Some(flag) = self.flag.get() {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The result of some work, unless it is asked to stop first.
pub(crate) fn wait<T>(handle: &Handle, stop: &Stop, work: impl Future<Output = Result<T>>) -> Result<T> {
    let _within = handle.enter();
    let mut work = pin!(work);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(result) = work.as_mut().poll(&mut context) {
            return result;
        }
        if stop.asked.load(Ordering::Relaxed) {
            return Err(Failure::cancelled());
        }
        std::thread::park_timeout(TICK);
    }
}

/// A session, and what lets its statements start one after the other.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) session: Arc<Session>,
    pub(crate) handle: Handle,
    starting: futures::lock::Mutex<()>,
}

/// A query that was planned, or what another statement has answered.
#[derive(Debug)]
pub(crate) enum Begun {
    Query(Query),
    Done(SchemaRef, Vec<RecordBatch>),
}

impl Begun {
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            Self::Query(query) => query.schema(),
            Self::Done(schema, _) => Arc::clone(schema),
        }
    }
}

impl Engine {
    pub(crate) fn new(session: Arc<Session>, handle: Handle) -> Self {
        Self { session, handle, starting: futures::lock::Mutex::default() }
    }

    /// Plans a statement; one that is no query is over then. `begin` opens a transaction before.
    pub(crate) fn begin(
        &self,
        statement: Statement,
        params: &Params,
        stop: &Stop,
        begin: impl FnOnce(&Session) -> bool,
    ) -> Result<Begun> {
        let session = &self.session;
        let result = wait(&self.handle, stop, async {
            let _starting = self.starting.lock().await;
            let _running = session.interrupt().statement();
            let _ = stop.flag.set(session.interrupt().flag());
            if begin(session) {
                for statement in parse("BEGIN")? {
                    done(session.plan(statement, &Params::default()).await?).await?;
                }
            }
            let query = session.plan(statement, params).await?;
            if query.waits() {
                return Ok(Begun::Query(query));
            }
            // Whatever it writes, it writes while these are asked for.
            let schema = query.schema();
            Ok(Begun::Done(schema, done(query).await?))
        });
        if result.is_err() {
            stop.ask();
        }
        result
    }

    /// Runs statements of this driver's own to their ends: the rows that the last has changed.
    pub(crate) fn run(&self, text: &str, stop: &Stop) -> Result<Option<u64>> {
        let mut rows = None;
        for statement in parse(text)? {
            match self.begin(statement, &Params::default(), stop, |_| false)? {
                Begun::Done(_, answer) => rows = changed(&answer),
                Begun::Query(_) => return Err(Failure::internal(format!("{text}: is a query"))),
            }
        }
        Ok(rows)
    }

    /// The rows of what was begun.
    pub(crate) fn rows(self: &Arc<Self>, begun: Begun, stop: &Arc<Stop>) -> Result<Running> {
        let feed = match begun {
            Begun::Query(query) => Feed::Stream(wait(&self.handle, stop, async { Ok(query.start().await?) })?),
            Begun::Done(_, batches) => Feed::Batches(batches.into_iter()),
        };
        Ok(Running { engine: Arc::clone(self), feed, stop: Arc::clone(stop) })
    }
}

/// All that a statement answers.
async fn done(query: Query) -> Result<Vec<RecordBatch>> {
    let (mut rows, mut answer) = (query.start().await?, Vec::new());
    while let Some(batch) = rows.next().await {
        answer.push(batch.map_err(Failure::of_rows)?);
    }
    Ok(answer)
}

/// Where rows come from.
enum Feed {
    Stream(SendableRecordBatchStream),
    Batches(std::vec::IntoIter<RecordBatch>),
    Ended,
}

/// Rows on their way.
pub(crate) struct Running {
    engine: Arc<Engine>,
    feed: Feed,
    stop: Arc<Stop>,
}

impl Running {
    /// The next rows.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = match &mut self.feed {
            Feed::Batches(batches) => Ok(batches.next()),
            Feed::Ended => return Ok(None),
            Feed::Stream(stream) => wait(&self.engine.handle, &self.stop, async {
                stream.next().await.transpose().map_err(Failure::of_rows)
            }),
        };
        if !matches!(next, Ok(Some(_))) {
            self.feed = Feed::Ended;
        }
        if next.is_err() {
            self.stop.ask();
        }
        next
    }
}

/// Gives rows batch by batch.
pub(crate) type Rows = Box<dyn FnMut() -> Result<Option<RecordBatch>> + Send>;

/// What a statement answers.
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) next: Rows,
    /// Rows that it has changed, if that is known.
    pub(crate) changed: Option<u64>,
}

impl Answer {
    /// Rows that are there already.
    pub(crate) fn of(schema: SchemaRef, batches: Vec<RecordBatch>, changed: Option<u64>) -> Self {
        let mut batches = batches.into_iter();
        Self { schema, next: Box::new(move || Ok(batches.next())), changed }
    }

    /// The answer as a stream of C's, which keeps its error.
    pub(crate) fn export(self) -> CStream {
        let (kept, mut next) = (Arc::new(LastError::default()), self.next);
        let failed = Arc::clone(&kept);
        let next = move || {
            next().map_err(|failure| {
                // The first is the one that ended the stream.
                let mut failed = lock(&failed.0);
                failed.get_or_insert_with(|| Box::new(Told::new(&failure)));
                failure.message
            })
        };
        let last = Arc::clone(&kept);
        let cancelled = move || lock(&last.0).as_ref().is_some_and(|told| told.look().1 == status::CANCELLED);
        let kept = Kept { value: Box::new(kept), cancelled: Box::new(cancelled) };
        export_with(self.schema, Box::new(next), Some(kept))
    }
}

/// Why a stream ended.
#[derive(Debug, Default)]
pub(crate) struct LastError(pub(crate) Mutex<Option<Box<Told>>>);
