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
//! Numbers are little-endian. `varint` is LEB128 of at most 64 bits. Bit streams begin with a byte's highest bit and are
//! filled to a whole byte with zeros. Keys are as [`keys`] says. A dictionary of `n` values has `ceil(n / 4096)` blocks, all
//! of 4,096 values but the last; a block has buckets of 16 values, all full but its last. No byte is left over at the end
//! of an index or a block.
//!
//! ## Index
//!
//! | size | what |
//! |---|---|
//! | 1 | form: 0 front-coded, 1 front-coded and compressed with FSST, 2 integers, 3 front-coded and packed, 4 front-coded and in tokens |
//! | varint | number of values `n`, less than 2^32 |
//! | varint | forms but 2: sum of the lengths of all keys |
//! | varint | forms but 2: length of the longest key, 0 if there is none; less than 2^32 |
//! | 1 | form 1: number of symbols `s` (0 to 255) |
//! | `s` | form 1: length of each symbol (1 to 8) |
//! | sum of these | form 1: the symbols, end to end |
//! | 1 | form 3: number of bytes in the alphabet `a` (1 to 128) |
//! | `a` | form 3: these bytes, ascending |
//! | varint | form 4: number of tokens `t` (1 to 65,536) |
//! | `t` | form 4: of each, in the low four bits how many bytes it shares with the one before, in the high four bits how many more it has |
//! | sum of these | form 4: the bytes it has more, end to end |
//! | varint | forms but 2: number of length bytes that have codes `m`; 0 if each stands for itself, in eight bits |
//! | `m` | forms but 2: these bytes, ascending |
//! | `ceil(m / 2)` | forms but 2: bits of each one's code (1 to 12) in a nibble, low nibbles first |
//! | | then for each block but the first its separator: |
//! | varint | forms but 2: its length, at least 1 |
//! | that length | forms but 2: the shortest prefix of the block's first key that is greater than the last key before |
//! | key width | form 2: the block's first key |
//!
//! Types whose keys have one to eight bytes take form 2 and no other; all others take one of the others.
//!
//! ## Block, all forms but 2
//!
//! | size | what |
//! |---|---|
//! | varint | sum of the lengths of the block's keys |
//! | varint | length `c` of the prefix that all keys of the block share |
//! | `c` | that prefix as it is |
//! | bit stream | the code of each key's length byte |
//! | varints | lengths that did not fit those bytes |
//! | to the end | the pieces, end to end: a bit stream in forms 3 and 4 |
//!
//! Of each key the block has what it shares with another and a piece, the rest, both past the block's common prefix: with
//! the key before it or, for a bucket's first key, with the first key of the bucket before. The latter, being what a search
//! holds in a word, counts at most 8 bytes in form 0, none in forms 1 and 4, `floor(64 / k)` in form 3; and none in the block's
//! first bucket. A length byte's low four bits are the length of what is shared, its high four bits that of the piece; 15
//! in either means that a varint follows to be added to it, the shared length's first.
//!
//! A piece is the rest of the key as it is in form 0; in form 1 its FSST codes (and its length counts codes: `i` for symbol
//! `i`, 255 before a byte that stands for itself); in form 3 the place of each of its bytes in the alphabet, in `k` bits:
//! as few as all places need, at least 1; in form 4 the numbers of tokens, in as few bits as all numbers need, at least 1
//! (and its length counts these). Tokens are numbered from 0, have 1 to 15 bytes and ascend.
//!
//! Codes of length bytes are canonical: shorter ones come before longer ones and those of equal length in the order of
//! their bytes, and each is the one before plus 1, shifted left to its length; the first is all zeros.
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

mod alphabet;
mod block;
mod cache;
mod chunks;
mod decoded;
mod entry;
mod front;
mod gather;
mod index;
mod integers;
mod intern;
pub mod keys;
mod lengths;
mod pieces;
pub(crate) mod prefix;
mod reader;
mod scratch;
mod search;
mod slots;
mod sort;
mod strings;
mod symbols;
mod tokens;
mod translate;
mod wire;

use arrow_buffer::Buffer;
use fsst::Compressor;
use plinth_io::Prefetch;
use rayon::prelude::*;

pub use decoded::Decoded;
pub use intern::Interner;
pub use reader::Dictionary;
pub use sort::Sorted;

use crate::dictionary::alphabet::Alphabet;
use crate::dictionary::front::Coding;
use crate::dictionary::prefix::Code;
use crate::dictionary::tokens::Tokenizer;
use crate::encoding::Effort;
use crate::error::{EncodingError, Result};
use crate::physical::Physical;

/// Values a block.
pub const BLOCK: usize = 4096;
/// Values a bucket.
const BUCKET: usize = 16;

const FRONT: u8 = 0;
const FRONT_FSST: u8 = 1;
const INTEGERS: u8 = 2;
const FRONT_PACKED: u8 = 3;
const FRONT_TOKENS: u8 = 4;

