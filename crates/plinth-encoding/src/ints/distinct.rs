//! The distinct values, in order, and which of them each row has: for wide integers that repeat in no pattern. What decodes
//! is a gather, and a predicate is asked of the few values first.
//!
//! After the tag: `distinct` (varint, 1 to `len`); a node of so many integers of the same kind, increasing; a node of `len`
//! unsigned integers of 4 bytes, the *ranks*: the place of each row's value among them, each below `distinct`.

use arrow_buffer::BooleanBuffer;

use super::{Ints, Wanted, elias_fano, encode_nested_as, holds, is_wanted};
use crate::bitpack::{Lane, VECTOR, bits_for, packed_len};
use crate::bits;
use crate::encoding::{Effort, Encoding};
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::scratch::Scratch;
use crate::value_set::{IntSet, ValueSet};
use crate::wire::{Reader, put_varint, wide};

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Distinct {
    values: Box<Ints>,
    ranks: Box<Ints>,
}

/// Bits a value of the bitmap in which they are counted.
const ROOM: usize = 8;

/// Slots of the table that numbers them, for each value.
const SPARE: usize = 2;

/// The high bits of a value's hash but for so many: as of Fibonacci hashing, but bits fall off neither end of the product.
#[inline]
fn mixed(value: u64, shift: u32) -> usize {
    let product = u128::from(value) * 0x9e37_79b9_7f4a_7c15;
    let (low, high) = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15), u64::try_from(product >> 64).unwrap_or(0));
    usize::try_from((low ^ high.rotate_left(32)) >> shift).unwrap_or(0)
}

/// About how many values differ: a bit for each of their hashes, and what is likely to share a bit with another.
fn count(values: &[u64]) -> usize {
    let bits = (values.len() * ROOM).next_power_of_two().max(64);
    let mut words = vec![0_u64; bits / 64];
    let shift = 64 - bits.ilog2();
    for &value in values {
        let mixed = mixed(value, shift);
        if let Some(word) = words.get_mut(mixed / 64) {
            *word |= 1 << (mixed % 64);
        }
    }
    let ones: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    (ones + ones * ones / (2 * bits)).min(values.len())
}

/// About how many bytes a node of integers would take that spread over `span`.
pub(crate) fn estimate(values: &[u64], span: u64, kind: IntKind) -> Option<usize> {
    let count = count(values);
    let most = wide(count).checked_sub(1)?;
    let ranks = packed_len(values.len(), bits_for(most));
    Some(4 + ranks + elias_fano::of_size(0, span.checked_sub(most)?, count, kind)?.size)
}

/// The distinct values as they come first, and the number of each value: its place among them.
fn number(values: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut distinct, mut numbers) = (vec![], Vec::with_capacity(values.len()));
    let len = (values.len() * SPARE).next_power_of_two().max(2);
    // Numbers, each more by one, where their values' hashes want them or after that.
    let (mut slots, shift) = (vec![0_u32; len], 64 - len.ilog2());
    for &value in values {
        // Neighbours are often equal.
        if let Some(&before) = numbers.last().filter(|&&before| holds_number(&distinct, before, value)) {
            numbers.push(before);
            continue;
        }
        let mut at = mixed(value, shift);
        loop {
            let Some(slot) = slots.get_mut(at) else {
                at = 0;
                continue;
            };
            match slot.checked_sub(1) {
                None => {
                    numbers.push(wide(distinct.len()));
                    distinct.push(value);
                    *slot = u32::try_from(distinct.len()).unwrap_or(u32::MAX);
                    break;
                }
                Some(number) if holds_number(&distinct, number.into(), value) => {
                    numbers.push(number.into());
                    break;
                }
                Some(_) => at += 1,
            }
        }
    }
    (distinct, numbers)
}

/// Whether a number is that of a value.
#[inline]
fn holds_number(distinct: &[u64], number: u64, value: u64) -> bool {
    usize::try_from(number).ok().and_then(|number| distinct.get(number)) == Some(&value)
}

