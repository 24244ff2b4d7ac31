//! The symbol table of FSST (Boncz, Neumann, Leis, VLDB 2020): codes of one byte for up to 255 strings of one to eight
//! bytes, code 255 before a byte that stands for itself. Training and compression come from the `fsst-rs` crate;
//! decompression is ours, because it reads bytes from outside.

use fsst::{Compressor, Symbol};

use crate::dictionary::wire::low_byte;
use plinth_core::wire::Reader;

/// The code before a byte that stands for itself.
const ESCAPE: u8 = 255;

/// A symbol table to decompress with.
#[derive(Debug)]
pub(super) struct Symbols {
    symbols: [[u8; 8]; 256],
    /// Zero for codes that have no symbol.
    lengths: [u8; 256],
}

impl Symbols {
    /// Reads what [`write_symbols`] wrote.
    pub(super) fn read(cursor: &mut Reader<'_>) -> Option<Self> {
        let mut table = Self { symbols: [[0; 8]; 256], lengths: [0; 256] };
        let lengths = usize::from(cursor.u8().ok()?);
        let lengths = cursor.take(lengths).ok()?;
        for (code, &length) in lengths.iter().enumerate() {
            let bytes = cursor.take(usize::from(length)).ok()?;
            if bytes.is_empty() {
                return None;
            }
            table.symbols[code].get_mut(..bytes.len())?.copy_from_slice(bytes);
            table.lengths[code] = length;
        }
        Some(table)
    }

    /// Bytes that [`Symbols::decode`] needs from `at` on for `compressed` codes.
    #[inline]
    pub(super) fn room(compressed: usize) -> usize {
        8 * compressed + 8
    }

    /// Writes the plain bytes of `codes` from `out[at]` on and gives where they end; bytes after the end are
    /// overwritten too. `None` if a code has no symbol or `out` lacks the [room](Self::room).
    #[inline]
    pub(super) fn decode(&self, codes: &[u8], out: &mut [u8], mut at: usize) -> Option<usize> {
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            if code == ESCAPE {
                *out.get_mut(at)? = *codes.next()?;
                at += 1;
            } else {
                let length = self.lengths[usize::from(code)];
                if length == 0 {
                    return None;
                }
                *out.get_mut(at..)?.first_chunk_mut::<8>()? = self.symbols[usize::from(code)];
                at += usize::from(length);
            }
        }
        Some(at)
    }

    /// Feeds the plain bytes of `codes` to `visit`, up to eight at a time, until it says stop. `None` if a code has no
    /// symbol.
    #[inline]
    pub(super) fn visit(&self, codes: &[u8], mut visit: impl FnMut(&[u8]) -> bool) -> Option<()> {
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            let go_on = if code == ESCAPE {
                visit(&[*codes.next()?])
            } else {
                let length = usize::from(self.lengths[usize::from(code)]);
                visit(self.symbols[usize::from(code)].get(..length).filter(|bytes| !bytes.is_empty())?)
            };
            if !go_on {
                break;
            }
        }
        Some(())
    }
}

/// Appends the number of symbols, their lengths, and their bytes end to end.
pub(super) fn write_symbols(compressor: &Compressor, out: &mut Vec<u8>) {
    let (symbols, lengths) = (compressor.symbol_table(), compressor.symbol_lengths());
    out.push(low_byte(symbols.len().min(lengths.len())));
    out.extend_from_slice(lengths);
    for (symbol, &length) in symbols.iter().zip(lengths) {
        out.extend_from_slice(&bytes_of(symbol)[..usize::from(length)]);
    }
}

fn bytes_of(symbol: &Symbol) -> [u8; 8] {
    symbol.to_u64().to_le_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
