//! Sums, differences and products of decimals, in 64 bits as long as they fit.
//!
//! A decimal of 128 bits is mostly a small number, of which the engine makes arrays of 16 bytes a value with a check at each step. Here the bits
//! that the values of some rows take tell beforehand that no step can leave 64 bits; rows for which they don't are left to the engine.

/// Rows that are computed at once: what they need stays in the nearest cache.
const ROWS: usize = 1024;

/// The bits that magnitudes may have: of 64 one is the sign, and one is kept free so that a bound may be reached.
const BITS: u32 = 62;

/// An expression over columns of decimals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decimals {
    /// A column, by its place.
    Column(usize),
    /// A value.
    Value(i64),
    /// Another expression by a power of ten: a scale that is raised.
    Raised(Box<Decimals>, i64),
    /// Two expressions, added, subtracted or multiplied as integers.
    Of(Operation, Box<Decimals>, Box<Decimals>),
}

/// The numbers of a column.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// In 64 bits.
    Narrow(&'a [i64]),
    /// In 128.
    Wide(&'a [i128]),
}

impl Numbers<'_> {
    /// Those of some rows in 64 bits, and the bits that their magnitudes take; none if these are too many.
    fn narrowed(self, from: usize, until: usize, into: &mut Vec<i64>) -> Option<u32> {
        let numbers = match self {
            Self::Wide(numbers) => return narrowed(numbers.get(from..until)?, into),
            Self::Narrow(numbers) => numbers.get(from..until)?,
        };
        into.extend_from_slice(numbers);
        let magnitude = numbers.iter().fold(0, |all, number| all | (number ^ (number >> 63)));
        Some(i64::BITS - magnitude.leading_zeros()).filter(|bits| *bits <= BITS)
    }
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Their sum.
    Add,
    /// The first less the second.
    Subtract,
    /// Their product.
    Multiply,
}

/// Room for numbers on the way.
#[derive(Debug, Default)]
pub struct Scratch {
    free: Vec<Vec<i64>>,
}

impl Scratch {
    fn take(&mut self) -> Vec<i64> {
        self.free.pop().unwrap_or_default()
    }

    fn give_back(&mut self, mut numbers: Vec<i64>) {
        numbers.clear();
        self.free.push(numbers);
    }
}

