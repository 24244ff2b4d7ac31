//! The open tables of a session, its transaction, and what a statement sees.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::error::from_table;
use datafusion_common::{DataFusionError, Result, exec_err};
use plinth_core::sync::lock;
use plinth_rowstore::{Committed, Snapshot, Table, TableError, TableOptions, Transaction, View};

/// Files that changed so shortly before they were read may change again without showing it.
const CLOCK: Duration = Duration::from_millis(100);

/// The tables that are open for writing: of one session, or of several of a process, which then write to the same tables. Clones are
/// the same.
#[derive(Clone, Debug, Default)]
pub struct OpenTables(Arc<Mutex<HashMap<PathBuf, Arc<Table>>>>);

impl OpenTables {
    fn get(&self, folder: &Path) -> Option<Arc<Table>> {
        lock(&self.0).get(folder).map(Arc::clone)
    }

    /// A table, opened if it is not.
    fn open(&self, folder: &Path, options: &TableOptions) -> Result<Arc<Table>> {
        let mut tables = lock(&self.0);
        if let Some(table) = tables.get(folder) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Table::open(folder, options.clone()).map_err(from_table)?);
        tables.insert(folder.to_path_buf(), Arc::clone(&table));
        Ok(table)
    }

    fn remove(&self, folder: &Path) -> Option<Arc<Table>> {
        lock(&self.0).remove(folder)
    }

    /// Takes a table out, if it is there and nothing else holds it.
    ///
    /// # Errors
    /// If something does: it stays.
    fn take(&self, folder: &Path) -> Result<Option<Table>> {
        let mut tables = lock(&self.0);
        if tables.get(folder).is_some_and(|table| Arc::strong_count(table) > 1) {
            let table = folder.display();
            return exec_err!(
                "{table}: another session changes the table or has a transaction that saw it; try again when that has ended"
            );
        }
        Ok(tables.remove(folder).and_then(Arc::into_inner))
    }

    /// Those that nothing else holds.
    fn take_idle(&self) -> Vec<Table> {
        let mut tables = lock(&self.0);
        let idle: Vec<PathBuf> = tables
            .iter()
            .filter(|(_, table)| Arc::strong_count(table) == 1)
            .map(|(folder, _)| folder.clone())
            .collect();
        idle.iter().filter_map(|folder| tables.remove(folder).and_then(Arc::into_inner)).collect()
    }
}

/// The tables that a session has open. One that it has written to stays open for writing until [`Stores`] is dropped, and all that share
/// it; others are
/// read as they are when a statement begins, whichever process writes to them.
#[derive(Debug)]
pub struct Stores {
    options: TableOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writers: OpenTables,
    readers: HashMap<PathBuf, Reader>,
    /// What the statement that runs sees.
    views: HashMap<PathBuf, View>,
    transaction: Option<Open>,
}

/// A table that is open for reading.
#[derive(Debug)]
struct Reader {
    table: Arc<Table>,
    files: Vec<Looks>,
    opened: SystemTime,
}

/// A file's name, length and time of change.
type Looks = (OsString, u64, SystemTime);

/// A transaction over several statements.
#[derive(Debug, Default)]
struct Open {
    tables: HashMap<PathBuf, Seen>,
    /// The one that it changes.
    changed: Option<PathBuf>,
    /// The names of its savepoints, the first one first: each table has a mark for each.
    savepoints: Vec<String>,
    /// Held as long as it is open.
    kept: Kept,
}

/// Memory that was reserved for what a transaction holds.
#[derive(Default)]
struct Kept(Vec<Box<dyn Any + Send>>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kept").field(&self.0.len()).finish()
    }
}

/// A table as a transaction first saw it.
#[derive(Debug)]
enum Seen {
    Writable(Box<Transaction<'static>>),
    /// Another process has it open for writing.
    Readable(Snapshot),
}

impl Stores {
    /// None yet, to be opened with these options.
    pub fn new(options: TableOptions) -> Self {
        Self::sharing(options, OpenTables::default())
    }

    /// None yet, but those that others have open for writing.
    pub fn sharing(options: TableOptions, writers: OpenTables) -> Self {
        Self { options, state: Mutex::new(State { writers, ..State::default() }) }
    }

