//! Functions of dates and times.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, IntervalMonthDayNanoArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, Datelike, NaiveDateTime};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};

use super::simple::Simple;

const MOMENT: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let exact = |types: Vec<DataType>| Signature::exact(types, Volatility::Immutable);
    let either = |one: Vec<DataType>, other: Vec<DataType>| {
        Signature::one_of(vec![TypeSignature::Exact(one), TypeSignature::Exact(other)], Volatility::Immutable)
    };
    let interval = |_: &[DataType]| Ok(DataType::Interval(IntervalUnit::MonthDayNano));
    vec![
        Simple::new("strptime", exact(vec![DataType::Utf8, DataType::Utf8]), |_| Ok(MOMENT), |args| parsed(args, true))
            .udf(),
        Simple::new(
            "try_strptime",
            exact(vec![DataType::Utf8, DataType::Utf8]),
            |_| Ok(MOMENT),
            |args| parsed(args, false),
        )
        .udf(),
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

fn parsed(args: &[ArrayRef], strict: bool) -> Result<ArrayRef> {
    let [texts, formats] = args else { return exec_err!("strptime: takes a text and a format") };
    let (texts, formats) = (texts.as_string::<i32>(), formats.as_string::<i32>());
    let mut out = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        if texts.is_null(row) || formats.is_null(row) {
            out.push(None);
            continue;
        }
        let (text, format) = (texts.value(row), formats.value(row));
        items(format)?;
        let format = micros(format);
        let zoned = || DateTime::parse_from_str(text, &format).ok().map(|moment| moment.naive_utc());
        let found = match format.contains("%z") {
            true => zoned(),
            false => local(text, &format),
        };
        match found {
            Some(found) => out.push(Some(found.and_utc().timestamp_micros())),
            None if strict => return exec_err!("strptime: {text:?} is not of the form {:?}", formats.value(row)),
            None => out.push(None),
        }
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(out)))
}

/// A time that a text tells: minutes that it does not are none, an hour of twelve is one of the morning. Without a time of day it is
/// midnight.
fn local(text: &str, format: &str) -> Option<NaiveDateTime> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, StrftimeItems::new(format)).ok()?;
    // Two digits are a year from 1969 on, as C has it; the parser has 2069.
    if parsed.year().is_none() && parsed.year_div_100().is_none() && parsed.year_mod_100() == Some(69) {
        parsed.set_year_div_100(19).ok()?;
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
