//! Integers as bytes, compressed with Zstandard: for values of which few are frequent, or that repeat in no plain pattern.
//!
//! After the tag: the reference, `width` bytes; the bytes `w` of each integer, one of 1, 2, 4, 8 and at most `width`
//! (`u8`); a section as [`crate::frame`] describes, of `len * w` bytes: each value less the reference, in `w` bytes.

use crate::bitpack::Lane;
use crate::encoding::Effort;
use crate::error::{EncodingError, Result};
use crate::frame::Frame;
use crate::physical::IntKind;
use crate::wire::{Reader, put_int};

/// Fewer integers than this are not worth a frame.
const FEW: usize = 64;

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct ZstdInts {
    reference: u64,
    width: u8,
    frame: Frame,
}

/// The share of the values that is tried first, with little effort, and what all may take of what that promises, in percent.
const TRIED: usize = 4;
const HOPE: usize = 80;

/// A node's bytes after its tag, and how many its frame holds; `None` if it would not get below `most` bytes.
pub(crate) fn compress(values: &[u64], kind: IntKind, effort: Effort, most: usize) -> Option<(Vec<u8>, usize)> {
    if values.len() < FEW {
        return None;
    }
    let (min, max) = values.iter().fold((u64::MAX, 0), |(min, max), &raw| {
        let value = kind.ordered(raw);
        (min.min(value), max.max(value))
    });
    let reference = kind.ordered(min);
    let (width, bytes) = match max.wrapping_sub(min) {
        0..=0xff => (1, narrow_all::<1>(values, reference)),
        0x100..=0xffff => (2, narrow_all::<2>(values, reference)),
        0x1_0000..=0xffff_ffff => (4, narrow_all::<4>(values, reference)),
        _ => (8, narrow_all::<8>(values, reference)),
    };
    let first = bytes.get(..bytes.len() / TRIED / 8 * 8)?;
    // A part that does badly spares the rest.
    let trial = Frame::compress(first, 1).ok()?.map_or(first.len(), |frame| frame.len());
    if trial * TRIED * HOPE / 100 > most {
        return None;
    }
    let frame = Frame::compress(&bytes, Frame::level(effort)).ok()??;
    let mut out = Vec::with_capacity(frame.len() + 16);
    put_int(&mut out, reference, kind.width);
    out.push(width);
    Frame::put(bytes.len(), &frame, &mut out);
    (out.len() <= most).then_some((out, bytes.len()))
}

/// The low `W` bytes of each value less the reference.
fn narrow_all<const W: usize>(values: &[u64], reference: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * W);
    for raw in values {
        if let Some(low) = raw.wrapping_sub(reference).to_le_bytes().first_chunk::<W>() {
            bytes.extend_from_slice(low);
        }
    }
    bytes
}

impl ZstdInts {
    pub(super) fn parse(kind: IntKind, len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let reference = reader.int(kind.width)?;
        let width = reader.u8()?;
        if !matches!(width, 1 | 2 | 4 | 8) || width > kind.width {
            return Err(EncodingError::corrupt(format!("compressed integers of {width} bytes")));
        }
        let bytes = len.checked_mul(usize::from(width)).ok_or_else(|| EncodingError::corrupt("too long"))?;
        Ok(Self { reference, width, frame: Frame::parse(Some(bytes), reader)? })
    }

    pub(super) fn decode<T: Lane>(&self, out: &mut [T]) -> Result<()> {
        let bytes = self.frame.decompress()?;
        let reference = self.reference;
        fn each<T: Lane, const W: usize>(bytes: &[u8], out: &mut [T], value: impl Fn([u8; W]) -> u64) {
            for (slot, bytes) in out.iter_mut().zip(bytes.as_chunks::<W>().0) {
                *slot = T::truncate(value(*bytes));
            }
        }
        match self.width {
            1 => each(&bytes, out, |[byte]| reference.wrapping_add(u64::from(byte))),
            2 => each(&bytes, out, |bytes| reference.wrapping_add(u16::from_le_bytes(bytes).into())),
            4 => each(&bytes, out, |bytes| reference.wrapping_add(u32::from_le_bytes(bytes).into())),
            _ => each(&bytes, out, |bytes| reference.wrapping_add(u64::from_le_bytes(bytes))),
        }
        Ok(())
    }
}
