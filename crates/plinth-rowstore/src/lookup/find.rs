//! Rows are found by the values of an index's columns.

use std::collections::{HashMap, HashSet};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use plinth_format::Access;

use super::build::for_each_batch;
use crate::delta::Delta;
use crate::error::{Result, TableError, arrow};
use crate::index::{Definition, Span, Tree, just_above};
use crate::key::{Key, Keys};
use crate::segment::Live;
use crate::snapshot::Snapshot;
use crate::version::{Place, Version};

/// Blocks that are decoded, with all of their columns, for a few rows at most.
const BLOCKS: usize = 8;

/// An index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableIndex {
    /// Its name.
    pub name: String,
    /// The columns whose values it finds, in the order that entries are in.
    pub columns: Vec<String>,
    /// Whether no two rows have the same values. Rows with a null there do not count.
    pub unique: bool,
}

/// What has some of a version's rows.
pub(crate) enum Part<'v> {
    Segment(usize, &'v Live),
    Frozen(&'v Delta),
    Delta(&'v Delta),
}

/// What is called with a key and a place, until it says that it is enough.
type Each<'e> = &'e mut dyn FnMut(&[u8], Place) -> Result<bool>;

impl Part<'_> {
    pub(super) fn rows(&self) -> u64 {
        match self {
            Self::Segment(_, live) => live.segment.entry.rows,
            Self::Frozen(delta) | Self::Delta(delta) => u64::from(delta.rows),
        }
    }

    fn place(&self, row: u32) -> Option<Place> {
        match self {
            Self::Segment(i, live) => (!live.deletes.contains(row)).then_some(Place::Segment(*i, row)),
            Self::Frozen(delta) | Self::Delta(delta) if row >= delta.rows || delta.deletes.contains(row) => None,
            Self::Frozen(_) => Some(Place::Frozen(row)),
            Self::Delta(_) => Some(Place::Delta(row)),
        }
    }

    /// Asks the part's tree of an index, if there is one that is whole.
    fn ask(&self, index: &Definition, ask: impl FnOnce(&Tree) -> Result<()>) -> Result<bool> {
        match self {
            Self::Segment(_, live) => Ok(live.segment.ask(index.number, ask)?.is_some()),
            Self::Frozen(delta) | Self::Delta(delta) => match delta.trees.get(index.number) {
                Some(tree) => ask(&tree).map(|()| true),
                None => Ok(false),
            },
        }
    }

    /// The row that has a key, if the index is unique: the newest of those that have or had it is looked at first.
    pub(super) fn only(&self, index: &Definition, key: &[u8]) -> Result<Option<Place>> {
        let (mut found, span) = (None, Span::one(key));
        let back = |tree: &Tree| {
            tree.entries_back(&span, |_, row| {
                found = self.place(row);
                Ok(found.is_none())
            })
        };
        if !self.ask(index, back)? {
            found = None;
            self.without_a_tree(index, &span, 0, &mut |_, place| {
                found = Some(place);
                Ok(false)
            })?;
        }
        Ok(found)
    }

    /// The rows that are there with keys of a span, in their order.
    pub(super) fn entries(&self, index: &Definition, span: &Span, each: Each<'_>) -> Result<()> {
        let mut passed = 0;
        let asked = self.ask(index, |tree| {
            tree.entries(span, |key, row| {
                passed += 1;
                self.place(row).map_or(Ok(true), |place| each(key, place))
            })
        })?;
        if asked { Ok(()) } else { self.without_a_tree(index, span, passed, each) }
    }

    /// The same by a look at all rows, in the order that a tree has them in, but for so many first entries, which one has shown
    /// before it was found damaged.
    fn without_a_tree(&self, index: &Definition, span: &Span, passed: usize, each: Each<'_>) -> Result<()> {
        let (mut found, mut numbers) = (Keys::default(), Vec::new());
        let mut look = |first: u32, (keys, rows): (Keys, Vec<u32>)| {
            for (key, row) in keys.iter().zip(rows).filter(|(key, _)| span.contains(key)) {
                found.push(key);
                numbers.push(first + row);
            }
        };
        match self {
            // Its tree is damaged or another revision's.
            Self::Segment(_, live) => {
                for_each_batch(&live.segment, index, |first, batch| {
                    look(first, index.keys_of(batch)?);
                    Ok(())
                })?;
            }
            // The index was created after the version's last row had been merged.
            Self::Frozen(delta) | Self::Delta(delta) => {
                for (first, batch) in delta.batches() {
                    look(first, index.keys(batch)?);
                }
            }
        }
        for at in found.order().into_iter().skip(passed) {
            let Some(place) = numbers.get(at).and_then(|&row| self.place(row)) else { continue };
            if !each(found.get(at), place)? {
                break;
            }
        }
        Ok(())
    }
}

impl Version {
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let segments = self.segments.iter().enumerate().map(|(i, live)| Part::Segment(i, live));
        segments.chain(self.frozen.as_ref().map(Part::Frozen)).chain([Part::Delta(&self.delta)]).collect()
    }
}

