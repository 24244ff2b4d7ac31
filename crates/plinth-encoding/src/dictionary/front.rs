//! Front-coded blocks: buckets of 16 keys, the first whole, each other as the length it shares with the one before and
//! the rest. The layout is in the [parent module's documentation](super).

use std::cmp::Ordering;

use arrow_buffer::Buffer;
use fsst::Compressor;

use crate::dictionary::scratch::{STEP, Scratch};
use crate::dictionary::symbols::Symbols;
use crate::dictionary::wire::{Cursor, OrCorrupt, common_prefix, corrupt, low_byte, prefix8, put_varint};
use crate::dictionary::{BUCKET, Found};
use crate::error::Result;

/// A nibble that says: a varint follows, to be added.
const MORE: usize = 15;

/// Encodes up to [`super::BLOCK`] keys in order.
pub(super) fn encode(keys: &[&[u8]], compressor: Option<&Compressor>) -> Vec<u8> {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Vec::new() };
    let common = common_prefix(first, last);
    let mut pieces = Vec::with_capacity(keys.len());
    let mut shared = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        let share = if i % BUCKET == 0 { common } else { common_prefix(keys[i - 1], key) };
        shared.push(share - common);
        pieces.push(&key[share..]);
    }
    let (mut compressed, mut ends) = (Vec::new(), Vec::new());
    if let Some(compressor) = compressor {
        compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(&pieces, &mut compressed, &mut ends);
        let mut start = 0;
        for (piece, &end) in pieces.iter_mut().zip(&ends) {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            *piece = &compressed[start..end];
            start = end;
        }
    }

    let (mut data, mut starts) = (Vec::new(), Vec::new());
    for (i, (piece, &share)) in pieces.iter().zip(&shared).enumerate() {
        if i % BUCKET == 0 {
            starts.push(data.len());
            put_varint(&mut data, piece.len());
        } else {
            data.push(low_byte(share.min(MORE) | piece.len().min(MORE) << 4));
            for length in [share, piece.len()] {
                if let Some(more) = length.checked_sub(MORE) {
                    put_varint(&mut data, more);
                }
            }
        }
        data.extend_from_slice(piece);
    }

    let width: u8 = if data.len() <= 0xffff {
        2
    } else if data.len() <= 0xffff_ffff {
        4
    } else {
        8
    };
    let mut out = Vec::with_capacity(data.len() + common + usize::from(width) * starts.len() + 16);
    put_varint(&mut out, keys.iter().map(|key| key.len()).sum());
    put_varint(&mut out, common);
    out.extend_from_slice(&first[..common]);
    out.push(width);
    for start in starts.iter().skip(1) {
        out.extend_from_slice(&start.to_le_bytes()[..usize::from(width)]);
    }
    out.extend_from_slice(&data);
    out
}

/// What the blocks of one dictionary share.
pub(super) struct Context<'a> {
    /// Present if pieces are compressed.
    pub(super) symbols: Option<&'a Symbols>,
    /// No key is longer.
    pub(super) longest: usize,
}

/// A block ready to be searched.
#[derive(Debug)]
pub(super) struct FrontBlock {
    bytes: Buffer,
    len: usize,
    /// Sum of the keys' lengths.
    decoded: usize,
    common: (usize, usize),
    offset_width: usize,
    offsets: usize,
    data: usize,
    /// The first eight bytes of each bucket's first key, past the common prefix.
    prefixes: Vec<u64>,
}