/// Keys must be longer than this on average for FSST to be tried: shorter ones fit a view, and decoding them is all
/// there is to do.
const WORTH_COMPRESSING: usize = 12;
/// Buckets that FSST is trained on, and all codings are tried on.
const SAMPLED_BUCKETS: usize = 512;
/// Bytes of keys that tokens are learned from, at most: of four times as many, dictionaries get a hundredth smaller.
const LEARNED_FROM: usize = 12 << 20;

/// A dictionary as it goes into a file.
#[derive(Clone, Debug)]
pub struct EncodedDictionary {
    /// Blocks of [`BLOCK`] values, in order.
    pub blocks: Vec<Vec<u8>>,
    /// What [`Dictionary::open`] needs besides.
    pub index: Vec<u8>,
}

impl EncodedDictionary {
    /// Whether its pieces are tokens, which readers of the first files of version 1 do not know.
    pub fn has_tokens(&self) -> bool {
        self.index.first() == Some(&FRONT_TOKENS)
    }
}

/// The source of the bytes of a dictionary's blocks: the file layer implements it.
pub trait BlockSource: Send + Sync {
    /// The bytes of block `i`, read and verified.
    ///
    /// # Errors
    /// If they cannot be had.
    fn block(&self, i: usize) -> Result<Buffer>;

    /// Begins to bring blocks that will be asked for before what this returns is dropped. A source that is near does nothing.
    fn prefetch(&self, blocks: &mut dyn Iterator<Item = usize>) -> Prefetch {
        let _ = blocks;
        Prefetch::default()
    }
}

/// Where a key is in a block, or where it would be.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// How many keys are smaller.
    rank: usize,
    /// Whether the key is there.
    exact: bool,
}

/// What a dictionary learned of its values, for the next one of the same column.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// None if it took no tokens.
    tokens: Vec<u128>,
    /// Bytes of a sample of pieces, and what they took in tokens.
    plain: usize,
    packed: usize,
}

/// The least part of its dictionary's keys that tokens are kept for: they are to take little memory beside what held them.
const KEPT: usize = 16;
/// The part by which pieces may take more than those that their tokens were learned from.
const ABOUT: usize = 32;

impl Learned {
    /// The tokens again, if pieces are packed by them about as well as those they were learned from.
    fn again(&self, sorted: &Sorted, pieces: &[&[u8]], occurring: &[bool; 256]) -> Option<Tokenizer> {
        if self.tokens.is_empty() {
            return None;
        }
        let tokenizer = Tokenizer::of(&self.tokens, occurring)?;
        let packed = packed_size(&tokenizer, pieces, sorted) as u128 * self.plain as u128;
        let most = (self.packed + self.packed / ABOUT) as u128 * plain_size(pieces) as u128;
        (packed <= most).then_some(tokenizer)
    }

    /// Takes what tokens make of pieces.
    fn note(&mut self, tokenizer: &Tokenizer, packed: usize, sorted: &Sorted, pieces: &[&[u8]]) {
        let tokens = tokenizer.learned();
        if size_of_val(tokens) * KEPT <= sorted.key_bytes() {
            *self = Self { tokens: tokens.to_vec(), plain: plain_size(pieces), packed };
        }
    }
}

