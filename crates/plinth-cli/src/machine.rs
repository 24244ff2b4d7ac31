//! What this machine has.

pub(crate) use plinth_io::default_memory;

/// Threads to use unless told otherwise.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Bytes that this program has allocated or mapped.
pub(crate) fn allocated() -> u64 {
    crate::allocator::allocated().saturating_add(plinth_io::mapped_bytes())
}
