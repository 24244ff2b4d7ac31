//! A part of a table of keys: of each key the first row that has it, or what is put in the place of that, found by address or by hash.
//!
//! Keys of few bits are addresses of an array. Others are hashed into open addressing over slots that hold the key itself, so that one that is
//! found costs one cache miss. The slots of many keys are touched before any is compared: their misses then overlap.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;

use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use super::{CONSUMER, NO_ROW};
use crate::error::{ExecError, Result};
use crate::rows::mixed;
use crate::words::{Word, Words, read, write};

/// Keys whose cache misses overlap.
const TOGETHER: usize = 512;

/// Slots of a table at first: about as many of its keys show how many different ones there are.
const FIRST_BITS: u32 = 13;

/// More words than this do not lie in a core's cache.
const CACHED: usize = 1 << 16;

/// Rows of a part, with their keys.
#[derive(Debug, Default)]
pub(super) struct Deal {
    /// The words of each row's key, one row after the other.
    pub(super) words: Vec<u64>,
    pub(super) rows: Vec<u32>,
}

/// A row, and the first one that has the same key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub(super) first: u32,
    pub(super) row: u32,
}

/// Keys whose addresses, or hashes, begin with the same bits.
#[derive(Debug)]
pub(super) enum Part {
    /// By address: the row plus one. Its addresses begin with one, and are so many bits long.
    Addresses {
        from: u64,
        rows: Vec<u32>,
        _memory: Reservation,
    },
    Slots(Slots),
}

/// Slots, a power of two of them: each the row plus one, then the words of its key.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Words,
    words: usize,
    bits: u32,
    /// Bits of a hash that tell the part.
    part_bits: u32,
    taken: usize,
    memory: Reservation,
}

/// The error of a table that is full, which it never is.
fn no_slot() -> ExecError {
    ExecError::internal("a table of keys without a free slot")
}

/// The hash of a key.
#[inline(always)]
pub(super) fn hash(key: impl IntoIterator<Item = u64>) -> u64 {
    key.into_iter().fold(0, |hash, word| mixed(hash ^ word))
}

/// The part that a hash belongs to.
#[inline(always)]
pub(super) fn part_of(hash: u64, part_bits: u32) -> usize {
    (hash >> 1 >> (63 - part_bits)) as usize
}

impl Part {
    /// The keys of some rows by address, of which there are so many from one on, and the rows whose keys came before.
    pub(super) fn by_address(
        deals: &[&Deal],
        from: u64,
        addresses: usize,
        budget: &Arc<MemoryBudget>,
    ) -> Result<(Self, Later)> {
        let mut memory = budget.open(CONSUMER);
        memory.try_grow(4 * addresses as u64)?;
        let (mut rows, mut others) = (vec![0_u32; addresses], Later::new(budget));
        for deal in deals {
            for (&key, &row) in deal.words.iter().zip(&deal.rows) {
                let first = rows.get_mut(key.wrapping_sub(from) as usize);
                let first =
                    first.ok_or_else(|| ExecError::internal("a key was dealt to a part without its address"))?;
                if *first == 0 {
                    *first = row + 1;
                } else {
                    others.push(*first - 1, row)?;
                }
            }
        }
        Ok((Self::Addresses { from, rows, _memory: memory }, others))
    }

    /// The keys of some rows by hash, of so many words each, and the rows whose keys came before.
    pub(super) fn by_hash(
        deals: &[&Deal],
        words: usize,
        part_bits: u32,
        budget: &Arc<MemoryBudget>,
    ) -> Result<(Self, Later)> {
        let rows = deals.iter().map(|deal| deal.rows.len()).sum();
        let (mut slots, mut others) = (Slots::new(words, part_bits, budget), Later::new(budget));
        let mut seen = 0;
        for deal in deals {
            seen = match words {
                1 => slots.put::<1>(deal, seen, rows, &mut others)?,
                2 => slots.put::<2>(deal, seen, rows, &mut others)?,
                _ => slots.put::<0>(deal, seen, rows, &mut others)?,
            };
        }
        Ok((Self::Slots(slots), others))
    }

    /// Puts what a function makes of each key's row in its place.
    pub(super) fn replace(&mut self, new: impl Fn(u32) -> u32) {
        match self {
            Self::Addresses { rows, .. } => {
                rows.iter_mut().filter(|row| **row != 0).for_each(|row| *row = new(*row - 1) + 1);
            }
            Self::Slots(slots) => {
                let stride = slots.words + 1;
                for row in slots.slots.all_mut().iter_mut().step_by(stride).filter(|row| read(row) != 0) {
                    write(row, u64::from(new((read(row) - 1) as u32)) + 1);
                }
            }
        }
    }