    /// How tables are opened.
    pub fn options(&self) -> &TableOptions {
        &self.options
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement begins: unless a transaction is open, it sees all tables as they are from here on.
    pub fn begin_statement(&self) {
        self.state().views.clear();
    }

    /// The rows of a folder's table that the statement that runs sees.
    ///
    /// # Errors
    /// If there is no table, or it can't be read.
    pub fn view(&self, folder: &Path) -> Result<View> {
        let mut state = self.state();
        if let Some(view) = state.views.get(folder) {
            return Ok(view.clone());
        }
        let view = match state.transaction {
            Some(_) => match state.seen(folder, &self.options)? {
                Seen::Writable(transaction) => transaction.view().map_err(from_table)?,
                Seen::Readable(snapshot) => View { snapshot: snapshot.clone(), own: None },
            },
            None => View { snapshot: state.table(folder, &self.options)?.snapshot(), own: None },
        };
        state.views.insert(folder.to_path_buf(), view.clone());
        Ok(view)
    }

    /// Whether a folder's table is open, for reading or for writing.
    pub fn has_open(&self, folder: &Path) -> bool {
        let state = self.state();
        state.readers.contains_key(folder) || state.writers.get(folder).is_some()
    }

    /// Begins to change a folder's table: what the statement sees of it from here on is what the changes are checked against.
    ///
    /// # Errors
    /// If another process writes to it, or the transaction that is open has changed another table.
    pub fn write(self: &Arc<Self>, folder: &Path) -> Result<Writing> {
        let mut state = self.state();
        let Some(open) = &state.transaction else {
            let transaction = state.writer(folder, &self.options)?.begin_shared();
            let view = View { snapshot: transaction.snapshot().clone(), own: None };
            state.views.insert(folder.to_path_buf(), view);
            return Ok(Writing { stores: Arc::clone(self), folder: folder.to_path_buf(), own: Some(transaction) });
        };
        if let Some(other) = open.changed.as_ref().filter(|other| other.as_path() != folder) {
            return exec_err!(
                "{}: this transaction has changed {}, and a transaction changes one table: COMMIT first",
                folder.display(),
                other.display()
            );
        }
        state.writable(folder, &self.options)?;
        Ok(Writing { stores: Arc::clone(self), folder: folder.to_path_buf(), own: None })
    }

    /// A folder's table, open for writing.
    ///
    /// # Errors
    /// If there is none, or another process writes to it.
    pub fn writer(&self, folder: &Path) -> Result<Arc<Table>> {
        self.state().writer(folder, &self.options)
    }

    /// Lets go of a table, so that its folder can be removed.
    ///
    /// # Errors
    /// If another session is changing it; if what was written can't be made durable.
    pub fn close(&self, folder: &Path) -> Result<()> {
        let mut state = self.state();
        state.views.remove(folder);
        state.readers.remove(folder);
        match state.writers.take(folder)? {
            Some(table) => table.close().map_err(from_table),
            None => Ok(()),
        }
    }

    /// Lets go of all tables, unless a transaction is open, so that other processes may write to them. Sessions that share them open
    /// them again.
    ///
    /// # Errors
    /// If what was written can't be made durable.
    pub fn release(&self) -> Result<()> {
        let mut state = self.state();
        if state.transaction.is_some() {
            return Ok(());
        }
        state.views.clear();
        state.writers.take_idle().into_iter().try_for_each(|table| table.close().map_err(from_table))
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.state().transaction.is_some()
    }

    /// BEGIN.
    ///
    /// # Errors
    /// If a transaction is open.
    pub fn begin(&self) -> Result<()> {
        let mut state = self.state();
        if state.transaction.is_some() {
            return exec_err!("BEGIN: a transaction is open already; COMMIT or ROLLBACK ends it");
        }
        state.transaction = Some(Open::default());
        Ok(())
    }

    /// COMMIT: all changes at once.
    ///
    /// # Errors
    /// If none is open; if another has changed the same rows since it began; if the log can't be written. Nothing is changed then.
    pub fn commit(&self) -> Result<()> {
        let mut state = self.state();
        let Some(open) = state.transaction.take() else { return exec_err!("COMMIT: no transaction is open") };
        state.views.clear();
        for (folder, seen) in open.tables {
            if let Seen::Writable(transaction) = seen {
                state.committed(&folder, transaction.commit())?;
            }
        }
        Ok(())
    }

    /// ROLLBACK: as if nothing had been.
    ///
    /// # Errors
    /// If none is open.
    pub fn rollback(&self) -> Result<()> {
        let mut state = self.state();
        state.views.clear();
        match state.transaction.take() {
            Some(_) => Ok(()),
            None => exec_err!("ROLLBACK: no transaction is open"),
        }
    }
}

/// Savepoints: states of the open transaction by name, of which the last with a name counts.
impl Stores {
    /// SAVEPOINT.
    ///
    /// # Errors
    /// If no transaction is open.
    pub fn savepoint(&self, name: &str) -> Result<()> {
        let mut state = self.state();
        let Some(open) = &mut state.transaction else {
            return exec_err!("SAVEPOINT {name}: no transaction is open; BEGIN begins one");
        };
        open.savepoints.push(name.to_owned());
        open.each(Transaction::mark);
        Ok(())
    }

