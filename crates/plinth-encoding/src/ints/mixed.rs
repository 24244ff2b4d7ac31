//! Frame of reference and mixed-radix packing: for codes of a dictionary whose size is no power of two.
//!
//! After the tag: `base` (`width` bytes), the low bits `k` (`u8`, at most 31), the digits of a group `g` (`u8`: 2, 4, 8, 16
//! or 32), the radix `R` (varint, at least 2); `R^g` is at most `2^57`, `R * 2^k` at most `2^32`. Then the low parts, packed
//! with `k` bits as in a bit-packed node of one frame; then the fractions of each vector, as [`crate::bitpack::mixed`]
//! describes. A value is `base` plus what it is packed as.

use arrow_buffer::{BooleanBuffer, Buffer};

use super::fused::{self, Answers, Vector};
use super::{Wanted, is_wanted, packed, vectors};
use crate::bitpack::mixed::{self, Radix};
use crate::bitpack::{Lane, VECTOR, packed_len, vector_len};
use crate::encoding::Encoding;
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_int, put_varint};
use plinth_core::simd::Level;

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Mixed {
    /// Raw.
    base: u64,
    radix: Radix,
    lows: Buffer,
    fractions: Buffer,
}

/// How a node would be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    base: u64,
    radix: Radix,
    /// Bytes of the node, or a few less.
    pub(crate) size: usize,
}

/// How `len` values would be written that were planned to be bit-packed; none if it cannot be.
pub(crate) fn plan(packed: &packed::Plan, len: usize) -> Option<Plan> {
    let radix = Radix::best(u32::try_from(packed.span).ok()?)?;
    Some(Plan { base: packed.base, radix, size: 10 + radix.packed_len(len) })
}

/// Writes a node.
pub(crate) fn encode(values: &[u64], plan: Plan, kind: IntKind, out: &mut Vec<u8>) {
    out.push(Encoding::Mixed.tag());
    put_int(out, plan.base, kind.width);
    out.push(plan.radix.low_bits());
    out.push(plan.radix.digits());
    put_varint(out, plan.radix.radix().into());
    let mut fractions = Vec::with_capacity(plan.radix.fractions_len(values.len()));
    for vector in values.chunks(VECTOR) {
        plan.radix.pack(vector, plan.base, out, &mut fractions);
    }
    out.extend_from_slice(&fractions);
}

impl Mixed {
    pub(super) fn parse(kind: IntKind, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let base = kind.extend(reader.int(kind.width)?);
        let (low_bits, digits, radix) = (reader.u8()?, reader.u8()?, reader.varint()?);
        let known = u32::try_from(radix).ok().and_then(|radix| Radix::new(low_bits, radix, digits));
        let radix = known.ok_or_else(|| {
            EncodingError::corrupt(format!("mixed packing of {low_bits} bits and {digits} digits below {radix}"))
        })?;
        let lows = reader.take(packed_len(len, low_bits))?;
        let fractions = reader.take(radix.fractions_len(len))?;
        Ok(Self { base, radix, lows, fractions })
    }

    /// The bits that a value takes.
    pub(super) fn describe(&self) -> String {
        self.radix.bits().to_string()
    }

    fn vectors(&self, len: usize) -> impl Iterator<Item = mixed::Mixed<'_>> {
        let (low, fraction) = (vector_len(self.radix.low_bits()), self.radix.fractions_len(VECTOR));
        (0..vectors(len)).map_while(move |i| {
            let lows = self.lows.as_slice().get(i * low..)?;
            let fractions = self.fractions.as_slice().get(i * fraction..)?;
            mixed::Mixed::new(self.radix, (len - i * VECTOR).min(VECTOR), lows, fractions)
        })
    }

    pub(super) fn decode<T: Lane>(&self, wanted: Wanted<'_>, out: &mut [T]) {
        let kernel = Level::best();
        let len = out.len();
        for (i, (vector, packed)) in out.chunks_mut(VECTOR).zip(self.vectors(len)).enumerate() {
            if is_wanted(wanted, i) {
                packed.unpack(kernel, T::truncate(self.base), vector);
            }
        }
    }

    pub(super) fn evaluate(&self, kind: IntKind, len: usize, set: &ValueSet) -> BooleanBuffer {
        fused::evaluate(kind, len, self.vectors(len).map(|vector| (self.base, vector)), set)
    }
}

impl Vector for mixed::Mixed<'_> {
    fn most(&self) -> u64 {
        self.radix().most()
    }

    fn unpack<T: Lane>(&self, kernel: Level, base: T, out: &mut [T]) {
        self.unpack(kernel, base, out);
    }

    #[allow(clippy::cast_possible_truncation, reason = "within `most`, which is of 32 bits")]
    fn compare(&self, kernel: Level, lo: u64, span: u64) -> Answers {
        self.compare(kernel, lo as u32, span as u32)
    }
}