impl FrontBlock {
    pub(super) fn open(bytes: Buffer, len: usize, context: &Context<'_>) -> Result<Self> {
        let mut cursor = Cursor::new(&bytes);
        let decoded = cursor.varint().or_corrupt("a block lacks its decoded size")?;
        let common_len = cursor.varint().or_corrupt("a block lacks the length of its common prefix")?;
        let common_start = cursor.skip(common_len).or_corrupt("a block's common prefix is longer than the block")?;
        let offset_width = usize::from(cursor.byte().or_corrupt("a block lacks its bucket offsets")?);
        if !matches!(offset_width, 2 | 4 | 8) {
            return Err(corrupt("a block's bucket offsets are not of 2, 4 or 8 bytes"));
        }
        let buckets = len.div_ceil(BUCKET);
        let offsets = cursor.position();
        cursor.skip((buckets - 1) * offset_width).or_corrupt("a block's bucket offsets are cut short")?;
        let data = cursor.position();
        if common_len > context.longest {
            return Err(corrupt("a block's common prefix is longer than the longest value"));
        }
        let common = (common_start, common_start + common_len);
        let mut block = Self { len, decoded, common, offset_width, offsets, data, prefixes: Vec::new(), bytes };
        block.prefixes.reserve(buckets);
        for bucket in 0..buckets {
            let head = block.bucket(bucket)?.varint_piece().or_corrupt("a bucket's first value is cut short")?;
            let prefix = match context.symbols {
                None => prefix8(head),
                Some(symbols) => {
                    let (mut start, mut held) = ([0; 16], 0);
                    symbols
                        .visit(head, |bytes| {
                            start[held..held + bytes.len()].copy_from_slice(bytes);
                            held += bytes.len();
                            held < 8
                        })
                        .or_corrupt("a code has no symbol")?;
                    prefix8(&start[..held])
                }
            };
            if block.prefixes.last().is_some_and(|&before| before > prefix) {
                return Err(corrupt("the buckets of a block are not in order"));
            }
            block.prefixes.push(prefix);
        }
        Ok(block)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + 8 * self.prefixes.capacity()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sum of the keys' lengths, as the block claims.
    pub(super) fn decoded(&self) -> usize {
        self.decoded
    }

    fn common(&self) -> &[u8] {
        &self.bytes[self.common.0..self.common.1]
    }

    fn bucket(&self, bucket: usize) -> Result<Cursor<'_>> {
        let start = if bucket == 0 { Some(0) } else { self.offset(bucket) };
        let end = if (bucket + 1) * BUCKET >= self.len { Some(self.bytes.len()) } else { None };
        let end = end.or_else(|| self.offset(bucket + 1)?.checked_add(self.data));
        start
            .and_then(|start| Cursor::within(&self.bytes, start.checked_add(self.data)?, end?))
            .or_corrupt("a bucket's offset is out of place")
    }

    /// Where a bucket other than the first starts in the data.
    fn offset(&self, bucket: usize) -> Option<usize> {
        let at = self.offsets + (bucket - 1) * self.offset_width;
        let offset = match self.offset_width {
            2 => u64::from(u16::from_le_bytes(*self.bytes.get(at..at + 2)?.first_chunk()?)),
            4 => u64::from(u32::from_le_bytes(*self.bytes.get(at..at + 4)?.first_chunk()?)),
            _ => u64::from_le_bytes(*self.bytes.get(at..at + 8)?.first_chunk()?),
        };
        usize::try_from(offset).ok()
    }

