//! The hash table under the interner: open addressing over buckets of a cache line that hold keys of a fixed size beside
//! their codes, so that finding a key costs one cache miss, and those of a batch overlap. Large tables lie in huge pages:
//! what else it would cost is to find where a page is.
//!
//! Buckets of a cache line are of Ross ("Efficient hash probes on modern processors", ICDE 2007).

use std::borrow::Borrow;
use std::hint::{black_box, select_unpredictable};
use std::marker::PhantomData;

use plinth_io::{Extent, HUGE_PAGE, Slab};

use crate::error::{EncodingError, Result};

/// Keys resolved together.
pub(super) const BATCH: usize = 256;

/// Tables of so many bytes are in a core's cache anyway.
const CACHED: usize = 1 << 20;

/// Bytes of a large table that are moved before their memory is given back.
const STEP: usize = HUGE_PAGE;

/// Bytes of a bucket.
const LINE: usize = 64;

/// What a table holds.
pub(super) trait Key: Copy {
    /// Words of eight bytes a key.
    const WORDS: usize;
    /// Keys a bucket: as many as fit beside their codes.
    const PER_LINE: usize = LINE / (8 * Self::WORDS + 4);
    /// 32 bits of hash, the same each time.
    fn tag(&self) -> u32;
    fn of_words(words: &[[u8; 8]]) -> Self;
    fn to_words(self, words: &mut [[u8; 8]]);
}

/// Keys, then their codes plus one, zero where there is no key, then some bits of each key's tag, so that one of them is
/// compared and not all. It fills from the front.
#[derive(Clone)]
#[repr(align(64))]
struct Line([u8; LINE]);

impl Borrow<[u8; LINE]> for Line {
    #[inline]
    fn borrow(&self) -> &[u8; LINE] {
        &self.0
    }
}

/// The buckets: a power of two.
enum Lines {
    Few(Vec<Line>),
    /// In memory of its own, of huge pages where there are.
    Many(Extent),
}

impl Lines {
    fn zeros(bits: u32) -> Self {
        let bytes = LINE << bits;
        let large = || Slab::new(bytes, true).ok()?.take(bytes);
        match if bytes < HUGE_PAGE { None } else { large() } {
            Some(extent) => Self::Many(extent),
            None => Self::Few(vec![Line([0; LINE]); 1 << bits]),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Few(lines) => lines.len(),
            Self::Many(extent) => extent.len() / LINE,
        }
    }

    #[inline]
    fn get(&self, at: usize) -> &[u8; LINE] {
        match self {
            Self::Few(lines) => &lines[at].0,
            Self::Many(extent) => &extent.as_chunks().0[at],
        }
    }

    /// Gives back the memory of buckets that are not looked at any more, of a table so large that it matters.
    fn discard(&mut self, before: usize) {
        if let Self::Many(extent) = self {
            extent.discard(..LINE * before);
        }
    }

    fn get_mut(&mut self, at: usize) -> &mut [u8; LINE] {
        match self {
            Self::Few(lines) => &mut lines[at].0,
            Self::Many(extent) => &mut extent.as_chunks_mut().0[at],
        }
    }
}

#[inline]
fn key<K: Key>(line: &[u8; LINE], i: usize) -> K {
    K::of_words(&line.as_chunks().0[i * K::WORDS..(i + 1) * K::WORDS])
}

#[inline]
fn code<K: Key>(line: &[u8; LINE], i: usize) -> u32 {
    u32::from_le_bytes(line.as_chunks().0[2 * K::WORDS * K::PER_LINE + i])
}

/// The keys of a bucket with their codes.
fn held<K: Key>(line: &[u8; LINE]) -> impl Iterator<Item = (K, u32)> {
    (0..K::PER_LINE).filter_map(|i| Some((key(line, i), code::<K>(line, i).checked_sub(1)?)))
}

