//! Parquet's hybrid of runs and packed integers, which levels and dictionary indices are written in.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};

/// Integers of a page, from the first to the last.
#[derive(Debug)]
pub(super) struct Hybrid {
    data: Bytes,
    width: u8,
    run: Run,
}

/// What is left of the run that comes next.
#[derive(Clone, Debug)]
enum Run {
    /// The same value so many times.
    Same(usize, u32),
    /// So many values, packed, from this one on.
    Packed(usize, Bytes, usize),
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
        Ok(Self { data, width, run: Run::Same(0, 0) })
    }

    /// Levels up to `largest`.
    pub(super) fn of_levels(data: Bytes, largest: i16) -> Result<Self> {
        let largest = u32::try_from(largest).unwrap_or(0);
        Self::new(data, u8::try_from(u32::BITS - largest.leading_zeros()).unwrap_or(32))
    }

    /// The next integers.
    pub(super) fn take(&mut self, rows: usize) -> Result<Vec<u32>> {
        let mut out = Vec::with_capacity(rows);
        self.each(rows, |run, width| match run {
            Run::Same(rows, value) => out.resize(out.len() + rows, *value),
            Run::Packed(rows, bytes, from) => unpack(bytes, width, *from..from + rows, &mut out),
        })?;
        Ok(out)
    }

    /// Which of the next levels are `largest`: those of values that are not null.
    pub(super) fn present(&mut self, rows: usize, largest: i16) -> Result<BooleanBuffer> {
        let largest = u32::try_from(largest).unwrap_or(0);
        let mut out = BooleanBufferBuilder::new(rows);
        let mut levels = Vec::new();
        self.each(rows, |run, width| match run {
            Run::Same(rows, level) => out.append_n(*rows, *level == largest),
            Run::Packed(rows, bytes, from) if width == 1 => out.append_packed_range(*from..from + rows, bytes),
            Run::Packed(rows, bytes, from) => {
                levels.clear();
                unpack(bytes, width, *from..from + rows, &mut levels);
                levels.iter().for_each(|&level| out.append(level == largest));
            }
        })?;
        Ok(out.finish())
    }

    /// Goes past the next integers.
    pub(super) fn skip(&mut self, rows: usize) -> Result<()> {
        self.each(rows, |_, _| {})
    }

    /// The runs of the next integers, or parts of them.
    fn each(&mut self, mut rows: usize, mut see: impl FnMut(&Run, u8)) -> Result<()> {
        while rows > 0 {
            let left = match &self.run {
                Run::Same(left, _) | Run::Packed(left, ..) => *left,
            };
            if left == 0 {
                self.run = self.next_run()?;
                continue;
            }
            let taken = left.min(rows);
            match &mut self.run {
                Run::Same(left, value) => {
                    see(&Run::Same(taken, *value), self.width);
                    *left -= taken;
                }
                Run::Packed(left, bytes, from) => {
                    see(&Run::Packed(taken, bytes.clone(), *from), self.width);
                    *left -= taken;
                    *from += taken;
                }
            }
            rows -= taken;
        }
        Ok(())
    }

    fn split(&mut self, bytes: usize) -> Result<Bytes> {
        if bytes > self.data.len() { Err(cut_short()) } else { Ok(self.data.split_to(bytes)) }
    }

    fn next_run(&mut self) -> Result<Run> {
        let mut header = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.split(1)?.first().copied().unwrap_or(0);
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
            word.iter_mut().zip(self.split(width.div_ceil(8))?).for_each(|(to, from)| *to = from);
            return Ok(Run::Same(count, u32::from_le_bytes(word)));
        }
        // Some writers leave out the padding of the last group.
        let bytes = count.saturating_mul(width).min(self.data.len());
        let held = (bytes * 8).checked_div(width).unwrap_or(usize::MAX).min(count.saturating_mul(8));
        if held == 0 {
            return Err(cut_short());
        }
        Ok(Run::Packed(held, self.split(bytes)?, 0))
    }
}

/// Integers of packed ones by their numbers.
fn unpack(bytes: &[u8], width: u8, rows: Range<usize>, out: &mut Vec<u32>) {
    let width = usize::from(width);
    let mask = (1u64 << width) - 1;
    let word_at = |byte: usize| match bytes.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes.get(byte..).unwrap_or_default().iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)),
    };
    out.extend(rows.map(|row| {
        let bit = row * width;
        u32::try_from(word_at(bit / 8) >> (bit % 8) & mask).unwrap_or(u32::MAX)
    }));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn integers(bytes: &[u8], width: u8, rows: usize) -> Result<Vec<u32>> {
        Hybrid::new(Bytes::copy_from_slice(bytes), width)?.take(rows)
    }

    #[test]
    fn runs_and_packed_integers_come_back_in_parts_of_any_size() {
        // Three times five, then 0..8 in three bits (the example of the format's specification).
        let bytes = [3 << 1, 5, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let expected: Vec<u32> = [5, 5, 5].into_iter().chain(0..8).collect();
        assert_eq!(integers(&bytes, 3, 11).unwrap(), expected);
        for cut in 0..bytes.len() {
            assert!(integers(&bytes[..cut], 3, 11).is_err());
        }
        assert!(integers(&bytes, 3, 12).is_err());
        assert!(integers(&bytes, 33, 1).is_err());
        assert_eq!(integers(&[8 << 1], 0, 8).unwrap(), vec![0; 8]);
        for step in 1..11 {
            let mut hybrid = Hybrid::new(Bytes::copy_from_slice(&bytes), 3).unwrap();
            let mut found = Vec::new();
            while found.len() < 11 {
                found.extend(hybrid.take(step.min(11 - found.len())).unwrap());
            }
            assert_eq!(found, expected);
            let mut hybrid = Hybrid::new(Bytes::copy_from_slice(&bytes), 3).unwrap();
            hybrid.skip(step).unwrap();
            assert_eq!(hybrid.take(11 - step).unwrap(), expected[step..]);
        }
    }

    #[test]
    fn levels_say_what_is_present() {
        let present = |bytes: &[u8], largest| {
            let mut levels = Hybrid::of_levels(Bytes::copy_from_slice(bytes), largest).unwrap();
            let mut found: Vec<bool> = levels.present(5, largest).unwrap().iter().collect();
            found.extend(levels.present(1, largest).unwrap().iter());
            found
        };
        assert_eq!(present(&[2 << 1, 1, 3, 0b0000_0101], 1), [true, true, true, false, true, false]);
        assert_eq!(present(&[4 << 1, 2, 2 << 1, 1], 2), [true, true, true, true, false, false]);
    }

    #[test]
    fn any_bytes_are_an_error_or_integers() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..next() % 40).map(|_| u8::try_from(next() & 255).unwrap()).collect();
            let width = u8::try_from(next() % 34).unwrap();
            if let Ok(found) = integers(&bytes, width, 100) {
                assert_eq!(found.len(), 100);
            }
            let mut levels = Hybrid::of_levels(bytes.into(), 3).unwrap();
            if let Ok(found) = levels.present(100, 3) {
                assert_eq!(found.len(), 100);
            }
        }
    }
}
