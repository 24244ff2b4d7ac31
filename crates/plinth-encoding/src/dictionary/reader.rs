//! Asking a dictionary: from values to codes and back.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use arrow_buffer::{Buffer, MutableBuffer};
use plinth_io::{MemoryBudget, Prefetch, Reclaim};

use crate::column::Values;
use crate::dictionary::block::Block;
use crate::dictionary::cache::Cache;
use crate::dictionary::decoded::{Decoded, Heap};
use crate::dictionary::index::{Form, Index};
use crate::dictionary::integers::IntBlock;
use crate::dictionary::keys::{self, Numbers};
use crate::dictionary::pieces::Context;
use crate::dictionary::scratch::Scratch;
use crate::dictionary::wire::{corrupt, low_half};
use crate::dictionary::{BLOCK, BUCKET, BlockSource, Found};
use crate::error::{EncodingError, Result};
use crate::expr::Scalar;
use crate::physical::Physical;

/// A sorted dictionary whose blocks are fetched when first needed, and then kept. Threads share it.
pub struct Dictionary {
    pub(super) physical: Physical,
    pub(super) index: Index,
    source: Box<dyn BlockSource>,
    pub(super) cache: Cache,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary")
            .field("physical", &self.physical)
            .field("len", &self.len())
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

impl Dictionary {
    /// A dictionary of values of type `physical` from its index and a source of its blocks. Reads no block.
    ///
    /// # Errors
    /// If the index is damaged or of another type.
    pub fn open(physical: Physical, index: &[u8], source: Box<dyn BlockSource>) -> Result<Self> {
        let index = Index::read(physical, index)?;
        let cache = Cache::new(index.blocks);
        Ok(Self { physical, index, source, cache })
    }

    /// The type of the values.
    pub fn physical(&self) -> Physical {
        self.physical
    }

    /// Number of values; codes are below it.
    pub fn len(&self) -> usize {
        self.index.len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.index.len == 0
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.index.blocks
    }

    /// The code of the value with this key.
    ///
    /// # Errors
    /// If the block that would hold it cannot be had or is damaged.
    pub fn find(&self, key: &[u8]) -> Result<Option<u32>> {
        let found = self.locate(key)?;
        Ok(found.exact.then(|| code(found.rank)))
    }

    /// The codes of those of these keys that values have, in the order of the keys. Fastest where they ascend: each block is
    /// then looked up once.
    ///
    /// # Errors
    /// As [`Dictionary::find`].
    pub fn find_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<u32>> {
        let mut codes = Vec::new();
        if self.is_empty() {
            return Ok(codes);
        }
        let keys: Vec<K> = keys.into_iter().collect();
        let _ahead = self.prefetch(keys.iter().map(|key| self.index.block_of(key.as_ref())));
        let mut last: Option<(usize, Arc<Block>)> = None;
        for key in &keys {
            let key = key.as_ref();
            let i = self.index.block_of(key);
            let block = match last.take() {
                Some((at, block)) if at == i => block,
                _ => self.block(i)?,
            };
            let found = self.locate_in(&block, key)?;
            codes.extend(found.exact.then(|| code(i * BLOCK + found.rank)));
            last = Some((i, block));
        }
        Ok(codes)
    }

    /// How many values have a key less than `key`: the code of the first that is not less, if there is one.
    ///
    /// # Errors
    /// As [`Dictionary::find`].
    pub fn lower_bound(&self, key: &[u8]) -> Result<u32> {
        Ok(code(self.locate(key)?.rank))
    }

    /// How many values have a key not greater than `key`: the code of the first that is greater, if there is one.
    ///
    /// # Errors
    /// As [`Dictionary::find`].
    pub fn upper_bound(&self, key: &[u8]) -> Result<u32> {
        let found = self.locate(key)?;
        Ok(code(found.rank + usize::from(found.exact)))
    }

    /// The codes of the values whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Dictionary::find`]; at most two blocks are needed.
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range<u32>> {
        let start = self.lower_bound(prefix)?;
        // The smallest string above all that begin with the prefix: its last byte that can grow, grown.
        let kept = prefix.iter().rposition(|&byte| byte != 0xff);
        let end = match kept {
            Some(last) => {
                let mut above = prefix[..=last].to_vec();
                above[last] += 1;
                self.lower_bound(&above)?
            }
            None => code(self.len()),
        };
        Ok(start..end.max(start))
    }