fn plain_size(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// Bytes of a sample of pieces, each with a byte of lengths, and of its share of a table that is spread over all keys.
fn size_with(table: &[u8], packed: usize, pieces: &[&[u8]], sorted: &Sorted) -> usize {
    packed + pieces.len() + table.len() * pieces.len() / sorted.len().max(1)
}

/// The same of pieces in tokens.
fn packed_size(tokenizer: &Tokenizer, pieces: &[&[u8]], sorted: &Sorted) -> usize {
    let mut table = Vec::new();
    tokenizer.write(&mut table);
    size_with(&table, tokenizer.packed_len(pieces), pieces, sorted)
}

/// Encodes a sorted dictionary. Equal dictionaries give equal bytes.
///
/// # Errors
/// If `sorted` holds values of another type.
pub fn encode(physical: Physical, sorted: &Sorted, effort: Effort) -> Result<EncodedDictionary> {
    encode_like(physical, sorted, effort, &mut Learned::default())
}

/// As [`encode`] for a dictionary of the same column as others: what they learned is used as long as it does about as well.
///
/// # Errors
/// As [`encode`].
pub fn encode_like(
    physical: Physical,
    sorted: &Sorted,
    effort: Effort,
    learned: &mut Learned,
) -> Result<EncodedDictionary> {
    if sorted.physical() != physical {
        return Err(EncodingError::invalid(format!(
            "a dictionary of {:?} is not one of {physical:?}",
            sorted.physical()
        )));
    }
    let starts: Vec<usize> = (0..sorted.len()).step_by(BLOCK).collect();
    if let Some(numbers) = keys::Numbers::of(physical) {
        let blocks = starts.par_iter().map(|&start| {
            let ranks = start..sorted.len().min(start + BLOCK);
            integers::encode(&ranks.map(|rank| numbers.of_key(sorted.key(rank))).collect::<Vec<_>>())
        });
        return Ok(EncodedDictionary { blocks: blocks.collect(), index: index::write(sorted, None) });
    }
    let coding = choose_coding(sorted, effort, learned);
    let drafts = starts.par_iter().map(|&start| {
        let ranks = start..sorted.len().min(start + BLOCK);
        front::draft(&ranks.map(|rank| sorted.key(rank)).collect::<Vec<_>>(), &coding)
    });
    let drafts: Vec<_> = drafts.collect();
    let mut counts = [0; 256];
    drafts.iter().for_each(|draft| draft.count_lengths(&mut counts));
    let code = Code::choose(&counts);
    let index = index::write(sorted, Some((&coding, &code)));
    Ok(EncodedDictionary { blocks: drafts.into_par_iter().map(|draft| draft.finish(&code)).collect(), index })
}

/// How pieces take the least room: packed over the alphabet of all keys if that is small, or compressed.
fn choose_coding(sorted: &Sorted, effort: Effort, learned: &mut Learned) -> Coding {
    let mut occurring = [false; 256];
    sorted.keys().flatten().for_each(|&byte| occurring[usize::from(byte)] = true);
    let alphabet = Alphabet::new(&occurring);
    let bits = alphabet.as_ref().map_or(8, |alphabet| alphabet.bits() as usize);
    choose_compression(sorted, bits, &occurring, effort, learned)
        .unwrap_or_else(|| alphabet.map(Box::new).map_or(Coding::Plain, Coding::Packed))
}

/// A table of symbols or tokens, if one makes the dictionary more than a tenth smaller than pieces of so many bits a byte,
/// judged by some buckets; tokens, which take longer to find, if they save a tenth of what symbols leave.
fn choose_compression(
    sorted: &Sorted,
    bits: usize,
    occurring: &[bool; 256],
    effort: Effort,
    learned: &mut Learned,
) -> Option<Coding> {
    if sorted.key_bytes() / sorted.len().max(1) <= WORTH_COMPRESSING {
        return None;
    }
    let pieces = sample(sorted, SAMPLED_BUCKETS);
    if let Some(tokenizer) = learned.again(sorted, &pieces, occurring) {
        return Some(Coding::Tokens(Box::new(tokenizer)));
    }
    let much_less = |bytes: usize, than: usize| bytes < than / 10 * 9;
    let plain = plain_size(&pieces) * bits / 8 + pieces.len();

    let compressor = Compressor::train(&pieces);
    let (mut codes, mut ends, mut table) = (Vec::new(), Vec::new(), Vec::new());
    compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(&pieces, &mut codes, &mut ends);
    symbols::write_symbols(&compressor, &mut table);
    let in_symbols = size_with(&table, codes.len(), &pieces, sorted);
    let symbols = much_less(in_symbols, plain).then(|| Coding::Compressed(Box::new(compressor)));

    if matches!(effort, Effort::Plain | Effort::Fast) {
        return symbols;
    }
    let buckets = sorted.len().div_ceil(BUCKET).saturating_mul(LEARNED_FROM) / sorted.key_bytes().max(LEARNED_FROM);
    let tokenizer = Tokenizer::train(&sample(sorted, buckets), occurring);
    let in_tokens = packed_size(&tokenizer, &pieces, sorted);
    let tokens = much_less(in_tokens, if symbols.is_some() { in_symbols } else { plain });
    if !tokens {
        return symbols;
    }
    learned.note(&tokenizer, in_tokens, sorted, &pieces);
    Some(Coding::Tokens(Box::new(tokenizer)))
}

/// The pieces of about so many buckets, evenly spaced over all.
fn sample(sorted: &Sorted, wanted: usize) -> Vec<&[u8]> {
    let buckets = sorted.len().div_ceil(BUCKET);
    let mut pieces: Vec<&[u8]> = Vec::new();
    for bucket in (0..buckets).step_by(buckets.div_ceil(wanted.max(1)).max(1)) {
        let (start, end) = (bucket * BUCKET, sorted.len().min((bucket + 1) * BUCKET));
        let block = start / BLOCK * BLOCK;
        let last = sorted.len().min(block + BLOCK) - 1;
        let common = plinth_core::key::common_prefix(sorted.key(block), sorted.key(last));
        pieces.push(&sorted.key(start)[common..]);
        pieces.extend((start + 1..end).map(|rank| {
            let key = sorted.key(rank);
            &key[plinth_core::key::common_prefix(sorted.key(rank - 1), key)..]
        }));
    }
    pieces
}
