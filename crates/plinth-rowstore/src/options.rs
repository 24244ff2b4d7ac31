//! How a writable table is written and read.

use std::collections::BTreeMap;
use std::time::Duration;

use plinth_format::{OpenOptions, WriterOptions};

/// When a commit is said to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once it survives a power failure.
    #[default]
    Sync,
    /// At once; a power failure may take back the commits of so much time. They go in order, and whole.
    Group(Duration),
    /// At once; a power failure may take back commits since the last merge. A crash of the process takes none.
    None,
}

/// How a table is written and read.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// When a commit is said to be done (default: once it survives a power failure).
    pub durability: Durability,
    /// Columns by whose values rows of a table without a key are ordered in segments: said when it is created. They can't be
    /// null.
    pub cluster: Vec<String>,
    /// Texts by name that are kept beside the columns: said when the table is created. [`Table::notes`](crate::Table::notes) has them
    /// again; they mean nothing to the table.
    pub notes: BTreeMap<String, String>,
    /// Bytes of decoded blocks that are kept for point reads at most, as far as the memory budget has them (default 256 MiB).
    pub cache_bytes: u64,
    /// Bytes of pages of indexes in memory at most, and of their filters (default 256 MiB; at most an eighth of the memory budget).
    pub index_bytes: u64,
    /// Bytes of filters of keys at most (default 512 MiB; at most a sixteenth of the memory budget): segments that are written when
    /// there are as many have indexes of their keys instead.
    pub filter_bytes: u64,
    /// Rows in memory at which they are merged (default 1 Mi).
    pub merge_rows: u32,
    /// Bytes of rows in memory, or of the log, at which they are merged (default 128 MiB; at most an eighth of the memory budget).
    pub merge_bytes: u64,
    /// Rows beyond which a segment is not made larger by merges (default 32 Mi).
    pub segment_rows: u64,
    /// Bytes of rows that an import gathers for a segment (default 256 MiB).
    pub import_bytes: u64,
    /// Rows a second that merges write at most (default: no limit).
    pub merge_pace: Option<u64>,
    /// Whether a thread merges when it is time (default), or only [`Table::merge`] does.
    pub background: bool,
    /// Bytes that the log's file is made longer by, at most (default 16 MiB).
    pub log_step: u64,
    /// How segments are written.
    pub writer: WriterOptions,
    /// How segments are read.
    pub open: OpenOptions,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cluster: Vec::new(),
            notes: BTreeMap::new(),
            cache_bytes: 256 << 20,
            index_bytes: 256 << 20,
            filter_bytes: 512 << 20,
            merge_rows: 1 << 20,
            merge_bytes: 128 << 20,
            segment_rows: 32 << 20,
            import_bytes: 256 << 20,
            merge_pace: None,
            background: true,
            log_step: 16 << 20,
            writer: WriterOptions::default(),
            open: OpenOptions::default(),
        }
    }
}
