//! Sessions of SQL for clients: one for each session, and one for each of its transactions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::MemorySchemaProvider;
use datafusion::common::ScalarValue;
use futures::StreamExt;
use plinth_adbc::{changed, changes, quoted, tables_of};
use plinth_io::{Io, MemoryBudget};
use plinth_sql::{
    Grants, Interrupt, ObjectStoresOptions, OpenTables, Params, Query, Session, SessionOptions, Share, SqlError,
    Statement, parse,
};
use tonic::Status;

use crate::failure::{ServerError, internal, status};
use crate::options::ServerOptions;
use crate::users::Role;

/// The schema of data that statements of this program read.
pub(crate) const SCHEMA: &str = "plinth_server";

/// What all sessions have together: tables, memory, the engine of reads.
#[derive(Debug)]
pub(crate) struct Host {
    db: PathBuf,
    tables: Arc<OpenTables>,
    io: Io,
    threads: usize,
    session_memory: u64,
    read: Grants,
    write: Grants,
}

impl Host {
    /// Opens the folder.
    ///
    /// # Errors
    /// If it is no folder that can be read, or the root is none or lies within it.
    pub(crate) fn open(options: &ServerOptions) -> Result<Self, ServerError> {
        let named = |path: &PathBuf, e: std::io::Error| ServerError::new(format!("{}: {e}", path.display()));
        let db = options.db.canonicalize().map_err(|e| named(&options.db, e))?;
        let grants = match &options.root {
            None => Grants::tables_alone(),
            Some(root) => {
                let whole = root.canonicalize().map_err(|e| named(root, e))?;
                if whole.starts_with(&db) || db.starts_with(&whole) {
                    return Err(ServerError::new(format!(
                        "{}: the root and the folder of tables ({}) must lie apart, or files of tables could be overwritten",
                        root.display(),
                        options.db.display()
                    )));
                }
                Grants::files_below(&whole).map_err(|e| named(root, e))?
            }
        };
        let budget = MemoryBudget::new(options.memory);
        if let Some(allocated) = options.allocated {
            budget.measure(allocated);
        }
        let host = Self {
            tables: tables_of(&db),
            db,
            io: Io::new(&budget, options.io.clone()),
            threads: options.threads,
            session_memory: options.limits.session_memory.unwrap_or(options.memory / 4).max(1 << 20),
            read: grants.clone().for_reading(),
            write: grants,
        };
        // What is wrong with the folder is told now.
        host.session("start", Role::Read)?;
        Ok(host)
    }

    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        self.io.budget()
    }

    /// Opens all tables for writing, once for all sessions: each of them would read the log of a copy of its own otherwise.
    ///
    /// # Errors
    /// If the folder can't be read any more.
    pub(crate) async fn open_tables(self: &Arc<Self>) -> Result<(), ServerError> {
        let engine = self.engine("start".to_owned(), Role::Write).await.map_err(|e| ServerError::new(e.message()))?;
        // What a transaction sees is open for writing.
        engine.run("BEGIN").await?;
        let catalog = engine.session.context().catalog(CATALOG);
        for schema in catalog.iter().flat_map(|catalog| catalog.schema_names()) {
            let tables = catalog.as_ref().and_then(|catalog| catalog.schema(&schema));
            for table in tables.iter().flat_map(|tables| tables.table_names()) {
                let look = format!("SELECT 1 FROM {}.{} LIMIT 0", quoted(&schema), quoted(&table));
                // What can't be opened says so where it is asked for.
                let _ = engine.run(&look).await;
            }
        }
        engine.run("COMMIT").await?;
        Ok(())
    }

    fn session(&self, name: &str, role: Role) -> Result<Session, SqlError> {
        let grants = match role {
            Role::Read => self.read.clone(),
            Role::Write => self.write.clone(),
        };
        let session = Session::new(&SessionOptions {
            db: Some(self.db.clone()),
            memory: self.session_memory,
            threads: self.threads,
            objects: ObjectStoresOptions::default(),
            tables: OpenTables::clone(&self.tables),
            interrupt: Interrupt::default(),
            grants,
            share: Some(Share { io: self.io.clone(), name: name.to_owned() }),
            ..SessionOptions::default()
        })?;
        if let Some(catalog) = session.context().catalog(CATALOG) {
            catalog.register_schema(SCHEMA, Arc::new(MemorySchemaProvider::new()))?;
        }
        Ok(session)
    }

    /// A session of SQL.
    ///
    /// # Errors
    /// If the folder can't be read any more.
    pub(crate) async fn engine(self: &Arc<Self>, name: String, role: Role) -> Result<Arc<Engine>, Status> {
        let host = Arc::clone(self);
        let made = tokio::task::spawn_blocking(move || host.session(&name, role)).await;
        let session = Arc::new(made.map_err(internal)?.map_err(|e| status(&e))?);
        Ok(Arc::new(Engine { session, starting: tokio::sync::Mutex::new(()), running: AtomicUsize::new(0) }))
    }
}

/// What the engine calls the catalog of a session.
pub(crate) const CATALOG: &str = "datafusion";

/// A session of SQL, whose statements start one after the other.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) session: Arc<Session>,
    starting: tokio::sync::Mutex<()>,
    /// Statements that run.
    running: AtomicUsize,
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

