//! `date_trunc(unit, x)`: the start of the hour, month or century that a time stamp is in.
//!
//! The engine's own reckons in nanoseconds, which end in 1677 and 2262, and takes constants before 1970 to the unit that follows them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion_common::types::{NativeType, logical_date, logical_string};
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err, internal_err, plan_err};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    Coercion, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    TypeSignatureClass, Volatility,
};

const SECONDS_OF_DAY: i64 = 86_400;

/// What a time stamp is taken to the start of.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// So many to a second.
    Part(i64),
    /// So many seconds.
    Seconds(i64),
    Week,
    Months(i64),
}

impl Unit {
    fn of(name: &str) -> Result<Self> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" => Self::Part(1_000_000),
            "millisecond" | "milliseconds" | "ms" => Self::Part(1_000),
            "second" | "seconds" | "sec" | "s" => Self::Seconds(1),
            "minute" | "minutes" | "min" | "m" => Self::Seconds(60),
            "hour" | "hours" | "h" => Self::Seconds(3_600),
            "day" | "days" | "d" => Self::Seconds(SECONDS_OF_DAY),
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" => Self::Months(1),
            "quarter" | "quarters" => Self::Months(3),
            "year" | "years" | "y" => Self::Months(12),
            "decade" | "decades" => Self::Months(120),
            "century" | "centuries" => Self::Months(1_200),
            "millennium" | "millennia" => Self::Months(12_000),
            _ => {
                return exec_err!(
                    "date_trunc: there is no unit {name:?}: there are microsecond, millisecond, second, minute, hour, day, week, \
                     month, quarter, year, decade, century and millennium"
                );
            }
        })
    }

    /// The start of the unit that a moment is in, of so many to a second; `None` if it is beyond what 64 bits hold.
    fn start(self, moment: i64, per_second: i64) -> Option<i64> {
        let multiple = |of: i64| moment.checked_sub(moment.rem_euclid(of));
        let day = per_second.checked_mul(SECONDS_OF_DAY)?;
        match self {
            Self::Part(parts) => multiple((per_second / parts).max(1)),
            Self::Seconds(seconds) => multiple(per_second.checked_mul(seconds)?),
            // 1970 began on a Thursday.
            Self::Week => (moment.div_euclid(day) - (moment.div_euclid(day) + 3).rem_euclid(7)).checked_mul(day),
            Self::Months(months) => {
                let month = month_of(moment.div_euclid(day));
                first_day(month - month.rem_euclid(months)).checked_mul(day)
            }
        }
    }
}

/// Days from the first of March of the year 0, with which a leap day is the last of its year, to 1970.
const FROM_MARCH: i64 = 719_468;
/// Days of 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;

