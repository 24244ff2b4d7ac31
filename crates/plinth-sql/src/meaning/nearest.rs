//! Casts to types of fewer places, which round: the engine's cut off, and it takes comparisons of what they give for
//! comparisons of what they were given. A number that is too large for a float is an error, where the engine's is infinite.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowTimestampType, Float16Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, TimeUnit};
use datafusion::arrow::compute::nullif;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plinth_datafusion::sql_type_name;

use super::fractions;

/// What is to be cast to a type, rounded for it: floats to the nearest integer, halves to the even one; decimals and time stamps
/// halves away from zero and up. What `fails` not is NULL.
pub(super) fn rounded(expr: Expr, schema: &DFSchema, to: &DataType, fails: bool) -> Result<Transformed<Expr>> {
    if let (Some(value), true) = (written(&expr), to.is_integer()) {
        // A number that is written with a point is a decimal in SQL, whatever the engine takes it for.
        return Ok(Transformed::yes(Expr::Literal(ScalarValue::Float64(Some(value.round())), None)));
    }
    let from = expr.get_type(schema)?;
    let Some(to) = between(&from, to) else { return Ok(Transformed::no(expr)) };
    // A constant is left as one, which comparisons look at.
    if let (Expr::Literal(text, _), DataType::Timestamp(..)) = (&expr, &to)
        && let Some(text) = text.try_as_str()
    {
        let clock = text.and_then(clock).map(|clock| Expr::Literal(ScalarValue::from(clock), None));
        return Ok(clock.map_or(Transformed::no(expr), Transformed::yes));
    }
    // Rounded before, by a view or a statement that is analyzed twice.
    if matches!(&expr, Expr::ScalarFunction(function) if function.func.inner().is::<Nearest>()) {
        return Ok(Transformed::no(expr));
    }
    let function = ScalarUDF::from(Nearest { to, fails, signature: Signature::any(1, Volatility::Immutable) });
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))))
}

/// A number as it stands in the statement.
fn written(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Float64(value), _) => *value,
        Expr::Negative(inner) => written(inner).map(|value| -value),
        _ => None,
    }
}

/// The type that holds all rounded values of a type on their way to another; `None` if nothing is to be rounded.
fn between(from: &DataType, to: &DataType) -> Option<DataType> {
    use DataType::{
        Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64, Interval, LargeUtf8, Time32, Time64,
        Timestamp, Utf8, Utf8View,
    };
    match (from, to) {
        (Float16 | Float32 | Float64, to) if to.is_integer() => Some(from.clone()),
        (Float64, Float32 | Float16)
        | (Float32, Float16)
        | (Utf8 | LargeUtf8 | Utf8View, Float16 | Float32 | Float64) => Some(to.clone()),
        (
            Decimal32(precision, scale)
            | Decimal64(precision, scale)
            | Decimal128(precision, scale)
            | Decimal256(precision, scale),
            to,
        ) => {
            let places = match to {
                Decimal32(_, places) | Decimal64(_, places) | Decimal128(_, places) | Decimal256(_, places) => *places,
                to if to.is_integer() => 0,
                _ => return None,
            };
            let dropped = u8::try_from(scale.checked_sub(places)?).ok().filter(|dropped| *dropped > 0)?;
            // One more digit before the point: 9.9 becomes 10. At least one is dropped behind it, so that it has room.
            let precision = precision.saturating_sub(dropped) + 1;
            Some(match from {
                Decimal32(..) => Decimal32(precision, places),
                Decimal64(..) => Decimal64(precision, places),
                Decimal128(..) => Decimal128(precision, places),
                _ => Decimal256(precision, places),
            })
        }
        (Utf8 | LargeUtf8 | Utf8View, Time32(_) | Time64(_) | Interval(_) | Timestamp(_, None)) => Some(to.clone()),
        (Timestamp(fine, zone), Timestamp(coarse, _)) if per_second(*fine) > per_second(*coarse) => {
            Some(Timestamp(*coarse, zone.clone()))
        }
        _ => None,
    }
}

