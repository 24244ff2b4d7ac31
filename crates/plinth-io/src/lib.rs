//! Bytes to and from devices: positioned reads, files that appear whole or not at all, scratch space.
//!
//! A reader hands over all the ranges it wants next ([`Source::read`]); a writer fills an [`AtomicFile`]. Nothing here
//! knows what the bytes mean.

mod atomic;
mod descriptors;
mod error;
mod source;
mod spool;

pub use atomic::{AtomicFile, TEMPORARY_SUFFIX, remove_leftovers, sync_folder};
pub use descriptors::Identity;
pub use error::{IoError, Result};
pub use source::{LocalFile, MemorySource, Source};
pub use spool::Spool;
