//! The row store: a [table](Table) that can be written to, rows beside columns.
//!
//! What is committed is in the [log] and in memory, as Arrow batches with an index of their keys ([`delta`]); a [merge] turns it
//! to a [segment]: a Plinth file in the order of the keys, and a file that finds keys in it. A row that goes is noted beside the
//! batch or the file that has it ([`deletes`]); to update a row is to delete it and to insert another. The [manifest] says
//! what there was when a log file began. An [index] finds rows by other columns, by a tree for each segment and for what is in
//! memory.
//!
//! ```text
//! write:  batch -> commit: log, synced -> version: delta + deletes -> merge: segment, manifest -> version
//! read:   version: delta, frozen delta, segments, each without what is deleted
//! ```
//!
//! All reading is of a [version], which never changes: a commit makes a new one, which shares with the last what it did not
//! touch. So readers wait for nothing but the change of one pointer, and what they read stays as long as they hold it.
//! One [engine] changes the table, for groups of commits at once ([`committer`]). FORMAT.md has the bytes.

mod batches;
mod cache;
mod commit;
mod committer;
mod deletes;
mod delta;
mod destroy;
mod engine;
mod error;
mod filter;
mod index;
mod init;
mod key;
mod log;
mod lookup;
mod maintenance;
mod manifest;
mod merge;
mod multi_get;
mod numbering;
mod open;
mod options;
mod position;
mod replace;
mod segment;
mod snapshot;
mod table;
mod transaction;
mod unasked;
mod verify;
mod version;

pub use engine::Committed;
pub use error::{Result, TableError};
pub use key::{Key, KeyPart};
pub use lookup::{Narrowed, TableIndex};
pub use options::{Durability, TableOptions};
pub use replace::Seen;
pub use snapshot::{MultiGet, Rows, SegmentRows, Snapshot};
pub use table::{ROW_NUMBER, Table};
pub use transaction::{Transaction, View};
pub use unasked::unasked_segments;
pub use verify::Verified;