/// Writes a node, whose values and ranks may be like those of another.
pub(crate) fn encode(values: &[u64], kind: IntKind, depth: u8, effort: Effort, like: &[Choice], out: &mut Vec<u8>) {
    let (distinct, mut ranks) = number(values);
    let mut distinct: Vec<(u64, u32)> = distinct.into_iter().zip(0..).collect();
    distinct.sort_unstable_by_key(|&(value, _)| kind.ordered(value));
    let mut places = vec![0_u64; distinct.len()];
    for (place, &(_, number)) in distinct.iter().enumerate() {
        places[number as usize] = wide(place);
    }
    for rank in &mut ranks {
        *rank = usize::try_from(*rank).ok().and_then(|number| places.get(number)).copied().unwrap_or(0);
    }
    let distinct: Vec<u64> = distinct.into_iter().map(|(value, _)| value).collect();
    out.push(Encoding::Distinct.tag());
    put_varint(out, wide(distinct.len()));
    encode_nested_as(like.first(), &distinct, kind, depth + 1, effort, out);
    encode_nested_as(like.get(1), &ranks, IntKind::U32, depth + 1, effort, out);
}

impl Distinct {
    pub(super) fn parse(kind: IntKind, len: usize, depth: u8, reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.count(len, "distinct values")?;
        let values = Box::new(Ints::parse(kind, count, depth + 1, reader)?);
        let ranks = Box::new(Ints::parse(IntKind::U32, len, depth + 1, reader)?);
        Ok(Self { values, ranks })
    }

    /// What [`encode`] takes.
    pub(super) fn choices(&self) -> Vec<Choice> {
        vec![self.values.choice(), self.ranks.choice()]
    }

    pub(super) fn describe(&self) -> String {
        format!("{} x {}; ranks {}", self.values.len, self.values.describe(), self.ranks.describe())
    }

    pub(super) fn evaluates_by_decoding(&self) -> bool {
        self.ranks.evaluates_by_decoding()
    }

    pub(super) fn decode<T: Lane>(&self, wanted: Wanted<'_>, out: &mut [T]) -> Result<()> {
        let values: Scratch<T> = self.values.decode_scratch(None)?;
        let ranks: Scratch<u32> = self.ranks.decode_scratch(wanted)?;
        for (i, (out, ranks)) in out.chunks_mut(VECTOR).zip(ranks.chunks(VECTOR)).enumerate() {
            if !is_wanted(wanted, i) {
                continue;
            }
            let most = ranks.iter().fold(0, |most, &rank| most.max(rank));
            if most as usize >= values.len() {
                let what = format!("a row has value {most} of {} distinct ones", values.len());
                return Err(EncodingError::corrupt(what));
            }
            for (slot, &rank) in out.iter_mut().zip(ranks) {
                *slot = values.get(rank as usize).copied().unwrap_or_default();
            }
        }
        Ok(())
    }

    /// The rows whose values are in a set: those whose ranks are those of its values.
    pub(super) fn evaluate(&self, len: usize, set: &ValueSet) -> Result<BooleanBuffer> {
        match self.ranks_of(set)? {
            ValueSet::IntRange { lo, hi } if lo > hi => Ok(bits::all(len, false)),
            ranks => self.ranks.evaluate_always(&ranks),
        }
    }