    /// Shows all keys.
    pub(super) fn each(&self, mut show: impl FnMut(&[Word])) {
        match self {
            Self::Addresses { from, rows, .. } => {
                let taken = rows.iter().zip(*from..).filter(|(row, _)| **row != 0);
                taken.for_each(|(_, key)| show(&[key.to_ne_bytes()]));
            }
            Self::Slots(slots) => {
                let all = slots.slots.all().chunks_exact(slots.words + 1);
                all.filter_map(<[Word]>::split_first).filter(|(row, _)| read(row) != 0).for_each(|(_, key)| show(key));
            }
        }
    }
}

/// Rows whose keys came before.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) all: Vec<Other>,
    memory: Reservation,
}

impl Later {
    fn new(budget: &Arc<MemoryBudget>) -> Self {
        Self { all: Vec::new(), memory: budget.open(CONSUMER) }
    }

    fn push(&mut self, first: u32, row: u32) -> Result<(), OutOfMemory> {
        if self.all.len() == self.all.capacity() {
            let more = self.all.len().max(1 << 10);
            self.memory.try_grow((more * size_of::<Other>()) as u64)?;
            self.all.reserve_exact(more);
        }
        self.all.push(Other { first, row });
        Ok(())
    }
}

impl Slots {
    fn new(words: usize, part_bits: u32, budget: &Arc<MemoryBudget>) -> Self {
        let memory = budget.open(CONSUMER);
        Self { slots: Words::zeros(0, budget), words, bits: 0, part_bits, taken: 0, memory }
    }

    /// The words of a slot.
    #[inline(always)]
    fn start(&self, hash: u64) -> usize {
        (hash << self.part_bits).unbounded_shr(64 - self.bits) as usize * (self.words + 1)
    }

    /// Goes through the slots where a key may be, from where its hash points to a free one.
    #[inline(always)]
    fn walk<B>(&self, hash: u64, mut look: impl FnMut(usize, u64, &[Word]) -> ControlFlow<B>) -> Option<B> {
        let (all, stride) = (self.slots.all(), self.words + 1);
        let mut at = self.start(hash);
        loop {
            let (row, key) = all.get(at..at + stride)?.split_first()?;
            if let ControlFlow::Break(found) = look(at, read(row), key) {
                return Some(found);
            }
            at += stride;
            if at == all.len() {
                at = 0;
            }
        }
    }

    /// Takes the rows of a deal, where so many were seen of all that there will be; how many are seen then.
    fn put<const N: usize>(&mut self, deal: &Deal, mut seen: usize, rows: usize, others: &mut Later) -> Result<usize> {
        let words = if N == 0 { self.words } else { N };
        let mut hashes = [0; TOGETHER];
        for (keys, together) in deal.words.chunks(TOGETHER * words).zip(deal.rows.chunks(TOGETHER)) {
            self.reserve(together.len(), seen, rows)?;
            for (hashed, key) in hashes.iter_mut().zip(keys.chunks_exact(words)) {
                *hashed = hash(key.iter().copied());
            }
            self.touch(&hashes[..together.len()]);
            for ((key, &row), &hash) in keys.chunks_exact(words).zip(together).zip(&hashes) {
                let found = self.walk(hash, |at, first, of| match first {
                    0 => ControlFlow::Break((at, None)),
                    first if of.iter().zip(key).all(|(word, key)| read(word) == *key) => {
                        ControlFlow::Break((at, Some(first)))
                    }
                    _ => ControlFlow::Continue(()),
                });
                match found.ok_or_else(no_slot)? {
                    (_, Some(first)) => others.push((first - 1) as u32, row)?,
                    (at, None) => {
                        let slot = &mut self.slots.all_mut()[at..=at + words];
                        write(&mut slot[0], u64::from(row) + 1);
                        slot[1..].iter_mut().zip(key).for_each(|(word, key)| write(word, *key));
                        self.taken += 1;
                    }
                }
            }
            seen += together.len();
        }
        Ok(seen)
    }

    /// Has the slots of some keys come into the cache.
    #[inline]
    fn touch(&self, hashes: &[u64]) {
        if self.slots.all().len() > CACHED {
            black_box(hashes.iter().map(|hash| self.first_word(*hash)).fold(0, u64::wrapping_add));
        }
    }

    /// What the slot holds first that a hash points to.
    #[inline(always)]
    fn first_word(&self, hash: u64) -> u64 {
        self.slots.all().get(self.start(hash)).map_or(0, read)
    }

