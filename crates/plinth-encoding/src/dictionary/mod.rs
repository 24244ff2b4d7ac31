//! The file-wide sorted dictionary: the distinct values of a column in order, so that a value's code is its rank and
//! comparing codes compares values.
//!
//! Values of every physical type but `Bool` are mapped to order-preserving byte [`keys`], so one mechanism serves text,
//! binaries, integers and floats. [`Interner`] gives values provisional codes, [`Interner::sort`] ranks them,
//! [`encode()`] writes blocks of [`BLOCK`] values that decode alone and an index, and [`Dictionary`] answers from these,
//! reading only the blocks it needs.
//!
//! Front coding in buckets is described by Witten, Moffat and Bell ("Managing Gigabytes", 1999) and measured for string
//! dictionaries by Martínez-Prieto, Brisaboa, Cánovas, Claude and Navarro (Information Systems, 2016).
//!
//! # Bytes
//!
//! Numbers are little-endian. `varint` is LEB128 of at most 64 bits. Keys are as [`keys`] says. A dictionary of `n`
//! values has `ceil(n / 4096)` blocks, all of 4,096 values but the last; a block has buckets of 16 values, all full but
//! its last. No byte is left over at the end of an index, a block or a bucket.
//!
//! ## Index
//!
//! | size | what |
//! |---|---|
//! | 1 | form: 0 front-coded, 1 front-coded and compressed with FSST, 2 integers |
//! | varint | number of values `n`, less than 2^32 |
//! | varint | forms 0 and 1: sum of the lengths of all keys |
//! | varint | forms 0 and 1: length of the longest key, 0 if there is none; less than 2^32 |
//! | 1 | form 1: number of symbols `s` (0 to 255) |
//! | `s` | form 1: length of each symbol (1 to 8) |
//! | sum of these | form 1: the symbols, end to end |
//! | | then for each block but the first its separator: |
//! | varint | forms 0 and 1: its length, at least 1 |
//! | that length | forms 0 and 1: the shortest prefix of the block's first key that is greater than the last key before |
//! | key width | form 2: the block's first key |
//!
//! Types whose keys have one to eight bytes take form 2 and no other; all others take form 0 or 1.
//!
//! ## Block, forms 0 and 1
//!
//! | size | what |
//! |---|---|
//! | varint | sum of the lengths of the block's keys |
//! | varint | length `c` of the prefix that all keys of the block share |
//! | `c` | that prefix, never compressed |
//! | 1 | width `w` of bucket offsets: 2, 4 or 8 |
//! | `(buckets - 1) * w` | where each bucket but the first starts, from the start of the first |
//! | to the end | the buckets |
//!
//! A bucket is its first key (varint length of the piece, the piece) and then for each other key one byte, lengths that
//! did not fit, and the piece. The byte's low four bits are the number of bytes shared with the key before, its high
//! four bits the length of the piece; 15 in either means that a varint follows to be added to it, the shared length's
//! first. Shared lengths are counted, and pieces start, past the block's common prefix. A piece is the rest of the key:
//! as it is in form 0, in FSST codes in form 1 (then its length counts codes: `i` for symbol `i`, 255 before a byte that
//! stands for itself).
//!
//! ## Block, form 2
//!
//! Keys are read as big-endian numbers.
//!
//! | size | what |
//! |---|---|
//! | 8 | the block's first number |
//! | 1 | width `w` of bucket heads in bytes, 0 to 8 |
//! | `(buckets - 1) * w` | the first number of each bucket but the first, less the block's first |
//! | `buckets` | bits a difference, 0 to 64, for each bucket |
//! | to the end | for each bucket the differences of neighbours less one, packed from the lowest bit up, the bucket padded to whole bytes |

mod decoded;
mod front;
mod gather;
mod index;
mod integers;
mod intern;
mod kept;
pub mod keys;
mod reader;
mod scratch;
mod slots;
mod sort;
mod symbols;
mod translate;
mod wire;

use arrow_buffer::Buffer;
use fsst::Compressor;

pub use decoded::Decoded;
pub use intern::Interner;
pub use reader::Dictionary;
pub use sort::Sorted;

use crate::column::Physical;
use crate::error::{EncodingError, Result};

/// Values a block.
pub const BLOCK: usize = 4096;
/// Values a bucket.
const BUCKET: usize = 16;

