//! What this machine has.

pub(crate) use plinth_io::default_memory;

/// Threads to use unless told otherwise.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Has a budget know what this program holds in truth, where its allocator counts that.
#[cfg(not(target_env = "msvc"))]
pub(crate) fn count_memory(budget: &plinth_io::MemoryBudget) {
    budget.measure(|| crate::allocator::allocated().saturating_add(plinth_io::mapped_bytes()));
}

#[cfg(target_env = "msvc")]
pub(crate) fn count_memory(_budget: &plinth_io::MemoryBudget) {}
