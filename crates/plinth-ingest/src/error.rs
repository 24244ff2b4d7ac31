//! What can go wrong while reading foreign files.

use std::path::Path;
use std::sync::Arc;

/// A failure to find, open, unite or read input files: what, where, and what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// An input is not there.
    #[error("{path}: no such file or directory")]
    NotFound {
        /// The input.
        path: String,
    },
    /// A directory holds nothing to import.
    #[error("no Parquet files in {directory}")]
    NothingIn {
        /// The directory.
        directory: String,
    },
    /// A pattern matches nothing.
    #[error("{pattern}: the pattern matches no file")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A pattern is not one.
    #[error("{pattern}: not a pattern: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody here reads such files.
    #[error("{path}: can't import {}; known: {known}", if extension.is_empty() { "a file without an extension".to_owned() } else { format!(".{extension} files") })]
    UnknownExtension {
        /// The input.
        path: String,
        /// Its extension, without the dot.
        extension: String,
        /// The extensions that are known.
        known: String,
    },
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}")]
    Os {
        /// The file.
        path: String,
        /// What was being done.
        action: &'static str,
        /// The reason.
        source: Arc<std::io::Error>,
    },
    /// The file is not what its name says, or damaged.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// Two files disagree about a column.
    #[error(
        "column {column:?} is {first_type} in {first} but {second_type} in {second}: import them apart or convert one"
    )]
    Conflict {
        /// The column.
        column: String,
        /// Its type in the first file.
        first_type: String,
        /// The first file.
        first: String,
        /// Its type in the second file.
        second_type: String,
        /// The second file.
        second: String,
    },
    /// A file names two columns alike.
    #[error("{path}: column {column:?} occurs twice")]
    DuplicateColumn {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },
    /// A value does not fit the type it is to become.
    #[error("{path}: column {column:?}: {what}")]
    Value {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Which value, and what to do.
        what: String,
    },
}

/// The result of this crate's operations.
pub type Result<T, E = IngestError> = std::result::Result<T, E>;

impl IngestError {
    /// An operating-system error at a path.
    pub(crate) fn os(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::NotFound {
            return Self::NotFound { path: path.display().to_string() };
        }
        Self::Os { path: path.display().to_string(), action, source: Arc::new(source) }
    }

    /// A damaged file.
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.display().to_string(), what: what.into() }
    }
}
