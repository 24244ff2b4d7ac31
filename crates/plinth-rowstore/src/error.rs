//! What can go wrong with a writable table.

use plinth_format::FormatError;
use plinth_io::IoError;

/// A failure to open, read or change a table: what, where, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A file can't be read or written, or is damaged; or rows do not fit the table.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A row with this key is there already.
    #[error("a row with the key {key} is there already; upsert replaces it")]
    Duplicate {
        /// The key, for people.
        key: String,
    },
    /// A row with these values is there already, and an index says that there may be one.
    #[error("a row with {key} is there already, and the index {index:?} is unique")]
    NotUnique {
        /// The index.
        index: String,
        /// The values, for people.
        key: String,
    },
    /// A file of an index can't be read or written, or is damaged; or a value is too long for one.
    #[error(transparent)]
    Index(#[from] plinth_index::IndexError),
    /// Another transaction that committed since this one began has written the same key.
    #[error("the key {key} was changed by another transaction since this one began; begin again")]
    Conflict {
        /// The key, for people.
        key: String,
    },
    /// Another process has the table open for writing.
    #[error("{path}: is open for writing in another process; open it for reading, or wait until that one is done")]
    InUse {
        /// The table's folder.
        path: String,
    },
    /// A write failed before, so it is unknown what would become of a further one.
    #[error("no more commits are taken since a write failed: {reason}; open the table again")]
    Stopped {
        /// What failed.
        reason: Box<TableError>,
    },
    /// The table is open for reading only.
    #[error("the table is open for reading only")]
    ReadOnly,
}

impl From<IoError> for TableError {
    fn from(error: IoError) -> Self {
        Self::Format(error.into())
    }
}

impl TableError {
    /// A damaged file of the table.
    pub(crate) fn corrupt(file: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Format(FormatError::Corrupt { file: file.into(), what: what.into() })
    }

    /// Whether the device is full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Format(FormatError::Io(error)) if error.is_full())
    }

    /// What the caller asked for does not fit.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Format(FormatError::InvalidArgument(what.into()))
    }
}

/// An error of Arrow: a caller learns what does not fit.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> TableError {
    use arrow_schema::ArrowError::{CastError, ComputeError, InvalidArgumentError, SchemaError};
    // What kind of error it is in another library says nothing to who reads it.
    TableError::invalid(match error {
        CastError(what) | ComputeError(what) | InvalidArgumentError(what) | SchemaError(what) => what,
        other => other.to_string(),
    })
}

/// The result of operations on a writable table.
pub type Result<T, E = TableError> = std::result::Result<T, E>;
