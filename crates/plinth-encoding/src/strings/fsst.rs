//! Text compressed with FSST (Boncz, Neumann, Leis, "FSST: Fast Random Access String Compression", VLDB 2020): up to 255
//! symbols of 1 to 8 bytes, one table a block.
//!
//! A section is `symbols` (`u8`, at most 255); a length (`u8`, 1 to 8) for each; the symbols' bytes, end to end; `total`
//! (varint), the bytes it decompresses to; `size` (varint), the bytes of codes; a node of `ceil(len / 1024)` unsigned
//! integers of 4 bytes ([`crate::ints`], depth 2), where the codes of each vector of values end; the codes. Code `c < symbols`
//! stands for symbol `c`, 255 for the byte that follows it; others do not occur. Symbols may reach over the boundary between
//! two values, not over that between two vectors.

mod automaton;

use arrow_buffer::Buffer;
use fsst::Compressor;

use automaton::Automaton;

use crate::bitpack::VECTOR;
use crate::encoding::Effort;
use crate::error::{EncodingError, Result};
use crate::ints::{Ints, Wanted, encode_nested, is_wanted, vectors};
use crate::physical::IntKind;
use crate::scratch::Scratch;
use crate::wire::{Reader, narrow, put_varint, wide};

const ESCAPE: u8 = 255;
/// Codes that are expanded in one go.
const STEP: usize = 8;
/// Bytes of values that a symbol table is trained on.
const TRAINING: usize = 32 << 10;

/// A parsed section.
#[derive(Clone, Debug)]
pub(crate) struct Fsst {
    lengths: Buffer,
    symbols: Buffer,
    pub(crate) total: usize,
    ends: Ints,
    codes: Buffer,
}

/// A compressor for these values, trained on a fixed sample of them.
pub(crate) fn train(values: &[&[u8]]) -> Compressor {
    // The trainer draws 16 KiB of its own from what it gets, by a fixed seed; more than twice that is only looked through.
    let total: usize = values.iter().map(|value| value.len()).sum();
    let step = (total / TRAINING).max(1);
    let sample: Vec<&[u8]> = values.iter().step_by(step).copied().filter(|value| !value.is_empty()).collect();
    Compressor::train(&sample)
}

/// The bytes that a sample of values compresses to.
pub(crate) fn compressed_len(compressor: &Compressor, bytes: &[u8]) -> usize {
    compressor.compress(bytes).len()
}

/// Writes a section. `heap` is the values end to end.
pub(crate) fn encode(compressor: &Compressor, values: &[&[u8]], heap: &[u8], effort: Effort, out: &mut Vec<u8>) {
    let (symbols, lengths) = (compressor.symbol_table(), compressor.symbol_lengths());
    let count = symbols.len().min(lengths.len()).min(usize::from(ESCAPE));
    out.push(u8::try_from(count).unwrap_or(ESCAPE));
    out.extend_from_slice(&lengths[..count]);
    for (symbol, &len) in symbols.iter().zip(lengths).take(count) {
        out.extend(symbol.to_u64().to_le_bytes().iter().take(usize::from(len)));
    }
    let (mut codes, mut ends, mut from) = (vec![], vec![], 0);
    for vector in values.chunks(VECTOR) {
        let to = from + vector.iter().map(|value| value.len()).sum::<usize>();
        codes.extend_from_slice(&compressor.compress(heap.get(from..to).unwrap_or_default()));
        ends.push(wide(codes.len()));
        from = to;
    }
    put_varint(out, wide(heap.len()));
    put_varint(out, wide(codes.len()));
    encode_nested(&ends, IntKind::U32, 2, effort, out);
    out.extend_from_slice(&codes);
}

impl Fsst {
    pub(crate) fn parse(len: usize, reader: &mut Reader<'_>) -> Result<Self> {
        let count = usize::from(reader.u8()?);
        let lengths = reader.take(count)?;
        if lengths.iter().any(|len| !(1..=8).contains(len)) {
            return Err(EncodingError::corrupt("an FSST symbol is not of 1 to 8 bytes"));
        }
        let symbols = reader.take(lengths.iter().map(|&len| usize::from(len)).sum())?;
        let total = narrow(reader.varint()?)?;
        let size = narrow(reader.varint()?)?;
        let ends = Ints::parse(IntKind::U32, vectors(len), 2, reader)?;
        let codes = reader.take(size)?;
        if total > size.saturating_mul(8) {
            return Err(EncodingError::corrupt(format!("{size} FSST codes cannot be {total} bytes")));
        }
        Ok(Self { lengths, symbols, total, ends, codes })
    }

