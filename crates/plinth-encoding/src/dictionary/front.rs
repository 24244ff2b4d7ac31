//! Front-coded blocks as bytes: buckets of 16 keys, each kept as what it shares with the key before and the rest. The
//! layout is in the [parent module's documentation](super).

use arrow_buffer::Buffer;
use fsst::Compressor;

use crate::dictionary::BUCKET;
use crate::dictionary::alphabet::{Alphabet, BitWriter};
use crate::dictionary::lengths;
use crate::dictionary::pieces::{Context, Pieces, Table};
use crate::dictionary::prefix::Code;
use crate::dictionary::search::FrontBlock;
use crate::dictionary::tokens::Tokenizer;
use crate::dictionary::wire::{OrCorrupt, corrupt, prefix8};
use crate::error::Result;
use crate::wire::wide;
use plinth_core::key::common_prefix;
use plinth_core::wire::{Reader, put_varint};

/// How pieces of keys are written.
pub(super) enum Coding {
    Plain,
    Packed(Box<Alphabet>),
    Compressed(Box<Compressor>),
    Tokens(Box<Tokenizer>),
}

impl Coding {
    /// How much a bucket's first key may share with that of the bucket before: what the search array holds of it.
    fn most_shared(&self) -> usize {
        match self {
            Self::Plain => size_of::<u64>(),
            Self::Packed(alphabet) => alphabet.word_len(),
            Self::Compressed(_) | Self::Tokens(_) => 0,
        }
    }
}

/// A block but for its lengths, whose code is chosen when all blocks are there.
pub(super) struct Draft {
    head: Vec<u8>,
    lengths: Vec<u8>,
    more: Vec<u8>,
    pieces: Vec<u8>,
}

/// Encodes up to [`super::BLOCK`] keys in order.
pub(super) fn draft(keys: &[&[u8]], coding: &Coding) -> Draft {
    let mut draft = Draft { head: Vec::new(), lengths: Vec::new(), more: Vec::new(), pieces: Vec::new() };
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return draft };
    let common = common_prefix(first, last);
    put_varint(&mut draft.head, wide(keys.iter().map(|key| key.len()).sum()));
    put_varint(&mut draft.head, wide(common));
    draft.head.extend_from_slice(&first[..common]);

    let mut pieces = Vec::with_capacity(keys.len());
    let mut shares = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        let share = match i.checked_sub(BUCKET) {
            _ if i % BUCKET != 0 => common_prefix(keys[i - 1], key) - common,
            Some(head) => (common_prefix(keys[head], key) - common).min(coding.most_shared()),
            None => 0,
        };
        shares.push(share);
        pieces.push(&key[common + share..]);
    }
    let mut lengths: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
    match coding {
        Coding::Plain => pieces.iter().for_each(|piece| draft.pieces.extend_from_slice(piece)),
        Coding::Packed(alphabet) => {
            let mut writer = BitWriter::new(&mut draft.pieces);
            pieces.iter().for_each(|piece| alphabet.pack(piece, &mut writer));
            writer.finish();
        }
        Coding::Compressed(compressor) => {
            let mut ends = Vec::new();
            compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(&pieces, &mut draft.pieces, &mut ends);
            let mut start = 0;
            for (length, &end) in lengths.iter_mut().zip(&ends) {
                let end = usize::try_from(end).unwrap_or(usize::MAX);
                *length = end - start;
                start = end;
            }
        }
        Coding::Tokens(tokenizer) => {
            let mut writer = BitWriter::new(&mut draft.pieces);
            lengths = tokenizer.pack(&pieces, &mut writer);
            writer.finish();
        }
    }
    for (&share, &length) in shares.iter().zip(&lengths) {
        lengths::put(share, length, &mut draft.lengths, &mut draft.more);
    }
    draft
}

impl Draft {
    /// Counts the bytes of the lengths.
    pub(super) fn count_lengths(&self, counts: &mut [usize; 256]) {
        self.lengths.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    }

    /// The block's bytes.
    pub(super) fn finish(self, code: &Code) -> Vec<u8> {
        let mut out = self.head;
        out.reserve_exact(self.lengths.len() + self.more.len() + self.pieces.len());
        code.encode(&self.lengths, &mut out);
        out.extend_from_slice(&self.more);
        out.extend_from_slice(&self.pieces);
        out.shrink_to_fit();
        out
    }
}

impl Context {
    /// Reads a block of `len >= 1` keys. All lengths are checked here; what the keys are, when they are decoded.
    pub(super) fn open(&self, bytes: &Buffer, len: usize) -> Result<FrontBlock> {
        const CUT: &str = "a block of keys is cut short";
        let mut cursor = Reader::new(bytes);
        let decoded = cursor.length().or_corrupt(CUT)?;
        let common = cursor.length().and_then(|common| cursor.take(common)).or_corrupt(CUT)?;
        if common.len() > self.longest {
            return Err(corrupt("a block's common prefix is longer than the longest value"));
        }
        let mut nibbles = Vec::new();
        let end = self.code.decode(bytes, cursor.position(), len, &mut nibbles);
        let mut cursor = end
            .and_then(|end| Reader::within(bytes, end, bytes.len()).ok())
            .or_corrupt("a block's lengths are damaged")?;
        let mut sizes = Vec::with_capacity(len);
        for &byte in &nibbles {
            sizes.push(lengths::take(byte, &mut cursor).or_corrupt(CUT)?);
        }
        let first = cursor.position() * 8;
        let bits = self.check(&sizes, common.len(), decoded)?;
        if bits.div_ceil(8) != cursor.left() {
            return Err(corrupt("a block has not the pieces its lengths say"));
        }
        if let Pieces::Packed(alphabet) = &self.pieces
            && !alphabet.are_symbols(bytes, first, bits / self.pieces.bits())
        {
            return Err(corrupt("a piece has symbols the alphabet has not"));
        }
        self.build(bytes, first, &sizes, common, decoded)
    }