/// The code plus one of the one key that is meant, or zero. All are compared, because which it is cannot be predicted.
#[inline]
fn among<K: Key>(line: &[u8; LINE], is: &impl Fn(K) -> bool) -> u32 {
    let one = |i| select_unpredictable(is(key(line, i)), code::<K>(line, i), 0);
    (0..K::PER_LINE).fold(0, |found, i| found | one(i))
}

/// Where a bucket has bits of its keys' tags: the last four bytes.
const MARKS: usize = LINE / 4 - 1;

/// Bits of a tag that a bucket has of each key.
const fn mark_bits<K: Key>() -> usize {
    if K::PER_LINE <= 4 { 8 } else { 6 }
}

/// One in each mark.
const fn ones<K: Key>() -> u32 {
    let (mut ones, mut i) = (0, 0);
    while i < K::PER_LINE {
        ones |= 1 << (mark_bits::<K>() * i);
        i += 1;
    }
    ones
}

/// The mark of a tag: of its low bits, for the high ones tell the bucket. Never zero.
#[inline]
fn mark<K: Key>(tag: u32) -> u32 {
    (tag & ((1 << mark_bits::<K>()) - 1)) | 1
}

/// Which key of a bucket is the first with a tag's mark; the last, if none is.
#[inline]
fn likely<K: Key>(line: &[u8; LINE], tag: u32) -> usize {
    let ones = const { ones::<K>() };
    let differ = u32::from_le_bytes(line.as_chunks().0[MARKS]) ^ (mark::<K>(tag) * ones);
    // The highest bit of each mark that is zero, and maybe of some behind the first.
    let equal = differ.wrapping_sub(ones) & !differ & (ones << (mark_bits::<K>() - 1));
    (equal.trailing_zeros() as usize / mark_bits::<K>()).min(K::PER_LINE - 1)
}

#[inline]
fn touch<L: Borrow<[u8; LINE]>>(lines: &[L], at: impl Iterator<Item = usize>) {
    black_box(at.fold(0, |all, at| all ^ lines[at].borrow()[0]));
}

#[inline]
fn glance<K: Key, L: Borrow<[u8; LINE]>>(
    lines: &[L],
    shift: u32,
    tags: &[u32],
    keys: &[K],
    is: impl Fn(K, K) -> bool,
    out: &mut Vec<u32>,
) {
    out.extend(tags.iter().zip(keys).map(|(&tag, &key)| seen(lines[(tag >> shift) as usize].borrow(), tag, key, &is)));
}

/// The code plus one of a key, if it is in a bucket and no other there looks like it, else zero.
#[inline]
fn seen<K: Key>(line: &[u8; LINE], tag: u32, wanted: K, is: impl Fn(K, K) -> bool) -> u32 {
    let i = likely::<K>(line, tag);
    select_unpredictable(is(key(line, i), wanted), code::<K>(line, i), 0)
}

/// A key is in the first bucket with room from its tag's top bits on, as of when it came.
pub(super) struct Slots<K> {
    lines: Lines,
    /// 32 less the number of bits that index the buckets.
    shift: u32,
    len: usize,
    keys: PhantomData<K>,
}

impl<K> std::fmt::Debug for Slots<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys in {} buckets", self.len, self.lines.len())
    }
}

impl<K: Key> Default for Slots<K> {
    fn default() -> Self {
        Self::with_bits(6)
    }
}

impl<K: Key> Slots<K> {
    fn with_bits(bits: u32) -> Self {
        Self { lines: Lines::zeros(bits), shift: u32::BITS - bits, len: 0, keys: PhantomData }
    }

