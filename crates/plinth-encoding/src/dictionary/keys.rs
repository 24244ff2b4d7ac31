//! Order-preserving byte keys: comparing two keys as bytes compares the values they stand for.
//!
//! | physical type | key |
//! |---|---|
//! | `Int` unsigned | the value, big-endian |
//! | `Int` signed, `Wide` | the value with its sign bit flipped, big-endian |
//! | `Float` | the bits, all flipped when negative, else the sign bit flipped; big-endian (IEEE 754 total order) |
//! | `Fixed`, `Bytes` | the bytes themselves |
//!
//! `Bool` has no keys: a dictionary of two values is of no use.

use std::sync::Arc;

use crate::error::{EncodingError, Result};
use crate::expr::Scalar;
use crate::physical::Physical;

/// Bytes a key, where all keys have the same length; `None` for `Bytes`, and for `Bool`, which has no keys.
pub fn key_width(physical: Physical) -> Option<usize> {
    physical.fixed_width()
}

/// How a fixed-width value becomes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Reverse the bytes.
    Unsigned,
    /// Reverse the bytes, flip the sign bit.
    Signed,
    /// Reverse the bytes, flip all of a negative number and the sign bit of others.
    Float,
    /// Leave the bytes.
    Raw,
}

impl Rule {
    fn of(physical: Physical) -> Self {
        match physical {
            Physical::Int { signed: false, .. } => Self::Unsigned,
            Physical::Int { signed: true, .. } | Physical::Wide { .. } => Self::Signed,
            Physical::Float { .. } => Self::Float,
            Physical::Fixed { .. } | Physical::Bytes { .. } | Physical::Bool => Self::Raw,
        }
    }
}

/// Keys of at most eight bytes as numbers: the key read big-endian, so numbers order as keys do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    rule: Rule,
    width: usize,
}

impl Numbers {
    /// For fixed widths of one to eight bytes.
    pub(crate) fn of(physical: Physical) -> Option<Self> {
        let width = key_width(physical).filter(|width| (1..=8).contains(width))?;
        Some(Self { rule: Rule::of(physical), width })
    }

    pub(super) fn width(self) -> usize {
        self.width
    }

    /// The largest number a key of this width can be.
    pub(super) fn largest(self) -> u64 {
        u64::MAX >> (64 - 8 * self.width)
    }

    fn sign(self) -> u64 {
        1 << (8 * self.width - 1)
    }

    /// The number of a value whose little-endian bytes, zero-extended, are `raw`.
    #[inline]
    fn number(self, raw: u64) -> u64 {
        let sign = self.sign();
        match self.rule {
            Rule::Unsigned => raw,
            Rule::Signed => raw ^ sign,
            Rule::Float if raw & sign != 0 => !raw & self.largest(),
            Rule::Float => raw | sign,
            Rule::Raw => raw.swap_bytes() >> (64 - 8 * self.width),
        }
    }

    /// The inverse of [`Numbers::number`].
    #[inline]
    fn raw(self, number: u64) -> u64 {
        let sign = self.sign();
        match self.rule {
            Rule::Unsigned => number,
            Rule::Signed => number ^ sign,
            Rule::Float if number & sign != 0 => number ^ sign,
            Rule::Float => !number & self.largest(),
            Rule::Raw => (number << (64 - 8 * self.width)).swap_bytes(),
        }
    }

    /// The numbers of little-endian values; a last part shorter than a value is ignored.
    pub(crate) fn read(self, values: &[u8], out: &mut Vec<u64>) {
        match self.width {
            1 => out.extend(values.iter().map(|&v| self.number(u64::from(v)))),
            2 => out.extend(values.as_chunks().0.iter().map(|&v| self.number(u64::from(u16::from_le_bytes(v))))),
            4 => out.extend(values.as_chunks().0.iter().map(|&v| self.number(u64::from(u32::from_le_bytes(v))))),
            8 => out.extend(values.as_chunks().0.iter().map(|&v| self.number(u64::from_le_bytes(v)))),
            width => out.extend(values.chunks_exact(width).map(|value| {
                let mut raw = [0; 8];
                raw[..width].copy_from_slice(value);
                self.number(u64::from_le_bytes(raw))
            })),
        }
    }

    /// Writes the values of `numbers` into `out`, as far as both reach.
    pub(super) fn write(self, numbers: &[u64], out: &mut [u8]) {
        match self.width {
            1 => self.write_chunks::<1>(numbers, out),
            2 => self.write_chunks::<2>(numbers, out),
            4 => self.write_chunks::<4>(numbers, out),
            8 => self.write_chunks::<8>(numbers, out),
            width => {
                for (value, &number) in out.chunks_exact_mut(width).zip(numbers) {
                    value.copy_from_slice(&self.raw(number).to_le_bytes()[..width]);
                }
            }
        }
    }

