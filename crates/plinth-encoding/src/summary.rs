//! What planners want to know of values beside their bounds: their sum, and whether they are in order.

use arrow_buffer::NullBuffer;

use crate::column::{Column, Values};
use crate::dictionary::Sorted;
use crate::dictionary::keys::Numbers;
use crate::physical::Physical;
use crate::views::view_bytes;
use crate::wire::wide;

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
        Physical::Int { width: 1, signed } => Some(add::<1>(bytes, signed, nulls)),
        Physical::Int { width: 2, signed } => Some(add::<2>(bytes, signed, nulls)),
        Physical::Int { width: 4, signed } => Some(add::<4>(bytes, signed, nulls)),
        Physical::Int { width: 8, signed } => Some(add::<8>(bytes, signed, nulls)),
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

/// Values whose halves are added up together: their sums fit.
const ADDED: usize = 1 << 20;

/// The sum of so few values of at most 64 bits that it fits. Each is made unsigned by adding half of what its bits can say, and
/// halves of 32 bits are added up apart: vectors can do that.
fn add<const W: usize>(bytes: &[u8], signed: bool, nulls: Option<&NullBuffer>) -> i128 {
    let sign = if signed { 1_u64 << (8 * W - 1) } else { 0 };
    let number = |value: &[u8; W]| {
        let mut wide = [0; 8];
        wide[..W].copy_from_slice(value);
        u64::from_le_bytes(wide) ^ sign
    };
    let values = bytes.as_chunks::<W>().0;
    let (sum, count) = match nulls {
        None => {
            let sum = values.chunks(ADDED).map(|values| {
                let halves = |(low, high): (u64, u64), value| {
                    let number = number(value);
                    (low + (number & u64::from(u32::MAX)), high + (number >> 32))
                };
                let (low, high) = values.iter().fold((0, 0), halves);
                i128::from(low) + (i128::from(high) << 32)
            });
            (sum.sum::<i128>(), values.len())
        }
        Some(nulls) => {
            let valid = values.iter().zip(nulls.iter()).filter(|(_, valid)| *valid);
            (valid.map(|(value, _)| i128::from(number(value))).sum(), nulls.len() - nulls.null_count())
        }
    };
    sum - i128::from(sign) * i128::from(wide(count))
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
