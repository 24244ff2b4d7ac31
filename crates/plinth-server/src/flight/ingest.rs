//! Bulk ingestion: batches that come along become rows of a table, all or none.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use arrow_schema::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{Stream, StreamExt, stream};
use plinth_adbc::{changed, creation, insertion, missing_column, quoted};
use plinth_core::sync::lock;
use plinth_sql::{ErrorKind, Params, SqlError, parse, with_null_keys};
use tonic::Status;

use super::Flight;
use super::queries::{batches, of_flight};
use crate::door::Running;
use crate::engine::{Begun, CATALOG, Engine, SCHEMA};
use crate::failure::{engine as of_engine, status};
use crate::session::Session;

/// How often it is tried to drop a table that was not filled, and the pause between.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// What is done where a table is there, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    creates: bool,
    exists: TableExistsOption,
}

impl Mode {
    fn of(command: &CommandStatementIngest) -> Result<Self, Status> {
        let options = command.table_definition_options;
        let wrong = || {
            Status::invalid_argument("what is to be done where the table is there, or is not, is none of the options")
        };
        let creates = match options.map(|options| TableNotExistOption::try_from(options.if_not_exist)) {
            None | Some(Ok(TableNotExistOption::Unspecified | TableNotExistOption::Fail)) => false,
            Some(Ok(TableNotExistOption::Create)) => true,
            Some(Err(_)) => return Err(wrong()),
        };
        let exists = match options.map(|options| TableExistsOption::try_from(options.if_exists)) {
            // What is said of no table can't be meant for one that is there.
            None => TableExistsOption::Append,
            Some(Ok(TableExistsOption::Unspecified)) => TableExistsOption::Fail,
            Some(Ok(option)) => option,
            Some(Err(_)) => return Err(wrong()),
        };
        Ok(Self { creates, exists })
    }
}

/// Batches that come along, the first of which was looked at.
type Rows = Pin<Box<dyn Stream<Item = Result<RecordBatch, DataFusionError>> + Send>>;

/// The columns, and the rows.
async fn opened(mut given: FlightRecordBatchStream) -> Result<(SchemaRef, Rows), Status> {
    let first = given.next().await.transpose().map_err(of_flight)?;
    let schema = given.schema().map(Arc::clone);
    let schema = schema.ok_or_else(|| Status::invalid_argument("no schema came along: the rows have no columns"))?;
    let failed = |e| SqlError::of(ErrorKind::Data, format!("the data: {}", of_flight(e).message()));
    let rows = given.map(move |batch| batch.map_err(|e| DataFusionError::from(failed(e))));
    let rows = stream::iter(first.map(Ok)).chain(rows);
    Ok((schema, Box::pin(rows.map(|batch| Ok(with_null_keys(batch?)?)))))
}

impl Flight {
    /// Makes the table if that is asked for, and adds the rows to it: how many.
    pub(super) async fn ingest(
        &self,
        session: &Arc<Session>,
        command: CommandStatementIngest,
        messages: PeekableFlightDataStream,
    ) -> Result<i64, Status> {
        if command.catalog.as_deref().is_some_and(|catalog| !catalog.is_empty() && catalog != CATALOG) {
            return Err(Status::invalid_argument(format!("all tables are in the catalog {CATALOG}")));
        }
        if command.temporary {
            return Err(Status::unimplemented(
                "rows are added to tables of the folder: there are no temporary ones to ingest into",
            ));
        }
        if let Some(name) = command.options.keys().next() {
            return Err(Status::unimplemented(format!("{:?}: there is no such option", crate::failure::short(name))));
        }
        let mode = Mode::of(&command)?;
        let (engine, session) = self.engine(session, command.transaction_id.as_ref())?;
        let text = format!("INSERT INTO {} (bulk ingestion)", quoted(&command.table));
        let (mut running, _turn) = self.door.enter(&session, &engine, &text).await?;
        let work = async {
            let (schema, rows) = opened(batches(messages)).await?;
            let target = Target::of(&command);
            target.fill(&running, &engine, mode, schema, rows).await
        };
        let done = running.statement.unless_stopped(work).await;
        running.ended(&done);
        done
    }
}

/// The table that rows are added to.
struct Target {
    reference: TableReference,
    /// As statements name it.
    name: String,
}

impl Target {
    fn of(command: &CommandStatementIngest) -> Self {
        let table = command.table.as_str();
        match command.schema.as_deref().filter(|schema| !schema.is_empty()) {
            Some(schema) => Self {
                reference: TableReference::partial(schema, table),
                name: format!("{}.{}", quoted(schema), quoted(table)),
            },
            None => Self { reference: TableReference::bare(table), name: quoted(table) },
        }
    }

