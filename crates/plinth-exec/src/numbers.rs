//! Values of fixed width as 64-bit integers: equal values are equal numbers, and greater values are greater ones.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers are made of values of their width, and cut back to it"
)]

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, IntervalUnit};

use crate::error::{ExecError, Result};

/// How values of a type are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// False and true.
    Bool,
    /// Signed integers of so many bytes, and what is stored as such: dates, times, small decimals.
    Signed(usize),
    /// Unsigned integers of so many bytes.
    Unsigned(usize),
    /// Of 32 bits; the two zeros are one, and all NaN.
    Float32,
    /// Of 64 bits; likewise.
    Float64,
    /// 128 bits, as two numbers: the high half, then the low one.
    Wide,
}

const SIGN: u64 = 1 << 63;

impl Numbers {
    /// How values of a type are numbers; `None` if they are not.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::Int8 => Self::Signed(1),
            DataType::Int16 => Self::Signed(2),
            DataType::Int32
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Decimal32(..)
            | DataType::Interval(IntervalUnit::YearMonth) => Self::Signed(4),
            DataType::Int64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_)
            | DataType::Decimal64(..) => Self::Signed(8),
            DataType::UInt8 => Self::Unsigned(1),
            DataType::UInt16 => Self::Unsigned(2),
            DataType::UInt32 => Self::Unsigned(4),
            DataType::UInt64 => Self::Unsigned(8),
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            DataType::Decimal128(..) => Self::Wide,
            _ => return None,
        })
    }

    /// Numbers of a value.
    pub fn width(self) -> usize {
        if self == Self::Wide { 2 } else { 1 }
    }

    /// The numbers of an array's rows, the halves of wide ones apart; of null rows any.
    ///
    /// # Errors
    /// If the array is of another type.
    pub fn read(self, array: &dyn Array, into: &mut [Vec<i64>]) -> Result<()> {
        let data = array.to_data();
        if Self::of(data.data_type()) != Some(self) {
            return Err(ExecError::internal(format!("numbers of {} were to be read as {self:?}", data.data_type())));
        }
        let [first, rest @ ..] = into else { return Err(ExecError::internal("numbers need a place")) };
        first.clear();
        match self {
            Self::Bool => {
                let buffer = data.buffers().first().cloned().unwrap_or_else(|| Buffer::from(&[]));
                let bits = BooleanBuffer::new(buffer, data.offset(), data.len());
                first.extend(bits.iter().map(i64::from));
            }
            Self::Signed(1) => first.extend(values::<i8>(&data)?.iter().map(|&v| i64::from(v))),
            Self::Signed(2) => first.extend(values::<i16>(&data)?.iter().map(|&v| i64::from(v))),
            Self::Signed(4) => first.extend(values::<i32>(&data)?.iter().map(|&v| i64::from(v))),
            Self::Signed(_) => first.extend_from_slice(&values::<i64>(&data)?),
            Self::Unsigned(1) => first.extend(values::<u8>(&data)?.iter().map(|&v| i64::from(v))),
            Self::Unsigned(2) => first.extend(values::<u16>(&data)?.iter().map(|&v| i64::from(v))),
            Self::Unsigned(4) => first.extend(values::<u32>(&data)?.iter().map(|&v| i64::from(v))),
            Self::Unsigned(_) => first.extend(values::<u64>(&data)?.iter().map(|&v| (v ^ SIGN) as i64)),
            Self::Float32 => first.extend(values::<f32>(&data)?.iter().map(|&v| of_double(f64::from(v)))),
            Self::Float64 => first.extend(values::<f64>(&data)?.iter().map(|&v| of_double(v))),
            Self::Wide => {
                let [second, ..] = rest else { return Err(ExecError::internal("wide numbers need two places")) };
                second.clear();
                let values = values::<i128>(&data)?;
                first.extend(values.iter().map(|&v| (v >> 64) as i64));
                second.extend(values.iter().map(|&v| (v as u64 ^ SIGN) as i64));
            }
        }
        Ok(())
    }

    /// The array of a type that such numbers are.
    ///
    /// # Errors
    /// If the type is another.
    pub fn write(self, data_type: &DataType, numbers: &[Vec<i64>], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        if Self::of(data_type) != Some(self) {
            return Err(ExecError::internal(format!("{self:?} were to be written as {data_type}")));
        }
        let [first, rest @ ..] = numbers else { return Err(ExecError::internal("there are no numbers")) };
        let each = first.iter().copied();
        let buffer = match self {
            Self::Bool => BooleanBuffer::from_iter(each.map(|v| v != 0)).into_inner(),
            Self::Signed(1) => each.map(|v| v as i8).collect::<Vec<_>>().into(),
            Self::Signed(2) => each.map(|v| v as i16).collect::<Vec<_>>().into(),
            Self::Signed(4) => each.map(|v| v as i32).collect::<Vec<_>>().into(),
            Self::Signed(_) => first.clone().into(),
            Self::Unsigned(1) => each.map(|v| v as u8).collect::<Vec<_>>().into(),
            Self::Unsigned(2) => each.map(|v| v as u16).collect::<Vec<_>>().into(),
            Self::Unsigned(4) => each.map(|v| v as u32).collect::<Vec<_>>().into(),
            Self::Unsigned(_) => each.map(|v| v as u64 ^ SIGN).collect::<Vec<_>>().into(),
            Self::Float32 => each.map(|v| to_double(v) as f32).collect::<Vec<_>>().into(),
            Self::Float64 => each.map(to_double).collect::<Vec<_>>().into(),
            Self::Wide => {
                let [second, ..] = rest else { return Err(ExecError::internal("half of wide numbers is missing")) };
                let halves = first.iter().zip(second);
                halves.map(|(&high, &low)| wide(high, low)).collect::<Vec<_>>().into()
            }
        };
        let data = ArrayData::builder(data_type.clone()).len(first.len()).add_buffer(buffer).nulls(nulls);
        Ok(make_array(data.build()?))
    }
}

/// A wide number of its halves.
fn wide(high: i64, low: i64) -> i128 {
    i128::from(high) << 64 | i128::from(low as u64 ^ SIGN)
}

fn values<T: ArrowNativeType>(data: &ArrayData) -> Result<ScalarBuffer<T>> {
    let buffer = data.buffers().first().cloned().ok_or_else(|| ExecError::internal("an array without values"))?;
    Ok(ScalarBuffer::new(buffer, data.offset(), data.len()))
}

/// A double as an integer that orders as doubles do, with one zero, and one NaN above all.
pub fn of_double(value: f64) -> i64 {
    let value = if value == 0.0 { 0.0 } else { value };
    let value = if value.is_nan() { f64::NAN.copysign(1.0) } else { value };
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The double of such an integer.
pub fn to_double(number: i64) -> f64 {
    f64::from_bits((number ^ (((number >> 63) as u64) >> 1) as i64) as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
