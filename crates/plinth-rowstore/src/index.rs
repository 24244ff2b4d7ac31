//! Indexes: trees beside the rows that find them by other columns than those of the table's key.
//!
//! Each segment has a tree of its own for each index, in a file that is built with it and never changes; rows in memory have
//! trees in memory, to which commits add. A tree maps the values of the index's columns, as [key bytes](crate::key), to numbers
//! of rows, deleted ones too: what is there, a version knows. So an index needs no log, merges do not touch the entries of
//! other segments, each version of the table is found through the same trees, and a tree that is damaged or gone is built again
//! from the rows beside it.
//!
//! A row with a null in the first of the columns is in no tree: no value of that column finds it. Nulls in the others are part
//! of the key, behind all values, so that a row is found by the columns before them. No row with a null takes part in uniqueness.
//!
//! A tree whose damage shows when it is read is not asked again: the rows beside it are looked at instead, and who writes to the
//! table removes it and builds it again with the next merge ([`Care`]).

mod pages;
mod screen;
mod tree;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;
use plinth_core::sync::{lock, read, write};
use plinth_core::wire::checksum;
use plinth_index::Pool;
use plinth_io::{IoError, MemoryBudget};

use crate::error::{Result, TableError, arrow};
use crate::key::{KeyColumns, Keys};
pub(crate) use pages::StoredPages;
pub(crate) use screen::{NewFilter, Screen, Told};
pub(crate) use tree::{Span, Tree, just_above};

/// What an index is of.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// In its files' names; no other index of the table ever has it.
    pub(crate) number: u64,
    pub(crate) name: String,
    /// Whether two rows may not have the same values.
    pub(crate) unique: bool,
    pub(crate) columns: KeyColumns,
}

impl Definition {
    /// The keys of the rows of a batch of the table's columns, and for each which row it is of; those with a null in the first
    /// column are left out.
    pub(crate) fn keys(&self, batch: &RecordBatch) -> Result<(Keys, Vec<u32>)> {
        let columns: Vec<usize> = self.columns.positions().collect();
        self.keys_of(&batch.project(&columns).map_err(arrow)?)
    }

    /// The same of a batch of the index's columns.
    pub(crate) fn keys_of(&self, batch: &RecordBatch) -> Result<(Keys, Vec<u32>)> {
        let rows = u32::try_from(batch.num_rows()).map_err(|_| TableError::invalid("too many rows in a batch"))?;
        let nulls = batch.columns().first().and_then(|column| column.logical_nulls());
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            let arrays: Vec<_> = batch.columns().iter().collect();
            return Ok((self.columns.of_arrays(&arrays)?, (0..rows).collect()));
        };
        let there = BooleanArray::new(nulls.inner().clone(), None);
        let kept = filter_record_batch(batch, &there).map_err(arrow)?;
        let arrays: Vec<_> = kept.columns().iter().collect();
        Ok((self.columns.of_arrays(&arrays)?, (0..rows).filter(|&row| nulls.is_valid(row as usize)).collect()))
    }

    /// What the position of a segment's tree says: that it is of these rows, and that its keys are made of these columns, in this
    /// way. `seal` is the segment's.
    pub(crate) fn identity(&self, seal: u64) -> u64 {
        let columns = self.columns.positions().zip(self.columns.optional());
        let columns = columns.flat_map(|(position, optional)| [position as u64, u64::from(optional)]);
        let words: Vec<u8> = [seal, self.number].into_iter().chain(columns).flat_map(u64::to_le_bytes).collect();
        checksum(&words)
    }

    /// Values for people: `("a", "b") = (1, "x")`.
    pub(crate) fn show(&self, schema: &Schema, key: &[u8]) -> String {
        let fields = self.columns.positions().filter_map(|at| schema.fields().get(at));
        let names: Vec<String> = fields.map(|field| format!("{:?}", field.name())).collect();
        let names = if let [name] = names.as_slice() { name.clone() } else { format!("({})", names.join(", ")) };
        format!("{names} = {}", self.columns.show(key))
    }
}

/// The number of the trees of the table's own key, which segments without a filter have.
pub(crate) const KEY: u64 = 0;

/// The indexes of a table, and the memory for their pages.
#[derive(Debug)]
pub(crate) struct Indexes {
    /// The table's key, for segments that have a tree of it.
    pub(crate) key: Arc<Definition>,
    all: RwLock<Arc<Vec<Arc<Definition>>>>,
    /// Made with the first index.
    pool: Mutex<Option<Arc<Pool>>>,
    pub(crate) budget: Arc<MemoryBudget>,
    /// For the filters of trees.
    pub(crate) screens: Arc<MemoryBudget>,
    bytes: u64,
    care: Arc<Care>,
}

/// What becomes of trees that are found damaged.
#[derive(Debug, Default)]
pub(crate) struct Care {
    /// This process writes to the table: it removes their files, and builds them again.
    writes: AtomicBool,
    /// One was found since trees were built last.
    lost: AtomicBool,
}

impl Care {
    /// This process writes from now on.
    pub(crate) fn begin_to_write(&self) {
        self.writes.store(true, Relaxed);
    }

