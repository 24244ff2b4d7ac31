//! Functions of dates and times.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, IntervalMonthDayNanoType, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, IntervalMonthDayNanoArray, ListArray, TimestampMicrosecondArray};
use arrow_buffer::OffsetBuffer;
use arrow_cast::display::FormatOptions;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, Datelike, NaiveDateTime};
use datafusion_common::{Result, exec_datafusion_err, exec_err};
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};

use super::simple::Simple;

/// What can't be cast is an error.
const FAILS: CastOptions<'static> = CastOptions { safe: false, format_options: FormatOptions::new() };

const MOMENT: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let exact = |types: Vec<DataType>| Signature::exact(types, Volatility::Immutable);
    let any = |count| Signature::any(count, Volatility::Immutable);
    let either = |one: Vec<DataType>, other: Vec<DataType>| {
        Signature::one_of(vec![TypeSignature::Exact(one), TypeSignature::Exact(other)], Volatility::Immutable)
    };
    let interval = |_: &[DataType]| Ok(DataType::Interval(IntervalUnit::MonthDayNano));
    vec![
        Simple::new("strptime", any(2), |_| Ok(MOMENT), |args| parsed(args, true)).udf(),
        Simple::new("try_strptime", any(2), |_| Ok(MOMENT), |args| parsed(args, false)).udf(),
        Simple::new("epoch_ms", any(1), of_milliseconds, milliseconds).udf(),
        Simple::new("plinth_moment", any(1), |_| Ok(in_utc()), of_seconds).udf(),
        // A format may come first, as in SQLite.
        Simple::new(
            "strftime",
            either(vec![MOMENT, DataType::Utf8], vec![DataType::Utf8, MOMENT]),
            |_| Ok(DataType::Utf8),
            written,
        )
        .udf(),
        Simple::new("plinth_age", exact(vec![MOMENT, MOMENT]), interval, age).udf(),
    ]
}

fn moment(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|moment| moment.naive_utc())
}

/// The items of a format that are alike here and elsewhere.
fn items(format: &str) -> Result<Vec<Item<'_>>> {
    // As C has them: %f is of six digits, %g of three, %n of nine.
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%'
            && let Some(of) = letters.next()
        {
            let known = if of == '-' {
                letters.next().is_some_and(|of| "dmHIMSyj".contains(of))
            } else {
                "aAwudbBmyYHIpMSfzZjUWcxX%GV".contains(of)
            };
            if !known {
                return exec_err!("{format:?}: %{of} is not supported in a format");
            }
        }
    }
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.contains(&Item::Error) {
        return exec_err!("{format:?}: is no format of dates, such as %Y-%m-%d %H:%M:%S");
    }
    Ok(items)
}

/// `%f` has six digits behind no dot, as C has it.
fn micros(format: &str) -> String {
    format.split("%%").map(|part| part.replace("%f", "%6f")).collect::<Vec<_>>().join("%%")
}

fn written(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [one, other] = args else { return exec_err!("strftime: takes a time and a format") };
    let (times, formats) = if one.data_type() == &MOMENT { (one, other) } else { (other, one) };
    let (times, formats) = (times.as_primitive::<TimestampMicrosecondType>(), formats.as_string::<i32>());
    let mut out = StringBuilder::new();
    let mut known: Option<(String, String)> = None;
    for row in 0..times.len() {
        if times.is_null(row) || formats.is_null(row) {
            out.append_null();
            continue;
        }
        let format = formats.value(row);
        if known.as_ref().is_none_or(|(text, _)| text != format) {
            items(format)?;
            known = Some((format.to_owned(), micros(format)));
        }
        let Some(time) = moment(times.value(row)) else { return exec_err!("strftime: the time is out of range") };
        let format = known.as_ref().map_or(format, |(_, format)| format);
        if format.contains("%z") || format.contains("%Z") {
            out.append_value(time.and_utc().format(format).to_string());
        } else {
            out.append_value(time.format(format).to_string());
        }
    }
    Ok(Arc::new(out.finish()))
}

/// What `epoch_ms` gives: a point in time of a number, else a number.
fn of_milliseconds(types: &[DataType]) -> Result<DataType> {
    Ok(if matches!(types, [of] if of.is_integer()) { MOMENT } else { DataType::Int64 })
}

