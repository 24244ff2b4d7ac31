//! The index of a dictionary: what is needed to know which block to read. The layout is in the
//! [parent module's documentation](super).

use crate::dictionary::alphabet::Alphabet;
use crate::dictionary::front::Coding;
use crate::dictionary::keys::{Numbers, key_width};
use crate::dictionary::pieces::{Context, Pieces, Table};
use crate::dictionary::prefix::{Code, CodeTable};
use crate::dictionary::symbols::{Symbols, write_symbols};
use crate::dictionary::tokens::Tokens;
use crate::dictionary::wire::{OrCorrupt, corrupt, prefix8};
use crate::dictionary::{BLOCK, FRONT, FRONT_FSST, FRONT_PACKED, FRONT_TOKENS, INTEGERS, Sorted};
use crate::error::Result;
use crate::physical::Physical;
use crate::wire::wide;
use plinth_core::key::common_prefix;
use plinth_core::wire::{Reader, put_varint};

/// Writes the index of `sorted`, front-coded in some way or, without, as integers.
pub(super) fn write(sorted: &Sorted, front: Option<(&Coding, &Code)>) -> Vec<u8> {
    let mut out = vec![match front {
        None => INTEGERS,
        Some((Coding::Plain, _)) => FRONT,
        Some((Coding::Compressed(_), _)) => FRONT_FSST,
        Some((Coding::Packed(_), _)) => FRONT_PACKED,
        Some((Coding::Tokens(_), _)) => FRONT_TOKENS,
    }];
    put_varint(&mut out, wide(sorted.len()));
    if let Some((coding, code)) = front {
        put_varint(&mut out, wide(sorted.key_bytes()));
        put_varint(&mut out, wide(sorted.keys().map(<[u8]>::len).max().unwrap_or(0)));
        match coding {
            Coding::Plain => {}
            Coding::Compressed(compressor) => write_symbols(compressor, &mut out),
            Coding::Packed(alphabet) => alphabet.write(&mut out),
            Coding::Tokens(tokenizer) => tokenizer.write(&mut out),
        }
        code.write(&mut out);
    }
    for rank in (0..sorted.len()).step_by(BLOCK).skip(1) {
        let key = sorted.key(rank);
        if front.is_none() {
            out.extend_from_slice(key);
        } else {
            let separator = &key[..=common_prefix(sorted.key(rank - 1), key)];
            put_varint(&mut out, wide(separator.len()));
            out.extend_from_slice(separator);
        }
    }
    out
}

/// How the blocks are encoded.
#[derive(Debug)]
pub(super) enum Form {
    Front { context: Context, total: usize },
    Integers(Numbers),
}

