//! Text to values of one type, strictly: a value that the type does not hold exactly as it is spelled is refused.

use std::borrow::Cow;
use std::num::IntErrorKind;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringViewBuilder,
};
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_buffer::i256;
use arrow_cast::parse;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::time;

/// Why a value was refused.
pub(crate) type Why = Cow<'static, str>;

/// Integers that a double holds exactly, with all their neighbours.
pub(crate) const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// Collects the values of a column.
pub(crate) trait Column: Send {
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

/// A number as inference and columns with inferred types understand it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Digits, without a leading zero or plus (those tend to be codes and telephone numbers).
    Integer,
    /// With a point or an exponent.
    Float,
    /// Not a number, or an infinity.
    Special,
}

/// Whether a text is a number.
pub(crate) fn form(text: &str) -> Option<Form> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(unsigned);
    let leading_zero = whole > 1 && unsigned.starts_with('0');
    if whole == unsigned.len() && whole > 0 {
        // Minus zero is none of the integers.
        return (!leading_zero).then_some(if text == "-0" { Form::Float } else { Form::Integer });
    }
    if matches!(text, "NaN" | "inf" | "-inf" | "Infinity" | "-Infinity") {
        return Some(Form::Special);
    }
    let mut rest = unsigned.get(whole..)?;
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix('.') {
        fraction = digits(after);
        rest = after.get(fraction..)?;
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let after = after.strip_prefix(['+', '-']).unwrap_or(after);
        let exponent = digits(after);
        if exponent == 0 {
            return None;
        }
        rest = after.get(exponent..)?;
    }
    (rest.is_empty() && whole + fraction > 0 && !leading_zero).then_some(Form::Float)
}

/// A column of a type, or `None` if text can't become that type. With a type that was `given`, spellings are accepted
/// that inference would take for text: spaces around a value, leading zeros, a plus. Until it has values it takes no room:
/// there may be very many columns.
pub(crate) fn column(data_type: &DataType, given: bool) -> Option<Box<dyn Column>> {
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

impl<T: ArrowPrimitiveType, F: Fn(&str) -> Result<T::Native, Why> + Send> Column for Parsed<T, F> {
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
) -> Box<dyn Column> {
    let builder = PrimitiveBuilder::<T>::with_capacity(0).with_data_type(data_type.clone());
    Box::new(Parsed { builder, given, parse })
}

fn integers<T: ArrowPrimitiveType>(given: bool) -> Box<dyn Column>
where
    T::Native: FromStr<Err = std::num::ParseIntError>,
{
    parsed::<T>(&T::DATA_TYPE, given, move |text| whole_number::<T>(text, given))
}

/// A whole number of a type.
pub(crate) fn whole_number<T: ArrowPrimitiveType>(text: &str, given: bool) -> Result<T::Native, Why>
where
    T::Native: FromStr<Err = std::num::ParseIntError>,
{
    if !given && form(text) != Some(Form::Integer) {
        return Err("not a whole number".into());
    }
    text.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            format!("outside the range of {}", T::DATA_TYPE).into()
        }
        // Unsigned types call a sign an invalid digit.
        _ if form(text) == Some(Form::Integer) => format!("outside the range of {}", T::DATA_TYPE).into(),
        _ => "not a whole number".into(),
    })
}

/// Why a number is refused that is too large for its type.
pub(crate) const OUTSIDE: &str = "outside the range of the type";

/// Why a whole number is refused among doubles.
pub(crate) const LONG_INTEGER: &str = "a whole number with more digits than a Float64 holds";

/// A binary floating-point type.
pub(crate) trait Float: FromStr + Copy {
    fn is_infinite(self) -> bool;
}

impl Float for f32 {
    fn is_infinite(self) -> bool {
        f32::is_infinite(self)
    }
}

impl Float for f64 {
    fn is_infinite(self) -> bool {
        f64::is_infinite(self)
    }
}

/// The nearest value of a type, as its grammar has it.
pub(crate) fn float<T: Float>(text: &str, given: bool) -> Result<T, Why> {
    if !given {
        match form(text) {
            None => return Err("not a number".into()),
            Some(Form::Integer) if !exact_in_double(text) => {
                return Err(LONG_INTEGER.into());
            }
            Some(_) => {}
        }
    }
    let value: T = text.parse().map_err(|_| "not a number")?;
    if value.is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) {
        return Err(OUTSIDE.into());
    }
    Ok(value)
}

/// Whether a double holds an integer, and all smaller ones, exactly.
pub(crate) fn exact_in_double(integer: &str) -> bool {
    integer.parse::<i64>().is_ok_and(|value| value.unsigned_abs() <= EXACT_IN_DOUBLE)
}