    /// The table is closed: others may write to its folder, or put another table in its place.
    pub(crate) fn end_to_write(&self) {
        self.writes.store(false, Relaxed);
    }

    /// Whether this process writes.
    pub(crate) fn is_writing(&self) -> bool {
        self.writes.load(Relaxed)
    }

    /// Notes that a tree was found damaged. Whether its file is to go.
    pub(crate) fn lose(&self) -> bool {
        self.lost.store(true, Relaxed);
        self.writes.load(Relaxed)
    }

    /// Whether trees are to be built again.
    pub(crate) fn is_lost(&self) -> bool {
        self.writes.load(Relaxed) && self.lost.load(Relaxed)
    }

    /// As [`Care::is_lost`]; those found damaged before will be.
    pub(crate) fn take_lost(&self) -> bool {
        self.writes.load(Relaxed) && self.lost.swap(false, Relaxed)
    }
}

/// Whether an error says that a tree is damaged, or cut short.
pub(crate) fn is_damage(error: &TableError) -> bool {
    use plinth_index::IndexError::{Corrupt, Io, Unsuitable};
    matches!(error, TableError::Index(Corrupt { .. } | Unsuitable { .. } | Io(IoError::PastEnd { .. })))
}

impl Indexes {
    /// With pages in so many bytes at most, filters in as many, and each in an eighth of the budget.
    pub(crate) fn new(key: &KeyColumns, all: Vec<Definition>, bytes: u64, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        let key = Definition { number: KEY, name: "key".to_owned(), unique: true, columns: key.clone() };
        let key = Arc::new(key);
        let all = RwLock::new(Arc::new(all.into_iter().map(Arc::new).collect()));
        let bytes = bytes.min(budget.limit() / 8);
        let screens = budget.within("filters of indexes", bytes);
        let budget = Arc::clone(budget);
        Arc::new(Self { key, all, pool: Mutex::default(), budget, screens, bytes, care: Arc::default() })
    }

    pub(crate) fn care(&self) -> &Arc<Care> {
        &self.care
    }

    /// As they are now.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<Definition>>> {
        Arc::clone(&read(&self.all))
    }

    /// The one of a name.
    pub(crate) fn named(&self, name: &str) -> Result<Arc<Definition>> {
        let all = self.all();
        let found = all.iter().find(|index| index.name == name);
        found.cloned().ok_or_else(|| TableError::invalid(format!("the table has no index {name:?}")))
    }

    /// Copies of them.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        self.all().iter().map(|index| Definition::clone(index)).collect()
    }

    pub(crate) fn add(&self, index: &Arc<Definition>) {
        let mut all = write(&self.all);
        Arc::make_mut(&mut all).push(Arc::clone(index));
    }

    pub(crate) fn remove(&self, number: u64) {
        let mut all = write(&self.all);
        Arc::make_mut(&mut all).retain(|index| index.number != number);
    }

    /// An empty tree in memory.
    pub(crate) fn tree_in_memory(&self, index: &Definition) -> Result<Tree> {
        Tree::in_memory(&self.pool()?, index.columns.width(), &format!("index {:?} of rows in memory", index.name))
    }

    pub(crate) fn pool(&self) -> Result<Arc<Pool>> {
        let mut pool = lock(&self.pool);
        if let Some(pool) = &*pool {
            return Ok(Arc::clone(pool));
        }
        let new = Pool::new(&self.budget, self.bytes)?;
        Ok(Arc::clone(pool.insert(new)))
    }
}

/// The trees of a part of the table, each with the number of its index.
#[derive(Debug, Default)]
pub(crate) struct Trees(RwLock<Vec<(u64, Arc<Tree>)>>);

impl Trees {
    pub(crate) fn get(&self, index: u64) -> Option<Arc<Tree>> {
        let trees = read(&self.0);
        trees.iter().find(|(number, _)| *number == index).map(|(_, tree)| Arc::clone(tree))
    }

    /// Puts a tree in the place of the one of its index, if there was one.
    pub(crate) fn put(&self, index: u64, tree: Tree) -> Arc<Tree> {
        let tree = Arc::new(tree);
        let mut trees = write(&self.0);
        trees.retain(|(number, _)| *number != index);
        trees.push((index, Arc::clone(&tree)));
        tree
    }

    pub(crate) fn remove(&self, index: u64) {
        write(&self.0).retain(|(number, _)| *number != index);
    }

    /// Takes this tree away, if it is the one of its index still. Whether it was.
    pub(crate) fn lose(&self, tree: &Arc<Tree>) -> bool {
        let mut trees = write(&self.0);
        let before = trees.len();
        trees.retain(|(_, known)| !Arc::ptr_eq(known, tree));
        trees.len() < before
    }

    /// The indexes that have one.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        read(&self.0).iter().map(|(number, _)| *number).collect()
    }
}

/// The name of a segment's file of an index.
pub(crate) fn file_name(segment: u64, index: u64) -> String {
    format!("_index-{segment:06}-{index:06}")
}

/// The numbers of the segment and of the index that a file belongs to.
pub(crate) fn numbers(name: &str) -> Option<(u64, u64)> {
    let (segment, index) = name.strip_prefix("_index-")?.split_once('-')?;
    Some((segment.parse().ok()?, index.parse().ok()?))
}
