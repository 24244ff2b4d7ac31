//! The first rows of an order: keys that compare as the order has them, and the places of their rows.
//!
//! A [`Ranking`] makes keys of a thread's chunks; [`First`] keeps the best of all threads, with the places where the rows' other columns are to be
//! found. Codes of sorted dictionaries are compared as they are: only those of rows that may be among the first become values.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SortOptions};
use arrow_select::take::take;
use plinth_io::{MemoryBudget, Reservation};

use crate::error::Result;
use crate::vector::Vector;

/// A row's values in the columns of an order, as bytes: of two rows the one with the lesser bytes comes first.
pub type Key = Box<[u8]>;

/// A column of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderColumn {
    /// The type of its values.
    pub data_type: DataType,
    /// Which of them come first.
    pub options: SortOptions,
}

impl OrderColumn {
    /// Whether values of a type can be put in order here, and come back as they were.
    pub fn is_known(data_type: &DataType) -> bool {
        data_type.is_numeric()
            || matches!(
                data_type,
                DataType::Boolean
                    | DataType::Date32
                    | DataType::Date64
                    | DataType::Time32(_)
                    | DataType::Time64(_)
                    | DataType::Timestamp(..)
                    | DataType::Duration(_)
                    | DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
            )
    }
}

/// Makes keys of rows.
#[derive(Debug)]
pub struct Ranking {
    order: Vec<OrderColumn>,
    values: RowConverter,
    /// The same for rows of which some columns are codes, and which these are.
    codes: Option<(Vec<bool>, RowConverter)>,
}

impl Ranking {
    /// An order by some columns.
    ///
    /// # Errors
    /// If values of a type have no order.
    pub fn new(order: Vec<OrderColumn>) -> Result<Self> {
        let values = converter(&order, |_| false)?;
        Ok(Self { order, values, codes: None })
    }

    /// Those of a chunk's rows that can be among the first `count` of all, if the keys of these are below `bound`: their numbers and keys.
    ///
    /// # Errors
    /// If codes have no values, or a column is of another type.
    pub fn best(&mut self, columns: &[Vector], count: usize, bound: Option<&[u8]>) -> Result<Vec<(u32, Key)>> {
        let below = |key: &[u8]| bound.is_none_or(|bound| key < bound);
        if !columns.iter().any(is_ranked) {
            let arrays = columns.iter().map(Vector::array).collect::<Result<Vec<_>>>()?;
            let rows = self.values.convert_columns(&arrays)?;
            let best = least(&rows, count, below);
            return Ok(best.into_iter().map(|row| (row, rows.row(row as usize).data().into())).collect());
        }
        let first = least(&self.by_codes(columns)?, count, |_| true);
        let chosen = UInt32Array::from(first);
        let arrays = columns.iter().map(|column| values_of(column, &chosen)).collect::<Result<Vec<_>>>()?;
        let rows = self.values.convert_columns(&arrays)?;
        let best = chosen.values().iter().zip(&rows).filter(|(_, key)| below(key.data()));
        Ok(best.map(|(&row, key)| (row, key.data().into())).collect())
    }

    /// The keys of rows whose codes stand for their values: these compare as the values do, in this chunk alone.
    fn by_codes(&mut self, columns: &[Vector]) -> Result<Rows> {
        let coded: Vec<bool> = columns.iter().map(is_ranked).collect();
        let converter = match &mut self.codes {
            Some((known, converter)) if *known == coded => converter,
            codes => {
                let new = converter(&self.order, |column| coded.get(column).copied().unwrap_or(false))?;
                &mut codes.insert((coded, new)).1
            }
        };
        let arrays = columns.iter().map(|column| match column {
            Vector::Codes { ids, nulls, .. } if is_ranked(column) => {
                Ok(Arc::new(UInt32Array::try_new(ids.clone(), nulls.clone())?) as _)
            }
            _ => column.array(),
        });
        Ok(converter.convert_columns(&arrays.collect::<Result<Vec<ArrayRef>>>()?)?)
    }

    /// Keys of values of the first column: none is above the key of a row that has such a value or one that comes later.
    ///
    /// # Errors
    /// If they are of another type.
    pub fn bounds(&self, values: ArrayRef) -> Result<Vec<Key>> {
        let order = self.order.get(..1).unwrap_or_default();
        let rows = converter(order, |_| false)?.convert_columns(&[values])?;
        Ok(rows.iter().map(|key| key.data().into()).collect())
    }

