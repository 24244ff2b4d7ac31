//! Threads that statements run on, for callers that have none: [`block_on`] and [`Connection`].

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::future::{Either, select};
use plinth_profile::Profiler;
use tokio::runtime::Runtime;

use crate::error::{Result, SqlError};
use crate::{Interrupt, Params, Running, Session, SessionOptions, parse};

/// The stack of threads that run statements: what [`parse`] lets through has room on it, also unoptimised.
pub(crate) const STACK: usize = 64 << 20;

/// How long writers on threads that block may take to remove their files.
const REMOVAL: Duration = Duration::from_millis(500);

fn runtime(threads: usize) -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("plinth-sql")
        // Deep expressions are followed on it; what is not used is not there.
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|e| SqlError::new(format!("can't start threads: {e}")))
}

/// Runs asynchronous work on a runtime with this many threads, until it is done or `interrupt` asks it to stop.
///
/// # Errors
/// Those of the work, [`SqlError::Interrupted`], or that threads can't be started.
pub fn block_on<T, E: From<SqlError>>(
    threads: usize,
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let runtime = runtime(threads)?;
    let result = runtime.block_on(async {
        match select(std::pin::pin!(work), std::pin::pin!(interrupt.asked())).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(SqlError::Interrupted.into()),
        }
    });
    if result.is_err() {
        // Writers on threads that block remove their files as they are dropped; what is too slow for that is swept.
        runtime.shutdown_timeout(REMOVAL);
        interrupt.sweep();
    }
    result
}

/// A session and threads for it: SQL for callers that are not asynchronous.
///
/// One statement runs at a time; its rows come as they are asked for.
#[derive(Debug)]
pub struct Connection {
    // Before the runtime that its files may be written on.
    session: Arc<Session>,
    runtime: Runtime,
}

impl Connection {
    /// Opens a session.
    ///
    /// # Errors
    /// If `db` is not a folder that can be read, or threads can't be started.
    pub fn open(options: &SessionOptions) -> Result<Self> {
        Ok(Self { session: Arc::new(Session::new(options)?), runtime: runtime(options.threads)? })
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Runs statements, and all but the last to their ends: the rows of the last.
    ///
    /// # Errors
    /// If a statement is refused or fails; those before it have run.
    pub fn query(&mut self, sql: &str) -> Result<Rows<'_>> {
        self.query_with(sql, &Params::default())
    }

    /// As [`Connection::query`], with values for `$1` and `$name`.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query_with(&mut self, sql: &str, params: &Params) -> Result<Rows<'_>> {
        let mut statements = parse(sql)?;
        let Some(last) = statements.pop() else { return Err(SqlError::new("no statement")) };
        let running = self.session.interrupt().statement();
        for statement in statements {
            let mut stream = self.start(statement, params)?;
            while let Some(batch) = self.runtime.block_on(stream.next()) {
                batch?;
            }
        }
        let stream = self.start(last, params)?;
        Ok(Rows { connection: self, stream, _running: running })
    }

    fn start(&self, statement: crate::Statement, params: &Params) -> Result<SendableRecordBatchStream> {
        self.runtime.block_on(self.session.start(statement, params, &Profiler::off()))
    }
}

/// The rows of a statement, a batch at a time. To drop them ends the statement.
pub struct Rows<'c> {
    connection: &'c Connection,
    stream: SendableRecordBatchStream,
    _running: Running,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema()).finish_non_exhaustive()
    }
}

impl Rows<'_> {
    /// Their columns.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let interrupt = self.connection.session.interrupt();
        self.connection.runtime.block_on(async {
            match select(self.stream.next(), std::pin::pin!(interrupt.asked())).await {
                Either::Left((batch, _)) => batch.map(|batch| batch.map_err(SqlError::from)),
                Either::Right(_) => Some(Err(SqlError::Interrupted)),
            }
        })
    }
}
