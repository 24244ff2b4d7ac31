//! Predicates on packed vectors: ranges on packed data, everything else on values that never leave the innermost cache.

use arrow_buffer::BooleanBuffer;

use super::{FEW, bit, holds};
use crate::bitpack::{self, Lane, VECTOR};
use crate::bits::Words;
use crate::key_set::KeySet;
use crate::physical::IntKind;
use crate::value_set::{IntSet, ValueSet};
use plinth_core::simd::Level;

/// The answers for a full vector, a bit each.
pub(super) type Answers = [u64; VECTOR / 64];

/// A packed vector, or a tail of fewer values; they are offsets from a base.
pub(super) trait Vector {
    /// No offset is larger.
    fn most(&self) -> u64;

    /// Unpacks the values and adds `base` to each.
    fn unpack<T: Lane>(&self, kernel: Level, base: T, out: &mut [T]);

    /// Which offsets of a full vector are from `lo` to `lo + span`, at most [`Vector::most`].
    fn compare(&self, kernel: Level, lo: u64, span: u64) -> Answers;
}

/// The values that are in a set, of `len` in vectors, each with the base of its frame.
pub(super) fn evaluate<V: Vector>(
    kind: IntKind,
    len: usize,
    vectors: impl Iterator<Item = (u64, V)>,
    set: &ValueSet,
) -> BooleanBuffer {
    let kernel = Level::best();
    let mut out = Words::zeros(len);
    let mut codes = [0_u32; VECTOR];
    for (i, (base, vector)) in vectors.enumerate() {
        let from = i * VECTOR;
        let count = (len - from).min(VECTOR);
        let words = out.words_from(from);
        let words = words.get_mut(..count.div_ceil(64)).unwrap_or_default();
        match set {
            ValueSet::IntRange { lo, hi } => add_range(&vector, kernel, kind.value(base), (*lo, *hi), count, words),
            ValueSet::IntSet(members) => match (&**members, members.as_range()) {
                (_, Some(range)) => add_range(&vector, kernel, kind.value(base), range, count, words),
                (IntSet::Listed(values), _) if values.len() <= FEW => {
                    for &value in values.iter() {
                        add_range(&vector, kernel, kind.value(base), (value, value), count, words);
                    }
                }
                (IntSet::Listed(values), _) => {
                    each(&vector, kernel, base, count, words, |raw| values.has(kind.value(raw)));
                }
                (IntSet::Keys(keys), _) => match near(keys, kind.value(base), vector.most()) {
                    Some((first, bits)) => {
                        let codes = &mut codes[..count];
                        vector.unpack(kernel, first, codes);
                        bitpack::members(kernel, codes, bits, words);
                    }
                    None => each(&vector, kernel, base, count, words, |raw| {
                        // Beyond 63 bits unsigned numbers are no keys.
                        let raw = raw.cast_signed();
                        (kind.signed || raw >= 0) && keys.contains(raw)
                    }),
                },
                (IntSet::Bits(bits), _) => match u32::try_from(kind.value(base)) {
                    Ok(base)
                        if u64::from(base).checked_add(vector.most()).is_some_and(|most| most <= u32::MAX.into()) =>
                    {
                        let codes = &mut codes[..count];
                        vector.unpack(kernel, base, codes);
                        bitpack::members(kernel, codes, bits, words);
                    }
                    _ => each(&vector, kernel, base, count, words, |raw| bit(bits, kind, raw)),
                },
            },
            _ => each(&vector, kernel, base, count, words, |raw| holds(set, kind, raw)),
        }
    }
    out.finish()
}

/// If a bitmap tells the keys, and the values from `base` to `base + most` are so near to these that differences in 32 bits are
/// enough: the place of `base` in the bitmap. Values before its first bit have places behind its last.
fn near(keys: &KeySet, base: i128, most: u64) -> Option<(u32, &BooleanBuffer)> {
    let (least, bits) = keys.bitmap()?;
    let place = i32::try_from(base - i128::from(least)).ok()?;
    let is_near = i32::try_from(most).is_ok() && i32::try_from(bits.len()).is_ok();
    is_near.then_some((place.cast_unsigned(), bits))
}

/// Sets the bits of the values in a range.
fn add_range<V: Vector>(
    vector: &V,
    kernel: Level,
    base: i128,
    (lo, hi): (i128, i128),
    count: usize,
    words: &mut [u64],
) {
    let most = vector.most();
    let (lo, hi) = (lo.saturating_sub(base).max(0), hi.saturating_sub(base).min(most.into()));
    let (Ok(lo), Ok(span)) = (u64::try_from(lo), u64::try_from(hi.saturating_sub(lo))) else { return };
    if span == most {
        words.fill(u64::MAX);
        if let (1.., Some(last)) = (count % 64, words.last_mut()) {
            *last >>= 64 - count % 64;
        }
    } else if count == VECTOR {
        let answers = vector.compare(kernel, lo, span);
        words.iter_mut().zip(answers).for_each(|(word, hits)| *word |= hits);
    } else {
        let mut found = [0; VECTOR / 64];
        each(vector, kernel, 0, count, &mut found, |offset| offset.wrapping_sub(lo) <= span);
        words.iter_mut().zip(found).for_each(|(word, hits)| *word |= hits);
    }
}

/// Writes the answer of a function for each value, unpacked.
#[inline(always)]
fn each<V: Vector>(vector: &V, kernel: Level, base: u64, count: usize, words: &mut [u64], holds: impl Fn(u64) -> bool) {
    let mut values = [0_u64; VECTOR];
    let values = &mut values[..count];
    vector.unpack(kernel, base, values);
    for (word, values) in words.iter_mut().zip(values.chunks(64)) {
        *word = values.iter().enumerate().fold(0, |word, (i, &value)| word | u64::from(holds(value)) << i);
    }
}
