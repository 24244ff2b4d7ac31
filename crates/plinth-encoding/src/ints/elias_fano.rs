//! Integers of which each is larger than the one before: distinct values in order, where runs end, where exceptions are.
//!
//! After the tag: the first value, `width` bytes; the low bits `l` (`u8`, below `8 * width`); `bits` (varint); a bitmap of
//! `bits`; then the low parts of all values, packed with `l` bits as in a bit-packed node of one frame. Value `i` is stored
//! as what it is more than the first one and `i`, a number that never falls: its low `l` bits are its low part, and its high
//! part `h` is the place of one `i` (from 0) of the bitmap, which is `h + i`. The bitmap has `len` ones and ends with one.
//!
//! This is the representation of Elias (1974) and Fano (1971): two bits a value beyond the logarithm of the mean difference.
//! With `l = 0` it is a bitmap of the values themselves.

use arrow_buffer::Buffer;

use super::packed;
use crate::bitpack::{self, Lane, VECTOR, mask, packed_len};
use crate::encoding::Encoding;
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::wire::{Reader, narrow, put_int, put_varint, wide};

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct EliasFano {
    /// Raw.
    first: u64,
    low_bits: u8,
    highs: Buffer,
    lows: Buffer,
}

/// How a node would be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Raw.
    first: u64,
    low_bits: u8,
    bits: usize,
    /// Bytes of the node, or a few less.
    pub(crate) size: usize,
}

/// How integers would be written; none if they do not increase.
pub(crate) fn plan(values: &[u64], kind: IntKind) -> Option<Plan> {
    let (&first, &last) = (values.first()?, values.last()?);
    if !values.windows(2).all(|pair| kind.ordered(pair[0]) < kind.ordered(pair[1])) {
        return None;
    }
    let span = kind.ordered(last) - kind.ordered(first) - wide(values.len() - 1);
    of_size(first, span, values.len(), kind)
}

/// How `len` integers from one on, over so large a span, would be written.
pub(super) fn of_size(first: u64, span: u64, len: usize, kind: IntKind) -> Option<Plan> {
    // Where the mean difference is 2^l, one bit more or less of the low parts is as good or better.
    let middle = (span / wide(len.max(1))).checked_ilog2().unwrap_or(0);
    (middle.saturating_sub(1)..=middle + 1)
        .filter(|&low| low < 8 * u32::from(kind.width))
        .filter_map(|low| {
            let (low_bits, bits) = (u8::try_from(low).ok()?, usize::try_from(span >> low).ok()?.checked_add(len)?);
            let size = 4 + usize::from(kind.width) + bits.div_ceil(8) + packed_len(len, low_bits);
            Some(Plan { first, low_bits, bits, size })
        })
        .min_by_key(|plan| plan.size)
}

/// Writes a node.
pub(crate) fn encode(values: &[u64], plan: Plan, kind: IntKind, out: &mut Vec<u8>) {
    out.push(Encoding::EliasFano.tag());
    put_int(out, plan.first, kind.width);
    out.push(plan.low_bits);
    put_varint(out, wide(plan.bits));
    let mut highs = vec![0_u8; plan.bits.div_ceil(8)];
    let mut more: Vec<u64> = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let above = value.wrapping_sub(plan.first).wrapping_sub(wide(i));
        let place = usize::try_from(above >> plan.low_bits).unwrap_or(usize::MAX).saturating_add(i);
        if let Some(byte) = highs.get_mut(place / 8) {
            *byte |= 1 << (place % 8);
        }
        more.push(above & mask(plan.low_bits));
    }
    out.extend_from_slice(&highs);
    for vector in more.chunks(VECTOR) {
        bitpack::pack(vector, 0, plan.low_bits, out);
    }
}

/// A bitmap in words of 64, the last with zeros at its end.
fn words(bitmap: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bitmap.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    whole.iter().map(|word| u64::from_le_bytes(*word)).chain((!rest.is_empty()).then_some(u64::from_le_bytes(last)))
}

impl EliasFano {
    pub(super) fn parse(kind: IntKind, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let corrupt = |what: &str| Err(EncodingError::corrupt(format!("increasing integers: {what}")));
        let first = kind.extend(reader.int(kind.width)?);
        let low_bits = reader.u8()?;
        if low_bits >= 8 * kind.width {
            return corrupt("more low bits than there are");
        }
        let bits = narrow(reader.varint()?)?;
        let highs = reader.take(bits.div_ceil(8))?;
        let ones = words(&highs).fold(0, |ones, word| ones + word.count_ones() as usize);
        let last = bits.checked_sub(1).is_some_and(|last| {
            // Nothing behind the last one, which is where the bitmap ends.
            highs.last().is_some_and(|byte| byte >> (last % 8) == 1)
        });
        if ones != len || !last {
            return corrupt(&format!("{ones} of {len} in {bits} bits, or more bits"));
        }
        if wide(bits - len) > mask(8 * kind.width) >> low_bits {
            return corrupt("values beyond their width");
        }
        let lows = reader.take(packed_len(len, low_bits))?;
        Ok(Self { first, low_bits, highs, lows })
    }

