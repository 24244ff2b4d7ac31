//! Sets and bounds of decoded values.

use std::ops::Bound;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::answers::Mask;
use crate::bitpack;
use crate::bits::{self, map_bits};
use crate::column::{Column, Values};
use crate::error::{EncodingError, Result};
use crate::expr::Scalar;
use crate::physical::{IntKind, Physical, rank, to_f64, wide_value};
use crate::value_set::{IntSet, ValueSet};
use crate::views::{view, view_bytes};
use crate::zone_map::Bounds;
use plinth_core::simd::Level;

/// Which decoded values are in a set. Null rows are unknown.
///
/// # Errors
/// If the values are not of the physical type.
pub fn evaluate_column(physical: Physical, column: &Column, set: &ValueSet) -> Result<Mask> {
    let (set, negated) = set.stripped();
    let hits = hits(physical, column, set)?;
    if hits.len() != column.len {
        return Err(mismatch(physical));
    }
    let hits = if negated { !&hits } else { hits };
    Ok(match column.nulls.as_ref().filter(|nulls| nulls.null_count() > 0) {
        None => Mask { is_true: hits, is_null: None },
        Some(nulls) if nulls.len() != column.len => return Err(mismatch(physical)),
        Some(nulls) => Mask { is_true: &hits & nulls.inner(), is_null: Some(!nulls.inner()) },
    })
}

fn mismatch(physical: Physical) -> EncodingError {
    EncodingError::invalid(format!("values in another layout or number than a column of {physical:?} has"))
}

fn hits(physical: Physical, column: &Column, set: &ValueSet) -> Result<BooleanBuffer> {
    Ok(match (physical, &column.values) {
        (Physical::Bool, Values::Bool(values)) => match (set.holds_bool(false), set.holds_bool(true)) {
            (false, false) => bits::all(values.len(), false),
            (true, true) => bits::all(values.len(), true),
            (false, true) => values.clone(),
            (true, false) => !values,
        },
        (Physical::Int { width, signed }, Values::Fixed(bytes)) => match (width, signed) {
            (1, false) => ints::<1, u8>(bytes, u8::from_le_bytes, signed, set),
            (1, true) => ints::<1, i8>(bytes, i8::from_le_bytes, signed, set),
            (2, false) => ints::<2, u16>(bytes, u16::from_le_bytes, signed, set),
            (2, true) => ints::<2, i16>(bytes, i16::from_le_bytes, signed, set),
            (4, false) => ints::<4, u32>(bytes, u32::from_le_bytes, signed, set),
            (4, true) => ints::<4, i32>(bytes, i32::from_le_bytes, signed, set),
            (8, false) => ints::<8, u64>(bytes, u64::from_le_bytes, signed, set),
            (8, true) => ints::<8, i64>(bytes, i64::from_le_bytes, signed, set),
            _ => return Err(mismatch(physical)),
        },
        (Physical::Wide { width: 16 }, Values::Fixed(bytes)) => {
            let values = bytes.as_slice().as_chunks::<16>().0;
            match set {
                ValueSet::IntRange { lo, hi } => {
                    map_bits(values, |bytes| (*lo..=*hi).contains(&i128::from_le_bytes(bytes)))
                }
                _ => map_bits(values, |bytes| set.holds_int(i128::from_le_bytes(bytes))),
            }
        }
        (Physical::Wide { width: 32 }, Values::Fixed(bytes)) => {
            map_bits(bytes.as_slice().as_chunks::<32>().0, |bytes| set.holds_wide(&bytes))
        }
        (Physical::Float { width }, Values::Fixed(bytes)) => match width {
            2 => floats(bytes.as_slice().as_chunks::<2>().0, |b| to_f64(u16::from_le_bytes(b).into(), 2), set),
            4 => floats(bytes.as_slice().as_chunks::<4>().0, |b| to_f64(u32::from_le_bytes(b).into(), 4), set),
            8 => floats(bytes.as_slice().as_chunks::<8>().0, f64::from_le_bytes, set),
            _ => return Err(mismatch(physical)),
        },
        (Physical::Fixed { width: 0 }, Values::Fixed(_)) => bits::all(column.len, set.holds_bytes(&[])),
        (Physical::Fixed { width }, Values::Fixed(bytes)) => {
            bytes.as_slice().chunks_exact(width as usize).map(|value| set.holds_bytes(value)).collect()
        }
        (Physical::Bytes { .. }, Values::Views { views, buffers }) => {
            let views = views.inner().as_slice().as_chunks::<16>().0;
            if let Some(values) = set.few_bytes() {
                return Ok(equal_views(views, buffers, values));
            }
            let mut bad = None;
            let hits = views
                .iter()
                .enumerate()
                .map(|(row, view)| {
                    let valid = column.nulls.as_ref().is_none_or(|nulls| row < nulls.len() && nulls.is_valid(row));
                    valid
                        && match view_bytes(view, buffers) {
                            Ok(value) => set.holds_bytes(value),
                            Err(error) => {
                                bad = Some(error);
                                false
                            }
                        }
                })
                .collect();
            if let Some(error) = bad {
                return Err(error);
            }
            hits
        }
        _ => return Err(mismatch(physical)),
    })
}

