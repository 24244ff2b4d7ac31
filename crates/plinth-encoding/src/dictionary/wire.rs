//! Reading and writing the dictionary's bytes: little-endian integers, LEB128 varints, and a cursor that never leaves
//! its slice.

use crate::error::{EncodingError, Result};

/// Appends `value` as LEB128: seven bits a byte, least significant first, the top bit set on all bytes but the last.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// The lowest eight bits.
#[allow(clippy::cast_possible_truncation, reason = "the lowest byte is what is asked for")]
pub(super) const fn low_byte(value: usize) -> u8 {
    value as u8
}

/// The lowest 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "the lowest half is what is asked for")]
pub(super) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// The first eight bytes as a big-endian number, padded with zeros: it orders byte strings as far as it reaches.
#[inline]
pub(super) fn prefix8(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(chunk)
        }
    }
}

/// The number of leading bytes two strings share.
#[inline]
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (mut at, (chunks_a, _), (chunks_b, _)) = (0, a.as_chunks::<8>(), b.as_chunks::<8>());
    for (x, y) in chunks_a.iter().zip(chunks_b) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return at + (differ.trailing_zeros() >> 3) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

/// A cursor over `bytes[at..end]`; every step is checked and gives `None` past the end.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len() }
    }

    /// A cursor over a part; `None` if the part is not inside.
    pub(super) fn within(bytes: &'a [u8], at: usize, end: usize) -> Option<Self> {
        (at <= end && end <= bytes.len()).then_some(Self { bytes, at, end })
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.end - self.at
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..self.end).unwrap_or_default()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        if self.at >= self.end {
            return None;
        }
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Steps over `len` bytes and gives where they start.
    #[inline]
    pub(super) fn skip(&mut self, len: usize) -> Option<usize> {
        if len > self.left() {
            return None;
        }
        let start = self.at;
        self.at += len;
        Some(start)
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let start = self.skip(len)?;
        self.bytes.get(start..start + len)
    }

    /// Little-endian unsigned number of `width <= 8` bytes.
    pub(super) fn number(&mut self, width: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes.get_mut(..width)?.copy_from_slice(self.take(width)?);
        Some(u64::from_le_bytes(bytes))
    }

    /// A LEB128 number that fits a `usize`.
    #[inline]
    pub(super) fn varint(&mut self) -> Option<usize> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(usize::from(first));
        }
        let (mut value, mut shift) = (u64::from(first & 0x7f), 7);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (bits << shift) >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return usize::try_from(value).ok();
            }
            shift += 7;
        }
    }
}

/// Turns a failed step into the error that names what was being read.
pub(super) trait OrCorrupt<T> {
    fn or_corrupt(self, what: &'static str) -> Result<T>;
}

impl<T> OrCorrupt<T> for Option<T> {
    #[inline]
    fn or_corrupt(self, what: &'static str) -> Result<T> {
        match self {
            Some(value) => Ok(value),
            None => Err(corrupt(what)),
        }
    }
}

#[cold]
pub(super) fn corrupt(what: &'static str) -> EncodingError {
    EncodingError::corrupt(format!("dictionary: {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_come_back(value: usize, shift in 0..64u32) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value >> shift);
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!(cursor.varint(), Some(value >> shift));
            prop_assert_eq!(cursor.left(), 0);
            prop_assert_eq!(Cursor::new(&bytes[..bytes.len() - 1]).varint(), None);
        }

        #[test]
        fn shared_bytes_are_counted(shared: Vec<u8>, a: Vec<u8>, b: Vec<u8>) {
            let (a, b) = ([&shared[..], &a].concat(), [&shared[..], &b].concat());
            let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_prefix(&a, &b), expected);
        }
    }

    #[test]
    fn varints_that_do_not_fit_are_refused() {
        assert_eq!(Cursor::new(&[0xff; 9]).varint(), None);
        assert_eq!(Cursor::new(&[0xff; 20]).varint(), None);
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).varint(), None);
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Cursor::new(&largest).varint(), usize::try_from(u64::MAX).ok());
    }
}
