//! `sum(x)` and `avg(x)`.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, DecimalType, Float64Type};
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, UInt64Array, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DECIMAL128_MAX_PRECISION, DataType};

use super::{Aggregate, FEW, Input, Merged, States, StatesRead, argument, counting, each};
use crate::error::{ExecError, Result};
use crate::numbers::Numbers;
use crate::vector::{Narrow, Vector};

/// How values are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Integers and decimals whose sums fit a word, as two's complement: signed or not.
    Word,
    /// Integers whose sums may not: two words.
    Double,
    /// Decimals of 128 bits: two words.
    Wide,
    /// Doubles.
    Float,
}

/// Values added up.
#[derive(Clone, Debug)]
struct Adder {
    kind: Kind,
    /// How integers are read.
    numbers: Numbers,
    /// Whether values are counted, in the first word of a state: where there may be groups without any, or where it matters how many there are.
    counted: bool,
    scratch: Vec<Vec<i64>>,
}

const SIGN: i64 = i64::MIN;

/// A sum of some rows.
trait Partial: Copy + Default + Into<i128> {
    fn plus(self, value: i128) -> Self;
}

impl Partial for i128 {
    #[inline]
    fn plus(self, value: i128) -> Self {
        within(self, value)
    }
}

/// A sum that has left 128 bits: none of decimals, which have 38 digits, is that.
const BEYOND: i128 = i128::MAX;

/// A sum of two, and [`BEYOND`] from the moment on that it leaves 128 bits.
#[inline]
fn within(sum: i128, more: i128) -> i128 {
    match sum.checked_add(more) {
        Some(all) if sum != BEYOND && more != BEYOND => all,
        _ => BEYOND,
    }
}

impl Partial for i64 {
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "what is added fits")]
    fn plus(self, value: i128) -> Self {
        self.wrapping_add(value as i64)
    }
}

/// The sums of rows of few groups: of each group that has values its number, their sum and how many there are. Rows that follow each other mostly
/// belong to the same few groups, and a sum in memory waits for the one before to be written: here four rows have each a sum of their own.
fn few<T: Partial>(
    input: &Input<'_>,
    counts: Option<&BooleanBuffer>,
    value: impl Fn(usize) -> i128,
) -> Vec<(u32, i128, u64)> {
    if let (None, Some(sizes)) = (counts, input.sizes()) {
        let mut sums = [[T::default(); 4]; FEW];
        for (row, group) in input.groups.iter().enumerate() {
            let sum = &mut sums[*group as usize % FEW][row % 4];
            *sum = sum.plus(value(row));
        }
        let sums = sums.iter().map(|four| four.iter().fold(0, |sum: i128, more| within(sum, (*more).into())));
        let groups = (0..).zip(sums).zip(sizes).take(input.total);
        return groups.map(|((group, sum), count)| (group, sum, *count)).filter(|(.., count)| *count > 0).collect();
    }
    let mut sums = [[(T::default(), 0_u64); 4]; FEW];
    each(input.groups.len(), counts, |row| {
        let (sum, count) = &mut sums[input.groups[row] as usize % FEW][row % 4];
        *sum = sum.plus(value(row));
        *count += 1;
    });
    let group = |(group, four): (u32, &[(T, u64); 4])| {
        let sum = four.iter().fold(0, |sum: i128, (more, _)| within(sum, (*more).into()));
        (group, sum, four.iter().map(|(_, count)| count).sum())
    };
    (0..).zip(&sums).take(input.total).map(group).filter(|(.., count)| *count > 0).collect()
}

/// Whether sums of any of some numbers have 64 bits.
fn are_narrow(numbers: &[i64]) -> bool {
    let magnitudes = numbers.iter().fold(0, |all, number| all | (number ^ (number >> 63)));
    have_narrow_sums(magnitudes, numbers.len())
}

/// The same of numbers of 128 bits.
#[allow(clippy::cast_possible_truncation, reason = "the halves of a number")]
fn are_narrow_wide(numbers: &[i128]) -> bool {
    // Of a number that fits the high half is the low one's sign.
    let (other, magnitudes) = numbers.iter().fold((0_i64, 0_i64), |(other, magnitudes), number| {
        let (low, high) = (*number as i64, (*number >> 64) as i64);
        (other | (high ^ (low >> 63)), magnitudes | (low ^ (low >> 63)))
    });
    other == 0 && have_narrow_sums(magnitudes, numbers.len())
}