fn decimals<T: DecimalType>(
    data_type: &DataType,
    given: bool,
    precision: u8,
    scale: i8,
    narrow: fn(i256) -> Option<T::Native>,
) -> Box<dyn Column> {
    parsed::<T>(data_type, given, move |text| {
        if !given && form(text) != Some(Form::Integer) {
            return Err("not a whole number".into());
        }
        let unscaled = decimal(text, precision, scale)?;
        narrow(unscaled).ok_or_else(|| "outside the range of the type".into())
    })
}

/// Digits that 64 bits hold, whichever they are.
const SHORT: usize = 18;

/// A decimal as most are spelled, times ten to the scale: digits, few enough that 64 bits hold the result, with a point or
/// without. `None` says nothing about it.
#[inline(always)]
fn usual_decimal(text: &str, precision: u8, scale: i8) -> Option<i64> {
    let bytes = text.as_bytes();
    let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let scale = usize::try_from(scale).ok()?;
    let (mut value, mut digits, mut fraction) = (0_i64, 0, None);
    if unsigned.len() > SHORT {
        return None;
    }
    for byte in unsigned {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + i64::from(digit);
            digits += 1;
        } else if *byte == b'.' && fraction.is_none() {
            fraction = Some(digits);
        } else {
            return None;
        }
    }
    let zeros = scale.checked_sub(fraction.map_or(0, |before| digits - before))?;
    // Leading zeros count as digits here, so that nothing is taken that has too many.
    if digits == 0 || digits + zeros > SHORT.min(usize::from(precision)) {
        return None;
    }
    let value = value * 10_i64.pow(u32::try_from(zeros).ok()?);
    Some(if unsigned.len() < bytes.len() { -value } else { value })
}

/// A decimal number times ten to the scale, exactly.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i256, Why> {
    match usual_decimal(text, precision, scale) {
        Some(value) => Ok(i256::from_i128(value.into())),
        None => any_decimal(text, precision, scale),
    }
}

/// The same however it is spelled.
#[inline(never)]
fn any_decimal(text: &str, precision: u8, scale: i8) -> Result<i256, Why> {
    let not_a_number = || Why::from("not a decimal number");
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().map_err(|_| not_a_number())?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(not_a_number());
    }
    if digits.bytes().all(|b| b == b'0') {
        return Ok(i256::ZERO);
    }
    let fraction = i64::try_from(fraction.len()).map_err(|_| not_a_number())?;
    let shift = i64::from(scale) + i64::from(exponent) - fraction;
    let zeros = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    if shift < 0 {
        let kept = digits.len().saturating_sub(zeros);
        if digits.bytes().skip(kept).any(|b| b != b'0') {
            return Err(format!("more than {scale} digits after the point").into());
        }
        digits.truncate(kept);
    }
    let too_long = || Why::from(format!("more than {precision} digits"));
    let significant = digits.trim_start_matches('0');
    let appended = if shift > 0 { zeros } else { 0 };
    if significant.len().saturating_add(appended) > usize::from(precision) {
        return Err(too_long());
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    i256::from_string(&format!("{sign}{significant}{}", "0".repeat(appended))).ok_or_else(too_long)
}

fn times<T: ArrowPrimitiveType>(
    data_type: &DataType,
    given: bool,
    per_second: i64,
    narrow: fn(i64) -> Option<T::Native>,
) -> Box<dyn Column> {
    parsed::<T>(data_type, given, move |text| {
        let nanos = time::time(text).ok_or("not a time such as 23:59:59.5")?;
        let unit = 1_000_000_000 / per_second;
        let whole = nanos % unit == 0;
        let value = narrow(nanos / unit).filter(|_| whole);
        value.ok_or_else(|| "a fraction of a second with more digits than the type holds".into())
    })
}

