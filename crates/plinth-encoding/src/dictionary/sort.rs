//! Distinct values in order, and the rank of each provisional code.

use std::ops::Range;

use plinth_core::prefetch::prefetch;
use rayon::prelude::*;

use crate::dictionary::chunks::Chunks;
use crate::dictionary::entry::Entry;
use crate::dictionary::keys::Numbers;
use crate::dictionary::strings::Strings;
use crate::dictionary::wire::prefix8;
use crate::physical::Physical;

/// Fewer strings than this that share a prefix are compared whole.
const FEW: usize = 12;
/// Bytes a value takes in a table of strings at least: three in a line of 64, of four at most.
const LINE_SHARE: usize = 28;
/// How many strings before it is its turn a string is asked of memory.
const AHEAD: usize = 12;
/// So many are sorted on several threads.
const MANY: usize = 1 << 14;

/// The distinct values' keys in order.
#[derive(Debug)]
pub struct Sorted {
    physical: Physical,
    bytes: Vec<u8>,
    ends: Ends,
    len: usize,
    remap: Vec<u32>,
}

/// Where keys end.
#[derive(Debug)]
enum Ends {
    /// All keys have this many bytes.
    Width(usize),
    At(Vec<usize>),
}

impl Sorted {
    /// The type of the values.
    pub fn physical(&self) -> Physical {
        self.physical
    }

    /// Number of distinct values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rank of each provisional code.
    pub fn remap(&self) -> &[u32] {
        &self.remap
    }

    /// The key of rank `rank`, which must be less than `len()`; empty otherwise.
    #[inline]
    pub fn key(&self, rank: usize) -> &[u8] {
        let range = match &self.ends {
            Ends::Width(width) => rank * width..(rank + 1) * width,
            Ends::At(ends) => {
                let start = rank.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
                start..ends.get(rank).copied().unwrap_or(start)
            }
        };
        self.bytes.get(range).unwrap_or(&[])
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len).map(|rank| self.key(rank))
    }

    /// Sum of the keys' lengths.
    pub fn key_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Bytes that [`numbers`] holds beside the table its keys come from, at most.
pub(super) fn numbers_room(len: usize) -> usize {
    len * (size_of::<(u64, u32)>() + size_of::<u64>() + size_of::<u32>())
}

/// Sorts `len` distinct keys with their codes.
pub(super) fn numbers(
    physical: Physical,
    numbers: Numbers,
    len: usize,
    entries: impl Iterator<Item = (u64, u32)>,
) -> Sorted {
    let mut keys = Vec::with_capacity(len);
    keys.extend(entries);
    sort(&mut keys);
    let mut bytes = Vec::with_capacity(keys.len() * numbers.width());
    let mut remap = vec![0; keys.len()];
    for (&(key, code), rank) in keys.iter().zip(0..) {
        numbers.push_key(key, &mut bytes);
        remap[code as usize] = rank;
    }
    Sorted { physical, bytes, ends: Ends::Width(numbers.width()), len: keys.len(), remap }
}

/// Bytes that [`strings`] holds beside what it is given, at most. The table is gone when keys are put in order: then they take
/// its room too, 28 bytes a value at least.
pub(super) fn strings_room(len: usize, key_bytes: usize) -> usize {
    let (items, entries) = (size_of::<Item>(), size_of::<Entry>());
    let after = items + entries + size_of::<usize>() + size_of::<u32>();
    (len * (items + entries)).max(len * after.saturating_sub(LINE_SHARE) + key_bytes)
}

pub(super) fn strings(physical: Physical, strings: Strings) -> Sorted {
    let Strings { slots, long: kept, key_bytes } = strings;
    let len = slots.len();
    let mut items: Vec<Item> = Vec::with_capacity(len);
    items.extend(slots.entries().map(|(entry, code)| Item::new(&entry, &kept, code)));
    // Where long strings are, by code; if there is none, items say all.
    let mut long = Vec::new();
    if !kept.is_empty() {
        long.resize(len, Entry::default());
        slots.entries().for_each(|(entry, code)| long[code as usize] = entry);
    }
    // The table is larger than the keys and of no more use.
    drop(slots);
    let tails = Tails { entries: long, kept };
    tails.order(&mut items);

    let mut bytes = Vec::with_capacity(key_bytes + Item::BYTES);
    let mut ends = Vec::with_capacity(len);
    let mut remap = vec![0; len];
    for (at, (item, rank)) in items.iter().zip(0..).enumerate() {
        tails.ask_ahead(&items, at, 0);
        remap[item.code as usize] = rank;
        match tails.entries.get(item.code as usize).filter(|entry| entry.len() > Item::BYTES) {
            Some(entry) => bytes.extend_from_slice(entry.bytes(&tails.kept, &mut [0; 16])),
            None => item.push_bytes(&mut bytes),
        }
        ends.push(bytes.len());
    }
    let ends = physical.fixed_width().map_or(Ends::At(ends), Ends::Width);
    Sorted { physical, bytes, ends, len, remap }
}

