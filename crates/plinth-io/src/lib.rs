//! Bytes to and from devices: positioned reads, files that appear whole or not at all, and the memory budget.
//!
//! A reader hands over all the ranges it wants next ([`Source::read`]); a writer fills an [`AtomicFile`]. Nothing here
//! knows what the bytes mean.

mod atomic;
mod budget;
mod error;
mod source;
mod spool;

pub use atomic::{AtomicFile, TEMPORARY_SUFFIX};
pub use budget::{MemoryBudget, Reservation};
pub use error::{IoError, Result};
pub use source::{LocalFile, MemorySource, Source};
pub use spool::Spool;
