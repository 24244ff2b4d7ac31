//! A block of a dictionary in memory.

use crate::dictionary::integers::IntBlock;
use crate::dictionary::search::FrontBlock;

/// A block in memory.
#[derive(Debug)]
pub(super) enum Block {
    Front(FrontBlock),
    Integers(IntBlock),
}

impl Block {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Front(block) => block.memory(),
            Self::Integers(block) => block.memory(),
        }
    }
}
