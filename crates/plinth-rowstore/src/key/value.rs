//! Keys as callers give them.

/// One column's part of a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPart {
    /// For integers, dates, times and timestamps, in the column's own unit.
    Int(i128),
    /// For text, binaries and UUIDs.
    Bytes(Vec<u8>),
}

/// The key of a row: a part for each column of the table's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub Vec<KeyPart>);

macro_rules! from_ints {
    ($($int:ty),*) => {$(
        impl From<$int> for KeyPart {
            fn from(value: $int) -> Self {
                Self::Int(value.into())
            }
        }
    )*};
}

from_ints!(i8, i16, i32, i64, u8, u16, u32, u64);

impl From<&str> for KeyPart {
    fn from(value: &str) -> Self {
        Self::Bytes(value.as_bytes().to_vec())
    }
}

impl From<String> for KeyPart {
    fn from(value: String) -> Self {
        Self::Bytes(value.into_bytes())
    }
}

impl From<&[u8]> for KeyPart {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl<const N: usize> From<[u8; N]> for KeyPart {
    fn from(value: [u8; N]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl<P: Into<KeyPart>> From<P> for Key {
    fn from(part: P) -> Self {
        Self(vec![part.into()])
    }
}

impl<A: Into<KeyPart>, B: Into<KeyPart>> From<(A, B)> for Key {
    fn from((a, b): (A, B)) -> Self {
        Self(vec![a.into(), b.into()])
    }
}

impl From<Vec<KeyPart>> for Key {
    fn from(parts: Vec<KeyPart>) -> Self {
        Self(parts)
    }
}