fn have_narrow_sums(magnitudes: i64, rows: usize) -> bool {
    let bits = i64::BITS - magnitudes.leading_zeros();
    bits + usize::BITS - rows.leading_zeros() < i64::BITS
}

impl Adder {
    fn new(kind: Kind, numbers: Numbers, counted: bool) -> Self {
        Self { kind, numbers, counted, scratch: vec![Vec::new(); numbers.width()] }
    }

    /// The first word of the sum.
    fn at(&self) -> usize {
        usize::from(self.counted)
    }

    fn words(&self) -> usize {
        match self.kind {
            Kind::Word | Kind::Float => self.at() + 1,
            Kind::Double | Kind::Wide => self.at() + 2,
        }
    }

    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        let argument = argument(input)?;
        let (counts, groups) = (counting(argument, input.filter), input.groups);
        let (rows, counts) = (groups.len(), counts.as_ref());
        if self.kind == Kind::Float {
            let array = argument.array()?;
            let values = array.as_primitive_opt::<Float64Type>().ok_or_else(|| other(argument))?.values();
            self.count(states, groups, counts);
            let mut sums = states.behind(self.at());
            each(rows, counts, |row| sums.change(groups[row], 0, |sum| add_float(sum, values[row])));
            return Ok(());
        }
        let is_few = input.has_few_groups();
        if !is_few {
            self.count(states, groups, counts);
        }
        let (kind, at) = (self.kind, self.at());
        let mut sums = states.behind(at);
        let mut found = Vec::new();
        match kind {
            Kind::Wide if let Vector::Narrow(Narrow { values, .. }) = argument => match is_few {
                true if are_narrow(values) => found = few::<i64>(input, counts, |row| values[row].into()),
                true => found = few::<i128>(input, counts, |row| values[row].into()),
                false => each(rows, counts, |row| add_wide(&mut sums, groups[row], values[row].into())),
            },
            Kind::Wide => {
                let array = argument.array()?;
                let values = array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| other(argument))?.values();
                match is_few {
                    true if are_narrow_wide(values) => found = few::<i64>(input, counts, |row| values[row]),
                    true => found = few::<i128>(input, counts, |row| values[row]),
                    false => each(rows, counts, |row| add_wide(&mut sums, groups[row], values[row])),
                }
            }
            _ => {
                let Self { numbers, scratch, .. } = self;
                let array = argument.array()?;
                numbers.read(array.as_ref(), scratch)?;
                let unsigned = *numbers == Numbers::Unsigned(8);
                let values = scratch.first().map_or(&[][..], Vec::as_slice);
                let value = |row: usize| match unsigned {
                    true => i128::from((values[row] ^ SIGN).cast_unsigned()),
                    false => i128::from(values[row]),
                };
                match is_few {
                    true if !unsigned && are_narrow(values) => {
                        found = few::<i64>(input, counts, |row| values[row].into());
                    }
                    true => found = few::<i128>(input, counts, value),
                    false if kind == Kind::Word => each(rows, counts, |row| {
                        sums.change(groups[row], 0, |sum| sum.wrapping_add(low(value(row))));
                    }),
                    false => each(rows, counts, |row| add_wide(&mut sums, groups[row], value(row))),
                }
            }
        }
        for (group, sum, count) in found {
            if self.counted {
                states.change(group, 0, |known| known + count);
            }
            let mut sums = states.behind(at);
            match kind {
                Kind::Word => sums.change(group, 0, |known| known.wrapping_add(low(sum))),
                _ => add_wide(&mut sums, group, sum),
            }
        }
        Ok(())
    }

    /// Counts the values of each group, if that matters.
    fn count(&self, states: &mut States<'_>, groups: &[u32], counts: Option<&BooleanBuffer>) {
        if self.counted {
            each(groups.len(), counts, |row| states.change(groups[row], 0, |count| count + 1));
        }
    }

    fn merge(&self, states: &mut States<'_>, from: &Merged<'_>) {
        let at = self.at();
        if self.counted {
            from.pairs().for_each(|(source, target)| {
                states.change(target, 0, |count| count + from.states.word(source, 0));
            });
        }
        let mut sums = states.behind(at);
        for (source, target) in from.pairs() {
            let more = from.states.word(source, at);
            match self.kind {
                Kind::Word => sums.change(target, 0, |sum| sum.wrapping_add(more)),
                Kind::Float => sums.change(target, 0, |sum| add_float(sum, f64::from_bits(more))),
                Kind::Double | Kind::Wide => add_wide(&mut sums, target, wide(&from.states, source, at)),
            }
        }
    }

    /// Which groups have a sum: those with values.
    fn nulls(&self, states: &StatesRead<'_>, groups: &[u32]) -> Option<NullBuffer> {
        if !self.counted {
            return None;
        }
        let nulls = NullBuffer::from_iter(groups.iter().map(|&group| states.word(group, 0) > 0));
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// How many values groups have; null of none, as the engine has it: that there is a count says that there are values.
    fn counts(&self, states: &StatesRead<'_>, groups: &[u32]) -> ArrayRef {
        let counts = groups.iter().map(|&group| states.word(group, 0)).collect::<Vec<_>>();
        Arc::new(UInt64Array::new(counts.into(), self.nulls(states, groups)))
    }

    /// The sum of integers of a group.
    fn exact(&self, states: &StatesRead<'_>, group: u32) -> i128 {
        match (self.kind, self.numbers) {
            (Kind::Double | Kind::Wide, _) => wide(states, group, self.at()),
            (_, Numbers::Unsigned(_)) => states.word(group, self.at()).into(),
            _ => states.word(group, self.at()).cast_signed().into(),
        }
    }

    /// The sums of integers in the type that they are to have.
    fn narrow<T>(&self, states: &StatesRead<'_>, groups: &[u32], narrow: impl Fn(i128) -> Option<T>) -> Result<Vec<T>> {
        let one = |&group: &u32| {
            let sum = self.exact(states, group);
            narrow(sum).ok_or_else(|| {
                ExecError::source(format!(
                    "a sum is {sum}, out of the range of 64 bits: sum(CAST(x AS DECIMAL(38, 0))) holds it"
                ))
            })
        };
        groups.iter().map(one).collect()
    }

    /// The sums as an array of a type as wide as a state.
    fn sums(&self, data_type: &DataType, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        let buffer: Buffer = match self.kind {
            Kind::Word => groups.iter().map(|&group| states.word(group, self.at())).collect::<Vec<_>>().into(),
            Kind::Float => {
                let sum = |&group: &u32| one_nan(f64::from_bits(states.word(group, self.at())));
                groups.iter().map(sum).collect::<Vec<_>>().into()
            }
            Kind::Double | Kind::Wide => {
                let sum = |&group: &u32| match wide(states, group, self.at()) {
                    BEYOND => Err(ExecError::source("a sum of decimals has more than 38 digits")),
                    sum => Ok(sum),
                };
                groups.iter().map(sum).collect::<Result<Vec<_>>>()?.into()
            }
        };
        let data = ArrayData::builder(data_type.clone()).len(groups.len()).add_buffer(buffer);
        Ok(make_array(data.nulls(self.nulls(states, groups)).build()?))
    }
}

