//! Text to values of one type, strictly: a value that the type does not hold exactly as it is spelled is refused.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringViewBuilder,
};
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, ScalarBuffer, i256};
use arrow_cast::parse;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::decimal::decimal;
use super::number::{Form, OUTSIDE, Why, boolean, float, form, whole_number};
use super::time;

/// Collects the values of a column.
pub(crate) trait ColumnBuilder: Send {
    /// Appends a value, or nothing if it is refused.
    fn push(&mut self, text: &str) -> Result<(), Why>;
    /// Appends a null.
    fn push_null(&mut self);
    /// Gives what was appended and starts afresh.
    fn finish(&mut self) -> ArrayRef;
}

/// How JSON spells the values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Anything; what is no string stays as JSON has it.
    Text,
    Number,
    Bool,
    /// A string.
    Quoted,
}

/// How JSON spells the values of a type.
pub(crate) fn spelling(data_type: &DataType) -> Spelling {
    match data_type {
        DataType::Utf8View => Spelling::Text,
        DataType::Boolean => Spelling::Bool,
        t if t.is_numeric() => Spelling::Number,
        DataType::Duration(_) => Spelling::Number,
        _ => Spelling::Quoted,
    }
}

/// A column of a type, or `None` if text can't become that type. With a type that was `given`, spellings are accepted
/// that inference would take for text: spaces around a value, leading zeros, a plus. Until it has values it takes no room:
/// there may be very many columns.
pub(crate) fn column_builder(data_type: &DataType, given: bool) -> Option<Box<dyn ColumnBuilder>> {
    use DataType::*;
    Some(match data_type {
        Boolean => Box::new(Booleans { builder: BooleanBuilder::with_capacity(0), given }),
        Int8 => integers::<Int8Type>(given),
        Int16 => integers::<Int16Type>(given),
        Int32 => integers::<Int32Type>(given),
        Int64 => integers::<Int64Type>(given),
        UInt8 => integers::<UInt8Type>(given),
        UInt16 => integers::<UInt16Type>(given),
        UInt32 => integers::<UInt32Type>(given),
        UInt64 => integers::<UInt64Type>(given),
        Float16 => parsed::<Float16Type>(data_type, given, move |text| {
            let value = float::<f32>(text, given)?;
            let half = <Float16Type as ArrowPrimitiveType>::Native::from_f32(value);
            if half.is_infinite() && value.is_finite() { Err("outside the range of the type".into()) } else { Ok(half) }
        }),
        Float32 => parsed::<Float32Type>(data_type, given, move |text| float(text, given)),
        Float64 => parsed::<Float64Type>(data_type, given, move |text| float(text, given)),
        Decimal32(p, s) => decimals::<Decimal32Type>(data_type, given, *p, *s, |v| i32::try_from(v.to_i128()?).ok()),
        Decimal64(p, s) => decimals::<Decimal64Type>(data_type, given, *p, *s, |v| i64::try_from(v.to_i128()?).ok()),
        Decimal128(p, s) => decimals::<Decimal128Type>(data_type, given, *p, *s, i256::to_i128),
        Decimal256(p, s) => decimals::<Decimal256Type>(data_type, given, *p, *s, Some),
        Date32 => parsed::<Date32Type>(data_type, given, date32),
        Date64 => parsed::<Date64Type>(data_type, given, |text| {
            if let Some(days) = time::date(text) {
                return days.checked_mul(86_400_000).ok_or_else(|| "outside the range of the type".into());
            }
            let moment = time::moment(text).filter(|m| !m.zoned).ok_or("not a date such as 2024-12-31")?;
            moment.in_units(1_000).ok_or_else(|| "outside the range or the precision of the type".into())
        }),
        Time32(TimeUnit::Second) => times::<Time32SecondType>(data_type, given, 1, |v| i32::try_from(v).ok()),
        Time32(TimeUnit::Millisecond) => {
            times::<Time32MillisecondType>(data_type, given, 1_000, |v| i32::try_from(v).ok())
        }
        Time64(TimeUnit::Microsecond) => times::<Time64MicrosecondType>(data_type, given, 1_000_000, Some),
        Time64(TimeUnit::Nanosecond) => times::<Time64NanosecondType>(data_type, given, 1_000_000_000, Some),
        Timestamp(TimeUnit::Second, _) => timestamps::<TimestampSecondType>(data_type, given, 1),
        Timestamp(TimeUnit::Millisecond, _) => timestamps::<TimestampMillisecondType>(data_type, given, 1_000),
        Timestamp(TimeUnit::Microsecond, _) => timestamps::<TimestampMicrosecondType>(data_type, given, 1_000_000),
        Timestamp(TimeUnit::Nanosecond, _) => timestamps::<TimestampNanosecondType>(data_type, given, 1_000_000_000),
        Duration(TimeUnit::Second) => integers::<DurationSecondType>(given),
        Duration(TimeUnit::Millisecond) => integers::<DurationMillisecondType>(given),
        Duration(TimeUnit::Microsecond) => integers::<DurationMicrosecondType>(given),
        Duration(TimeUnit::Nanosecond) => integers::<DurationNanosecondType>(given),
        Interval(IntervalUnit::YearMonth) => parsed::<IntervalYearMonthType>(data_type, given, |text| {
            parse::parse_interval_year_month(text).map_err(|_| "not an interval such as 1 year 2 mons".into())
        }),
        Interval(IntervalUnit::DayTime) => parsed::<IntervalDayTimeType>(data_type, given, |text| {
            parse::parse_interval_day_time(text).map_err(|_| "not an interval such as 1 days 2.5 secs".into())
        }),
        Interval(IntervalUnit::MonthDayNano) => parsed::<IntervalMonthDayNanoType>(data_type, given, |text| {
            parse::parse_interval_month_day_nano(text).map_err(|_| "not an interval such as 1 mons 2.5 secs".into())
        }),
        Utf8View => Box::new(Texts(StringViewBuilder::with_capacity(0))),
        BinaryView => Box::new(Binaries(BinaryViewBuilder::with_capacity(0))),
        FixedSizeBinary(width) => {
            let size = usize::try_from(*width).ok()?;
            Box::new(FixedBinaries { builder: FixedSizeBinaryBuilder::with_capacity(0, *width), size })
        }
        _ => return None,
    })
}

