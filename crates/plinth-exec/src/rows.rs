//! The groups: a row of words each, its key and then the states of aggregates, and a table that finds them by key.
//!
//! Keys of few bits are addresses of an array. Others are hashed into open addressing over slots of eight bytes (32 bits of the hash, and the
//! group), so that a row that is found costs two cache misses, of its slot and of its group, whatever is summed up in it. The slots of
//! many keys are touched before any is compared: their misses then overlap.

#![allow(clippy::cast_possible_truncation, reason = "hashes and slots are cut into halves")]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

use crate::layout::Layout;
use crate::words::{Word, Words, read, write};

/// Keys of so many bits are addresses, if nothing is known of how many there are.
const DIRECT_BITS: u32 = 18;

/// Of a known number of rows, addresses for each; slots take as much where two of three are free.
const SPARSE: usize = 8;

/// Keys of more bits are never addresses.
const MOST_DIRECT_BITS: u32 = 30;

/// Slots of a small table, as a power of two.
const FEWEST: u32 = 10;

/// More slots than this do not lie in a core's cache.
const CACHED: usize = 1 << 16;

/// Groups of a table: a slot names one of them by a number above zero.
const MOST: usize = u32::MAX as usize - 1;

/// What stands for the group of a key that has none.
pub const NO_GROUP: u32 = u32::MAX;

/// Keys whose cache misses overlap.
const TOGETHER: usize = 512;

/// Rows of a small table.
const FEW_ROWS: usize = 64;

/// Who asks for memory.
const CONSUMER: &str = "group by";

/// How a group is found.
#[derive(Debug)]
enum Index {
    /// By address: the group plus one.
    Direct(Vec<u32>),
    /// By the upper bits of its hash: the hash, then the group plus one.
    Hashed(Slots),
}

/// Slots, a power of two of them.
#[derive(Debug)]
struct Slots {
    slots: Words,
    /// Bits of a hash that do not tell the slot.
    shift: u32,
}

/// Groups, by their keys.
#[derive(Debug)]
pub struct Rows {
    words: usize,
    stride: usize,
    /// Of each group its key and its states; behind them zeros.
    rows: Words,
    len: usize,
    index: Index,
    /// Keys of so many bits are addresses.
    direct: u32,
    memory: Reservation,
    /// Of the keys that are being looked for.
    hashes: Vec<u32>,
}

/// A key's hash.
#[inline]
pub(crate) fn hash(key: impl IntoIterator<Item = u64>) -> u32 {
    (key.into_iter().fold(0, |hash, word| mixed(hash ^ word)) >> 32) as u32
}

