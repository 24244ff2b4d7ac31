//! How a block came to be stored, for those of its column that follow it.
//!
//! To weigh every encoding for each of many blocks that are alike costs more than all else that becomes of them. So a block is
//! weighed now and then, and those that follow are written as it was, unless that turns out worse than it was there.

use crate::encoding::Encoding;

/// How a block is stored: see [`crate::Block::recipe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    pub(crate) choice: Choice,
    /// Bytes of the values, and how many those are.
    pub(crate) bytes: usize,
    pub(crate) values: usize,
}

/// An encoding, and those of the nodes within it that hold most of what it holds, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) encoding: Encoding,
    pub(crate) inner: Vec<Choice>,
}

/// A block may take an eighth more than the one it follows, and so many bytes.
const SLACK: usize = 64;

impl Recipe {
    /// Whether so many values in so many bytes are packed about as well.
    pub(crate) fn holds(&self, bytes: usize, values: usize) -> bool {
        let (here, there) = (bytes as u128 * self.values as u128, self.bytes as u128 * values as u128);
        here <= there + there / 8 + (SLACK * self.values) as u128
    }

    /// Whether another block has the same encodings within each other.
    pub fn is_stored_as(&self, other: &Self) -> bool {
        self.choice == other.choice
    }

    /// Whether another block may have been stored as this one is: its outermost encoding is the same, and packs its values as well.
    pub fn is_followed_by(&self, other: &Self) -> bool {
        other.choice.encoding == self.choice.encoding && self.holds(other.bytes, other.values)
    }

    /// Whether all values are the same: then there was nothing to choose.
    pub fn is_constant(&self) -> bool {
        self.choice.is_constant()
    }
}

impl Choice {
    pub(crate) fn of(encoding: Encoding) -> Self {
        Self { encoding, inner: Vec::new() }
    }

    fn is_constant(&self) -> bool {
        match self.encoding {
            Encoding::Constant => true,
            // What is left of wide numbers that are narrow.
            Encoding::Narrowed => matches!(self.inner.as_slice(), [only] if only.is_constant()),
            _ => false,
        }
    }
}
