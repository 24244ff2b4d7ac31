//! How many values differ, estimated in little memory: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007) with the
//! estimator of Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017), which needs no correction for few
//! or for many values.
//!
//! A value's hash is that of its [key](crate::dictionary::keys): of keys of up to eight bytes, read as a big-endian number, the
//! finalizer of SplitMix64; of others their xxh3-64.

use plinth_core::wire::checksum;

use crate::column::{Column, Values};
use crate::dictionary::keys::{self, Numbers};
use crate::error::{EncodingError, Result};
use crate::physical::Physical;
use crate::views::view_bytes;

/// Bits of a hash that choose one of the registers of a sketch that grows: 4,096 of these err by 1.6 %.
const PRECISION: u8 = 12;

/// The fewest such bits of a sketch that is written: 64 registers err by 13 %.
const LEAST_PRECISION: u8 = 6;

/// Values a register of a written sketch stands for at least: it is to be small beside the values.
const VALUES_A_REGISTER: u64 = 16;

/// Bits of a register.
const REGISTER: usize = 6;

/// A sketch of distinct values: one register for each class of hashes, with one more than the most zeros that a hash of the
/// class has begun with; 0 if there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    precision: u8,
    registers: Vec<u8>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self::of_precision(PRECISION)
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Sketch {
    fn of_precision(precision: u8) -> Self {
        Self { precision, registers: vec![0; 1 << precision] }
    }

    #[inline]
    fn add_hash(&mut self, hash: u64) {
        let class = usize::try_from(hash >> (64 - self.precision)).unwrap_or(0);
        let zeros = (hash << self.precision).leading_zeros().min(u32::from(64 - self.precision));
        if let Some(register) = self.registers.get_mut(class) {
            *register = (*register).max(u8::try_from(zeros + 1).unwrap_or(u8::MAX));
        }
    }

    /// Adds a value by its key.
    pub fn add_key(&mut self, physical: Physical, key: &[u8]) {
        self.add_hash(Numbers::of(physical).map_or_else(|| checksum(key), |numbers| mix(numbers.of_key(key))));
    }

    /// Adds the values of a column that are not null. Of booleans it knows nothing.
    pub fn add(&mut self, physical: Physical, column: &Column) {
        let valid = |row: usize| column.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        match &column.values {
            Values::Bool(_) => {}
            Values::Fixed(bytes) => {
                let bytes = bytes.as_slice();
                if let Some(numbers) = Numbers::of(physical) {
                    let mut read = Vec::with_capacity(column.len);
                    numbers.read(bytes, &mut read);
                    // Neighbours are often equal.
                    let mut before = None;
                    for (row, number) in read.into_iter().enumerate() {
                        if before != Some(number) && valid(row) {
                            self.add_hash(mix(number));
                            before = Some(number);
                        }
                    }
                } else if let Some(width) = physical.fixed_width().filter(|&width| width > 0) {
                    let mut all = Vec::with_capacity(bytes.len());
                    if keys::encode(physical, bytes, &mut all).is_ok() {
                        let all = all.chunks_exact(width).enumerate();
                        all.filter(|&(row, _)| valid(row)).for_each(|(_, key)| self.add_hash(checksum(key)));
                    }
                }
            }
            Values::Views { views, buffers } => {
                let views = views.inner().as_slice().as_chunks::<16>().0;
                for (row, view) in views.iter().enumerate() {
                    if valid(row)
                        && let Ok(value) = view_bytes(view, buffers)
                    {
                        self.add_hash(checksum(value));
                    }
                }
            }
        }
    }

    /// How many distinct values were added, about.
    pub fn estimate(&self) -> u64 {
        let most = usize::from(64 - self.precision) + 1;
        let mut counts = vec![0_u32; most + 1];
        for &register in &self.registers {
            if let Some(count) = counts.get_mut(usize::from(register)) {
                *count += 1;
            }
        }
        let registers = f64::from(1_u32 << self.precision);
        let share = |count: u32| f64::from(count) / registers;
        let mut sum = registers * tau(1.0 - share(counts[most]));
        for &count in counts[1..most].iter().rev() {
            sum = 0.5 * (sum + f64::from(count));
        }
        sum += registers * sigma(share(counts[0]));
        let estimate = registers * registers / (2.0 * std::f64::consts::LN_2 * sum);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion that saturates")]
        let rounded = estimate.round() as u64;
        rounded
    }

    /// Adds what another sketch has seen. The coarser of the two says how exact the sum is.
    pub fn merge(&mut self, other: &Self) {
        let precision = self.precision.min(other.precision);
        let other = other.folded(precision);
        *self = self.folded(precision);
        for (register, &theirs) in self.registers.iter_mut().zip(&other.registers) {
            *register = (*register).max(theirs);
        }
    }

    /// The logarithm of the number of its registers.
    pub fn precision(&self) -> u8 {
        self.precision
    }

    /// The same with fewer registers: `2^precision`, or as many as there are.
    #[must_use]
    pub fn folded(&self, precision: u8) -> Self {
        let dropped = self.precision.saturating_sub(precision);
        if dropped == 0 {
            return self.clone();
        }
        let mut folded = Self::of_precision(precision);
        for (class, &register) in self.registers.iter().enumerate().filter(|(_, register)| **register > 0) {
            // The bits that no longer choose a register come before those that were looked at.
            let low = u64::try_from(class).unwrap_or(0) << (64 - u32::from(dropped));
            let register = match low {
                0 => register + dropped,
                low => u8::try_from(low.leading_zeros() + 1).unwrap_or(u8::MAX),
            };
            if let Some(slot) = folded.registers.get_mut(class >> dropped) {
                *slot = (*slot).max(register);
            }
        }
        folded
    }

    /// Appends it as files have it, in as many registers as so many values are worth.
    pub fn write(&self, values: u64, out: &mut Vec<u8>) {
        let wanted = (values / VALUES_A_REGISTER).max(1).ilog2();
        let precision = u8::try_from(wanted).unwrap_or(PRECISION).clamp(LEAST_PRECISION, PRECISION);
        let folded = self.folded(precision.min(self.precision));
        out.push(folded.precision);
        for four in folded.registers.chunks(4) {
            let bits = four.iter().rev().fold(0_u32, |bits, &register| (bits << REGISTER) | u32::from(register));
            out.extend_from_slice(&bits.to_le_bytes()[..3]);
        }
    }

    /// Reads what [`Sketch::write`] wrote, and how many bytes that were.
    ///
    /// # Errors
    /// If the bytes are no sketch.
    pub fn read(bytes: &[u8]) -> Result<(Self, usize)> {
        let corrupt = || EncodingError::corrupt("a sketch of distinct values is damaged");
        let (&precision, rest) = bytes.split_first().ok_or_else(corrupt)?;
        if !(LEAST_PRECISION..=PRECISION).contains(&precision) {
            return Err(corrupt());
        }
        let len = (1_usize << precision) / 4 * 3;
        let mut sketch = Self::of_precision(precision);
        let most = 64 - precision + 1;
        let packed = rest.get(..len).ok_or_else(corrupt)?.as_chunks::<3>().0;
        for (four, &[a, b, c]) in sketch.registers.as_chunks_mut::<4>().0.iter_mut().zip(packed) {
            let bits = u32::from_le_bytes([a, b, c, 0]);
            for (i, register) in four.iter_mut().enumerate() {
                *register = u8::try_from(bits >> (REGISTER * i) & 0x3f).unwrap_or(u8::MAX);
                if *register > most {
                    return Err(corrupt());
                }
            }
        }
        Ok((sketch, len + 1))
    }
}

/// Of the registers without a value: x + x^2 + 2 x^4 + 4 x^8 + ...
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * y;
        y += y;
        if sum <= before {
            return sum;
        }
    }
}

/// Of the registers that are full.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        y *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * y;
        if sum >= before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
