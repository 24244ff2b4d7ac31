//! The two ways to find the rows that hold some values.

/// How rows that hold some values of a column are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// By what costs less.
    #[default]
    Auto,
    /// The codes of all rows are tested.
    Scan,
    /// Their numbers are read from the column's postings.
    Postings,
}