fn timestamps<T: ArrowTimestampType>(data_type: &DataType, given: bool, per_second: i64) -> Box<dyn Column> {
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
pub(super) fn date32(text: &str) -> Result<i32, Why> {
    let days = time::date(text).ok_or("not a date such as 2024-12-31")?;
    i32::try_from(days).map_err(|_| OUTSIDE.into())
}

struct Booleans {
    builder: BooleanBuilder,
    given: bool,
}

/// The truth value that inference sees in a text.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

impl Column for Booleans {
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
pub(super) fn fitted<T: ByteViewType>(mut array: GenericByteViewArray<T>) -> ArrayRef {
    if array.len() < MANY {
        array.shrink_to_fit();
    }
    Arc::new(array)
}

struct Texts(StringViewBuilder);

impl Column for Texts {
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

impl Column for Binaries {
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

impl Column for FixedBinaries {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms() {
        for (text, expected) in [
            ("0", Some(Form::Integer)),
            ("-12", Some(Form::Integer)),
            ("-0", Some(Form::Float)),
            ("007", None),
            ("+5", None),
            ("", None),
            ("-", None),
            (".", None),
            (".5", Some(Form::Float)),
            ("5.", Some(Form::Float)),
            ("1e5", Some(Form::Float)),
            ("1e", None),
            ("00.5", None),
            ("1.5x", None),
            ("e5", None),
            ("NaN", Some(Form::Special)),
            ("nan", None),
        ] {
            assert_eq!(form(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_outside_the_range_are_refused() {
        let push = |data_type, text| column(&data_type, true).unwrap().push(text).map_err(Cow::into_owned);
        for far in ["+999999999-01-01", "-999999999-01-01"] {
            assert_eq!(push(DataType::Date64, far), Err("outside the range of the type".to_owned()));
            assert_eq!(push(DataType::Date32, far), Err("outside the range of the type".to_owned()));
        }
        assert_eq!(push(DataType::Date64, "+292000000-01-01"), Ok(()));
        assert_eq!(push(DataType::Date64, "+292000000-01-01T00:00"), Ok(()));
        assert_eq!(push(DataType::Date64, "2024-02-30"), Err("not a date such as 2024-12-31".to_owned()));
    }

    #[test]
    fn no_text_and_no_type_panics() {
        use DataType::*;
        let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        let mut types =
            vec![Boolean, Int8, UInt64, Int64, Float16, Float32, Float64, Date32, Date64, Utf8View, BinaryView];
        types.extend([
            Decimal32(9, 9),
            Decimal64(18, -128),
            Decimal128(38, 127),
            Decimal256(76, -128),
            Decimal128(0, 0),
        ]);
        types.extend([FixedSizeBinary(2), FixedSizeBinary(0), FixedSizeBinary(-1), FixedSizeBinary(i32::MAX)]);
        types.extend([IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval));
        for unit in units {
            types.extend([Time32(unit), Time64(unit), Timestamp(unit, None), Duration(unit)]);
            types.push(Timestamp(unit, Some("UTC".into())));
        }
        let nines = "9".repeat(400);
        let (year, nano) = (format!("{nines} years"), format!("0.{nines} secs"));
        let mut texts =
            vec!["", " ", "-", "+", ".", "\u{e9}", "e", "1e999999999999", "-1e-99999", "1e32767", "1e-32768", "0x"];
        texts.extend([
            "+999999999-12-31T23:59:59.999999999-23:59",
            "-999999999-01-01T00:00+23:59",
            "9999-12-31",
            "23:59:60",
        ]);
        texts.extend([
            nines.as_str(),
            &year,
            &nano,
            "-9223372036854775808",
            "9223372036854775807 months",
            "1 year 2 mons",
        ]);
        texts.extend(["-178956970 years -8 mons", "2147483647 years", "9223372036854775807 days", "-2147483649 days"]);
        texts.extend(["1e308 hours", "P1Y", "1-2 3 4:5:6.7", "99999999999:59:59", "-1 week 9223372036854775807 secs"]);
        for data_type in &types {
            for given in [false, true] {
                let Some(mut column) = column(data_type, given) else { continue };
                let taken = texts.iter().filter(|text| column.push(text).is_ok()).count();
                assert_eq!(column.finish().len(), taken, "{data_type}");
            }
        }
        // Such types there are not.
        for unknown in [FixedSizeBinary(-1), Time32(TimeUnit::Nanosecond), Time64(TimeUnit::Second), Null] {
            assert!(column(&unknown, true).is_none(), "{unknown}");
        }
    }

    proptest! {
        #[test]
        fn usual_decimals_are_those_of_any_spelling(
            text in "[-+]?[0-9]{0,12}[.e]?[0-9]{0,8}",
            precision in 1_u8..=38,
            scale in -3_i8..=20,
        ) {
            if let Some(value) = usual_decimal(&text, precision, scale) {
                let any = any_decimal(&text, precision, scale).map_err(Cow::into_owned);
                prop_assert_eq!(any, Ok(i256::from_i128(value.into())), "{}", text);
            }
        }
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        let d = |text, p, s| decimal(text, p, s).ok().and_then(i256::to_i128);
        assert_eq!(d("1.50", 5, 2), Some(150));
        assert_eq!(d("-1.5", 5, 2), Some(-150));
        assert_eq!(d("1.500", 5, 2), Some(150));
        assert_eq!(d("1.505", 5, 2), None);
        assert_eq!(d("1e2", 5, 2), Some(10_000));
        assert_eq!(d("1e3", 5, 2), None);
        assert_eq!(d("99999e-2", 5, 2), Some(99_999));
        assert_eq!(d("1200", 5, -2), Some(12));
        assert_eq!(d("1250", 5, -2), None);
        assert_eq!(d("0e9999", 5, 2), Some(0));
        for bad in ["", ".", "-", "1.2.3", "1 ", "--1", "e5", "1e", "1e99999999"] {
            assert_eq!(d(bad, 38, 2), None, "{bad}");
        }
    }
}
