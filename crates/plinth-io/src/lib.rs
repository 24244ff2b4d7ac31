//! Bytes to and from devices: positioned reads, files that appear whole or not at all, scratch space; and how much memory
//! all this may take.
//!
//! A reader hands over all the ranges it wants next ([`Source::read`]); a writer fills an [`AtomicFile`]. Nothing here
//! knows what the bytes mean.

mod atomic;
mod budget;
mod descriptors;
mod error;
mod machine;
mod source;
mod spool;

pub use atomic::{AtomicFile, TEMPORARY_SUFFIX, remove_leftovers, sync_folder};
pub use budget::{MemoryBudget, OutOfMemory, Reclaim, Reservation, Usage};
pub use descriptors::Identity;
pub use error::{IoError, Result};
pub use machine::default_memory;
pub use source::{LocalFile, MemorySource, Source};
pub use spool::Spool;
