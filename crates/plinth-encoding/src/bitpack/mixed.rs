//! Mixed-radix packing: where the number of values is just above a power of two, and a whole bit each would be wasted.
//!
//! # Layout
//! A value is `high * 2^k + low`. The low parts are bit-packed with `k` bits. The high parts are digits below a radix `R`,
//! and `g` of them, a *group*, share `W` bits, the fewest with `R^g <= 2^W`. `n` values, at most a vector, have
//! `ceil(n / g)` groups; value `i` is digit `i / groups` of group `i % groups`, so that adjacent values are the same digit
//! of adjacent groups: plain SIMD, values in order. What the last digits lack is filled with zeros.
//!
//! A group's digits `d_0 ... d_(g-1)` make the number `N = d_0 * R^(g-1) + ... + d_(g-1)`, below `R^g`. What is written is
//! not `N` but the *fraction* `f = ceil(N * 2^W / R^g)`, in `W` bits. The fractions of a vector are a plain bit stream.
//!
//! # Digits without division
//! Read `f` as the number `f / 2^W`, from 0 to less than 1. Times `R`, its whole part is `d_0` and what is left over is a
//! fraction for `d_1`, and so on: a multiplication for each digit, of a word of 64 bits with `f` at its top, whose product
//! has the digit in its high word and the next fraction in its low one. No bit is lost on the way, so all that could go
//! wrong is the rounding of `f`. It is by less than 1, so `f / 2^W = N / R^g + e` with `0 <= e < 1 / 2^W`. After `j`
//! digits are off, `e * R^j` of it is left in a fraction that should be `M / R^(g-j)` for a whole `M < R^(g-j)`, hence at
//! most `1 - 1 / R^(g-j)`; the sum would have to reach 1 to spoil a digit, but `e * R^j < R^j / 2^W <= 1 / R^(g-j)`.
//!
//! Any digit alone takes two multiplications: `f * R^j` modulo 1 is what is left after `j` digits.
//!
//! Representing several digits by one number is old (Knuth, "The Art of Computer Programming" 2, 4.1); multiplying digits
//! out of a fraction is how binary fractions are printed (4.4).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::{Lane, VECTOR, bits_for, mask, packed_len};
use plinth_core::simd::Level;

/// Words of the answers for a vector.
const WORDS: usize = VECTOR / 64;

/// The most bits of a fraction: it and the bits before it in its first byte are one word.
const MOST_FRACTION_BITS: u32 = 57;

/// The fewest low bits that [`Radix::best`] leaves: an equality is answered by them, but for a row in 64.
const FEWEST_LOW_BITS: u8 = 6;

/// Digits a group may have; they divide a vector into rows of at least 32.
const DIGITS: [u8; 5] = [2, 4, 8, 16, 32];

/// How values are taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radix {
    low_bits: u8,
    radix: u32,
    digits: u8,
    fraction_bits: u8,
}

impl Radix {
    /// `low_bits` beside digits below `radix`, `digits` of them a group; none unless there are 2, 4, 8, 16 or 32 digits of
    /// a radix of at least 2, which take at most 57 bits, and the values at most 32.
    pub fn new(low_bits: u8, radix: u32, digits: u8) -> Option<Self> {
        if radix < 2 || !DIGITS.contains(&digits) || low_bits > 31 || u64::from(radix) << low_bits > 1 << 32 {
            return None;
        }
        let fraction_bits = bits_for(u64::from(radix).checked_pow(digits.into())? - 1);
        (u32::from(fraction_bits) <= MOST_FRACTION_BITS).then_some(Self { low_bits, radix, digits, fraction_bits })
    }

    /// What packs values up to `most` best.
    pub fn best(most: u32) -> Option<Self> {
        let candidates = (FEWEST_LOW_BITS..bits_for(most.into())).rev().flat_map(|low_bits| {
            // Of 32 bits at least one is low, so there is room for the one.
            DIGITS.into_iter().filter_map(move |digits| Self::new(low_bits, (most >> low_bits) + 1, digits))
        });
        candidates.min_by_key(|radix| radix.packed_len(VECTOR))
    }

    /// The low bits of a value, which are bit-packed.
    pub fn low_bits(self) -> u8 {
        self.low_bits
    }