    /// The values of keys, one array a column.
    ///
    /// # Errors
    /// If the keys are of another order.
    pub fn values<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> Result<Vec<ArrayRef>> {
        let parser = self.values.parser();
        let rows: Vec<_> = keys.into_iter().map(|key| parser.parse(key)).collect();
        Ok(self.values.convert_rows(rows)?)
    }
}

fn converter(order: &[OrderColumn], coded: impl Fn(usize) -> bool) -> Result<RowConverter> {
    let field = |(at, column): (usize, &OrderColumn)| {
        let data_type = if coded(at) { DataType::UInt32 } else { column.data_type.clone() };
        SortField::new_with_options(data_type, column.options)
    };
    Ok(RowConverter::new(order.iter().enumerate().map(field).collect())?)
}

/// Whether a column's codes compare as its values do.
fn is_ranked(column: &Vector) -> bool {
    matches!(column, Vector::Codes { dictionary, .. } if dictionary.is_ordered())
}

/// The rows with the `count` least keys, of those that count.
fn least(rows: &Rows, count: usize, counts: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let mut best: Vec<u32> = (0..).zip(rows).filter(|(_, key)| counts(key.data())).map(|(row, _)| row).collect();
    if let Some(last) = count.checked_sub(1).filter(|&last| last < best.len()) {
        best.select_nth_unstable_by(last, |&a, &b| rows.row(a as usize).cmp(&rows.row(b as usize)));
    }
    best.truncate(count);
    best
}

/// The values of some rows of a column.
fn values_of(column: &Vector, rows: &UInt32Array) -> Result<ArrayRef> {
    match column {
        Vector::Array(array) => Ok(take(array, rows, None)?),
        Vector::Narrow(decimals) => decimals.rows(rows.values()).array(),
        Vector::Codes { ids, nulls, dictionary } => {
            let ids = UInt32Array::try_new(ids.clone(), nulls.clone())?;
            let chosen = take(&ids, rows, None)?.to_data();
            let chosen = UInt32Array::from(chosen);
            dictionary.values(chosen.values(), chosen.nulls())
        }
    }
}

/// The first rows of an order, and their places.
#[derive(Debug)]
pub struct First<P> {
    count: usize,
    /// The last of them on top.
    rows: BinaryHeap<Ranked<P>>,
    memory: Reservation,
}

#[derive(Debug)]
struct Ranked<P> {
    key: Key,
    place: P,
}

impl<P> Ord for Ranked<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<P> PartialOrd for Ranked<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Ranked<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<P> Eq for Ranked<P> {}

impl<P> First<P> {
    /// No rows yet, of at most `count`.
    pub fn new(count: usize, budget: &Arc<MemoryBudget>) -> Self {
        Self { count, rows: BinaryHeap::new(), memory: budget.open("first rows of an order") }
    }

    /// Whose memory it takes.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        self.memory.budget()
    }

    /// What a key must be below to be among them: nothing, as long as there are fewer.
    pub fn bound(&self) -> Option<&Key> {
        self.rows.peek().filter(|_| self.rows.len() >= self.count).map(|last| &last.key)
    }

    /// Takes rows; says whether the bound is another now.
    ///
    /// # Errors
    /// If there is no memory for their keys.
    pub fn push(&mut self, rows: impl IntoIterator<Item = (Key, P)>) -> Result<bool> {
        let mut tightened = false;
        for (key, place) in rows {
            match self.bound() {
                Some(bound) if key >= *bound => {}
                Some(bound) => {
                    let (more, less) = (key.len() as u64, bound.len() as u64);
                    self.memory.try_grow(more)?;
                    self.memory.shrink(less);
                    let last =
                        self.rows.peek_mut().map(|mut last| std::mem::replace(&mut *last, Ranked { key, place }));
                    tightened |= self.bound() != last.map(|last| last.key).as_ref();
                }
                None if self.count == 0 => {}
                None => {
                    self.memory.try_grow((key.len() + size_of::<Ranked<P>>()) as u64)?;
                    self.rows.push(Ranked { key, place });
                    tightened = self.rows.len() == self.count;
                }
            }
        }
        Ok(tightened)
    }

    /// The rows in order, with the memory that they take.
    pub fn into_rows(self) -> (Vec<(Key, P)>, Reservation) {
        let rows = self.rows.into_sorted_vec();
        (rows.into_iter().map(|row| (row.key, row.place)).collect(), self.memory)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