fn other(argument: &Vector) -> ExecError {
    let found = argument.array().map_or_else(|_| "codes".to_owned(), |array| array.data_type().to_string());
    ExecError::internal(format!("a sum was given values of {found}"))
}

#[inline]
fn add_float(sum: u64, value: f64) -> u64 {
    (f64::from_bits(sum) + value).to_bits()
}

/// NaN without a sign, which that of an infinity and another with the other sign has: in an order it would be the least.
#[inline]
fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

#[inline]
fn wide(states: &StatesRead<'_>, group: u32, at: usize) -> i128 {
    (u128::from(states.word(group, at + 1)) << 64 | u128::from(states.word(group, at))).cast_signed()
}

/// The low half of a sum.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the halves of a sum")]
fn low(sum: i128) -> u64 {
    sum.cast_unsigned() as u64
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the halves of a sum")]
fn add_wide(sums: &mut States<'_>, group: u32, value: i128) {
    let before = u128::from(sums.word(group, 1)) << 64 | u128::from(sums.word(group, 0));
    let sum = within(before.cast_signed(), value).cast_unsigned();
    sums.set(group, 0, sum as u64);
    sums.set(group, 1, (sum >> 64) as u64);
}

/// Sums: of integers with a result of 64 bits, which is an error where they leave it, of doubles, of decimals.
#[derive(Clone, Debug)]
pub struct Sum {
    adder: Adder,
    result: DataType,
}

impl Sum {
    /// Sums of values of a type, as a type; if each group has a value, that need not be told. `None` if they are not ours to add.
    pub fn new(values: &DataType, result: &DataType, each_has_some: bool) -> Option<Self> {
        let numbers = Numbers::of(values)?;
        let kind = match (numbers, result) {
            (Numbers::Signed(8), DataType::Int64) if values.is_signed_integer() => Kind::Double,
            (Numbers::Unsigned(8), DataType::UInt64) => Kind::Double,
            // No number of rows that there can be has a sum of more than 64 bits.
            (Numbers::Signed(_), DataType::Int64) if values.is_signed_integer() => Kind::Word,
            (Numbers::Unsigned(_), DataType::UInt64) => Kind::Word,
            (Numbers::Wide, DataType::Decimal128(..)) => Kind::Wide,
            (Numbers::Float64, DataType::Float64) => Kind::Float,
            _ => return None,
        };
        Some(Self { adder: Adder::new(kind, numbers, !each_has_some), result: result.clone() })
    }
}

impl Aggregate for Sum {
    fn words(&self) -> usize {
        self.adder.words()
    }

    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        self.adder.update(states, input)
    }

    fn merge(&mut self, states: &mut States<'_>, from: &Merged<'_>) -> Result<()> {
        self.adder.merge(states, from);
        Ok(())
    }

    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        match (self.adder.kind, &self.result) {
            (Kind::Double, DataType::Int64) => {
                let sums = self.adder.narrow(states, groups, |sum| i64::try_from(sum).ok())?;
                Ok(Arc::new(Int64Array::new(sums.into(), self.adder.nulls(states, groups))))
            }
            (Kind::Double, DataType::UInt64) => {
                let sums = self.adder.narrow(states, groups, |sum| u64::try_from(sum).ok())?;
                Ok(Arc::new(UInt64Array::new(sums.into(), self.adder.nulls(states, groups))))
            }
            _ => self.adder.sums(&self.result, states, groups),
        }
    }

    /// The engine's: of integers as decimals, which no sum leaves.
    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        if !self.result.is_integer() {
            return Ok(vec![self.values(states, groups)?]);
        }
        let sums = groups.iter().map(|&group| self.adder.exact(states, group)).collect::<Vec<_>>();
        let sums = Decimal128Array::new(sums.into(), self.adder.nulls(states, groups));
        Ok(vec![Arc::new(sums.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?)])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(self.clone()))
    }
}