    fn write_chunks<const WIDTH: usize>(self, numbers: &[u64], out: &mut [u8]) {
        for (value, &number) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(numbers) {
            value.copy_from_slice(&self.raw(number).to_le_bytes()[..WIDTH]);
        }
    }

    /// The number of a key of this width.
    pub(crate) fn of_key(self, key: &[u8]) -> u64 {
        super::wire::prefix8(&key[..key.len().min(self.width)]) >> (64 - 8 * self.width)
    }

    /// Appends the key of a number.
    pub(super) fn push_key(self, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&number.to_be_bytes()[8 - self.width..]);
    }
}

/// Appends the keys of little-endian fixed-width values.
///
/// # Errors
/// If the type has no fixed width or `values` is not a whole number of values.
pub fn encode(physical: Physical, values: &[u8], out: &mut Vec<u8>) -> Result<()> {
    convert(physical, values, out, true)
}

/// Appends the little-endian values of fixed-width keys.
///
/// # Errors
/// If the type has no fixed width or `keys` is not a whole number of keys.
pub fn decode(physical: Physical, keys: &[u8], out: &mut Vec<u8>) -> Result<()> {
    convert(physical, keys, out, false)
}

fn convert(physical: Physical, from: &[u8], out: &mut Vec<u8>, to_keys: bool) -> Result<()> {
    let width = key_width(physical)
        .ok_or_else(|| EncodingError::invalid(format!("{physical:?} has no keys of a fixed width")))?;
    if width == 0 || !from.len().is_multiple_of(width) {
        if width == 0 && from.is_empty() {
            return Ok(());
        }
        return Err(EncodingError::invalid(format!("{} bytes are no whole number of {physical:?}", from.len())));
    }
    let rule = Rule::of(physical);
    let start = out.len();
    out.extend_from_slice(from);
    if rule == Rule::Raw {
        return Ok(());
    }
    let out = &mut out[start..];
    match width {
        1 => out.as_chunks_mut::<1>().0.iter_mut().for_each(|value| convert_one(rule, value, to_keys)),
        2 => out.as_chunks_mut::<2>().0.iter_mut().for_each(|value| convert_one(rule, value, to_keys)),
        4 => out.as_chunks_mut::<4>().0.iter_mut().for_each(|value| convert_one(rule, value, to_keys)),
        8 => out.as_chunks_mut::<8>().0.iter_mut().for_each(|value| convert_one(rule, value, to_keys)),
        16 => out.as_chunks_mut::<16>().0.iter_mut().for_each(|value| convert_one(rule, value, to_keys)),
        _ => out.chunks_exact_mut(width).for_each(|value| convert_one(rule, value, to_keys)),
    }
    Ok(())
}

#[inline(always)]
fn convert_one(rule: Rule, value: &mut [u8], to_key: bool) {
    if to_key {
        value.reverse();
    }
    let Some(top) = value.first_mut() else { return };
    match rule {
        Rule::Unsigned | Rule::Raw => {}
        Rule::Signed => *top ^= 0x80,
        // The flipped sign bit says which numbers were negative.
        Rule::Float if (*top & 0x80 != 0) == to_key => value.iter_mut().for_each(|byte| *byte = !*byte),
        Rule::Float => *top ^= 0x80,
    }
    if !to_key {
        value.reverse();
    }
}

/// Writes the value of one key in place of itself.
pub(super) fn decode_in_place(physical: Physical, key: &mut [u8]) {
    let rule = Rule::of(physical);
    if rule != Rule::Raw {
        convert_one(rule, key, false);
    }
}

/// The key of a constant, if the type can hold that very value: integers must be in range, floats exact, fixed-size
/// binaries of the right length.
pub fn from_scalar(physical: Physical, value: &Scalar) -> Option<Vec<u8>> {
    match (physical, value) {
        (Physical::Int { .. } | Physical::Wide { .. }, &Scalar::Int(value)) => match int_position(physical, value) {
            Position::Key(key) => Some(key),
            Position::Below | Position::Above => None,
        },
        (Physical::Float { .. }, &Scalar::Float(value)) => {
            let key = float_key(physical, value, false)?;
            match to_scalar(physical, &key)? {
                Scalar::Float(found) if found.to_bits() == value.to_bits() => Some(key),
                _ => None,
            }
        }
        (Physical::Fixed { width }, Scalar::Bytes(value)) => (value.len() == width as usize).then(|| value.to_vec()),
        (Physical::Bytes { .. }, Scalar::Bytes(value)) => Some(value.to_vec()),
        _ => None,
    }
}