    /// Gives room for more keys, where so many rows of all were seen.
    fn reserve(&mut self, more: usize, seen: usize, rows: usize) -> Result<()> {
        let wanted = self.taken + more;
        if self.bits > 0 && wanted * 8 <= (5 << self.bits) {
            return Ok(());
        }
        // Where most keys differ, all that come probably do.
        let expected = if self.bits == 0 {
            rows.min(5 << FIRST_BITS >> 3)
        } else if self.taken * 4 >= seen * 3 {
            rows
        } else {
            2 * self.taken
        };
        let mut bits = 4;
        while expected.max(wanted) * 8 > 5 << bits {
            bits += 1;
        }
        self.grow(bits)
    }

    /// Moves what it holds to more slots.
    fn grow(&mut self, bits: u32) -> Result<()> {
        let stride = self.words + 1;
        let mut memory = self.memory.budget().open(CONSUMER);
        memory.try_grow((8 * stride as u64) << bits)?;
        let slots = Words::zeros(stride << bits, memory.budget());
        let before = std::mem::replace(
            self,
            Self { slots, bits, memory, ..Self::new(self.words, self.part_bits, self.memory.budget()) },
        );
        self.taken = before.taken;
        for slot in before.slots.all().chunks_exact(stride).filter(|slot| read(&slot[0]) != 0) {
            let hash = hash(slot[1..].iter().map(read));
            let free = |at, row, _: &[Word]| if row == 0 { ControlFlow::Break(at) } else { ControlFlow::Continue(()) };
            let at = self.walk(hash, free).ok_or_else(no_slot)?;
            self.slots.all_mut()[at..at + stride].copy_from_slice(slot);
        }
        Ok(())
    }

    /// The first row of a key.
    #[inline(always)]
    fn find(&self, hash: u64, is_key: impl Fn(&[Word]) -> bool) -> u32 {
        let found =
            self.walk(
                hash,
                |_, row, key| {
                    if row == 0 || is_key(key) { ControlFlow::Break(row) } else { ControlFlow::Continue(()) }
                },
            );
        (found.unwrap_or(0) as u32).wrapping_sub(1)
    }
}

/// The first rows of keys that are addresses, [`NO_ROW`] of those that no row has. `address` of a key in the parts' order.
pub(super) fn by_address(parts: &[Part], addresses: impl Iterator<Item = u64>, into: &mut Vec<u32>) {
    match parts {
        // One less than none is no row.
        [Part::Addresses { rows, .. }] => {
            into.extend(addresses.map(|at| rows.get(at as usize).map_or(NO_ROW, |row| row.wrapping_sub(1))));
        }
        [Part::Addresses { rows: first, .. }, ..] => {
            let (shift, mask) = (first.len().trailing_zeros(), first.len() as u64 - 1);
            into.extend(addresses.map(|at| match parts.get((at >> shift) as usize) {
                Some(Part::Addresses { rows, .. }) => rows[(at & mask) as usize].wrapping_sub(1),
                _ => NO_ROW,
            }));
        }
        _ => into.extend(addresses.map(|_| NO_ROW)),
    }
}

/// The first rows of hashed keys, [`NO_ROW`] of those that no row has.
#[inline(always)]
pub(super) fn by_hash(
    parts: &[Part],
    part_bits: u32,
    count: usize,
    hash_of: impl Fn(usize) -> u64,
    is_key: impl Fn(usize, &[Word]) -> bool,
    into: &mut Vec<u32>,
) {
    let slots = |hash: u64| match parts.get(part_of(hash, part_bits)) {
        Some(Part::Slots(slots)) => Some(slots),
        _ => None,
    };
    let mut hashes = [0; TOGETHER];
    for first in (0..count).step_by(TOGETHER) {
        let together = first..count.min(first + TOGETHER);
        let hashes = &mut hashes[..together.len()];
        hashes.iter_mut().zip(together.clone()).for_each(|(hashed, row)| *hashed = hash_of(row));
        if let [Part::Slots(slots)] = parts {
            slots.touch(hashes);
            into.extend(hashes.iter().zip(together).map(|(&hash, row)| slots.find(hash, |key| is_key(row, key))));
            continue;
        }
        let touched = |hash: &u64| slots(*hash).map_or(0, |slots| slots.first_word(*hash));
        black_box(hashes.iter().map(touched).fold(0, u64::wrapping_add));
        let find =
            |(&hash, row): (&u64, usize)| slots(hash).map_or(NO_ROW, |slots| slots.find(hash, |key| is_key(row, key)));
        into.extend(hashes.iter().zip(together).map(find));
    }
}
