//! The pieces of front-coded blocks: how their bytes are to be read, which all blocks of a dictionary share.

use crate::dictionary::alphabet::Alphabet;
use crate::dictionary::prefix::CodeTable;
use crate::dictionary::symbols::Symbols;

/// How pieces of keys are read.
#[derive(Debug)]
pub(super) enum Pieces {
    Plain,
    Packed(Box<Alphabet>),
    Compressed(Box<Symbols>),
}

impl Pieces {
    /// Bits a symbol of a piece.
    #[inline]
    pub(super) fn bits(&self) -> usize {
        match self {
            Self::Packed(alphabet) => alphabet.bits() as usize,
            Self::Plain | Self::Compressed(_) => 8,
        }
    }

    /// Symbols of a bucket's first key that the search array holds.
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
                Pieces::Compressed(_) => size_of::<Symbols>(),
            }
    }
}
