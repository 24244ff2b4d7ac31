//! Where lists are cut, told from their lengths alone.

use super::list::Shape;
use super::{GROUP_BITS, GROUP_CODES, group};
use crate::encoding::Effort;

/// What a group is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its first code.
    pub first: u32,
    /// How many codes.
    pub codes: u32,
    /// Rows of its first code that are in groups before it; it has one code then, or all its rows would be here.
    pub skip: u64,
    /// Its rows.
    pub rows: u64,
}

/// Cuts the lists of a column of `column_rows` rows, of which each code has so many, into groups.
pub fn plan(lengths: &[u64], column_rows: u64) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    let mut bits = 0;
    let mut open: Option<Share> = None;
    for (code, &rows) in (0_u32..).zip(lengths) {
        // As if it had all rows: a full list takes no bits, but a reader must not get rows for nothing.
        let list = Shape::of(rows, column_rows).bits(rows, column_rows).max(rows);
        let fits = bits + list <= GROUP_BITS && open.is_some_and(|share| (share.codes as usize) < GROUP_CODES);
        if !fits {
            shares.extend(open.take());
            bits = 0;
        }
        if list > GROUP_BITS {
            let parts = list.div_ceil(GROUP_BITS);
            let (each, mut skip) = (rows.div_ceil(parts), 0);
            while skip < rows {
                let here = each.min(rows - skip);
                shares.push(Share { first: code, codes: 1, skip, rows: here });
                skip += here;
            }
            continue;
        }
        bits += list;
        let share = open.get_or_insert(Share { first: code, codes: 0, skip: 0, rows: 0 });
        share.codes += 1;
        share.rows += rows;
    }
    shares.extend(open);
    shares
}

impl Share {
    /// How many rows each of its lists has here.
    fn lengths<'a>(&self, lengths: &'a [u64]) -> std::borrow::Cow<'a, [u64]> {
        let first = self.first as usize;
        if self.codes == 1 {
            return vec![self.rows].into();
        }
        lengths.get(first..first + self.codes as usize).unwrap_or_default().into()
    }
}

/// Encodes the group of a share: of all lists' lengths those that are its own, and its rows, list by list.
pub fn encode(share: &Share, lengths: &[u64], rows: &[u64], effort: Effort) -> Vec<u8> {
    group::encode(&share.lengths(lengths), rows, effort)
}
