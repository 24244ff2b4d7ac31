//! What can go wrong, with the file and the page.

use plinth_io::IoError;

/// Why an index could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The operating system refused, or the file is too short.
    #[error(transparent)]
    Io(#[from] IoError),
    /// What was read is not what was written.
    #[error(
        "{file}: page {page} is damaged: {what}; remove the file and open its table for writing, which builds it again"
    )]
    Corrupt {
        /// The index's file.
        file: String,
        /// The page: its number in units of 4,096 bytes from the start of the file.
        page: u64,
        /// How that shows.
        what: String,
    },
    /// A page would have been written that no reader could use: a mistake in this program, not in the file.
    #[error(
        "{file}: page {page} was not written, as it would be damaged: {what}; this is a bug in Plinth, please report it"
    )]
    Internal {
        /// The index's file.
        file: String,
        /// The page: its number in units of 4,096 bytes from the start of the file.
        page: u64,
        /// How it would be damaged.
        what: String,
    },
    /// The file is no index, or one of another kind of keys.
    #[error("{file}: {what}")]
    Unsuitable {
        /// The file.
        file: String,
        /// What it is instead.
        what: String,
    },
    /// A key longer than an index takes.
    #[error("a key of {len} bytes cannot be indexed: the longest has {limit}", limit = crate::MAX_KEY)]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
    },
    /// Entries for a bulk build that do not ascend.
    #[error("entry {position} of a bulk build is not above the one before, or not above what the index holds")]
    OutOfOrder {
        /// Which entry, counted from 0.
        position: u64,
    },
    /// The device failed to make something durable: nothing that follows can be trusted to be.
    #[error(
        "{file}: an earlier sync failed, so nothing more is written; remove the file and open its table for writing, which builds it again"
    )]
    Failed {
        /// The index's file.
        file: String,
    },
    /// No memory for pages could be mapped.
    #[error("cannot map {bytes} bytes of memory for index pages: {reason}")]
    NoMemory {
        /// How many.
        bytes: u64,
        /// What the operating system says.
        reason: String,
    },
}

/// The result of this crate's operations.
pub type Result<T, E = IndexError> = std::result::Result<T, E>;
