//! Frame of reference and bit-packing.
//!
//! After the tag: `mode` (`u8`). Mode 0 is followed by one frame, mode 1 by one frame for each 1,024 values begun. A frame
//! is `base` (`width` bytes) and `bits` (`u8`, at most `8 * width`). Then the vectors one after the other, each packed as
//! [`crate::bitpack`] describes with its frame's `bits`; the last, if shorter than 1,024 values, as a bit stream. A value is
//! `base` plus its packed bits.

use arrow_buffer::{BooleanBuffer, Buffer};

use super::{IntKind, IntPredicate, Wanted, bit, is_wanted, vectors};
use crate::bitpack::{self, Kernel, Lane, VECTOR, bits_for, mask, packed_len};
use crate::bits::Words;
use crate::block::Encoding;
use crate::error::{EncodingError, Result};
use crate::wire::{Reader, put_int};

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
    let shared_size = 2 + frame_size + packed_len(values.len(), shared.bits);
    let each_size = values
        .chunks(VECTOR)
        .zip(&each)
        .fold(2 + frame_size * each.len(), |size, (vector, frame)| size + packed_len(vector.len(), frame.bits));
    if each.len() > 1 && each_size < shared_size {
        Plan { frames: each, size: each_size }
    } else {
        Plan { frames: vec![shared], size: shared_size }
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
    let mut offsets = Vec::with_capacity(VECTOR);
    for (i, vector) in values.chunks(VECTOR).enumerate() {
        let Some(frame) = plan.frames.get(i).or(plan.frames.first()) else { continue };
        offsets.clear();
        offsets.extend(vector.iter().map(|value| value.wrapping_sub(frame.base)));
        bitpack::pack(&offsets, frame.bits, out);
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
        let kernel = Kernel::best();
        let len = out.len();
        for (i, (vector, (frame, bytes))) in out.chunks_mut(VECTOR).zip(self.vectors(len)).enumerate() {
            if is_wanted(wanted, i) {
                bitpack::unpack(kernel, bytes, frame.bits, T::truncate(frame.base), vector);
            }
        }
    }

    pub(super) fn evaluate(&self, kind: IntKind, len: usize, predicate: IntPredicate<'_>) -> BooleanBuffer {
        let kernel = Kernel::best();
        let mut out = Words::zeros(len);
        let mut buffer = [0_u64; VECTOR];
        let mut codes = [0_u32; VECTOR];
        for (i, (frame, bytes)) in self.vectors(len).enumerate() {
            let from = i * VECTOR;
            let count = (len - from).min(VECTOR);
            if let IntPredicate::Range(lo, hi) = predicate {
                let base = kind.value(frame.base);
                let most = i128::from(mask(frame.bits));
                let (lo, hi) = (lo.saturating_sub(base).max(0), hi.saturating_sub(base).min(most));
                if lo > hi {
                    continue;
                }
                if lo == 0 && hi == most {
                    out.set_range(from, from + count);
                    continue;
                }
                if let (VECTOR, Ok(lo), Ok(span)) = (count, u64::try_from(lo), u64::try_from(hi - lo)) {
                    let hits = bitpack::compare(kernel, bytes, frame.bits, lo, span);
                    out.words_from(from).iter_mut().zip(hits).for_each(|(word, hits)| *word = hits);
                    continue;
                }
            }
            if let IntPredicate::Bits(bits) = predicate
                && let Ok(base) = u32::try_from(kind.value(frame.base))
                && i128::from(base) + i128::from(mask(frame.bits)) <= i128::from(u32::MAX)
            {
                let codes = &mut codes[..count];
                bitpack::unpack(kernel, bytes, frame.bits, base, codes);
                look_up(out.words_from(from), codes, bits);
                continue;
            }
            let values = &mut buffer[..count];
            bitpack::unpack(kernel, bytes, frame.bits, frame.base, values);
            match predicate {
                IntPredicate::Bits(bits) => fill(out.words_from(from), values, |raw| bit(bits, kind, raw)),
                _ => fill(out.words_from(from), values, |raw| predicate.holds(kind, raw)),
            }
        }
        out.finish()
    }
}

/// Whether each code's bit is set; the codes past the end have none.
fn look_up(words: &mut [u64], codes: &[u32], bits: &BooleanBuffer) {
    let aligned;
    let bits = if bits.offset().is_multiple_of(8) && bits.len().is_multiple_of(8) {
        bits
    } else {
        aligned = Words::copy(bits).finish();
        &aligned
    };
    let from = bits.offset() / 8;
    let bytes = bits.values().get(from..from + bits.len().div_ceil(8)).unwrap_or_default();
    let found = |code: u32| bytes.get((code >> 3) as usize).is_some_and(|byte| byte >> (code & 7) & 1 == 1);
    for (word, codes) in words.iter_mut().zip(codes.chunks(64)) {
        *word = codes.iter().enumerate().fold(0, |word, (i, &code)| word | u64::from(found(code)) << i);
    }
}

#[inline(always)]
fn fill(words: &mut [u64], values: &[u64], test: impl Fn(u64) -> bool) {
    for (word, values) in words.iter_mut().zip(values.chunks(64)) {
        *word = values.iter().enumerate().fold(0, |word, (i, &value)| word | u64::from(test(value)) << i);
    }
}
