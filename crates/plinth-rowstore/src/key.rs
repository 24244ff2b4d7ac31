//! Primary keys as bytes that compare as the keys do.
//!
//! | column | bytes |
//! |---|---|
//! | integers, dates, times, timestamps | big-endian, the sign bit flipped if there is a sign |
//! | fixed binaries (UUIDs) | the bytes |
//! | text and binaries, last in the key | the bytes |
//! | text and binaries before others | the bytes, each 00 as 00 ff; then 00 00 |
//!
//! In the keys of an index a column behind the first may be null. Where it may, one byte stands before the column's: 00, or 01 for
//! a null, which is so behind all values; zeros follow it for a column of a fixed width, nothing for one of text or binaries.

mod column;
mod keys;
mod value;

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use plinth_core::wire::checksum;

use crate::error::{Result, TableError};
use column::{Kind, Part, put_bytes, split};
pub(crate) use keys::{Keys, guess};
pub use value::{Key, KeyPart};

/// The hash of a key's bytes, in memory and in filters on disk.
pub(crate) fn hash(key: &[u8]) -> u64 {
    checksum(key)
}

/// Before a column that may be null: whether it is.
const VALUE: u8 = 0;
const NULL: u8 = 1;

/// A column of a key.
#[derive(Clone, Copy, Debug)]
struct KeyColumn {
    position: usize,
    kind: Kind,
    /// Whether it may be null.
    optional: bool,
}

/// The columns of a table's key or of an index, in order.
#[derive(Clone, Debug)]
pub(crate) struct KeyColumns {
    columns: Vec<KeyColumn>,
}

impl KeyColumns {
    /// The columns of an index: those behind the first may be null where the schema says so.
    pub(crate) fn of_index(schema: &Schema, columns: &[usize]) -> Result<Self> {
        let mut keys = Self::new(schema, columns)?;
        for column in keys.columns.iter_mut().skip(1) {
            column.optional = schema.fields().get(column.position).is_some_and(|field| field.is_nullable());
        }
        Ok(keys)
    }

