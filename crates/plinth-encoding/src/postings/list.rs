//! One list: increasing numbers below a universe as bits.

use super::corrupt;
use crate::error::Result;

/// Bytes that must follow the last bit of what is read.
pub(super) const PADDING: usize = 8;

/// How a list of so many numbers below so much is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// None or all.
    Implied,
    /// A bit for each number there may be.
    Bitmap,
    /// High bits in unary, low bits as they are.
    Split { low: u32, high_len: u64 },
}

impl Shape {
    pub(super) fn of(rows: u64, universe: u64) -> Self {
        if rows == 0 || rows >= universe {
            return Self::Implied;
        }
        if rows > universe / 4 {
            return Self::Bitmap;
        }
        let mut low = rows.leading_zeros() - universe.leading_zeros();
        if rows << low > universe {
            low -= 1;
        }
        Self::Split { low, high_len: rows + ((universe - 1) >> low) }
    }

    /// Bits of the list.
    pub(super) fn bits(self, rows: u64, universe: u64) -> u64 {
        match self {
            Self::Implied => 0,
            Self::Bitmap => universe,
            Self::Split { low, high_len } => high_len + rows * u64::from(low),
        }
    }
}

/// Bits one after the other, lowest first.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits not in `bytes` yet, fewer than eight.
    pending: u64,
    pending_len: u32,
}

impl BitWriter {
    pub(super) fn after(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Appends the low `len` bits of `value`, at most 56; its other bits are zero.
    pub(super) fn put(&mut self, value: u64, len: u32) {
        self.pending |= value << self.pending_len;
        self.pending_len += len;
        let whole = (self.pending_len / 8) as usize;
        self.bytes.extend_from_slice(&self.pending.to_le_bytes()[..whole]);
        // A shift by a whole word is none.
        self.pending = if whole == 8 { 0 } else { self.pending >> (8 * whole) };
        self.pending_len %= 8;
    }

    fn zeros(&mut self, mut len: u64) {
        while len > 0 {
            let step = len.min(56);
            self.put(0, u32::try_from(step).unwrap_or(56));
            len -= step;
        }
    }

    /// Appends a list of numbers below `universe`, each given with `base` added.
    pub(super) fn put_list(&mut self, rows: &[u64], base: u64, universe: u64) {
        let count = rows.len() as u64;
        match Shape::of(count, universe) {
            Shape::Implied => {}
            Shape::Bitmap => {
                let mut at = 0;
                for row in rows.iter().map(|row| row - base) {
                    self.zeros(row - at);
                    self.put(1, 1);
                    at = row + 1;
                }
                self.zeros(universe - at);
            }
            Shape::Split { low, high_len } => {
                let mut at = 0;
                for (i, row) in rows.iter().enumerate() {
                    let one = ((row - base) >> low) + i as u64;
                    self.zeros(one - at);
                    self.put(1, 1);
                    at = one + 1;
                }
                self.zeros(high_len - at);
                let mask = (1 << low) - 1;
                rows.iter().for_each(|row| self.put((row - base) & mask, low));
            }
        }
    }

    /// Fills up to a whole byte.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.pending_len > 0 {
            self.put(0, 8 - self.pending_len);
        }
        self.bytes
    }
}

/// The 57 bits from a bit on, at least; zeros past the end.
#[inline(always)]
pub(super) fn load(bytes: &[u8], bit: u64) -> u64 {
    let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    u64::from_le_bytes(word.copied().unwrap_or_default()) >> (bit % 8)
}

/// Appends the numbers of the list that begins at bit `start`, plus `base`. The bytes go on [`PADDING`] bytes after it.
pub(super) fn decode(bytes: &[u8], start: u64, rows: u64, universe: u64, base: u64, out: &mut Vec<u64>) -> Result<()> {
    let shape = Shape::of(rows, universe);
    if shape == Shape::Implied {
        out.extend(base..base + rows);
        return Ok(());
    }
    let before = out.len();
    let count = usize::try_from(rows).map_err(|_| corrupt("a list longer than memory"))?;
    out.resize(before + count, 0);
    let slots = &mut out[before..];
    match shape {
        Shape::Implied => Ok(()),
        Shape::Bitmap => {
            let found = ones(bytes, start, universe, |i, at| match slots.get_mut(i) {
                Some(slot) => {
                    *slot = base + at;
                    true
                }
                None => false,
            });
            if found == Some(count) { Ok(()) } else { Err(corrupt("a list of another length than its group says")) }
        }
        Shape::Split { low, high_len } => {
            let (mask, lows) = ((1 << low) - 1, start + high_len);
            let (mut low_at, mut least, mut increasing) = (lows, 0, true);
            let found = ones(bytes, start, high_len, |i, at| {
                let Some(slot) = slots.get_mut(i) else { return false };
                let row = (at - i as u64) << low | load(bytes, low_at) & mask;
                low_at += u64::from(low);
                increasing &= row >= least;
                least = row + 1;
                *slot = base + row;
                true
            });
            if found != Some(count) {
                return Err(corrupt("a list of another length than its group says"));
            }
            if increasing && least <= universe { Ok(()) } else { Err(corrupt("rows that do not increase")) }
        }
    }
}

/// Calls `each` with the number and place of every one among `len` bits; how many there were, unless it stopped them.
#[inline(always)]
fn ones(bytes: &[u8], start: u64, len: u64, mut each: impl FnMut(usize, u64) -> bool) -> Option<usize> {
    let (mut found, end) = (0, start + len);
    // Words begin at whole bytes.
    let mut at = start & !7;
    let mut word = load(bytes, at) & (u64::MAX << (start - at));
    loop {
        if end - at < 64 {
            word &= (1 << (end - at)) - 1;
        }
        while word != 0 {
            let place = at + u64::from(word.trailing_zeros()) - start;
            if !each(found, place) {
                return None;
            }
            found += 1;
            word &= word - 1;
        }
        at += 64;
        if at >= end {
            return Some(found);
        }
        word = load(bytes, at);
    }
}
