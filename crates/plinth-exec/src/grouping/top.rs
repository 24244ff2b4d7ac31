//! The groups that can be among the first by an order, so that the keys of no others are decoded.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};

use super::Grouping;
use crate::error::Result;
use crate::numbers::Numbers;

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

impl Grouping {
    /// The groups that can be among the first by an order: where it goes on behind what can be told here, those that are equal to the
    /// last, too.
    ///
    /// # Errors
    /// If values can't be had.
    pub fn top(&mut self, top: &Top) -> Result<Vec<u32>> {
        let mut all = self.all();
        let Some(last) = top.count.checked_sub(1) else { return Ok(Vec::new()) };
        if all.len() <= top.count {
            return Ok(all);
        }
        let (mut places, mut whole) = (Vec::new(), top.whole);
        for &(column, order) in &top.by {
            let values = match column {
                Column::Aggregate(at) => match (self.aggregates.get_mut(at), self.offsets.get(at)) {
                    (Some(aggregate), Some(&offset)) => Some(aggregate.values(&self.rows.states_from(offset), &all)?),
                    _ => None,
                },
                Column::Key(at) => self.keys.number_column(at, &self.rows, &all)?,
            };
            let found = values.map(|values| Places::of(&values, order)).transpose()?.flatten();
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
            some.truncate(top.count);
            return Ok(some);
        }
        all.retain(|&group| compare(group, last) != Ordering::Greater);
        Ok(all)
    }
}
