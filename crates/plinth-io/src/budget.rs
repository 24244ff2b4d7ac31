//! One limit for all the memory that is ours to choose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{IoError, Result};

/// A limit shared by everything that reserves from it; cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

/// Memory taken from a budget, given back on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Inner { limit, used: AtomicU64::new(0), peak: AtomicU64::new(0) }))
    }

    /// A budget that never refuses, for those who bound memory elsewhere.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes reserved now.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The most that was ever reserved at once.
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Reserves `bytes`; `purpose` is for the message.
    ///
    /// # Errors
    /// [`IoError::Budget`] if they can't be had; nothing is reserved then.
    pub fn reserve(&self, bytes: u64, purpose: &str) -> Result<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), bytes: 0 };
        reservation.resize(bytes, purpose)?;
        Ok(reservation)
    }
}

impl Reservation {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Grows or shrinks to `bytes`.
    ///
    /// # Errors
    /// [`IoError::Budget`] if the growth can't be had; the reservation stays as it was.
    pub fn resize(&mut self, bytes: u64, purpose: &str) -> Result<()> {
        let inner = &self.budget.0;
        if bytes <= self.bytes {
            inner.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        } else {
            let wanted = bytes - self.bytes;
            let grown = inner.used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(wanted).filter(|&total| total <= inner.limit)
            });
            let before = grown.map_err(|used| IoError::Budget {
                purpose: purpose.to_owned(),
                wanted,
                used,
                limit: inner.limit,
            })?;
            inner.peak.fetch_max(before + wanted, Ordering::Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_counted_and_given_back() {
        let budget = MemoryBudget::new(100);
        let a = budget.reserve(60, "a").unwrap();
        assert!(matches!(budget.reserve(41, "b"), Err(IoError::Budget { wanted: 41, used: 60, limit: 100, .. })));
        let mut b = budget.reserve(40, "b").unwrap();
        assert!(b.resize(41, "b").is_err());
        assert_eq!(b.bytes(), 40);
        b.resize(10, "b").unwrap();
        assert_eq!((budget.used(), budget.peak()), (70, 100));
        drop((a, b));
        assert_eq!(budget.used(), 0);
        assert!(budget.reserve(u64::MAX, "c").is_err());
    }

    #[test]
    fn threads_never_take_more_than_there_is() {
        let budget = MemoryBudget::new(1_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..10_000u64 {
                        let _ = budget.reserve(i % 700, "x");
                        assert!(budget.used() <= 1_000);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
        assert!(budget.peak() <= 1_000);
    }
}