/// Rolls back what was begun, if it is still open once this is dropped.
struct Undo<'a>(&'a Session);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.0.in_transaction() {
            // There is one, so it can be.
            let _ = self.0.roll_back();
        }
    }
}

impl Engine {
    /// Plans a statement; one that is no query is over then. `flag` learns what parts of the plan listen to that come back late.
    ///
    /// # Errors
    /// If it is refused or fails.
    pub(crate) async fn begin(
        &self,
        statement: Statement,
        params: &Params,
        flag: impl FnOnce(Arc<AtomicBool>),
    ) -> Result<Begun, SqlError> {
        let _one_at_a_time = self.starting.lock().await;
        let _running = self.session.interrupt().statement();
        flag(self.session.interrupt().flag());
        self.begun(statement, params).await
    }

    /// A statement once for each row of values, all or none: how many rows that has changed.
    ///
    /// # Errors
    /// If one of them fails.
    pub(crate) async fn change_each(
        &self,
        statement: &Statement,
        values: &[Params],
        flag: impl FnOnce(Arc<AtomicBool>),
    ) -> Result<u64, SqlError> {
        let _one_at_a_time = self.starting.lock().await;
        let _running = self.session.interrupt().statement();
        flag(self.session.interrupt().flag());
        let own = values.len() > 1 && changes(statement) && !self.session.in_transaction();
        let undo = own.then(|| Undo(&self.session));
        if own {
            self.text("BEGIN").await?;
        }
        let mut rows = 0;
        for params in values {
            if let Begun::Done(_, answer) = self.begun(statement.clone(), params).await? {
                rows += changed(&answer).unwrap_or_default();
            }
        }
        if own {
            self.text("COMMIT").await?;
        }
        // A transaction that was ended is not undone.
        drop(undo);
        Ok(rows)
    }

    /// Runs a statement of this program's own: the rows that it has changed.
    ///
    /// # Errors
    /// If it fails.
    pub(crate) async fn run(&self, text: &str) -> Result<Option<u64>, SqlError> {
        let _one_at_a_time = self.starting.lock().await;
        let _running = self.session.interrupt().statement();
        self.text(text).await
    }

    async fn text(&self, text: &str) -> Result<Option<u64>, SqlError> {
        let mut rows = None;
        for statement in parse(text)? {
            if let Begun::Done(_, answer) = self.begun(statement, &Params::default()).await? {
                rows = changed(&answer);
            }
        }
        Ok(rows)
    }

    async fn begun(&self, statement: Statement, params: &Params) -> Result<Begun, SqlError> {
        let query = self.session.plan(statement, params).await?;
        if query.waits() {
            return Ok(Begun::Query(query));
        }
        // Whatever it writes, it writes while these are asked for.
        let (schema, mut rows, mut answer) = (query.schema(), query.start().await?, Vec::new());
        while let Some(batch) = rows.next().await {
            answer.push(batch?);
        }
        Ok(Begun::Done(schema, answer))
    }

    /// The part of the rows to be read that was, if one statement runs alone and it is known.
    pub(crate) fn progress(&self) -> Option<(u64, Option<u64>)> {
        if self.running.load(Ordering::Relaxed) != 1 {
            return None;
        }
        self.session.progress().map(|done| (done.rows, done.of_rows))
    }

    pub(crate) fn count(&self, more: bool) {
        if more {
            self.running.fetch_add(1, Ordering::Relaxed);
        } else if self.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            // The plan holds files and memory.
            self.session.forget_progress();
        }
    }
}

/// The columns of a statement that is not run, if it has rows and planning it changes nothing, and the types of its places: those that
/// are given where nothing says which, else null.
pub(crate) async fn looked(
    engine: &Engine,
    statement: &Statement,
    places: usize,
    given: &[Option<DataType>],
    has_rows: bool,
) -> Result<(SchemaRef, SchemaRef), Status> {
    let known = engine.session.parameter_types(statement.clone()).await.map_err(|e| status(&e))?;
    let numbered = |at: usize| {
        let name = at.to_string();
        let given = given.get(at - 1).cloned().flatten();
        let data_type = known.get(&name).cloned().flatten().or(given);
        Field::new(name, data_type.unwrap_or(DataType::Null), true)
    };
    let mut fields: Vec<_> = (1..=places).map(numbered).collect();
    for (name, data_type) in &known {
        if !fields.iter().any(|field| field.name() == name) {
            fields.push(Field::new(name, data_type.clone().unwrap_or(DataType::Null), true));
        }
    }
    let parameters = Arc::new(Schema::new(fields));
    if !has_rows {
        return Ok((Arc::new(Schema::empty()), parameters));
    }
    // What is made of a parameter has the type of its value: the one that a client says, rather than that of what is beside it.
    let null = |(at, field): (usize, &FieldRef)| {
        let of = given.get(at).and_then(Option::as_ref).unwrap_or(field.data_type());
        (field.name().clone(), ScalarValue::try_from(of).unwrap_or(ScalarValue::Null))
    };
    let nulls = Params::of_values(parameters.fields().iter().enumerate().map(null));
    let begun = engine.begin(statement.clone(), &nulls, |_| {}).await.map_err(|e| status(&e))?;
    Ok((begun.schema(), parameters))
}
