//! From codes to values.

use std::hint::black_box;

use arrow_buffer::{Buffer, MutableBuffer};

use crate::column::{Column, Values};
use crate::dictionary::block::Block;
use crate::dictionary::decoded::{Decoded, Heap, not_utf8};
use crate::dictionary::entry::{INLINE, length, long_bytes};
use crate::dictionary::keys::{self, Numbers};
use crate::dictionary::reader::{Dictionary, code};
use crate::dictionary::scratch::Scratch;
use crate::dictionary::search::FrontBlock;
use crate::dictionary::wire::{corrupt, low_half};
use crate::dictionary::{BLOCK, BUCKET};
use crate::error::{EncodingError, Result};
use crate::physical::Physical;

/// A decoded heap of at most this many bytes is shared by what is gathered from it: engines charge a shared buffer to
/// every batch that points into it, and a larger one would not stay in the second-level cache anyway.
const SHARED_HEAP: usize = 1 << 20;
/// From so many codes of one block on, the block is decoded as a whole.
const DENSE: usize = BLOCK / 4;
/// No value's view, as its length would be negative.
const NO_VIEW: u128 = u128::MAX;
/// Long values whose first bytes are loaded together before they are copied.
const AHEAD: usize = 64;

impl Dictionary {
    /// The values of some codes, in their order.
    ///
    /// Few values come straight from their blocks; once about half as many were asked for as there are, all are decoded and
    /// kept, if there is room ([`Dictionary::values_within`]). Views point into
    /// buffers of their own unless all long values together are at most 1 MiB, or fewer bytes than the copies would be.
    ///
    /// # Errors
    /// If a code is no value's (as corrupt data), a block cannot be had or is damaged, or text is not UTF-8.
    pub fn gather(&self, codes: &[u32]) -> Result<Values> {
        self.gather_as(codes, false)
    }

    /// The same values for a moment: once all are decoded, views point into the dictionary's own buffers, however large these are. Nothing is copied, but
    /// what is kept of the result keeps all of the dictionary's values.
    ///
    /// # Errors
    /// As [`Dictionary::gather`].
    pub fn gather_lent(&self, codes: &[u32]) -> Result<Values> {
        self.gather_as(codes, true)
    }

    fn gather_as(&self, codes: &[u32], lent: bool) -> Result<Values> {
        if let Some(decoded) = self.cache.decoded() {
            return self.gather_decoded(&decoded, codes, lent);
        }
        if let Some(&code) = codes.iter().find(|&&code| code as usize >= self.len()) {
            return Err(self.no_such(code));
        }
        let many = self.cache.count_gathered(codes.len()) >= self.len() / 2 || self.len() <= BLOCK;
        if !codes.is_empty()
            && many
            && let Some(decoded) = self.values_within()?
        {
            return self.gather_decoded(&decoded, codes, lent);
        }
        self.gather_blocks(codes)
    }

    /// The values of block `i` in the order of their codes, as a column without nulls.
    ///
    /// # Errors
    /// As [`Dictionary::gather`], and if there is no such block.
    pub fn block_values(&self, i: usize) -> Result<Column> {
        if i >= self.blocks() {
            return Err(EncodingError::invalid(format!("dictionary block {i} is none")));
        }
        let codes: Vec<u32> = (i * BLOCK..self.len().min((i + 1) * BLOCK)).map(code).collect();
        Ok(Column { len: codes.len(), values: self.gather_blocks(&codes)?, nulls: None })
    }