/// Units of a second.
pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Rounds to a type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nearest {
    to: DataType,
    /// Whether a value that is too large is an error.
    fails: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else { return internal_err!("nearest: of one value") };
        match value {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(self.round(array)?)),
            ColumnarValue::Scalar(value) => {
                let array = self.round(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}

impl Nearest {
    fn round(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match self.to {
            DataType::Time32(_) | DataType::Time64(_) => {
                return self.texts(array, is_time, "write hours, minutes and seconds, 00:00:00 to 23:59:59.999999999");
            }
            DataType::Interval(_) => return self.texts(array, has_unit, "write a unit, as in '90 minutes'"),
            DataType::Timestamp(..) if array.data_type().is_string() => return self.clocks(array),
            _ => {}
        }
        if !self.to.is_floating() || self.to == *array.data_type() {
            return round(array, &self.to);
        }
        let floats = cast_with_options(array, &self.to, &CastOptions { safe: !self.fails, ..CastOptions::default() })?;
        let (floats, given) = (as_doubles(&floats)?, floats);
        let is_infinite: BooleanArray = floats.iter().map(|float| float.map(f64::is_infinite)).collect();
        if is_infinite.true_count() == 0 {
            return Ok(given);
        }
        // Those that were infinite before stay so.
        let texts = cast(array, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let left: BooleanArray = is_infinite
            .iter()
            .zip(texts)
            .map(|(infinite, text)| Some(infinite? && !text?.contains(['i', 'I'])))
            .collect();
        match (0..left.len()).find(|&row| left.is_valid(row) && left.value(row)) {
            None => Ok(given),
            Some(row) if self.fails => {
                let (text, of) = (texts.value(row), sql_type_name(&self.to));
                exec_err!("'{text}' is no {of}: it is too large")
            }
            Some(_) => Ok(nullif(&given, &left)?),
        }
    }
}

impl Nearest {
    /// Times of day and intervals of text: the engine takes digits for nanoseconds, or months, and gives 24 hours that it can't show.
    fn texts(&self, array: &ArrayRef, is_fine: fn(&str) -> bool, hint: &str) -> Result<ArrayRef> {
        let texts = cast(array, &DataType::Utf8)?;
        let wrong: BooleanArray = texts.as_string::<i32>().iter().map(|text| Some(!is_fine(text?))).collect();
        if let Some(row) = (0..wrong.len()).find(|&row| wrong.is_valid(row) && wrong.value(row))
            && self.fails
        {
            let (text, of) = (texts.as_string::<i32>().value(row), sql_type_name(&self.to));
            return exec_err!("'{text}' is no {of}: {hint}");
        }
        let options = CastOptions { safe: !self.fails, ..CastOptions::default() };
        let mut texts = nullif(&texts, &wrong)?;
        if matches!(self.to, DataType::Interval(_)) {
            let whole = |text: &str| fractions::whole(text).unwrap_or_else(|| text.to_owned());
            texts = Arc::new(texts.as_string::<i32>().iter().map(|text| text.map(whole)).collect::<StringArray>());
        }
        Ok(cast_with_options(&texts, &self.to, &options)?)
    }
}

impl Nearest {
    /// Time stamps of text that have no zone: what the clock says, whatever zone is written behind it. The engine makes it that of UTC.
    fn clocks(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(array, &DataType::Utf8)?;
        let texts: StringArray =
            texts.as_string::<i32>().iter().map(|text| text.map(|text| clock(text).unwrap_or(text))).collect();
        let options = CastOptions { safe: !self.fails, ..CastOptions::default() };
        Ok(cast_with_options(&texts, &self.to, &options)?)
    }
}

/// A time stamp without the zone that is written behind it, as `+02`, `Z` or `Europe/Berlin`; `None` if it has none.
fn clock(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let date = text.find(['T', 't', ' '])? + 1;
    let begins = |(at, letter): (usize, char)| {
        (at > date && (matches!(letter, '+' | '-') || letter.is_alphabetic())).then_some(at)
    };
    let (clock, zone) = text.split_at(text.char_indices().find_map(begins)?);
    let is_zone = zone.trim_end().eq_ignore_ascii_case("z") || zone.trim_end().parse::<Tz>().is_ok();
    is_zone.then(|| clock.trim_end())
}

/// Whether a text says what its numbers count.
fn has_unit(text: &str) -> bool {
    text.trim().parse::<f64>().is_err()
}

/// Whether a text is a time of day, as 9:30, 09:30:00.5 or 9:30 PM.
fn is_time(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let (text, most) = match text.strip_suffix("am").or_else(|| text.strip_suffix("pm")) {
        Some(rest) => (rest.trim_end(), 12),
        None => (text.as_str(), 23),
    };
    let mut parts = text.split(':');
    let mut part = |digits: std::ops::RangeInclusive<usize>, most: u32| {
        let part = parts.next()?;
        let fine = digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        fine.then(|| part.parse::<u32>().ok()).flatten().filter(|number| *number <= most)
    };
    if part(1..=2, most).is_none() || part(2..=2, 59).is_none() {
        return false;
    }
    let Some(seconds) = parts.next() else { return true };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fine = whole.len() == 2 && digits(whole) && whole.parse::<u32>().is_ok_and(|second| second <= 59);
    fine && digits(fraction) && parts.next().is_none()
}

fn as_doubles(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn round(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    Ok(match (array.data_type(), to) {
        (DataType::Float64, _) => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even))
        }
        (DataType::Float32, _) => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even))
        }
        (DataType::Float16, _) => {
            let nearest = |value: <Float16Type as arrow_array::ArrowPrimitiveType>::Native| {
                let nearest = f32::from(value).round_ties_even();
                <Float16Type as arrow_array::ArrowPrimitiveType>::Native::from_f32(nearest)
            };
            Arc::new(array.as_primitive::<Float16Type>().unary::<_, Float16Type>(nearest))
        }
        (DataType::Timestamp(fine, _), DataType::Timestamp(coarse, zone)) => {
            let step = per_second(*fine) / per_second(*coarse);
            let ticks: Int64Array = match fine {
                TimeUnit::Millisecond => ticks::<TimestampMillisecondType>(array, step),
                TimeUnit::Microsecond => ticks::<TimestampMicrosecondType>(array, step),
                TimeUnit::Nanosecond => ticks::<TimestampNanosecondType>(array, step),
                TimeUnit::Second => ticks::<TimestampSecondType>(array, step),
            };
            match coarse {
                TimeUnit::Second => moments::<TimestampSecondType>(&ticks, zone.clone()),
                TimeUnit::Millisecond => moments::<TimestampMillisecondType>(&ticks, zone.clone()),
                TimeUnit::Microsecond => moments::<TimestampMicrosecondType>(&ticks, zone.clone()),
                TimeUnit::Nanosecond => moments::<TimestampNanosecondType>(&ticks, zone.clone()),
            }
        }
        // Between decimals Arrow rounds.
        _ => cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })?,
    })
}

/// How many of a coarser unit a time stamp is nearest to.
fn ticks<T: ArrowTimestampType>(array: &ArrayRef, step: i64) -> Int64Array {
    let nearest = |ticks: i64| {
        let (whole, rest) = (ticks.div_euclid(step), ticks.rem_euclid(step));
        // Beyond half: the next one, which is no larger in number than what there was.
        if rest >= step - rest { whole + 1 } else { whole }
    };
    array.as_primitive::<T>().unary(nearest)
}

fn moments<T: ArrowTimestampType>(ticks: &Int64Array, zone: Option<Arc<str>>) -> ArrayRef {
    Arc::new(ticks.reinterpret_cast::<T>().with_timezone_opt(zone))
}
