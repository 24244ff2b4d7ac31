//! What the executor needs of a file's columns. Plinth files implement it here; Parquet files from above.

use std::cell::Cell;
use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{Function, Path};
use plinth_encoding::postings::Codes;
use plinth_encoding::{Mask, Physical, ValueSet, ZoneMapResult};
use plinth_io::{Priority, Reading, Reservation};
use std::ops::Range;
use std::sync::Arc;

use super::totals::{ColumnTotal, TotalOf};
use crate::error::Result;

/// One output column of some rows.
#[derive(Clone, Debug)]
pub enum ScanColumn {
    /// Values.
    Arrow(ArrayRef),
    /// Ranks in the file's sorted dictionary: equal codes are equal values, and codes order as values do.
    Codes {
        /// One a row; anything where the row is null.
        ids: ScalarBuffer<u32>,
        /// Which rows are null.
        nulls: Option<NullBuffer>,
        /// What the codes mean.
        dictionary: Arc<Dictionary>,
    },
    /// Decimals of 128 bits that all fit 64, of scans that were asked for such ([`ScanBuilder::narrow`](crate::ScanBuilder::narrow)).
    Narrow {
        /// Unscaled, one a row; anything where the row is null.
        values: ScalarBuffer<i64>,
        /// Which rows are null.
        nulls: Option<NullBuffer>,
    },
}

/// A column the source has resolved.
pub type ColumnId = usize;

/// The same rows of every column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId {
    /// Row group.
    pub group: usize,
    /// Block of the row group.
    pub block: usize,
}

/// A predicate on one column.
#[derive(Clone, Debug)]
pub enum ColumnPredicate {
    /// Whether it is null.
    IsNull,
    /// Whether its value is one of a set.
    In(ValueSet),
    /// A function of this column alone.
    Function(Function),
}

/// A predicate on a column that a source has resolved, and what the source remembers of it from block to block.
#[derive(Debug)]
pub struct Leaf<S> {
    /// The column.
    pub column: ColumnId,
    /// What is asked of it.
    pub predicate: ColumnPredicate,
    /// What the source remembers.
    pub state: S,
}

impl<S: Default> Leaf<S> {
    /// Nothing is remembered yet.
    pub fn new(column: ColumnId, predicate: ColumnPredicate) -> Self {
        Self { column, predicate, state: S::default() }
    }

    /// One predicate for two that must both be true, if it is cheaper to ask: two bounds of a range.
    pub(super) fn both(&self, other: &Self) -> Option<Self> {
        match (&self.predicate, &other.predicate) {
            (ColumnPredicate::In(one), ColumnPredicate::In(two)) if self.column == other.column => {
                Some(Self::new(self.column, ColumnPredicate::In(one.of_both(two)?)))
            }
            _ => None,
        }
    }
}

/// Codes of each of a column's dictionaries, in the order of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnCodes(pub Vec<Codes>);

impl ColumnCodes {
    /// The codes that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a.and(b)).collect())
    }

    /// The codes that are in one or both.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a.or(b)).collect())
    }

    /// How many: a value that several dictionaries have is counted in each.
    pub fn len(&self) -> u64 {
        self.0.iter().map(Codes::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Codes::is_empty)
    }
}

/// Rows that postings gave.
#[derive(Debug)]
pub struct Located {
    /// Their numbers in the file, increasing.
    pub rows: Vec<u64>,
    /// Bytes of the lists.
    pub bytes: u64,
    /// What the numbers take of a budget.
    pub memory: Reservation,
}

/// Where a conjunct was answered on a block; of several parts the dearest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ran {
    /// On encoded values, or once per distinct value and then on codes.
    #[default]
    Encoded,
    /// On decoded values, by a comparison of ours.
    Decoded,
    /// On decoded values, by a function that is opaque to us.
    Residual,
}

/// The rows of a block that a predicate is asked about.
#[derive(Debug)]
pub struct Rows<'a> {
    /// The block.
    pub at: BlockId,
    /// Rows whose answers matter; others may have any, and their errors do not count.
    pub selection: &'a BooleanBuffer,
    /// Rows that may still come out of the scan, among them the selected ones: what has to be decoded is decoded for these, so
    /// that it never has to be again.
    pub scope: &'a BooleanBuffer,
    /// Whether only rows with the answer true stay in scope: others need not be decoded, nor told unknown from false.
    pub narrows: bool,
    ran: &'a Cell<Ran>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(at: BlockId, scope: &'a BooleanBuffer, narrows: bool, ran: &'a Cell<Ran>) -> Self {
        Self { at, selection: scope, scope, narrows, ran }
    }

    /// Some of these rows, as part of a question about all.
    #[must_use]
    pub fn only<'b>(&'b self, selection: &'b BooleanBuffer) -> Rows<'b> {
        Rows { at: self.at, selection, scope: self.scope, narrows: false, ran: self.ran }
    }

    /// Tells where the answer was found.
    pub fn ran(&self, place: Ran) {
        self.ran.set(self.ran.get().max(place));
    }
}

/// A file's columns, block by block. Blocks of one row group hold the same rows in every column.
///
/// The values of a block are decoded at most once: what a predicate needs is decoded for all rows that may still come out
/// ([`ColumnSource::decode_cached`]) and kept; [`ColumnSource::retain_selected`] keeps of it what the output needs; [`ColumnSource::decode`] takes
/// it from there.
pub trait ColumnSource: Debug + Send {
    /// What it remembers of a predicate on one column.
    type LeafState: Debug + Default + Send + Sync;