    fn gather_decoded(&self, decoded: &Decoded, codes: &[u32], lent: bool) -> Result<Values> {
        match &decoded.values {
            Values::Fixed(table) => {
                let width = keys::key_width(self.physical).unwrap_or(0);
                let mut out = MutableBuffer::from_len_zeroed(byte_len(codes.len(), width)?);
                let found = match width {
                    0 => codes.iter().all(|&code| (code as usize) < decoded.len),
                    1 => take::<1>(table, codes, &mut out),
                    2 => take::<2>(table, codes, &mut out),
                    4 => take::<4>(table, codes, &mut out),
                    8 => take::<8>(table, codes, &mut out),
                    16 => take::<16>(table, codes, &mut out),
                    32 => take::<32>(table, codes, &mut out),
                    _ => take_wide(table, width, codes, &mut out),
                };
                if !found {
                    return Err(self.out_of_range(codes));
                }
                Ok(Values::Fixed(out.into()))
            }
            Values::Views { views: table, buffers } => {
                // Nothing but loads that don't wait for each other: they miss the caches together.
                let views: Vec<u128> =
                    codes.iter().map(|&code| table.get(code as usize).copied().unwrap_or(NO_VIEW)).collect();
                let (mut long, mut missing) = (0, false);
                for &view in &views {
                    let len = length(view);
                    missing |= view == NO_VIEW;
                    long += if len > INLINE { len } else { 0 };
                }
                if missing {
                    return Err(self.out_of_range(codes));
                }
                if long == 0 {
                    return Ok(Values::Views { views: views.into(), buffers: Vec::new() });
                }
                // A copy of each repeat of a long value could be any number of times the heap.
                if lent || decoded.heap <= SHARED_HEAP.max(long) {
                    return Ok(Values::Views { views: views.into(), buffers: buffers.clone() });
                }
                copy_long(views, buffers, long)
            }
            Values::Bool(_) => Err(EncodingError::invalid("booleans have no dictionary")),
        }
    }

    #[cold]
    fn out_of_range(&self, codes: &[u32]) -> EncodingError {
        self.no_such(codes.iter().copied().max().unwrap_or(0))
    }

    /// Visits the codes in order, so that each block is visited once.
    fn gather_blocks(&self, codes: &[u32]) -> Result<Values> {
        if u32::try_from(codes.len()).is_err() {
            return Err(EncodingError::invalid("more than 2^32 codes to gather at once"));
        }
        let mut order: Vec<u64> =
            codes.iter().zip(0u32..).map(|(&code, at)| u64::from(code) << 32 | u64::from(at)).collect();
        if !codes.is_sorted() {
            order.sort_unstable();
        }
        let blocks = order.chunk_by(|&a, &b| block_of(a) == block_of(b));
        let _ahead = self.prefetch(blocks.filter_map(|wanted| wanted.first().map(|&first| block_of(first))));
        if let Some(&code) = codes.first() {
            // A width that the data does not bear out must not size an allocation.
            self.get(code, &mut Vec::new())?;
        }
        let mut out = Out::new(self.physical, codes.len())?;
        let mut scratch = Scratch::default();
        for wanted in order.chunk_by(|&a, &b| block_of(a) == block_of(b)) {
            let Some(&first) = wanted.first() else { continue };
            match &*self.block(block_of(first))? {
                Block::Front(block) if wanted.len() >= DENSE => {
                    block.decode(self.context()?, &mut scratch)?;
                    if self.is_text() {
                        scratch.check_utf8()?;
                    }
                    for same in wanted.chunk_by(|&a, &b| a >> 32 == b >> 32) {
                        let key = scratch.key(rank_of(same[0]) % BLOCK).unwrap_or(&[]);
                        self.check_width(key)?;
                        out.put(same, key)?;
                    }
                }
                Block::Front(block) => self.gather_front(block, wanted, &mut out)?,
                Block::Integers(block) => {
                    let mut values = [0; BUCKET];
                    for bucket in wanted.chunk_by(|&a, &b| rank_of(a) / BUCKET == rank_of(b) / BUCKET) {
                        block.bucket(rank_of(bucket[0]) % BLOCK / BUCKET, &mut values)?;
                        for &one in bucket {
                            out.put_number(one, values[rank_of(one) % BUCKET]);
                        }
                    }
                }
            }
        }
        Ok(out.finish())
    }

    fn gather_front(&self, block: &FrontBlock, wanted: &[u64], out: &mut Out) -> Result<()> {
        let context = self.context()?;
        let mut key = Vec::new();
        for same in wanted.chunk_by(|&a, &b| a >> 32 == b >> 32) {
            block.get(context, rank_of(same[0]) % BLOCK, &mut key)?;
            self.check_width(&key)?;
            if self.is_text() && std::str::from_utf8(&key).is_err() {
                return Err(not_utf8());
            }
            out.put(same, &key)?;
        }
        Ok(())
    }
}

