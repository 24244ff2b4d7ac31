//! Metadata bytes: little-endian integers, varints and length-prefixed strings, every read checked.

use plinth_encoding::{EncodingError, Result};

/// Seals a section: the xxh3-64 (seed 0) of its bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// Writes metadata.
#[derive(Debug, Default)]
pub(crate) struct WireWriter {
    bytes: Vec<u8>,
}

impl WireWriter {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// LEB128: seven bits a byte, low bits first, the top bit set on all but the last.
    pub(crate) fn varint(&mut self, value: impl Into<u128>) {
        let mut rest: u128 = value.into();
        while rest >= 0x80 {
            self.bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push((rest & 0x7f) as u8);
    }

    /// A length or count.
    pub(crate) fn len(&mut self, value: usize) {
        self.varint(value as u64);
    }

    /// Zigzag, then LEB128.
    pub(crate) fn signed(&mut self, value: i128) {
        self.varint(((value << 1) ^ (value >> 127)).cast_unsigned());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.len(value.len());
        self.bytes.extend_from_slice(value);
    }
}

/// Reads metadata. Every error is [`EncodingError::Corrupt`]; the caller says where.
#[derive(Debug)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or_else(|| {
            EncodingError::corrupt(format!("metadata ends {} bytes early", n.saturating_sub(self.rest.len())))
        })?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| EncodingError::corrupt("metadata ends early"))?;
        self.rest = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u128> {
        let mut value = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.u8()?;
            let bits = u128::from(byte & 0x7f);
            if shift == 126 && bits > 3 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(EncodingError::corrupt("a varint does not end"))
    }

    pub(crate) fn varint_u64(&mut self) -> Result<u64> {
        u64::try_from(self.varint()?).map_err(|_| EncodingError::corrupt("a number exceeds 64 bits"))
    }

    pub(crate) fn varint_u32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| EncodingError::corrupt("a number exceeds 32 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i128> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    /// A count of things that take at least `bytes_each` bytes of what remains, so that it can be allocated for.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let count = usize::try_from(self.varint()?).map_err(|_| EncodingError::corrupt("a count is too large"))?;
        if count.checked_mul(bytes_each).is_none_or(|total| total > self.rest.len()) {
            return Err(EncodingError::corrupt(format!("a count of {count} exceeds the metadata that follows")));
        }
        Ok(count)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.count(1)?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| EncodingError::corrupt("a name is not UTF-8"))
    }

    pub(crate) fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(EncodingError::corrupt(format!("{} bytes of metadata are left over", self.rest.len())))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let numbers = [0, 1, 127, 128, 300, u128::from(u64::MAX), u128::MAX];
        let signed = [0, -1, 1, i128::MIN, i128::MAX, -64, 64];
        let mut writer = WireWriter::default();
        numbers.iter().for_each(|&n| writer.varint(n));
        signed.iter().for_each(|&n| writer.signed(n));
        writer.bytes(b"abc");
        writer.u64(7);
        let bytes = writer.finish();
        let mut reader = WireReader::new(&bytes);
        for n in numbers {
            assert_eq!(reader.varint().unwrap(), n);
        }
        for n in signed {
            assert_eq!(reader.signed().unwrap(), n);
        }
        assert_eq!(reader.text().unwrap(), "abc");
        assert_eq!(reader.u64().unwrap(), 7);
        reader.end().unwrap();
        for cut in 0..bytes.len() {
            let mut reader = WireReader::new(&bytes[..cut]);
            let all = numbers.iter().try_for_each(|_| reader.varint().map(drop));
            let all = all.and_then(|()| signed.iter().try_for_each(|_| reader.signed().map(drop)));
            assert!(all.and_then(|()| reader.text().map(drop)).and_then(|()| reader.u64().map(drop)).is_err());
        }
    }

    #[test]
    fn endless_varints_and_huge_counts_are_errors() {
        assert!(WireReader::new(&[0xff; 40]).varint().is_err());
        let mut writer = WireWriter::default();
        writer.varint(u64::MAX);
        let bytes = writer.finish();
        assert!(WireReader::new(&bytes).count(1).is_err());
        assert!(WireReader::new(&bytes).bytes().is_err());
    }
}
