//! Bulk ingestion: data that was bound becomes rows of a table.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::future::BoxFuture;
use plinth_core::sync::lock;
use plinth_sql::{ErrorKind, Params, SqlError, parse, with_null_keys};

use crate::bound::Bound;
use crate::connection::{CATALOG, DB_SCHEMA, Link};
use crate::database::SCHEMA;
use crate::error::{Failure, Result};
use crate::options::Value;
use crate::run::{Answer, Begun, Stop};
use crate::tables::{changed, creation, insertion, missing_column, quoted};

const TARGET: &str = "adbc.ingest.target_table";
const MODE: &str = "adbc.ingest.mode";
const TARGET_CATALOG: &str = "adbc.ingest.target_catalog";
const TARGET_DB_SCHEMA: &str = "adbc.ingest.target_db_schema";
const TEMPORARY: &str = "adbc.ingest.temporary";

/// Batches that wait for the table.
const WAITING: usize = 2;

/// What is done where a table is there, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Create,
    Append,
    Replace,
    CreateAppend,
}

const MODES: [(&str, Mode); 4] = [
    ("adbc.ingest.mode.create", Mode::Create),
    ("adbc.ingest.mode.append", Mode::Append),
    ("adbc.ingest.mode.replace", Mode::Replace),
    ("adbc.ingest.mode.create_append", Mode::CreateAppend),
];

/// The options of a statement that ingests.
#[derive(Debug, Default)]
pub(crate) struct Ingest {
    target: Option<String>,
    mode: Mode,
}

impl Ingest {
    /// Sets an option: whether the statement is one that ingests from now on.
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<bool> {
        match key {
            TARGET => {
                self.target = Some(value.text(key)?);
                return Ok(true);
            }
            MODE => {
                let text = value.text(key)?;
                let known = MODES.iter().find(|(name, _)| *name == text);
                let wrong = || {
                    Failure::argument(format!(
                        "{key} is {text:?}; give one of {}",
                        MODES.map(|(name, _)| name).join(", ")
                    ))
                };
                self.mode = known.ok_or_else(wrong)?.1;
            }
            TARGET_CATALOG if value.text(key)? == CATALOG => {}
            TARGET_DB_SCHEMA if value.text(key)? == DB_SCHEMA => {}
            TARGET_CATALOG | TARGET_DB_SCHEMA => {
                return Err(Failure::not_implemented(format!("{key}: all tables are in {CATALOG}.{DB_SCHEMA}")));
            }
            TEMPORARY if !value.switch(key)? => {}
            TEMPORARY => {
                let what = "there are no temporary tables; open a database without a path for tables in memory";
                return Err(Failure::not_implemented(format!("{key}: {what}")));
            }
            _ => {
                let known = [TARGET, MODE, TARGET_CATALOG, TARGET_DB_SCHEMA, TEMPORARY];
                return Err(crate::options::unknown("statement", key, &known));
            }
        }
        Ok(false)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        match key {
            TARGET => self.target.clone().map(Value::Text),
            MODE => MODES.iter().find(|(_, mode)| *mode == self.mode).map(|(name, _)| Value::from(*name)),
            TARGET_CATALOG => Some(CATALOG.into()),
            TARGET_DB_SCHEMA => Some(DB_SCHEMA.into()),
            TEMPORARY => Some(false.into()),
            _ => None,
        }
    }

    /// Whether the statement is one that ingests.
    pub(crate) fn is_asked(&self) -> bool {
        self.target.is_some()
    }

    /// Makes the table if that is asked for, and adds the rows to it: all or none.
    pub(crate) fn run(&self, link: &Link, bound: Bound, stop: &Stop) -> Result<Answer> {
        let name = self.target.as_deref().ok_or_else(|| Failure::state("no table is named"))?;
        let is_there = link.engine.session.table_names().iter().any(|other| other == name);
        match self.mode {
            Mode::Create if is_there => {
                return Err(Failure::already_exists(format!("there is a table {name:?} already")));
            }
            Mode::Append if !is_there => return Err(Failure::not_found(format!("there is no table {name:?}"))),
            _ => {}
        }
        let (schema, table) = (bound.schema(), quoted(name));
        let appends = is_there && self.mode != Mode::Replace;
        if appends {
            fits(name, &schema, &link.schema_of(name)?)?;
        }
        let statement = match (appends, link.is_in_memory()) {
            (true, _) => insertion(&table, &schema),
            (false, true) => format!("CREATE TABLE {table} AS SELECT * FROM"),
            (false, false) => {
                let create = creation(&table, &schema)?;
                if is_there {
                    link.engine.run(&format!("DROP TABLE {table}"), stop)?;
                }
                link.engine.run(&create, stop)?;
                insertion(&table, &schema)
            }
        };
        if !appends && link.is_in_memory() && is_there {
            link.engine.run(&format!("DROP TABLE {table}"), stop)?;
        }
        let data = Registered::new(link, bound)?;
        let was_open = link.engine.session.in_transaction();
        let statement = format!("{statement} {}", data.name());
        let added = self.add(link, &statement, stop);
        if added.is_err() && !appends {
            // It was to be there with its rows or not at all.
            if !was_open {
                link.end("ROLLBACK")?;
            }
            let _ = link.engine.run(&format!("DROP TABLE IF EXISTS {table}"), &Stop::default());
        }
        added?;
        Ok(Answer::of(Arc::new(arrow_schema::Schema::empty()), Vec::new(), Some(data.rows())))
    }

