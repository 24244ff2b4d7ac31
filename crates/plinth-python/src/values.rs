//! Values of columns as Python's.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PyString, PyTime, PyTuple, PyType, PyTzInfo};

use crate::calendar::date_of;
use crate::error::DataError;

type Values = Vec<Py<PyAny>>;

const DAY: i64 = 86_400_000_000;

/// Rows as tuples.
pub(crate) fn tuples<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let schema = batch.schema();
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let values = values(py, field, column).map_err(|error| named(py, field.name(), error))?;
        columns.push(values.into_iter());
    }
    (0..batch.num_rows())
        .map(|_| PyTuple::new(py, columns.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()))
        .collect()
}

/// An error that says which column it is about.
fn named(py: Python<'_>, column: &str, error: PyErr) -> PyErr {
    match error.is_instance_of::<DataError>(py) {
        true => DataError::new_err(format!("column {column:?}: {}", error.value(py))),
        false => error,
    }
}

/// A column as Python's values, and None where there is none.
fn values(py: Python<'_>, field: &Field, column: &ArrayRef) -> PyResult<Values> {
    let each = |value: &dyn Fn(usize) -> PyResult<Py<PyAny>>| -> PyResult<Values> {
        (0..column.len()).map(|row| if column.is_null(row) { Ok(py.None()) } else { value(row) }).collect()
    };
    macro_rules! primitive {
        ($type:ty, $convert:expr) => {{
            let array = column.as_primitive::<$type>();
            let convert = $convert;
            each(&|row| convert(array.value(row)))
        }};
    }
    macro_rules! plain {
        ($type:ty) => {
            primitive!($type, |value: <$type as ArrowPrimitiveType>::Native| Ok(value
                .into_pyobject(py)?
                .into_any()
                .unbind()))
        };
    }
    let text = |text: &str| Ok(PyString::new(py, text).into_any().unbind());
    let uuid = is_uuid(field);
    let bytes = |bytes: &[u8]| -> PyResult<Py<PyAny>> {
        let value = PyBytes::new(py, bytes);
        if uuid { uuid_of(py, &value) } else { Ok(value.into_any().unbind()) }
    };
    match field.data_type() {
        DataType::Null => Ok((0..column.len()).map(|_| py.None()).collect()),
        DataType::Boolean => {
            let array = column.as_boolean();
            each(&|row| Ok(array.value(row).into_pyobject(py)?.to_owned().into_any().unbind()))
        }
        DataType::Int8 => plain!(Int8Type),
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::UInt8 => plain!(UInt8Type),
        DataType::UInt16 => plain!(UInt16Type),
        DataType::UInt32 => plain!(UInt32Type),
        DataType::UInt64 => plain!(UInt64Type),
        DataType::Float16 => {
            primitive!(Float16Type, |value: <Float16Type as ArrowPrimitiveType>::Native| Ok(value
                .to_f64()
                .into_pyobject(py)?
                .into_any()
                .unbind()))
        }
        DataType::Float32 => plain!(Float32Type),
        DataType::Float64 => plain!(Float64Type),
        DataType::Utf8 => each(&|row| text(column.as_string::<i32>().value(row))),
        DataType::LargeUtf8 => each(&|row| text(column.as_string::<i64>().value(row))),
        DataType::Utf8View => each(&|row| text(column.as_string_view().value(row))),
        DataType::Binary => each(&|row| bytes(column.as_binary::<i32>().value(row))),
        DataType::LargeBinary => each(&|row| bytes(column.as_binary::<i64>().value(row))),
        DataType::BinaryView => each(&|row| bytes(column.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => each(&|row| bytes(column.as_fixed_size_binary().value(row))),
        DataType::Date32 => primitive!(Date32Type, |days: i32| date(py, i64::from(days))),
        DataType::Date64 => primitive!(Date64Type, |millis: i64| date(py, millis.div_euclid(86_400_000))),
        DataType::Time32(TimeUnit::Second) => {
            primitive!(Time32SecondType, |value: i32| time(py, i64::from(value) * 1_000_000))
        }
        DataType::Time32(_) => primitive!(Time32MillisecondType, |value: i32| time(py, i64::from(value) * 1_000)),
        DataType::Time64(TimeUnit::Nanosecond) => {
            primitive!(Time64NanosecondType, |value: i64| time(py, value / 1_000))
        }
        DataType::Time64(_) => primitive!(Time64MicrosecondType, |value: i64| time(py, value)),
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_deref().map(|zone| zone_of(py, zone)).transpose()?;
            let at = |micros: Option<i64>| datetime(py, micros, zone.as_ref());
            match unit {
                TimeUnit::Second => primitive!(TimestampSecondType, |v: i64| at(v.checked_mul(1_000_000))),
                TimeUnit::Millisecond => primitive!(TimestampMillisecondType, |v: i64| at(v.checked_mul(1_000))),
                TimeUnit::Microsecond => primitive!(TimestampMicrosecondType, |v: i64| at(Some(v))),
                TimeUnit::Nanosecond => primitive!(TimestampNanosecondType, |v: i64| at(Some(v.div_euclid(1_000)))),
            }
        }
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => primitive!(DurationSecondType, |v: i64| delta(py, v.checked_mul(1_000_000))),
            TimeUnit::Millisecond => primitive!(DurationMillisecondType, |v: i64| delta(py, v.checked_mul(1_000))),
            TimeUnit::Microsecond => primitive!(DurationMicrosecondType, |v: i64| delta(py, Some(v))),
            TimeUnit::Nanosecond => primitive!(DurationNanosecondType, |v: i64| delta(py, Some(v.div_euclid(1_000)))),
        },
        DataType::Interval(unit) => match unit {
            IntervalUnit::YearMonth => primitive!(IntervalYearMonthType, |months: i32| interval(py, months, 0, 0)),
            IntervalUnit::DayTime => {
                primitive!(IntervalDayTimeType, |v: <IntervalDayTimeType as ArrowPrimitiveType>::Native| {
                    interval(py, 0, v.days, i64::from(v.milliseconds) * 1_000_000)
                })
            }
            IntervalUnit::MonthDayNano => {
                primitive!(IntervalMonthDayNanoType, |v: <IntervalMonthDayNanoType as ArrowPrimitiveType>::Native| {
                    interval(py, v.months, v.days, v.nanoseconds)
                })
            }
        },
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let decimal = class(py, &DECIMAL, "decimal", "Decimal")?;
            let text = |row| match column.data_type() {
                DataType::Decimal32(..) => {
                    column.as_primitive::<arrow_array::types::Decimal32Type>().value_as_string(row)
                }
                DataType::Decimal64(..) => {
                    column.as_primitive::<arrow_array::types::Decimal64Type>().value_as_string(row)
                }
                DataType::Decimal128(..) => {
                    column.as_primitive::<arrow_array::types::Decimal128Type>().value_as_string(row)
                }
                _ => column.as_primitive::<arrow_array::types::Decimal256Type>().value_as_string(row),
            };
            each(&|row| Ok(decimal.call1((text(row),))?.unbind()))
        }
        DataType::List(of) => each(&|row| list(py, of, &column.as_list::<i32>().value(row))),
        DataType::LargeList(of) => each(&|row| list(py, of, &column.as_list::<i64>().value(row))),
        DataType::ListView(of) => each(&|row| list(py, of, &column.as_list_view::<i32>().value(row))),
        DataType::LargeListView(of) => each(&|row| list(py, of, &column.as_list_view::<i64>().value(row))),
        DataType::FixedSizeList(of, _) => each(&|row| list(py, of, &column.as_fixed_size_list().value(row))),
        DataType::Struct(fields) => {
            let array = column.as_struct();
            let mut parts = Vec::with_capacity(fields.len());
            for (field, column) in fields.iter().zip(array.columns()) {
                parts.push(values(py, field, column)?);
            }
            each(&|row| {
                let dict = PyDict::new(py);
                for (field, part) in fields.iter().zip(&parts) {
                    dict.set_item(field.name(), part.get(row))?;
                }
                Ok(dict.into_any().unbind())
            })
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { return Err(unknown(field.data_type())) };
            let [key, value] = fields.as_ref() else { return Err(unknown(field.data_type())) };
            each(&|row| {
                let entries = column.as_map().value(row);
                let [keys, found] = entries.columns() else { return Err(unknown(field.data_type())) };
                let (keys, found) = (values(py, key, keys)?, values(py, value, found)?);
                let dict = PyDict::new(py);
                for (key, value) in keys.into_iter().zip(found) {
                    dict.set_item(key, value)?;
                }
                Ok(dict.into_any().unbind())
            })
        }
        DataType::Dictionary(keys, of) => {
            let of = Field::new(field.name(), of.as_ref().clone(), true);
            match keys.as_ref() {
                DataType::Int8 => coded::<Int8Type>(py, &of, column),
                DataType::Int16 => coded::<Int16Type>(py, &of, column),
                DataType::Int32 => coded::<Int32Type>(py, &of, column),
                DataType::Int64 => coded::<Int64Type>(py, &of, column),
                DataType::UInt8 => coded::<UInt8Type>(py, &of, column),
                DataType::UInt16 => coded::<UInt16Type>(py, &of, column),
                DataType::UInt32 => coded::<UInt32Type>(py, &of, column),
                _ => coded::<UInt64Type>(py, &of, column),
            }
        }
        other => Err(unknown(other)),
    }
}

