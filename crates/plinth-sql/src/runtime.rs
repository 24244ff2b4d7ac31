//! Threads that statements run on, for callers that have none: [`block_on`] and [`Connection`].

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;
use plinth_profile::Profiler;
use tokio::runtime::Runtime;

use crate::error::{Result, SqlError};
use crate::{Interrupt, Params, Running, Session, SessionOptions, Statement, parse};

/// The stack of threads that run statements: what [`parse`] lets through has room on it, also unoptimised.
pub(crate) const STACK: usize = 64 << 20;

/// How long writers on threads that block may take to remove their files.
const REMOVAL: Duration = Duration::from_millis(500);

/// Threads with room for deep statements, on which sessions work.
///
/// # Errors
/// If threads can't be started.
pub fn start_runtime(threads: usize) -> Result<Runtime> {
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
    let runtime = start_runtime(threads)?;
    let result = runtime.block_on(interrupt.unless_asked(work));
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
        Ok(Self { session: Arc::new(Session::new(options)?), runtime: start_runtime(options.threads)? })
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
            while self.next(&mut stream)?.is_some() {}
        }
        let stream = self.start(last, params)?;
        Ok(Rows { connection: self, schema: stream.schema(), stream: Some(stream), _running: running })
    }

    fn start(&self, statement: Statement, params: &Params) -> Result<SendableRecordBatchStream> {
        self.run(self.session.start(statement, params, &Profiler::off()))
    }

    fn next(&self, stream: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
        self.run(async { Ok(stream.try_next().await?) })
    }

    /// Works until the end or an interrupt. What was not finished leaves no files.
    fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let interrupt = self.session.interrupt();
        self.runtime.block_on(interrupt.unless_asked(work)).inspect_err(|_| interrupt.sweep())
    }
}

/// The rows of a statement, a batch at a time. To drop them ends the statement.
pub struct Rows<'c> {
    connection: &'c Connection,
    schema: SchemaRef,
    /// Until its end or an error.
    stream: Option<SendableRecordBatchStream>,
    _running: Running,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Rows<'_> {
    /// Their columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.connection.next(self.stream.as_mut()?).transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.stream = None;
        }
        batch
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Asks what runs to stop until `done`.
    fn asking(interrupt: &Interrupt, done: &AtomicBool) {
        while !done.load(Ordering::Relaxed) {
            interrupt.ask();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What becomes of statements that are asked to stop.
    fn interrupted(connection: &mut Connection, sql: &str) -> Result<usize> {
        let interrupt = connection.session().interrupt().clone();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| asking(&interrupt, &done));
            let result = connection.query(sql).and_then(|rows| rows.map(|batch| batch.map(|b| b.num_rows())).sum());
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    #[test]
    fn an_interrupt_ends_whatever_runs_and_not_what_comes_next() {
        let options = SessionOptions { threads: 2, ..SessionOptions::default() };
        let mut connection = Connection::open(&options).unwrap();
        let endless =
            "SELECT sum(a.value * b.value) FROM generate_series(1, 100000000) a, generate_series(1, 100000000) b";
        // As the last statement, as one before it, and within the start of one that gives no rows.
        for sql in
            [endless.to_owned(), format!("{endless}; SELECT 1"), format!("CREATE TABLE t AS {endless}; SELECT 1")]
        {
            assert!(matches!(interrupted(&mut connection, &sql), Err(SqlError::Interrupted)), "{sql}");
            let mut rows = connection.query("SELECT 1 UNION ALL SELECT 2").unwrap();
            let after: usize = rows.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!((after, rows.next().is_none()), (2, true), "{sql}");
        }
    }

    #[test]
    fn rows_end_with_an_error() {
        let mut connection = Connection::open(&SessionOptions::default()).unwrap();
        let sql = "SELECT 1 / (value - 3) FROM generate_series(1, 5)";
        let results: Vec<_> = connection.query(sql).unwrap().take(100).collect();
        assert!(results.len() < 100 && results.last().is_some_and(Result::is_err));
    }
}
