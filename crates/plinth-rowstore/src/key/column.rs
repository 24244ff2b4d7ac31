//! The values of a key's column as bytes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use plinth_core::key::{put_terminated, split_terminated};

use crate::error::{Result, TableError};

/// How a key column's values become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int { width: usize, signed: bool },
    Fixed { width: usize },
    Bytes,
}

impl Kind {
    /// Bytes of each value, if all have as many.
    pub(super) fn width(self) -> Option<usize> {
        match self {
            Self::Int { width, .. } | Self::Fixed { width } => Some(width),
            Self::Bytes => None,
        }
    }
}

/// The bytes of a key's first column, as they are in it, and those of all others.
pub(super) fn split(kind: Kind, last: bool, key: &[u8]) -> (&[u8], &[u8]) {
    match kind {
        Kind::Int { width, .. } | Kind::Fixed { width } => key.split_at_checked(width).unwrap_or((key, &[])),
        Kind::Bytes if last => (key, &[]),
        Kind::Bytes => split_terminated(key),
    }
}

/// A key column's values.
pub(super) enum Part<'a> {
    Int { bytes: Vec<u8>, width: usize },
    Fixed(&'a arrow_array::FixedSizeBinaryArray),
    Text(&'a arrow_array::StringViewArray),
    Binary(&'a arrow_array::BinaryViewArray),
}

impl<'a> Part<'a> {
    pub(super) fn of(kind: Kind, array: &'a ArrayRef) -> Result<Self> {
        let wrong = || TableError::invalid(format!("a column of the key is of type {}", array.data_type()));
        Ok(match (kind, array.data_type()) {
            (Kind::Int { width, signed }, data_type) if data_type.primitive_width() == Some(width) => {
                let data = array.to_data();
                let range = data.offset() * width..(data.offset() + data.len()) * width;
                let values = data.buffers().first().and_then(|buffer| buffer.get(range)).ok_or_else(wrong)?;
                // Big-endian, the sign flipped, all at once.
                let mut bytes = values.to_vec();
                for value in bytes.chunks_exact_mut(width) {
                    value.reverse();
                    if let (Some(first), true) = (value.first_mut(), signed) {
                        *first ^= 0x80;
                    }
                }
                Self::Int { bytes, width }
            }
            (Kind::Fixed { width }, DataType::FixedSizeBinary(w)) if usize::try_from(*w) == Ok(width) => {
                Self::Fixed(array.as_fixed_size_binary())
            }
            (Kind::Bytes, DataType::Utf8View) => Self::Text(array.as_string_view()),
            (Kind::Bytes, DataType::BinaryView) => Self::Binary(array.as_binary_view()),
            _ => return Err(wrong()),
        })
    }

    pub(super) fn put(&self, row: usize, last: bool, out: &mut Vec<u8>) {
        match self {
            Self::Int { bytes, width } => out.extend_from_slice(bytes.get(row * width..).map_or(&[], |b| &b[..*width])),
            Self::Fixed(array) => out.extend_from_slice(array.value(row)),
            Self::Text(array) => put_bytes(array.value(row).as_bytes(), last, out),
            Self::Binary(array) => put_bytes(array.value(row), last, out),
        }
    }
}

/// Appends a value of text or a binary: the last column of a key needs no end.
pub(super) fn put_bytes(bytes: &[u8], last: bool, out: &mut Vec<u8>) {
    if last { out.extend_from_slice(bytes) } else { put_terminated(out, bytes) }
}