fn unknown(data_type: &DataType) -> PyErr {
    DataError::new_err(format!("values of type {data_type} have no counterpart in Python; CAST them to another"))
}

/// Values by their codes: each of Python's is made once.
fn coded<K: ArrowDictionaryKeyType>(py: Python<'_>, of: &Field, column: &ArrayRef) -> PyResult<Values> {
    let array = column.as_dictionary::<K>();
    let found = values(py, of, array.values())?;
    Ok((0..array.len())
        .map(|row| match array.key(row).and_then(|key| found.get(key)) {
            Some(value) => value.clone_ref(py),
            None => py.None(),
        })
        .collect())
}

fn list(py: Python<'_>, of: &Field, part: &ArrayRef) -> PyResult<Py<PyAny>> {
    Ok(PyList::new(py, values(py, of, part)?)?.into_any().unbind())
}

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INTERVAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class<'py>(
    py: Python<'py>,
    cell: &PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyType>> {
    let found = cell.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import(module)?.getattr(name)?.cast_into::<PyType>().map_err(PyErr::from)?.unbind())
    })?;
    Ok(found.bind(py).clone())
}

/// Whether a column of bytes holds UUIDs, as Arrow marks them.
fn is_uuid(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid")
}

fn uuid_of(py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<Py<PyAny>> {
    let arguments = PyDict::new(py);
    arguments.set_item("bytes", bytes)?;
    Ok(class(py, &UUID, "uuid", "UUID")?.call((), Some(&arguments))?.unbind())
}

fn interval(py: Python<'_>, months: i32, days: i32, nanoseconds: i64) -> PyResult<Py<PyAny>> {
    Ok(class(py, &INTERVAL, "plinth._types", "Interval")?.call1((months, days, nanoseconds))?.unbind())
}

fn beyond() -> PyErr {
    DataError::new_err("a date outside of the years 1 to 9999, which are Python's; .arrow() has it")
}

fn date(py: Python<'_>, days: i64) -> PyResult<Py<PyAny>> {
    let (year, month, day) = date_of(days).ok_or_else(beyond)?;
    Ok(PyDate::new(py, year, month, day)?.into_any().unbind())
}

/// Hours, minutes, seconds and microseconds of a day.
fn clock(micros: i64) -> Option<(u8, u8, u8, u32)> {
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let part = |value: i64| u8::try_from(value).ok();
    Some((part(seconds / 3600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, u32::try_from(micros).ok()?))
}

fn time(py: Python<'_>, micros: i64) -> PyResult<Py<PyAny>> {
    let refused = || DataError::new_err("a time of day outside of a day");
    let (hour, minute, second, micros) = clock(micros).ok_or_else(refused)?;
    Ok(PyTime::new(py, hour, minute, second, micros, None)?.into_any().unbind())
}

fn datetime(py: Python<'_>, micros: Option<i64>, zone: Option<&Bound<'_, PyTzInfo>>) -> PyResult<Py<PyAny>> {
    let micros = micros.ok_or_else(beyond)?;
    let (year, month, day) = date_of(micros.div_euclid(DAY)).ok_or_else(beyond)?;
    let (hour, minute, second, micros) = clock(micros.rem_euclid(DAY)).ok_or_else(beyond)?;
    let Some(zone) = zone else {
        return Ok(PyDateTime::new(py, year, month, day, hour, minute, second, micros, None)?.into_any().unbind());
    };
    let utc = PyTzInfo::utc(py)?;
    let at = PyDateTime::new(py, year, month, day, hour, minute, second, micros, Some(&utc))?;
    // The time on the clocks there.
    if zone.is(utc) { Ok(at.into_any().unbind()) } else { Ok(at.call_method1("astimezone", (zone,))?.unbind()) }
}

/// A zone by the name or the offset that a type has.
fn zone_of<'py>(py: Python<'py>, zone: &str) -> PyResult<Bound<'py, PyTzInfo>> {
    if matches!(zone, "UTC" | "Z" | "+00:00" | "+00" | "Etc/UTC") {
        return Ok(PyTzInfo::utc(py)?.to_owned());
    }
    let offset = || {
        let (sign, digits) = match zone.as_bytes().first()? {
            b'+' => (1, &zone[1..]),
            b'-' => (-1, &zone[1..]),
            _ => return None,
        };
        let digits: String = digits.chars().filter(|c| *c != ':').collect();
        let (hours, minutes) = (digits.get(..2)?.parse::<i32>().ok()?, digits.get(2..).unwrap_or_default());
        let minutes = if minutes.is_empty() { 0 } else { minutes.parse::<i32>().ok()? };
        Some(sign * (hours * 3600 + minutes * 60))
    };
    match offset() {
        Some(seconds) => PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, seconds, 0, true)?),
        None => PyTzInfo::timezone(py, zone).map_err(|_| DataError::new_err(format!("{zone}: no such time zone"))),
    }
}

fn delta(py: Python<'_>, micros: Option<i64>) -> PyResult<Py<PyAny>> {
    let refused = || DataError::new_err("a duration that is longer than Python's; .arrow() has it");
    let micros = micros.ok_or_else(refused)?;
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let part = |value: i64| i32::try_from(value).map_err(|_| refused());
    let (days, seconds, micros) = (part(days)?, part(rest / 1_000_000)?, part(rest % 1_000_000)?);
    Ok(PyDelta::new(py, days, seconds, micros, true)?.into_any().unbind())
}
