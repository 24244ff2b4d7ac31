//! A segment's tree is built.
//!
//! Keys are gathered and sorted as far as there is memory for them: the first lot is appended, which fills pages; each of
//! the others is put in in its order, so that it goes through the tree once, from left to right.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use plinth_format::FormatError;
use plinth_index::Pool;
use plinth_io::{MemoryBudget, Storage};

use crate::error::{Result, TableError};
use crate::index::{Definition, Indexes, KEY, NewFilter, Screen, Span, StoredPages, Told, Tree, file_name};
use crate::key::{Keys, hash};
use crate::segment::Segment;

/// Bytes of keys that are sorted at once.
const LOT: u64 = 256 << 20;

/// Keys that wait to be sorted, and their rows.
#[derive(Default)]
struct Lot {
    keys: Keys,
    rows: Vec<u32>,
}

impl Indexes {
    /// Builds those trees of a segment that it does not have.
    pub(crate) fn complete(&self, storage: &Arc<dyn Storage>, segment: &Segment) -> Result<()> {
        self.of(segment).iter().try_for_each(|index| self.ensure(storage, segment, index))
    }

    /// Builds a segment's tree of one index, if it does not have it.
    pub(crate) fn ensure(&self, storage: &Arc<dyn Storage>, segment: &Segment, index: &Definition) -> Result<()> {
        match segment.trees.get(index.number) {
            Some(_) => Ok(()),
            None => self.build(storage, segment, index),
        }
    }

    /// Builds a segment's tree of one index.
    pub(crate) fn build(&self, storage: &Arc<dyn Storage>, segment: &Segment, index: &Definition) -> Result<()> {
        let name = file_name(segment.entry.number, index.number);
        // What a crash or damage has left.
        remove(&**storage, &name)?;
        let pool = self.pool()?;
        let built = write(&**storage, &name, &pool, &self.budget, segment, index);
        if built.is_err() {
            // What can't be removed now, the next to open the table removes.
            let _ = storage.remove(&name);
        }
        built?;
        segment.trees.put(index.number, self.open(&**storage, segment, index)?);
        Ok(())
    }

    /// Opens a segment's tree, if it is there, whole, and of this segment.
    pub(crate) fn open(&self, storage: &dyn Storage, segment: &Segment, index: &Definition) -> Result<Tree> {
        let name = file_name(segment.entry.number, index.number);
        let source = storage.source(&name)?;
        let pages = StoredPages::complete(storage, &name, &source);
        let tree = Tree::open(&self.pool()?, index.columns.width(), pages)?;
        let identity = index.identity(segment.entry.seal);
        if tree.position() != identity {
            let what = "is not this index of its segment; open the table for writing, which builds it again";
            return Err(TableError::corrupt(storage.path_of(&name), what));
        }
        Ok(tree.screened(Screen::new(source, identity, &self.screens, &self.budget)))
    }

    /// Checks a segment's trees, and tells of each what is wrong.
    pub(crate) fn verify(&self, storage: &Arc<dyn Storage>, segment: &Segment) -> Vec<Result<()>> {
        self.of(segment).iter().map(|index| self.verify_one(storage, segment, index)).collect()
    }

    /// Checks each page, and that each row that is to be found has its entry, and each entry its row.
    fn verify_one(&self, storage: &Arc<dyn Storage>, segment: &Segment, index: &Definition) -> Result<()> {
        let file = storage.path_of(&file_name(segment.entry.number, index.number));
        let wrong = |what: String| {
            TableError::corrupt(
                &*file,
                format!("{what}; remove the file, and open the table for writing to build it again"),
            )
        };
        let tree = match self.open(&**storage, segment, index) {
            Err(TableError::Format(FormatError::Io(error))) if error.is_not_found() => {
                return Err(TableError::corrupt(
                    &*file,
                    "is missing; open the table for writing, which builds it again",
                ));
            }
            other => other?,
        };
        tree.verify()?;
        let screen = tree.screen().map_or(Ok(Told::Nothing), Screen::read)?;
        if matches!(screen, Told::Damaged) {
            return Err(wrong("its filter is damaged".to_owned()));
        }
        let hides = |key: &[u8]| matches!(&screen, Told::Filter(filter) if !filter.may_have(hash(key)));
        let (mut expected, mut valued, mut hidden) = (Entries::default(), 0, None);
        for_each_batch(segment, index, |first, batch| {
            // Whatever keys are made of: these are the rows that a value of the first column finds.
            valued += batch.columns().first().map_or(0, |column| column.len() - column.logical_null_count()) as u64;
            let (keys, rows) = index.keys_of(batch)?;
            for (key, row) in keys.iter().zip(rows) {
                expected.add(key, first + row);
                hidden = hidden.or_else(|| hides(key).then_some(first + row));
            }
            Ok(())
        })?;
        if let Some(row) = hidden {
            return Err(wrong(format!("its filter does not have row {row}")));
        }
        let mut found = Entries::default();
        tree.entries(&Span::all(), |key, row| {
            found.add(key, row);
            Ok(true)
        })?;
        if found == expected && found.count == valued {
            return Ok(());
        }
        let lost = first_without_an_entry(segment, index, &tree)?;
        let lost = lost.map_or("an entry is of no row".to_owned(), |row| format!("row {row} has none"));
        Err(wrong(format!("has {} entries, which are not those of the {valued} rows: {lost}", found.count)))
    }

