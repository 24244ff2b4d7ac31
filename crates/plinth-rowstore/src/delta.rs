//! Rows in memory: what was committed since the last merge.
//!
//! Rows are numbered as they come and lie in Arrow batches, which a scan hands out as they are. A commit adds a batch; small
//! batches become larger ones, eight at a time, so that few are left and each row is copied a few times at most. A version of
//! the table has a list of batches of its own, so what it reads never changes. The index from keys to rows is shared by all
//! versions: it is only added to, and knows for each row the one that had its key before, so that an older version finds the
//! row that it knows.

use std::sync::{Arc, RwLock};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use hashbrown::HashTable;
use plinth_core::sync::{read, write};
use plinth_encoding::text::{compact, compact_batch};
use plinth_io::{MemoryBudget, Reservation};

use crate::batches::memory;
use crate::deletes::Deletes;
use crate::error::{Result, TableError, arrow};
use crate::index::{Definition, Indexes, Tree, Trees};
use crate::key::{Keys, hash};

/// Batches of so many rows are not put together any more.
const LARGE: usize = 32 << 10;

/// How many small batches become a larger one.
const FAN: u32 = 3;

/// Keys put into the index before readers have their turn.
const TURN: usize = 256;

/// The rows as one version of the table sees them.
#[derive(Clone, Debug)]
pub(crate) struct Delta {
    index: Arc<RwLock<Index>>,
    /// Of the table's indexes; rows that versions of before do not know are in them, too.
    pub(crate) trees: Arc<Trees>,
    indexes: Arc<Indexes>,
    batches: Arc<Vec<Numbered>>,
    /// Rows of all batches.
    pub(crate) rows: u32,
    /// Bytes of all batches, more or less.
    pub(crate) bytes: u64,
    pub(crate) deletes: Deletes,
}

/// A batch and the number of its first row.
#[derive(Clone, Debug)]
struct Numbered {
    first: u32,
    batch: RecordBatch,
}

/// Where keys are, of all rows that were ever added.
#[derive(Debug)]
struct Index {
    /// The last row of each key.
    last: HashTable<u32>,
    /// For each row the one before it of the same key.
    before: Vec<u32>,
    keys: Keys,
    /// What all versions of these rows take. It is counted, not asked for: who ran out of memory merges rows, and can't do so
    /// without.
    memory: Reservation,
}

/// No row.
const NONE: u32 = u32::MAX;

impl Index {
    fn find(&self, key: &[u8], hash: u64) -> Option<u32> {
        self.last.find(hash, |&row| self.keys.get(row as usize) == key).copied()
    }

    fn push(&mut self, key: &[u8]) {
        let hash_of = hash(key);
        let row = u32::try_from(self.keys.len()).unwrap_or(NONE);
        let Self { last, keys, before, .. } = self;
        keys.push(key);
        let same = |&other: &u32| keys.get(other as usize) == key;
        match last.find_mut(hash_of, same) {
            Some(known) => before.push(std::mem::replace(known, row)),
            None => {
                before.push(NONE);
                last.insert_unique(hash_of, row, |&other| hash(keys.get(other as usize)));
            }
        }
    }
}

impl Delta {
    /// No rows.
    pub(crate) fn new(budget: &Arc<MemoryBudget>, indexes: &Arc<Indexes>) -> Self {
        let index = Index {
            last: HashTable::new(),
            before: Vec::new(),
            keys: Keys::default(),
            memory: budget.open("rows that wait to be merged"),
        };
        Self {
            index: Arc::new(RwLock::new(index)),
            trees: Arc::default(),
            indexes: Arc::clone(indexes),
            batches: Arc::default(),
            rows: 0,
            bytes: 0,
            deletes: Deletes::default(),
        }
    }

    /// The row that has a key, if one that is there does.
    pub(crate) fn find(&self, key: &[u8], hash: u64) -> Option<u32> {
        if self.rows == 0 {
            return None;
        }
        let index = read(&self.index);
        let mut row = index.find(key, hash)?;
        // The newest may have come after this version, or be deleted in it; then so it is with those before, but for the one
        // that was there.
        while row >= self.rows || self.deletes.contains(row) {
            row = index.before.get(row as usize).copied().filter(|&row| row != NONE)?;
        }
        Some(row)
    }