/// Means of integers (of the exact sum) and of doubles.
#[derive(Clone, Debug)]
pub struct Mean {
    adder: Adder,
}

impl Mean {
    /// Means of values of a type; `None` if they are not ours to add.
    pub fn new(values: &DataType) -> Option<Self> {
        let numbers = Numbers::of(values)?;
        let kind = match numbers {
            Numbers::Signed(8) | Numbers::Unsigned(8) if values.is_integer() => Kind::Double,
            Numbers::Signed(_) | Numbers::Unsigned(_) if values.is_integer() => Kind::Word,
            Numbers::Float64 => Kind::Float,
            _ => return None,
        };
        Some(Self { adder: Adder::new(kind, numbers, true) })
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
    fn sum(&self, states: &StatesRead<'_>, group: u32) -> f64 {
        match self.adder.kind {
            Kind::Word if matches!(self.adder.numbers, Numbers::Signed(_)) => {
                states.word(group, 1).cast_signed() as f64
            }
            Kind::Word => states.word(group, 1) as f64,
            Kind::Double | Kind::Wide => wide(states, group, 1) as f64,
            Kind::Float => one_nan(f64::from_bits(states.word(group, 1))),
        }
    }
}

impl Aggregate for Mean {
    fn words(&self) -> usize {
        self.adder.words()
    }

    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        self.adder.update(states, input)
    }

