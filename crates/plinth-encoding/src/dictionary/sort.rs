//! Distinct values in order, and the rank of each provisional code.

use std::ops::Range;

use crate::column::Physical;
use crate::dictionary::intern::Strings;
use crate::dictionary::keys::Numbers;
use crate::dictionary::wire::{low_half, prefix8};

/// Fewer strings than this that share a prefix are compared whole.
const FEW: usize = 12;

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

pub(super) fn numbers(physical: Physical, numbers: Numbers, keys: &[u64]) -> Sorted {
    let mut order: Vec<(u64, u32)> = keys.iter().zip(0..).map(|(&key, code)| (key, code)).collect();
    order.sort_unstable();
    let mut bytes = Vec::with_capacity(keys.len() * numbers.width());
    let mut remap = vec![0; keys.len()];
    for (&(key, code), rank) in order.iter().zip(0..) {
        numbers.push_key(key, &mut bytes);
        remap[code as usize] = rank;
    }
    Sorted { physical, bytes, ends: Ends::Width(numbers.width()), len: keys.len(), remap }
}

pub(super) fn strings(physical: Physical, strings: &Strings, key_bytes: usize) -> Sorted {
    let order = string_order(strings);
    let mut bytes = Vec::with_capacity(key_bytes);
    let mut ends = Vec::with_capacity(order.len());
    let mut remap = vec![0; order.len()];
    for (&Item { code, .. }, rank) in order.iter().zip(0..) {
        remap[code as usize] = rank;
        bytes.extend_from_slice(strings.get(&strings.entries[code as usize], &mut [0; 16]));
        ends.push(bytes.len());
    }
    let len = order.len();
    let ends = physical.fixed_width().map_or(Ends::At(ends), Ends::Width);
    Sorted { physical, bytes, ends, len, remap }
}

/// Eight bytes of a string from some depth on; ordered by them, then by how many of them there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    bytes: u64,
    /// How many of the eight are the string's, or nine if more follow.
    held: u32,
    code: u32,
}

/// Sorts by eight bytes, then each run that shares them by the next eight (a multikey quicksort with caching, after
/// Bentley and Sedgewick; Ng and Kakehi). Strings are distinct, so a run ends where one of its strings does.
fn string_order(strings: &Strings) -> Vec<Item> {
    let entries = &strings.entries;
    let mut items: Vec<Item> = entries.iter().zip(0..).map(|(entry, code)| item(strings, entry, code, 0)).collect();
    let mut todo: Vec<(Range<usize>, usize)> = vec![(0..items.len(), 0)];
    while let Some((range, depth)) = todo.pop() {
        let first = range.start;
        let items = &mut items[range];
        if depth > 0 {
            for item_of in items.iter_mut() {
                *item_of = item(strings, &entries[item_of.code as usize], item_of.code, depth);
            }
        }
        items.sort_unstable();
        let mut at = 0;
        while at < items.len() {
            let run = items[at..].iter().take_while(|other| prefix_of(other) == prefix_of(&items[at])).count();
            if run > FEW {
                todo.push((first + at..first + at + run, depth + 8));
            } else if run > 1 {
                items[at..at + run].sort_unstable_by(|a, b| {
                    let (mut x, mut y) = ([0; 16], [0; 16]);
                    let x = strings.get(&entries[a.code as usize], &mut x);
                    let y = strings.get(&entries[b.code as usize], &mut y);
                    x[depth..].cmp(&y[depth..])
                });
            }
            at += run;
        }
    }
    items
}

fn prefix_of(item: &Item) -> (u64, u32) {
    (item.bytes, item.held)
}

#[inline]
fn item(strings: &Strings, entry: &[u64; 2], code: u32, depth: usize) -> Item {
    let mut scratch = [0; 16];
    let rest = &strings.get(entry, &mut scratch)[depth..];
    Item { bytes: prefix8(rest), held: low_half(rest.len().min(9) as u64), code }
}
