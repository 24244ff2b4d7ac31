//! Keys over a small alphabet: the bytes that occur are numbered in order, and a number takes `k` bits, 1 to 7. Strings
//! of such symbols, highest bits first, compare as the keys do, many symbols at a time.

use std::cmp::Ordering;

use crate::dictionary::wire::low_byte;
use plinth_core::wire::Reader;

/// An alphabet has at most this many symbols: one bit less than a byte.
const MOST: usize = 128;

/// Appends bits, the highest of a byte first.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    bits: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, held: 0, bits: 0 }
    }

    /// The lowest `count <= 56` bits of `value`, which has no others.
    #[inline]
    pub(super) fn put(&mut self, value: u64, count: u32) {
        if self.bits + count > u64::BITS {
            self.flush();
        }
        self.held |= value.checked_shl(u64::BITS - self.bits - count).unwrap_or(0);
        self.bits += count;
    }

    /// Writes what is held in whole bytes.
    #[inline]
    fn flush(&mut self) {
        let whole = self.bits / 8;
        // Eight bytes, of which some are taken back, are quicker than just as many as there are.
        self.out.extend_from_slice(&self.held.to_be_bytes());
        self.out.truncate(self.out.len() - 8 + whole as usize);
        self.held = self.held.checked_shl(8 * whole).unwrap_or(0);
        self.bits %= 8;
    }

    /// The `count` bits of `from` from bit `at` on.
    pub(super) fn copy(&mut self, from: &[u8], mut at: usize, count: usize) {
        let end = at + count;
        while at + 56 <= end {
            self.put(peek(from, at) >> 8, 56);
            at += 56;
        }
        let rest = (end - at).min(56);
        if rest > 0 {
            self.put(peek(from, at) >> (64 - rest), low_u32(rest));
        }
    }

    /// Fills up the last byte with zeros.
    pub(super) fn finish(mut self) {
        self.bits = self.bits.next_multiple_of(8);
        self.flush();
    }
}

/// The bits from bit `at` on, the first of them highest: 57 at least, zeros past the end.
#[inline]
pub(super) fn peek(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at / 8..).unwrap_or(&[]);
    let word = match rest.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => crate::dictionary::wire::prefix8(rest),
    };
    word << (at % 8)
}

/// The bytes that keys are made of.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// Bits a symbol.
    bits: u32,
    /// The bytes in order; past them the last, again and again.
    bytes: [u8; MOST],
    len: usize,
    /// How many of the bytes are less than each byte.
    ranks: [u8; 256],
    /// To divide bits by `bits`: `bits * inverse >> 9` symbols.
    inverse: u32,
}

impl Alphabet {
    /// The alphabet of these bytes; `None` if there are none, or so many that a byte is no larger than a symbol.
    pub(super) fn new(occurring: &[bool; 256]) -> Option<Self> {
        let occurring: Vec<u8> = (0..=u8::MAX).filter(|&byte| occurring[usize::from(byte)]).collect();
        Self::of(&occurring)
    }

    fn of(occurring: &[u8]) -> Option<Self> {
        let len = occurring.len();
        let last = *occurring.last().filter(|_| len <= MOST)?;
        let mut bytes = [last; MOST];
        bytes[..len].copy_from_slice(occurring);
        let mut ranks = [0; 256];
        for (byte, rank) in (0..=u8::MAX).zip(&mut ranks) {
            *rank = low_byte(occurring.partition_point(|&other| other < byte));
        }
        let bits = len.next_power_of_two().trailing_zeros().max(1);
        Some(Self { bits, bytes, len, ranks, inverse: 512u32.div_ceil(bits) })
    }