/// Entries of the order are codes above positions.
fn rank_of(entry: u64) -> usize {
    low_half(entry >> 32) as usize
}

fn block_of(entry: u64) -> usize {
    rank_of(entry) / BLOCK
}

fn byte_len(len: usize, width: usize) -> Result<usize> {
    len.checked_mul(width)
        .filter(|&size| isize::try_from(size).is_ok())
        .ok_or_else(|| EncodingError::invalid(format!("{len} values of {width} bytes are more than memory holds")))
}

/// Values put in any order.
enum Out {
    Views { views: Vec<u128>, heap: Heap },
    Fixed { physical: Physical, width: usize, numbers: Option<Numbers>, bytes: MutableBuffer },
}

impl Out {
    fn new(physical: Physical, len: usize) -> Result<Self> {
        let Some(width) = keys::key_width(physical) else {
            return Ok(Self::Views { views: vec![0; len], heap: Heap::default() });
        };
        let size = byte_len(len, width)?;
        let bytes = MutableBuffer::from_len_zeroed(size);
        Ok(Self::Fixed { physical, width, numbers: Numbers::of(physical), bytes })
    }

    /// Puts the value of `key`, which has the type's width, wherever `entries` want it.
    fn put(&mut self, entries: &[u64], key: &[u8]) -> Result<()> {
        match self {
            Self::Views { views, heap } => {
                let view = heap.view(key)?;
                for &entry in entries {
                    views[low_half(entry) as usize] = view;
                }
            }
            Self::Fixed { physical, width, bytes, .. } => {
                for &entry in entries {
                    let at = low_half(entry) as usize * *width;
                    let slot = bytes.get_mut(at..at + *width).ok_or_else(|| corrupt("a value has no place"))?;
                    slot.copy_from_slice(key);
                    keys::decode_in_place(*physical, slot);
                }
            }
        }
        Ok(())
    }

    fn put_number(&mut self, entry: u64, number: u64) {
        if let Self::Fixed { width, numbers: Some(numbers), bytes, .. } = self {
            let at = low_half(entry) as usize * *width;
            numbers.write(&[number], &mut bytes[at..at + *width]);
        }
    }

    fn finish(self) -> Values {
        match self {
            Self::Views { views, heap } => heap.finish(views),
            Self::Fixed { bytes, .. } => Values::Fixed(bytes.into()),
        }
    }
}

/// Copies table entries; says whether all codes were in range.
fn take<const WIDTH: usize>(table: &[u8], codes: &[u32], out: &mut [u8]) -> bool {
    let table = table.as_chunks::<WIDTH>().0;
    let mut found = true;
    for (slot, &code) in out.as_chunks_mut::<WIDTH>().0.iter_mut().zip(codes) {
        match table.get(code as usize) {
            Some(value) => *slot = *value,
            None => found = false,
        }
    }
    found
}

fn take_wide(table: &[u8], width: usize, codes: &[u32], out: &mut [u8]) -> bool {
    let mut found = true;
    for (slot, &code) in out.chunks_exact_mut(width).zip(codes) {
        match table.chunks_exact(width).nth(code as usize) {
            Some(value) => slot.copy_from_slice(value),
            None => found = false,
        }
    }
    found
}

/// Copies the `long` bytes of long values into one new buffer (more if they are many).
fn copy_long(mut views: Vec<u128>, buffers: &[Buffer], long: usize) -> Result<Values> {
    let mut heap = Heap::with_capacity(long);
    for batch in views.chunks_mut(AHEAD) {
        // The misses of a batch overlap when its values are touched before any is copied.
        let mut touched = 0u8;
        for &view in batch.iter().filter(|&&view| length(view) > INLINE) {
            touched ^= long_bytes(view, buffers).and_then(|bytes| bytes.first().copied()).unwrap_or(0);
        }
        black_box(touched);
        for view in batch.iter_mut().filter(|view| length(**view) > INLINE) {
            *view = heap.long_view(long_bytes(*view, buffers).ok_or_else(|| corrupt("a view points nowhere"))?)?;
        }
    }
    Ok(heap.finish(views))
}
