//! What the metadata knows about a column without reading a block.

use plinth_encoding::expr::Scalar;

/// Whether a bound occurs among the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// It is the smallest or largest value itself.
    Exact,
    /// No value lies beyond it.
    Bound,
}

/// What the metadata knows about a column, over the whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// Null rows, exact.
    pub null_count: u64,
    /// Smallest non-null value in the column's physical terms (see [`Scalar`]); floats in total order.
    pub min: Option<(Scalar, Exactness)>,
    /// Largest.
    pub max: Option<(Scalar, Exactness)>,
    /// Distinct non-null values, where a file-wide dictionary knows it.
    pub distinct_count: Option<u64>,
    /// Bytes the column takes in the file.
    pub stored_bytes: u64,
    /// Bytes of its values in memory as Arrow arrays.
    pub value_bytes: u64,
}