/// The index in memory.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) form: Form,
    pub(super) len: usize,
    pub(super) blocks: usize,
    /// What all separators share.
    common: Vec<u8>,
    /// The next eight bytes of each.
    prefixes: Vec<u64>,
    /// The separators end to end, and where each starts.
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Index {
    pub(super) fn read(physical: Physical, bytes: &[u8]) -> Result<Self> {
        const CUT: &str = "the index is cut short";
        let mut cursor = Reader::new(bytes);
        let form = cursor.u8().or_corrupt(CUT)?;
        let len = cursor.length().or_corrupt(CUT)?;
        if u32::try_from(len).is_err() {
            return Err(corrupt("the index counts more values than codes reach"));
        }
        let blocks = len.div_ceil(BLOCK);
        // Each block but the first has a separator of at least one byte.
        if blocks > cursor.left() + 1 {
            return Err(corrupt("the index counts more blocks than it has room for"));
        }
        let form = match (form, Numbers::of(physical)) {
            (INTEGERS, Some(numbers)) => {
                if u64::try_from(len.saturating_sub(1)).is_ok_and(|most| most > numbers.largest()) {
                    return Err(corrupt("the index counts more values than the type has"));
                }
                Form::Integers(numbers)
            }
            (FRONT | FRONT_FSST | FRONT_PACKED | FRONT_TOKENS, None) if physical != Physical::Bool => {
                let total = cursor.length().or_corrupt(CUT)?;
                let longest = cursor.length().or_corrupt(CUT)?;
                Self::check_sizes(physical, len, total, longest)?;
                let pieces = match form {
                    FRONT => Some(Pieces::Plain),
                    FRONT_FSST => Symbols::read(&mut cursor).map(Box::new).map(Table::Symbols).map(Pieces::Compressed),
                    FRONT_TOKENS => Tokens::read(&mut cursor).map(Table::Tokens).map(Pieces::Compressed),
                    _ => Alphabet::read(&mut cursor).map(Box::new).map(Pieces::Packed),
                };
                let pieces = pieces.or_corrupt("the symbol table is damaged")?;
                let (code, described) = CodeTable::read(cursor.rest()).or_corrupt("the code of lengths is damaged")?;
                cursor.skip(described).or_corrupt(CUT)?;
                Form::Front { context: Context { pieces, code, longest }, total }
            }
            _ => return Err(corrupt("the index is of a form this type does not have")),
        };
        let mut index =
            Self { form, len, blocks, common: Vec::new(), prefixes: Vec::new(), bytes: Vec::new(), starts: vec![0] };
        for _ in 1..blocks {
            let length = match &index.form {
                Form::Integers(numbers) => numbers.width(),
                Form::Front { .. } => cursor.length().or_corrupt(CUT)?,
            };
            let separator = cursor.take(length).or_corrupt(CUT)?;
            let before = index.separator(index.starts.len() - 1);
            if separator.is_empty() || before.is_some_and(|before| before >= separator) {
                return Err(corrupt("the blocks are not in order"));
            }
            index.bytes.extend_from_slice(separator);
            index.starts.push(index.bytes.len());
        }
        if cursor.left() != 0 {
            return Err(corrupt("the index has bytes to spare"));
        }
        index.find_prefixes();
        Ok(index)
    }

    fn check_sizes(physical: Physical, len: usize, total: usize, longest: usize) -> Result<()> {
        let fits = match key_width(physical) {
            Some(width) => {
                Some(total) == len.checked_mul(width)
                    && longest == if len > 0 { width } else { 0 }
                    && (width > 0 || len <= 1)
            }
            None => {
                longest <= total
                    && u32::try_from(longest).is_ok()
                    && len.checked_mul(longest).is_none_or(|most| total <= most)
            }
        };
        if fits { Ok(()) } else { Err(corrupt("the sizes in the index contradict each other")) }
    }

    fn find_prefixes(&mut self) {
        let last = self.starts.len().checked_sub(2);
        if let (Some(first), Some(last)) = (self.separator(1), last.and_then(|_| self.separator(self.starts.len() - 1)))
        {
            self.common = first[..common_prefix(first, last)].to_vec();
        }
        self.prefixes = (1..self.blocks)
            .filter_map(|block| self.separator(block))
            .map(|separator| prefix8(separator.get(self.common.len()..).unwrap_or(&[])))
            .collect();
    }

    /// A string above all keys of the block before and not above any of this one; none for the first block.
    pub(super) fn separator(&self, block: usize) -> Option<&[u8]> {
        let start = *self.starts.get(block.checked_sub(1)?)?;
        self.bytes.get(start..*self.starts.get(block)?)
    }

    /// The only block that can hold `key`.
    pub(super) fn block_of(&self, key: &[u8]) -> usize {
        let shared = common_prefix(&self.common, key);
        if shared < self.common.len() {
            let before = key.get(shared).is_none_or(|byte| *byte < self.common[shared]);
            return if before { 0 } else { self.blocks.saturating_sub(1) };
        }
        let prefix = prefix8(&key[shared..]);
        let mut low = self.prefixes.partition_point(|&at| at < prefix);
        let mut high = match self.prefixes.get(low) {
            Some(&at) if at == prefix => low + self.prefixes[low..].partition_point(|&at| at == prefix),
            _ => low,
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if self.separator(middle + 1).is_some_and(|separator| separator <= key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// How many values a block has.
    pub(super) fn block_len(&self, block: usize) -> usize {
        BLOCK.min(self.len.saturating_sub(block * BLOCK))
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let context = match &self.form {
            Form::Front { context, .. } => context.memory(),
            Form::Integers(_) => 0,
        };
        context
            + self.common.capacity()
            + self.bytes.capacity()
            + 8 * (self.prefixes.capacity() + self.starts.capacity())
    }
}