    /// ROLLBACK TO: takes back what was changed since a savepoint, which stays.
    ///
    /// # Errors
    /// If no transaction is open, or it has no such savepoint.
    pub fn back_to(&self, name: &str) -> Result<()> {
        let mut state = self.state();
        state.views.clear();
        let Some(open) = &mut state.transaction else {
            return exec_err!("ROLLBACK TO {name}: no transaction is open");
        };
        let at = open.at(name)?;
        open.each(|transaction| transaction.back_to(at));
        open.savepoints.truncate(at + 1);
        let has_changes = |seen: &Seen| matches!(seen, Seen::Writable(transaction) if transaction.has_changes());
        if !open.changed.as_ref().and_then(|changed| open.tables.get(changed)).is_some_and(has_changes) {
            open.changed = None;
        }
        Ok(())
    }

    /// RELEASE: forgets a savepoint and those after it; what was changed stays.
    ///
    /// # Errors
    /// If no transaction is open, or it has no such savepoint.
    pub fn release_savepoint(&self, name: &str) -> Result<()> {
        let mut state = self.state();
        let Some(open) = &mut state.transaction else {
            return exec_err!("RELEASE {name}: no transaction is open");
        };
        let at = open.at(name)?;
        open.each(|transaction| transaction.unmark(at));
        open.savepoints.truncate(at);
        Ok(())
    }
}

impl Open {
    /// The number of a savepoint.
    fn at(&self, name: &str) -> Result<usize> {
        match self.savepoints.iter().rposition(|known| known == name) {
            Some(at) => Ok(at),
            None => exec_err!("{name}: the transaction has no savepoint of this name"),
        }
    }

    fn each(&mut self, mut change: impl FnMut(&mut Transaction<'static>)) {
        for seen in self.tables.values_mut() {
            if let Seen::Writable(transaction) = seen {
                change(transaction);
            }
        }
    }
}

impl State {
    /// A table to be read as it is now.
    fn table(&mut self, folder: &Path, options: &TableOptions) -> Result<Arc<Table>> {
        if let Some(table) = self.writers.get(folder) {
            return Ok(table);
        }
        let files = looks(folder)?;
        if let Some(reader) = self.readers.get(folder).filter(|reader| reader.is_current(&files)) {
            return Ok(Arc::clone(&reader.table));
        }
        let opened = SystemTime::now();
        let table = Arc::new(Table::open_read_only(folder, options.clone()).map_err(from_table)?);
        self.readers.insert(folder.to_path_buf(), Reader { table: Arc::clone(&table), files, opened });
        Ok(table)
    }

    fn writer(&mut self, folder: &Path, options: &TableOptions) -> Result<Arc<Table>> {
        let table = self.writers.open(folder, options)?;
        self.readers.remove(folder);
        Ok(table)
    }