    /// Replaces what `out` holds by the key of one value.
    ///
    /// # Errors
    /// If there is no such code, or its block cannot be had or is damaged.
    pub fn get(&self, code: u32, out: &mut Vec<u8>) -> Result<()> {
        let rank = code as usize;
        if rank >= self.len() {
            return Err(self.no_such(code));
        }
        out.clear();
        let at = rank % BLOCK;
        match &*self.block(rank / BLOCK)? {
            Block::Integers(block) => {
                let mut values = [0; BUCKET];
                block.bucket(at / BUCKET, &mut values)?;
                if let Some(numbers) = Numbers::of(self.physical) {
                    numbers.push_key(values[at % BUCKET], out);
                }
            }
            Block::Front(block) => {
                block.get(self.context()?, at, out)?;
                self.check_width(out)?;
            }
        }
        Ok(())
    }

    /// The smallest value. `None` if the dictionary is empty, or the value is a 32-byte integer beyond [`Scalar::Int`].
    ///
    /// # Errors
    /// As [`Dictionary::get`].
    pub fn min(&self) -> Result<Option<Scalar>> {
        self.scalar(if self.is_empty() { None } else { Some(0) })
    }

    /// The largest value. `None` as for [`Dictionary::min`].
    ///
    /// # Errors
    /// As [`Dictionary::get`].
    pub fn max(&self) -> Result<Option<Scalar>> {
        self.scalar(self.len().checked_sub(1).map(code))
    }

    fn scalar(&self, code: Option<u32>) -> Result<Option<Scalar>> {
        let Some(code) = code else { return Ok(None) };
        let mut key = Vec::new();
        self.get(code, &mut key)?;
        if self.is_text() && std::str::from_utf8(&key).is_err() {
            return Err(super::decoded::not_utf8());
        }
        Ok(keys::to_scalar(self.physical, &key))
    }

    /// All values in the order of their codes. They are decoded when first asked for, block by block, and kept if there is
    /// room ([`Dictionary::within`]).
    ///
    /// # Errors
    /// If a block cannot be had or any part of the dictionary is damaged, out of order or, for text, not UTF-8.
    pub fn values(&self) -> Result<Arc<Decoded>> {
        match self.values_within()? {
            Some(decoded) => Ok(decoded),
            None => Ok(Arc::new(self.decode_all()?)),
        }
    }

    /// As [`Dictionary::values`], but `None` if there is no room to keep them: [`Dictionary::block_values`] gives them one
    /// block after the other, [`Dictionary::gather`] just those that are needed.
    ///
    /// # Errors
    /// As [`Dictionary::values`].
    pub fn values_within(&self) -> Result<Option<Arc<Decoded>>> {
        if let Some(decoded) = self.cache.decoded() {
            return Ok(Some(decoded));
        }
        let _alone = self.cache.alone();
        if let Some(decoded) = self.cache.decoded() {
            return Ok(Some(decoded));
        }
        // Before they are decoded, and then corrected: the index may say anything.
        let Ok(held) = self.cache.reserve_decoded(self.decoded_memory()) else { return Ok(None) };
        let mut decoded = self.decode_all()?;
        let Ok(()) = decoded.hold(held) else { return Ok(None) };
        let decoded = Arc::new(decoded);
        self.cache.keep_decoded(&decoded);
        Ok(Some(decoded))
    }

    /// What [`Decoded::memory`] will be at most, give or take what buffers have to spare.
    fn decoded_memory(&self) -> usize {
        match &self.index.form {
            Form::Integers(numbers) => self.len().saturating_mul(numbers.width()),
            Form::Front { total, .. } if keys::key_width(self.physical).is_some() => *total,
            Form::Front { total, .. } => self.len().saturating_mul(size_of::<u128>()).saturating_add(*total),
        }
    }