const FRONT: u8 = 0;
const FRONT_FSST: u8 = 1;
const INTEGERS: u8 = 2;

/// Keys must be longer than this on average for FSST to be tried: shorter ones fit a view, and decoding them is all
/// there is to do.
const WORTH_COMPRESSING: usize = 12;
/// Buckets that FSST is trained and tried on.
const SAMPLED_BUCKETS: usize = 512;

/// A dictionary as it goes into a file.
#[derive(Clone, Debug)]
pub struct EncodedDictionary {
    /// Blocks of [`BLOCK`] values, in order.
    pub blocks: Vec<Vec<u8>>,
    /// What [`Dictionary::open`] needs besides.
    pub index: Vec<u8>,
}

/// Gives the bytes of a dictionary's blocks; whoever holds the file implements it.
pub trait BlockSource: Send + Sync {
    /// The bytes of block `i`, read and verified.
    ///
    /// # Errors
    /// If they cannot be had.
    fn block(&self, i: usize) -> Result<Buffer>;
}

/// Where a key is in a block, or where it would be.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// How many keys are smaller.
    rank: usize,
    /// Whether the key is there.
    exact: bool,
}

/// Encodes a sorted dictionary. Equal dictionaries give equal bytes.
///
/// # Errors
/// If `sorted` holds values of another type.
pub fn encode(physical: Physical, sorted: &Sorted) -> Result<EncodedDictionary> {
    if sorted.physical() != physical {
        return Err(EncodingError::invalid(format!(
            "a dictionary of {:?} is not one of {physical:?}",
            sorted.physical()
        )));
    }
    let starts = (0..sorted.len()).step_by(BLOCK);
    if let Some(numbers) = keys::Numbers::of(physical) {
        let mut values = Vec::with_capacity(BLOCK);
        let blocks = starts.map(|start| {
            values.clear();
            values.extend((start..sorted.len().min(start + BLOCK)).map(|rank| numbers.of_key(sorted.key(rank))));
            integers::encode(&values)
        });
        return Ok(EncodedDictionary { blocks: blocks.collect(), index: index::write(sorted, true, None) });
    }
    let compressor = choose_compressor(sorted);
    let mut values = Vec::with_capacity(BLOCK);
    let blocks = starts.map(|start| {
        values.clear();
        values.extend((start..sorted.len().min(start + BLOCK)).map(|rank| sorted.key(rank)));
        front::encode(&values, compressor.as_ref())
    });
    Ok(EncodedDictionary { blocks: blocks.collect(), index: index::write(sorted, false, compressor.as_ref()) })
}

/// A symbol table, if compression makes the dictionary more than a tenth smaller, judged by the pieces of buckets evenly
/// spaced over it.
fn choose_compressor(sorted: &Sorted) -> Option<Compressor> {
    if sorted.key_bytes() / sorted.len().max(1) <= WORTH_COMPRESSING {
        return None;
    }
    let buckets = sorted.len().div_ceil(BUCKET);
    let mut pieces: Vec<&[u8]> = Vec::new();
    for bucket in (0..buckets).step_by(buckets.div_ceil(SAMPLED_BUCKETS).max(1)) {
        let (start, end) = (bucket * BUCKET, sorted.len().min((bucket + 1) * BUCKET));
        let block = start / BLOCK * BLOCK;
        let last = sorted.len().min(block + BLOCK) - 1;
        let common = wire::common_prefix(sorted.key(block), sorted.key(last));
        pieces.push(&sorted.key(start)[common..]);
        pieces.extend((start + 1..end).map(|rank| {
            let key = sorted.key(rank);
            &key[wire::common_prefix(sorted.key(rank - 1), key)..]
        }));
    }
    let compressor = Compressor::train(&pieces);
    let (mut compressed, mut ends, mut table) = (Vec::new(), Vec::new(), Vec::new());
    compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(&pieces, &mut compressed, &mut ends);
    symbols::write_symbols(&compressor, &mut table);
    // Every key has a byte of lengths; the table is spread over all keys, of which the sample is a part.
    let plain = pieces.iter().map(|piece| piece.len() + 1).sum::<usize>();
    let compressed = compressed.len() + pieces.len() + table.len() * pieces.len() / sorted.len();
    (compressed < plain / 10 * 9).then_some(compressor)
}