/// A word's bits, mixed: the halves of a product, folded.
#[inline(always)]
pub(crate) fn mixed(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

/// Bits of addresses at most where about so many keys will come.
fn most_address_bits(expected: usize) -> u32 {
    let bits = expected.saturating_mul(SPARSE).checked_ilog2().unwrap_or(0).min(MOST_DIRECT_BITS);
    bits.max(DIRECT_BITS)
}

/// Bits of the keys of a layout, if they are addresses where about so many will come.
pub(crate) fn address_bits(layout: &Layout, expected: usize) -> Option<u32> {
    layout.bits().filter(|bits| *bits <= most_address_bits(expected))
}

impl Rows {
    /// No groups, whose keys are of a layout and whose states take so many words. About so many will come, or none if that is not known: keys are
    /// addresses as long as a table of all addresses takes about what one of hashes would.
    pub fn new(layout: &Layout, states: usize, expected: usize, budget: &Arc<MemoryBudget>) -> Self {
        Self::with_direct(layout, states, most_address_bits(expected), budget)
    }

    fn with_direct(layout: &Layout, states: usize, direct: u32, budget: &Arc<MemoryBudget>) -> Self {
        let index = match layout.bits().filter(|bits| *bits <= direct) {
            Some(bits) => Index::Direct(vec![0; 1 << bits]),
            None => Index::Hashed(Slots::new(1 << FEWEST, budget)),
        };
        let (words, memory) = (layout.words(), budget.open(CONSUMER));
        Self {
            words,
            stride: words + states,
            rows: Words::zeros(0, budget),
            len: 0,
            index,
            direct,
            memory,
            hashes: Vec::new(),
        }
    }

    /// Groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words of a group's key.
    #[inline]
    pub fn key(&self, group: u32) -> &[Word] {
        let start = group as usize * self.stride;
        &self.rows.all()[start..start + self.words]
    }

    /// The hash of a group's key.
    pub(crate) fn hash(&self, group: u32) -> u32 {
        hash(self.key(group).iter().map(read))
    }

    /// The states of all groups: the words of each, behind those of its key.
    pub fn states(&mut self) -> States<'_> {
        States { rows: self.rows.all_mut(), stride: self.stride, at: self.words }
    }

    /// The same, to read: those from a word on.
    pub fn states_from(&self, word: usize) -> StatesRead<'_> {
        StatesRead { rows: self.rows.all(), stride: self.stride, at: self.words + word, groups: self.len }
    }

    /// What it holds of a budget.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Gives room for more groups, so that finding that many keys needs no memory.
    ///
    /// # Errors
    /// If there is no memory for them; nothing has changed then.
    pub fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let groups = self.len + more;
        if groups > MOST {
            return Err(self.memory.refusal(u64::MAX));
        }
        let before = self.rows.all().len();
        let mut capacity = before;
        while capacity < groups * self.stride {
            capacity = (capacity * 2).max(FEW_ROWS * self.stride);
        }
        let (slots, wanted) = match &self.index {
            Index::Direct(slots) => (slots.len() / 2, 0),
            Index::Hashed(slots) => {
                let wanted = slots.wanted(groups);
                (wanted, wanted)
            }
        };
        let bytes = 8 * (capacity + slots) as u64;
        if bytes > self.memory.bytes() {
            self.memory.try_grow(bytes - self.memory.bytes())?;
        }
        if capacity > before {
            self.rows.lengthen(capacity, self.memory.budget());
        }
        if let Index::Hashed(slots) = &mut self.index {
            slots.grow(wanted, self.memory.budget());
        }
        Ok(())
    }

    /// The group of each of some keys, one column a word; new ones are made, for which there must be room. Their states are zero.
    pub fn groups(&mut self, keys: &[Vec<u64>], count: usize, into: &mut Vec<u32>) {
        into.clear();
        into.reserve(count);
        match (self.words, keys, &self.index) {
            (1, [keys, ..], Index::Direct(_)) => self.by_address(&keys[..count], into),
            (1, [keys, ..], _) => self.hashed(count, |row| [keys[row]], into),
            (2, [one, two, ..], _) => self.hashed(count, |row| [one[row], two[row]], into),
            (3, [one, two, three, ..], _) => self.hashed(count, |row| [one[row], two[row], three[row]], into),
            (words, keys, _) => {
                let mut key = vec![0; words];
                for row in 0..count {
                    key.iter_mut().zip(keys).for_each(|(word, column)| *word = column[row]);
                    into.push(self.find(&key));
                }
            }
        }
    }

    fn by_address(&mut self, keys: &[u64], into: &mut Vec<u32>) {
        let Index::Direct(slots) = &mut self.index else { return };
        let (rows, stride) = (self.rows.all_mut(), self.stride);
        for keys in keys.chunks(TOGETHER) {
            if slots.len() > CACHED {
                let slot = |&key: &u64| slots[key as usize] as usize;
                black_box(keys.iter().map(slot).fold(0, usize::wrapping_add));
                let row = |key: &u64| rows.get(slot(key).wrapping_sub(1).wrapping_mul(stride)).map_or(0, read);
                black_box(keys.iter().map(row).fold(0, u64::wrapping_add));
            }
            for &key in keys {
                let slot = &mut slots[key as usize];
                if *slot == 0 {
                    write(&mut rows[self.len * stride], key);
                    self.len += 1;
                    *slot = self.len as u32;
                }
                into.push(*slot - 1);
            }
        }
    }

    /// Looks for keys whose words are known to be so many when this is compiled.
    fn hashed<const N: usize>(&mut self, count: usize, key: impl Fn(usize) -> [u64; N], into: &mut Vec<u32>) {
        for first in (0..count).step_by(TOGETHER) {
            self.hashed_together(first..count.min(first + TOGETHER), &key, into);
        }
    }

    fn hashed_together<const N: usize>(
        &mut self,
        count: Range<usize>,
        key: &impl Fn(usize) -> [u64; N],
        into: &mut Vec<u32>,
    ) {
        let Index::Hashed(slots) = &mut self.index else { return };
        self.hashes.clear();
        self.hashes.extend(count.clone().map(|row| hash(key(row))));
        let shift = slots.shift;
        let slots = slots.slots.all_mut();
        let (rows, stride, mask) = (self.rows.all_mut(), self.stride, slots.len() - 1);
        if slots.len() > CACHED {
            let slot = |&hash: &u32| read(&slots[(hash >> shift) as usize]);
            black_box(self.hashes.iter().map(slot).fold(0, u64::wrapping_add));
            // The group that a slot names, whether it is the one or not.
            let named = |slot: u64| rows.get((slot as u32 as usize).wrapping_sub(1).wrapping_mul(stride));
            let groups = self.hashes.iter().map(|hash| named(slot(hash)).map_or(0, read));
            black_box(groups.fold(0, u64::wrapping_add));
        }
        let mut before = ([0; N], u32::MAX);
        for (row, &hash) in count.zip(&self.hashes) {
            let key = key(row);
            if before.1 == u32::MAX || before.0 != key {
                let mut at = (hash >> shift) as usize;
                let group = loop {
                    let slot = read(&slots[at]);
                    if slot == 0 {
                        write(&mut slots[at], u64::from(hash) << 32 | (self.len + 1) as u64);
                        let start = self.len * stride;
                        for (word, key) in rows[start..start + N].iter_mut().zip(key) {
                            write(word, key);
                        }
                        self.len += 1;
                        break self.len as u32 - 1;
                    }
                    if (slot >> 32) as u32 == hash {
                        let group = slot as u32 - 1;
                        let start = group as usize * stride;
                        if rows[start..start + N].iter().zip(key).all(|(word, key)| read(word) == key) {
                            break group;
                        }
                    }
                    at = (at + 1) & mask;
                };
                before = (key, group);
            }
            into.push(before.1);
        }
    }

    /// The group of a key, which is made if there is none.
    fn find(&mut self, key: &[u64]) -> u32 {
        let (rows, stride) = (self.rows.all_mut(), self.stride);
        match &mut self.index {
            Index::Direct(slots) => {
                let slot = &mut slots[key[0] as usize];
                if *slot != 0 {
                    return *slot - 1;
                }
                *slot = self.len as u32 + 1;
            }
            Index::Hashed(slots) => {
                let hash = hash(key.iter().copied());
                let is_key = |group: u32| {
                    let start = group as usize * stride;
                    rows[start..start + key.len()].iter().zip(key).all(|(word, key)| read(word) == *key)
                };
                match slots.find(hash, is_key) {
                    Ok(group) => return group,
                    Err(at) => write(&mut slots.slots.all_mut()[at], u64::from(hash) << 32 | (self.len + 1) as u64),
                }
            }
        }
        let start = self.len * stride;
        for (word, key) in rows[start..start + key.len()].iter_mut().zip(key) {
            write(word, *key);
        }
        self.len += 1;
        self.len as u32 - 1
    }

    /// The same groups, by keys of a wider layout.
    ///
    /// # Errors
    /// If there is no memory for them; nothing has changed then.
    pub fn widen(&mut self, from: &Layout, to: &Layout) -> Result<(), OutOfMemory> {
        let states = self.stride - self.words;
        let mut wider = Self::with_direct(to, states, self.direct, self.memory.budget());
        wider.reserve(self.len)?;
        let (mut key, mut found) = (vec![0; to.words()], Vec::new());
        let mut keys: Vec<Vec<u64>> = vec![Vec::new(); to.words()];
        for first in (0..self.len).step_by(TOGETHER) {
            let groups = first..self.len.min(first + TOGETHER);
            keys.iter_mut().for_each(Vec::clear);
            for group in groups.clone() {
                to.repack(from, self.key(group as u32), &mut key);
                keys.iter_mut().zip(&key).for_each(|(column, word)| column.push(*word));
            }
            // All are new, so each has the number that it had.
            wider.groups(&keys, groups.len(), &mut found);
            for group in groups {
                let (from, to) = (group * self.stride + self.words, group * wider.stride + wider.words);
                wider.rows.all_mut()[to..to + states].copy_from_slice(&self.rows.all()[from..from + states]);
            }
        }
        *self = wider;
        Ok(())
    }

    /// The groups part by part, of which there are so many (a power of two), and where each part begins and the last ends. The rows stay where
    /// they are: to move them all takes as much memory again. They can no longer be found.
    ///
    /// # Errors
    /// If there is no memory for that.
    pub(crate) fn divide(&mut self, parts: usize) -> Result<(Vec<u32>, Vec<usize>), OutOfMemory> {
        let rows = size_of_val(self.rows.all()) as u64;
        let order = (self.len * size_of::<u32>()) as u64;
        // What finds them goes first, and mostly took more.
        self.index = Index::Direct(Vec::new());
        self.memory.resize(rows + order)?;
        let part_of: Vec<u16> =
            (0..self.len as u32).map(|group| (self.hash(group) as usize & (parts - 1)) as u16).collect();
        let mut starts = vec![0; parts + 1];
        for &part in &part_of {
            starts[part as usize + 1] += 1;
        }
        for part in 0..parts {
            starts[part + 1] += starts[part];
        }
        let (mut order, mut next) = (vec![0; self.len], starts.clone());
        for (group, &part) in (0..).zip(&part_of) {
            let at = &mut next[part as usize];
            order[*at] = group;
            *at += 1;
        }
        Ok((order, starts))
    }

    /// The rows of some groups, to be read by their places among these.
    pub(crate) fn gather(&self, groups: &[u32], into: &mut Vec<Word>) {
        into.clear();
        into.reserve(groups.len() * self.stride);
        for group in groups {
            let start = *group as usize * self.stride;
            into.extend_from_slice(&self.rows.all()[start..start + self.stride]);
        }
    }

    /// Rows that [`Rows::gather`] gathered: keys and states.
    pub(crate) fn gathered<'a>(&self, rows: &'a [Word]) -> Gathered<'a> {
        Gathered { rows, words: self.words, stride: self.stride }
    }
}

