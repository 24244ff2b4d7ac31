//! A writable table, for those who use it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use plinth_core::sync::lock;
use plinth_format::RowCodec;
use plinth_io::{Folder, IoError, Storage, sync_folder};

use crate::batches::{column_of, memory};
use crate::cache::Blocks;
use crate::commit::WriteSet;
use crate::committer::Committer;
use crate::engine::{Committed, Engine, Shared};
use crate::error::{Result, TableError, arrow};
use crate::key::{Key, KeyColumns, Keys, hash};
use crate::maintenance::{Inner, Merging, Writer};
use crate::manifest::{self, Manifest};
use crate::open::{self, Opened};
use crate::options::{Durability, TableOptions};
use crate::position::{Known, Position};
use crate::snapshot::{MultiGet, Snapshot};
use crate::{index, log, merge, segment};

/// The hidden column of a table without a key: the number that each row was given.
pub const ROW_NUMBER: &str = "_row";

/// Held by the one that writes.
pub(super) const LOCK: &str = "_lock";

/// How often a reader begins again because the writer was faster.
pub(super) const ATTEMPTS: usize = 100;

/// A table that can be written to. Shared by reference between threads; one process writes, any number read.
#[derive(Debug)]
pub struct Table {
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
}

impl Table {
    /// Creates a table in a folder, which is created if it is missing. `key` names the columns of its primary key; without one,
    /// rows are given numbers, and are in the order of [`TableOptions::cluster`].
    ///
    /// # Errors
    /// If there is a table already, the columns can't be stored or be a key, or the folder can't be written to.
    pub fn create(path: impl AsRef<Path>, schema: &Schema, key: &[&str], options: TableOptions) -> Result<Self> {
        let path = path.as_ref();
        if !path.is_dir() {
            std::fs::create_dir_all(path).map_err(|e| IoError::os(path, "create", e))?;
            if let Some(parent) = path.canonicalize().ok().as_deref().and_then(Path::parent) {
                sync_folder(parent)?;
            }
        }
        let lock = lock_folder(path)?;
        let storage: Arc<dyn Storage> = Arc::new(Folder::new(path, &options.open.io));
        Self::create_locked(&storage, schema, key, options, Some(lock))
    }

    /// As [`Table::create`], on any storage; that no other process writes to it is the caller's concern.
    ///
    /// # Errors
    /// As [`Table::create`].
    pub fn create_in(storage: &Arc<dyn Storage>, schema: &Schema, key: &[&str], options: TableOptions) -> Result<Self> {
        Self::create_locked(storage, schema, key, options, None)
    }

    fn create_locked(
        storage: &Arc<dyn Storage>,
        schema: &Schema,
        key: &[&str],
        options: TableOptions,
        lock: Option<File>,
    ) -> Result<Self> {
        if Manifest::load(&**storage)?.is_some() {
            let what = format!("{}: there is a table already; open it", storage.path_of(manifest::NAME));
            return Err(TableError::invalid(what));
        }
        let mut fields = schema.fields().to_vec();
        let numbered = key.is_empty();
        if fields.iter().any(|field| field.name() == ROW_NUMBER) {
            return Err(TableError::invalid(format!("a column can't be named {ROW_NUMBER:?}")));
        }
        if numbered {
            fields.push(Arc::new(Field::new(ROW_NUMBER, DataType::UInt64, false)));
        }
        if !numbered && !options.cluster.is_empty() {
            return Err(TableError::invalid(
                "a table with a key is in the order of that key; cluster columns are for one without",
            ));
        }
        let named = key.iter().copied().chain(options.cluster.iter().map(String::as_str));
        let mut positions = named.map(|name| column_of(schema, name)).collect::<Result<Vec<_>>>()?;
        if numbered {
            positions.push(fields.len() - 1);
        }
        for &position in &positions {
            if let Some(field) = fields.get_mut(position) {
                *field = Arc::new(Field::clone(field).with_nullable(false));
            }
        }
        let codec = RowCodec::new(&Schema::new_with_metadata(fields, schema.metadata().clone()))?;
        KeyColumns::new(codec.schema(), &positions)?;
        // What a crash has left of an earlier attempt.
        for name in storage.list()? {
            if log::number(&name).is_some() || index::numbers(&name).is_some() || name.starts_with("_version-") {
                storage.remove(&name)?;
            }
        }
        let start = Position { file: 1, sequence: 1, previous: 0 };
        storage.create(&log::name(start.file))?.sync()?;
        let manifest = Manifest {
            codec,
            notes: options.notes.clone(),
            key: positions,
            numbered,
            next_row: 0,
            next_file: 2,
            log: start,
            segments: Vec::new(),
            indexes: Vec::new(),
        };
        let made = manifest.prepare(&**storage, 1);
        let made = made.and_then(|named| named.publish(&**storage, Known::beginning(start)));
        // A slot that is there in part would stand in the way of another attempt.
        made.inspect_err(|_| drop(storage.remove(manifest::NAME)))?;
        Self::open_locked(storage, options, lock)
    }

