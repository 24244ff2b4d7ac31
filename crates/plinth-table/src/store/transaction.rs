//! Transactions: several changes at once, against one version of the table.
//!
//! A transaction reads the table as it was when it began, with its own changes. It commits only if no row that it writes was
//! written by another that committed since: the first committer wins. That is snapshot isolation: of two transactions
//! that each read what the other writes, and write other rows, both may commit (write skew).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;

use super::commit::WriteSet;
use super::delta::arrow;
use super::engine::Committed;
use super::error::{Result, TableError};
use super::key::{Key, Keys, hash};
use super::snapshot::{Rows, Snapshot};
use super::table::Table;
use super::version::Version;

/// An open transaction. Dropped, it has changed nothing.
#[derive(Debug)]
pub struct Transaction<'a> {
    table: &'a Table,
    snapshot: Snapshot,
    /// What becomes of each key: a row of a batch, or nothing.
    changes: BTreeMap<Vec<u8>, Option<(usize, usize)>>,
    batches: Vec<RecordBatch>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn begin(table: &'a Table) -> Self {
        let shared = Arc::clone(table.shared());
        let snapshot = Snapshot { version: shared.begin(), shared };
        Self { table, snapshot, changes: BTreeMap::new(), batches: Vec::new() }
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

    fn put(&mut self, batch: &RecordBatch, must_be_new: bool) -> Result<()> {
        let (batch, keys) = self.table.prepare(batch)?;
        let shared = &self.snapshot.shared;
        if must_be_new {
            let mut seen = std::collections::HashSet::new();
            for key in keys.iter() {
                let there = match self.changes.get(key) {
                    Some(change) => change.is_some(),
                    None => self.snapshot.version.find(&shared.columns, key, hash(key))?.is_some(),
                };
                if there || !seen.insert(key) {
                    return Err(TableError::Duplicate { key: shared.columns.show(key) });
                }
            }
        }
        for (row, key) in keys.iter().enumerate() {
            self.changes.insert(key.to_vec(), Some((self.batches.len(), row)));
        }
        self.batches.push(batch);
        Ok(())
    }

    /// Removes the rows that have some keys: how many there were.
    ///
    /// # Errors
    /// If a key is none of the table's, or a file can't be read.
    pub fn delete(&mut self, keys: &[Key]) -> Result<u64> {
        let mut deleted = 0;
        for key in keys {
            let key = self.snapshot.shared.columns.encode(key)?;
            let there = match self.changes.get(&key) {
                Some(change) => change.is_some(),
                None => self.snapshot.version.find(&self.snapshot.shared.columns, &key, hash(&key))?.is_some(),
            };
            if there {
                self.changes.insert(key, None);
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// All rows, with the changes of this transaction.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    pub fn scan(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let shared = &self.snapshot.shared;
        let mut version = Version::clone(&self.snapshot.version);
        for key in self.changes.keys() {
            if let Some(place) = version.find(&shared.columns, key, hash(key))? {
                version.delete(place);
            }
        }
        let others: Rows = Snapshot { shared: Arc::clone(shared), version: Arc::new(version) }.scan()?;
        let own = self.rows()?.map(|(rows, _)| shared.show(rows));
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