    fn decode_all(&self) -> Result<Decoded> {
        let len = self.len();
        let _ahead = self.prefetch(0..self.blocks());
        let (values, heap) = match &self.index.form {
            Form::Integers(numbers) => (Values::Fixed(self.decode_integers(*numbers)?), 0),
            Form::Front { total, .. } => {
                let (mut views, mut heap, mut fixed) = (Vec::new(), Heap::default(), MutableBuffer::new(0));
                let is_bytes = matches!(self.physical, Physical::Bytes { .. });
                self.decode_front(*total, |scratch| {
                    if is_bytes {
                        scratch.push_views(&mut views, &mut heap)
                    } else {
                        self.push_fixed(scratch, &mut fixed)
                    }
                })?;
                let bytes = heap.bytes;
                (if is_bytes { heap.finish(views) } else { Values::Fixed(fixed.into()) }, bytes)
            }
        };
        Ok(Decoded::new(values, len, heap))
    }

    fn decode_integers(&self, numbers: Numbers) -> Result<Buffer> {
        let (mut block_values, mut out) = (Vec::new(), MutableBuffer::new(0));
        let mut last = None;
        for i in 0..self.index.blocks {
            let block = self.block_once(i)?;
            let Block::Integers(block) = &*block else { continue };
            block_values.clear();
            block.decode(&mut block_values)?;
            if block_values.first().copied() <= last {
                return Err(corrupt("the blocks are not in order"));
            }
            last = block_values.last().copied();
            let start = out.len();
            out.resize(start + block_values.len() * numbers.width(), 0);
            numbers.write(&block_values, &mut out[start..]);
        }
        Ok(out.into())
    }

    fn decode_front(&self, total: usize, mut push: impl FnMut(&Scratch) -> Result<()>) -> Result<()> {
        let context = self.context()?;
        let (mut scratch, mut last, mut left) = (Scratch::default(), Vec::new(), total);
        for i in 0..self.index.blocks {
            let block = self.block_once(i)?;
            let Block::Front(block) = &*block else { continue };
            left =
                left.checked_sub(block.decoded()).ok_or_else(|| corrupt("the blocks hold more than the index says"))?;
            block.decode(context, &mut scratch)?;
            if i > 0 && scratch.key(0) <= Some(&last) {
                return Err(corrupt("the blocks are not in order"));
            }
            last.clear();
            last.extend_from_slice(scratch.key(block.len() - 1).unwrap_or(&[]));
            if self.is_text() {
                scratch.check_utf8()?;
            }
            push(&scratch)?;
        }
        if left == 0 { Ok(()) } else { Err(corrupt("the blocks hold less than the index says")) }
    }

    /// Appends the values of keys that must all have the type's width.
    fn push_fixed(&self, scratch: &Scratch, out: &mut MutableBuffer) -> Result<()> {
        for key in scratch.keys() {
            self.check_width(key)?;
        }
        let start = out.len();
        out.extend_from_slice(scratch.bytes());
        if let Some(width) = keys::key_width(self.physical).filter(|&width| width > 0) {
            out[start..].chunks_exact_mut(width).for_each(|key| keys::decode_in_place(self.physical, key));
        }
        Ok(())
    }

    /// Bytes held now: the index, the blocks that were kept and, once asked for, all values decoded.
    pub fn memory(&self) -> usize {
        self.index.memory() + self.cache.memory()
    }

    pub(super) fn is_text(&self) -> bool {
        self.physical == Physical::Bytes { utf8: true }
    }

    /// What front-coded blocks share.
    pub(super) fn context(&self) -> Result<&Context> {
        match &self.index.form {
            Form::Front { context, .. } => Ok(context),
            Form::Integers(_) => Err(corrupt("integers have no keys")),
        }
    }

    /// Block `i`, which must be one, fetched if it is not here yet.
    pub(super) fn block(&self, i: usize) -> Result<Arc<Block>> {
        if let Some(block) = self.cache.block(i) {
            return Ok(block);
        }
        let block = Arc::new(self.fetch(i)?);
        // Another thread may have been faster; its block is as good.
        self.cache.keep_block(i, &block);
        Ok(block)
    }