    /// Appends the number of bytes, and the bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(low_byte(self.len));
        out.extend_from_slice(&self.bytes[..self.len]);
    }

    /// Reads what [`Alphabet::write`] wrote.
    pub(super) fn read(cursor: &mut Reader<'_>) -> Option<Self> {
        let len = usize::from(cursor.u8().ok()?);
        let bytes = cursor.take(len).ok()?;
        if bytes.is_sorted_by(|a, b| a < b) { Self::of(bytes) } else { None }
    }

    /// Bits a symbol.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// How many whole symbols these bits are, at most 64 of them.
    #[inline]
    fn symbols_in(&self, bits: u32) -> usize {
        ((bits * self.inverse) >> 9) as usize
    }

    /// Symbols in a word.
    #[inline]
    pub(super) fn word_len(&self) -> usize {
        self.symbols_in(u64::BITS)
    }

    /// Appends the symbols of bytes that all are of the alphabet.
    pub(super) fn pack(&self, key: &[u8], out: &mut BitWriter<'_>) {
        for &byte in key {
            out.put(u64::from(self.ranks[usize::from(byte)]), self.bits);
        }
    }

    /// Writes the bytes of `len` symbols that begin at bit `bit` from `out[at]` on, up to seven bytes more than that, and
    /// gives where they end. `None` if `out` has not that much room.
    #[inline]
    pub(super) fn unpack(&self, packed: &[u8], bit: usize, len: usize, out: &mut [u8], at: usize) -> Option<usize> {
        let mask = (1 << self.bits) - 1;
        let mut bit = bit;
        for chunk in out.get_mut(at..at + len.next_multiple_of(8))?.as_chunks_mut::<8>().0 {
            let word = peek(packed, bit);
            bit += 8 * self.bits as usize;
            let mut shift = u64::BITS;
            for byte in chunk {
                shift -= self.bits;
                *byte = self.bytes[usize::from(low_bits(word >> shift) & mask)];
            }
        }
        Some(at + len)
    }

    /// Whether each of the `len` symbols from the start is one.
    pub(super) fn are_symbols(&self, packed: &[u8], bit: usize, len: usize) -> bool {
        if self.len == 1 << self.bits {
            return true;
        }
        let mask = (1 << self.bits) - 1;
        let (mut bit, mut left, mut most) = (bit, len, 0);
        while left > 0 {
            let word = peek(packed, bit);
            let mut shift = u64::BITS;
            for _ in 0..left.min(8) {
                shift -= self.bits;
                most = most.max(low_bits(word >> shift) & mask);
            }
            bit += 8 * self.bits as usize;
            left = left.saturating_sub(8);
        }
        usize::from(most) < self.len
    }

    /// What to look for to find `key` among keys of less than `most` bytes.
    #[inline]
    pub(super) fn query<'a>(&self, key: &'a [u8], most: usize) -> Query<'a> {
        let key = key.get(..most).unwrap_or(key);
        let known = key.iter().take_while(|&&byte| self.bytes[self.index(byte)] == byte).count();
        let next = key.get(known).map(|&byte| self.ranks[usize::from(byte)]);
        let above = next.is_some_and(|next| usize::from(next) >= self.len);
        let mut query = Query { key: &key[..known], next: next.filter(|_| !above), above, word: 0 };
        query.word = self.word_at(&query, 0);
        query
    }

    /// The rank of a byte that is of the alphabet; some rank of one that is not.
    #[inline]
    fn index(&self, byte: u8) -> usize {
        usize::from(self.ranks[usize::from(byte)]) % MOST
    }

    /// The symbols of the query from `from` on, as many as a word holds.
    #[inline]
    fn word_at(&self, query: &Query<'_>, from: usize) -> u64 {
        let (mut word, mut shift) = (0, u64::BITS);
        let mut put = |symbol: u8| {
            shift -= self.bits;
            word |= u64::from(symbol) << shift;
        };
        let known = query.key.get(from..).unwrap_or(&[]);
        known.iter().take(self.word_len()).for_each(|&byte| put(self.ranks[usize::from(byte)]));
        if known.len() < self.word_len() {
            if let Some(next) = query.next {
                put(next);
            }
            if query.above {
                word |= u64::MAX >> (u64::BITS - shift);
            }
        }
        word
    }

    /// How the `len` symbols from bit `bit` on compare with the query from `from` on, and how many symbols they share.
    #[inline]
    pub(super) fn compare(
        &self,
        packed: &[u8],
        bit: usize,
        len: usize,
        query: &Query<'_>,
        from: usize,
    ) -> (Ordering, usize) {
        let all = query.len();
        let mut done = 0;
        loop {
            let wanted = (len - done).min(all - from - done).min(self.symbols_in(57));
            let ours = peek(packed, bit + done * self.bits as usize);
            let theirs = if all <= self.word_len() {
                query.word.checked_shl(low_u32((from + done) * self.bits as usize)).unwrap_or(0)
            } else {
                self.word_at(query, from + done)
            };
            let same = self.symbols_in((ours ^ theirs).leading_zeros());
            if same < wanted {
                return (ours.cmp(&theirs), done + same);
            }
            done += wanted;
            let order = match (done == len, from + done == all) {
                (_, true) if query.above => Ordering::Less,
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => continue,
            };
            return (order, done);
        }
    }
}

/// A key among keys over an alphabet.
///
/// A key with a byte that is not of the alphabet has its place where the key would have that ends with the next byte that
/// is, or past all that begin as it does, if there is no such byte.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    /// As much of the key as is of the alphabet.
    key: &'a [u8],
    /// The symbol after that, if it stands for a byte that is none.
    next: Option<u8>,
    /// Whether it is past all that begin as it does.
    above: bool,
    /// The first symbols.
    pub(super) word: u64,
}

impl Query<'_> {
    fn len(&self) -> usize {
        self.key.len() + usize::from(self.next.is_some())
    }

    /// Whether a key that is equal is the one looked for.
    pub(super) fn is_exact(&self) -> bool {
        self.next.is_none() && !self.above
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the lowest bits are what is asked for")]
fn low_bits(word: u64) -> u8 {
    word as u8
}

#[allow(clippy::cast_possible_truncation, reason = "what is asked of few symbols has few bits")]
fn low_u32(bits: usize) -> u32 {
    bits as u32
}
