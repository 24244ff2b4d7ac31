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

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};

use crate::error::{Result, TableError};

/// The hash of a key's bytes, in memory and in filters on disk.
pub(crate) fn hash(key: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(key)
}

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

/// The keys of some rows, as bytes, end to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    len: usize,
    /// The length of each, as long as it is the same of all.
    width: usize,
    /// Else where each ends.
    ends: Vec<usize>,
}

impl Keys {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let range = if self.ends.is_empty() {
            row * self.width..(row + 1) * self.width
        } else {
            let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
            start..self.ends.get(row).copied().unwrap_or(start)
        };
        self.bytes.get(range).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.end(start);
    }

    /// The key that began at an offset is complete.
    fn end(&mut self, start: usize) {
        let width = self.bytes.len() - start;
        if self.len == 0 {
            self.width = width;
        } else if self.ends.is_empty() && width != self.width {
            self.ends = (1..=self.len).map(|row| row * self.width).collect();
        }
        if !self.ends.is_empty() {
            self.ends.push(self.bytes.len());
        }
        self.len += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Their places in the order of the keys; of equal ones the first comes first. For few keys, which are looked for at once:
    /// without the threads that [`Keys::in_order`] may use.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<(u64, usize)> = (0..self.len).map(|row| (head(self.get(row)), row)).collect();
        if self.ends.is_empty() && self.width <= size_of::<u64>() {
            order.sort_unstable();
        } else {
            order.sort_unstable_by(|a, b| (a.0, self.get(a.1), a.1).cmp(&(b.0, self.get(b.1), b.1)));
        }
        order.into_iter().map(|(_, row)| row).collect()
    }

    /// Rows in the order of their keys.
    pub(crate) fn in_order(&self, rows: Vec<u32>) -> Vec<u32> {
        let key = |at: u32| rows.get(at as usize).map_or(&[][..], |&row| self.get(row as usize));
        let len = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let order = plinth_core::sort::order_bytes(len, key);
        order.into_iter().filter_map(|at| rows.get(at as usize).copied()).collect()
    }

    /// Among sorted keys, those of a range: the first that is not less than `key`. It is looked for from `guess` on, in steps
    /// that double, so that a good guess looks at few keys.
    pub(crate) fn seek(&self, within: Range<usize>, guess: usize, key: &[u8]) -> usize {
        if within.is_empty() {
            return within.start;
        }
        let wanted = head(key);
        let less = |row: usize| {
            let known = self.get(row);
            head(known).cmp(&wanted).then_with(|| known.cmp(key)).is_lt()
        };
        let (mut low, mut high) = (within.start, within.end);
        let (guess, mut step) = (guess.clamp(low, high - 1), 1);
        if less(guess) {
            low = guess + 1;
            while low + step <= high {
                let next = low + step - 1;
                if !less(next) {
                    high = next;
                    break;
                }
                (low, step) = (next + 1, step * 2);
            }
        } else {
            high = guess;
            while let Some(next) = high.checked_sub(step).filter(|&next| next >= low) {
                if less(next) {
                    low = next + 1;
                    break;
                }
                (high, step) = (next, step * 2);
            }
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            if less(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Bytes it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// The first eight bytes of a key as a number, with zeros behind its end: where these differ, keys compare as they do.
pub(crate) fn head(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(head)
}

/// Where a key would be among `rows` sorted ones that begin with `first` and end with `last`, if they lay evenly.
pub(crate) fn guess(first: u64, last: u64, wanted: u64, rows: usize) -> usize {
    let (span, offset) = (last.saturating_sub(first), wanted.saturating_sub(first));
    // In 64 bits: 32 of the keys' difference are enough.
    let shift = (u64::BITS - span.leading_zeros()).saturating_sub(32);
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let share = (offset.min(span) >> shift) * u64::from(rows) / (span >> shift).max(1);
    usize::try_from(share).unwrap_or(usize::MAX)
}

/// How a key column's values become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int { width: usize, signed: bool },
    Fixed { width: usize },
    Bytes,
}

impl Kind {
    /// Bytes of each value, if all have as many.
    fn width(self) -> Option<usize> {
        match self {
            Self::Int { width, .. } | Self::Fixed { width } => Some(width),
            Self::Bytes => None,
        }
    }
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
        let mut keys = Keys { bytes: Vec::with_capacity(rows * 8), ..Keys::default() };
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

/// The bytes of a key's first column, as they are in it, and those of all others.
fn split(kind: Kind, last: bool, key: &[u8]) -> (&[u8], &[u8]) {
    match kind {
        Kind::Int { width, .. } | Kind::Fixed { width } => key.split_at_checked(width).unwrap_or((key, &[])),
        Kind::Bytes if last => (key, &[]),
        Kind::Bytes => {
            let mut at = 0;
            // A zero of the value has another byte than zero behind it.
            while key.get(at).is_some_and(|&byte| byte != 0) || key.get(at + 1) == Some(&0xff) {
                at += if key.get(at) == Some(&0) { 2 } else { 1 };
            }
            let (head, rest) = key.split_at_checked(at).unwrap_or((key, &[]));
            (head, rest.get(2..).unwrap_or_default())
        }
    }
}

/// A key column's values.
enum Part<'a> {
    Int { bytes: Vec<u8>, width: usize },
    Fixed(&'a arrow_array::FixedSizeBinaryArray),
    Text(&'a arrow_array::StringViewArray),
    Binary(&'a arrow_array::BinaryViewArray),
}

impl<'a> Part<'a> {
    fn of(kind: Kind, array: &'a ArrayRef) -> Result<Self> {
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

    fn put(&self, row: usize, last: bool, out: &mut Vec<u8>) {
        match self {
            Self::Int { bytes, width } => out.extend_from_slice(bytes.get(row * width..).map_or(&[], |b| &b[..*width])),
            Self::Fixed(array) => out.extend_from_slice(array.value(row)),
            Self::Text(array) => put_bytes(array.value(row).as_bytes(), last, out),
            Self::Binary(array) => put_bytes(array.value(row), last, out),
        }
    }
}

fn put_bytes(bytes: &[u8], last: bool, out: &mut Vec<u8>) {
    if last {
        out.extend_from_slice(bytes);
        return;
    }
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{FixedSizeBinaryArray, Int32Array, StringViewArray, UInt64Array};
    use arrow_schema::Field;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_found_in_their_order_wherever_one_begins_to_look(
            mut rows in prop::collection::vec(prop::collection::vec(0_u8..3, 0..11), 0..60),
            wanted in prop::collection::vec(0_u8..3, 0..11), from in 0_usize..60, guess in 0_usize..70,
        ) {
            let keys = |rows: &[Vec<u8>]| {
                let mut keys = Keys::default();
                rows.iter().for_each(|row| keys.push(row));
                keys
            };
            let order = keys(&rows).order();
            let mut expected: Vec<usize> = (0..rows.len()).collect();
            expected.sort_by(|&a, &b| rows[a].cmp(&rows[b]));
            prop_assert_eq!(&order, &expected);
            let some: Vec<u32> = (0..u32::try_from(rows.len()).unwrap()).step_by(2).collect();
            let in_order = keys(&rows).in_order(some);
            let expected: Vec<usize> = expected.into_iter().filter(|row| row % 2 == 0).collect();
            prop_assert!(in_order.iter().map(|&row| row as usize).eq(expected));
            rows.sort();
            let within = from.min(rows.len())..rows.len();
            let first = rows[within.clone()].partition_point(|row| row < &wanted) + within.start;
            prop_assert_eq!(keys(&rows).seek(within, guess, &wanted), first);
            if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
                prop_assert!(super::guess(head(first), head(last), head(&wanted), rows.len()) <= rows.len());
            }
        }
    }

    #[test]
    fn bytes_compare_as_keys_do_and_are_the_same_from_batches_and_from_values() {
        let schema = Schema::new(vec![
            Field::new("t", DataType::Utf8View, false),
            Field::new("i", DataType::Int32, false),
            Field::new("u", DataType::UInt64, false),
            Field::new("f", DataType::FixedSizeBinary(2), false),
        ]);
        let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0\0", "ab", "b"];
        let ints = [i32::MIN, -1, 0, 1, i32::MAX];
        let unsigned = [0, 1, u64::MAX];
        let mut all = Vec::new();
        for text in texts {
            for int in ints {
                for u in unsigned {
                    for f in [[0, 0], [0, 1], [255, 0]] {
                        all.push((text, int, u, f));
                    }
                }
            }
        }
        all.sort();
        let batch = RecordBatch::try_new(
            Arc::new(schema.clone()),
            vec![
                Arc::new(StringViewArray::from_iter_values(all.iter().map(|row| row.0))),
                Arc::new(Int32Array::from_iter_values(all.iter().map(|row| row.1))),
                Arc::new(UInt64Array::from_iter_values(all.iter().map(|row| row.2))),
                Arc::new(FixedSizeBinaryArray::try_from_iter(all.iter().map(|row| row.3)).unwrap()),
            ],
        )
        .unwrap();
        let columns = KeyColumns::new(&schema, &[0, 1, 2, 3]).unwrap();
        let keys = columns.of(&batch).unwrap();
        let mut last: Option<&[u8]> = None;
        for (row, &(text, int, u, f)) in all.iter().enumerate() {
            let key = keys.get(row);
            assert!(last < Some(key), "{row}");
            last = Some(key);
            let parts: Key = vec![text.into(), int.into(), u.into(), KeyPart::from(f)].into();
            assert_eq!(columns.encode(&parts).unwrap(), key);
        }
        assert_eq!(columns.show(keys.get(0)), "(\"\", -2147483648, 0, 0000)");
        let last = KeyColumns::new(&schema, &[1, 0]).unwrap();
        assert_eq!(last.show(&last.encode(&(-7, "x y").into()).unwrap()), "(-7, \"x y\")");
        assert!(last.encode(&(i64::MAX, "x").into()).is_err());
        assert!(last.encode(&("x", "x").into()).is_err());
        assert!(last.encode(&1.into()).is_err());
        assert!(KeyColumns::new(&Schema::new(vec![Field::new("f", DataType::Float64, false)]), &[0]).is_err());
    }
}
