//! Strings of up to 15 bytes that occur often, and strings as the numbers of these: OnPair (Gargiulo, Venturini, 2025). It
//! takes about half of what FSST takes, whose 255 symbols have at most eight bytes, and decodes each string alone as well.
//!
//! Tokens are numbered in the order of their bytes. A number takes as many bits as the last one needs.

mod train;

use crate::dictionary::alphabet::peek;
use crate::dictionary::wire::{low_byte, low_half};
use crate::wire::wide;
use plinth_core::key::common_prefix;
use plinth_core::wire::{Reader, put_varint};

pub(super) use train::Tokenizer;

/// Bytes of the longest token.
pub(super) const LONGEST: usize = 15;

/// Most tokens of a table.
pub(super) const MOST: usize = 1 << 16;

/// A token's bytes, zeros, and in the last byte how many there are: what a decoder needs is one load.
type Entry = [u8; LONGEST + 1];

fn len_of(entry: &Entry) -> usize {
    usize::from(entry[LONGEST])
}

fn bytes_of(entry: &Entry) -> &[u8] {
    entry.get(..len_of(entry)).unwrap_or(&[])
}

/// Bits of the numbers of so many tokens.
fn bits_of(tokens: usize) -> u32 {
    tokens.next_power_of_two().trailing_zeros().max(1)
}

/// A table of tokens to decode with.
#[derive(Debug)]
pub(super) struct Tokens {
    /// As many as the bits of a number count; the empty ones at the end stand for nothing.
    entries: Box<[Entry]>,
    bits: u32,
}

impl Tokens {
    /// Reads what [`write`] wrote.
    pub(super) fn read(cursor: &mut Reader<'_>) -> Option<Self> {
        let count = cursor.length().ok().filter(|&count| (1..=MOST).contains(&count))?;
        let lengths = cursor.take(count).ok()?;
        let (bits, most) = (bits_of(count), u32::from(low_byte(LONGEST)));
        let mut entries = Vec::with_capacity(1 << bits);
        // As numbers, highest byte first, entries compare as the strings do: equal but for zeros, the shorter is less.
        let mut before = 0u128;
        for &length in lengths {
            let (shared, rest) = (u32::from(length & 15), u32::from(length >> 4));
            let len = shared + rest;
            if shared > u32::from(before.to_be_bytes()[LONGEST]) || !(1..=most).contains(&len) {
                return None;
            }
            let more = head(cursor.rest()) >> (8 * shared);
            cursor.skip(rest as usize).ok()?;
            let bytes = (before & !(u128::MAX >> (8 * shared)) | more) & !(u128::MAX >> (8 * len));
            let entry = bytes | u128::from(len);
            if entry <= before {
                return None;
            }
            entries.push(entry.to_be_bytes());
            before = entry;
        }
        entries.resize(1 << bits, [0; LONGEST + 1]);
        Some(Self { entries: entries.into(), bits })
    }

    /// Bits a number.
    pub(super) fn bits(&self) -> usize {
        self.bits as usize
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.entries)
    }

    /// Bytes that [`Tokens::decode`] needs from `at` on for so many numbers.
    #[inline]
    pub(super) fn room(numbers: usize) -> usize {
        LONGEST * numbers + size_of::<Entry>()
    }

    /// The token whose number is at bit `bit`, if there is one.
    #[inline]
    fn at(&self, packed: &[u8], bit: usize) -> Option<&Entry> {
        let number = low_half(peek(packed, bit) >> (u64::BITS - self.bits)) as usize;
        self.entries.get(number).filter(|entry| len_of(entry) > 0)
    }

    /// Writes the bytes of `len` numbers from bit `bit` on from `out[at]` on and gives where they end; bytes after the end
    /// are overwritten too. `None` if a number has no token or `out` lacks the [room](Self::room).
    #[inline]
    pub(super) fn decode(&self, packed: &[u8], bit: usize, len: usize, out: &mut [u8], mut at: usize) -> Option<usize> {
        for i in 0..len {
            let entry = self.at(packed, bit + i * self.bits())?;
            *out.get_mut(at..)?.first_chunk_mut()? = *entry;
            at += len_of(entry);
        }
        Some(at)
    }

    /// Feeds `visit` the bytes of `len` numbers from bit `bit` on, a token at a time, until it says stop. `None` if a number
    /// has no token.
    #[inline]
    pub(super) fn visit(
        &self,
        packed: &[u8],
        bit: usize,
        len: usize,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Option<()> {
        for i in 0..len {
            if !visit(bytes_of(self.at(packed, bit + i * self.bits())?)) {
                break;
            }
        }
        Some(())
    }
}

/// The first bytes as a number, the highest first; zeros if there are fewer.
#[inline]
fn head(bytes: &[u8]) -> u128 {
    match bytes.first_chunk() {
        Some(chunk) => u128::from_be_bytes(*chunk),
        None => {
            let mut padded: Entry = [0; LONGEST + 1];
            padded[..bytes.len()].copy_from_slice(bytes);
            u128::from_be_bytes(padded)
        }
    }
}

/// Appends how many tokens there are, what each shares with the one before and how long the rest is, and the rests.
fn write(tokens: &[Entry], out: &mut Vec<u8>) {
    put_varint(out, wide(tokens.len()));
    let mut rests = Vec::new();
    let mut before: &[u8] = &[];
    for token in tokens.iter().map(bytes_of) {
        let shared = common_prefix(before, token);
        out.push(low_byte(shared | (token.len() - shared) << 4));
        rests.extend_from_slice(&token[shared..]);
        before = token;
    }
    out.extend_from_slice(&rests);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
