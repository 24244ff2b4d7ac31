//! Lists as gaps, for files that are to be as small as they can: how many rows lie between a row and the one before. Of a
//! gap the number of its bits, its *class*, has a prefix code; the bits below its highest one follow as they are. Gaps of
//! rows without order are geometric, and take some 2 % less than Elias and Fano's lists; those of rows that lie together,
//! much less.

use super::corrupt;
use super::list::{BitWriter, load};
use crate::bitpack::bits_for;
use crate::dictionary::prefix::{Code, CodeTable};
use crate::error::Result;

/// Bits of the largest gap: rows are fewer than [`super::MOST_ROWS`].
const WIDEST: u8 = 56;

/// The classes of all gaps of a group's lists.
#[derive(Debug)]
pub(super) struct Classes {
    all: Box<[u8]>,
    /// Where each list begins among them.
    firsts: Box<[u32]>,
}

/// Bits of a gap that its class does not tell.
fn extra(class: u8) -> u32 {
    u32::from(class).saturating_sub(1)
}

/// Appends lists of so many rows each.
pub(super) fn put(lengths: &[u64], rows: &[u64], base: u64, mut out: Vec<u8>) -> Vec<u8> {
    let (mut classes, mut rest) = (Vec::with_capacity(rows.len()), rows);
    let mut bits = BitWriter::default();
    for &length in lengths {
        let (list, after) = rest.split_at(usize::try_from(length).unwrap_or(usize::MAX).min(rest.len()));
        rest = after;
        let mut least = base;
        for &row in list {
            let gap = row - least;
            let class = bits_for(gap);
            classes.push(class);
            bits.put(gap & ((1 << extra(class)) - 1), extra(class));
            least = row + 1;
        }
    }
    let mut counts = [0; 256];
    classes.iter().for_each(|&class| counts[usize::from(class)] += 1);
    let code = Code::choose(&counts);
    code.write(&mut out);
    code.encode(&classes, &mut out);
    out.extend(bits.finish());
    out
}

impl Classes {
    /// Reads the classes of lists of so many rows each, which begin at a byte, and gives the byte where they end.
    pub(super) fn read(bytes: &[u8], at: usize, lengths: impl Iterator<Item = u32>) -> Result<(Self, usize)> {
        let wrong = || corrupt("gaps without a class");
        let (table, described) = CodeTable::read(bytes.get(at..).unwrap_or_default()).ok_or_else(wrong)?;
        let mut count = 0;
        let mut first = |length: u32| {
            count += length;
            count - length
        };
        let firsts = lengths.map(&mut first).collect();
        let mut all = Vec::new();
        let end = table.decode(bytes, at + described, count as usize, &mut all).ok_or_else(wrong)?;
        if all.iter().any(|&class| class > WIDEST) {
            return Err(corrupt("a gap that is too wide"));
        }
        Ok((Self { all: all.into(), firsts }, end))
    }

    fn of(&self, i: usize, rows: u32) -> Option<&[u8]> {
        self.all.get(*self.firsts.get(i)? as usize..)?.get(..rows as usize)
    }

    /// Bits of the `i`-th list, which has so many rows, beside its classes.
    pub(super) fn bits(&self, i: usize, rows: u32) -> u64 {
        self.of(i, rows).unwrap_or_default().iter().map(|&class| u64::from(extra(class))).sum()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.all.len() + size_of_val(&*self.firsts)
    }

    /// Appends the rows of the `i`-th list, whose other bits begin at `start`, plus `base`.
    pub(super) fn decode(
        &self,
        i: usize,
        rows: u32,
        (bytes, start): (&[u8], u64),
        universe: u64,
        base: u64,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let classes = self.of(i, rows).ok_or_else(|| corrupt("a list of another length than its group says"))?;
        let (mut bit, mut least) = (start, 0);
        out.extend(classes.iter().map(|&class| {
            let highest = (1_u64 << class) >> 1;
            let row = least + (highest | load(bytes, bit) & highest.saturating_sub(1));
            bit += u64::from(extra(class));
            // At most 2^17 gaps of 2^56: what is too large wraps, and is found to be.
            least = if row < universe { row + 1 } else { universe + 1 };
            base + row
        }));
        if least > universe { Err(corrupt("rows that the column has not")) } else { Ok(()) }
    }
}