    /// Where `key` is or would be.
    pub(super) fn locate(&self, context: &Context<'_>, key: &[u8]) -> Result<Found> {
        let common = self.common();
        let shared = common_prefix(common, key);
        if shared < common.len() {
            let before = key.get(shared).is_none_or(|byte| *byte < common[shared]);
            return Ok(Found { rank: if before { 0 } else { self.len }, exact: false });
        }
        let rest = &key[common.len()..];
        let prefix = prefix8(rest);
        // The last bucket whose first key is not above the key. Those with a smaller prefix are below; equal prefixes
        // need a closer look.
        let mut low = self.prefixes.partition_point(|&head| head < prefix);
        let mut high = match self.prefixes.get(low) {
            Some(&head) if head == prefix => low + self.prefixes[low..].partition_point(|&head| head == prefix),
            _ => low,
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let head = self.bucket(middle)?.varint_piece().or_corrupt("a bucket's first value is cut short")?;
            match compare(context, head, rest)?.0 {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Found { rank: middle * BUCKET, exact: true }),
                Ordering::Greater => high = middle,
            }
        }
        match low.checked_sub(1) {
            None => Ok(Found { rank: 0, exact: false }),
            Some(bucket) => self.locate_in_bucket(context, bucket, rest),
        }
    }

    /// The bucket's first key is below `key`. Values are compared without being put together: one that shares more
    /// with the one before than that shares with `key` is on the same side of it.
    fn locate_in_bucket(&self, context: &Context<'_>, bucket: usize, key: &[u8]) -> Result<Found> {
        const CUT: &str = "a bucket is cut short";
        let mut cursor = self.bucket(bucket)?;
        let head = cursor.varint_piece().or_corrupt(CUT)?;
        let (_, mut matched) = compare(context, head, key)?;
        let first = bucket * BUCKET;
        let end = (first + BUCKET).min(self.len);
        for rank in first + 1..end {
            let (shared, piece) = cursor.next_lengths().or_corrupt(CUT)?;
            let piece = cursor.take(piece).or_corrupt(CUT)?;
            if shared > matched {
                continue;
            }
            if shared < matched {
                return Ok(Found { rank, exact: false });
            }
            let (order, more) = compare(context, piece, &key[matched..])?;
            match order {
                Ordering::Less => matched += more,
                Ordering::Equal => return Ok(Found { rank, exact: true }),
                Ordering::Greater => return Ok(Found { rank, exact: false }),
            }
        }
        Ok(Found { rank: end, exact: false })
    }

    /// Replaces what `out` holds by key `rank` of the block.
    ///
    /// Few pieces of a bucket reach into a given key, so lengths are read first and only those pieces are copied.
    pub(super) fn get(&self, context: &Context<'_>, rank: usize, out: &mut Vec<u8>) -> Result<()> {
        const CUT: &str = "a bucket is cut short";
        let common = self.common();
        let mut cursor = self.bucket(rank / BUCKET)?;
        let wanted = rank % BUCKET;
        // Of each key: what it shares with the one before, where its piece starts, and how long that is.
        let mut parts = [(0, 0, 0); BUCKET];
        let (mut reach, mut furthest) = (0, 0);
        for (i, part) in parts.iter_mut().enumerate().take(wanted + 1) {
            let (shared, piece) =
                if i == 0 { cursor.varint().map(|piece| (0, piece)) } else { cursor.next_lengths() }.or_corrupt(CUT)?;
            if shared > reach {
                return Err(corrupt("a value shares more than the value before it has"));
            }
            *part = (shared, cursor.skip(piece).or_corrupt(CUT)?, piece);
            reach = shared + if context.symbols.is_some() { Symbols::room(piece) } else { piece };
            furthest = furthest.max(reach);
        }
        let (mut reaching, mut needed) = (0u32, usize::MAX);
        for (i, &(shared, ..)) in parts.iter().enumerate().take(wanted + 1).rev() {
            if shared < needed {
                reaching |= 1 << i;
                needed = shared;
            }
            if needed == 0 {
                break;
            }
        }

        out.clear();
        out.resize(common.len() + furthest + STEP, 0);
        let (in_common, rest) = out.split_at_mut(common.len());
        in_common.copy_from_slice(common);
        let mut end = 0;
        while reaching != 0 {
            let (shared, start, piece) = parts[reaching.trailing_zeros() as usize];
            reaching &= reaching - 1;
            if shared > end {
                return Err(corrupt("a value shares more than the value before it has"));
            }
            end = match context.symbols {
                None => {
                    match self.bytes.get(start..start + STEP) {
                        Some(step) if piece <= STEP => rest[shared..shared + STEP].copy_from_slice(step),
                        _ => rest[shared..shared + piece].copy_from_slice(&self.bytes[start..start + piece]),
                    }
                    shared + piece
                }
                Some(symbols) => symbols
                    .decode(&self.bytes[start..start + piece], rest, shared)
                    .or_corrupt("a code has no symbol")?,
            };
        }
        out.truncate(common.len() + end);
        if out.len() > context.longest {
            return Err(corrupt("a value is longer than the dictionary says"));
        }
        Ok(())
    }

    /// Decodes all keys.
    pub(super) fn decode(&self, context: &Context<'_>, out: &mut Scratch) -> Result<()> {
        const CUT: &str = "a bucket is cut short";
        out.clear();
        let common = self.common.1 - self.common.0;
        let mut before = 0..0;
        for bucket in 0..self.prefixes.len() {
            let mut cursor = self.bucket(bucket)?;
            for i in bucket * BUCKET..((bucket + 1) * BUCKET).min(self.len) {
                let start = out.used();
                let first = i % BUCKET == 0;
                let (shared, piece) = if first {
                    out.literal(&self.bytes, self.common.0, common);
                    (common, cursor.varint().or_corrupt(CUT)?)
                } else {
                    let (shared, piece) = cursor.next_lengths().or_corrupt(CUT)?;
                    let shared = shared.saturating_add(common);
                    if shared > before.len() {
                        return Err(corrupt("a value shares more than the value before it has"));
                    }
                    out.repeat(before.start, shared);
                    (shared, piece)
                };
                let at = cursor.skip(piece).or_corrupt(CUT)?;
                match context.symbols {
                    None => out.literal(&self.bytes, at, piece),
                    Some(symbols) => out.decompress(symbols, &self.bytes[at..at + piece])?,
                }
                let this = start..out.used();
                if this.len() > context.longest || this.end > self.decoded {
                    return Err(corrupt("a value is longer than the dictionary says"));
                }
                if i > 0 && !out.ascends(before, this.clone(), if first { common } else { shared }) {
                    return Err(corrupt("values are not in order"));
                }
                out.end_value();
                before = this;
            }
            if cursor.left() != 0 {
                return Err(corrupt("a bucket has bytes to spare"));
            }
        }
        if out.used() != self.decoded {
            return Err(corrupt("a block decodes to fewer bytes than it says"));
        }
        Ok(())
    }
}