    /// The symbols, by their codes.
    fn symbols(&self) -> Vec<&[u8]> {
        let mut rest = self.symbols.as_slice();
        let symbol = |len: &u8| {
            let (symbol, tail) = rest.split_at_checked(usize::from(*len)).unwrap_or_default();
            rest = tail;
            symbol
        };
        self.lengths.iter().map(symbol).collect()
    }

    /// The codes of each vector.
    fn vectors(&self) -> Result<Vec<&[u8]>> {
        let ends: Scratch<u32> = self.ends.decode_scratch(None)?;
        let mut from = 0;
        let vector = |end: u32| {
            let codes = self.codes.as_slice().get(from..end as usize);
            from = end as usize;
            codes.ok_or_else(|| EncodingError::corrupt("the codes of a vector are out of order"))
        };
        ends.iter().copied().map(vector).collect()
    }

    /// Of the wanted vectors those that may hold a needle of at least one byte, told by their codes; others do not.
    pub(crate) fn vectors_with(&self, needle: &[u8], wanted: Wanted<'_>) -> Result<Vec<bool>> {
        let vectors = self.vectors()?;
        let places: Vec<usize> = (0..vectors.len()).filter(|&at| is_wanted(wanted, at)).collect();
        let read: Vec<&[u8]> = places.iter().filter_map(|&at| vectors.get(at).copied()).collect();
        let found = Automaton::new(needle, &self.symbols()).read(&read);
        let mut with = vec![false; vectors.len()];
        for (at, found) in places.into_iter().zip(found) {
            with[at] = found;
        }
        Ok(with)
    }

    /// Decompresses the vectors whose length is given, one after the other; `sizes` are in decompressed bytes.
    pub(crate) fn decompress(&self, sizes: &[Option<usize>]) -> Result<Vec<u8>> {
        let mut table = [0_u64; 256];
        let mut lengths = [0_u8; 256];
        for ((symbol, &len), (slot, length)) in
            self.symbols().iter().zip(self.lengths.iter()).zip(table.iter_mut().zip(&mut lengths))
        {
            *slot = symbol.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            *length = len;
        }
        let total = sizes.iter().flatten().sum::<usize>();
        if total > self.total {
            return Err(EncodingError::corrupt(format!("{total} bytes of text in {} of FSST", self.total)));
        }
        // Symbols are written eight bytes at a time, so up to seven bytes past the last one.
        let mut out = vec![0; total + 8];
        let mut written = 0;
        for (codes, size) in self.vectors()?.into_iter().zip(sizes) {
            if let &Some(size) = size {
                let target = out.get_mut(written..written + size + 8).unwrap_or_default();
                if expand(codes, &table, &lengths, target) != Some(size) {
                    return Err(EncodingError::corrupt(format!("FSST codes are not {size} bytes of text")));
                }
                written += size;
            }
        }
        out.truncate(total);
        Ok(out)
    }
}

/// Whether one of eight codes is the escape.
fn has_escape(codes: u64) -> bool {
    const LOW: u64 = 0x0101_0101_0101_0101;
    // A byte of ones is a zero of the complement, which a subtraction borrows through.
    (!codes).wrapping_sub(LOW) & codes & (LOW << 7) != 0
}

/// Decompresses `codes` into `out`, of which the last eight bytes are room to spare; the bytes it made, or nothing if the
/// codes are wrong or make more than fits.
fn expand(codes: &[u8], table: &[u64; 256], lengths: &[u8; 256], out: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    let mut rest = codes;
    loop {
        // Eight codes while there is room for as many of the longest symbols: a store and an addition each.
        while let Some((eight, tail)) = rest.split_first_chunk::<STEP>()
            && !has_escape(u64::from_le_bytes(*eight))
            && let Some(room) = out.get_mut(at..).and_then(|room| room.first_chunk_mut::<{ 8 * STEP }>())
        {
            let (mut used, mut unknown) = (0, false);
            for &code in eight {
                *room.get_mut(used..)?.first_chunk_mut::<8>()? = table[usize::from(code)].to_le_bytes();
                let len = lengths[usize::from(code)];
                unknown |= len == 0;
                used += usize::from(len);
            }
            if unknown {
                return None;
            }
            at += used;
            rest = tail;
        }
        let Some((&code, tail)) = rest.split_first() else { break };
        rest = tail;
        if code != ESCAPE {
            let slot = out.get_mut(at..)?.first_chunk_mut::<8>()?;
            *slot = table[usize::from(code)].to_le_bytes();
            let len = usize::from(lengths[usize::from(code)]);
            if len == 0 {
                return None;
            }
            at += len;
        } else {
            let (&byte, tail) = rest.split_first()?;
            rest = tail;
            *out.get_mut(at)? = byte;
            at += 1;
        }
    }
    Some(at)
}
