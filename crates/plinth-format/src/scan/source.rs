//! What the executor needs of a file's columns. Plinth files implement it here; Parquet files from above.

use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use plinth_encoding::Mask;
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{CompareOp, Function, Path, Scalar};
use plinth_io::{Need, Reading};
use std::sync::Arc;

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

/// A predicate on a single column.
#[derive(Clone, Debug)]
pub enum LeafExpr {
    /// Against a constant.
    Compare(CompareOp, Scalar),
    /// Against a list of constants.
    In(Vec<Scalar>),
    /// Whether it is null.
    IsNull,
    /// A function of this column alone.
    Function(Function),
}

/// Which answers a predicate can have on some rows, judged without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Possible {
    /// Some row may be true.
    pub is_true: bool,
    /// Some row may be false.
    pub is_false: bool,
    /// Some row may be unknown.
    pub is_null: bool,
}

impl Possible {
    /// Nothing is ruled out.
    pub const ANYTHING: Self = Self { is_true: true, is_false: true, is_null: true };

    /// Whether every row is true.
    pub fn always_true(self) -> bool {
        self.is_true && !self.is_false && !self.is_null
    }
}

/// A file's columns, block by block. Blocks of one row group hold the same rows in every column.
pub trait ColumnSource: Debug + Send {
    /// A predicate on one column, prepared once a scan.
    type Leaf: Debug + Send + Sync;

    /// Blocks under way.
    type Fetch: AsRef<Reading> + Debug + Send;

    /// Finds a column or struct field.
    ///
    /// # Errors
    /// If there is none.
    fn resolve(&mut self, path: &Path) -> Result<ColumnId>;

    /// Prepares a predicate on a column.
    ///
    /// # Errors
    /// If the column can't be compared with the constant.
    fn prepare(&self, column: ColumnId, leaf: &LeafExpr) -> Result<Self::Leaf>;

    /// Rows of each block of a row group.
    ///
    /// # Errors
    /// If there is no such row group.
    fn block_rows(&self, group: usize) -> Result<Vec<usize>>;

    /// What a block's zone map says about a predicate.
    ///
    /// # Errors
    /// If the column's metadata can't be read.
    fn possible(&self, leaf: &Self::Leaf, at: BlockId) -> Result<Possible>;

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
    fn start(&self, wanted: &[(ColumnId, BlockId)], need: Need) -> Result<Option<Self::Fetch>>;

    /// Waits for what was started and takes it.
    ///
    /// # Errors
    /// If it can't be read or is damaged.
    fn finish(&mut self, fetch: Self::Fetch) -> Result<()>;

    /// Evaluates a predicate on a fetched block, on encoded data where that is possible. Rows outside `selection` may
    /// have any answer, and their errors do not count.
    ///
    /// # Errors
    /// If the block is damaged, or the predicate fails on a selected row.
    fn evaluate(&mut self, leaf: &Self::Leaf, at: BlockId, selection: &BooleanBuffer) -> Result<Mask>;

    /// Decodes the selected rows of a fetched block (all without a selection). What a predicate had to decode is not
    /// decoded again.
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