/// Milliseconds since 1970, there and back.
fn milliseconds(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [of] = args else { return exec_err!("epoch_ms: takes a time or a number of milliseconds") };
    if of.data_type().is_integer() {
        let numbers = cast_with_options(of, &DataType::Int64, &FAILS)?;
        let moments = numbers.as_primitive::<Int64Type>().try_unary::<_, TimestampMicrosecondType, _>(|number| {
            number.checked_mul(1_000).ok_or_else(|| exec_datafusion_err!("epoch_ms: {number} ms are out of range"))
        })?;
        return Ok(Arc::new(moments));
    }
    let micros = match of.data_type() {
        // A month has 30 days, as DuckDB has it.
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let of = of.as_primitive::<IntervalMonthDayNanoType>();
            of.try_unary::<_, Int64Type, _>(|of| {
                let days = i64::from(of.months) * 30 + i64::from(of.days);
                let micros = days.checked_mul(86_400_000_000).and_then(|days| days.checked_add(of.nanoseconds / 1_000));
                micros.ok_or_else(|| exec_datafusion_err!("epoch_ms: the interval is out of range"))
            })?
        }
        _ => cast(&cast_with_options(of, &MOMENT, &FAILS)?, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
    };
    // The nearest, halves away from 1970.
    let nearest = |micros: i64| {
        let (whole, rest) = (micros / 1_000, micros % 1_000);
        whole + if rest.abs() >= 500 { rest.signum() } else { 0 }
    };
    Ok(Arc::new(micros.unary::<_, Int64Type>(nearest)))
}

fn in_utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// `to_timestamp(x)`: the point in time of seconds since 1970, or of a text.
fn of_seconds(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [of] = args else { return exec_err!("to_timestamp: takes seconds since 1970, or a text") };
    let beyond = |seconds: &dyn std::fmt::Display| {
        exec_datafusion_err!("to_timestamp: {seconds} seconds are out of range; epoch_ms takes milliseconds")
    };
    let moments = match of.data_type() {
        whole if whole.is_integer() => {
            let seconds = cast_with_options(of, &DataType::Int64, &FAILS)?;
            seconds.as_primitive::<Int64Type>().try_unary::<_, TimestampMicrosecondType, _>(|seconds| {
                let micros = seconds.checked_mul(1_000_000).filter(|micros| moment(*micros).is_some());
                micros.ok_or_else(|| beyond(&seconds))
            })?
        }
        number if number.is_floating() || number.is_decimal() => {
            let seconds = cast(of, &DataType::Float64)?;
            seconds.as_primitive::<Float64Type>().try_unary::<_, TimestampMicrosecondType, _>(|seconds| {
                let micros = (seconds * 1e6).round();
                // Beyond it a cast would give the nearest that there is.
                let micros = if micros.abs() < 9e18 { Some(as_whole(micros)) } else { None };
                micros.filter(|micros| moment(*micros).is_some()).ok_or_else(|| beyond(&seconds))
            })?
        }
        _ => return Ok(cast_with_options(of, &in_utc(), &FAILS)?),
    };
    Ok(Arc::new(moments.with_data_type(in_utc())))
}

#[expect(clippy::cast_possible_truncation, reason = "its range was looked at")]
const fn as_whole(number: f64) -> i64 {
    number as i64
}

fn parsed(args: &[ArrayRef], strict: bool) -> Result<ArrayRef> {
    let [texts, formats] = args else { return exec_err!("strptime: takes a text and a format, or a list of formats") };
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let lists = match formats.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            cast(formats, &DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))?
        }
        _ => {
            // Each a list of one.
            let formats = cast(formats, &DataType::Utf8)?;
            let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
            let lengths = OffsetBuffer::from_repeated_length(1, formats.len());
            Arc::new(ListArray::try_new(field, lengths, formats, None)?)
        }
    };
    let lists = lists.as_list::<i32>();
    let mut out = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        if texts.is_null(row) || lists.is_null(row) {
            out.push(None);
            continue;
        }
        let (text, formats) = (texts.value(row), lists.value(row));
        let formats: Vec<&str> = formats.as_string::<i32>().iter().flatten().collect();
        let mut found = None;
        for format in &formats {
            items(format)?;
            found = found.or_else(|| point(text, &micros(format)));
        }
        match found {
            Some(found) => out.push(Some(found.and_utc().timestamp_micros())),
            None if strict && !formats.is_empty() => {
                return exec_err!("strptime: {text:?} is not of the form {:?}", formats.join(", "));
            }
            None => out.push(None),
        }
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(out)))
}

