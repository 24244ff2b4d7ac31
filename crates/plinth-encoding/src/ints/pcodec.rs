//! Numbers compressed with [pco](https://github.com/pcodec/pcodec) (Loncaric, Jeppesen, Zinberg, "Pcodec", 2025).
//!
//! After the tag: `size` (varint) and `size` bytes, a pco *standalone* file of one type: `u16/u32/u64` or `i16/i32/i64` for
//! integers by their sign, `f32/f64` for floats. One-byte integers are widened to two.

use arrow_buffer::Buffer;
use pco::ChunkConfig;
use pco::data_types::Number;

use crate::bitpack::Lane;
use crate::error::{EncodingError, Result};
use crate::physical::IntKind;
use crate::wire::{Reader, narrow, put_varint, wide};

/// A parsed node.
#[derive(Clone, Debug)]
pub(crate) struct Pco {
    file: Buffer,
}

/// The pco file of some numbers, if pco takes them.
pub(crate) fn compress<T: Number>(values: &[T]) -> Option<Vec<u8>> {
    pco::standalone::simple_compress(values, &ChunkConfig::default().with_compression_level(8)).ok()
}

/// The pco file of some integers.
#[allow(clippy::cast_possible_truncation, reason = "integers of the kind's width")]
pub(crate) fn compress_ints(values: &[u64], kind: IntKind) -> Option<Vec<u8>> {
    fn cast<T: Number>(values: &[u64], cast: impl Fn(u64) -> T) -> Option<Vec<u8>> {
        compress(&values.iter().map(|&value| cast(value)).collect::<Vec<T>>())
    }
    match (kind.width, kind.signed) {
        (8, false) => cast(values, |v| v),
        (8, true) => cast(values, u64::cast_signed),
        (4, false) => cast(values, |v| v as u32),
        (4, true) => cast(values, |v| (v as u32).cast_signed()),
        (_, false) => cast(values, |v| v as u16),
        (_, true) => cast(values, |v| (v as u16).cast_signed()),
    }
}

/// Writes a node after its tag.
pub(crate) fn put(file: &[u8], out: &mut Vec<u8>) {
    put_varint(out, wide(file.len()));
    out.extend_from_slice(file);
}

impl Pco {
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let size = narrow(reader.varint()?)?;
        Ok(Self { file: reader.take(size)? })
    }

    /// Exactly `len` numbers.
    pub(crate) fn numbers<T: Number + Default>(&self, len: usize) -> Result<Vec<T>> {
        let mut out = vec![T::default(); len];
        let progress = pco::standalone::simple_decompress_into(&self.file, &mut out)
            .map_err(|error| EncodingError::corrupt(format!("pco: {error}")))?;
        if progress.n_processed != len || !progress.finished {
            return Err(EncodingError::corrupt(format!("pco holds {} numbers, not {len}", progress.n_processed)));
        }
        Ok(out)
    }

    pub(super) fn decode<T: Lane>(&self, kind: IntKind, out: &mut [T]) -> Result<()> {
        fn copy<T: Lane, N>(out: &mut [T], numbers: Vec<N>, widen: impl Fn(N) -> u64) {
            for (slot, number) in out.iter_mut().zip(numbers) {
                *slot = T::truncate(widen(number));
            }
        }
        match (kind.width, kind.signed) {
            (8, false) => copy(out, self.numbers::<u64>(out.len())?, |v| v),
            (8, true) => copy(out, self.numbers::<i64>(out.len())?, i64::cast_unsigned),
            (4, false) => copy(out, self.numbers::<u32>(out.len())?, u64::from),
            (4, true) => copy(out, self.numbers::<i32>(out.len())?, |v| i64::from(v).cast_unsigned()),
            (_, false) => copy(out, self.numbers::<u16>(out.len())?, u64::from),
            (_, true) => copy(out, self.numbers::<i16>(out.len())?, |v| i64::from(v).cast_unsigned()),
        }
        Ok(())
    }
}
