//! What planners want to know of values beside their bounds: their sum, and whether they are in order.

use arrow_buffer::NullBuffer;

use crate::column::{Column, Values};
use crate::dictionary::Sorted;
use crate::dictionary::keys::Numbers;
use crate::physical::Physical;
use crate::views::view_bytes;

/// How values follow each other, nulls left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// None is smaller than the one before.
    pub ascends: bool,
    /// None is larger than the one before.
    pub descends: bool,
    /// None equals the one before.
    pub differs: bool,
}

impl Order {
    /// Of no values, or one.
    pub const ALL: Self = Self { ascends: true, descends: true, differs: true };

    /// Of values that are not sorted.
    pub const NONE: Self = Self { ascends: false, descends: false, differs: false };

    /// Whether the values are sorted.
    pub fn is_sorted(self) -> bool {
        self.ascends || self.descends
    }

    /// That of values which follow each other in both ways.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ascends: self.ascends && other.ascends,
            descends: self.descends && other.descends,
            differs: self.differs && other.differs,
        }
    }

    /// That of a value and the next.
    pub fn of_two<T: Ord + ?Sized>(before: &T, next: &T) -> Self {
        let order = before.cmp(next);
        Self { ascends: order.is_le(), descends: order.is_ge(), differs: order.is_ne() }
    }

    fn of<T: Ord>(mut values: impl Iterator<Item = T>) -> Self {
        let Some(mut before) = values.next() else { return Self::ALL };
        let mut order = Self::ALL;
        for value in values {
            order = order.and(Self::of_two(&before, &value));
            if !order.is_sorted() {
                return Self::NONE;
            }
            before = value;
        }
        order
    }
}

/// How the values of a column that are not null follow each other, as their keys compare. Of booleans nothing is said.
pub fn order(physical: Physical, column: &Column) -> Order {
    let valid = |row: &usize| column.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
    let rows = (0..column.len).filter(valid);
    match &column.values {
        Values::Fixed(bytes) => match (Numbers::of(physical), physical) {
            (Some(numbers), _) => {
                let mut read = Vec::with_capacity(column.len);
                numbers.read(bytes, &mut read);
                Order::of(rows.filter_map(|row| read.get(row)))
            }
            (None, Physical::Wide { width: 16 }) => {
                let values = bytes.as_slice().as_chunks::<16>().0;
                Order::of(rows.filter_map(|row| values.get(row).map(|value| i128::from_le_bytes(*value))))
            }
            (None, Physical::Fixed { width }) => {
                let width = width as usize;
                Order::of(rows.filter_map(|row| bytes.as_slice().get(row * width..(row + 1) * width)))
            }
            _ => Order::NONE,
        },
        Values::Views { views, buffers } => {
            let views = views.inner().as_slice().as_chunks::<16>().0;
            Order::of(rows.filter_map(|row| view_bytes(views.get(row)?, buffers).ok()))
        }
        Values::Bool(_) => Order::NONE,
    }
}

/// The sum of a column's integers that are not null; `None` of other types, and if it does not fit.
pub fn sum(physical: Physical, column: &Column) -> Option<i128> {
    let Values::Fixed(bytes) = &column.values else { return None };
    let (bytes, nulls) = (bytes.as_slice(), column.nulls.as_ref());
    match physical {
        Physical::Int { width: 1, signed: false } => add(bytes.as_chunks().0, nulls, u8::from_le_bytes),
        Physical::Int { width: 1, signed: true } => add(bytes.as_chunks().0, nulls, i8::from_le_bytes),
        Physical::Int { width: 2, signed: false } => add(bytes.as_chunks().0, nulls, u16::from_le_bytes),
        Physical::Int { width: 2, signed: true } => add(bytes.as_chunks().0, nulls, i16::from_le_bytes),
        Physical::Int { width: 4, signed: false } => add(bytes.as_chunks().0, nulls, u32::from_le_bytes),
        Physical::Int { width: 4, signed: true } => add(bytes.as_chunks().0, nulls, i32::from_le_bytes),
        Physical::Int { width: 8, signed: false } => add(bytes.as_chunks().0, nulls, u64::from_le_bytes),
        Physical::Int { width: 8, signed: true } => add(bytes.as_chunks().0, nulls, i64::from_le_bytes),
        Physical::Wide { width: 16 } => {
            let mut values = bytes.as_chunks::<16>().0.iter().enumerate();
            values.try_fold(0_i128, |sum, (row, value)| match nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                true => sum.checked_add(i128::from_le_bytes(*value)),
                false => Some(sum),
            })
        }
        _ => None,
    }
}

/// The sum of so few values of at most 64 bits that it fits.
fn add<const W: usize, T: Into<i128>>(
    values: &[[u8; W]],
    nulls: Option<&NullBuffer>,
    load: impl Fn([u8; W]) -> T,
) -> Option<i128> {
    Some(match nulls {
        None => values.iter().map(|&value| load(value).into()).sum(),
        Some(nulls) => {
            let valid = values.iter().zip(nulls.iter()).filter(|(_, valid)| *valid);
            valid.map(|(&value, _)| load(value).into()).sum()
        }
    })
}

/// The integers of a dictionary, to be added up by their codes.
#[derive(Debug)]
pub struct Addends {
    /// Each more than what it stands for, by the same.
    numbers: Vec<u64>,
    bias: i128,
}

impl Addends {
    /// Of integers of up to 64 bits.
    pub fn of(sorted: &Sorted) -> Option<Self> {
        let Physical::Int { width, signed } = sorted.physical() else { return None };
        let numbers = Numbers::of(sorted.physical())?;
        let bias = if signed { 1_i128 << (8 * u32::from(width) - 1) } else { 0 };
        Some(Self { numbers: (0..sorted.len()).map(|rank| numbers.of_key(sorted.key(rank))).collect(), bias })
    }

    /// The sum of the integers that some codes stand for, but for those of nulls.
    pub fn sum(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> i128 {
        let number = |code: u32| self.numbers.get(code as usize).map_or(0, |&number| i128::from(number) - self.bias);
        match nulls {
            None => codes.iter().map(|&code| number(code)).sum(),
            Some(nulls) => nulls.valid_indices().filter_map(|row| codes.get(row)).map(|&code| number(code)).sum(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