/// Sorts what has no equals, so that how is of no matter.
fn sort<T: Ord + Send>(items: &mut [T]) {
    if items.len() < MANY { items.sort_unstable() } else { items.par_sort_unstable() }
}

/// Twelve bytes of a string from some depth on; ordered by them, then by how many of them there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    /// The first eight, big-endian.
    head: u64,
    /// The next four, big-endian, above how many of the twelve are the string's, or thirteen if more follow.
    tail: u64,
    code: u32,
}

impl Item {
    const BYTES: usize = 12;

    #[inline]
    fn new(entry: &Entry, kept: &Chunks, code: u32) -> Self {
        let mut scratch = [0; 16];
        Self::of(entry.bytes(kept, &mut scratch), code)
    }

    #[inline]
    fn of(rest: &[u8], code: u32) -> Self {
        let next = rest.get(8..).unwrap_or_default();
        let held = rest.len().min(Self::BYTES + 1) as u64;
        Self { head: prefix8(rest), tail: prefix8(&next[..next.len().min(4)]) | held, code }
    }

    fn prefix(&self) -> (u64, u64) {
        (self.head, self.tail)
    }

    /// Appends the string, of which this is all.
    #[inline]
    fn push_bytes(&self, out: &mut Vec<u8>) {
        let mut all = [0; 16];
        all[..8].copy_from_slice(&self.head.to_be_bytes());
        all[8..].copy_from_slice(&self.tail.to_be_bytes());
        // All that may be there is copied, which needs no call.
        let end = out.len() + usize::from(all[15]).min(Self::BYTES);
        out.extend_from_slice(&all[..Self::BYTES]);
        out.truncate(end);
    }
}

/// What long strings have that items do not say.
struct Tails {
    entries: Vec<Entry>,
    kept: Chunks,
}

impl Tails {
    fn bytes<'a>(&'a self, code: u32, scratch: &'a mut [u8; 16]) -> &'a [u8] {
        self.entries.get(code as usize).map_or(&[], |entry| entry.bytes(&self.kept, scratch))
    }

    /// Asks memory for what will be wanted when the items after the one at `at` are: where their strings are, and later what these
    /// have from `depth` on.
    #[inline]
    fn ask_ahead(&self, items: &[Item], at: usize, depth: usize) {
        let entry = |ahead: usize| items.get(at + ahead).and_then(|item| self.entries.get(item.code as usize));
        if let Some(far) = entry(2 * AHEAD) {
            prefetch(far);
        }
        let mut scratch = [0; 16];
        if let Some(byte) = entry(AHEAD).and_then(|near| near.bytes(&self.kept, &mut scratch).get(depth)) {
            prefetch(byte);
        }
    }

    /// Sorts by twelve bytes, then each run that shares them by the next twelve (a multikey quicksort with caching, after
    /// Bentley and Sedgewick; Ng and Kakehi). Strings are distinct, so a run ends where one of its strings does.
    fn order(&self, items: &mut [Item]) {
        let mut todo: Vec<(Range<usize>, usize)> = vec![(0..items.len(), 0)];
        while let Some((range, depth)) = todo.pop() {
            let first = range.start;
            let items = &mut items[range];
            if depth > 0 {
                for at in 0..items.len() {
                    self.ask_ahead(items, at, depth);
                    let item = &mut items[at];
                    let mut scratch = [0; 16];
                    let rest = self.bytes(item.code, &mut scratch).get(depth..).unwrap_or_default();
                    *item = Item::of(rest, item.code);
                }
            }
            sort(items);
            if self.entries.is_empty() {
                return;
            }
            let mut at = 0;
            while at < items.len() {
                let run = items[at..].iter().take_while(|other| other.prefix() == items[at].prefix()).count();
                if run > FEW {
                    todo.push((first + at..first + at + run, depth + Item::BYTES));
                } else if run > 1 {
                    items[at..at + run].sort_unstable_by(|a, b| {
                        let (mut x, mut y) = ([0; 16], [0; 16]);
                        self.bytes(a.code, &mut x).cmp(self.bytes(b.code, &mut y))
                    });
                }
                at += run;
            }
        }
    }
}