    /// Checks the lengths of a block's keys; gives the bits of all pieces.
    fn check(&self, sizes: &[(usize, usize)], common: usize, decoded: usize) -> Result<usize> {
        let compressed = matches!(self.pieces, Pieces::Compressed(_));
        let (mut head, mut before, mut total, mut all) = (0, 0, 0usize, 0usize);
        for (i, &(shared, piece)) in sizes.iter().enumerate() {
            let piece_fits = u32::try_from(piece).is_ok() && u32::try_from(shared).is_ok();
            total = total.checked_add(piece).filter(|_| piece_fits).or_corrupt("a block's lengths are damaged")?;
            if compressed {
                // How long a key is that compressed pieces make is not known before they are decoded.
                if i % BUCKET == 0 && shared != 0 {
                    return Err(corrupt("a bucket's first value shares what it may not"));
                }
                continue;
            }
            let most = if i % BUCKET == 0 { std::cmp::min(head, self.pieces.word_len()) } else { before };
            if shared > most {
                return Err(corrupt("a value shares more than the value before it has"));
            }
            before = shared.checked_add(piece).or_corrupt("a block's lengths are damaged")?;
            if i % BUCKET == 0 {
                head = before;
            }
            if before > self.longest - common {
                return Err(corrupt("a value is longer than the dictionary says"));
            }
            all = all.saturating_add(common + before);
        }
        if !compressed && all != decoded {
            return Err(corrupt("a block decodes to other than it says"));
        }
        total.checked_mul(self.pieces.bits()).or_corrupt("a block's lengths are damaged")
    }

    /// Lays the block out to be searched: each bucket's lengths next to its pieces, its first key whole.
    fn build(
        &self,
        bytes: &Buffer,
        first: usize,
        sizes: &[(usize, usize)],
        common: &[u8],
        decoded: usize,
    ) -> Result<FrontBlock> {
        let width = self.pieces.bits();
        let buckets = sizes.len().div_ceil(BUCKET);
        let mut block = FrontBlock::new(sizes.len(), decoded, common, buckets);
        block.data.reserve(bytes.len() + 4 * sizes.len() / 3);
        let (mut from, mut word) = (first, 0u64);
        for bucket in sizes.chunks(BUCKET) {
            let (head_shared, head_piece) = bucket.first().copied().unwrap_or_default();
            block.starts.push(block.data.len());
            let (data, mut more) = (&mut block.data, Vec::new());
            lengths::put(0, head_shared + head_piece, data, &mut more);
            bucket.iter().skip(1).for_each(|&(shared, piece)| lengths::put(shared, piece, data, &mut more));
            data.resize(data.len() + BUCKET - bucket.len(), 0);
            data.extend_from_slice(&more);
            let at = data.len();

            let symbols: usize = bucket.iter().map(|(_, piece)| piece).sum();
            let held = word;
            let mut writer = BitWriter::new(data);
            writer.copy(&held.to_be_bytes(), 0, head_shared * width);
            writer.copy(bytes, from, symbols * width);
            writer.finish();
            from += symbols * width;
            let symbols = head_shared + head_piece;
            let head = data.get(at..at + (symbols * width).div_ceil(8)).unwrap_or(&[]);
            word = match &self.pieces {
                Pieces::Plain => prefix8(head),
                Pieces::Packed(_) => first_bits(prefix8(head), width * symbols.min(self.pieces.word_len())),
                Pieces::Compressed(table) => first_of_compressed(table, head, symbols)?,
            };
            if block.prefixes.last().is_some_and(|&before| before > word) {
                return Err(corrupt("the buckets of a block are not in order"));
            }
            block.prefixes.push(word);
        }
        block.seal();
        Ok(block)
    }
}

/// The highest `count` bits.
fn first_bits(word: u64, count: usize) -> u64 {
    if count >= 64 { word } else { word & !(u64::MAX >> count) }
}

/// The first bytes that some codes stand for.
fn first_of_compressed(table: &Table, head: &[u8], codes: usize) -> Result<u64> {
    let (mut start, mut held) = ([0; 8], 0);
    let mut put = |bytes: &[u8]| {
        let taken = bytes.len().min(start.len() - held);
        start[held..held + taken].copy_from_slice(&bytes[..taken]);
        held += taken;
        held < start.len()
    };
    table.visit(head, 0, codes, &mut put).or_corrupt("a code has no symbol")?;
    Ok(prefix8(&start[..held]))
}