    /// As [`Dictionary::block`], of a block whose values will be kept decoded if at all.
    fn block_once(&self, i: usize) -> Result<Arc<Block>> {
        self.cache.block(i).map_or_else(|| self.fetch(i).map(Arc::new), Ok)
    }

    /// Begins to bring those of some blocks that are not here yet.
    pub(super) fn prefetch(&self, blocks: impl Iterator<Item = usize>) -> Prefetch {
        self.source.prefetch(&mut blocks.filter(|&block| self.cache.block(block).is_none()))
    }

    fn fetch(&self, i: usize) -> Result<Block> {
        if i >= self.index.blocks {
            return Err(EncodingError::invalid(format!("dictionary block {i} is none")));
        }
        let bytes = self.source.block(i)?;
        let len = self.index.block_len(i);
        let separator = self.index.separator(i);
        let block = match &self.index.form {
            Form::Integers(numbers) => {
                let block = IntBlock::open(bytes, len, numbers.largest())?;
                if separator.is_some_and(|first| block.first() != numbers.of_key(first)) {
                    return Err(corrupt("a block does not begin where the index says"));
                }
                Block::Integers(block)
            }
            Form::Front { context, .. } => {
                let block = context.open(&bytes, len)?;
                let mut first = Vec::new();
                block.get(context, 0, &mut first)?;
                if separator.is_some_and(|separator| !first.starts_with(separator)) {
                    return Err(corrupt("a block does not begin where the index says"));
                }
                Block::Front(block)
            }
        };
        Ok(block)
    }

    /// Where a key of any length is among all keys, or would be.
    fn locate(&self, key: &[u8]) -> Result<Found> {
        if self.is_empty() {
            return Ok(Found { rank: 0, exact: false });
        }
        let i = self.index.block_of(key);
        let found = self.locate_in(&*self.block(i)?, key)?;
        Ok(Found { rank: i * BLOCK + found.rank, exact: found.exact })
    }

    fn locate_in(&self, block: &Block, key: &[u8]) -> Result<Found> {
        match block {
            Block::Front(block) => block.locate(self.context()?, key),
            Block::Integers(block) => {
                let numbers = Numbers::of(self.physical).ok_or_else(|| corrupt("the type has no numbers"))?;
                self.locate_number(block, numbers, key)
            }
        }
    }

    /// Keys of another length than the type's lie between keys: a shorter one just below those it is a prefix of, a
    /// longer one just above its own prefix.
    fn locate_number(&self, block: &IntBlock, numbers: Numbers, key: &[u8]) -> Result<Found> {
        let width = numbers.width();
        let mut padded = [0; 8];
        let held = key.len().min(width);
        padded[..held].copy_from_slice(&key[..held]);
        let found = block.locate(numbers.of_key(&padded))?;
        Ok(match key.len().cmp(&width) {
            std::cmp::Ordering::Equal => found,
            std::cmp::Ordering::Less => Found { rank: found.rank, exact: false },
            std::cmp::Ordering::Greater => Found { rank: found.rank + usize::from(found.exact), exact: false },
        })
    }

    pub(super) fn check_width(&self, key: &[u8]) -> Result<()> {
        match keys::key_width(self.physical) {
            Some(width) if width != key.len() => Err(corrupt("a value has not the width of its type")),
            _ => Ok(()),
        }
    }

    #[cold]
    pub(super) fn no_such(&self, code: u32) -> EncodingError {
        EncodingError::corrupt(format!("code {code} in a dictionary of {} values", self.len()))
    }
}

impl Dictionary {
    /// Counts what is cached against a budget: what it refuses is read and decoded again when it is needed, and what is cached
    /// is given back when others need it.
    #[must_use]
    pub fn within(mut self, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        self.cache.set_budget(budget);
        let dictionary = Arc::new(self);
        let weak: Weak<Self> = Arc::downgrade(&dictionary);
        budget.register(weak);
        dictionary
    }
}

impl Reclaim for Dictionary {
    fn reclaim(&self, bytes: u64) -> u64 {
        self.cache.reclaim(bytes)
    }
}

/// A rank as a code; an index never counts more than codes reach.
pub(super) fn code(rank: usize) -> u32 {
    low_half(rank as u64)
}