    /// What the high parts are below.
    pub fn radix(self) -> u32 {
        self.radix
    }

    /// Digits of a group.
    pub fn digits(self) -> u8 {
        self.digits
    }

    /// Bits of a value in a full vector.
    pub fn bits(self) -> f64 {
        f64::from(self.low_bits) + f64::from(self.fraction_bits) / f64::from(self.digits)
    }

    /// The largest value there can be.
    pub fn most(self) -> u64 {
        (u64::from(self.radix) << self.low_bits) - 1
    }

    /// Groups of a vector of `count` values, or fewer.
    fn groups(self, count: usize) -> usize {
        count.div_ceil(usize::from(self.digits))
    }

    /// Bytes of the fractions of any number of values.
    pub fn fractions_len(self, count: usize) -> usize {
        let size = |count| (self.groups(count) * usize::from(self.fraction_bits)).div_ceil(8);
        count / VECTOR * size(VECTOR) + size(count % VECTOR)
    }

    /// Bytes that any number of values take in all.
    pub fn packed_len(self, count: usize) -> usize {
        packed_len(count, self.low_bits) + self.fractions_len(count)
    }

    /// Appends the low parts and the fractions of `values`, at most one vector, none more than [`Radix::most`] above `base`.
    pub fn pack<T: Lane>(self, values: &[T], base: T, lows: &mut Vec<u8>, fractions: &mut Vec<u8>) {
        let low_mask = mask(self.low_bits);
        super::pack_by(Level::best(), values, |value| value.minus(base).widen() & low_mask, self.low_bits, lows);
        let groups = self.groups(values.len());
        let mut numbers = [0_u64; VECTOR / 2];
        let numbers = &mut numbers[..groups.min(VECTOR / 2)];
        for row in 0..usize::from(self.digits) {
            let digits = values.get(row * groups..).unwrap_or_default().iter();
            let digits = digits.map(|value| value.minus(base).widen() >> self.low_bits);
            for (number, digit) in numbers.iter_mut().zip(digits.chain(std::iter::repeat(0))) {
                *number = *number * u64::from(self.radix) + digit;
            }
        }
        let limit = u64::from(self.radix).pow(self.digits.into());
        // 2^W / R^g to 64 places: 1 and these.
        let places = ((1_u128 << (64 + self.fraction_bits)) / u128::from(limit)) - (1 << 64);
        for number in numbers.iter_mut() {
            // The quotient of N * 2^W by R^g, or one less for the missing places; what is left over says which.
            let quotient = *number + high_word(u128::from(*number) * places);
            let left = (*number << self.fraction_bits).wrapping_sub(quotient.wrapping_mul(limit));
            *number = quotient + u64::from(left > 0) + u64::from(left > limit);
        }
        super::scalar::pack_stream(numbers.iter().copied(), self.fraction_bits, fractions);
    }
}

/// The whole part of a product with a fraction.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the high half of 128 bits")]
fn high_word(product: u128) -> u64 {
    (product >> 64) as u64
}

/// The packed values of a vector, or of a tail of fewer.
#[derive(Clone, Copy, Debug)]
pub struct Mixed<'a> {
    radix: Radix,
    lows: &'a [u8],
    fractions: &'a [u8],
}

impl<'a> Mixed<'a> {
    /// `count` values, at most a vector; none if the bytes are too few.
    pub fn new(radix: Radix, count: usize, lows: &'a [u8], fractions: &'a [u8]) -> Option<Self> {
        let enough = count <= VECTOR
            && lows.len() >= packed_len(count, radix.low_bits)
            && fractions.len() >= radix.fractions_len(count);
        enough.then_some(Self { radix, lows, fractions })
    }

    /// How the values are taken apart.
    pub fn radix(&self) -> Radix {
        self.radix
    }