/// Which views are one of a few values. What is longer than a view is looked at only where its length and first bytes are right.
fn equal_views(views: &[[u8; 16]], buffers: &[Buffer], values: &[Arc<[u8]>]) -> BooleanBuffer {
    let one = |value: &[u8]| {
        let needle = view(value, 0, value.len());
        if value.len() <= 12 {
            return map_bits(views, |view| u128::from_le_bytes(view) == needle);
        }
        let head = |view: u128| view & u128::from(u64::MAX);
        map_bits(views, |view| {
            head(u128::from_le_bytes(view)) == head(needle)
                && view_bytes(&view, buffers).is_ok_and(|found| found == value)
        })
    };
    let mut hits = bits::all(views.len(), false);
    for value in values {
        hits = &hits | &one(value);
    }
    hits
}

/// Which values, after `load`, have their bits set, of which the first is that of `least`. What `load` makes none has none.
fn within_bitmap<S: Copy>(
    values: &[S],
    load: impl Fn(S) -> Option<i64>,
    least: i64,
    bits: &BooleanBuffer,
) -> BooleanBuffer {
    let kernel = Level::best();
    let mut words = vec![0_u64; values.len().div_ceil(64)];
    let mut places = [0_u32; bitpack::VECTOR];
    for (values, words) in values.chunks(bitpack::VECTOR).zip(words.chunks_mut(bitpack::VECTOR / 64)) {
        let places = &mut places[..values.len()];
        for (place, value) in places.iter_mut().zip(values) {
            let at = load(*value).map_or(u64::MAX, |value| value.wrapping_sub(least).cast_unsigned());
            *place = u32::try_from(at).unwrap_or(u32::MAX);
        }
        bitpack::members(kernel, places, bits, words);
    }
    BooleanBuffer::new(Buffer::from_vec(words), 0, values.len())
}

/// An integer type of Arrow's, for comparisons as the machine does them.
trait Int: Copy + Ord + TryFrom<i128> + Into<i128> {
    const MIN: Self;
    const MAX: Self;

    /// In 64 bits with a sign; none if it has no place there.
    fn wide(self) -> Option<i64>;
}

macro_rules! int {
    ($($type:ty),*) => {$(
        impl Int for $type {
            const MIN: Self = <$type>::MIN;
            const MAX: Self = <$type>::MAX;

            #[inline(always)]
            fn wide(self) -> Option<i64> {
                i64::try_from(self).ok()
            }
        }
    )*};
}
int!(u8, i8, u16, i16, u32, i32, u64, i64);

fn ints<const W: usize, T: Int>(
    bytes: &[u8],
    load: impl Fn([u8; W]) -> T,
    signed: bool,
    set: &ValueSet,
) -> BooleanBuffer {
    let values = bytes.as_chunks::<W>().0;
    let between = |(lo, hi): (i128, i128), load| {
        if lo > hi || lo > T::MAX.into() || hi < T::MIN.into() {
            return bits::all(values.len(), false);
        }
        let lo = T::try_from(lo).unwrap_or(T::MIN);
        let hi = T::try_from(hi).unwrap_or(T::MAX);
        range(values, load, lo, hi)
    };
    match set {
        ValueSet::IntRange { lo, hi } => between((*lo, *hi), load),
        ValueSet::IntSet(members) => match (&**members, members.as_range()) {
            (_, Some(range)) => between(range, load),
            (IntSet::Bits(set), _) => map_bits(values, |bytes| {
                let value: i128 = load(bytes).into();
                usize::try_from(value).is_ok_and(|at| at < set.len() && set.value(at))
            }),
            (IntSet::Keys(keys), _) => match keys.bitmap() {
                Some((least, bits)) if u32::try_from(bits.len()).is_ok() => {
                    within_bitmap(values, |bytes| load(bytes).wide(), least, bits)
                }
                _ => map_bits(values, |bytes| load(bytes).wide().is_some_and(|value| keys.contains(value))),
            },
            (IntSet::Listed(members), _) => map_bits(values, |bytes| members.has(load(bytes).into())),
        },
        _ => {
            debug_assert!(signed || T::MIN.into() == 0);
            map_bits(values, |bytes| set.holds_int(load(bytes).into()))
        }
    }
}

fn floats<const W: usize>(values: &[[u8; W]], load: impl Fn([u8; W]) -> f64, set: &ValueSet) -> BooleanBuffer {
    let ValueSet::FloatRange { lo, hi } = set else {
        return map_bits(values, |bytes| set.holds_float(load(bytes)));
    };
    let lo = match lo {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(value) => Some(rank(*value)),
        Bound::Excluded(value) => rank(*value).checked_add(1),
    };
    let hi = match hi {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(value) => Some(rank(*value)),
        Bound::Excluded(value) => rank(*value).checked_sub(1),
    };
    let (Some(lo), Some(hi)) = (lo, hi) else { return bits::all(values.len(), false) };
    range(values, |bytes| rank(load(bytes)), lo, hi)
}

