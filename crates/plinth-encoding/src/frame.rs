//! Bytes compressed with Zstandard (RFC 8878).
//!
//! A section is `total` (varint), the bytes it decompresses to; `size` (varint); `size` bytes, one Zstandard frame without a
//! dictionary.

use std::cell::RefCell;

use arrow_buffer::Buffer;
use zstd::bulk::{Compressor, Decompressor};

use crate::encoding::Effort;
use crate::error::{EncodingError, Result};
use crate::wire::{Reader, narrow, put_varint, wide};

/// A Zstandard block of 128 KiB takes at least 4 bytes, so no frame expands by more than this.
const MOST_EXPANSION: usize = 1 << 15;

thread_local! {
    // Contexts are large and made slowly: a thread keeps its own.
    static COMPRESSORS: RefCell<Vec<(i32, Compressor<'static>)>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A parsed section.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) total: usize,
    bytes: Buffer,
}

impl Frame {
    /// The level that suits text.
    pub(crate) fn level(effort: Effort) -> i32 {
        match effort {
            Effort::Plain | Effort::Fast => 1,
            Effort::Balanced => 3,
            Effort::Compact => 9,
        }
    }

    /// A frame, if it is smaller than the bytes.
    pub(crate) fn compress(bytes: &[u8], level: i32) -> Result<Option<Vec<u8>>> {
        let fail = |error| EncodingError::invalid(format!("zstd cannot compress {} bytes: {error}", bytes.len()));
        let frame = COMPRESSORS.with_borrow_mut(|kept| {
            if let Some((_, compressor)) = kept.iter_mut().find(|(of, _)| *of == level) {
                return compressor.compress(bytes).map_err(fail);
            }
            let mut compressor = Compressor::new(level).map_err(fail)?;
            let frame = compressor.compress(bytes).map_err(fail);
            kept.push((level, compressor));
            frame
        })?;
        Ok((frame.len() < bytes.len()).then_some(frame))
    }

    pub(crate) fn put(total: usize, frame: &[u8], out: &mut Vec<u8>) {
        put_varint(out, wide(total));
        put_varint(out, wide(frame.len()));
        out.extend_from_slice(frame);
    }

    /// Parses a section; `expected` is the total, where it is known.
    pub(crate) fn parse(expected: Option<usize>, reader: &mut Reader<'_>) -> Result<Self> {
        let total = narrow(reader.varint()?)?;
        let size = narrow(reader.varint()?)?;
        let bytes = reader.take(size)?;
        if expected.is_some_and(|expected| expected != total) || total > bytes.len().saturating_mul(MOST_EXPANSION) {
            return Err(EncodingError::corrupt(format!("a zstd frame of {size} bytes for {total}")));
        }
        Ok(Self { total, bytes })
    }

    pub(crate) fn decompress(&self) -> Result<Vec<u8>> {
        let fail = |error| EncodingError::corrupt(format!("zstd: {error}"));
        let bytes = DECOMPRESSOR.with_borrow_mut(|kept| {
            let decompressor = match kept {
                Some(decompressor) => decompressor,
                None => kept.insert(Decompressor::new().map_err(fail)?),
            };
            decompressor.decompress(&self.bytes, self.total).map_err(fail)
        })?;
        if bytes.len() != self.total {
            return Err(EncodingError::corrupt(format!("zstd gave {} bytes, not {}", bytes.len(), self.total)));
        }
        Ok(bytes)
    }
}
