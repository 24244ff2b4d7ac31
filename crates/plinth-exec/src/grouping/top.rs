//! The groups that can be among the first by an order, so that the keys of no others are decoded.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use plinth_io::MemoryBudget;

use super::Grouping;
use crate::error::{ExecError, Result};
use crate::key::Keys;
use crate::numbers::Numbers;
use crate::rows::Rows;

/// A column of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A key column.
    Key(usize),
    /// An aggregate.
    Aggregate(usize),
}

/// The first of an order of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// What they are ordered by, the first column before all else; nothing if any groups will do.
    pub by: Vec<(Column, Order)>,
    /// Whether they are ordered by nothing else behind that.
    pub whole: bool,
    /// How many are wanted.
    pub count: usize,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Whether the greatest come first.
    pub descending: bool,
    /// Whether nulls do.
    pub nulls_first: bool,
}

/// The places of values in an order: lesser ones come first.
struct Places(Vec<i128>);

impl Places {
    /// Of an array; `None` if its values are no numbers.
    fn of(values: &ArrayRef, order: Order) -> Result<Option<Self>> {
        let Some(numbers) = Numbers::of(values.data_type()) else { return Ok(None) };
        let mut read = vec![Vec::new(); numbers.width()];
        numbers.read(values.as_ref(), &mut read)?;
        let nulls = values.nulls();
        let place = |row: usize| {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                return if order.nulls_first { i128::MIN } else { i128::MAX };
            }
            let number = match read.as_slice() {
                [high, low, ..] => (i128::from(high[row]) << 64) + i128::from(low[row]) - i128::from(i64::MIN),
                [number, ..] => i128::from(number[row]),
                [] => 0,
            };
            if order.descending { !number } else { number }
        };
        Ok(Some(Self((0..values.len()).map(place).collect())))
    }
}

impl Top {
    /// Those of so many groups that can be among the first, given the values of a column where these are known: where the order goes on
    /// behind what is known, those that are equal to the last, too.
    fn among(&self, groups: usize, mut values: impl FnMut(Column) -> Result<Option<ArrayRef>>) -> Result<Vec<u32>> {
        let mut all: Vec<u32> = (0..u32::try_from(groups).unwrap_or(u32::MAX)).collect();
        let Some(last) = self.count.checked_sub(1) else { return Ok(Vec::new()) };
        if all.len() <= self.count {
            return Ok(all);
        }
        let (mut places, mut whole) = (Vec::new(), self.whole);
        for &(column, order) in &self.by {
            let found = values(column)?.map(|values| Places::of(&values, order)).transpose()?.flatten();
            let Some(found) = found else {
                whole = false;
                break;
            };
            places.push(found);
        }
        let compare = |one: u32, two: u32| {
            let each = places.iter().map(|places| places.0[one as usize].cmp(&places.0[two as usize]));
            each.fold(Ordering::Equal, Ordering::then)
        };
        let mut some = all.clone();
        let last = *some.select_nth_unstable_by(last, |&one, &two| compare(one, two)).1;
        if whole {
            some.truncate(self.count);
            return Ok(some);
        }
        all.retain(|&group| compare(group, last) != Ordering::Greater);
        Ok(all)
    }
}

impl Grouping {
    /// The groups that can be among the first by an order: where it goes on behind what can be told here, those that are equal to the
    /// last, too.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn top(&mut self, top: &Top) -> Result<Vec<u32>> {
        let (groups, all) = (self.rows.len(), self.all());
        let Self { keys, rows, aggregates, offsets, .. } = self;
        top.among(groups, |column| match column {
            Column::Aggregate(at) => match (aggregates.get_mut(at), offsets.get(at)) {
                (Some(aggregate), Some(&offset)) => aggregate.values(&rows.states_from(offset), &all).map(Some),
                _ => Ok(None),
            },
            Column::Key(at) => keys.number_column(at, rows, &all),
        })
    }
}

/// Groups that were the first of a part, with the values of their aggregates. Keys stay encoded until it is known which are the first of all
/// parts: to decode one may take a read.
#[derive(Debug)]
pub struct Firsts {
    keys: Keys,
    rows: Rows,
    /// Of each part the values, one array an aggregate.
    aggregates: Vec<Vec<ArrayRef>>,
    scratch: Vec<u32>,
}

impl Firsts {
    /// None yet.
    pub(super) fn new(keys: Keys, budget: &Arc<MemoryBudget>) -> Self {
        let rows = keys.rows(keys.carried(), budget);
        Self { keys, rows, aggregates: Vec::new(), scratch: Vec::new() }
    }

    /// Takes groups of a part. No two parts have a key in common.
    ///
    /// # Errors
    /// If there is no memory for them, or a value can't be had.
    pub fn take(&mut self, mut part: Grouping, groups: &[u32]) -> Result<()> {
        let numbers = part.keys.numbers_of(&part.rows, groups);
        let before = self.rows.len();
        self.keys.groups_of(numbers, groups.len(), &mut self.rows, &mut self.scratch)?;
        let from = (part.rows.states_from(0), groups.iter().copied());
        self.keys.carry_over(from, &self.scratch, before, &mut self.rows);
        self.aggregates.push(part.aggregate_values(groups)?);
        Ok(())
    }

    /// The keys and the aggregates of those that can be among the first, one array a column.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn values(self, top: &Top) -> Result<Vec<ArrayRef>> {
        let count = self.aggregates.first().map_or(0, Vec::len);
        let of_all_parts = |at: usize| {
            let parts: Vec<&dyn Array> =
                self.aggregates.iter().filter_map(|part| part.get(at)).map(AsRef::as_ref).collect();
            Ok::<_, ExecError>(concat(&parts)?)
        };
        let aggregates = (0..count).map(of_all_parts).collect::<Result<Vec<_>>>()?;
        let all: Vec<u32> = (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).collect();
        let first = top.among(self.rows.len(), |column| match column {
            Column::Aggregate(at) => Ok(aggregates.get(at).cloned()),
            Column::Key(at) => self.keys.number_column(at, &self.rows, &all),
        })?;
        let mut arrays = self.keys.values(&self.rows, &first)?;
        let first = UInt32Array::from(first);
        for values in &aggregates {
            arrays.push(take(values, &first, None)?);
        }
        Ok(arrays)
    }
}