/// Rows of some groups.
#[derive(Clone, Copy)]
pub(crate) struct Gathered<'a> {
    rows: &'a [Word],
    words: usize,
    stride: usize,
}

impl<'a> Gathered<'a> {
    /// The words of each key.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'a [Word]> {
        self.rows.chunks_exact(self.stride.max(1)).map(move |row| &row[..self.words])
    }

    /// The states: those from a word on.
    pub(crate) fn states_from(self, word: usize) -> StatesRead<'a> {
        let groups = self.rows.len() / self.stride.max(1);
        StatesRead { rows: self.rows, stride: self.stride, at: self.words + word, groups }
    }
}

impl Slots {
    fn new(len: usize, budget: &Arc<MemoryBudget>) -> Self {
        Self { slots: Words::zeros(len, budget), shift: 32 - len.trailing_zeros() }
    }

    /// Slots for so many groups: at most 5 of 8 are taken.
    fn wanted(&self, groups: usize) -> usize {
        let mut wanted = self.slots.all().len();
        while groups * 8 > wanted * 5 {
            wanted *= 2;
        }
        wanted
    }

    /// Moves what it holds to a larger one.
    fn grow(&mut self, wanted: usize, budget: &Arc<MemoryBudget>) {
        if wanted <= self.slots.all().len() {
            return;
        }
        let mut larger = Self::new(wanted, budget);
        let (shift, mask) = (larger.shift, wanted - 1);
        let slots = larger.slots.all_mut();
        for slot in self.slots.all().iter().map(read).filter(|slot| *slot != 0) {
            let mut at = ((slot >> 32) >> shift) as usize;
            while read(&slots[at]) != 0 {
                at = (at + 1) & mask;
            }
            write(&mut slots[at], slot);
        }
        *self = larger;
    }

