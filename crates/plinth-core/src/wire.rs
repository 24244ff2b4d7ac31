//! The bytes of files: little-endian numbers, varints and lengths, written and read with every length checked.
//!
//! A *varint* is LEB128: seven bits a byte, the lowest first, the top bit set on all bytes but the last; at most as many bytes as
//! its type needs, and no bits beyond the type. A *signed* one is zigzag-coded first.

use std::fmt;

/// The xxh3-64 (seed 0) of some bytes: what every block, section and log frame is sealed with.
#[inline]
pub fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// The lowest eight bits.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the low byte is what is wanted")]
pub const fn low_byte(value: u64) -> u8 {
    value as u8
}

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends a varint of up to 128 bits.
pub fn put_varint_128(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a signed number as a varint.
pub fn put_signed_128(out: &mut Vec<u8>, value: i128) {
    put_varint_128(out, ((value << 1) ^ (value >> 127)).cast_unsigned());
}

/// Appends the lowest `width` bytes of a number, of at most eight.
#[inline]
pub fn put_int(out: &mut Vec<u8>, value: u64, width: u8) {
    out.extend(value.to_le_bytes().iter().take(usize::from(width)));
}

/// Appends a length and bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends zeros until `out` is a multiple of 64 past `start`.
pub fn put_align64(out: &mut Vec<u8>, start: usize) {
    let used = out.len() - start;
    out.resize(start + used.next_multiple_of(64), 0);
}

/// Why bytes are not what they should be. The caller says which bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// More was wanted than there is.
    Early,
    /// A varint has more bits than its type.
    Varint,
    /// A count of more things than can follow.
    Count,
    /// Text that is not UTF-8.
    Text,
    /// Something follows the end.
    LeftOver,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Early => "the bytes end early",
            Self::Varint => "a number is too large",
            Self::Count => "a count exceeds what follows",
            Self::Text => "text is not UTF-8",
            Self::LeftOver => "bytes are left over",
        })
    }
}

impl std::error::Error for WireError {}

/// What a read gives.
pub type Result<T> = std::result::Result<T, WireError>;

/// A position in bytes. A read that fails leaves it anywhere up to the end, never beyond.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    /// At the start of bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len() }
    }

    /// Over a part of bytes; positions stay those in `bytes`.
    ///
    /// # Errors
    /// If the part is not inside.
    #[inline]
    pub fn within(bytes: &'a [u8], at: usize, end: usize) -> Result<Self> {
        if at <= end && end <= bytes.len() { Ok(Self { bytes, at, end }) } else { Err(WireError::Early) }
    }

    /// Where the next byte is.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes not yet read.
    #[inline]
    pub fn left(&self) -> usize {
        self.end - self.at
    }

    /// The bytes not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..self.end).unwrap_or_default()
    }

    /// Steps over bytes and tells where they start.
    ///
    /// # Errors
    /// This and the other reads: a [`WireError`] if what is wanted is not there.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<usize> {
        if len > self.left() {
            return Err(WireError::Early);
        }
        let start = self.at;
        self.at += len;
        Ok(start)
    }

    /// The next bytes.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let start = self.skip(len)?;
        self.bytes.get(start..start + len).ok_or(WireError::Early)
    }

    /// The next bytes, as many as the array has.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let array = *self.rest().first_chunk().ok_or(WireError::Early)?;
        self.at += N;
        Ok(array)
    }

    /// One byte.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn u8(&mut self) -> Result<u8> {
        if self.at >= self.end {
            return Err(WireError::Early);
        }
        let byte = *self.bytes.get(self.at).ok_or(WireError::Early)?;
        self.at += 1;
        Ok(byte)
    }

    /// Four bytes.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of `width` bytes, zero-extended; more than eight can't be.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn int(&mut self, width: usize) -> Result<u64> {
        let mut wide = [0; 8];
        wide.get_mut(..width).ok_or(WireError::Varint)?.copy_from_slice(self.take(width)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// A varint.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn varint(&mut self) -> Result<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let (mut value, mut shift) = (u64::from(first & 0x7f), 7);
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (bits << shift) >> shift != bits {
                return Err(WireError::Varint);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A varint of up to 128 bits.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn varint_128(&mut self) -> Result<u128> {
        let mut value = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.u8()?;
            let bits = u128::from(byte & 0x7f);
            if shift == 126 && bits > 3 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::Varint)
    }

    /// A varint of up to 32 bits.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn varint_32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| WireError::Varint)
    }

    /// A varint that fits a length of this machine.
    #[inline]
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn length(&mut self) -> Result<usize> {
        usize::try_from(self.varint()?).map_err(|_| WireError::Varint)
    }

    /// A signed number of up to 128 bits.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn signed_128(&mut self) -> Result<i128> {
        let value = self.varint_128()?;
        Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    /// A varint that counts things which take at least `bytes_each` bytes of what is left, so that it can be allocated for.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let count = self.length()?;
        match count.checked_mul(bytes_each) {
            Some(total) if total <= self.left() => Ok(count),
            _ => Err(WireError::Count),
        }
    }

    /// A length and as many bytes.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// A length and as many bytes of UTF-8.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError::Text)
    }

    /// Steps to the next position that is a multiple of 64.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn align64(&mut self) -> Result<()> {
        self.skip(self.at.next_multiple_of(64) - self.at).map(drop)
    }

    /// Checks that everything was read.
    #[allow(clippy::missing_errors_doc, reason = "see `skip`")]
    pub fn finish(&self) -> Result<()> {
        if self.left() == 0 { Ok(()) } else { Err(WireError::LeftOver) }
    }
}