    /// The fraction of a group, at the top of a word; zero past the end.
    #[inline(always)]
    fn fraction(&self, group: usize) -> u64 {
        let width = usize::from(self.radix.fraction_bits);
        let (byte, shift) = (group * width / 8, group * width % 8);
        let rest = self.fractions.get(byte..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        // What lies above the fraction goes out at the top.
        word >> shift << (64 - width)
    }

    /// The high part of value `at` of `count`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a digit is below the radix, at most 31 digits lie before it")]
    fn high(&self, at: usize, count: usize) -> u32 {
        let groups = self.radix.groups(count).max(1);
        let radix = u64::from(self.radix.radix);
        let left = self.fraction(at % groups).wrapping_mul(radix.wrapping_pow((at / groups) as u32));
        high_word(u128::from(left) * u128::from(radix)) as u32
    }

    /// The low part of a value of a full vector.
    fn low(&self, at: usize) -> u32 {
        super::scalar::get32(self.lows, self.radix.low_bits, at)
    }

    /// Unpacks as many values as were packed and adds `base` to each.
    pub fn unpack<T: Lane>(&self, kernel: Level, base: T, out: &mut [T]) {
        if let Ok(vector) = <&mut [T; VECTOR]>::try_from(&mut *out)
            && let Some(vector) = (vector as &mut dyn std::any::Any).downcast_mut::<[u32; VECTOR]>()
        {
            #[allow(clippy::cast_possible_truncation, reason = "of 32 bits already")]
            self.unpack32(kernel, base.widen() as u32, vector);
            return;
        }
        let mut values = [0; VECTOR];
        let values = &mut values[..out.len().min(VECTOR)];
        self.unpack32(kernel, 0, values);
        for (slot, &value) in out.iter_mut().zip(&*values) {
            *slot = T::truncate32(value).plus(base);
        }
    }

    fn unpack32(&self, kernel: Level, base: u32, out: &mut [u32]) {
        super::unpack(kernel, self.lows, self.radix.low_bits, base, out);
        match (kernel, <&mut [u32; VECTOR]>::try_from(&mut *out)) {
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2, Ok(vector)) if Level::Avx2.available() => avx2::add_highs(self, vector),
            #[cfg(target_arch = "aarch64")]
            (Level::Neon, Ok(vector)) => neon::add_highs(self, vector),
            _ => scalar::add_highs(self, out),
        }
    }

    /// Which values `v` of a full vector satisfy `v - lo <= span`, modulo 2^32: bit `i % 64` of word `i / 64` for value `i`.
    pub fn compare(&self, kernel: Level, lo: u32, span: u32) -> [u64; WORDS] {
        // Few low parts fit a narrow range, and where they don't, the high ones need not be known.
        if u64::from(span) < (1 << self.radix.low_bits) / 32
            && let Some(hits) = self.compare_lows_first(kernel, lo, span)
        {
            return hits;
        }
        let mut values = [0; VECTOR];
        super::unpack(kernel, self.lows, self.radix.low_bits, 0_u32.wrapping_sub(lo), &mut values);
        match kernel {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 if Level::Avx2.available() => avx2::compare(self, &values, span),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => neon::compare(self, &mut values, span),
            _ => scalar::compare(self, &mut values, span),
        }
    }

    /// As [`Mixed::compare`]; none if so many values fit by their low parts that to ask each for its high one takes longer.
    #[allow(clippy::cast_possible_truncation, reason = "masked to at most 31 bits")]
    fn compare_lows_first(&self, kernel: Level, lo: u32, span: u32) -> Option<[u64; WORDS]> {
        let low_mask = mask(self.radix.low_bits) as u32;
        let (from, to) = (lo & low_mask, lo.wrapping_add(span) & low_mask);
        let compare =
            |lo: u32, hi: u32| super::compare(kernel, self.lows, self.radix.low_bits, lo.into(), u64::from(hi - lo));
        // A range that passes from one high part to the next leaves low parts out in the middle.
        let mut hits = if from <= to { compare(from, to) } else { compare(to + 1, from - 1).map(|word| !word) };
        if hits.iter().map(|word| word.count_ones()).sum::<u32>() > 96 {
            return None;
        }
        for (i, word) in hits.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let at = i * 64 + bit.trailing_zeros() as usize;
                let value = self.high(at, VECTOR) << self.radix.low_bits | self.low(at);
                if value.wrapping_sub(lo) > span {
                    *word ^= bit;
                }
            }
        }
        Some(hits)
    }
}

#[cfg(test)]
mod tests;
