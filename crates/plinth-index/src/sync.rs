//! The atomics that latches are made of. A test puts a model checker's in their place.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::thread::yield_now;
