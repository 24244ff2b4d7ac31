//! What this machine has.

pub(crate) use plinth_io::default_memory;

/// Threads to use unless told otherwise.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What this program holds in truth, where its allocator counts that.
#[cfg(not(target_env = "msvc"))]
pub(crate) const ALLOCATED: Option<fn() -> u64> = Some(held);

#[cfg(target_env = "msvc")]
pub(crate) const ALLOCATED: Option<fn() -> u64> = None;

/// Bytes that this program has allocated or mapped.
#[cfg(not(target_env = "msvc"))]
fn held() -> u64 {
    crate::allocator::allocated().saturating_add(plinth_io::mapped_bytes())
}
