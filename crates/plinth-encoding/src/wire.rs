//! Reading and writing the primitive fields that every encoding is made of.
//!
//! - `u8`, `u32`, ...: little-endian.
//! - `varint`: LEB128, unsigned, at most 10 bytes; 7 bits a byte, lowest first, the top bit set on all bytes but the last.
//! - `align64`: zero bytes up to the next multiple of 64 from the start of the block.

use arrow_buffer::Buffer;

use crate::error::{EncodingError, Result};

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends the lowest `width` bytes of `value`.
pub(crate) fn put_int(out: &mut Vec<u8>, value: u64, width: u8) {
    out.extend(value.to_le_bytes().iter().take(usize::from(width)));
}

/// Appends zeros until `out` is a multiple of 64 past `start`.
pub(crate) fn put_align64(out: &mut Vec<u8>, start: usize) {
    let used = out.len() - start;
    out.resize(start + used.next_multiple_of(64), 0);
}

#[allow(clippy::cast_possible_truncation, reason = "the low byte is what is wanted")]
fn low_byte(value: u64) -> u8 {
    value as u8
}

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
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, at: 0 }
    }

    /// The next `len` bytes, without a copy.
    pub(crate) fn take(&mut self, len: usize) -> Result<Buffer> {
        let left = self.buffer.len() - self.at;
        if len > left {
            return Err(EncodingError::corrupt(format!(
                "a block ends early: {len} bytes wanted at {}, {left} left",
                self.at
            )));
        }
        let taken = self.buffer.slice_with_length(self.at, len);
        self.at += len;
        Ok(taken)
    }

    fn peek(&self) -> &'a [u8] {
        self.buffer.as_slice().get(self.at..).unwrap_or_default()
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        let &byte = self.peek().first().ok_or_else(|| EncodingError::corrupt("a block ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    /// An integer of `width` bytes, zero-extended.
    pub(crate) fn int(&mut self, width: u8) -> Result<u64> {
        let width = usize::from(width.min(8));
        let bytes = self.peek().get(..width).ok_or_else(|| EncodingError::corrupt("a block ends early"))?;
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(bytes);
        self.at += width;
        Ok(u64::from_le_bytes(wide))
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for (i, &byte) in self.peek().iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7F);
            if i == 9 && byte > 1 {
                break;
            }
            value |= bits << (7 * i);
            if byte < 0x80 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        Err(EncodingError::corrupt("a varint does not end"))
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
        let padding = self.at.next_multiple_of(64) - self.at;
        self.take(padding).map(|_| ())
    }

    /// Bytes not yet read.
    pub(crate) fn left(&self) -> usize {
        self.buffer.len() - self.at
    }
}
