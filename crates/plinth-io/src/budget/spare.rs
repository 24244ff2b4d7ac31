//! Memory of large tables that are gone, kept for those that come.
//!
//! Fresh memory comes from the system page by page, each cleared first: that takes several times as long as to clear memory that is there, on
//! a virtual machine up to thirty times. What is kept is not reserved, and counts for no holder: it goes as soon as a reservation needs it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plinth_core::sync::lock;

use super::MemoryBudget;
use crate::slab::{Extent, Slab};

/// How long memory is kept that no table takes: looked at when memory is taken or comes back.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// Of a budget's limit, the share that is kept at most.
const SHARE: u64 = 4;

/// Zeroed memory in huge pages, of its own.
pub struct Zeroed {
    /// Gone only while it is dropped.
    extent: Option<Extent>,
    len: usize,
    budget: Arc<MemoryBudget>,
}

impl Zeroed {
    /// So many bytes, all zero, which the caller has reserved of the budget; `None` if the system has none.
    pub fn new(len: usize, budget: &Arc<MemoryBudget>) -> Option<Self> {
        let extent = match budget.spare().take(len) {
            Some(mut extent) => {
                extent.get_mut(..len)?.fill(0);
                extent
            }
            None => fresh(len)?,
        };
        Some(Self { extent: Some(extent), len, budget: Arc::clone(budget) })
    }

    /// Makes it longer, zeros behind the bytes that it has; the caller has reserved the others. `false` if the system has no memory for them or
    /// can't move pages: it is as it was then, and may be copied.
    pub fn lengthen(&mut self, len: usize) -> bool {
        let (before, Some(extent)) = (self.len, &mut self.extent) else { return false };
        // What was kept holds anything behind what was taken of it.
        let dirty = extent.len().min(len);
        if extent.len() < len {
            match self.budget.spare().take(len) {
                Some(mut kept) => {
                    let (Some(to), Some(from)) = (kept.get_mut(..before), extent.get(..before)) else { return false };
                    to.copy_from_slice(from);
                    let old = std::mem::replace(extent, kept);
                    self.budget.keep(old);
                    extent.get_mut(before..len).unwrap_or_default().fill(0);
                    self.len = len;
                    return true;
                }
                None if !extent.lengthen(len) => return false,
                None => {}
            }
        }
        extent.get_mut(before..dirty).unwrap_or_default().fill(0);
        self.len = len;
        true
    }
}

/// Memory that comes from the system, all of a slab.
fn fresh(len: usize) -> Option<Extent> {
    let slab = Slab::new(len, true).ok()?;
    slab.take(slab.byte_len())
}

impl Deref for Zeroed {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.extent.as_ref().and_then(|extent| extent.get(..self.len)).unwrap_or_default()
    }
}

impl DerefMut for Zeroed {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.extent.as_mut().and_then(|extent| extent.get_mut(..self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for Zeroed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zeroed").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        if let Some(extent) = self.extent.take() {
            self.budget.keep(extent);
        }
    }
}

/// What a budget keeps.
#[derive(Default)]
pub(crate) struct Spare {
    kept: Mutex<Vec<(Instant, Extent)>>,
    bytes: AtomicU64,
}

impl Spare {
    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The smallest extent that has so many bytes, and not many more.
    fn take(&self, len: usize) -> Option<Extent> {
        if self.bytes() == 0 {
            return None;
        }
        let mut kept = lock(&self.kept);
        self.forget(&mut kept, |(since, _)| since.elapsed() > KEPT_FOR);
        let fits = |extent: &Extent| extent.len() >= len && extent.len() / 2 <= len;
        let fitting = kept.iter().enumerate().filter(|(_, (_, extent))| fits(extent));
        let (at, _) = fitting.min_by_key(|(_, (_, extent))| extent.len())?;
        let (_, extent) = kept.swap_remove(at);
        self.bytes.fetch_sub(extent.len() as u64, Relaxed);
        Some(extent)
    }

    /// Keeps an extent, if there is room for so many bytes.
    pub(crate) fn keep(&self, extent: Extent, limit: u64, room: u64) {
        let mut kept = lock(&self.kept);
        self.forget(&mut kept, |(since, _)| since.elapsed() > KEPT_FOR);
        let bytes = extent.len() as u64;
        if self.bytes().saturating_add(bytes) <= room.min(limit / SHARE) {
            self.bytes.fetch_add(bytes, Relaxed);
            kept.push((Instant::now(), extent));
        }
    }

    /// Keeps so many bytes at most.
    pub(crate) fn shrink_to(&self, most: u64) {
        if self.bytes() > most {
            let mut left = self.bytes();
            self.forget(&mut lock(&self.kept), |(_, extent)| {
                let goes = left > most;
                left -= if goes { extent.len() as u64 } else { 0 };
                goes
            });
        }
    }

    fn forget(&self, kept: &mut Vec<(Instant, Extent)>, mut is_over: impl FnMut(&(Instant, Extent)) -> bool) {
        kept.retain(|one| {
            let goes = is_over(one);
            if goes {
                self.bytes.fetch_sub(one.1.len() as u64, Relaxed);
            }
            !goes
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
