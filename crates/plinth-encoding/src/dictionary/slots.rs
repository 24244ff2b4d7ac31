//! The hash table under the interner: open addressing over slots that hold a part of the hash beside the code, so that
//! a wrong slot is passed over without looking at its key and the table grows without hashing anything again.

use std::hint::black_box;

use crate::dictionary::wire::low_half;
use crate::error::{EncodingError, Result};

/// Keys resolved together.
pub(super) const BATCH: usize = 256;
/// So many keys are in the second-level cache anyway.
const CACHED: usize = 1 << 15;

/// Keys by code, compared with probes of type `P`.
pub(super) trait Keyed<P> {
    fn count(&self) -> usize;
    fn matches(&self, code: u32, probe: &P) -> bool;
    /// Loads something of key `code - 1` (or any other), so that it is cached.
    fn touch(&self, code: u32) -> u64;
    /// Gives the probe the code `count()`.
    fn push_key(&mut self, probe: &P);
}

/// `slots[i]` is zero, or 32 bits of hash (the tag) above the code plus one. A key's slot is the first free one from
/// its tag's top bits on.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<u64>,
    /// 32 less the number of bits that index the slots.
    shift: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { slots: vec![0; 1 << 10], shift: 22 }
    }
}

impl Slots {
    pub(super) fn memory(&self) -> usize {
        8 * self.slots.capacity()
    }

    /// Appends the code of each probe, new ones included. At most [`BATCH`] probes.
    pub(super) fn resolve<P, K: Keyed<P>>(
        &mut self,
        keys: &mut K,
        tags: &[u32],
        probes: &[P],
        codes: &mut Vec<u32>,
    ) -> Result<()> {
        // These loads don't wait for each other. A slot never changes once taken, so what is seen here stays true.
        let mut seen = [0; BATCH];
        for (seen, &tag) in seen.iter_mut().zip(tags) {
            *seen = self.near(tag);
        }
        if keys.count() > CACHED {
            let touched = seen[..probes.len()].iter().fold(0, |all, &slot| all ^ keys.touch(low_half(slot)));
            black_box(touched);
        }
        let start = codes.len();
        codes.resize(start + probes.len(), 0);
        for (((slot, &seen), &tag), probe) in codes[start..].iter_mut().zip(&seen).zip(tags).zip(probes) {
            *slot = match code_of(seen, tag) {
                Some(code) if keys.matches(code, probe) => code,
                _ => self.find_or_push(keys, tag, probe)?,
            };
        }
        Ok(())
    }

    /// Of the first slots a tag can be in the one that has it, or any. Chosen without branches, because which it is
    /// cannot be predicted.
    #[inline]
    fn near(&self, tag: u32) -> u64 {
        let (first, mask) = (self.first(tag), self.slots.len() - 1);
        let mut near = self.slots[first & mask];
        for step in 1..4 {
            let slot = self.slots[(first + step) & mask];
            near = if low_half(slot >> 32) == tag { slot } else { near };
        }
        near
    }

    #[inline]
    fn first(&self, tag: u32) -> usize {
        (tag >> self.shift) as usize
    }

    #[inline(never)]
    fn find_or_push<P, K: Keyed<P>>(&mut self, keys: &mut K, tag: u32, probe: &P) -> Result<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.first(tag);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if let Some(code) = code_of(slot, tag)
                && keys.matches(code, probe)
            {
                return Ok(code);
            }
            at = (at + 1) & mask;
        }
        let code = u32::try_from(keys.count()).ok().filter(|&code| code < u32::MAX - 1).ok_or_else(full)?;
        keys.push_key(probe);
        self.slots[at] = u64::from(tag) << 32 | u64::from(code + 1);
        if keys.count() > self.slots.len() / 2 {
            self.grow()?;
        }
        Ok(code)
    }

    /// Twice the slots. Old slots are met in the order of their tags, so the new ones fill front to back.
    fn grow(&mut self) -> Result<()> {
        let shift = self.shift.checked_sub(1).ok_or_else(full)?;
        let mut slots = vec![0; self.slots.len() * 2];
        let mask = slots.len() - 1;
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            let mut at = (low_half(slot >> 32) >> shift) as usize;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
        *self = Self { slots, shift };
        Ok(())
    }
}

#[inline]
fn code_of(slot: u64, tag: u32) -> Option<u32> {
    (low_half(slot >> 32) == tag).then(|| low_half(slot).checked_sub(1)).flatten()
}

#[cold]
fn full() -> EncodingError {
    EncodingError::invalid("too many distinct values for one dictionary")
}