    async fn fill(
        &self,
        running: &Running,
        engine: &Arc<Engine>,
        mode: Mode,
        schema: SchemaRef,
        rows: Rows,
    ) -> Result<i64, Status> {
        let context = engine.session.context();
        // A name that no table has may be a path, which sessions of clients do not reach.
        let there = context.table_provider(self.reference.clone()).await.ok();
        match (&there, mode) {
            (Some(_), Mode { exists: TableExistsOption::Fail, .. }) => {
                return Err(Status::already_exists(format!("there is a table {} already", self.name)));
            }
            (None, Mode { creates: false, .. }) => {
                return Err(Status::not_found(format!("there is no table {}", self.name)));
            }
            _ => {}
        }
        let appends = there.filter(|_| mode.exists == TableExistsOption::Append);
        if let Some(table) = &appends
            && let Some(what) = missing_column(&self.name, &schema, &table.schema())
        {
            return Err(Status::invalid_argument(what));
        }
        let run = |text: String| async move { engine.run(&text).await.map_err(|e| status(&e)) };
        let creates = appends.is_none();
        if creates {
            let create = creation(&self.name, &schema).map_err(|e| status(&e))?;
            run(format!("DROP TABLE IF EXISTS {}", self.name)).await?;
            run(create).await?;
        }
        let data = Registered::new(engine, schema, rows)?;
        let text = format!("{} {}", insertion(&self.name, &data.schema), data.name());
        let mut made = creates.then(|| Unfilled {
            engine,
            name: &self.name,
            runtime: tokio::runtime::Handle::current(),
            is_filled: false,
        });
        let statement = parse(&text).map_err(|e| status(&e))?.pop();
        let statement = statement.ok_or_else(|| Status::internal("the insertion is no statement"))?;
        let none = Params::of_values([]);
        let work = engine.begin(statement, &none, |flag| running.statement.listen(flag));
        let added = match work.await.map_err(|e| status(&e))? {
            Begun::Done(_, answer) => changed(&answer),
            Begun::Query(_) => return Err(Status::internal("data is added by no query")),
        };
        if let Some(made) = &mut made {
            made.is_filled = true;
        }
        running.statement.rows.store(added.unwrap_or_default(), Ordering::Relaxed);
        Ok(added.map_or(-1, |rows| i64::try_from(rows).unwrap_or(i64::MAX)))
    }
}

/// A table that was made for rows that have not come yet: it was to be there with them or not at all.
struct Unfilled<'a> {
    engine: &'a Arc<Engine>,
    name: &'a str,
    runtime: tokio::runtime::Handle,
    is_filled: bool,
}

impl Drop for Unfilled<'_> {
    fn drop(&mut self) {
        if self.is_filled {
            return;
        }
        let (engine, text) = (Arc::clone(self.engine), format!("DROP TABLE IF EXISTS {}", self.name));
        // Also if the client has gone, and no one waits for it; tasks that were told to stop may hold the table for a moment.
        self.runtime.spawn(async move {
            for _ in 0..TRIES {
                if engine.run(&text).await.is_ok() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}

/// Data that a statement reads, by a name of its own.
struct Registered<'a> {
    engine: &'a Engine,
    table: TableReference,
    schema: SchemaRef,
}

impl<'a> Registered<'a> {
    fn new(engine: &'a Engine, schema: SchemaRef, rows: Rows) -> Result<Self, Status> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let table = TableReference::partial(SCHEMA, NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        let part = Arc::new(Part { schema: Arc::clone(&schema), rows: Mutex::new(Some(rows)) });
        let streaming = StreamingTable::try_new(Arc::clone(&schema), vec![part as _]).map_err(of_engine)?;
        engine.session.context().register_table(table.clone(), Arc::new(streaming)).map_err(of_engine)?;
        Ok(Self { engine, table, schema })
    }

    fn name(&self) -> String {
        format!("{}.{}", quoted(SCHEMA), quoted(self.table.table()))
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let _ = self.engine.session.context().deregister_table(self.table.clone());
    }
}

/// Rows that are read once.
struct Part {
    schema: SchemaRef,
    rows: Mutex<Option<Rows>>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = lock(&self.rows).take();
        let rows: Rows = rows.unwrap_or_else(|| {
            let read = SqlError::of(ErrorKind::Data, "the data: it gives its rows once, and they were read");
            Box::pin(stream::once(std::future::ready(Err(read.into()))))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
