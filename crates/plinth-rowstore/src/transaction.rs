//! Transactions: several changes at once, against one version of the table.
//!
//! A transaction reads the table as it was when it began, with its own changes. It commits only if no row that it writes was
//! written by another that committed since: the first committer wins. That is snapshot isolation: of two transactions
//! that each read what the other writes, and write other rows, both may commit (write skew).

use std::collections::{BTreeMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;

use crate::commit::WriteSet;
use crate::engine::Committed;
use crate::error::{Result, TableError, arrow};
use crate::key::{Key, Keys, hash};
use crate::lookup::{Claims, Step};
use crate::snapshot::{MultiGet, Rows, Snapshot};
use crate::table::Table;
use crate::version::Version;

/// An open transaction. Dropped, it has changed nothing.
#[derive(Debug)]
pub struct Transaction<'a> {
    table: Of<'a>,
    snapshot: Snapshot,
    changes: BTreeMap<Vec<u8>, Change>,
    batches: Vec<RecordBatch>,
    /// What the keys that are changed now were to become before, if that may have to be restored.
    before: Option<Vec<(Vec<u8>, Option<Change>)>>,
    marks: Vec<Mark>,
    /// What it holds of the values of unique indexes; nothing if that is to be found out anew.
    claims: Option<Claims>,
}

/// A state that a transaction can go back to.
#[derive(Debug, Default)]
struct Mark {
    /// What keys that were changed since, until the next mark, were to become before.
    before: Vec<(Vec<u8>, Option<Change>)>,
    /// How many batches it had.
    batches: usize,
}

/// What becomes of a key: a row of a batch, or nothing.
type Change = Option<(usize, usize)>;

/// The table of a transaction.
#[derive(Debug)]
enum Of<'a> {
    Borrowed(&'a Table),
    Shared(Arc<Table>),
}

impl Deref for Of<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        match self {
            Self::Borrowed(table) => table,
            Self::Shared(table) => table,
        }
    }
}

/// All rows as a transaction sees them: those of a snapshot and its own.
#[derive(Clone, Debug)]
pub struct View {
    /// Rows of the table, without those that the transaction has replaced or removed.
    pub snapshot: Snapshot,
    /// Rows of the transaction, with the hidden number of each last if the table has no key.
    pub own: Option<RecordBatch>,
}

impl Table {
    /// As [`Table::begin`], for a transaction that keeps its table.
    pub fn begin_shared(self: &Arc<Self>) -> Transaction<'static> {
        Transaction::of(Of::Shared(Arc::clone(self)))
    }
}

impl Table {
    /// Begins a transaction.
    pub fn begin(&self) -> Transaction<'_> {
        Transaction::begin(self)
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn begin(table: &'a Table) -> Self {
        Self::of(Of::Borrowed(table))
    }

    fn of(table: Of<'a>) -> Self {
        let shared = Arc::clone(table.shared());
        let snapshot = Snapshot { version: shared.begin(), shared };
        Self {
            table,
            snapshot,
            changes: BTreeMap::new(),
            batches: Vec::new(),
            before: None,
            marks: Vec::new(),
            claims: None,
        }
    }

