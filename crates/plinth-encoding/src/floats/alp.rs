//! ALP (Afroozeh, Kuffo, Boncz, "ALP: Adaptive Lossless floating-Point Compression", SIGMOD 2023): floats that were
//! decimals, as integers.
//!
//! After the tag: `e` (`u8`) and `f` (`u8`), `f <= e`, `e` at most 18 (`f64`) or 10 (`f32`); a node of `len` signed integers of
//! the float's width ([`crate::ints`], depth 1); `exceptions` (varint, at most `len`); a node of `exceptions` unsigned integers
//! of 4 bytes, their positions, increasing (depth 1); then for each exception its bits, as many bytes as the float has.
//!
//! A value is the integer, converted to `f64`, times `10^f`, times `10^-e`: two multiplications in `f64`, by the `f64`s nearest
//! to `10^f` and `10^-e`, each rounded to nearest even; an `f32` is the result rounded to nearest even once more. (The paper
//! computes `f32` in its own precision; a third of decimals with two digits then fail to come back.) Exceptions replace the values at their positions. The encoder makes an exception of each value that would not come back
//! bit for bit, so `-0`, infinities and NaNs are ones.

use crate::bitpack::{Lane, bits_for};
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::ints::{Ints, Wanted, encode_nested, encode_nested_as};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::wire::{Reader, put_int, put_varint, wide};

/// A float type.
pub(crate) trait Decimal: Copy + Default + arrow_buffer::ArrowNativeType {
    /// The largest `e`.
    const MOST: u8;
    /// Bytes.
    const WIDTH: u8;
    /// The integers' bits.
    type Bits: Lane;
    /// A value from its bits.
    fn from_bits64(bits: u64) -> Self;
    /// Its bits.
    fn bits64(self) -> u64;
    /// The value as `f64`.
    fn to_f64(self) -> f64;
    /// The integer as the type stores it; any, where it does not fit.
    fn integer(value: f64) -> i64;
    /// The value an integer stands for.
    fn decode(integer: Self::Bits, power: f64, inverse: f64) -> Self;
}

const POWERS: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const INVERSES: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18,
];

fn power(exponent: u8) -> f64 {
    POWERS.get(usize::from(exponent)).copied().unwrap_or(1.0)
}

fn inverse(exponent: u8) -> f64 {
    INVERSES.get(usize::from(exponent)).copied().unwrap_or(1.0)
}

/// The integer for a value, and whether it brings the value back.
#[inline(always)]
fn encode_one<T: Decimal>(bits: u64, e: u8, f: u8) -> (i64, bool) {
    // Adding and subtracting 1.5 * 2^52 rounds to nearest without a branch.
    const MAGIC: f64 = 1.5 / f64::EPSILON;
    let integer = T::integer(T::from_bits64(bits).to_f64() * power(e) * inverse(f) + MAGIC - MAGIC);
    let back = T::decode(T::Bits::truncate(integer.cast_unsigned()), power(f), inverse(e));
    (integer, back.bits64() == bits)
}

impl Decimal for f64 {
    const MOST: u8 = 18;
    const WIDTH: u8 = 8;
    type Bits = u64;

    #[inline(always)]
    fn from_bits64(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    #[inline(always)]
    fn bits64(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "saturates, and is checked by decoding")]
    fn integer(value: f64) -> i64 {
        value as i64
    }

    #[inline(always)]
    #[allow(clippy::cast_precision_loss, reason = "the format rounds so")]
    fn decode(integer: u64, power: f64, inverse: f64) -> Self {
        integer.cast_signed() as Self * power * inverse
    }
}

impl Decimal for f32 {
    const MOST: u8 = 10;
    const WIDTH: u8 = 4;
    type Bits = u32;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "bits of four bytes")]
    fn from_bits64(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    #[inline(always)]
    fn bits64(self) -> u64 {
        self.to_bits().into()
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "saturates, and is checked by decoding")]
    fn integer(value: f64) -> i64 {
        i64::from(value as i32)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the format rounds so")]
    fn decode(integer: u32, power: f64, inverse: f64) -> Self {
        (f64::from(integer.cast_signed()) * power * inverse) as Self
    }
}

/// Parsed values.
#[derive(Clone, Debug)]
pub(crate) struct Alp {
    e: u8,
    f: u8,
    integers: Ints,
    positions: Ints,
    exceptions: arrow_buffer::Buffer,
    width: u8,
}

/// The node, tag included, or nothing if few values are decimals. Its integers may be written like others.
pub(crate) fn encode(values: &[u64], width: u8, effort: Effort, like: Option<&Choice>) -> Option<Vec<u8>> {
    if width == 8 { encode_decimals::<f64>(values, effort, like) } else { encode_decimals::<f32>(values, effort, like) }
}

