//! Postings: for each code of a dictionary the rows that hold it, so that a value's rows are read instead of looked for.
//!
//! Lists lie in the order of codes, cut into *groups* that are read, verified and decoded alone: an exact lookup is one
//! small read, a prefix one contiguous read. A [`Directory`], which is kept in memory, finds the group of a code and knows
//! how many rows lie before it. [`plan`] cuts, from the lengths of the lists alone, so that a writer that inverts a column may do
//! it in any order and in pieces; [`encode()`] makes a group; [`Postings`] answers.
//!
//! A list is stored as Elias (1974) and Fano (1971) have it: of numbers below `u` the low bits as they are, the high bits
//! in unary, which takes at most half a bit a number more than any way to store just this list.
//!
//! # Bytes
//!
//! Numbers are little-endian. `varint` is LEB128 of at most 64 bits. Bit streams begin at the lowest bit of their first byte.
//!
//! ## Directory
//!
//! | size | what |
//! |---|---|
//! | varint | number of groups |
//! | | then for each group: |
//! | varint | its first code, less that of the group before; 0 for the first group |
//! | varint | its length in bytes, below 2^32 |
//! | 8 | its checksum |
//! | varint | its rows |
//!
//! Groups follow each other without gaps. A group has the lists of the codes from its first to that of the next group, or to
//! the last code; but if the next group has the same first code, or the one before has, it is a *part*: it has some rows of
//! this code alone, and the parts of a code follow each other as its rows do. A group has at most 256 codes and 131,072 rows.
//!
//! ## Group
//!
//! | size | what |
//! |---|---|
//! | varint | the smallest row |
//! | varint | the largest row less the smallest; one more is the *universe* `u` |
//! | varint | the rows of its shortest list |
//! | 1 | width `w` of what the others have more, in bits; at most 18; and 128, if the lists are gaps |
//! | `codes * w` bits | the rows of each list, less those of the shortest; filled with zeros to a whole byte |
//! | to the end | the lists, one after the other in one bit stream, filled with zeros to a whole byte |
//!
//! Rows are stored less the smallest row of the group. A list of `n` rows is
//!
//! - nothing, if `n` is 0 or `u`;
//! - a bitmap of `u` bits, if `4 n > u`;
//! - else, with the largest `l` so that `n << l <= u`: for each row its high bits, `row >> l`, in unary, that is so many
//!   zeros as they are more than the high bits of the row before (of 0) and a one; zeros to fill `n + ((u - 1) >> l)` bits;
//!   then of each row the `l` low bits.

mod build;
mod codes;
mod directory;
mod gaps;
mod group;
mod list;
mod reader;

pub use build::{Share, encode, plan};
pub use codes::Codes;
pub use directory::{Directory, Place};
pub use reader::{Cost, GroupSource, Postings};

use crate::error::EncodingError;

/// A column of so many rows has no postings: low bits must fit a word that begins anywhere in a byte.
pub const MOST_ROWS: u64 = 1 << 56;

/// Most codes of a group.
const GROUP_CODES: usize = 256;

/// Bits of lists after which a group ends, unless a single row takes more. No row takes less than one, so that a group of
/// hardly any bytes can't stand for more rows than this.
const GROUP_BITS: u64 = 16 << 13;

#[cold]
fn corrupt(what: &str) -> EncodingError {
    EncodingError::corrupt(format!("postings: {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "tests")]
mod tests;
