//! What the dictionary's files share in reading bytes: errors that name the dictionary, halves and heads of words.

use plinth_core::wire::WireError;

use crate::error::{EncodingError, Result};

/// The lowest eight bits.
pub(super) fn low_byte(value: usize) -> u8 {
    plinth_core::wire::low_byte(value as u64)
}

/// The lowest 32 bits.
#[allow(clippy::cast_possible_truncation, reason = "the lowest half is what is asked for")]
pub(super) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// The first eight bytes as a big-endian number, padded with zeros.
#[inline]
pub(super) fn prefix8(bytes: &[u8]) -> u64 {
    plinth_core::key::head(bytes, 0)
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

impl<T> OrCorrupt<T> for Result<T, WireError> {
    #[inline]
    fn or_corrupt(self, what: &'static str) -> Result<T> {
        self.map_err(|_| corrupt(what))
    }
}

#[cold]
pub(super) fn corrupt(what: &'static str) -> EncodingError {
    EncodingError::corrupt(format!("dictionary: {what}"))
}