    /// The ranks of the values that are in a set.
    fn ranks_of(&self, set: &ValueSet) -> Result<ValueSet> {
        let kind = self.values.kind;
        let values = self.values.decode_raw()?;
        if !values.windows(2).all(|pair| kind.ordered(pair[0]) < kind.ordered(pair[1])) {
            return Err(EncodingError::corrupt("distinct values that do not increase"));
        }
        let range = |lo: i128, hi: i128| {
            let from = values.partition_point(|&raw| kind.value(raw) < lo);
            let to = values.partition_point(|&raw| kind.value(raw) <= hi);
            (i128::from(wide(from)), i128::from(wide(to)) - 1)
        };
        Ok(match set {
            ValueSet::IntRange { lo, hi } => {
                let (lo, hi) = range(*lo, *hi);
                ValueSet::IntRange { lo, hi }
            }
            ValueSet::IntSet(members) => match &**members {
                IntSet::Listed(members) if members.len() < values.len() => {
                    let ranks = members.iter().map(|&member| range(member, member));
                    let ranks: Vec<i128> = ranks.filter(|(lo, hi)| lo == hi).map(|(lo, _)| lo).collect();
                    match ranks.as_slice() {
                        [] => ValueSet::nothing(),
                        _ => ValueSet::IntSet(IntSet::Listed(ranks.into()).into()),
                    }
                }
                _ => ValueSet::of_codes(bits::map_bits(&values, |raw| holds(set, kind, raw))),
            },
            _ => ValueSet::of_codes(bits::map_bits(&values, |raw| holds(set, kind, raw))),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_buffer::Buffer;

    use super::super::encode_nested;
    use super::*;

    const I64: IntKind = IntKind { width: 8, signed: true };

    /// A node of these values and ranks, as a damaged or hostile file may have them.
    fn forged(values: &[u64], ranks: &[u64]) -> Ints {
        let mut bytes = vec![Encoding::Distinct.tag()];
        put_varint(&mut bytes, wide(values.len()));
        encode_nested(values, I64, 1, Effort::Fast, &mut bytes);
        encode_nested(ranks, IntKind::U32, 1, Effort::Fast, &mut bytes);
        Ints::parse(I64, ranks.len(), 0, &mut Reader::new(&Buffer::from(bytes))).unwrap()
    }

    fn equal(value: i128) -> ValueSet {
        ValueSet::IntRange { lo: value, hi: value }
    }

    #[test]
    fn ranks_beyond_the_values_are_refused() {
        assert_eq!(forged(&[5, 70, 900], &[2, 0, 1, 2]).decode::<u64>(None).unwrap(), [900, 5, 70, 900]);
        let error = forged(&[5, 70, 900], &[2, 0, 3, 2]).decode::<u64>(None).unwrap_err().to_string();
        assert!(error.contains("a row has value 3 of 3 distinct ones"), "{error}");
    }

    #[test]
    fn ranks_are_not_looked_at_for_a_value_that_no_row_has() {
        // They would be refused.
        let node = forged(&[5, 70, 900], &[2, 0, 3, 2]);
        assert_eq!(node.evaluate(&equal(71)).unwrap().unwrap().count_set_bits(), 0);
        assert_eq!(node.evaluate(&ValueSet::nothing()).unwrap().unwrap().count_set_bits(), 0);
        let rows = node.evaluate(&equal(900)).unwrap().unwrap();
        assert_eq!(rows.set_indices().collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn values_out_of_order_answer_nothing() {
        assert!(forged(&[5, 900, 70], &[2, 0, 1, 2]).evaluate(&equal(70)).is_err());
        assert!(forged(&[5, 5], &[0, 1, 0]).evaluate(&equal(5)).is_err());
    }

    #[test]
    fn values_are_numbered_as_they_come() {
        for distinct in [1_u64, 3, 700, 8192] {
            let values: Vec<u64> = (0..8192_u64).map(|row| (row / 3 * 7 % distinct).wrapping_mul(1 << 52)).collect();
            let mut known: Vec<u64> = vec![];
            let naive: Vec<u64> = values
                .iter()
                .map(|value| {
                    let at = known.iter().position(|other| other == value).unwrap_or(known.len());
                    if at == known.len() {
                        known.push(*value);
                    }
                    wide(at)
                })
                .collect();
            let (found, numbers) = number(&values);
            assert!(numbers == naive && found == known);
        }
        assert_eq!(number(&[]), (vec![], vec![]));
    }

    #[test]
    fn counts_are_about_right() {
        for (values, distinct) in [(8192_u64, 3_u64), (8192, 2435), (8192, 8192), (65_536, 18_900), (10, 10)] {
            for step in [1_u64, 4096, 0x9e37_79b9_7f4a_7c15, 1 << 40] {
                let column: Vec<u64> = (0..values).map(|row| (row % distinct).wrapping_mul(step)).collect();
                let found = wide(count(&column));
                assert!(found.abs_diff(distinct) <= 2 + distinct / 20, "{found} of {distinct}, {step:#x} apart");
            }
        }
    }
}