/// Which values, after `load`, lie in `lo..=hi`.
fn range<S: Copy, T: Copy + PartialOrd>(values: &[S], load: impl Fn(S) -> T, lo: T, hi: T) -> BooleanBuffer {
    let words = bitpack::in_range(Level::best(), values, load, lo, hi);
    BooleanBuffer::new(Buffer::from_vec(words), 0, values.len())
}

/// The smallest and largest value that is not null, exactly; none if there is none, if the values are not of the physical
/// type, or if a 32-byte integer does not fit 128 bits. Floats are in total order, NaNs included.
pub fn bounds(physical: Physical, column: &Column) -> Option<Bounds> {
    let valid = column.nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
    if valid.is_some_and(|valid| valid.len() != column.len) {
        return None;
    }
    let is_valid = |row: usize| valid.is_none_or(|valid| valid.is_valid(row));
    let rows = || (0..column.len).filter(|&row| is_valid(row));
    match (physical, &column.values) {
        (Physical::Bool, Values::Bool(values)) if values.len() == column.len => {
            let min = rows().map(|row| values.value(row)).min()?;
            let max = rows().map(|row| values.value(row)).max()?;
            Some(Bounds { min: Scalar::Bool(min), max: Scalar::Bool(max) })
        }
        (Physical::Int { width, signed }, Values::Fixed(bytes)) => {
            let kind = IntKind { width, signed };
            let (min, max) = match width {
                1 => extremes::<1, _>(bytes, column.len, is_valid, |b| ordered(kind, &b))?,
                2 => extremes::<2, _>(bytes, column.len, is_valid, |b| ordered(kind, &b))?,
                4 => extremes::<4, _>(bytes, column.len, is_valid, |b| ordered(kind, &b))?,
                8 => extremes::<8, _>(bytes, column.len, is_valid, |b| ordered(kind, &b))?,
                _ => return None,
            };
            let value = |ordered: u64| Scalar::Int(kind.value(kind.ordered(ordered)));
            Some(Bounds { min: value(min), max: value(max) })
        }
        (Physical::Wide { width: 16 }, Values::Fixed(bytes)) => {
            let (min, max) = extremes::<16, _>(bytes, column.len, is_valid, i128::from_le_bytes)?;
            Some(Bounds { min: Scalar::Int(min), max: Scalar::Int(max) })
        }
        (Physical::Wide { width: 32 }, Values::Fixed(bytes)) => {
            let values = bytes.as_slice().as_chunks::<32>().0;
            let mut found: Option<(i128, i128)> = None;
            for row in rows() {
                let value = wide_value(values.get(row)?)?;
                found = Some(found.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
            }
            let (min, max) = found?;
            Some(Bounds { min: Scalar::Int(min), max: Scalar::Int(max) })
        }
        (Physical::Float { width }, Values::Fixed(bytes)) => {
            let (min, max) = match width {
                2 => extremes::<2, _>(bytes, column.len, is_valid, |b| rank(to_f64(u16::from_le_bytes(b).into(), 2)))?,
                4 => extremes::<4, _>(bytes, column.len, is_valid, |b| rank(to_f64(u32::from_le_bytes(b).into(), 4)))?,
                8 => extremes::<8, _>(bytes, column.len, is_valid, |b| rank(f64::from_le_bytes(b)))?,
                _ => return None,
            };
            // The rank's mapping is its own inverse.
            let value =
                |place: i64| Scalar::Float(f64::from_bits(rank(f64::from_bits(place.cast_unsigned())).cast_unsigned()));
            Some(Bounds { min: value(min), max: value(max) })
        }
        (Physical::Fixed { width }, Values::Fixed(bytes)) => {
            let width = width as usize;
            let values = || rows().map(|row| bytes.as_slice().get(row * width..(row + 1) * width));
            by_bytes(values)
        }
        (Physical::Bytes { .. }, Values::Views { views, buffers }) => {
            let views = views.inner().as_slice().as_chunks::<16>().0;
            by_bytes(|| rows().map(|row| view_bytes(views.get(row)?, buffers).ok()))
        }
        _ => None,
    }
}

fn by_bytes<'a, I: Iterator<Item = Option<&'a [u8]>>>(values: impl Fn() -> I) -> Option<Bounds> {
    let mut found: Option<(&[u8], &[u8])> = None;
    for value in values() {
        let value = value?;
        found = Some(found.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
    }
    let (min, max) = found?;
    Some(Bounds { min: Scalar::Bytes(min.into()), max: Scalar::Bytes(max.into()) })
}

fn ordered(kind: IntKind, bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    for (slot, byte) in wide.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    kind.ordered(kind.extend(u64::from_le_bytes(wide)))
}

fn extremes<const W: usize, T: Ord + Copy>(
    bytes: &[u8],
    len: usize,
    is_valid: impl Fn(usize) -> bool,
    load: impl Fn([u8; W]) -> T,
) -> Option<(T, T)> {
    let values = bytes.as_chunks::<W>().0;
    if values.len() != len {
        return None;
    }
    let mut found: Option<(T, T)> = None;
    for (row, value) in values.iter().enumerate() {
        if is_valid(row) {
            let value = load(*value);
            found = Some(found.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
