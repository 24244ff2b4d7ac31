//! What an index promises, held against a model, threads, failing disks and power cuts.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

mod corruption;
mod crash;
mod disk;
mod keys;
mod loom_latch;
mod model;
mod shapes;
mod threads;

/// What `src/latch.rs` is made of, when a model checker tries all its interleavings.
mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
    pub(crate) use loom::thread::yield_now;
}