impl Snapshot {
    /// The table's indexes, as they are now.
    pub fn indexes(&self) -> Vec<TableIndex> {
        let fields = self.shared.codec.schema().fields();
        let index = |index: &Definition| TableIndex {
            name: index.name.clone(),
            columns: index.columns.positions().filter_map(|at| Some(fields.get(at)?.name().clone())).collect(),
            unique: index.unique,
        };
        self.shared.indexes.all().iter().map(|definition| index(definition)).collect()
    }

    /// The rows that have some values in the columns of an index, or in the first of them: then whatever they have in the
    /// others, null too.
    ///
    /// # Errors
    /// If there is no such index, the values are none of its columns, or a file can't be read or is damaged.
    pub fn find(&self, index: &str, key: impl Into<Key>) -> Result<RecordBatch> {
        let key = key.into();
        self.find_range(index, &key..=&key)
    }

    /// The rows from some values of an index's columns to others, in their order. Values of only the first columns stand for
    /// all that begin so. A null stands behind all values of its column; rows with one in the first column are not among them.
    ///
    /// # Errors
    /// As [`Snapshot::find`].
    pub fn find_range<'k>(&self, index: &str, keys: impl RangeBounds<&'k Key>) -> Result<RecordBatch> {
        let index = self.shared.indexes.named(index)?;
        let from = match keys.start_bound() {
            Bound::Unbounded => Some(Vec::new()),
            Bound::Included(key) => Some(index.columns.encode_first(key)?),
            Bound::Excluded(key) => index.above(key)?,
        };
        let to = match keys.end_bound() {
            Bound::Unbounded => None,
            Bound::Included(key) => index.above(key)?,
            Bound::Excluded(key) => Some(index.columns.encode_first(key)?),
        };
        let mut found: Vec<(Vec<u8>, Place)> = Vec::new();
        if let Some(from) = from {
            let span = Span::new(from, to);
            for part in self.version.parts() {
                part.entries(&index, &span, &mut |key, place| {
                    found.push((key.to_vec(), place));
                    Ok(true)
                })?;
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        self.shared.show(self.rows_at(found.into_iter().map(|(_, place)| place))?)
    }

    /// The rows that have the values of a batch's only row in its columns, if these are an index's. `None` if no index has exactly
    /// these columns, if it would take more than a look into its trees, which may be damaged or not be there, if that finds more
    /// than `most` entries, or rows of more than [`BLOCKS`] blocks, and if the table is opened to be [scanned](Access::Scan).
    ///
    /// # Errors
    /// As [`Snapshot::find`].
    pub fn find_few(&self, values: &RecordBatch, most: usize) -> Result<Option<RecordBatch>> {
        let fields = self.shared.codec.schema().fields();
        let all = self.shared.indexes.all();
        let of = |index: &Definition| {
            let at = |position: usize| values.schema().index_of(fields.get(position)?.name()).ok();
            let columns: Option<Vec<usize>> = index.columns.positions().map(at).collect();
            columns.filter(|columns| columns.len() == values.num_columns())
        };
        let Some((index, columns)) = all.iter().find_map(|index| Some((index, of(index)?))) else { return Ok(None) };
        let (keys, _) = index.keys_of(&values.project(&columns).map_err(arrow)?)?;
        let places = match keys.len() {
            // A null is equal to nothing.
            1 if !index.columns.has_null(keys.get(0)) => self.few_places(index, &Span::one(keys.get(0)), most)?,
            _ => Some(Vec::new()),
        };
        let Some(places) = places else { return Ok(None) };
        self.shared.show(self.rows_at(places.into_iter())?).map(Some)
    }

    fn few_places(&self, index: &Definition, span: &Span, most: usize) -> Result<Option<Vec<Place>>> {
        let (mut places, mut blocks) = (Vec::new(), HashSet::new());
        for part in self.version.parts() {
            if let Part::Segment(_, live) = &part
                && live.segment.file.access() == Access::Scan
            {
                return Ok(None);
            }
            let mut found = Vec::new();
            let whole = part.ask(index, |tree| {
                tree.entries(span, |_, row| {
                    found.push(row);
                    Ok(places.len() + found.len() <= most)
                })
            })?;
            if places.len() + found.len() > most || (!whole && part.rows() > 0) {
                return Ok(None);
            }
            for row in found {
                let Some(place) = part.place(row) else { continue };
                if let Part::Segment(i, live) = &part {
                    blocks.insert((*i, live.segment.file.block_rows_at(row.into())?.start));
                }
                places.push(place);
            }
        }
        Ok((blocks.len() <= BLOCKS).then_some(places))
    }

    /// The rows at some places, in their order.
    fn rows_at(&self, places: impl Iterator<Item = Place>) -> Result<RecordBatch> {
        let (version, schema) = (&self.version, self.shared.codec.schema());
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut known: HashMap<(usize, u64), usize> = HashMap::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let gone = || TableError::invalid("a row that an index names is not there");
        for place in places {
            let in_memory = |delta: &Delta, of: usize, row: u32| {
                let (batch, at) = delta.place(row).ok_or_else(gone)?;
                Ok::<_, TableError>(((of, batch as u64), at, delta.batch(batch).cloned()))
            };
            let segments = version.segments.len();
            let (which, at, batch) = match place {
                Place::Delta(row) => in_memory(&version.delta, segments, row)?,
                Place::Frozen(row) => in_memory(version.frozen.as_ref().ok_or_else(gone)?, segments + 1, row)?,
                Place::Segment(i, row) => {
                    let live = version.segments.get(i).ok_or_else(gone)?;
                    let block = live.segment.block(&self.shared.columns, row.into())?;
                    let at = usize::try_from(u64::from(row) - block.rows.start).unwrap_or(usize::MAX);
                    ((i, block.rows.start), at, Some(block.batch.clone()))
                }
            };
            let batch = batch.ok_or_else(gone)?;
            let part = *known.entry(which).or_insert_with(|| {
                batches.push(batch);
                batches.len() - 1
            });
            rows.push((part, at));
        }
        match (rows.as_slice(), batches.as_slice()) {
            ([], _) => return Ok(RecordBatch::new_empty(Arc::clone(schema))),
            // One row is not copied.
            ([(_, at)], [batch]) => return Ok(batch.slice(*at, 1)),
            _ => {}
        }
        interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &rows).map_err(arrow)
    }
}

impl Definition {
    /// What is behind all keys that begin with some values; nothing if they are the last.
    pub(super) fn above(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let bytes = self.columns.encode_first(key)?;
        let whole = key.0.len() == self.columns.positions().count();
        Ok(if whole { Some(just_above(&bytes)) } else { behind(bytes) })
    }
}

/// The least bytes that are greater than all that begin with some; none if there are none.
pub(super) fn behind(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(bytes);
        }
    }
    None
}