    /// The low bits of a value.
    pub(super) fn describe(&self) -> String {
        self.low_bits.to_string()
    }

    /// The first value, and a bitmap with a one for each that is so much more, if there are no low parts.
    pub(super) fn as_bitmap(&self) -> Option<(u64, &[u8])> {
        (self.low_bits == 0).then_some((self.first, self.highs.as_slice()))
    }

    pub(super) fn decode<T: Lane>(&self, out: &mut [T]) {
        packed::unpack_frame(&self.lows, self.low_bits, T::truncate(self.first), out);
        let mut slots = out.iter_mut();
        let mut taken = 0_u64;
        for (at, mut word) in words(&self.highs).enumerate() {
            let base = wide(at) * 64;
            for slot in slots.by_ref().take(word.count_ones() as usize) {
                let high = base + u64::from(word.trailing_zeros()) - taken;
                *slot = slot.plus(T::truncate((high << self.low_bits).wrapping_add(taken)));
                taken += 1;
                word &= word - 1;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_buffer::Buffer;
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[u64], kind: IntKind) {
        let plan = plan(values, kind).unwrap();
        let mut bytes = vec![];
        encode(values, plan, kind, &mut bytes);
        assert!(bytes.len().abs_diff(plan.size) <= 8, "{} bytes planned, {} written", plan.size, bytes.len());
        let buffer = Buffer::from(bytes);
        let mut reader = Reader::new(&buffer);
        reader.u8().unwrap();
        let node = EliasFano::parse(kind, values.len(), &mut reader).unwrap();
        assert_eq!(reader.left(), 0);
        let mut out = vec![0_u64; values.len()];
        node.decode(&mut out);
        out.iter_mut().for_each(|value| *value = kind.extend(*value));
        assert_eq!(out, values);
    }

    #[test]
    fn the_example_of_the_format() {
        let (kind, values) = (IntKind { width: 1, signed: false }, [10, 11, 14, 19]);
        let mut bytes = vec![];
        encode(&values, Plan { low_bits: 1, bits: 7, ..plan(&values, kind).unwrap() }, kind, &mut bytes);
        assert_eq!(bytes, [0x0f, 0x0a, 0x01, 0x07, 0x4b, 0x00]);
    }

    #[test]
    fn bitmaps_and_low_bits_that_cannot_be_are_refused() {
        let parse = |bytes: &[u8]| {
            let buffer = Buffer::from(bytes);
            EliasFano::parse(IntKind { width: 1, signed: false }, 4, &mut Reader::new(&buffer)).is_ok()
        };
        assert!(parse(&[0x0a, 1, 7, 0x4b, 0]));
        for (bytes, what) in [
            ([0x0a, 8, 7, 0x4b, 0], "all bits are low"),
            ([0x0a, 1, 7, 0x43, 0], "three ones"),
            ([0x0a, 1, 7, 0xcb, 0], "a one behind the last bit"),
            ([0x0a, 1, 8, 0x4b, 0], "a zero behind the last one"),
            ([0x0a, 1, 6, 0x4b, 0], "fewer bits"),
            ([0x0a, 7, 7, 0x4b, 0], "low bits that lift a high part out of the byte"),
        ] {
            assert!(!parse(&bytes), "{what}");
        }
        assert!(!parse(&[0x0a, 1, 7, 0x4b]), "no low parts");
    }

    #[test]
    fn integers_that_do_not_increase_are_not_for_it() {
        let kind = IntKind { width: 8, signed: true };
        assert!(plan(&[], kind).is_none());
        assert!(plan(&[3, 3], kind).is_none());
        assert!(plan(&[0, u64::MAX], kind).is_none(), "-1 is below 0");
        assert!(plan(&[0, u64::MAX], IntKind { signed: false, ..kind }).is_some());
    }

    #[test]
    fn extremes_come_back() {
        for width in [1_u8, 2, 4, 8] {
            for signed in [false, true] {
                let kind = IntKind { width, signed };
                let top = mask(8 * width);
                let (min, max) = if signed { (kind.extend(top / 2 + 1), top / 2) } else { (0, top) };
                round_trip(&[min], kind);
                round_trip(&[min, max], kind);
                round_trip(&[min, min.wrapping_add(1), max.wrapping_sub(1), max], kind);
                let all: Vec<u64> = (0..=0xff).map(|i| kind.extend(min.wrapping_add(i))).collect();
                round_trip(&all, kind);
            }
        }
    }

    proptest! {
        #[test]
        fn increasing_integers_come_back(
            width in prop::sample::select(vec![1_u8, 2, 4, 8]),
            signed: bool,
            raw in prop::collection::btree_set(any::<u64>(), 1..2500),
            shift in 0..64_u32,
        ) {
            let kind = IntKind { width, signed };
            let mut values: Vec<u64> = raw.into_iter().map(|raw| kind.extend(raw >> shift)).collect();
            values.sort_unstable_by_key(|&raw| kind.ordered(raw));
            values.dedup();
            round_trip(&values, kind);
        }
    }
}
