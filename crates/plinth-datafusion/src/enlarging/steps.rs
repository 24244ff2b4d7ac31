//! `range` and `generate_series` of dates, and steps that lead nowhere.
//!
//! The engine takes a step from the end of a range of dates, which leaves out dates before the end, and goes on for ever by a step of a
//! month less thirty days.

use std::sync::Arc;

use arrow_array::builder::{Date32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};

/// The lists of a function of dates; `None` if they are of something else.
///
/// # Errors
/// If a step leads nowhere, whatever it is taken from.
pub(super) fn between(name: &str, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
    let [start, stop, step] = args.args.as_slice() else { return Ok(None) };
    if !matches!(step.data_type(), DataType::Interval(_)) {
        return Ok(None);
    }
    let is_one = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if is_one { 1 } else { args.number_rows };
    let steps = arrow_cast::cast(&step.to_array(rows)?, &DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano))?;
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
    for step in steps.iter().flatten() {
        let signs = [i64::from(step.months), i64::from(step.days), step.nanoseconds].map(i64::signum);
        if signs.contains(&1) && signs.contains(&-1) {
            return exec_err!("{name}: a step is forwards or backwards in all its parts, unlike {step:?}");
        }
    }
    if start.data_type() != DataType::Date32 || stop.data_type() != DataType::Date32 {
        return Ok(None);
    }
    let (starts, stops) = (start.to_array(rows)?, stop.to_array(rows)?);
    let (starts, stops) = (starts.as_primitive::<Date32Type>(), stops.as_primitive::<Date32Type>());
    let mut lists = ListBuilder::new(Date32Builder::new());
    for row in 0..rows {
        if starts.is_null(row) || stops.is_null(row) || steps.is_null(row) {
            lists.append_null();
            continue;
        }
        let (start, stop, step) = (starts.value(row), stops.value(row), steps.value(row));
        if step.months == 0 && step.days == 0 {
            return exec_err!("{name}: a step between dates is a day or more");
        }
        let is_back = step.months < 0 || step.days < 0;
        let is_last = |date: i32| date == stop && name == "generate_series";
        let is_before = |date: i32| if is_back { date > stop } else { date < stop };
        let mut next = Some(start);
        while let Some(date) = next.filter(|date| is_before(*date) || is_last(*date)) {
            lists.values().append_value(date);
            next = Date32Type::add_month_day_nano_opt(date, step);
        }
        lists.append(true);
    }
    let lists = Arc::new(lists.finish()) as ArrayRef;
    Ok(Some(match is_one {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?),
        false => ColumnarValue::Array(lists),
    }))
}