    /// A table as the open transaction saw it first, which may be now.
    fn seen(&mut self, folder: &Path, options: &TableOptions) -> Result<&mut Seen> {
        let known = self.transaction.as_ref().is_some_and(|open| open.tables.contains_key(folder));
        let new = if known {
            None
        } else {
            Some(match self.writer(folder, options) {
                Ok(table) => Seen::Writable(Box::new(table.begin_shared())),
                Err(error) if is_in_use(&error) => Seen::Readable(self.table(folder, options)?.snapshot()),
                Err(error) => return Err(error),
            })
        };
        let open = self.transaction.get_or_insert_default();
        if let Some(mut new) = new {
            if let Seen::Writable(transaction) = &mut new {
                open.savepoints.iter().for_each(|_| transaction.mark());
            }
            open.tables.insert(folder.to_path_buf(), new);
        }
        let missing = || DataFusionError::Internal("a table that a transaction saw is gone".to_owned());
        open.tables.get_mut(folder).ok_or_else(missing)
    }

    /// The part of the open transaction that changes a table.
    fn writable(&mut self, folder: &Path, options: &TableOptions) -> Result<&mut Transaction<'static>> {
        match self.seen(folder, options)? {
            Seen::Writable(transaction) => Ok(transaction),
            Seen::Readable(_) => Err(from_table(TableError::InUse { path: folder.display().to_string() })),
        }
    }

    /// A table that takes no more commits is opened again by who wants it next.
    fn committed(&mut self, folder: &Path, result: plinth_rowstore::Result<Committed>) -> Result<Committed> {
        if let Err(TableError::Stopped { .. }) = &result {
            self.writers.remove(folder);
        }
        result.map_err(from_table)
    }
}

impl Reader {
    fn is_current(&self, files: &[Looks]) -> bool {
        let settled = |looks: &Looks| looks.2.checked_add(CLOCK).is_some_and(|changed| changed < self.opened);
        self.files == files && files.iter().all(settled)
    }
}

/// The files that change when a table does.
fn looks(folder: &Path) -> Result<Vec<Looks>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name == "_manifest" || name.starts_with("_log-")) {
            match entry.metadata() {
                Ok(looks) => files.push((name, looks.len(), looks.modified()?)),
                // Merged after its name was read.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Changes to one table by one statement.
#[derive(Debug)]
pub struct Writing {
    stores: Arc<Stores>,
    folder: PathBuf,
    /// Of a statement that is a transaction by itself.
    own: Option<Transaction<'static>>,
}

impl Writing {
    /// Whether a transaction is open that the changes are part of.
    pub fn is_part(&self) -> bool {
        self.own.is_none()
    }

    /// Looks at the table as the statement sees it.
    ///
    /// # Errors
    /// That of looking.
    pub fn read<T>(&self, look: impl FnOnce(&Transaction<'static>) -> Result<T>) -> Result<T> {
        match &self.own {
            Some(own) => look(own),
            None => look(self.stores.state().writable(&self.folder, &self.stores.options)?),
        }
    }

    /// Makes the changes, all or none; commits them unless a transaction is open, which keeps `memory` then. Waits for the device.
    ///
    /// # Errors
    /// That of a change, or of the commit.
    pub fn apply<T>(
        self,
        memory: impl Any + Send,
        changes: impl FnOnce(&mut Transaction<'static>) -> Result<T>,
    ) -> Result<T> {
        let Self { stores, folder, own } = self;
        let mut state = stores.state();
        state.views.remove(&folder);
        if let Some(mut own) = own {
            // Others may read meanwhile.
            drop(state);
            let done = changes(&mut own)?;
            let committed = own.commit();
            stores.state().committed(&folder, committed)?;
            return Ok(done);
        }
        let transaction = state.writable(&folder, &stores.options)?;
        let done = transaction.statement(changes, from_table)?;
        let changed = transaction.has_changes();
        if let (true, Some(open)) = (changed, &mut state.transaction) {
            open.changed = Some(folder);
            open.kept.0.push(Box::new(memory));
        }
        Ok(done)
    }
}

fn is_in_use(error: &DataFusionError) -> bool {
    matches!(error, DataFusionError::External(error) if matches!(error.downcast_ref(), Some(TableError::InUse { .. })))
}