    /// Whether it has changed anything.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    fn set(&mut self, key: Vec<u8>, change: Change) {
        let before = match (&mut self.before, self.marks.last_mut()) {
            (Some(before), _) => before,
            (None, mark) => {
                self.claims = None;
                let Some(mark) = mark else {
                    self.changes.insert(key, change);
                    return;
                };
                &mut mark.before
            }
        };
        let old = self.changes.insert(key.clone(), change);
        before.push((key, old));
    }

    /// Marks the state that it has, to which [`Transaction::back_to`] goes back. Marks are counted from 0.
    pub fn mark(&mut self) {
        self.marks.push(Mark { before: Vec::new(), batches: self.batches.len() });
    }

    /// Takes back what was changed since a mark, which stays; those after it are gone.
    pub fn back_to(&mut self, mark: usize) {
        let Some(batches) = self.marks.get(mark).map(|mark| mark.batches) else { return };
        for later in self.marks.drain(mark..).rev() {
            restore(&mut self.changes, later.before);
        }
        self.batches.truncate(batches);
        self.claims = None;
        self.mark();
    }

    /// Forgets a mark and those after it; what was changed stays.
    pub fn unmark(&mut self, mark: usize) {
        let gone = self.marks.split_off(mark.min(self.marks.len()));
        if let Some(last) = self.marks.last_mut() {
            last.before.extend(gone.into_iter().flat_map(|mark| mark.before));
        }
    }

    /// Whether a row has a key, with the changes so far.
    fn has(&self, key: &[u8]) -> Result<bool> {
        match self.changes.get(key) {
            Some(change) => Ok(change.is_some()),
            None => Ok(self.snapshot.version.find(&self.snapshot.shared.columns, key, hash(key))?.is_some()),
        }
    }

    /// Makes several changes, all of them or, if one is an error, none.
    ///
    /// # Errors
    /// That of the change that failed.
    pub fn all_or_none<T, E>(&mut self, changes: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let outer = self.before.replace(Vec::new());
        let batches = self.batches.len();
        let result = changes(self);
        let before = std::mem::replace(&mut self.before, outer).unwrap_or_default();
        match (&result, self.before.as_mut().or(self.marks.last_mut().map(|mark| &mut mark.before))) {
            (Ok(_), Some(outer)) => outer.extend(before),
            (Ok(_), None) => {}
            (Err(_), _) => {
                restore(&mut self.changes, before);
                self.batches.truncate(batches);
                self.claims = None;
            }
        }
        result
    }

    /// As [`Transaction::all_or_none`]; that no two rows have the same values where an index says so is found out here, rather than
    /// by the commit, which knows of it from what others have committed meanwhile. `explain` makes an error of a table one of
    /// the caller's.
    ///
    /// # Errors
    /// That of the change that failed, or [`TableError::NotUnique`].
    pub fn statement<T, E>(
        &mut self,
        changes: impl FnOnce(&mut Self) -> Result<T, E>,
        explain: impl FnOnce(TableError) -> E,
    ) -> Result<T, E> {
        self.all_or_none(|transaction| {
            let done = changes(transaction)?;
            transaction.claim().map_err(explain)?;
            Ok(done)
        })
    }

    /// Checks the changes that may have to be taken back.
    fn claim(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.snapshot.shared);
        let indexes = shared.indexes.limiting();
        if indexes.is_empty() {
            return Ok(());
        }
        let known = self.claims.take().filter(|claims| claims.are_of(&indexes));
        let mut step = Step::default();
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        let mut change = |key: &[u8], old: Option<Change>| {
            match old {
                None => step.new.push(key),
                Some(row) => gone.extend(row),
            }
            come.extend(self.changes.get(key).copied().flatten());
        };
        let mut claims = match known {
            Some(claims) => {
                let mut seen = HashSet::new();
                for (key, old) in self.before.iter().flatten() {
                    if seen.insert(key) {
                        change(key, *old);
                    }
                }
                claims
            }
            None => {
                self.changes.keys().for_each(|key| change(key, None));
                Claims::default()
            }
        };
        (step.gone, step.come) = (self.pick(&gone)?, self.pick(&come)?);
        claims.step(&indexes, &self.snapshot.version, &shared.columns, shared.codec.schema(), &step)?;
        self.claims = Some(claims);
        Ok(())
    }

    /// Some of its rows, which are of few of its batches.
    fn pick(&self, rows: &[(usize, usize)]) -> Result<Option<RecordBatch>> {
        let mut used: Vec<usize> = rows.iter().map(|(batch, _)| *batch).collect();
        used.sort_unstable();
        used.dedup();
        let batches: Vec<&RecordBatch> = used.iter().filter_map(|batch| self.batches.get(*batch)).collect();
        let among = |batch| used.binary_search(batch).unwrap_or(usize::MAX);
        let rows: Vec<(usize, usize)> = rows.iter().map(|(batch, row)| (among(batch), *row)).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        interleave_record_batch(&batches, &rows).map(Some).map_err(arrow)
    }

    /// The table as it was when this began, without its changes.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The row with a key.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get(&self, key: impl Into<Key>) -> Result<Option<RecordBatch>> {
        let key = key.into();
        let shared = &self.snapshot.shared;
        match self.changes.get(&shared.columns.encode(&key)?) {
            None => self.snapshot.get(key),
            Some(None) => Ok(None),
            Some(&Some((batch, row))) => {
                self.batches.get(batch).map(|batch| shared.show(batch.slice(row, 1))).transpose()
            }
        }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If a row with one of the keys is there, or the rows do not fit the table.
    pub fn insert(&mut self, batch: &RecordBatch) -> Result<()> {
        self.put(batch, true)
    }

    /// Adds rows, in place of those that have their keys.
    ///
    /// # Errors
    /// If the rows do not fit the table.
    pub fn upsert(&mut self, batch: &RecordBatch) -> Result<()> {
        self.put(batch, false)
    }

    /// Adds those rows whose keys no row has, and says of each whether it was added. Of several rows with one key the first
    /// counts.
    ///
    /// # Errors
    /// If the rows do not fit the table, or a file can't be read.
    pub fn insert_new(&mut self, batch: &RecordBatch) -> Result<Vec<bool>> {
        let (batch, keys) = self.table.prepare(batch)?;
        let mut added = Vec::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            let new = !self.has(key)?;
            if new {
                self.set(key.to_vec(), Some((self.batches.len(), row)));
            }
            added.push(new);
        }
        self.batches.push(batch);
        Ok(added)
    }

    /// Adds rows; of those whose keys are there, `merge` makes the rows that take their place: of the rows that are there and
    /// the new ones with the same keys, in the same order. Says how many there were of these.
    ///
    /// # Errors
    /// [`TableError::Duplicate`] if two of the rows have the same key. If the rows do not fit the table, `merge` fails, or it
    /// gives rows of other keys.
    pub fn upsert_with(
        &mut self,
        batch: &RecordBatch,
        merge: impl FnOnce(&RecordBatch, &RecordBatch) -> Result<RecordBatch>,
    ) -> Result<usize> {
        let (batch, keys) = self.table.prepare(batch)?;
        let shared = Arc::clone(&self.snapshot.shared);
        let order = keys.order();
        if let Some(pair) = order.array_windows().find(|[a, b]| keys.get(*a) == keys.get(*b)) {
            return Err(TableError::Duplicate { key: shared.columns.show(keys.get(pair[0])) });
        }
        // The rows that are there: those of the snapshot as one batch, and those of this transaction.
        let (rows, found) = self.snapshot.version.multi_get(&shared.columns, &keys, shared.codec.schema())?;
        let (mut old, mut of, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (row, key) in keys.iter().enumerate() {
            let known = match self.changes.get(key) {
                Some(change) => *change,
                None => found.get(row).copied().flatten().map(|row| (self.batches.len(), row)),
            };
            match known {
                Some(place) => {
                    old.push(place);
                    of.push((0, row));
                }
                None => new.push(row),
            }
        }
        for row in new {
            self.set(keys.get(row).to_vec(), Some((self.batches.len(), row)));
        }
        let mut merged = None;
        if !old.is_empty() {
            let batches: Vec<&RecordBatch> = self.batches.iter().chain([&rows]).collect();
            let old = shared.show(interleave_record_batch(&batches, &old).map_err(arrow)?)?;
            let with = shared.show(interleave_record_batch(&[&batch], &of).map_err(arrow)?)?;
            let (rows, kept) = self.table.prepare(&merge(&old, &with)?)?;
            if kept.len() != of.len() || !kept.iter().zip(&of).all(|(kept, &(_, row))| kept == keys.get(row)) {
                return Err(TableError::invalid("rows of other keys in place of those that are there"));
            }
            merged = Some(rows);
        }
        self.batches.push(batch);
        if let Some(rows) = merged {
            for (row, &(_, of)) in of.iter().enumerate() {
                self.set(keys.get(of).to_vec(), Some((self.batches.len(), row)));
            }
            self.batches.push(rows);
        }
        Ok(of.len())
    }

    fn put(&mut self, batch: &RecordBatch, must_be_new: bool) -> Result<()> {
        let (batch, keys) = self.table.prepare(batch)?;
        let shared = &self.snapshot.shared;
        if must_be_new {
            let mut seen = HashSet::new();
            for key in keys.iter() {
                if self.has(key)? || !seen.insert(key) {
                    return Err(TableError::Duplicate { key: shared.columns.show(key) });
                }
            }
        }
        self.add(batch, &keys);
        Ok(())
    }

    fn add(&mut self, batch: RecordBatch, keys: &Keys) {
        for (row, key) in keys.iter().enumerate() {
            self.set(key.to_vec(), Some((self.batches.len(), row)));
        }
        self.batches.push(batch);
    }

    /// Removes the rows that have some keys: how many there were.
    ///
    /// # Errors
    /// If a key is none of the table's, or a file can't be read.
    pub fn delete(&mut self, keys: &[Key]) -> Result<u64> {
        let mut deleted = 0;
        for key in keys {
            let key = self.snapshot.shared.columns.encode(key)?;
            deleted += u64::from(self.remove(&key)?);
        }
        Ok(deleted)
    }

    /// Removes the rows with the keys whose parts are the rows of a batch, of the columns of the table's key or of the hidden
    /// number: how many there were.
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub fn delete_batch(&mut self, keys: &RecordBatch) -> Result<u64> {
        let arrays: Vec<_> = keys.columns().iter().collect();
        let mut deleted = 0;
        for key in self.snapshot.shared.columns.of_arrays(&arrays)?.iter() {
            deleted += u64::from(self.remove(key)?);
        }
        Ok(deleted)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let there = self.has(key)?;
        if there {
            self.set(key.to_vec(), None);
        }
        Ok(there)
    }

    /// The rows with the keys whose parts are the rows of a batch, with the changes of this transaction.
    ///
    /// # Errors
    /// As [`Snapshot::get_batch`].
    pub fn get_batch(&self, keys: &RecordBatch) -> Result<MultiGet> {
        let MultiGet { rows: others, mut found } = self.snapshot.get_batch(keys)?;
        if self.changes.is_empty() {
            return Ok(MultiGet { rows: others, found });
        }
        let shared = &self.snapshot.shared;
        let arrays: Vec<_> = keys.columns().iter().collect();
        let own = self.batches.iter().map(|batch| shared.show(batch.clone())).collect::<Result<Vec<_>>>()?;
        let batches: Vec<&RecordBatch> = std::iter::once(&others).chain(&own).collect();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for (key, place) in shared.columns.of_arrays(&arrays)?.iter().zip(&mut found) {
            let at = match self.changes.get(key) {
                None => place.map(|row| (0, row)),
                Some(change) => change.map(|(batch, row)| (batch + 1, row)),
            };
            *place = at.map(|at| {
                rows.push(at);
                rows.len() - 1
            });
        }
        let rows = match rows.is_empty() {
            true => RecordBatch::new_empty(others.schema()),
            false => interleave_record_batch(&batches, &rows).map_err(arrow)?,
        };
        Ok(MultiGet { rows, found })
    }

    /// All rows as this transaction sees them now.
    ///
    /// # Errors
    /// If a file can't be read.
    pub fn view(&self) -> Result<View> {
        if self.changes.is_empty() {
            return Ok(View { snapshot: self.snapshot.clone(), own: None });
        }
        let shared = &self.snapshot.shared;
        let mut version = Version::clone(&self.snapshot.version);
        for key in self.changes.keys() {
            if let Some(place) = version.find(&shared.columns, key, hash(key))? {
                version.delete(place);
            }
        }
        let snapshot = Snapshot { shared: Arc::clone(shared), version: Arc::new(version) };
        Ok(View { snapshot, own: self.rows()?.map(|(rows, _)| rows) })
    }

    /// All rows, with the changes of this transaction.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn scan(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let View { snapshot, own } = self.view()?;
        let own = own.map(|rows| self.snapshot.shared.show(rows));
        let others: Rows = snapshot.scan()?;
        Ok(others.chain(own))
    }

    /// The rows that come, and their keys.
    fn rows(&self) -> Result<Option<(RecordBatch, Keys)>> {
        let (mut rows, mut keys) = (Vec::new(), Keys::default());
        for (key, row) in &self.changes {
            if let Some(row) = row {
                rows.push(*row);
                keys.push(key);
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        Ok(Some((interleave_record_batch(&batches, &rows).map_err(arrow)?, keys)))
    }

    /// Makes the changes, all at once.
    ///
    /// # Errors
    /// [`TableError::Conflict`] if another transaction was first; then nothing is changed. Or as any commit.
    pub fn commit(self) -> Result<Committed> {
        if self.changes.is_empty() {
            return Ok(Committed::default());
        }
        let (rows, keys) = self.rows()?.map_or((None, Keys::default()), |(rows, keys)| (Some(rows), keys));
        let mut deletes = Keys::default();
        self.changes.iter().filter(|(_, row)| row.is_none()).for_each(|(key, _)| deletes.push(key));
        let snapshot = Some(self.snapshot.version.sequence);
        self.table.commit(WriteSet { snapshot, rows, keys, deletes, ..WriteSet::default() })
    }

    /// Forgets the changes.
    pub fn rollback(self) {}
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.snapshot.shared.end(self.snapshot.version.sequence);
    }
}

/// Gives keys back what they were to become before.
fn restore(changes: &mut BTreeMap<Vec<u8>, Change>, before: Vec<(Vec<u8>, Option<Change>)>) {
    for (key, old) in before.into_iter().rev() {
        match old {
            Some(old) => changes.insert(key, old),
            None => changes.remove(&key),
        };
    }
}