fn encode_decimals<T: Decimal>(values: &[u64], effort: Effort, like: Option<&Choice>) -> Option<Vec<u8>> {
    let (e, f) = find_exponents::<T>(values)?;
    let (mut integers, mut positions, mut exceptions) = (Vec::with_capacity(values.len()), vec![], vec![]);
    for (i, &bits) in values.iter().enumerate() {
        let (integer, exact) = encode_one::<T>(bits, e, f);
        if exact {
            integers.push(integer.cast_unsigned());
        } else {
            positions.push(wide(i));
            exceptions.push(bits);
            // A hole costs least when it looks like its neighbour; those before the first value are filled below.
            integers.push(integers.last().copied().unwrap_or(0));
        }
    }
    let first = (0..).zip(&positions).take_while(|(i, at)| **at == *i).count();
    if let Some(&value) = integers.get(first) {
        integers.iter_mut().take(first).for_each(|slot| *slot = value);
    }
    if exceptions.len() * 2 > values.len() {
        return None;
    }
    let mut out = vec![Encoding::Alp.tag(), e, f];
    encode_nested_as(like, &integers, IntKind { width: T::WIDTH, signed: true }, 1, effort, &mut out);
    put_varint(&mut out, wide(positions.len()));
    encode_nested(&positions, IntKind::U32, 1, effort, &mut out);
    exceptions.iter().for_each(|&bits| put_int(&mut out, bits, T::WIDTH));
    Some(out)
}

/// The exponents that make a sample smallest.
fn find_exponents<T: Decimal>(values: &[u64]) -> Option<(u8, u8)> {
    let step = values.len().div_ceil(256).max(1);
    let sample: Vec<u64> = values.iter().step_by(step).copied().collect();
    // A few values tell which exponents come into question, as in the paper's first level.
    let probe: Vec<u64> = sample.iter().step_by(sample.len().div_ceil(32).max(1)).copied().collect();
    let mut candidates: Vec<(usize, u8, u8)> = vec![];
    for e in 0..=T::MOST {
        for f in 0..=e {
            candidates.push((estimate::<T>(&probe, e, f), e, f));
        }
    }
    candidates.sort_unstable_by_key(|&(size, e, f)| (size, e, std::cmp::Reverse(f)));
    let best = candidates.iter().take(5).map(|&(_, e, f)| (estimate::<T>(&sample, e, f), e, f)).min()?;
    (best.0 < sample.len() * 8 * usize::from(T::WIDTH)).then_some((best.1, best.2))
}

/// The bits that values would take.
fn estimate<T: Decimal>(values: &[u64], e: u8, f: u8) -> usize {
    let (mut min, mut max, mut exceptions) = (i64::MAX, i64::MIN, 0);
    for &bits in values {
        let (integer, exact) = encode_one::<T>(bits, e, f);
        if exact {
            min = min.min(integer);
            max = max.max(integer);
        } else {
            exceptions += 1;
        }
    }
    if min > max {
        return usize::MAX;
    }
    let width = usize::from(bits_for(max.wrapping_sub(min).cast_unsigned()));
    values.len() * width + exceptions * (8 * usize::from(T::WIDTH) + 16)
}

impl Alp {
    pub(super) fn parse(width: u8, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let (e, f) = (reader.u8()?, reader.u8()?);
        let most = if width == 8 { f64::MOST } else { f32::MOST };
        if e > most || f > e {
            return Err(EncodingError::corrupt(format!("ALP exponents {e} and {f}")));
        }
        let integers = Ints::parse(IntKind { width, signed: true }, len, 1, reader)?;
        let count = reader.count(len, "exceptions")?;
        let positions = Ints::parse(IntKind::U32, count, 1, reader)?;
        let exceptions = reader.take(count * usize::from(width))?;
        Ok(Self { e, f, integers, positions, exceptions, width })
    }

    /// How its integers are stored.
    pub(super) fn choice(&self) -> Choice {
        self.integers.choice()
    }

    pub(super) fn describe(&self) -> String {
        format!("10^{}-{}; {}; {} exceptions", self.f, self.e, self.integers.describe(), self.positions.len)
    }

    pub(super) fn decode<T: Decimal>(&self, wanted: Wanted<'_>) -> Result<Vec<T>> {
        let (power, inverse) = (power(self.f), inverse(self.e));
        let integers: Scratch<T::Bits> = self.integers.decode_scratch(wanted)?;
        let mut out: Vec<T> = integers.iter().map(|&integer| T::decode(integer, power, inverse)).collect();
        let positions: Scratch<u32> = self.positions.decode_scratch(None)?;
        let exceptions = self.exceptions.as_slice().chunks_exact(usize::from(self.width.max(1)));
        for (&at, bytes) in positions.iter().zip(exceptions) {
            let mut wide = [0; 8];
            let len = bytes.len().min(8);
            wide[..len].copy_from_slice(&bytes[..len]);
            let slot = out.get_mut(at as usize);
            let slot = slot.ok_or_else(|| EncodingError::corrupt(format!("an exception at {at} is past the end")))?;
            *slot = T::from_bits64(u64::from_le_bytes(wide));
        }
        Ok(out)
    }
}
