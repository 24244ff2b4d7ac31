//! The bytes of blocks: what `plinth_core::wire` reads and writes, with slices that share the block's buffer.

use arrow_buffer::Buffer;
pub(crate) use plinth_core::wire::{put_align64, put_int, put_varint};

use crate::encoding::Encoding;
use crate::error::{EncodingError, Result};

/// A count as a file writes it.
pub(crate) fn wide(count: usize) -> u64 {
    count as u64
}

/// A count read from a file, as an index.
pub(crate) fn narrow(count: u64) -> Result<usize> {
    usize::try_from(count).map_err(|_| EncodingError::corrupt(format!("a count of {count} does not fit this machine")))
}

/// A position in a block's bytes.
pub(crate) struct Reader<'a> {
    buffer: &'a Buffer,
    bytes: plinth_core::wire::Reader<'a>,
    features: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, bytes: plinth_core::wire::Reader::new(buffer), features: 0 }
    }

    /// The next `len` bytes, without a copy.
    pub(crate) fn take(&mut self, len: usize) -> Result<Buffer> {
        let start = self.bytes.skip(len)?;
        Ok(self.buffer.slice_with_length(start, len))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes.u8()?)
    }

    /// The tag of an encoding.
    pub(crate) fn encoding(&mut self) -> Result<Encoding> {
        let encoding = Encoding::try_from(self.u8()?)?;
        self.features |= encoding.features();
        Ok(encoding)
    }

    /// What the encodings read so far need: [`Encoding::features`].
    pub(crate) fn features(&self) -> u32 {
        self.features
    }

    /// An integer of `width` bytes, zero-extended.
    pub(crate) fn int(&mut self, width: u8) -> Result<u64> {
        Ok(self.bytes.int(usize::from(width))?)
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        Ok(self.bytes.varint()?)
    }

    /// A varint that counts something of which there are at most `most`.
    pub(crate) fn count(&mut self, most: usize, what: &str) -> Result<usize> {
        let count = narrow(self.varint()?)?;
        if count > most {
            return Err(EncodingError::corrupt(format!("{count} {what} where at most {most} can be")));
        }
        Ok(count)
    }

    /// Skips to the next multiple of 64.
    pub(crate) fn align64(&mut self) -> Result<()> {
        Ok(self.bytes.align64()?)
    }

    /// Bytes not yet read.
    pub(crate) fn left(&self) -> usize {
        self.bytes.left()
    }
}
