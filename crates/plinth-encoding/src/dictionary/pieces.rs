//! The pieces of front-coded blocks: how their bytes are to be read, which all blocks of a dictionary share.

use crate::dictionary::alphabet::Alphabet;
use crate::dictionary::prefix::CodeTable;
use crate::dictionary::symbols::Symbols;
use crate::dictionary::tokens::Tokens;

/// How pieces of keys are read.
#[derive(Debug)]
pub(super) enum Pieces {
    Plain,
    Packed(Box<Alphabet>),
    Compressed(Table),
}

/// Pieces as the codes of strings that occur often.
#[derive(Debug)]
pub(super) enum Table {
    Symbols(Box<Symbols>),
    Tokens(Tokens),
}

impl Table {
    /// Bits a code.
    #[inline]
    pub(super) fn bits(&self) -> usize {
        match self {
            Self::Symbols(_) => 8,
            Self::Tokens(tokens) => tokens.bits(),
        }
    }

    /// Bytes that [`Table::decode`] needs from `at` on for so many codes.
    #[inline]
    pub(super) fn room(&self, codes: usize) -> usize {
        match self {
            Self::Symbols(_) => Symbols::room(codes),
            Self::Tokens(_) => Tokens::room(codes),
        }
    }

    /// Writes the plain bytes of the `len` codes that begin at bit `bit` from `out[at]` on and gives where they end; bytes
    /// after the end are overwritten too. `None` if a code stands for nothing, or there are fewer, or `out` lacks the
    /// [room](Self::room).
    #[inline]
    pub(super) fn decode(&self, data: &[u8], bit: usize, len: usize, out: &mut [u8], at: usize) -> Option<usize> {
        match self {
            Self::Symbols(symbols) => symbols.decode(bytes(data, bit, len)?, out, at),
            Self::Tokens(tokens) => tokens.decode(data, bit, len, out, at),
        }
    }

    /// Feeds the plain bytes of the `len` codes that begin at bit `bit` to `visit`, some at a time, until it says stop.
    /// `None` as for [`Table::decode`].
    #[inline]
    pub(super) fn visit(&self, data: &[u8], bit: usize, len: usize, visit: impl FnMut(&[u8]) -> bool) -> Option<()> {
        match self {
            Self::Symbols(symbols) => symbols.visit(bytes(data, bit, len)?, visit),
            Self::Tokens(tokens) => tokens.visit(data, bit, len, visit),
        }
    }

    /// Bytes held.
    fn memory(&self) -> usize {
        match self {
            Self::Symbols(_) => size_of::<Symbols>(),
            Self::Tokens(tokens) => tokens.memory(),
        }
    }
}

/// `len` bytes from bit `bit` on, which is a byte's first.
#[inline]
pub(super) fn bytes(data: &[u8], bit: usize, len: usize) -> Option<&[u8]> {
    data.get(bit / 8..)?.get(..len)
}

impl Pieces {
    /// Bits a symbol of a piece.
    #[inline]
    pub(super) fn bits(&self) -> usize {
        match self {
            Self::Packed(alphabet) => alphabet.bits() as usize,
            Self::Compressed(table) => table.bits(),
            Self::Plain => 8,
        }
    }

    /// Symbols of a bucket's first key that the search array holds; bytes of what they stand for if they are compressed.
    pub(super) fn word_len(&self) -> usize {
        match self {
            Self::Packed(alphabet) => alphabet.word_len(),
            Self::Plain | Self::Compressed(_) => 8,
        }
    }
}

/// What the front-coded blocks of one dictionary share.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) pieces: Pieces,
    pub(super) code: CodeTable,
    /// No key is longer.
    pub(super) longest: usize,
}

impl Context {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.code.memory()
            + match &self.pieces {
                Pieces::Plain => 0,
                Pieces::Packed(_) => size_of::<Alphabet>(),
                Pieces::Compressed(table) => table.memory(),
            }
    }
}