    /// The columns at these positions of a schema, none of which may be null.
    pub(crate) fn new(schema: &Schema, columns: &[usize]) -> Result<Self> {
        let kind = |&position: &usize| {
            let field = schema.fields().get(position).ok_or_else(|| TableError::invalid("a key column is missing"))?;
            let int = |width, signed| Kind::Int { width, signed };
            let kind = match field.data_type() {
                DataType::Int8 => int(1, true),
                DataType::Int16 => int(2, true),
                DataType::Int32 | DataType::Date32 | DataType::Time32(_) => int(4, true),
                DataType::Int64 | DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..) => int(8, true),
                DataType::UInt8 => int(1, false),
                DataType::UInt16 => int(2, false),
                DataType::UInt32 => int(4, false),
                DataType::UInt64 => int(8, false),
                DataType::FixedSizeBinary(width) if *width > 0 => {
                    Kind::Fixed { width: usize::try_from(*width).unwrap_or(0) }
                }
                DataType::Utf8View | DataType::BinaryView => Kind::Bytes,
                other => {
                    let name = field.name();
                    return Err(TableError::invalid(format!(
                        "column {name:?}: a key can't be of type {other}; integers, dates, timestamps, text, binaries and UUIDs can"
                    )));
                }
            };
            Ok(KeyColumn { position, kind, optional: false })
        };
        let columns = columns.iter().map(kind).collect::<Result<Vec<_>>>()?;
        if columns.is_empty() {
            return Err(TableError::invalid("a key has at least one column"));
        }
        Ok(Self { columns })
    }

    /// The positions of the columns.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|column| column.position)
    }

    /// Whether each of the columns may be null.
    pub(crate) fn optional(&self) -> impl Iterator<Item = bool> {
        self.columns.iter().map(|column| column.optional)
    }

    /// The keys of a batch of the table's columns.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<Keys> {
        let arrays = self.positions().map(|position| {
            let array = batch.columns().get(position);
            array.ok_or_else(|| TableError::invalid(format!("a batch has no column {position}")))
        });
        self.of_arrays(&arrays.collect::<Result<Vec<_>>>()?)
    }

    /// The keys whose parts are the rows of some arrays.
    pub(crate) fn of_arrays(&self, arrays: &[&ArrayRef]) -> Result<Keys> {
        let rows = arrays.first().map_or(0, |array| array.len());
        let mut values = Vec::with_capacity(self.columns.len());
        for (&KeyColumn { kind, optional, .. }, &array) in self.columns.iter().zip(arrays) {
            let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
            if array.len() != rows || (nulls.is_some() && !optional) {
                return Err(TableError::invalid("a column of the key holds nulls"));
            }
            values.push((Part::of(kind, array)?, optional, nulls, kind.width().unwrap_or(0)));
        }
        if values.len() != self.columns.len() || arrays.len() != values.len() {
            return Err(TableError::invalid("other columns than those of the key"));
        }
        let mut keys = Keys::with_capacity(rows * 8);
        for row in 0..rows {
            let start = keys.bytes.len();
            for (i, (part, optional, nulls, width)) in values.iter().enumerate() {
                let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                if *optional {
                    keys.bytes.push(if null { NULL } else { VALUE });
                }
                if null {
                    keys.bytes.resize(keys.bytes.len() + width, 0);
                } else {
                    part.put(row, i + 1 == values.len(), &mut keys.bytes);
                }
            }
            keys.end(start);
        }
        Ok(keys)
    }

    /// Bytes of each key, if all have as many.
    pub(crate) fn width(&self) -> Option<usize> {
        self.columns.iter().map(|column| Some(column.kind.width()? + usize::from(column.optional))).sum()
    }

    /// Whether a column of a key is null.
    pub(crate) fn has_null(&self, mut key: &[u8]) -> bool {
        if !self.optional().any(|optional| optional) {
            return false;
        }
        for (i, column) in self.columns.iter().enumerate() {
            if column.optional {
                let Some((&marker, rest)) = key.split_first() else { return false };
                if marker == NULL {
                    return true;
                }
                key = rest;
            }
            key = split(column.kind, i + 1 == self.columns.len(), key).1;
        }
        false
    }

    /// The bytes of one key.
    pub(crate) fn encode(&self, key: &Key) -> Result<Vec<u8>> {
        if key.0.len() != self.columns.len() {
            let what = format!("a key of {} parts for one of {} columns", key.0.len(), self.columns.len());
            return Err(TableError::invalid(what));
        }
        self.encode_first(key)
    }

    /// The bytes that all keys begin with whose first parts are these.
    pub(crate) fn encode_first(&self, key: &Key) -> Result<Vec<u8>> {
        if key.0.len() > self.columns.len() {
            let what = format!("a key of {} parts for one of {} columns", key.0.len(), self.columns.len());
            return Err(TableError::invalid(what));
        }
        let mut out = Vec::with_capacity(16);
        for (i, part) in key.0.iter().enumerate() {
            match self.put_part(i, part, &mut out) {
                Ok(()) => {}
                Err(None) => return Err(TableError::invalid("a part of the key is not of its column's kind")),
                Err(Some(_)) => return Err(TableError::invalid(format!("{part:?} is no value of the key's column"))),
            }
        }
        Ok(out)
    }

    /// What all keys begin with that begin with `prefix`, the columns before one, and have a value in that.
    pub(crate) fn values_behind(&self, i: usize, prefix: &[u8]) -> Vec<u8> {
        let marker = self.columns.get(i).filter(|column| column.optional).map(|_| VALUE);
        prefix.iter().copied().chain(marker).collect()
    }

    /// Appends the bytes of a part. `Err(None)` if it is of another kind than its column, else how it compares with all values
    /// that the column can have.
    pub(crate) fn put_part(&self, i: usize, part: &KeyPart, out: &mut Vec<u8>) -> Result<(), Option<Ordering>> {
        let &KeyColumn { kind, optional, .. } = self.columns.get(i).ok_or(None)?;
        if optional {
            out.push(VALUE);
        }
        match (part, kind) {
            (KeyPart::Int(value), Kind::Int { width, signed }) => {
                let bits = u32::try_from(width * 8).unwrap_or(64);
                let least = if signed { -(1_i128 << (bits - 1)) } else { 0 };
                let shifted = value
                    .checked_sub(least)
                    .filter(|shifted| *shifted >= 0)
                    .ok_or(Some(if *value < least { Ordering::Less } else { Ordering::Greater }))?;
                if shifted >> bits != 0 {
                    return Err(Some(Ordering::Greater));
                }
                let bytes = shifted.to_be_bytes();
                out.extend_from_slice(bytes.get(16 - width..).unwrap_or_default());
            }
            (KeyPart::Bytes(bytes), Kind::Fixed { width }) if bytes.len() == width => out.extend_from_slice(bytes),
            (KeyPart::Bytes(bytes), Kind::Bytes) => put_bytes(bytes, i + 1 == self.columns.len(), out),
            _ => return Err(None),
        }
        Ok(())
    }

    /// A key for people.
    pub(crate) fn show(&self, mut key: &[u8]) -> String {
        let mut parts = Vec::new();
        for (i, &KeyColumn { kind, optional, .. }) in self.columns.iter().enumerate() {
            let null = optional && key.first() == Some(&NULL);
            key = key.get(usize::from(optional)..).unwrap_or_default();
            if null {
                key = key.get(kind.width().unwrap_or(0)..).unwrap_or_default();
                parts.push("NULL".to_owned());
                continue;
            }
            let (head, rest) = split(kind, i + 1 == self.columns.len(), key);
            key = rest;
            let text = match kind {
                Kind::Int { width, signed } => {
                    let value = head.iter().fold(0_i128, |value, &byte| value << 8 | i128::from(byte));
                    let least = if signed { 1_i128 << (width * 8 - 1) } else { 0 };
                    (value - least).to_string()
                }
                Kind::Fixed { .. } => head.iter().map(|byte| format!("{byte:02x}")).collect(),
                Kind::Bytes => format!("{:?}", String::from_utf8_lossy(head)),
            };
            parts.push(text);
        }
        if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests;
