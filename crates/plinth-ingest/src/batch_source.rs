//! What every reader of foreign files looks like to an import.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

use crate::error::Result;

/// Rows from outside, batch by batch, always in the same order for the same input.
pub trait BatchSource: Send {
    /// The value types of the columns. A batch may hold dictionary arrays of these types instead; all batches have these
    /// columns in this order.
    fn schema(&self) -> &SchemaRef;

    /// The next rows, or `None` after the last.
    ///
    /// # Errors
    /// If a file can't be read or a value does not fit; the message names the file.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>>;

    /// How much there is, as far as it is known before reading.
    fn totals(&self) -> Totals;

    /// How much of it the batches returned so far make up.
    fn position(&self) -> Position;

    /// The file that the last batch is of; `None` before the first.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Records left out so far because they could not be read, or kept without values that could not.
    fn rejects(&self) -> u64 {
        0
    }

    /// Keys that the columns lack and that were passed over so far, and how often.
    fn unknown_keys(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// Whether a column holds binaries.
    fn is_binary(&self, column: usize) -> bool {
        self.schema().fields().get(column).is_some_and(|f| matches!(f.data_type(), DataType::BinaryView))
    }
}

/// How much an input holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows.
    pub rows: Option<u64>,
    /// Bytes of the input files.
    pub bytes: Option<u64>,
    /// Input files.
    pub files: u64,
}

/// How far a reader has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Rows returned.
    pub rows: u64,
    /// Bytes of the input files that hold them (about; exact at the end).
    pub bytes: u64,
}
