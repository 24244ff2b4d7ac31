//! Bytes to and from devices: positioned reads, files that appear whole or not at all, scratch space; and how much memory
//! all this may take.
//!
//! A reader hands over all the ranges it wants next ([`Source::read`]); a writer fills an [`AtomicFile`]. Nothing here
//! knows what the bytes mean.

mod arena;
mod atomic;
mod budget;
mod cache;
mod descriptors;
mod engine;
mod error;
#[cfg(any(test, feature = "sim"))]
mod full;
mod machine;
mod merged;
pub mod objects;
mod options;
mod positioned;
mod reading;
pub mod regular;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod slab;
mod source;
mod spool;
mod storage;
mod workers;

pub use arena::{Held, Priority};
pub use atomic::{AtomicFile, TEMPORARY_SUFFIX, remove_leftovers, swap_folders, sync_folder};
pub use budget::{MemoryBudget, OutOfMemory, Reclaim, Reservation, Usage, Zeroed};
pub use cache::{BlockCache, BlockKey};
pub use descriptors::Identity;
pub use engine::{Io, IoCounters, Request};
pub use error::{IoError, Result};
pub use machine::default_memory;
pub use merged::Merged;
pub use objects::{Object, Objects, Version};
pub use options::{DeviceKnee, IoMode, IoOptions};
pub use positioned::{read_exact_at, write_all_at};
pub use reading::{BackingStore, Reading, Reply};
#[cfg(target_os = "linux")]
pub use ring::{Direction, Features, Ring, Transfer};
pub use slab::{Extent, HUGE_PAGE, PAGE, Slab, mapped_bytes, whole_pages};
pub use source::{LocalFile, MemorySource, Prefetch, Source};
pub use spool::Spool;
pub use storage::{Append, Folder, Output, Storage, StorageFile};
