//! Frame of reference and bit-packing.
//!
//! After the tag: `mode` (`u8`). Mode 0 is followed by one frame, mode 1 by one frame for each 1,024 values begun. A frame
//! is `base` (`width` bytes) and `bits` (`u8`, at most `8 * width`). Then the vectors one after the other, each packed as
//! [`crate::bitpack`] describes with its frame's `bits`; the last, if shorter than 1,024 values, as a bit stream. A value is
//! `base` plus its packed bits.

use arrow_buffer::{BooleanBuffer, Buffer};

use super::fused::{self, Answers, Vector};
use super::{Wanted, is_wanted, vectors};
use crate::bitpack::{self, Lane, VECTOR, bits_for, mask, packed_len};
use crate::encoding::Encoding;
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::value_set::ValueSet;
use crate::wire::{Reader, put_int};
use plinth_core::simd::Level;

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Raw.
    base: u64,
    bits: u8,
}

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// One, or one a vector.
    frames: Vec<Frame>,
    data: Buffer,
}

/// How a node would be written.
pub(crate) struct Plan {
    frames: Vec<Frame>,
    /// The smallest value, raw.
    pub(crate) base: u64,
    /// The largest less the smallest.
    pub(crate) span: u64,
    /// Bytes of the node.
    pub(crate) size: usize,
}

fn frame_of((min, max): (u64, u64), kind: IntKind) -> Frame {
    Frame { base: kind.ordered(min), bits: bits_for(max.wrapping_sub(min)) }
}

/// The smallest and the largest value, in ordered form.
fn extent(values: &[u64], kind: IntKind) -> (u64, u64) {
    values.iter().fold((u64::MAX, 0), |(min, max), &raw| {
        let value = kind.ordered(raw);
        (min.min(value), max.max(value))
    })
}

/// Chooses between one frame and one a vector. `values` are not empty.
pub(crate) fn plan(values: &[u64], kind: IntKind) -> Plan {
    let frame_size = usize::from(kind.width) + 1;
    let extents: Vec<(u64, u64)> = values.chunks(VECTOR).map(|vector| extent(vector, kind)).collect();
    let whole = extents.iter().fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
    let shared = frame_of(whole, kind);
    let each: Vec<Frame> = extents.into_iter().map(|extent| frame_of(extent, kind)).collect();
    let (base, span) = (shared.base, whole.1.wrapping_sub(whole.0));
    let shared_size = 2 + frame_size + packed_len(values.len(), shared.bits);
    let each_size = values
        .chunks(VECTOR)
        .zip(&each)
        .fold(2 + frame_size * each.len(), |size, (vector, frame)| size + packed_len(vector.len(), frame.bits));
    if each.len() > 1 && each_size < shared_size {
        Plan { frames: each, base, span, size: each_size }
    } else {
        Plan { frames: vec![shared], base, span, size: shared_size }
    }
}

/// Writes a node.
pub(crate) fn encode(values: &[u64], kind: IntKind, plan: &Plan, out: &mut Vec<u8>) {
    out.push(Encoding::BitPacked.tag());
    out.push(u8::from(plan.frames.len() > 1));
    for frame in &plan.frames {
        put_int(out, frame.base, kind.width);
        out.push(frame.bits);
    }
    for (i, vector) in values.chunks(VECTOR).enumerate() {
        let Some(frame) = plan.frames.get(i).or(plan.frames.first()) else { continue };
        bitpack::pack(vector, frame.base, frame.bits, out);
    }
}

impl Packed {
    pub(super) fn parse(kind: IntKind, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let count = match reader.u8()? {
            0 => 1,
            1 => vectors(len),
            mode => return Err(EncodingError::corrupt(format!("bit-packing mode {mode} is unknown"))),
        };
        if reader.left() / (usize::from(kind.width) + 1) < count {
            return Err(EncodingError::corrupt("a bit-packed node ends within its frames"));
        }
        let mut frames = Vec::with_capacity(count);
        for _ in 0..count {
            let base = kind.extend(reader.int(kind.width)?);
            let bits = reader.u8()?;
            if bits > 8 * kind.width {
                return Err(EncodingError::corrupt(format!("{bits} bits a value of {} bytes", kind.width)));
            }
            frames.push(Frame { base, bits });
        }
        let size = match frames.as_slice() {
            [frame] => packed_len(len, frame.bits),
            frames => frames
                .iter()
                .enumerate()
                .fold(0, |size, (i, frame)| size + packed_len((len - i * VECTOR).min(VECTOR), frame.bits)),
        };
        Ok(Self { frames, data: reader.take(size)? })
    }

    pub(super) fn describe(&self) -> String {
        let bits = || self.frames.iter().map(|frame| frame.bits);
        match (bits().min(), bits().max()) {
            (Some(min), Some(max)) if min < max => format!("{min}-{max}"),
            (_, Some(max)) => max.to_string(),
            _ => String::new(),
        }
    }

    /// The frame and the bytes of each vector of `len` values.
    fn vectors(&self, len: usize) -> impl Iterator<Item = (Frame, &[u8])> {
        let mut at = 0;
        (0..vectors(len)).map_while(move |i| {
            let frame = *self.frames.get(i).or(self.frames.first())?;
            let size = packed_len((len - i * VECTOR).min(VECTOR), frame.bits);
            let bytes = self.data.as_slice().get(at..at + size)?;
            at += size;
            Some((frame, bytes))
        })
    }

    pub(super) fn decode<T: Lane>(&self, wanted: Wanted<'_>, out: &mut [T]) {
        let kernel = Level::best();
        let len = out.len();
        for (i, (vector, (frame, bytes))) in out.chunks_mut(VECTOR).zip(self.vectors(len)).enumerate() {
            if is_wanted(wanted, i) {
                bitpack::unpack(kernel, bytes, frame.bits, T::truncate(frame.base), vector);
            }
        }
    }

    pub(super) fn evaluate(&self, kind: IntKind, len: usize, set: &ValueSet) -> BooleanBuffer {
        let vectors = self.vectors(len).map(|(frame, bytes)| (frame.base, PackedVector { bits: frame.bits, bytes }));
        fused::evaluate(kind, len, vectors, set)
    }
}

/// Unpacks the vectors of one frame, which begin with the bytes.
pub(super) fn unpack_frame<T: Lane>(bytes: &[u8], bits: u8, base: T, out: &mut [T]) {
    let kernel = Level::best();
    let mut at = 0;
    for vector in out.chunks_mut(VECTOR) {
        let size = packed_len(vector.len(), bits);
        bitpack::unpack(kernel, bytes.get(at..at + size).unwrap_or_default(), bits, base, vector);
        at += size;
    }
}

struct PackedVector<'a> {
    bits: u8,
    bytes: &'a [u8],
}

impl Vector for PackedVector<'_> {
    fn most(&self) -> u64 {
        mask(self.bits)
    }

    fn unpack<T: Lane>(&self, kernel: Level, base: T, out: &mut [T]) {
        bitpack::unpack(kernel, self.bytes, self.bits, base, out);
    }

    fn compare(&self, kernel: Level, lo: u64, span: u64) -> Answers {
        bitpack::compare(kernel, self.bytes, self.bits, lo, span)
    }
}