/// How a piece compares with `key`, and how many bytes they share.
#[inline]
fn compare(context: &Context<'_>, piece: &[u8], key: &[u8]) -> Result<(Ordering, usize)> {
    let Some(symbols) = context.symbols else {
        let shared = common_prefix(piece, key);
        return Ok((piece[shared..].first().cmp(&key[shared..].first()), shared));
    };
    let (mut shared, mut order) = (0, Ordering::Equal);
    symbols
        .visit(piece, |bytes| {
            let rest = &key[shared..];
            let same = common_prefix(bytes, rest);
            shared += same;
            order = if same < bytes.len() { bytes[same..].first().cmp(&rest[same..].first()) } else { Ordering::Equal };
            order.is_eq()
        })
        .or_corrupt("a code has no symbol")?;
    if order.is_eq() && shared < key.len() {
        order = Ordering::Less;
    }
    Ok((order, shared))
}

impl<'a> Cursor<'a> {
    /// A length and that many bytes.
    #[inline]
    fn varint_piece(&mut self) -> Option<&'a [u8]> {
        let len = self.varint()?;
        self.take(len)
    }

    /// What a value that is not its bucket's first shares with the one before, and the length of its piece.
    #[inline]
    fn next_lengths(&mut self) -> Option<(usize, usize)> {
        let byte = usize::from(self.byte()?);
        let (mut shared, mut piece) = (byte & MORE, byte >> 4);
        if shared == MORE {
            shared = shared.checked_add(self.varint()?)?;
        }
        if piece == MORE {
            piece = piece.checked_add(self.varint()?)?;
        }
        Some((shared, piece))
    }
}
