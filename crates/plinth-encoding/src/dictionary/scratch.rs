//! Where a block's keys are decoded to, end to end.

use std::ops::Range;

use crate::dictionary::alphabet::Alphabet;
use crate::dictionary::pieces::Table;
use crate::dictionary::wire::OrCorrupt;
use crate::error::Result;

/// Short copies move this many bytes whatever their length: a fixed size needs no call and no branch.
pub(super) const STEP: usize = 16;

/// Keys end to end. The buffer is always longer than what is used of it, so that short copies may overshoot.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    used: usize,
    ends: Vec<usize>,
}

impl Scratch {
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.ends.clear();
    }

    /// Bytes of all keys so far.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Where each key ends.
    pub(super) fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The keys in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// The key of rank `i` in the block.
    pub(super) fn key(&self, i: usize) -> Option<&[u8]> {
        let start = if i == 0 { 0 } else { *self.ends.get(i - 1)? };
        self.bytes.get(start..*self.ends.get(i)?)
    }

    /// Sixteen bytes from `at <= used()` on; those past `used()` are anything.
    #[inline]
    pub(super) fn word(&self, at: usize) -> u128 {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk::<STEP>()).map_or(0, |chunk| u128::from_le_bytes(*chunk))
    }

    #[inline]
    fn make_room(&mut self, more: usize) {
        let needed = self.used + more + STEP;
        if self.bytes.len() < needed {
            self.bytes.resize(needed.max(2 * self.bytes.len()).max(4096), 0);
        }
    }

    /// Appends `from[start..start + len]`, which must exist.
    #[inline]
    pub(super) fn literal(&mut self, from: &[u8], start: usize, len: usize) {
        self.make_room(len);
        match from.get(start..start + STEP) {
            Some(step) if len <= STEP => self.bytes[self.used..self.used + STEP].copy_from_slice(step),
            _ => self.bytes[self.used..self.used + len].copy_from_slice(&from[start..start + len]),
        }
        self.used += len;
    }

    /// Appends `len` bytes from `start` on of what is there, which must exist.
    #[inline]
    pub(super) fn repeat(&mut self, start: usize, len: usize) {
        self.make_room(len);
        if len <= STEP {
            self.bytes.copy_within(start..start + STEP, self.used);
        } else {
            self.bytes.copy_within(start..start + len, self.used);
        }
        self.used += len;
    }

    /// Appends the plain bytes of `len` codes.
    #[inline]
    pub(super) fn decompress(&mut self, table: &Table, data: &[u8], bit: usize, len: usize) -> Result<()> {
        self.make_room(table.room(len));
        self.used = table.decode(data, bit, len, &mut self.bytes, self.used).or_corrupt("a code has no symbol")?;
        Ok(())
    }

    /// Appends the bytes of `len` packed symbols.
    #[inline]
    pub(super) fn unpack(&mut self, alphabet: &Alphabet, packed: &[u8], bit: usize, len: usize) -> Result<()> {
        self.make_room(len);
        self.used = alphabet.unpack(packed, bit, len, &mut self.bytes, self.used).or_corrupt("a value has no room")?;
        Ok(())
    }

    /// Whether key `this` is greater than key `before`, given that they share `shared` bytes at least.
    #[inline]
    pub(super) fn ascends(&self, before: Range<usize>, this: Range<usize>, shared: usize) -> bool {
        match (self.bytes[before.clone()].get(shared), self.bytes[this.clone()].get(shared)) {
            (None, Some(_)) => true,
            (_, None) => false,
            (Some(a), Some(b)) => a < b || (a == b && self.bytes[before][shared..] < self.bytes[this][shared..]),
        }
    }

    /// What was appended since the last key is a key.
    #[inline]
    pub(super) fn end_value(&mut self) {
        self.ends.push(self.used);
    }
}
