//! Keys of many rows, their order, and a key's place among sorted ones.

use std::ops::Range;

use plinth_core::key::head;

/// The keys of some rows, as bytes, end to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(super) bytes: Vec<u8>,
    len: usize,
    /// The length of each, as long as it is the same of all.
    width: usize,
    /// Else where each ends.
    ends: Vec<usize>,
}

impl Keys {
    /// None, with room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let range = if self.ends.is_empty() {
            row * self.width..(row + 1) * self.width
        } else {
            let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
            start..self.ends.get(row).copied().unwrap_or(start)
        };
        self.bytes.get(range).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.end(start);
    }

    /// The key that began at an offset is complete.
    pub(super) fn end(&mut self, start: usize) {
        let width = self.bytes.len() - start;
        if self.len == 0 {
            self.width = width;
        } else if self.ends.is_empty() && width != self.width {
            self.ends = (1..=self.len).map(|row| row * self.width).collect();
        }
        if !self.ends.is_empty() {
            self.ends.push(self.bytes.len());
        }
        self.len += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Their places in the order of the keys; of equal ones the first comes first. For few keys, which are looked for at once:
    /// without the threads that [`Keys::in_order`] may use.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<(u64, usize)> = (0..self.len).map(|row| (head(self.get(row), 0), row)).collect();
        if self.ends.is_empty() && self.width <= size_of::<u64>() {
            order.sort_unstable();
        } else {
            order.sort_unstable_by(|a, b| (a.0, self.get(a.1), a.1).cmp(&(b.0, self.get(b.1), b.1)));
        }
        order.into_iter().map(|(_, row)| row).collect()
    }

    /// Rows in the order of their keys.
    pub(crate) fn in_order(&self, rows: Vec<u32>) -> Vec<u32> {
        let key = |at: u32| rows.get(at as usize).map_or(&[][..], |&row| self.get(row as usize));
        let len = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let order = plinth_core::sort::order_bytes(len, key);
        order.into_iter().filter_map(|at| rows.get(at as usize).copied()).collect()
    }

    /// Among sorted keys, those of a range: the first that is not less than `key`. It is looked for from `guess` on, in steps
    /// that double, so that a good guess looks at few keys.
    pub(crate) fn seek(&self, within: Range<usize>, guess: usize, key: &[u8]) -> usize {
        if within.is_empty() {
            return within.start;
        }
        let wanted = head(key, 0);
        let less = |row: usize| {
            let known = self.get(row);
            head(known, 0).cmp(&wanted).then_with(|| known.cmp(key)).is_lt()
        };
        let (mut low, mut high) = (within.start, within.end);
        let (guess, mut step) = (guess.clamp(low, high - 1), 1);
        if less(guess) {
            low = guess + 1;
            while low + step <= high {
                let next = low + step - 1;
                if !less(next) {
                    high = next;
                    break;
                }
                (low, step) = (next + 1, step * 2);
            }
        } else {
            high = guess;
            while let Some(next) = high.checked_sub(step).filter(|&next| next >= low) {
                if less(next) {
                    low = next + 1;
                    break;
                }
                (high, step) = (next, step * 2);
            }
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            if less(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Bytes it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// Where a key would be among `rows` sorted ones that begin with `first` and end with `last`, if they lay evenly.
pub(crate) fn guess(first: u64, last: u64, wanted: u64, rows: usize) -> usize {
    let (span, offset) = (last.saturating_sub(first), wanted.saturating_sub(first));
    // In 64 bits: 32 of the keys' difference are enough.
    let shift = (u64::BITS - span.leading_zeros()).saturating_sub(32);
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let share = (offset.min(span) >> shift) * u64::from(rows) / (span >> shift).max(1);
    usize::try_from(share).unwrap_or(usize::MAX)
}