    /// Blocks under way.
    type Fetch: AsRef<Reading> + Debug + Send;

    /// Finds a column or struct field.
    ///
    /// # Errors
    /// If there is none.
    fn resolve(&mut self, path: &Path) -> Result<ColumnId>;

    /// As [`Source::bytes_a_wait`](plinth_io::Source::bytes_a_wait).
    fn bytes_a_wait(&self) -> u64 {
        0
    }

    /// Says once which columns come out.
    fn set_output(&mut self, output: &[ColumnId]);

    /// What people call a column.
    fn name(&self, column: ColumnId) -> &str;

    /// The physical type that a column's values are compared as.
    ///
    /// # Errors
    /// If they can't be compared with a constant.
    fn physical(&self, column: ColumnId) -> Result<Physical>;

    /// The codes of a column's dictionaries that stand for the values a predicate holds for, if their postings may be asked and it
    /// holds for no null.
    ///
    /// # Errors
    /// If a dictionary can't be read or is damaged.
    fn codes(&self, _leaf: &Leaf<Self::LeafState>) -> Result<Option<(ColumnId, ColumnCodes)>> {
        Ok(None)
    }

    /// About how many rows hold one of some codes, if they are to be read from postings and not looked for.
    ///
    /// # Errors
    /// If the postings' directory can't be read or is damaged.
    fn estimate_rows(&self, _column: ColumnId, _codes: &ColumnCodes, _groups: Range<usize>) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The rows of some row groups that hold one of some codes, as far as the groups are coded. `None` if there is no memory
    /// for them.
    ///
    /// # Errors
    /// If the postings can't be read or are damaged.
    fn locate(&self, _column: ColumnId, _codes: &ColumnCodes, _groups: Range<usize>) -> Result<Option<Located>> {
        Ok(None)
    }

    /// Whether postings know the rows of a row group.
    ///
    /// # Errors
    /// If there is no such row group, or the column's metadata can't be read.
    fn is_coded(&self, _column: ColumnId, _group: usize) -> Result<bool> {
        Ok(false)
    }

    /// Rows of the file before a block.
    ///
    /// # Errors
    /// If there is no such row group.
    fn first_row(&self, at: BlockId) -> Result<u64>;

    /// Rows of each block of a row group.
    ///
    /// # Errors
    /// If there is no such row group.
    fn block_rows(&self, group: usize) -> Result<Vec<usize>>;

    /// What metadata tells of a block's values of a column, if it is all that is wanted of them.
    ///
    /// # Errors
    /// If the metadata can't be read or is damaged.
    fn total(&self, _column: ColumnId, _of: &TotalOf, _at: BlockId) -> Result<Option<ColumnTotal>> {
        Ok(None)
    }

    /// The answers that a block's zone map leaves a predicate.
    ///
    /// # Errors
    /// If the column's metadata can't be read.
    fn zone_map_result(&self, leaf: &Leaf<Self::LeafState>, at: BlockId) -> Result<ZoneMapResult>;

    /// Bytes to read for a block of a column.
    ///
    /// # Errors
    /// If the column's metadata can't be read.
    fn size(&self, column: ColumnId, at: BlockId) -> Result<u64>;

    /// Starts to read blocks, all in one batch; what is already there is not read again. `None` if they were asked for
    /// ahead and there is no memory for that.
    ///
    /// # Errors
    /// If they can't be read.
    fn start(&self, wanted: &[(ColumnId, BlockId)], priority: Priority) -> Result<Option<Self::Fetch>>;

    /// Waits for what was started and takes it.
    ///
    /// # Errors
    /// If it can't be read or is damaged.
    fn finish(&mut self, fetch: Self::Fetch) -> Result<()>;

    /// Evaluates a predicate on a fetched block, on encoded data where that is possible, and tells where it ran.
    ///
    /// # Errors
    /// If the block is damaged, or the predicate fails on a selected row.
    fn evaluate(&mut self, leaf: &Leaf<Self::LeafState>, rows: &Rows<'_>) -> Result<Mask>;

    /// Decodes the rows of a scope (all without one) of a fetched block, and keeps them until the block is settled. Asked
    /// again, it gives those rows of what is kept.
    ///
    /// # Errors
    /// If the block is damaged.
    fn decode_cached(&mut self, column: ColumnId, at: BlockId, scope: Option<&BooleanBuffer>) -> Result<ScanColumn>;

    /// The most bytes that [`ColumnSource::retain_selected`] can leave of a fetched block's column.
    ///
    /// # Errors
    /// If the block is damaged.
    fn max_retained_bytes(&self, column: ColumnId, at: BlockId) -> Result<u64>;

    /// Predicates have been asked: of what is kept only the selected rows of output columns are still needed. Returns the bytes that
    /// stay, beyond those that were read; if the block is to `wait` for its turn, values of some rows must not hold what was
    /// read of all.
    ///
    /// # Errors
    /// If the block is damaged.
    fn retain_selected(&mut self, at: BlockId, selection: &BooleanBuffer, wait: bool) -> Result<u64>;

    /// The selected rows of a fetched block (all without a selection).
    ///
    /// # Errors
    /// If the block is damaged.
    fn decode(&mut self, column: ColumnId, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<ScanColumn>;

    /// A decoded column as values.
    ///
    /// # Errors
    /// If its dictionary is damaged.
    fn values(&self, column: ColumnId, decoded: ScanColumn) -> Result<ArrayRef>;

    /// Drops what is held of a block.
    fn release(&mut self, at: BlockId);
}