impl Decimals {
    /// The numbers of so many rows, given those of the columns; none if they may not fit 64 bits on the way, or a column is missing or shorter.
    pub fn evaluate(&self, columns: &[Numbers<'_>], rows: usize, scratch: &mut Scratch) -> Option<Vec<i64>> {
        let mut all = Vec::with_capacity(rows);
        let mut numbers = scratch.take();
        let mut from = 0;
        let mut fits = true;
        while from < rows && fits {
            let until = rows.min(from + ROWS);
            fits = self.compute(columns, from, until, &mut numbers, scratch).is_some();
            all.extend_from_slice(&numbers);
            from = until;
        }
        scratch.give_back(numbers);
        fits.then_some(all)
    }

    /// The numbers of some rows, and the bits that their magnitudes take at most.
    fn compute(
        &self,
        columns: &[Numbers<'_>],
        from: usize,
        until: usize,
        into: &mut Vec<i64>,
        scratch: &mut Scratch,
    ) -> Option<u32> {
        into.clear();
        let bits = match self {
            Self::Column(column) => columns.get(*column)?.narrowed(from, until, into)?,
            Self::Value(value) => {
                into.resize(until - from, *value);
                bits(*value)
            }
            Self::Raised(of, factor) => {
                let found = of.compute(columns, from, until, into, scratch)? + bits(*factor);
                if found > BITS {
                    return None;
                }
                into.iter_mut().for_each(|number| *number *= factor);
                found
            }
            Self::Of(operation, one, other) => {
                let bits_of_one = one.compute(columns, from, until, into, scratch)?;
                let mut others = scratch.take();
                let bits_of_other = other.compute(columns, from, until, &mut others, scratch);
                let found = bits_of_other.map(|other| match operation {
                    Operation::Add | Operation::Subtract => bits_of_one.max(other) + 1,
                    Operation::Multiply => bits_of_one + other,
                });
                if found.is_some_and(|bits| bits <= BITS) {
                    let pairs = into.iter_mut().zip(&others);
                    match operation {
                        Operation::Add => pairs.for_each(|(one, other)| *one += other),
                        Operation::Subtract => pairs.for_each(|(one, other)| *one -= other),
                        Operation::Multiply => pairs.for_each(|(one, other)| *one *= other),
                    }
                }
                scratch.give_back(others);
                found?
            }
        };
        (bits <= BITS).then_some(bits)
    }
}

/// Numbers in half as many bits, and the bits that their magnitudes take; none if these are too many.
#[allow(clippy::cast_possible_truncation, reason = "the halves of a number")]
fn narrowed(values: &[i128], into: &mut Vec<i64>) -> Option<u32> {
    // Of a number that fits the high half is the low one's sign. Magnitudes are collected with the sign taken off.
    let (mut other, mut magnitude) = (0_i64, 0_i64);
    into.extend(values.iter().map(|value| {
        let (low, high) = (*value as i64, (*value >> 64) as i64);
        other |= high ^ (low >> 63);
        magnitude |= low ^ (low >> 63);
        low
    }));
    let bits = i64::BITS - magnitude.leading_zeros();
    (other == 0 && bits <= BITS).then_some(bits)
}

/// The bits of a magnitude: it is at most two to their power.
fn bits(value: i64) -> u32 {
    u64::BITS - value.unsigned_abs().leading_zeros()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use plinth_core::random::Random;

    use super::*;

    fn of(operation: Operation, one: Decimals, other: Decimals) -> Decimals {
        Decimals::Of(operation, Box::new(one), Box::new(other))
    }

    fn number(random: &mut Random) -> i128 {
        let wide = i128::from(random.next_u64().cast_signed()) << 40;
        wide >> (40 + random.index(80).min(70))
    }

    fn expression(random: &mut Random, depth: usize) -> Decimals {
        match random.index(if depth == 0 { 2 } else { 6 }) {
            0 => Decimals::Column(random.index(3)),
            1 => Decimals::Value(i64::try_from(number(random) % 1000).unwrap()),
            2 => Decimals::Raised(Box::new(expression(random, depth - 1)), 100),
            which => {
                let operation = [Operation::Add, Operation::Subtract, Operation::Multiply][which - 3];
                of(operation, expression(random, depth - 1), expression(random, depth - 1))
            }
        }
    }

    /// The same in 128 bits; none on overflow.
    fn expected(expression: &Decimals, row: &[i128]) -> Option<i128> {
        match expression {
            Decimals::Column(column) => Some(row[*column]),
            Decimals::Value(value) => Some(i128::from(*value)),
            Decimals::Raised(of, factor) => expected(of, row)?.checked_mul(i128::from(*factor)),
            Decimals::Of(operation, one, other) => {
                let (one, other) = (expected(one, row)?, expected(other, row)?);
                match operation {
                    Operation::Add => one.checked_add(other),
                    Operation::Subtract => one.checked_sub(other),
                    Operation::Multiply => one.checked_mul(other),
                }
            }
        }
    }

    #[test]
    fn what_fits_is_exact() {
        let (mut fitting, mut scratch) = (0, Scratch::default());
        for seed in 0..3000 {
            let random = &mut Random(seed);
            let rows = [0, 1, 7, ROWS, ROWS + 5][random.index(5)];
            let shift = random.index(64);
            let columns: Vec<Vec<i128>> =
                (0..3).map(|_| (0..rows).map(|_| number(random) >> shift).collect()).collect();
            let wide: Vec<_> = columns.iter().map(|column| Numbers::Wide(column)).collect();
            let halves =
                |column: &Vec<i128>| column.iter().map(|value| i64::try_from(*value)).collect::<Result<Vec<_>, _>>();
            let halves: Option<Vec<_>> = columns.iter().map(|column| halves(column).ok()).collect();
            let expression = expression(random, 4);
            let found = expression.evaluate(&wide, rows, &mut scratch);
            if let Some(halves) = &halves {
                let narrow: Vec<_> = halves.iter().map(|column| Numbers::Narrow(column)).collect();
                assert_eq!(expression.evaluate(&narrow, rows, &mut scratch), found, "seed {seed}: {expression:?}");
            }
            let Some(found) = found else { continue };
            fitting += usize::from(rows > 0);
            assert_eq!(found.len(), rows);
            for (row, found) in found.iter().enumerate() {
                let row: Vec<i128> = columns.iter().map(|column| column[row]).collect();
                assert_eq!(
                    Some(i128::from(*found)),
                    expected(&expression, &row),
                    "seed {seed}: {expression:?} of {row:?}"
                );
            }
        }
        assert!(fitting > 500, "{fitting} fitted");
    }

    #[test]
    fn numbers_at_the_bounds_are_left_to_others() {
        let mut scratch = Scratch::default();
        let mut of_one = |value: i128| Decimals::Column(0).evaluate(&[Numbers::Wide(&[value])], 1, &mut scratch);
        assert_eq!(of_one(1 << 61), Some(vec![1 << 61]));
        assert_eq!(of_one(-(1 << 61)), Some(vec![-(1 << 61)]));
        for value in [1 << 62, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 64, i128::MAX, i128::MIN] {
            assert_eq!(of_one(value), None, "{value}");
        }
        let product = of(Operation::Multiply, Decimals::Column(0), Decimals::Column(0));
        assert_eq!(product.evaluate(&[Numbers::Wide(&[1 << 30])], 1, &mut scratch), Some(vec![1 << 60]));
        assert_eq!(product.evaluate(&[Numbers::Narrow(&[1 << 31])], 1, &mut scratch), None);
    }

    #[test]
    fn missing_rows_and_columns_are_no_numbers() {
        let mut scratch = Scratch::default();
        assert_eq!(Decimals::Column(1).evaluate(&[Numbers::Wide(&[1])], 1, &mut scratch), None);
        assert_eq!(Decimals::Column(0).evaluate(&[Numbers::Narrow(&[1])], 2, &mut scratch), None);
    }
}
