//! What this machine has.

pub(crate) use plinth_io::default_memory;

/// Threads to use unless told otherwise.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
