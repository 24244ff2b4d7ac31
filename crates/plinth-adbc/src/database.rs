//! Databases: a folder of tables or none, memory and threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use plinth_core::sync::lock;
use plinth_core::units::parse_bytes;
use plinth_sql::{ObjectStoresOptions, OpenTables, Session, SessionOptions, start_runtime};
use tokio::runtime::{Handle, Runtime};

use crate::error::{Failure, Result};
use crate::options::{Options, Value, missing, unknown};
use crate::run::Engine;
use crate::shared::tables_of;

const KNOWN: [&str; 5] = ["uri", "path", "create", "memory", "threads"];

/// The schema of data that statements of this driver read.
pub(crate) const SCHEMA: &str = "plinth_adbc";

/// What `AdbcDatabase` leads to.
#[derive(Debug, Default)]
pub(crate) struct Database {
    settings: Mutex<Settings>,
    open: Mutex<Option<Arc<Shared>>>,
}

#[derive(Clone, Debug, Default)]
struct Settings {
    path: Option<PathBuf>,
    create: bool,
    memory: Option<(String, u64)>,
    threads: Option<usize>,
}

/// What connections of a database share.
#[derive(Debug)]
pub(crate) struct Shared {
    options: SessionOptions,
    /// The session of all connections where there is no folder: its tables are in memory.
    in_memory: Mutex<Option<Arc<Engine>>>,
    tables: Mutex<Option<Arc<OpenTables>>>,
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
    process: u32,
}

/// The folder that a URI names: `plinth:folder`, `file:///folder`, or a path by itself.
fn folder_of(uri: &str) -> Option<PathBuf> {
    let path = ["plinth://", "plinth:", "file://", "file:"].iter().find_map(|scheme| uri.strip_prefix(scheme));
    let path = path.unwrap_or(uri);
    (!path.is_empty() && path != ":memory:").then(|| PathBuf::from(path))
}

impl Options for Database {
    fn set(&self, key: &str, value: &Value) -> Result<()> {
        if lock(&self.open).is_some() {
            return Err(Failure::state(format!("{key}: the database is open; set its options before")));
        }
        let mut settings = lock(&self.settings);
        match key {
            "uri" | "path" => settings.path = folder_of(&value.text(key)?),
            "create" => settings.create = value.switch(key)?,
            "memory" => {
                let text = value.text(key)?;
                let bytes = parse_bytes(&text).map_err(|e| Failure::argument(format!("memory: {e}")))?;
                settings.memory = Some((text, bytes));
            }
            "threads" => {
                let text = value.text(key)?;
                let threads = text.parse().ok().filter(|threads| *threads > 0);
                let wrong = || Failure::argument(format!("threads: {text:?} is no number of threads; give 1 or more"));
                settings.threads = Some(threads.ok_or_else(wrong)?);
            }
            _ => return Err(unknown("database", key, &KNOWN)),
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Result<Value> {
        let settings = lock(&self.settings);
        let value = match key {
            "uri" | "path" => settings.path.as_ref().map(|path| Value::Text(path.to_string_lossy().into_owned())),
            "create" => Some(settings.create.into()),
            "memory" => settings.memory.as_ref().map(|(text, _)| Value::Text(text.clone())),
            "threads" => settings.threads.and_then(|threads| i64::try_from(threads).ok()).map(Value::Int),
            _ => None,
        };
        value.ok_or_else(|| missing("database", key))
    }
}

impl Database {
    /// Opens it: `AdbcDatabaseInit`.
    pub(crate) fn init(&self) -> Result<()> {
        let mut open = lock(&self.open);
        if open.is_some() {
            return Err(Failure::state("the database is open"));
        }
        let settings = lock(&self.settings).clone();
        if let (Some(path), true) = (&settings.path, settings.create) {
            std::fs::create_dir_all(path)
                .map_err(|e| Failure::from(plinth_sql::SqlError::from(e)).named(&path.display()))?;
        }
        let objects = ObjectStoresOptions::of_user();
        let mut options = SessionOptions { db: settings.path, objects, ..SessionOptions::default() };
        if let Some((_, bytes)) = settings.memory {
            options.memory = bytes;
        }
        options.threads = settings.threads.unwrap_or(options.threads);
        let tables = options.db.as_deref().map(tables_of);
        if let Some(tables) = &tables {
            options.tables = OpenTables::clone(tables);
        }
        let runtime = start_runtime(options.threads)?;
        let shared = Shared {
            options,
            in_memory: Mutex::default(),
            tables: Mutex::new(tables),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            process: std::process::id(),
        };
        // What is wrong with the folder is told now.
        shared.engine()?;
        *open = Some(Arc::new(shared));
        Ok(())
    }

    pub(crate) fn shared(&self) -> Result<Arc<Shared>> {
        lock(&self.open).clone().ok_or_else(|| Failure::state("the database is not open: call AdbcDatabaseInit before"))
    }
}

impl Shared {
    /// A session for a connection.
    pub(crate) fn engine(&self) -> Result<Arc<Engine>> {
        self.check_process()?;
        let mut in_memory = lock(&self.in_memory);
        if let Some(engine) = in_memory.as_ref() {
            return Ok(Arc::clone(engine));
        }
        let session = Session::new(&self.options)?;
        let catalog = session.context().catalog("datafusion");
        let catalog = catalog.ok_or_else(|| Failure::internal("the session has no catalog"))?;
        catalog.register_schema(SCHEMA, Arc::new(datafusion::catalog::MemorySchemaProvider::new()))?;
        let engine = Arc::new(Engine::new(Arc::new(session), self.handle.clone()));
        if self.options.db.is_none() {
            *in_memory = Some(Arc::clone(&engine));
        }
        Ok(engine)
    }

    /// Whether tables are in memory, where there are no transactions.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.options.db.is_none()
    }

    /// Fails in a process that was forked.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Failure::state(
            "the process was forked, and the database's threads were not: open it again in the new process",
        ))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let (runtime, tables) = (lock(&self.runtime).take(), lock(&self.tables).take());
        let in_memory = lock(&self.in_memory).take();
        if self.process != std::process::id() {
            // Their threads are in another process.
            std::mem::forget((runtime, tables, in_memory));
            return;
        }
        drop((in_memory, tables));
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}