    /// Opens a table to read and to write.
    ///
    /// # Errors
    /// [`TableError::InUse`] if another process writes to it. If there is none, or it can't be read or is damaged.
    pub fn open(path: impl AsRef<Path>, options: TableOptions) -> Result<Self> {
        let path = path.as_ref();
        let storage: Arc<dyn Storage> = Arc::new(Folder::new(path, &options.open.io));
        if !Self::is_table(path) {
            let what = format!("{}: is no writable table; create one, or open it as a folder of files", path.display());
            return Err(TableError::invalid(what));
        }
        let lock = lock_folder(path)?;
        Self::open_locked(&storage, options, Some(lock))
    }

    /// As [`Table::open`], on any storage; that no other process writes to it is the caller's concern.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_in(storage: &Arc<dyn Storage>, options: TableOptions) -> Result<Self> {
        Self::open_locked(storage, options, None)
    }

    /// The name of the file that each writable table has.
    pub const MANIFEST: &str = manifest::NAME;

    /// Whether a folder has a writable table.
    pub fn is_table(path: impl AsRef<Path>) -> bool {
        path.as_ref().join(manifest::NAME).is_file()
    }

    fn open_locked(storage: &Arc<dyn Storage>, options: TableOptions, lock: Option<File>) -> Result<Self> {
        let blocks = Blocks::new(options.cache_bytes, options.open.io.budget());
        let opened = open::open(storage, blocks, &options)?;
        let log = open::go_on(&opened, options.log_step)?;
        open::tidy(&opened)?;
        let Opened { shared, log: replay, version } = opened;
        let first_log = replay.files.first().and_then(|name| log::number(name)).unwrap_or(0);
        let writer = Writer {
            committer: Committer::default(),
            engine: Mutex::new(Engine::new(Arc::clone(&shared), log)),
            merging: Mutex::new(Merging { version, first_log }),
            _lock: lock,
        };
        Self::start(shared, options, Some(writer))
    }

    /// Opens a table to read it as it is now, also while another process writes to it.
    ///
    /// # Errors
    /// If there is none, or it can't be read or is damaged.
    pub fn open_read_only(path: impl AsRef<Path>, options: TableOptions) -> Result<Self> {
        let storage: Arc<dyn Storage> = Arc::new(Folder::new(path.as_ref(), &options.open.io));
        let opened = Self::open_reading(&storage, &options)?;
        Self::start(opened.shared, options, None)
    }

    /// Reads what there is, also while another process writes to it.
    pub(crate) fn open_reading(storage: &Arc<dyn Storage>, options: &TableOptions) -> Result<Opened> {
        let blocks = Blocks::new(options.cache_bytes, options.open.io.budget());
        let mut attempt = 0;
        loop {
            // A file that is gone, or a frame that is not there yet, may be the writer's doing.
            match open::open(storage, Arc::clone(&blocks), options) {
                Err(error) if attempt >= ATTEMPTS => return Err(error),
                Err(error) => match storage.source(manifest::NAME) {
                    Ok(_) => std::thread::sleep(Duration::from_millis(1)),
                    Err(_) => return Err(error),
                },
                Ok(opened) => return Ok(opened),
            }
            attempt += 1;
        }
    }

    fn start(shared: Arc<Shared>, options: TableOptions, writer: Option<Writer>) -> Result<Self> {
        let writes = writer.is_some();
        let inner = Arc::new(Inner::new(shared, options, writer));
        let mut table = Self { inner, threads: Vec::new() };
        if writes && table.inner.options.background {
            table.spawn("plinth-merge", Inner::merge_when_told)?;
            table.inner.look_for_work();
        }
        if let (true, Durability::Group(bound)) = (writes, table.inner.options.durability) {
            table.spawn("plinth-sync", move |inner| inner.sync_every(bound))?;
        }
        Ok(table)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce(&Inner) + Send + 'static) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&inner));
        self.threads.push(thread.map_err(|e| IoError::os("a thread", "start", e))?);
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// The table's columns.
    pub fn schema(&self) -> SchemaRef {
        self.inner.shared.visible()
    }

    /// The texts beside its columns.
    pub fn notes(&self) -> Arc<BTreeMap<String, String>> {
        self.inner.shared.notes()
    }

    /// Puts other texts in the place of those beside its columns, durably.
    ///
    /// # Errors
    /// [`TableError::ReadOnly`] if it is not open for writing; if there are others than those `before`, or the manifest can't be
    /// written.
    pub fn set_notes(&self, before: &BTreeMap<String, String>, notes: BTreeMap<String, String>) -> Result<()> {
        self.inner.set_notes(before, notes)
    }

    /// The columns of its key; none of a table whose rows have numbers instead.
    pub fn key(&self) -> Vec<String> {
        let shared = &self.inner.shared;
        if shared.numbered {
            return Vec::new();
        }
        let names = shared.columns.positions().filter_map(|at| shared.codec.schema().fields().get(at));
        names.map(|field| field.name().clone()).collect()
    }

    /// The table as it is now.
    pub fn snapshot(&self) -> Snapshot {
        let shared = Arc::clone(&self.inner.shared);
        Snapshot { version: shared.current(), shared }
    }

    /// The row with a key, as a batch of one row.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get(&self, key: impl Into<Key>) -> Result<Option<RecordBatch>> {
        self.snapshot().get(key)
    }

    /// The rows with some keys.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get(&self, keys: &[Key]) -> Result<MultiGet> {
        self.snapshot().multi_get(keys)
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] if a row with one of the keys is there. If the rows do not fit the table, or the log can't be
    /// written.
    pub fn insert(&self, batch: &RecordBatch) -> Result<Committed> {
        let (rows, keys) = self.prepare(batch)?;
        if !self.inner.shared.numbered {
            let mut seen = std::collections::HashSet::new();
            if let Some(key) = keys.iter().find(|key| !seen.insert(*key)) {
                return Err(TableError::Duplicate { key: self.inner.shared.columns.show(key) });
            }
        }
        let must_be_new = !self.inner.shared.numbered;
        self.commit(WriteSet { rows: Some(rows), keys, must_be_new, ..WriteSet::default() })
    }

    /// Adds rows, in place of those that have their keys. Of several rows with one key the last counts.
    ///
    /// # Errors
    /// If the rows do not fit the table, or the log can't be written.
    pub fn upsert(&self, batch: &RecordBatch) -> Result<Committed> {
        let (rows, keys) = self.prepare(batch)?;
        let (rows, keys) = last_of_each(rows, keys)?;
        self.commit(WriteSet { rows: Some(rows), keys, ..WriteSet::default() })
    }

    /// Removes the rows that have some keys.
    ///
    /// # Errors
    /// If a key is none of the table's, or the log can't be written.
    pub fn delete(&self, keys: &[Key]) -> Result<Committed> {
        let mut encoded: Vec<Vec<u8>> =
            keys.iter().map(|key| self.inner.shared.columns.encode(key)).collect::<Result<_>>()?;
        encoded.sort_unstable();
        encoded.dedup();
        let mut deletes = Keys::default();
        encoded.iter().for_each(|key| deletes.push(key));
        self.commit(WriteSet { deletes, ..WriteSet::default() })
    }

    /// Adds those rows whose keys no row has, and says of each whether it was added. Of several rows with one key the first
    /// counts.
    ///
    /// # Errors
    /// If the rows do not fit the table, or the log can't be written.
    pub fn insert_new(&self, batch: &RecordBatch) -> Result<Vec<bool>> {
        loop {
            let mut change = self.begin();
            let added = change.insert_new(batch)?;
            match change.commit() {
                Ok(_) => return Ok(added),
                // Another was first with one of the keys: it is there now.
                Err(TableError::Conflict { .. }) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// Removes all rows, in one commit, and then the files that had them. Transactions that are open can't commit any more.
    ///
    /// # Errors
    /// If the log can't be written.
    pub fn truncate(&self) -> Result<Committed> {
        let committed = self.commit(WriteSet { all_go: true, ..WriteSet::default() })?;
        // The rows are gone, whatever becomes of the files: the next merge tries again, or says why it can't.
        let _ = self.merge();
        Ok(committed)
    }

    /// Brings rows to the table's columns, and tells their keys.
    pub(crate) fn prepare(&self, batch: &RecordBatch) -> Result<(RecordBatch, Keys)> {
        let shared = &self.inner.shared;
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        let mut fields = batch.schema().fields().to_vec();
        if shared.numbered {
            let rows = batch.num_rows() as u64;
            let first = shared.next_row.fetch_add(rows, Ordering::Relaxed);
            columns.push(Arc::new(UInt64Array::from_iter_values(first..first + rows)));
            fields.push(Arc::new(Field::new(ROW_NUMBER, DataType::UInt64, false)));
        }
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
        let rows = shared.codec.normalise(&batch.map_err(arrow)?)?;
        let keys = shared.columns.of(&rows)?;
        Ok((rows, keys))
    }

    pub(crate) fn commit(&self, set: WriteSet) -> Result<Committed> {
        let Some(writer) = &self.inner.writer else { return Err(TableError::ReadOnly) };
        let rows = set.rows.as_ref().map_or(0, RecordBatch::num_rows);
        if rows + set.deletes.len() + set.segments.len() == 0 && !set.all_go {
            return Ok(Committed::default());
        }
        self.inner.wait_for_room()?;
        let set = set.seal(&self.inner.shared.codec)?;
        let sync = self.inner.options.durability == Durability::Sync;
        let committed = writer.committer.commit(set, |sets| lock(&writer.engine).commit(sets, sync));
        self.inner.look_for_work();
        committed
    }

    /// Makes all commits durable, whatever [`TableOptions::durability`] promises.
    ///
    /// # Errors
    /// If the device refuses; then no further commits are taken.
    pub fn sync(&self) -> Result<()> {
        let Some(writer) = &self.inner.writer else { return Ok(()) };
        lock(&writer.engine).sync()
    }

    /// Adds many rows, all or none, straight to segments: only their names are logged.
    ///
    /// # Errors
    /// As [`Table::insert`]; [`TableError::Conflict`] if another has written one of the keys meanwhile.
    pub fn import(&self, batches: impl IntoIterator<Item = Result<RecordBatch>>) -> Result<Committed> {
        let shared = &self.inner.shared;
        // Holds on to what others write meanwhile.
        let transaction = self.begin();
        let before = transaction.snapshot().clone();
        let (mut waiting, mut bytes) = (Vec::new(), 0);
        let mut segments: Vec<Arc<segment::Segment>> = Vec::new();
        let mut write = |waiting: &mut Vec<RecordBatch>| -> Result<()> {
            let rows = concat_batches(shared.codec.schema(), waiting.iter()).map_err(arrow)?;
            waiting.clear();
            let keys = shared.columns.of(&rows)?;
            for key in keys.iter() {
                let hash = hash(key);
                let mut there = before.version.find(&shared.columns, key, hash)?.is_some();
                for segment in &segments {
                    there = there || segment.find(&shared.columns, key, hash)?.is_some();
                }
                if there {
                    return Err(TableError::Duplicate { key: shared.columns.show(key) });
                }
            }
            segments.extend(merge::write_rows(shared, &rows, &keys, &self.inner.output())?);
            Ok(())
        };
        let fill = || -> Result<()> {
            for batch in batches {
                let (rows, _) = self.prepare(&batch?)?;
                bytes += memory(&rows);
                waiting.push(rows);
                if bytes >= self.inner.options.import_bytes {
                    write(&mut waiting)?;
                    bytes = 0;
                }
            }
            if waiting.is_empty() { Ok(()) } else { write(&mut waiting) }
        };
        let filled = fill();
        let snapshot = Some(before.version.sequence);
        let set = WriteSet { snapshot, segments: segments.clone(), ..WriteSet::default() };
        let committed = filled.and_then(|()| self.commit(set));
        if committed.as_ref().is_err_and(|error| !matches!(error, TableError::Stopped { .. })) {
            segments.iter().for_each(|segment| segment.make_obsolete());
        }
        committed
    }

    /// Creates an index over some columns, by which [`Snapshot::find`] and queries find rows; if it is unique, no two rows may
    /// have the same values there, but for rows with a null among them. A row with a null in the first column is in no index. It is
    /// kept as rows come and go.
    ///
    /// # Errors
    /// [`TableError::NotUnique`] if two rows have the same values. If there is an index of this name, the columns can't be those
    /// of a key, or a file can't be written. Nothing is changed then.
    pub fn create_index(&self, name: &str, columns: &[&str], unique: bool) -> Result<()> {
        let schema = self.schema();
        let columns = columns.iter().map(|column| column_of(&schema, column)).collect::<Result<Vec<_>>>()?;
        self.inner.create_index(name, &columns, unique)
    }

    /// Takes an index away.
    ///
    /// # Errors
    /// If there is none of this name, or the manifest can't be written.
    pub fn drop_index(&self, name: &str) -> Result<()> {
        self.inner.drop_index(name)
    }

    /// Merges the rows in memory to a segment now, and with them the segments for which it is time.
    ///
    /// # Errors
    /// If a file can't be read or written. Nothing is lost then; if the manifest can't be written no further commits are taken.
    pub fn merge(&self) -> Result<()> {
        self.inner.merge(false)
    }

    /// Merges all rows to one segment.
    ///
    /// # Errors
    /// As [`Table::merge`].
    pub fn vacuum(&self) -> Result<()> {
        self.inner.merge(true)
    }

    /// Waits for the threads, makes all commits durable and says so in the log.
    ///
    /// # Errors
    /// If the device refuses, or had before.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.inner.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.inner.shared.indexes.care().end_to_write();
        match &self.inner.writer {
            Some(writer) => lock(&writer.engine).close(),
            None => Ok(()),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // Who wants to know closes it.
        let _ = self.end();
    }
}

/// Of rows with the same key only the last.
fn last_of_each(rows: RecordBatch, keys: Keys) -> Result<(RecordBatch, Keys)> {
    let mut last: HashMap<&[u8], usize> = HashMap::with_capacity(keys.len());
    for (row, key) in keys.iter().enumerate() {
        last.insert(key, row);
    }
    if last.len() == keys.len() {
        return Ok((rows, keys));
    }
    let mut kept: Vec<u32> = last.values().filter_map(|&row| u32::try_from(row).ok()).collect();
    kept.sort_unstable();
    let mut distinct = Keys::default();
    kept.iter().for_each(|&row| distinct.push(keys.get(row as usize)));
    Ok((take_record_batch(&rows, &UInt32Array::from(kept)).map_err(arrow)?, distinct))
}

pub(super) fn lock_folder(path: &Path) -> Result<File> {
    let name = path.join(LOCK);
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = plinth_io::regular::open_with(&name, "create", options)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TableError::InUse { path: path.display().to_string() }),
        Err(TryLockError::Error(e)) => Err(IoError::os(&name, "lock", e).into()),
    }
}