/// The month that a day since 1970 is in, counted from January of the year 0.
fn month_of(day: i64) -> i64 {
    let (era, of_era) = ((day + FROM_MARCH).div_euclid(ERA), (day + FROM_MARCH).rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    (era * 400 + year) * 12 + (5 * of_year + 2) / 153 + 2
}

/// The first day of a month, since 1970.
fn first_day(month: i64) -> i64 {
    let from_march = month - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 - FROM_MARCH
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The same where clocks are set by a zone. Parts of minutes are alike everywhere.
fn start_in(unit: Unit, moment: i64, per_second: i64, zone: Tz) -> Option<i64> {
    let seconds = moment.div_euclid(per_second);
    let offset = zone.offset_from_utc_datetime(&DateTime::from_timestamp(seconds, 0)?.naive_utc()).fix();
    let ahead = i64::from(offset.local_minus_utc());
    let start = unit.start(moment.checked_add(ahead.checked_mul(per_second)?)?, per_second)?;
    let (second, rest) = (start.div_euclid(per_second), start.rem_euclid(per_second));
    let local = DateTime::from_timestamp(second, 0)?.naive_utc();
    let of = |local: NaiveDateTime| match zone.from_local_datetime(&local) {
        LocalResult::Single(one) => Some(one.timestamp()),
        // The hour that comes twice: the one that the moment is in.
        LocalResult::Ambiguous(one, other) => {
            Some(if one.offset().fix() == offset { one.timestamp() } else { other.timestamp() })
        }
        LocalResult::None => None,
    };
    let second = match of(local) {
        Some(second) => second,
        // An hour that is left out, as midnight is in some places: the moment at which clocks skip it.
        None => of(local.checked_sub_signed(TimeDelta::hours(3))?)? + 3 * 3_600,
    };
    second.checked_mul(per_second)?.checked_add(rest)
}

/// `date_trunc`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Truncated {
    signature: Signature,
    aliases: Vec<String>,
    /// For times of day.
    engine: Arc<ScalarUDF>,
}

impl Truncated {
    pub(super) fn new() -> Self {
        let name = || Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
        let others = vec![TypeSignatureClass::Native(logical_string()), TypeSignatureClass::Native(logical_date())];
        let moment = NativeType::Timestamp(TimeUnit::Microsecond, None);
        let moment = Coercion::new_implicit(TypeSignatureClass::Timestamp, others, moment);
        let time = Coercion::new_exact(TypeSignatureClass::Time);
        let signatures =
            vec![TypeSignature::Coercible(vec![name(), moment]), TypeSignature::Coercible(vec![name(), time])];
        Self {
            signature: Signature::one_of(signatures, Volatility::Immutable),
            aliases: vec!["datetrunc".to_owned()],
            engine: datafusion_functions::datetime::date_trunc(),
        }
    }
}

impl ScalarUDFImpl for Truncated {
    fn name(&self) -> &'static str {
        "date_trunc"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, DataType::Null] => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            [_, of] => Ok(of.clone()),
            _ => plan_err!("date_trunc: takes a unit and a time stamp"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [name, of] = args.args.as_slice() else { return internal_err!("date_trunc: takes two arguments") };
        let ColumnarValue::Scalar(name) = name else {
            return exec_err!("date_trunc: its unit is a constant, not a column");
        };
        let Some(Some(name)) = name.try_as_str() else { return exec_err!("date_trunc: its unit is a text, not NULL") };
        let data_type = of.data_type();
        let DataType::Timestamp(unit, zone) = &data_type else {
            return match data_type {
                DataType::Null => Ok(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(None, None))),
                _ => self.engine.inner().invoke_with_args(args),
            };
        };
        let (name, zone) = (Unit::of(name)?, zone.as_deref());
        let zone = match zone.filter(|zone| !matches!(*zone, "UTC" | "+00:00")) {
            Some(zone) => Some(zone.parse::<Tz>()?),
            None => None,
        };
        let one = matches!(of, ColumnarValue::Scalar(_));
        let moments = of.to_array(args.number_rows)?;
        let starts: ArrayRef = match unit {
            TimeUnit::Second => Arc::new(starts::<TimestampSecondType>(&moments, name, zone)?),
            TimeUnit::Millisecond => Arc::new(starts::<TimestampMillisecondType>(&moments, name, zone)?),
            TimeUnit::Microsecond => Arc::new(starts::<TimestampMicrosecondType>(&moments, name, zone)?),
            TimeUnit::Nanosecond => Arc::new(starts::<TimestampNanosecondType>(&moments, name, zone)?),
        };
        Ok(match one && !starts.is_empty() {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&starts, 0)?),
            false => ColumnarValue::Array(starts),
        })
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match input {
            [name, of] if name.sort_properties == SortProperties::Singleton => of.sort_properties,
            _ => SortProperties::Unordered,
        })
    }
}

fn starts<T: ArrowTimestampType>(moments: &ArrayRef, unit: Unit, zone: Option<Tz>) -> Result<PrimitiveArray<T>> {
    let per_second = per_second(T::UNIT);
    let beyond = || -> DataFusionError { exec_datafusion_err!("date_trunc: a time stamp is out of range") };
    let zone = zone.filter(|_| !matches!(unit, Unit::Part(_) | Unit::Seconds(1 | 60)));
    let starts: PrimitiveArray<T> = moments.as_primitive::<T>().try_unary(|moment| match zone {
        None => unit.start(moment, per_second).ok_or_else(beyond),
        Some(zone) => start_in(unit, moment, per_second, zone).ok_or_else(beyond),
    })?;
    Ok(starts.with_data_type(moments.data_type().clone()))
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::*;

    #[test]
    fn months_are_those_of_the_calendar() {
        for day in (-200_000_000..200_000_000_i32).step_by(99_991).chain(-800_000..800_000) {
            let Some(date) = NaiveDate::from_epoch_days(day) else { continue };
            let month = i64::from(date.year()) * 12 + i64::from(date.month0());
            assert_eq!(month_of(day.into()), month, "{date}");
            let first = date.with_day(1).map(|first| i64::from(first.to_epoch_days()));
            assert_eq!(Some(first_day(month)), first, "{date}");
        }
    }

    #[test]
    fn starts_are_at_or_before_a_moment() {
        let units =
            ["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"];
        for name in units.into_iter().chain(["decade", "century", "millennium"]) {
            let Ok(unit) = Unit::of(name) else { panic!("{name}") };
            for moment in
                [-62_135_596_800_000_001, -500, -1, 0, 1, 999, 1_000, 951_782_400_000_000, 253_402_300_799_999_999]
            {
                let start = unit.start(moment, 1_000_000);
                assert!(start.is_some_and(|start| start <= moment), "{name} of {moment}: {start:?}");
                assert_eq!(start.and_then(|start| unit.start(start, 1_000_000)), start, "{name} of {moment}");
            }
            assert!(unit.start(i64::MIN, 1).is_none_or(|start| start == i64::MIN), "{name} before all time");
        }
        // 1969-12-31 was a Wednesday.
        assert_eq!(Unit::Week.start(-1, 1), Some(-3 * SECONDS_OF_DAY));
        assert_eq!(Unit::Part(1_000).start(-500, 1_000_000), Some(-1_000));
    }
}
