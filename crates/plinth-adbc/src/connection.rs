//! Connections: a session, its transaction, and what of it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arrow_schema::SchemaRef;
use datafusion::sql::sqlparser::ast;
use plinth_core::sync::lock;
use plinth_sql::{Params, Statement, parse};

use crate::database::{Database, Shared};
use crate::error::{Failure, Result};
use crate::options::{Options, Value, missing, unknown};
use crate::run::{Begun, Engine, Stop};
use crate::tables::quoted;

pub(crate) const CATALOG: &str = "datafusion";
pub(crate) const DB_SCHEMA: &str = "public";

const AUTOCOMMIT: &str = "adbc.connection.autocommit";
const CURRENT_CATALOG: &str = "adbc.connection.catalog";
const CURRENT_DB_SCHEMA: &str = "adbc.connection.db_schema";

/// What `AdbcConnection` leads to.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Whether changes wait for a commit.
    manual: Arc<AtomicBool>,
    link: OnceLock<Arc<Link>>,
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) engine: Arc<Engine>,
    manual: Arc<AtomicBool>,
    running: Mutex<Vec<Weak<Stop>>>,
    /// Dropped last: the threads that the session works on.
    database: Arc<Shared>,
}

/// Whether a statement changes rows.
pub fn changes(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    matches!(
        statement.as_ref(),
        ast::Statement::Insert(_)
            | ast::Statement::Update(_)
            | ast::Statement::Delete(_)
            | ast::Statement::Merge(_)
            | ast::Statement::Truncate(_)
    )
}

/// Whether a statement has rows, which are made as they are asked for.
pub fn is_query(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(statement) if matches!(**statement, ast::Statement::Query(_)))
}

impl Options for Connection {
    fn set(&self, key: &str, value: &Value) -> Result<()> {
        match key {
            AUTOCOMMIT => {
                let manual = !value.switch(key)?;
                match self.link.get() {
                    Some(link) => link.set_manual(manual)?,
                    None => self.manual.store(manual, Ordering::Relaxed),
                }
                Ok(())
            }
            CURRENT_CATALOG if value.text(key)? == CATALOG => Ok(()),
            CURRENT_DB_SCHEMA if value.text(key)? == DB_SCHEMA => Ok(()),
            CURRENT_CATALOG | CURRENT_DB_SCHEMA => {
                Err(Failure::not_implemented(format!("{key}: all tables are in {CATALOG}.{DB_SCHEMA}")))
            }
            _ => Err(unknown("connection", key, &[AUTOCOMMIT, CURRENT_CATALOG, CURRENT_DB_SCHEMA])),
        }
    }

    fn get(&self, key: &str) -> Result<Value> {
        match key {
            AUTOCOMMIT => Ok((!self.manual.load(Ordering::Relaxed)).into()),
            CURRENT_CATALOG => Ok(CATALOG.into()),
            CURRENT_DB_SCHEMA => Ok(DB_SCHEMA.into()),
            _ => Err(missing("connection", key)),
        }
    }
}

impl Connection {
    /// Opens it: `AdbcConnectionInit`.
    pub(crate) fn init(&self, database: &Database) -> Result<()> {
        let database = database.shared()?;
        let (engine, manual) = (database.engine()?, Arc::clone(&self.manual));
        let link = Link { engine, manual, running: Mutex::default(), database };
        if self.manual.load(Ordering::Relaxed) {
            link.refuse_manual()?;
        }
        self.link.set(Arc::new(link)).map_err(|_| Failure::state("the connection is open"))
    }

    pub(crate) fn link(&self) -> Result<&Arc<Link>> {
        let link = self.link.get();
        let link = link.ok_or_else(|| Failure::state("the connection is not open: call AdbcConnectionInit before"))?;
        link.database.check_process()?;
        Ok(link)
    }
}

impl Link {
    /// Whether changes wait for a commit.
    fn is_manual(&self) -> bool {
        self.manual.load(Ordering::Relaxed)
    }

    fn refuse_manual(&self) -> Result<()> {
        if self.database.is_in_memory() {
            return Err(Failure::not_implemented(
                "tables in memory have no transactions: name a folder (path), or leave autocommit on",
            ));
        }
        Ok(())
    }

    fn set_manual(&self, manual: bool) -> Result<()> {
        if manual {
            self.refuse_manual()?;
        } else if self.is_manual() {
            self.end("COMMIT")?;
        }
        self.manual.store(manual, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the transaction by COMMIT or ROLLBACK; what has changed nothing has none.
    pub(crate) fn end(&self, how: &str) -> Result<()> {
        if self.engine.session.in_transaction() {
            self.engine.run(how, &self.stop())?;
        }
        Ok(())
    }

    /// As `AdbcConnectionCommit` and `AdbcConnectionRollback` have it.
    pub(crate) fn end_manual(&self, how: &str) -> Result<()> {
        if !self.is_manual() {
            let what = "each statement is committed by itself (autocommit): turn that off before";
            return Err(Failure::state(format!("{how}: {what}")));
        }
        self.end(how)
    }

    /// A request to stop for a statement, which [`Link::cancel`] knows.
    pub(crate) fn stop(&self) -> Arc<Stop> {
        let stop = Arc::new(Stop::default());
        let mut running = lock(&self.running);
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&stop));
        stop
    }

    /// Stops all that runs.
    pub(crate) fn cancel(&self) {
        lock(&self.running).iter().filter_map(Weak::upgrade).for_each(|stop| stop.ask());
    }

    /// Plans a statement; one that is no query is over then. Without autocommit, a change opens a transaction.
    pub(crate) fn begin(&self, statement: Statement, params: &Params, stop: &Stop) -> Result<Begun> {
        self.database.check_process()?;
        let opens = self.is_manual() && changes(&statement);
        self.engine.begin(statement, params, stop, |session| opens && !session.in_transaction())
    }

    /// Opens a transaction for several runs of one statement, unless there are none or one is open already: whether it did.
    pub(crate) fn begin_many(&self, statement: &Statement, stop: &Stop) -> Result<bool> {
        let own = changes(statement) && !self.database.is_in_memory() && !self.engine.session.in_transaction();
        if own && !self.is_manual() {
            self.engine.run("BEGIN", stop)?;
            return Ok(true);
        }
        Ok(false)
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.database.is_in_memory()
    }

    /// The columns of a table, as statements see it.
    pub(crate) fn schema_of(&self, table: &str) -> Result<SchemaRef> {
        if !self.engine.session.table_names().iter().any(|name| name == table) {
            return Err(Failure::not_found(format!("there is no table {table:?}")));
        }
        let query = parse(&format!("SELECT * FROM {}", quoted(table)))?.pop();
        let query = query.ok_or_else(|| Failure::internal("no statement"))?;
        Ok(self.begin(query, &Params::default(), &self.stop())?.schema())
    }
}