/// Values that one function makes of a text each.
struct Parsed<T: ArrowPrimitiveType, F> {
    builder: PrimitiveBuilder<T>,
    given: bool,
    parse: F,
}

impl<T: ArrowPrimitiveType, F: Fn(&str) -> Result<T::Native, Why> + Send> ColumnBuilder for Parsed<T, F> {
    fn push(&mut self, text: &str) -> Result<(), Why> {
        let value = (self.parse)(if self.given { text.trim_ascii() } else { text })?;
        self.builder.append_value(value);
        Ok(())
    }

    fn push_null(&mut self) {
        self.builder.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

fn parsed<T: ArrowPrimitiveType>(
    data_type: &DataType,
    given: bool,
    parse: impl Fn(&str) -> Result<T::Native, Why> + Send + 'static,
) -> Box<dyn ColumnBuilder> {
    let builder = PrimitiveBuilder::<T>::with_capacity(0).with_data_type(data_type.clone());
    Box::new(Parsed { builder, given, parse })
}

fn integers<T: ArrowPrimitiveType>(given: bool) -> Box<dyn ColumnBuilder>
where
    T::Native: FromStr<Err = std::num::ParseIntError>,
{
    parsed::<T>(&T::DATA_TYPE, given, move |text| whole_number::<T>(text, given))
}

fn decimals<T: DecimalType>(
    data_type: &DataType,
    given: bool,
    precision: u8,
    scale: i8,
    narrow: fn(i256) -> Option<T::Native>,
) -> Box<dyn ColumnBuilder> {
    parsed::<T>(data_type, given, move |text| {
        if !given && form(text) != Some(Form::Integer) {
            return Err("not a whole number".into());
        }
        let unscaled = decimal(text, precision, scale)?;
        narrow(unscaled).ok_or_else(|| "outside the range of the type".into())
    })
}

fn times<T: ArrowPrimitiveType>(
    data_type: &DataType,
    given: bool,
    per_second: i64,
    narrow: fn(i64) -> Option<T::Native>,
) -> Box<dyn ColumnBuilder> {
    parsed::<T>(data_type, given, move |text| {
        let nanos = time::time(text).ok_or("not a time such as 23:59:59.5")?;
        let unit = 1_000_000_000 / per_second;
        let whole = nanos % unit == 0;
        let value = narrow(nanos / unit).filter(|_| whole);
        value.ok_or_else(|| "a fraction of a second with more digits than the type holds".into())
    })
}

fn timestamps<T: ArrowTimestampType>(data_type: &DataType, given: bool, per_second: i64) -> Box<dyn ColumnBuilder> {
    let zoned = matches!(data_type, DataType::Timestamp(_, Some(_)));
    parsed::<T>(data_type, given, move |text| {
        let moment = time::moment(text).ok_or("not a timestamp such as 2024-12-31T23:59:59.5")?;
        match (zoned, moment.zoned) {
            (true, false) => Err("a timestamp without a zone (Z or +02:00) where one is needed".into()),
            (false, true) => Err("a timestamp with a zone where the type has none".into()),
            _ => moment.in_units(per_second).ok_or_else(|| "outside the range or the precision of the type".into()),
        }
    })
}

/// A date as days since 1970-01-01.
pub(crate) fn date32(text: &str) -> Result<i32, Why> {
    let days = time::date(text).ok_or("not a date such as 2024-12-31")?;
    i32::try_from(days).map_err(|_| OUTSIDE.into())
}

struct Booleans {
    builder: BooleanBuilder,
    given: bool,
}

impl ColumnBuilder for Booleans {
    fn push(&mut self, text: &str) -> Result<(), Why> {
        let value = match text.trim_ascii() {
            "t" | "T" | "1" if self.given => Some(true),
            "f" | "F" | "0" if self.given => Some(false),
            trimmed => boolean(if self.given { trimmed } else { text }),
        };
        self.builder.append_value(value.ok_or("neither true nor false")?);
        Ok(())
    }

    fn push_null(&mut self) {
        self.builder.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

/// Values from which on the first block of bytes that a builder takes is no waste.
const MANY: usize = 1_024;

/// An array of views, without room for more where its values are few: there may be very many such columns.
pub(crate) fn fitted<T: ByteViewType>(mut array: GenericByteViewArray<T>) -> ArrayRef {
    if array.len() < MANY {
        array.shrink_to_fit();
    }
    Arc::new(array)
}

struct Texts(StringViewBuilder);

impl ColumnBuilder for Texts {
    fn push(&mut self, text: &str) -> Result<(), Why> {
        self.0.try_append_value(text).map_err(|_| "longer than text may be".into())
    }

    fn push_null(&mut self) {
        self.0.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        fitted(self.0.finish())
    }
}

/// Bytes as two hexadecimal digits each.
fn hex(text: &str) -> Result<Vec<u8>, Why> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect::<Option<_>>().ok_or_else(|| "not bytes in hexadecimal".into())
}

struct Binaries(BinaryViewBuilder);

impl ColumnBuilder for Binaries {
    fn push(&mut self, text: &str) -> Result<(), Why> {
        self.0.try_append_value(hex(text)?).map_err(|_| "longer than bytes may be".into())
    }

    fn push_null(&mut self) {
        self.0.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        fitted(self.0.finish())
    }
}

struct FixedBinaries {
    builder: FixedSizeBinaryBuilder,
    size: usize,
}

impl ColumnBuilder for FixedBinaries {
    fn push(&mut self, text: &str) -> Result<(), Why> {
        let bytes = hex(text)?;
        if bytes.len() != self.size {
            return Err(format!("{} bytes where {} are needed", bytes.len(), self.size).into());
        }
        self.builder.append_value(bytes).map_err(|e| e.to_string().into())
    }

    fn push_null(&mut self) {
        self.builder.append_null();
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

/// Text values as values of a type, as strictly as those of text files.
pub(crate) fn strict_text(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, String> {
    let texts = arrow_cast::cast(values, &DataType::Utf8View).map_err(|e| e.to_string())?;
    let texts = arrow_array::cast::AsArray::as_string_view(&texts);
    let mut column = column_builder(data_type, true).ok_or_else(|| format!("text can't become {data_type}"))?;
    for at in 0..texts.len() {
        match texts.is_valid(at) {
            true => column
                .push(texts.value(at))
                .map_err(|why| format!("{why}: {}", crate::error::excerpt(texts.value(at).as_bytes())))?,
            false => column.push_null(),
        }
    }
    Ok(column.finish())
}

/// The values since the last batch. The next batch is likely to have as many.
pub(crate) fn taken<T: ArrowNativeType>(values: &mut Vec<T>) -> ScalarBuffer<T> {
    let room = Vec::with_capacity(values.len());
    ScalarBuffer::from(std::mem::replace(values, room))
}

#[cfg(test)]
mod tests;
