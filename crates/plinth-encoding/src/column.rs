//! The values of one block in memory: a physical type, a buffer, and which of them are null.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

/// How a leaf's values are laid out and ordered, whatever they mean to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Physical {
    /// One bit a value; `false < true`.
    Bool,
    /// Integers of `width` 1, 2, 4 or 8 bytes.
    Int {
        /// Bytes a value.
        width: u8,
        /// Whether the top bit is a sign.
        signed: bool,
    },
    /// Two's complement integers of `width` 16 or 32 bytes (decimals).
    Wide {
        /// Bytes a value.
        width: u8,
    },
    /// IEEE 754 numbers of `width` 2, 4 or 8 bytes, in their total order (`-NaN < -inf < -0 < 0 < inf < NaN`).
    Float {
        /// Bytes a value.
        width: u8,
    },
    /// `width` bytes a value, ordered as bytes (fixed-size binaries; intervals, whose order nobody asks for).
    Fixed {
        /// Bytes a value; may be zero.
        width: u32,
    },
    /// Any number of bytes a value, ordered as bytes.
    Bytes {
        /// Whether every value must be UTF-8.
        utf8: bool,
    },
}

impl Physical {
    /// Dictionary codes: ranks in a sorted dictionary.
    pub const CODES: Self = Self::Int { width: 4, signed: false };

    /// Bytes a value in [`Values::Fixed`], where the type has a fixed width.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            Self::Int { width, .. } | Self::Wide { width } | Self::Float { width } => Some(usize::from(width)),
            Self::Fixed { width } => usize::try_from(width).ok(),
            Self::Bool | Self::Bytes { .. } => None,
        }
    }
}

/// The values of a block. Slots of null rows hold anything.
#[derive(Clone, Debug)]
pub enum Values {
    /// For [`Physical::Bool`].
    Bool(BooleanBuffer),
    /// For `Int`, `Wide`, `Float` and `Fixed`: `len * width` little-endian bytes, aligned as Arrow wants the type.
    Fixed(Buffer),
    /// For `Bytes`: Arrow's view layout (16 bytes a value; values of at most 12 bytes are inline).
    Views {
        /// One view a value.
        views: ScalarBuffer<u128>,
        /// What the views of longer values point into.
        buffers: Vec<Buffer>,
    },
}

/// The values of one block and which of them are null.
#[derive(Clone, Debug)]
pub struct Column {
    /// Number of rows.
    pub len: usize,
    /// One slot a row.
    pub values: Values,
    /// Absent when no row is null.
    pub nulls: Option<NullBuffer>,
}

/// The answer of a predicate for each row of a block, in SQL's three values.
#[derive(Clone, Debug)]
pub struct Mask {
    /// Set where the predicate is true. Never set where it is unknown.
    pub is_true: BooleanBuffer,
    /// Set where the predicate is unknown (NULL); absent when it nowhere is.
    pub is_null: Option<BooleanBuffer>,
}