/// The point in time that a text tells.
fn point(text: &str, format: &str) -> Option<NaiveDateTime> {
    match format.contains("%z") {
        true => DateTime::parse_from_str(text, format).ok().map(|moment| moment.naive_utc()),
        false => local(text, format),
    }
}

/// A time that a text tells: minutes that it does not are none, an hour of twelve is one of the morning. Without a time of day it is
/// midnight, and what a date lacks is that of the first of January 1900.
fn local(text: &str, format: &str) -> Option<NaiveDateTime> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, StrftimeItems::new(format)).ok()?;
    // Two digits are a year from 1969 on, as C has it; the parser has 2069.
    if parsed.year().is_none() && parsed.year_div_100().is_none() && parsed.year_mod_100() == Some(69) {
        parsed.set_year_div_100(19).ok()?;
    }
    let of_weeks = [parsed.isoyear(), parsed.isoyear_mod_100()].iter().any(Option::is_some)
        || [parsed.isoweek(), parsed.week_from_sun(), parsed.week_from_mon()].iter().any(Option::is_some);
    if !of_weeks {
        if parsed.year().is_none() && parsed.year_div_100().is_none() && parsed.year_mod_100().is_none() {
            parsed.set_year(1900).ok()?;
        }
        if parsed.ordinal().is_none() {
            if parsed.month().is_none() {
                parsed.set_month(1).ok()?;
            }
            if parsed.day().is_none() {
                parsed.set_day(1).ok()?;
            }
        }
    }
    let has_time = parsed.hour_mod_12().is_some();
    if has_time && parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }
    if has_time && parsed.hour_div_12().is_none() {
        parsed.set_ampm(false).ok()?;
    }
    let has_time = has_time || parsed.minute().is_some() || parsed.second().is_some();
    match parsed.to_naive_datetime_with_offset(0) {
        Ok(time) => Some(time),
        Err(_) if has_time => None,
        Err(_) => parsed.to_naive_date().ok()?.and_hms_opt(0, 0, 0),
    }
}

/// Years and months, then days, then the rest: as a calendar has them.
fn age(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [ends, starts] = args else { return exec_err!("age: takes two times") };
    let (ends, starts) =
        (ends.as_primitive::<TimestampMicrosecondType>(), starts.as_primitive::<TimestampMicrosecondType>());
    let mut out = Vec::with_capacity(ends.len());
    for row in 0..ends.len() {
        if ends.is_null(row) || starts.is_null(row) {
            out.push(None);
            continue;
        }
        let (Some(end), Some(start)) = (moment(ends.value(row)), moment(starts.value(row))) else {
            return exec_err!("age: a time is out of range");
        };
        let (sign, from, to) = if start <= end { (1, start, end) } else { (-1, end, start) };
        let Some((months, days, nanos)) = between(from, to) else { return exec_err!("age: a time is out of range") };
        out.push(Some(arrow_buffer::IntervalMonthDayNano::new(sign * months, sign * days, i64::from(sign) * nanos)));
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(out)))
}

/// The difference of each field of a time and a later one, as PostgreSQL has it: a month that is borrowed has the days of the
/// earlier one's.
fn between(from: NaiveDateTime, to: NaiveDateTime) -> Option<(i32, i32, i64)> {
    let months = |time: NaiveDateTime| time.year() * 12 + time.month0().cast_signed();
    let (mut months, mut days) = (months(to) - months(from), to.day().cast_signed() - from.day().cast_signed());
    let mut rest = to.time() - from.time();
    if rest < chrono::Duration::zero() {
        rest += chrono::Duration::days(1);
        days -= 1;
    }
    while days < 0 {
        days += i32::from(from.num_days_in_month());
        months -= 1;
    }
    Some((months, days, rest.num_nanoseconds()?))
}
