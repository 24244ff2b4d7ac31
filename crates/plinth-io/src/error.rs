//! An operating-system error with the file and the action it belongs to.

use std::path::Path;
use std::sync::Arc;

/// A failed operation on a file.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}")]
    Os {
        /// The file.
        path: String,
        /// What was being done, as a verb phrase: "open", "read 4096 bytes at 8192".
        action: String,
        /// The reason.
        source: Arc<std::io::Error>,
    },
    /// Something else than a regular file has the path of one.
    #[error("{path}: is {kind}, not a file")]
    NotAFile {
        /// Where it is.
        path: String,
        /// What it is, with its article.
        kind: &'static str,
    },
    /// A read went past the end: the file is shorter than the caller believes.
    #[error("{path}: {wanted} bytes at offset {offset} lie beyond its end at {len}: the file was cut short")]
    PastEnd {
        /// The file.
        path: String,
        /// Start of the read.
        offset: u64,
        /// Length of the read.
        wanted: u64,
        /// Length of the file.
        len: u64,
    },
    /// A file is complete and in place, but a crash of the machine may still take its name away.
    #[error("{path}: complete and in place, but a power failure now may lose it: {reason}")]
    Unsynced {
        /// The file.
        path: String,
        /// Why the folder could not be synced.
        reason: Arc<IoError>,
    },
    /// The thread that was to read has gone before it did.
    #[error("a read was given up: the I/O threads have ended")]
    Abandoned,
    /// The output is already there.
    #[error("{path}: already exists; give --replace to replace it")]
    Exists {
        /// The file.
        path: String,
    },
}

/// The result of this crate's operations.
pub type Result<T, E = IoError> = std::result::Result<T, E>;

impl IoError {
    /// An operating-system error at a path.
    pub fn os(path: impl AsRef<Path>, action: impl Into<String>, source: std::io::Error) -> Self {
        Self::Os { path: path.as_ref().display().to_string(), action: action.into(), source: Arc::new(source) }
    }

    /// Whether the error says that the file is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Os { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// Whether the error says that the device, or what the user may have of it, is full.
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Os { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}
