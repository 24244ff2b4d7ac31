//! Key indexes: B+trees on buffer-managed pages, specialised by the type of the key.
//!
//! An [`Index`] maps keys to rows, uniquely or not, and may be far larger than memory. It is compiled for each kind of
//! [`Key`]: `i32`, `i64`, `u64`, `u128` (a UUID as a big-endian number) and [`Bytes`]. Any number of threads may read and
//! change it at the same time.
//!
//! ```
//! use plinth_index::{Index, MemoryPages, Options, Pool};
//! use plinth_io::MemoryBudget;
//!
//! let budget = MemoryBudget::new(64 << 20);
//! let pool = Pool::new(&budget, 16 << 20)?;
//! let index: Index<i64> = Index::create(&pool, MemoryPages::new("orders.id"), Options::default())?;
//! assert_eq!(index.insert(7, 100)?, None);
//! assert_eq!(index.insert(7, 200)?, Some(100), "there is a row of that key");
//! assert_eq!(index.get(7)?, Some(100));
//! let few: Vec<(i64, u64)> = index.range(5..10).collect::<Result<_, _>>()?;
//! assert_eq!(few, [(7, 100)]);
//! // What there is now, and how far the caller's log had been applied.
//! index.checkpoint(42)?;
//! # Ok::<(), plinth_index::IndexError>(())
//! ```
//!
//! # What lies where
//!
//! - [`Pool`] is memory for pages of any number of indexes: `pool`, over `region` (addresses) and `latch`.
//! - `page` is what all pages have in common, `node` how entries lie in them and are searched, by kind of key.
//! - `store` is the file: pages are written to free places, and a [checkpoint](Index::checkpoint) switches to them.
//! - `tree` is the index itself.
//!
//! # What must hold
//!
//! - Racing accesses to a page are relaxed loads and stores of whole words; what was read counts after its latch's version has
//!   been looked at again (`latch`). Numbers from a page that has not been validated are never used as unchecked indices.
//! - A page in memory has its parent in memory. A thread that changes a reference holds the latch of the page it is in.
//! - Latches are taken from the root down, and no thread waits for a latch and a device at a time.
//! - The file is at any moment the last checkpoint, and pages that it does not refer to.
//!
//! # After a crash
//!
//! [`Index::open`] finds the last checkpoint and the [position](Index::position) that was given to it: what a log says from
//! there on is to be applied again, and may be applied if it already was. An index whose file is damaged is built anew
//! from its table ([`Index::append`]).

mod bits;
mod error;
pub mod latch;
mod node;
mod page;
pub mod pool;
mod region;
mod store;
mod sync;
mod tree;

pub use error::{IndexError, Result};
pub use node::{Bytes, Key};
pub use page::{Image, Swip};
pub use pool::{Policy, Pool, PoolCounters, Standard};
pub use store::file::{LocalPages, MemoryPages, PageFile, PageRead};
pub use tree::scan::Range;
pub use tree::verify::Verified;
pub use tree::{Index, Options};

/// Bytes of the longest key.
pub const MAX_KEY: usize = 16_384;
