//! Where JSON values end, by quotes and brackets alone.

use super::{BLOCK, Kernel, Level};

/// What the bytes before say about the next.
#[derive(Clone, Copy, Debug, Default)]
struct Carry {
    /// One if a backslash precedes that is not itself escaped.
    escaped: u64,
    /// All ones within a string.
    string: u64,
}

impl Carry {
    /// The bytes that a backslash precedes. Backslashes are rare enough to be looked at one by one.
    #[inline(always)]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = std::mem::take(&mut self.escaped);
        let mut rest = backslashes & !escaped;
        while rest != 0 {
            let at = rest.trailing_zeros();
            if at == 63 {
                self.escaped = 1;
                break;
            }
            escaped |= 2 << at;
            rest &= !(3 << at);
        }
        escaped
    }

    /// The bytes within strings, opening quotes included; `quotes` are those that are not escaped.
    #[inline(always)]
    fn strings<K: Kernel>(&mut self, quotes: u64) -> u64 {
        let strings = K::parity(quotes) ^ self.string;
        self.string = if strings >> 63 == 1 { u64::MAX } else { 0 };
        strings
    }
}

/// How values follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// Commas, as in an array: a boundary is after each comma outside of brackets, and the array ends at a bracket that
    /// closes none.
    Commas,
    /// Nothing: a boundary is after each bracket that closes the outermost (or none).
    Nothing,
}

/// Where a [`Scan`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The first byte after a boundary.
    Boundary(usize),
    /// The bracket that closes the array.
    End(usize),
    /// The bytes ended; those from here on were not looked at.
    More(usize),
}

/// Looks for boundaries between values by brackets and quotes alone, whatever else is right or wrong. Starts at a boundary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    pub(super) level: Level,
    between: Between,
    carry: Carry,
    depth: usize,
}

impl Scan {
    pub(crate) fn new(level: Level, between: Between) -> Self {
        Self { level, between, carry: Carry::default(), depth: 0 }
    }

    pub(crate) fn between(&self) -> Between {
        self.between
    }
}

#[inline(always)]
pub(super) fn scan<K: Kernel>(scan: &mut Scan, bytes: &[u8], from: usize, goal: usize, last: bool) -> Stop {
    let mut at = from;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let stop = match rest.first_chunk::<BLOCK>() {
            Some(block) => scan_block::<K>(scan, block, at + BLOCK > goal),
            None if last && !rest.is_empty() => {
                let mut block = [b' '; BLOCK];
                block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                scan_block::<K>(scan, &block, at + BLOCK > goal)
            }
            None => return Stop::More(at),
        };
        match stop {
            None => at = (at + BLOCK).min(bytes.len()),
            Some((bit, end)) => {
                // Outside of brackets and strings, and after no backslash.
                (scan.carry, scan.depth) = (Carry::default(), 0);
                return if end { Stop::End(at + bit) } else { Stop::Boundary(at + bit + 1) };
            }
        }
    }
}

/// The bit at which to stop, and whether the array ends there.
#[inline(always)]
fn scan_block<K: Kernel>(scan: &mut Scan, block: &[u8; BLOCK], wanted: bool) -> Option<(usize, bool)> {
    let is = K::brackets(block);
    let carry = &mut scan.carry;
    let escaped = if is.backslashes | carry.escaped == 0 { 0 } else { carry.escaped(is.backslashes) };
    let outside = !carry.strings::<K>(is.quotes & !escaped);
    let (opens, closes) = (is.opens & outside, is.closes & outside);
    let closed = closes.count_ones() as usize;
    if !wanted && closed <= scan.depth {
        scan.depth = scan.depth - closed + opens.count_ones() as usize;
        return None;
    }
    step(scan, opens, closes, is.commas & outside, wanted)
}

/// As [`scan_block`], bit by bit.
#[inline(never)]
fn step(scan: &mut Scan, opens: u64, closes: u64, commas: u64, wanted: bool) -> Option<(usize, bool)> {
    let commas = if scan.between == Between::Commas { commas } else { 0 };
    let mut rest = opens | closes | commas;
    while rest != 0 {
        let at = rest.trailing_zeros() as usize;
        let bit = rest & rest.wrapping_neg();
        rest &= rest.wrapping_sub(1);
        if opens & bit != 0 {
            scan.depth += 1;
            continue;
        }
        if closes & bit != 0 {
            match (scan.depth.checked_sub(1), scan.between) {
                (None, Between::Commas) => return Some((at, true)),
                (depth, Between::Commas) => scan.depth = depth.unwrap_or(0),
                (depth, Between::Nothing) => {
                    scan.depth = depth.unwrap_or(0);
                    if wanted && scan.depth == 0 {
                        return Some((at, false));
                    }
                }
            }
        } else if wanted && scan.depth == 0 {
            return Some((at, false));
        }
    }
    None
}

#[cfg(test)]
mod tests;