    fn add(&self, link: &Link, statement: &str, stop: &Stop) -> Result<Option<u64>> {
        let statement = parse(statement)?.pop().ok_or_else(|| Failure::internal("no statement"))?;
        match link.begin(statement, &Params::of_values([]), stop)? {
            Begun::Done(_, answer) => Ok(changed(&answer)),
            Begun::Query(_) => Err(Failure::internal("data is added by no query")),
        }
    }
}

/// Refuses columns that a table does not have.
fn fits(table: &str, given: &SchemaRef, there: &SchemaRef) -> Result<()> {
    missing_column(table, given, there).map_or(Ok(()), |what| Err(Failure::already_exists(what)))
}

/// Data that a statement reads, by a name of its own.
struct Registered<'a> {
    link: &'a Link,
    table: TableReference,
    data: Arc<Data>,
}

impl<'a> Registered<'a> {
    fn new(link: &'a Link, bound: Bound) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let table = TableReference::partial(SCHEMA, NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        let data = Arc::new(Data { schema: bound.schema(), bound: Mutex::new(Some(bound)), rows: AtomicU64::new(0) });
        link.engine.session.context().register_table(table.clone(), Arc::new(DataTable(Arc::clone(&data))))?;
        Ok(Self { link, table, data })
    }

    fn name(&self) -> String {
        format!("{}.{}", quoted(SCHEMA), quoted(self.table.table()))
    }

    /// Rows that were read.
    fn rows(&self) -> u64 {
        self.data.rows.load(Ordering::Relaxed)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let _ = self.link.engine.session.context().deregister_table(self.table.clone());
    }
}

/// Rows that are read once.
struct Data {
    schema: SchemaRef,
    bound: Mutex<Option<Bound>>,
    rows: AtomicU64,
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct DataTable(Arc<Data>);

impl TableProvider for DataTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    // `async_trait`'s signature, written out as in the crates below.
    fn scan<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        _: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        _: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'e, EngineResult<Arc<dyn ExecutionPlan>>> {
        let (schema, part) = (Arc::clone(&self.0.schema), Arc::new(Part(Arc::clone(&self.0))));
        let plan = StreamingTableExec::try_new(schema, vec![part as _], projection, [], false, limit);
        Box::pin(std::future::ready(plan.map(|plan| Arc::new(plan) as Arc<dyn ExecutionPlan>)))
    }
}

#[derive(Debug)]
struct Part(Arc<Data>);

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.0.schema), WAITING);
        let (rows, data) = (stream.tx(), Arc::clone(&self.0));
        // Its producer may wait.
        stream.spawn_blocking(move || {
            let failed =
                |what: String| -> DataFusionError { SqlError::of(ErrorKind::Data, format!("the data: {what}")).into() };
            let mut reader = match lock(&data.bound).take() {
                None => return Err(failed("it gives its rows once, and they were read".to_owned())),
                Some(Bound::Rows(batch)) => {
                    send(&data, &rows, batch);
                    return Ok(());
                }
                Some(Bound::Stream(reader)) => reader,
            };
            while let Some(batch) = reader.next().map_err(failed)? {
                if !send(&data, &rows, batch) {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}

/// Hands rows over; whether more are wanted.
fn send(data: &Data, to: &tokio::sync::mpsc::Sender<EngineResult<RecordBatch>>, batch: RecordBatch) -> bool {
    data.rows.fetch_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX), Ordering::Relaxed);
    to.blocking_send(with_null_keys(batch).map_err(Into::into)).is_ok()
}