/// The constant a key stands for. `None` when the key has not the type's width, or stands for a 32-byte integer that
/// [`Scalar::Int`] cannot hold.
pub fn to_scalar(physical: Physical, key: &[u8]) -> Option<Scalar> {
    if key_width(physical).is_some_and(|width| width != key.len()) {
        return None;
    }
    match physical {
        Physical::Bool => None,
        Physical::Fixed { .. } | Physical::Bytes { .. } => Some(Scalar::Bytes(Arc::from(key))),
        Physical::Int { signed, .. } => {
            let number = i128::from(Numbers::of(physical)?.of_key(key));
            let bias = if signed { 1i128 << (8 * key.len() - 1) } else { 0 };
            Some(Scalar::Int(number - bias))
        }
        Physical::Wide { .. } => {
            let (high, low) = key.split_at_checked(key.len().checked_sub(16)?)?;
            let mut low = <[u8; 16]>::try_from(low).ok()?;
            if let Some((first, rest)) = high.split_first() {
                let fill = if low[0] & 0x80 != 0 { 0xff } else { 0 };
                if first ^ 0x80 != fill || rest.iter().any(|&byte| byte != fill) {
                    return None;
                }
            } else {
                low[0] ^= 0x80;
            }
            Some(Scalar::Int(i128::from_be_bytes(low)))
        }
        Physical::Float { .. } => {
            let numbers = Numbers::of(physical)?;
            Some(Scalar::Float(widen(numbers.width(), numbers.raw(numbers.of_key(key)))))
        }
    }
}

/// Where an integer lies in the order of a type's keys.
pub(super) enum Position {
    /// Below all of them.
    Below,
    /// On this one.
    Key(Vec<u8>),
    /// Above all of them.
    Above,
}

/// Where `value` lies among the keys of an `Int` or `Wide` type.
pub(super) fn int_position(physical: Physical, value: i128) -> Position {
    let width = key_width(physical).unwrap_or(0);
    let (smallest, largest) = match physical {
        Physical::Int { signed: true, .. } => (-1i128 << (8 * width - 1), !(-1i128 << (8 * width - 1))),
        Physical::Int { .. } => (0, !(-1i128 << (8 * width))),
        _ => (i128::MIN, i128::MAX),
    };
    if value < smallest {
        return Position::Below;
    }
    if value > largest {
        return Position::Above;
    }
    let bytes = value.to_be_bytes();
    let mut key = match width.checked_sub(bytes.len()) {
        Some(more) => [&vec![if value < 0 { 0xff } else { 0 }; more], &bytes[..]].concat(),
        None => bytes[bytes.len() - width..].to_vec(),
    };
    if Rule::of(physical) == Rule::Signed
        && let Some(top) = key.first_mut()
    {
        *top ^= 0x80;
    }
    Position::Key(key)
}

/// The smallest key of a `Float` type whose value is at least `bound` (`beyond`: greater than it) in total order;
/// `None` if there is none.
///
/// Narrow floats widen in the order of their keys, so the key is found by halving.
pub(super) fn float_key(physical: Physical, bound: f64, beyond: bool) -> Option<Vec<u8>> {
    let numbers = Numbers::of(physical)?;
    let below = |number: u64| {
        let order = widen(numbers.width(), numbers.raw(number)).total_cmp(&bound);
        order.is_lt() || (beyond && order.is_eq())
    };
    let (mut low, mut high) = (0, numbers.largest());
    if below(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut key = Vec::new();
    numbers.push_key(low, &mut key);
    Some(key)
}

/// The `f64` of IEEE 754 bits of `width` bytes. NaNs keep their payload and whether they are quiet, which a conversion
/// by the processor would not, and so their order.
fn widen(width: usize, raw: u64) -> f64 {
    let (exponent_bits, fraction_bits) = match width {
        2 => (5, 10),
        4 => (8, 23),
        _ => return f64::from_bits(raw),
    };
    let sign = (raw >> (exponent_bits + fraction_bits)) << 63;
    let fraction = raw & ((1 << fraction_bits) - 1);
    let largest = (1 << exponent_bits) - 1;
    let exponent = (raw >> fraction_bits) & largest;
    let bias = (1u64 << (exponent_bits - 1)) - 1;
    let magnitude = if exponent == largest {
        0x7ff << 52 | fraction << (52 - fraction_bits)
    } else if exponent != 0 {
        (exponent + 1023 - bias) << 52 | fraction << (52 - fraction_bits)
    } else if fraction == 0 {
        0
    } else {
        // A subnormal is normal once widened: its leading bit moves up to where the implied one is.
        let shift = u64::from(fraction.leading_zeros()) - (63 - fraction_bits);
        (1024 - bias - shift) << 52 | (fraction << (shift + 52 - fraction_bits)) & ((1 << 52) - 1)
    };
    f64::from_bits(sign | magnitude)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]
mod tests;
