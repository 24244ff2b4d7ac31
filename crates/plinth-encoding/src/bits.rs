//! Small helpers over bitmaps (Arrow's layout: bit `i % 8` of byte `i / 8`, lowest first).

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::error::{EncodingError, Result};

/// A bitmap under construction, in words of 64 rows.
pub(crate) struct Words {
    words: Vec<u64>,
    len: usize,
}

impl Words {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// A copy of a bitmap.
    pub(crate) fn copy(bits: &BooleanBuffer) -> Self {
        let mut words: Vec<u64> = bits.bit_chunks().iter_padded().collect();
        words.truncate(bits.len().div_ceil(64));
        Self { words, len: bits.len() }
    }

    /// Sets the bits of `from..to`, which is cut to the bitmap's length.
    pub(crate) fn set_range(&mut self, from: usize, to: usize) {
        let to = to.min(self.len);
        if from >= to {
            return;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        let head = u64::MAX << (from % 64);
        let tail = u64::MAX >> (63 - (to - 1) % 64);
        if first == last {
            self.words[first] |= head & tail;
        } else {
            self.words[first] |= head;
            self.words[first + 1..last].fill(u64::MAX);
            self.words[last] |= tail;
        }
    }

    /// Makes bit `at` what `value` says; does nothing past the end.
    pub(crate) fn put(&mut self, at: usize, value: bool) {
        if let Some(word) = self.words.get_mut(at / 64) {
            let bit = 1 << (at % 64);
            if value { *word |= bit } else { *word &= !bit }
        }
    }

    /// The words, to be filled from `at`, a multiple of 64.
    pub(crate) fn words_from(&mut self, at: usize) -> &mut [u64] {
        self.words.get_mut(at / 64..).unwrap_or_default()
    }

    pub(crate) fn finish(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }
}

/// The bitmap of `test` over `values`.
#[inline(always)]
pub(crate) fn map_bits<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> BooleanBuffer {
    let words: Vec<u64> = values
        .chunks(64)
        .map(|chunk| chunk.iter().enumerate().fold(0, |word, (i, &value)| word | u64::from(test(value)) << i))
        .collect();
    BooleanBuffer::new(Buffer::from_vec(words), 0, values.len())
}

/// `len` times the same bit.
pub(crate) fn all(len: usize, value: bool) -> BooleanBuffer {
    if value { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) }
}

/// The bits of `bits` at the set positions of `selection`.
pub(crate) fn filter_bits(bits: &BooleanBuffer, selection: &BooleanBuffer) -> BooleanBuffer {
    let mut out = Words::zeros(selection.count_set_bits());
    for (to, from) in selection.set_indices().enumerate() {
        if bits.value(from) {
            out.put(to, true);
        }
    }
    out.finish()
}

/// Puts the bits of `stored` at the set positions of `valid`, zeros elsewhere.
pub(crate) fn expand_bits(stored: &BooleanBuffer, valid: &BooleanBuffer) -> BooleanBuffer {
    let mut out = Words::zeros(valid.len());
    for (from, to) in valid.set_indices().enumerate() {
        if from < stored.len() && stored.value(from) {
            out.put(to, true);
        }
    }
    out.finish()
}

/// The values at the set positions of the selection, if there is one.
pub(crate) fn select<T: Copy>(values: Vec<T>, selection: Option<&BooleanBuffer>) -> Vec<T> {
    match selection {
        None => values,
        Some(selection) => filter_values(&values, selection),
    }
}

/// The values at the set positions of `selection`.
pub(crate) fn filter_values<T: Copy>(values: &[T], selection: &BooleanBuffer) -> Vec<T> {
    let count = selection.count_set_bits();
    let mut out = Vec::with_capacity(count);
    if count * 4 > selection.len() * 3 {
        for (from, to) in selection.set_slices() {
            out.extend_from_slice(values.get(from..to).unwrap_or_default());
        }
    } else {
        out.extend(selection.set_indices().filter_map(|at| values.get(at).copied()));
    }
    out
}

/// Puts `stored` at the set positions of `valid`, defaults elsewhere.
pub(crate) fn expand_values<T: Copy + Default>(stored: &[T], valid: &BooleanBuffer) -> Vec<T> {
    let mut out = vec![T::default(); valid.len()];
    for (to, &value) in valid.set_indices().zip(stored) {
        out[to] = value;
    }
    out
}

/// A bitmap of `len` bits that starts at the first bit of `bytes`.
pub(crate) fn bitmap(bytes: Buffer, len: usize) -> Result<BooleanBuffer> {
    if bytes.len() < len.div_ceil(8) {
        return Err(EncodingError::corrupt("a bitmap is too short"));
    }
    Ok(BooleanBuffer::new(bytes, 0, len))
}

/// The runs of equal bits: the first bit, and where each run ends.
pub(crate) fn runs_of(bits: &BooleanBuffer) -> (bool, Vec<u64>) {
    let mut ends = vec![];
    let first = !bits.is_empty() && bits.value(0);
    let mut at = 0;
    for (from, to) in bits.set_slices() {
        if from > at {
            ends.push(from as u64);
        }
        ends.push(to as u64);
        at = to;
    }
    if at < bits.len() {
        ends.push(bits.len() as u64);
    }
    (first, ends)
}

/// The bitmap that [`runs_of`] took apart. `ends` must increase up to `len`.
pub(crate) fn from_runs(first: bool, ends: &[u32], len: usize) -> BooleanBuffer {
    let mut words = Words::zeros(len);
    let (mut from, mut value) = (0, first);
    for &end in ends {
        let end = end as usize;
        if value {
            words.set_range(from, end);
        }
        (from, value) = (end, !value);
    }
    words.finish()
}