    fn merge(&mut self, states: &mut States<'_>, from: &Merged<'_>) -> Result<()> {
        self.adder.merge(states, from);
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "a mean is a double")]
    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        let means = groups.iter().map(|&group| self.sum(states, group) / states.word(group, 0) as f64);
        Ok(Arc::new(Float64Array::new(means.collect::<Vec<_>>().into(), self.adder.nulls(states, groups))))
    }

    /// The engine's: how many values there were, and their sum as a double.
    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let sums = groups.iter().map(|&group| self.sum(states, group)).collect::<Vec<_>>();
        let sums = Float64Array::new(sums.into(), self.adder.nulls(states, groups));
        Ok(vec![self.adder.counts(states, groups), Arc::new(sums)])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(self.clone()))
    }
}

/// Means of decimals: the exact sum by the count, cut off behind the last digit of the result's scale.
#[derive(Clone, Debug)]
pub struct DecimalMean {
    adder: Adder,
    /// The type of sums.
    sum: DataType,
    result: DataType,
    precision: u8,
    scale: i8,
    /// What raises a sum to the result's scale.
    factor: i128,
}

impl DecimalMean {
    /// Means of values of a type, by sums of another, as a third; `None` if these are not decimals of 128 bits, or the result's scale is smaller.
    pub fn new(values: &DataType, sum: &DataType, result: &DataType) -> Option<Self> {
        let (DataType::Decimal128(_, from), DataType::Decimal128(_, of_sum), DataType::Decimal128(precision, scale)) =
            (values, sum, result)
        else {
            return None;
        };
        let more = u32::try_from(scale.checked_sub(*from).filter(|_| from == of_sum)?).ok()?;
        let adder = Adder::new(Kind::Wide, Numbers::of(values)?, true);
        let (sum, factor) = (sum.clone(), 10_i128.checked_pow(more)?);
        Some(Self { adder, sum, result: result.clone(), precision: *precision, scale: *scale, factor })
    }

    fn mean(&self, sum: i128, count: u64) -> Result<i128> {
        let mean = Some(sum)
            .filter(|sum| *sum != BEYOND)
            .and_then(|sum| sum.checked_mul(self.factor))
            .map(|sum| sum / i128::from(count.max(1)));
        let fits = |mean: &i128| Decimal128Type::validate_decimal_precision(*mean, self.precision, self.scale).is_ok();
        mean.filter(fits).ok_or_else(|| {
            ExecError::Arrow(ArrowError::ArithmeticOverflow(format!("a mean of decimals does not fit {}", self.result)))
        })
    }
}

impl Aggregate for DecimalMean {
    fn words(&self) -> usize {
        self.adder.words()
    }

    fn update(&mut self, states: &mut States<'_>, input: &Input<'_>) -> Result<()> {
        self.adder.update(states, input)
    }

    fn merge(&mut self, states: &mut States<'_>, from: &Merged<'_>) -> Result<()> {
        self.adder.merge(states, from);
        Ok(())
    }

    fn values(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<ArrayRef> {
        let mean = |&group: &u32| self.mean(wide(states, group, 1), states.word(group, 0));
        let means = groups.iter().map(mean).collect::<Result<Vec<_>>>()?;
        let means = Decimal128Array::try_new(means.into(), self.adder.nulls(states, groups))?;
        Ok(Arc::new(means.with_precision_and_scale(self.precision, self.scale)?))
    }

    /// The engine's: how many values there were, and their sum.
    fn partial(&mut self, states: &StatesRead<'_>, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.adder.counts(states, groups), self.adder.sums(&self.sum, states, groups)?])
    }

    fn fresh(&self) -> Result<Box<dyn Aggregate>> {
        Ok(Box::new(self.clone()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
