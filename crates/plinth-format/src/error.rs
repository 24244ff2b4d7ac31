//! What can go wrong with a Plinth file.

use plinth_encoding::EncodingError;
use plinth_io::{IoError, OutOfMemory};

/// A failure to write, open or read a Plinth file: what, where, and what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The device or the file system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The bytes are not a Plinth file, or no longer the file that was written.
    #[error("{file}: {what}")]
    Corrupt {
        /// The file's name.
        file: String,
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// The file is whole, but this version can't read it.
    #[error("{file}: {what}")]
    Version {
        /// The file's name.
        file: String,
        /// Which version it has and what to do.
        what: String,
    },
    /// A column's type can't be stored.
    #[error("column {column:?}: {what}")]
    Unsupported {
        /// The column, as a dotted path.
        column: String,
        /// Its type and what to do.
        what: String,
    },
    /// The caller asked for something that does not exist or does not fit.
    #[error("{0}")]
    InvalidArgument(String),
    /// A predicate's function failed on a row that survives.
    #[error("{0}")]
    Function(String),
    /// The budget has not enough memory left.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Work was stopped because someone asked for it.
    #[error("cancelled")]
    Cancelled,
    /// A state that cannot be: a bug in Plinth.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

/// The result of this crate's operations.
pub type Result<T, E = FormatError> = std::result::Result<T, E>;

impl FormatError {
    /// Shorthand for [`FormatError::Internal`].
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal(what.into())
    }

    /// Puts an encoding error at a place in a file.
    pub fn at(file: &str, place: impl std::fmt::Display, error: EncodingError) -> Self {
        match error {
            EncodingError::Function(message) => Self::Function(message),
            // What the file layer reported to a decoder comes back as it was.
            EncodingError::Fetch(inner) if inner.is::<Self>() => {
                inner.downcast_ref::<Self>().cloned().unwrap_or(Self::Cancelled)
            }
            other => Self::Corrupt { file: file.to_owned(), what: format!("{place}: {other}") },
        }
    }
}
