//! Provisional codes on their way through the spool: bit-packed as they are, since they are read once and soon.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, NullBuffer};
use plinth_core::simd::Level;
use plinth_encoding::bitpack::{self, VECTOR, bits_for, pack, packed_len};
use plinth_io::Spool;

use crate::error::Result;

/// The provisional codes of a block; of null rows they are anything.
#[derive(Debug)]
pub(super) struct ProvisionalBlock {
    /// The codes, then, if some rows are null, a bit a row that tells which are not.
    bytes: Vec<u8>,
    packed: Packed,
}

/// How codes are packed.
#[derive(Clone, Copy, Debug)]
struct Packed {
    values: usize,
    nulls: usize,
    /// The smallest code.
    base: u32,
    /// Bits a code.
    bits: u8,
}

/// Provisional codes in the spool.
#[derive(Debug)]
pub(super) struct SpooledBlock {
    at: Range<u64>,
    packed: Packed,
}

impl ProvisionalBlock {
    pub(super) fn new(codes: &[u32], nulls: Option<&NullBuffer>) -> Self {
        let (base, most) = codes.iter().fold((u32::MAX, 0), |(min, max), &code| (min.min(code), max.max(code)));
        let bits = bits_for(u64::from(most.saturating_sub(base)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let mut bytes =
            Vec::with_capacity(packed_len(codes.len(), bits) + nulls.map_or(0, |_| codes.len().div_ceil(8)));
        for vector in codes.chunks(VECTOR) {
            pack(vector, base, bits, &mut bytes);
        }
        if let Some(nulls) = nulls {
            bytes.extend_from_slice(&nulls.inner().sliced());
        }
        let nulls = nulls.map_or(0, NullBuffer::null_count);
        Self { bytes, packed: Packed { values: codes.len(), nulls, base, bits } }
    }

    pub(super) fn values(&self) -> usize {
        self.packed.values
    }

    pub(super) fn nulls(&self) -> usize {
        self.packed.nulls
    }

    pub(super) fn store(self, spool: &mut Spool) -> Result<SpooledBlock> {
        Ok(SpooledBlock { at: spool.append(&self.bytes)?, packed: self.packed })
    }
}

impl SpooledBlock {
    /// The codes, and which rows are null.
    pub(super) fn read(&self, spool: &Spool) -> Result<(Vec<u32>, Option<NullBuffer>)> {
        let Packed { values, nulls, base, bits } = self.packed;
        let bytes = spool.read(&self.at)?;
        let mut codes = vec![0; values];
        let mut rest = bytes.as_slice();
        for vector in codes.chunks_mut(VECTOR) {
            let (these, others) = rest.split_at(packed_len(vector.len(), bits).min(rest.len()));
            bitpack::unpack(Level::best(), these, bits, base, vector);
            rest = others;
        }
        let valid = || NullBuffer::new(BooleanBuffer::new(bytes.slice(packed_len(values, bits)), 0, values));
        Ok((codes, (nulls > 0).then(valid)))
    }
}

#[cfg(test)]
mod tests;
