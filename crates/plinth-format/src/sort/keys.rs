//! Sort keys as bytes whose order is the rows' order.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, Schema, SortOptions};
use plinth_core::key::{HEAD, head};
use rayon::prelude::*;

use super::{SortKey, fail};
use crate::error::{FormatError, Result};
use crate::shred::normalise;

/// Which columns rank rows, and how.
pub(crate) struct Ranking {
    columns: Vec<usize>,
    types: Vec<DataType>,
    converter: RowConverter,
}

/// The keys of a batch's rows.
pub(crate) struct Keys(Rows);

/// Where a gathered row is: its batch and its place there.
pub(crate) type Place = (usize, usize);

impl Ranking {
    pub(super) fn new(schema: &Schema, by: &[SortKey]) -> Result<Self> {
        let mut columns = Vec::with_capacity(by.len());
        let mut fields = Vec::with_capacity(by.len());
        for key in by {
            let unknown = |_| {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).take(20).collect();
                FormatError::InvalidArgument(format!(
                    "no column {:?} to sort by; there are {}",
                    key.column,
                    names.join(", ")
                ))
            };
            let at = schema.index_of(&key.column).map_err(unknown)?;
            let order = SortOptions { descending: key.descending, nulls_first: key.descending };
            let field = SortField::new_with_options(schema.field(at).data_type().clone(), order);
            if !RowConverter::supports_fields(std::slice::from_ref(&field)) {
                let what = format!("the type {} has no order", schema.field(at).data_type());
                return Err(FormatError::Unsupported { column: key.column.clone(), what });
            }
            columns.push(at);
            fields.push(field);
        }
        if columns.is_empty() {
            return Err(FormatError::InvalidArgument("no column to sort by".to_owned()));
        }
        let types = columns.iter().map(|&at| schema.field(at).data_type().clone()).collect();
        Ok(Self { columns, types, converter: RowConverter::new(fields).map_err(fail)? })
    }

    /// The keys of a batch, whose text may be views or not.
    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<Keys> {
        let columns = self.columns.iter().zip(&self.types).map(|(&at, of)| match batch.column(at) {
            column if column.data_type() == of => Ok(Arc::clone(column)),
            column => normalise(column, of),
        });
        let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>().map_err(fail)?;
        Ok(Keys(self.converter.convert_columns(&columns).map_err(fail)?))
    }
}

impl Keys {
    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.0.size() as u64
    }

    /// A row's key.
    pub(super) fn key(&self, row: usize) -> &[u8] {
        self.0.row(row).data()
    }

    /// Whether all keys have the same length, and one that heads cover from a place on: then heads say everything.
    pub(super) fn covered(&self, from: usize) -> bool {
        let first = self.0.lengths().next().unwrap_or(0);
        first <= from + HEAD && self.0.lengths().all(|len| len == first)
    }

    pub(super) fn len(&self) -> usize {
        self.0.num_rows()
    }
}

#[derive(Clone, Copy)]
struct Item {
    head: u64,
    batch: u32,
    row: u32,
}

/// The gathered rows in order; rows with equal keys in the order they came.
pub(super) fn order(gathered: &[(RecordBatch, Keys)]) -> Vec<Place> {
    // A column without nulls starts every key with the same byte: the head is worth more past it.
    let shared = shared_prefix(gathered);
    let covered = gathered.iter().all(|(_, keys)| keys.covered(shared));
    let mut items: Vec<Item> = Vec::with_capacity(gathered.iter().map(|(_, keys)| keys.len()).sum());
    for (batch, (_, keys)) in (0..).zip(gathered) {
        items.extend((0..).zip(keys.0.iter()).map(|(row, key)| Item { head: head(key.data(), shared), batch, row }));
    }
    let key = |item: &Item| gathered.get(item.batch as usize).map_or(&[][..], |(_, keys)| keys.key(item.row as usize));
    if covered {
        items.par_sort_unstable_by_key(|item| (item.head, item.batch, item.row));
    } else {
        items.par_sort_unstable_by(|a, b| {
            a.head
                .cmp(&b.head)
                .then_with(|| rest(key(a), key(b), shared + HEAD))
                .then_with(|| (a.batch, a.row).cmp(&(b.batch, b.row)))
        });
    }
    items.into_iter().map(|item| (item.batch as usize, item.row as usize)).collect()
}

/// Compares what heads do not cover. Keys end where they differ from every longer one, so a head that was padded never
/// ties with one that was not unless the keys are equal.
pub(super) fn rest(a: &[u8], b: &[u8], from: usize) -> Ordering {
    a.get(from..).unwrap_or_default().cmp(b.get(from..).unwrap_or_default()).then_with(|| a.len().cmp(&b.len()))
}

/// How many first bytes all keys have in common, up to a few.
fn shared_prefix(gathered: &[(RecordBatch, Keys)]) -> usize {
    const MOST: usize = 16;
    let mut keys = gathered.iter().flat_map(|(_, keys)| keys.0.iter());
    let Some(first) = keys.next() else { return 0 };
    let first = first.data();
    let mut shared = first.len().min(MOST);
    for key in keys {
        let key = key.data();
        while shared > 0 && key.get(..shared) != first.get(..shared) {
            shared -= 1;
        }
        if shared == 0 {
            break;
        }
    }
    shared
}