    /// The group with a hash that is meant, or the slot for it.
    fn find(&self, hash: u32, is_meant: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let (mut at, slots) = ((hash >> self.shift) as usize, self.slots.all());
        let mask = slots.len() - 1;
        loop {
            let slot = read(&slots[at]);
            if slot == 0 {
                return Err(at);
            }
            if (slot >> 32) as u32 == hash && is_meant(slot as u32 - 1) {
                return Ok(slot as u32 - 1);
            }
            at = (at + 1) & mask;
        }
    }
}

/// The states of groups.
#[derive(Debug)]
pub struct States<'a> {
    rows: &'a mut [Word],
    stride: usize,
    at: usize,
}

impl States<'_> {
    /// The states behind so many words of each.
    pub fn behind(&mut self, words: usize) -> States<'_> {
        States { rows: self.rows, stride: self.stride, at: self.at + words }
    }

    /// A word of a group's state.
    #[inline]
    pub fn word(&self, group: u32, word: usize) -> u64 {
        read(&self.rows[group as usize * self.stride + self.at + word])
    }

    /// Sets a word of a group's state.
    #[inline]
    pub fn set(&mut self, group: u32, word: usize, value: u64) {
        write(&mut self.rows[group as usize * self.stride + self.at + word], value);
    }

    /// Changes a word of a group's state.
    #[inline]
    pub fn change(&mut self, group: u32, word: usize, change: impl FnOnce(u64) -> u64) {
        let word = &mut self.rows[group as usize * self.stride + self.at + word];
        write(word, change(read(word)));
    }
}

/// The states of groups, to read.
#[derive(Clone, Copy, Debug)]
pub struct StatesRead<'a> {
    rows: &'a [Word],
    stride: usize,
    at: usize,
    groups: usize,
}

impl StatesRead<'_> {
    /// Groups there are, also those that no aggregate was given rows of: a chunk may be refused memory between its keys and its values.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// A word of a group's state.
    #[inline]
    pub fn word(&self, group: u32, word: usize) -> u64 {
        read(&self.rows[group as usize * self.stride + self.at + word])
    }
}