    /// Adds rows.
    pub(crate) fn push(&mut self, batch: &RecordBatch, keys: &Keys) -> Result<()> {
        let rows = u32::try_from(batch.num_rows()).ok().filter(|&rows| rows < NONE - self.rows);
        let Some(rows) = rows else { return Err(TableError::invalid("too many rows wait to be merged")) };
        let all: Vec<&[u8]> = keys.iter().collect();
        for some in all.chunks(TURN) {
            let mut index = write(&self.index);
            some.iter().for_each(|key| index.push(key));
        }
        let mut indexed = 0;
        for index in self.indexes.all().iter() {
            indexed += self.index_rows(index, self.rows, batch)?;
        }
        let batches = Arc::make_mut(&mut self.batches);
        batches.push(Numbered { first: self.rows, batch: own(batch)? });
        self.rows += rows;
        let bytes = indexed + memory(batch) + all.iter().map(|key| key.len() as u64 + 16).sum::<u64>();
        self.bytes += bytes;
        write(&self.index).memory.charge(bytes);
        gather(batches)
    }

    /// Puts rows into the tree of an index: bytes that takes.
    fn index_rows(&self, index: &Definition, first: u32, batch: &RecordBatch) -> Result<u64> {
        let tree = match self.trees.get(index.number) {
            Some(tree) => tree,
            None => self.trees.put(index.number, self.indexes.tree_in_memory(index)?),
        };
        fill(&tree, index, first, batch)
    }

    /// Puts all rows into the tree of a new index, which nothing asks before it is whole.
    pub(crate) fn add_index(&self, index: &Definition) -> Result<()> {
        let tree = self.indexes.tree_in_memory(index)?;
        let mut bytes = 0;
        for (first, batch) in self.batches() {
            bytes += fill(&tree, index, first, batch)?;
        }
        self.trees.put(index.number, tree);
        write(&self.index).memory.charge(bytes);
        Ok(())
    }

    /// One row, as a batch.
    pub(crate) fn row(&self, row: u32) -> Option<RecordBatch> {
        let (batch, row) = self.place(row)?;
        Some(self.batches.get(batch)?.batch.slice(row, 1))
    }

    /// Which batch has a row, and where in it.
    pub(crate) fn place(&self, row: u32) -> Option<(usize, usize)> {
        let batch = self.batches.partition_point(|batch| batch.first <= row).checked_sub(1)?;
        let known = self.batches.get(batch)?;
        let row = (row - known.first) as usize;
        (row < known.batch.num_rows()).then_some((batch, row))
    }

    /// One of the batches.
    pub(crate) fn batch(&self, batch: usize) -> Option<&RecordBatch> {
        self.batches.get(batch).map(|numbered| &numbered.batch)
    }

    /// The batches, each with the number of its first row.
    pub(crate) fn batches(&self) -> impl Iterator<Item = (u32, &RecordBatch)> {
        self.batches.iter().map(|numbered| (numbered.first, &numbered.batch))
    }

    /// The keys of all rows.
    pub(crate) fn keys(&self) -> Keys {
        read(&self.index).keys.clone()
    }

    /// All rows as one batch.
    pub(crate) fn whole(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        concat_batches(schema, self.batches.iter().map(|numbered| &numbered.batch)).map_err(arrow)
    }
}

/// Puts the rows of a batch, the first of which has a number, into a tree: bytes that takes.
fn fill(tree: &Tree, index: &Definition, first: u32, batch: &RecordBatch) -> Result<u64> {
    let (keys, rows) = index.keys(batch)?;
    for (key, row) in keys.iter().zip(rows) {
        tree.insert(key, first + row)?;
    }
    // Pages are about two thirds full.
    Ok((keys.memory() + keys.len() * size_of::<u64>()) as u64 * 3 / 2)
}

/// Puts the last batches together if there are enough that are no larger than the last.
fn gather(batches: &mut Vec<Numbered>) -> Result<()> {
    let level = |numbered: &Numbered| numbered.batch.num_rows().max(1).ilog2() / FAN;
    while let Some(last) = batches.last().filter(|last| last.batch.num_rows() < LARGE) {
        let (most, first) = (level(last), last.first);
        let small = batches.iter().rev().take_while(|numbered| level(numbered) <= most).count();
        if small < 1 << FAN {
            return Ok(());
        }
        let from = batches.len() - small;
        let tail = batches.split_off(from);
        let first = tail.first().map_or(first, |numbered| numbered.first);
        let Some(schema) = tail.first().map(|numbered| numbered.batch.schema()) else { return Ok(()) };
        let batch = concat_batches(&schema, tail.iter().map(|numbered| &numbered.batch)).map_err(arrow)?;
        batches.push(Numbered { first, batch: own(&batch)? });
    }
    Ok(())
}

/// Text in a buffer of its own: it must keep neither what it was cut from nor a buffer for each batch that it came in.
fn own(batch: &RecordBatch) -> Result<RecordBatch> {
    compact_batch(batch, compact).map_err(|error| TableError::invalid(error.to_string()))
}