    /// Opens all trees of a segment that can be: those that can't are built again when the table is opened for writing.
    pub(crate) fn open_all(&self, storage: &dyn Storage, segment: &Segment) {
        for index in self.of(segment) {
            if let Ok(tree) = self.open(storage, segment, &index) {
                segment.trees.put(index.number, tree);
            }
        }
    }
}

/// Shows the columns of an index of all rows of a segment, batch by batch, each with the number of its first row.
pub(super) fn for_each_batch(
    segment: &Segment,
    index: &Definition,
    mut show: impl FnMut(u32, &RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut first = 0_u32;
    for batch in segment.scan(index.columns.positions())? {
        let batch = batch?;
        show(first, &batch)?;
        first += u32::try_from(batch.num_rows()).unwrap_or(0);
    }
    Ok(())
}

/// The first row of which a tree has no entry, if there is one.
fn first_without_an_entry(segment: &Segment, index: &Definition, tree: &Tree) -> Result<Option<u32>> {
    let mut lost = None;
    for_each_batch(segment, index, |first, batch| {
        let (keys, rows) = index.keys_of(batch)?;
        for (key, row) in keys.iter().zip(rows) {
            if lost.is_some() {
                break;
            }
            let mut there = false;
            tree.entries(&Span::one(key), |_, found| {
                there |= found == first + row;
                Ok(!there)
            })?;
            lost = (!there).then_some(first + row);
        }
        Ok(())
    })?;
    Ok(lost)
}

/// Entries in any order: how many, and the sum of their checksums.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entries {
    count: u64,
    sum: u64,
}

impl Entries {
    fn add(&mut self, key: &[u8], row: u32) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(twox_hash::XxHash3_64::oneshot_with_seed(row.into(), key));
    }
}

/// Removes a file if it is there.
fn remove(storage: &dyn Storage, name: &str) -> Result<()> {
    match storage.remove(name) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}

fn write(
    storage: &dyn Storage,
    name: &str,
    pool: &Arc<Pool>,
    budget: &Arc<MemoryBudget>,
    segment: &Segment,
    index: &Definition,
) -> Result<()> {
    let pages = StoredPages::create(storage, name)?;
    let tree = Tree::create(pool, index.columns.width(), pages.clone())?;
    // Sorting takes as much again.
    let most = LOT.min(budget.limit() / 16);
    let mut memory = budget.open("keys of an index that is built");
    let mut lot = Lot::default();
    // A segment has a tree of its key where there was no memory for a filter.
    let key = index.number == KEY;
    let mut filter = if key { NewFilter::none() } else { NewFilter::new(budget, segment.entry.rows) };
    for_each_batch(segment, index, |first, batch| {
        let (keys, rows) = index.keys_of(batch)?;
        for (key, row) in keys.iter().zip(rows) {
            filter.insert(key);
            lot.keys.push(key);
            lot.rows.push(first + row);
        }
        let bytes = (lot.keys.memory() + lot.rows.len() * 32) as u64;
        if bytes > most || memory.resize(bytes * 2).is_err() {
            std::mem::take(&mut lot).put(&tree)?;
            memory.shrink(u64::MAX);
        }
        Ok(())
    })?;
    lot.put(&tree)?;
    let identity = index.identity(segment.entry.seal);
    tree.checkpoint(identity)?;
    // The tree is whole without it, after a crash as on a device that is full.
    if let Some(ending) = filter.finish(identity) {
        let _ = pages.append(&ending.bytes);
    }
    Ok(storage.sync_names()?)
}

impl Lot {
    fn put(self, tree: &Tree) -> Result<()> {
        let Self { keys, rows } = self;
        let order = keys.in_order((0..u32::try_from(keys.len()).unwrap_or(u32::MAX)).collect());
        let mut sorted = order.iter().filter_map(|&at| Some((keys.get(at as usize), rows.get(at as usize).copied()?)));
        if tree.len() == 0 {
            return tree.append(sorted);
        }
        sorted.try_for_each(|(key, row)| tree.insert(key, row))
    }
}
