//! Parquet's hybrid of runs and packed integers, which levels and dictionary indices are written in.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};

/// Integers of a page, from the first to the last.
#[derive(Debug)]
pub(super) struct Hybrid {
    data: Bytes,
    /// The byte at which the run after this one begins.
    next: usize,
    width: u8,
    run: Run,
}

/// What is left of the run that comes next.
#[derive(Clone, Copy, Debug)]
enum Run {
    /// The same value so many times.
    Same(usize, u32),
    /// So many values of those packed from a byte on, from this one of them on.
    Packed(usize, usize, usize),
}

fn cut_short() -> ParquetError {
    ParquetError::EOF("levels or indices of a page are cut short".to_owned())
}

impl Hybrid {
    /// Integers of `width` bits.
    pub(super) fn new(data: Bytes, width: u8) -> Result<Self> {
        if width > 32 {
            return Err(ParquetError::General(format!("integers of {width} bits")));
        }
        Ok(Self { data, next: 0, width, run: Run::Same(0, 0) })
    }

    /// Levels up to `largest`.
    pub(super) fn of_levels(data: Bytes, largest: i16) -> Result<Self> {
        let largest = u32::try_from(largest).unwrap_or(0);
        Self::new(data, u8::try_from(u32::BITS - largest.leading_zeros()).unwrap_or(32))
    }

    /// The next integers.
    pub(super) fn take(&mut self, rows: usize) -> Result<Vec<u32>> {
        let mut out = Vec::with_capacity(rows);
        self.each(rows, |run, data, width| match run {
            Run::Same(rows, value) => out.resize(out.len() + rows, value),
            Run::Packed(rows, at, from) => unpack(packed(data, at), width, from..from + rows, &mut out),
        })?;
        Ok(out)
    }

    /// Which of the next levels are `largest`: those of values that are not null.
    pub(super) fn present(&mut self, rows: usize, largest: i16) -> Result<BooleanBuffer> {
        let largest = u32::try_from(largest).unwrap_or(0);
        let mut out = BooleanBufferBuilder::new(rows);
        let mut levels = Vec::new();
        self.each(rows, |run, data, width| match run {
            Run::Same(rows, level) => out.append_n(rows, level == largest),
            Run::Packed(rows, at, from) if width == 1 => out.append_packed_range(from..from + rows, packed(data, at)),
            Run::Packed(rows, at, from) => {
                levels.clear();
                unpack(packed(data, at), width, from..from + rows, &mut levels);
                levels.iter().for_each(|&level| out.append(level == largest));
            }
        })?;
        Ok(out.finish())
    }

    /// Goes past the next integers.
    pub(super) fn skip(&mut self, rows: usize) -> Result<()> {
        self.each(rows, |_, _, _| {})
    }

    /// The runs of the next integers, or parts of them.
    fn each(&mut self, mut rows: usize, mut see: impl FnMut(Run, &[u8], u8)) -> Result<()> {
        while rows > 0 {
            let (Run::Same(left, _) | Run::Packed(left, ..)) = self.run;
            if left == 0 {
                self.run = self.next_run()?;
                continue;
            }
            let taken = left.min(rows);
            let (now, rest) = match self.run {
                Run::Same(left, value) => (Run::Same(taken, value), Run::Same(left - taken, value)),
                Run::Packed(left, at, from) => {
                    (Run::Packed(taken, at, from), Run::Packed(left - taken, at, from + taken))
                }
            };
            see(now, &self.data, self.width);
            self.run = rest;
            rows -= taken;
        }
        Ok(())
    }

    /// Goes past some bytes and says where they begin.
    fn pass(&mut self, bytes: usize) -> Result<usize> {
        let at = self.next;
        let end = at.checked_add(bytes).filter(|&end| end <= self.data.len());
        self.next = end.ok_or_else(cut_short)?;
        Ok(at)
    }

    fn next_run(&mut self) -> Result<Run> {
        let mut header = 0u64;
        let mut shift = 0;
        loop {
            let at = self.pass(1)?;
            let byte = self.data.get(at).copied().unwrap_or(0);
            header |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 56 {
                return Err(ParquetError::General("a run longer than any page".to_owned()));
            }
        }
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        let width = usize::from(self.width);
        if count == 0 {
            return Err(ParquetError::General("a run of nothing".to_owned()));
        }
        if header & 1 == 0 {
            let mut word = [0; 4];
            let bytes = width.div_ceil(8);
            let at = self.pass(bytes)?;
            word.iter_mut().zip(packed(&self.data, at)).take(bytes).for_each(|(to, from)| *to = *from);
            return Ok(Run::Same(count, u32::from_le_bytes(word)));
        }
        // Some writers leave out the padding of the last group.
        let bytes = count.saturating_mul(width).min(self.data.len() - self.next);
        let held = (bytes * 8).checked_div(width).unwrap_or(usize::MAX).min(count.saturating_mul(8));
        if held == 0 {
            return Err(cut_short());
        }
        Ok(Run::Packed(held, self.pass(bytes)?, 0))
    }
}

fn packed(data: &[u8], at: usize) -> &[u8] {
    data.get(at..).unwrap_or_default()
}

/// Integers that are packed together: as many as fill whole bytes at any width.
const GROUP: usize = 8;

/// Integers of packed ones by their numbers.
fn unpack(bytes: &[u8], width: u8, rows: Range<usize>, out: &mut Vec<u32>) {
    let width = usize::from(width);
    let mask = (1u64 << width) - 1;
    // One by one to where a group starts, then groups as long as a word may be read at each of their integers.
    let start = rows.end.min(rows.start.next_multiple_of(GROUP));
    one_by_one(bytes, width, rows.start..start, out);
    let packed = bytes.get(start / GROUP * width..).unwrap_or_default();
    let groups = match width {
        0 => 0,
        _ => ((rows.end - start) / GROUP).min(packed.len().saturating_sub(8) / width),
    };
    let places: [(usize, usize); GROUP] = std::array::from_fn(|i| (i * width / 8, i * width % 8));
    let known = out.len();
    out.resize(known + groups * GROUP, 0);
    let integers = out.get_mut(known..).unwrap_or_default().as_chunks_mut::<GROUP>().0;
    for (integers, group) in integers.iter_mut().zip(0..) {
        let group = packed.get(group * width..).unwrap_or_default();
        if width <= 8 {
            let word = group.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            for (i, integer) in integers.iter_mut().enumerate() {
                *integer = low_half(word >> (i * width) & mask);
            }
        } else {
            for (integer, (byte, bit)) in integers.iter_mut().zip(places) {
                let word = group.get(byte..byte + 8).and_then(<[u8]>::first_chunk);
                *integer = low_half(word.map_or(0, |word| u64::from_le_bytes(*word)) >> bit & mask);
            }
        }
    }
    one_by_one(bytes, width, start + groups * GROUP..rows.end, out);
}

fn one_by_one(bytes: &[u8], width: usize, rows: Range<usize>, out: &mut Vec<u32>) {
    if rows.is_empty() {
        return;
    }
    let mask = (1u64 << width) - 1;
    let word_at = |byte: usize| match bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes.get(byte..).unwrap_or_default().iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)),
    };
    out.extend(rows.map(|row| {
        let bit = row * width;
        low_half(word_at(bit / 8) >> (bit % 8) & mask)
    }));
}

#[allow(clippy::cast_possible_truncation, reason = "the mask has at most 32 bits")]
fn low_half(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
