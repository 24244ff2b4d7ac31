//! Which vectors of codes can hold a string, told without decompressing them.
//!
//! The automaton of Knuth, Morris and Pratt takes in a byte at a step, this one a code: the symbol's bytes at once. So it
//! matters neither how the writer cut text into symbols nor where values end; and a yes may be of a string that lies across
//! two values, but a no is certain. What is damaged, a code without a symbol or half an escape, is a yes: decompressing tells.

use super::ESCAPE;

/// Bytes of a needle that are looked for, its last ones: few texts have so many by chance, and the table fits the nearest cache.
const MOST: usize = 15;
/// Vectors that are read side by side, for each step waits for the one before.
const LANES: usize = 4;
/// Codes until it is asked whether all lanes have found it.
const STRIDE: usize = 64;
/// Codes of a state.
const ROW: usize = 256;

/// The states: so many bytes of the needle were just seen, up to all; then as many that wait for the byte behind an escape.
/// A state is where its row of next states begins.
pub(super) struct Automaton {
    next: Vec<u16>,
    found: u16,
}

fn state(row: usize) -> u16 {
    u16::try_from(row * ROW).unwrap_or(u16::MAX)
}

impl Automaton {
    /// For a needle of at least one byte.
    pub(super) fn new(needle: &[u8], symbols: &[&[u8]]) -> Self {
        let needle = needle.last_chunk::<MOST>().map_or(needle, |tail| tail.as_slice());
        let bytes = by_bytes(needle);
        let len = needle.len();
        let from_none: Vec<usize> = symbols.iter().map(|symbol| after(&bytes, 0, symbol)).collect();
        let mut next = vec![state(len); (2 * len + 1) * ROW];
        let (seen, escaped) = next.split_at_mut((len + 1) * ROW);
        for (row, by_byte) in bytes.iter().enumerate() {
            let codes = seen.iter_mut().skip(row * ROW).take(usize::from(ESCAPE));
            for (slot, (symbol, &from_none)) in codes.zip(symbols.iter().zip(&from_none)) {
                *slot = state(joined(&bytes, row, symbol).unwrap_or(from_none));
            }
            if let Some(slot) = seen.get_mut(row * ROW + usize::from(ESCAPE)) {
                *slot = state(len + 1 + row);
            }
            for (slot, &to) in escaped.iter_mut().skip(row * ROW).zip(by_byte) {
                *slot = state(usize::from(to));
            }
        }
        Self { next, found: state(len) }
    }

    #[inline(always)]
    fn step(&self, state: u16, code: u8) -> u16 {
        self.next.get(usize::from(state) + usize::from(code)).copied().unwrap_or(self.found)
    }

    /// Whether each of these vectors can hold the needle.
    pub(super) fn read(&self, vectors: &[&[u8]]) -> Vec<bool> {
        let lanes = vectors.chunks(LANES).flat_map(|vectors| {
            let mut rest: [&[u8]; LANES] = std::array::from_fn(|lane| vectors.get(lane).copied().unwrap_or_default());
            let mut states = [0; LANES];
            while states != [self.found; LANES]
                && let [Some(a), Some(b), Some(c), Some(d)] = rest.map(|codes| codes.split_first_chunk::<STRIDE>())
            {
                for (((&a, &b), &c), &d) in a.0.iter().zip(b.0).zip(c.0).zip(d.0) {
                    let [at, bt, ct, dt] = states;
                    states = [self.step(at, a), self.step(bt, b), self.step(ct, c), self.step(dt, d)];
                }
                rest = [a.1, b.1, c.1, d.1];
            }
            // Half an escape at the end is behind `found`, too.
            std::array::from_fn::<_, LANES, _>(|lane| self.read_one(states[lane], rest[lane]) >= self.found)
        });
        lanes.take(vectors.len()).collect()
    }

    fn read_one(&self, mut state: u16, codes: &[u8]) -> u16 {
        for stride in codes.chunks(STRIDE) {
            if state == self.found {
                break;
            }
            state = stride.iter().fold(state, |state, &code| self.step(state, code));
        }
        state
    }
}

/// The automaton over bytes: of each number of bytes seen, but all, the number after each next byte.
fn by_bytes(needle: &[u8]) -> Vec<[u8; ROW]> {
    let mut rows: Vec<[u8; ROW]> = Vec::with_capacity(needle.len());
    // The state after the needle's bytes but its first: where a mismatch goes on.
    let mut border = 0_usize;
    for (at, &byte) in needle.iter().enumerate() {
        let mut row = rows.get(border).filter(|_| at > 0).copied().unwrap_or([0; ROW]);
        if at > 0 {
            border = usize::from(row[usize::from(byte)]);
        }
        row[usize::from(byte)] = u8::try_from(at + 1).unwrap_or(u8::MAX);
        rows.push(row);
    }
    rows
}

/// The bytes seen after a symbol. All stay all.
fn after(bytes: &[[u8; ROW]], from: usize, symbol: &[u8]) -> usize {
    symbol.iter().fold(from, |seen, &byte| bytes.get(seen).map_or(seen, |row| usize::from(row[usize::from(byte)])))
}

/// The bytes seen after a symbol; none if they are as many as from the start, which is most often plain from its first bytes.
fn joined(bytes: &[[u8; ROW]], from: usize, symbol: &[u8]) -> Option<usize> {
    let (mut seen, mut from_none) = (from, 0);
    for byte in symbol {
        let byte = std::slice::from_ref(byte);
        (seen, from_none) = (after(bytes, seen, byte), after(bytes, from_none, byte));
        if seen == from_none {
            return None;
        }
    }
    Some(seen)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
