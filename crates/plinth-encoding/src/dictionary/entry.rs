//! Keys as the interner's tables have them: numbers, and strings as Arrow views have them.

use std::hash::{BuildHasher, Hasher};

use arrow_buffer::Buffer;
use foldhash::quality::FixedState;

use crate::dictionary::chunks::Chunks;
use crate::dictionary::slots::Key;
use crate::dictionary::wire::low_half;

/// Longest value a view holds itself.
pub(super) const INLINE: usize = 12;

/// A byte string. Short: as an Arrow view has it, the length (the low half of the first word) and the bytes, padded with
/// zeros. Long: the length, 32 bits of hash, and where the bytes are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry([u64; 2]);

impl Entry {
    /// The length of the string.
    #[inline]
    pub(super) fn len(&self) -> usize {
        low_half(self.0[0]) as usize
    }

    #[inline]
    pub(super) fn equals(self, other: Self) -> bool {
        (self.0[0] ^ other.0[0]) | (self.0[1] ^ other.0[1]) == 0
    }

    /// Whether two long strings may be equal: their lengths and hashes are.
    #[inline]
    pub(super) fn looks_like(self, other: Self) -> bool {
        self.0[0] == other.0[0]
    }

    /// Says where a long string is kept.
    #[inline]
    pub(super) fn lies_at(&mut self, place: u64) {
        self.0[1] = place;
    }

    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.len() <= INLINE
    }

    /// The bytes. `scratch` holds those of short ones.
    #[inline]
    pub(super) fn bytes<'a>(&self, long: &'a Chunks, scratch: &'a mut [u8; 16]) -> &'a [u8] {
        let len = self.len();
        if len <= INLINE {
            scratch[..8].copy_from_slice(&self.0[0].to_le_bytes());
            scratch[8..].copy_from_slice(&self.0[1].to_le_bytes());
            &scratch[4..4 + len]
        } else {
            long.get(self.0[1], len)
        }
    }

    /// The entry of a short view. Nothing promises that the bytes after its value are zero.
    #[inline]
    pub(super) fn of_short(view: u128) -> Self {
        // A table is faster than shifting 128 bits by an amount known only at run time.
        const MASKS: [u128; 16] = {
            let mut masks = [u128::MAX; 16];
            let mut len = 0;
            while len < INLINE {
                masks[len] = (1 << (32 + 8 * len)) - 1;
                len += 1;
            }
            masks
        };
        Self(split(view & MASKS[length(view) % 16]))
    }

    /// The entry of `bytes`, which are at most `u32::MAX` long; long ones lie nowhere yet, so that they equal no others.
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Self {
        let len = bytes.len() as u64;
        if bytes.len() <= INLINE {
            let mut entry = [0; 16];
            entry[4..4 + bytes.len()].copy_from_slice(bytes);
            return Self(split(u128::from_le_bytes(entry) | u128::from(len)));
        }
        let mut hasher = FixedState::with_seed(0x9e37_79b9_7f4a_7c15).build_hasher();
        hasher.write(bytes);
        Self([hasher.finish() >> 32 << 32 | len, u64::MAX])
    }
}

impl Key for Entry {
    const WORDS: usize = 2;

    #[inline]
    fn of_words(words: &[[u8; 8]]) -> Self {
        Self([u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])])
    }

    fn to_words(self, words: &mut [[u8; 8]]) {
        words.copy_from_slice(&self.0.map(u64::to_le_bytes));
    }

    #[inline]
    fn tag(&self) -> u32 {
        if self.is_short() { mix(self.0[0], self.0[1]) } else { low_half(self.0[0] >> 32) }
    }
}

impl Key for u64 {
    const WORDS: usize = 1;

    #[inline]
    fn of_words(words: &[[u8; 8]]) -> Self {
        Self::from_le_bytes(words[0])
    }

    fn to_words(self, words: &mut [[u8; 8]]) {
        words[0] = self.to_le_bytes();
    }

    #[inline]
    fn tag(&self) -> u32 {
        mix(*self, 0)
    }
}

/// Hashes two words by a folded multiplication as foldhash's, without its bookkeeping. Keys with equal hashes are only
/// slower to find, never confused.
#[inline]
pub(super) fn mix(a: u64, b: u64) -> u32 {
    let product = u128::from(a ^ 0x243f_6a88_85a3_08d3) * u128::from(b ^ 0x1319_8a2e_0370_7344);
    let [low, high] = split(product);
    low_half((low ^ high) >> 32)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the two halves are what is asked for")]
pub(super) fn split(view: u128) -> [u64; 2] {
    [view as u64, (view >> 64) as u64]
}

#[inline]
pub(super) fn length(view: u128) -> usize {
    low_half(split(view)[0]) as usize
}

/// The bytes a long view points at, if its buffer has them.
#[inline]
pub(super) fn long_bytes(view: u128, buffers: &[Buffer]) -> Option<&[u8]> {
    let [low, high] = split(view);
    let (len, start) = (low_half(low) as usize, low_half(high >> 32) as usize);
    buffers.get(low_half(high) as usize)?.get(start..start.checked_add(len)?)
}