    /// Distinct keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        LINE * self.lines.len()
    }

    /// Bytes that growing takes on top: twice the buckets while there are the old ones, of which large tables give back
    /// what was moved.
    pub(super) fn growth(&self) -> usize {
        match &self.lines {
            Lines::Few(_) => 2 * self.memory(),
            Lines::Many(_) if cfg!(target_os = "linux") => self.memory() + STEP,
            Lines::Many(_) => 2 * self.memory(),
        }
    }

    /// All keys with their codes, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (K, u32)> {
        (0..self.lines.len()).flat_map(|at| held(self.lines.get(at)))
    }

    #[inline]
    fn first(&self, tag: u32) -> usize {
        (tag >> self.shift) as usize
    }

    /// Loads the buckets of a batch, or those so many further on: these loads don't wait for each other.
    #[inline]
    pub(super) fn touch(&self, tags: impl Iterator<Item = u32>, further: usize) {
        if self.memory() <= CACHED {
            return;
        }
        let (shift, mask) = (self.shift, self.lines.len() - 1);
        let at = tags.map(|tag| ((tag >> shift) as usize + further) & mask);
        match &self.lines {
            Lines::Few(lines) => touch(lines, at),
            Lines::Many(extent) => touch(extent.as_chunks().0, at),
        }
    }

    /// Appends for each key of a batch its code plus one, if it is in the first bucket it can be in and no other there looks
    /// like it, else zero.
    #[inline]
    pub(super) fn glance(&self, tags: &[u32], keys: &[K], is: impl Fn(K, K) -> bool, out: &mut Vec<u32>) {
        match &self.lines {
            Lines::Few(lines) => glance(lines, self.shift, tags, keys, is, out),
            Lines::Many(extent) => glance(extent.as_chunks().0, self.shift, tags, keys, is, out),
        }
    }

    /// The same for one key and the bucket after that.
    #[inline]
    pub(super) fn glance_further(&self, tag: u32, key: K, is: impl Fn(K, K) -> bool) -> u32 {
        seen(self.lines.get((self.first(tag) + 1) & (self.lines.len() - 1)), tag, key, is)
    }

    /// The code of the key with this tag that satisfies `is`, which answers for at most one key.
    #[inline]
    pub(super) fn find(&self, tag: u32, is: impl Fn(K) -> bool) -> Option<u32> {
        let mask = self.lines.len() - 1;
        let mut at = self.first(tag);
        loop {
            let line = self.lines.get(at & mask);
            let found = among(line, &is);
            if found > 0 || code::<K>(line, K::PER_LINE - 1) == 0 {
                return found.checked_sub(1);
            }
            at += 1;
        }
    }

    /// Adds a key that is not there, and gives its code: how many there were before.
    pub(super) fn push(&mut self, key: K) -> Result<u32> {
        let code = u32::try_from(self.len).ok().filter(|&code| code < u32::MAX - 1).ok_or_else(full)?;
        if self.len >= self.lines.len() * K::PER_LINE / 4 * 3 {
            self.grow()?;
        }
        self.place(key, code + 1);
        self.len += 1;
        Ok(code)
    }

    fn place(&mut self, key: K, new: u32) {
        let mask = self.lines.len() - 1;
        let mut at = self.first(key.tag());
        loop {
            let line = self.lines.get_mut(at & mask);
            if let Some(free) = (0..K::PER_LINE).find(|&i| code::<K>(line, i) == 0) {
                key.to_words(&mut line.as_chunks_mut().0[free * K::WORDS..(free + 1) * K::WORDS]);
                let words = line.as_chunks_mut().0;
                words[2 * K::WORDS * K::PER_LINE + free] = new.to_le_bytes();
                let marks = u32::from_le_bytes(words[MARKS]) | mark::<K>(key.tag()) << (mark_bits::<K>() * free);
                words[MARKS] = marks.to_le_bytes();
                return;
            }
            at += 1;
        }
    }

    /// Twice the buckets. Old ones are met in the order of their tags, so the new ones fill front to back.
    fn grow(&mut self) -> Result<()> {
        let bits = u32::BITS + 1 - self.shift;
        if bits > 30 {
            return Err(full());
        }
        let mut grown = Self::with_bits(bits);
        for at in 0..self.lines.len() {
            if at.is_multiple_of(STEP / LINE) {
                self.lines.discard(at);
            }
            held(self.lines.get(at)).for_each(|(key, code)| grown.place(key, code + 1));
        }
        grown.len = self.len;
        *self = grown;
        Ok(())
    }
}

#[cold]
fn full() -> EncodingError {
    EncodingError::invalid("too many distinct values for one dictionary")
}
