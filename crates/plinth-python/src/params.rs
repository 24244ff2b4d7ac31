//! Python's values as parameters of statements.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use plinth_sql::Params;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView,
    PyString, PyTime, PyTuple, PyTzInfo,
};

use crate::calendar::days_of;
use crate::error::{DataError, InterfaceError, NotSupportedError};

/// How deep lists and dictionaries may nest.
const DEPTH: usize = 32;

/// Digits of the widest decimal.
const DIGITS: u8 = 76;

/// The parameters of a call: a sequence for `?` and `$1`, a mapping for `$name`, or none.
pub(crate) fn params(given: Option<&Bound<'_, PyAny>>) -> PyResult<(Params, usize)> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok((Params::of_values([]), 0)) };
    if let Ok(named) = given.cast::<PyMapping>() {
        let mut values = Vec::new();
        for item in named.items()?.iter() {
            let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
            values.push((name, value_of(&value)?));
        }
        let count = values.len();
        return Ok((Params::of_values(values), count));
    }
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(InterfaceError::new_err("parameters are a list, a tuple or a dict: [value], not a text alone"));
    }
    let values = given.try_iter().map_err(|_| InterfaceError::new_err("parameters are a list, a tuple or a dict"))?;
    let mut numbered = Vec::new();
    for (at, value) in values.enumerate() {
        numbered.push(((at + 1).to_string(), value_of(&value?)?));
    }
    let count = numbered.len();
    Ok((Params::of_values(numbered), count))
}

/// One value.
pub(crate) fn value_of(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    nested(value, DEPTH)
}

fn nested(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(ScalarValue::Boolean(Some(truth.is_true())));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(ScalarValue::Float64(Some(number.value())));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(ScalarValue::Utf8(Some(text.to_str()?.to_owned())));
    }
    if value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
    {
        let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
        return Ok(ScalarValue::Binary(Some(bytes.cast::<PyBytes>()?.as_bytes().to_vec())));
    }
    if value.is_instance_of::<PyDateTime>() {
        return timestamp(value);
    }
    if value.is_instance_of::<PyDate>() {
        let days = i32::try_from(days(value)?).map_err(|e| DataError::new_err(e.to_string()))?;
        return Ok(ScalarValue::Date32(Some(days)));
    }
    if value.is_instance_of::<PyTime>() {
        if !value.getattr("tzinfo")?.is_none() {
            return Err(NotSupportedError::new_err("a time of day with a zone: there is no such type"));
        }
        return Ok(ScalarValue::Time64Microsecond(Some(of_day(value)?)));
    }
    if value.is_instance_of::<PyDelta>() {
        let part = |name: &str| value.getattr(name)?.extract::<i64>();
        let (days, seconds, micros) = (part("days")?, part("seconds")?, part("microseconds")?);
        return Ok(ScalarValue::DurationMicrosecond(Some((days * 86_400 + seconds) * 1_000_000 + micros)));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyDict>() {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(DataError::new_err(format!("a parameter nests more than {DEPTH} deep")));
        };
        return match value.cast::<PyDict>() {
            Ok(fields) => structure(fields, depth),
            Err(_) => list(value, depth),
        };
    }
    let of = value.get_type();
    let (module, name) = (of.module()?.to_string(), of.name()?.to_string());
    match (module.as_str(), name.as_str()) {
        ("decimal" | "_pydecimal", "Decimal") => decimal(value),
        ("uuid", "UUID") => Ok(ScalarValue::Utf8(Some(value.str()?.to_string()))),
        // A type of NumPy: its value is one of Python's, or an array becomes a list.
        ("numpy", "ndarray") => nested(&value.call_method0("tolist")?, depth),
        ("numpy", "datetime64" | "timedelta64") => {
            let micros = value.call_method1("astype", (format!("{}[us]", &name),))?;
            nested(&micros.call_method0("item")?, depth)
        }
        ("numpy", _) => nested(&value.call_method0("item")?, depth),
        _ => Err(NotSupportedError::new_err(format!(
            "a parameter of type {module}.{name}: there is no such type in SQL"
        ))),
    }
}

/// The smallest of the types that integers have here.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(ScalarValue::Int64(Some(number)));
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(ScalarValue::UInt64(Some(number)));
    }
    let digits = value.call_method1("__format__", ("d",))?.extract::<String>()?;
    unscaled(&digits, 0)
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if !value.call_method0("is_finite")?.extract::<bool>()? {
        return Err(DataError::new_err(format!("{}: a decimal in SQL is a number", value.str()?)));
    }
    let (sign, digits, exponent): (i32, Vec<u8>, i64) = value.call_method0("as_tuple")?.extract()?;
    let mut text = String::from(if sign == 1 { "-" } else { "" });
    text.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
    let refused = || DataError::new_err(format!("a decimal has {DIGITS} digits at most"));
    // 1E+3 has no digits behind the point.
    let zeros =
        usize::try_from(exponent.max(0)).ok().filter(|zeros| *zeros <= usize::from(DIGITS)).ok_or_else(refused)?;
    text.extend(std::iter::repeat_n('0', zeros));
    let scale = i8::try_from((-exponent).max(0)).map_err(|_| refused())?;
    unscaled(&text, scale)
}

/// A number of digits of which some are behind the point.
fn unscaled(text: &str, scale: i8) -> PyResult<ScalarValue> {
    let digits = text.trim_start_matches(['-', '0']).len().max(usize::from(scale.unsigned_abs())).max(1);
    let refused = || DataError::new_err(format!("a number has {DIGITS} digits at most"));
    let precision = u8::try_from(digits).ok().filter(|digits| *digits <= DIGITS).ok_or_else(refused)?;
    if precision <= 38 {
        return Ok(ScalarValue::Decimal128(Some(text.parse().map_err(|_| refused())?), precision, scale));
    }
    Ok(ScalarValue::Decimal256(Some(i256::from_string(text).ok_or_else(refused)?), precision, scale))
}

fn days(date: &Bound<'_, PyAny>) -> PyResult<i64> {
    let part = |name: &str| date.getattr(name)?.extract::<i64>();
    Ok(days_of(part("year")?, part("month")?, part("day")?))
}

/// Microseconds since midnight.
fn of_day(time: &Bound<'_, PyAny>) -> PyResult<i64> {
    let part = |name: &str| time.getattr(name)?.extract::<i64>();
    Ok(((part("hour")? * 60 + part("minute")?) * 60 + part("second")?) * 1_000_000 + part("microsecond")?)
}

/// A point in time. One with a zone is one of UTC, wherever it was written down.
fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let zoned = !value.call_method0("utcoffset")?.is_none();
    let (value, zone) = match zoned {
        true => (value.call_method1("astimezone", (PyTzInfo::utc(value.py())?,))?, Some("UTC".into())),
        false => (value.clone(), None),
    };
    let micros = days(&value)? * 86_400_000_000 + of_day(&value)?;
    // One of pandas has nanoseconds.
    if let Ok(nanos) = value.getattr("nanosecond")
        && let Ok(nanos @ 1..) = nanos.extract::<i64>()
        && let Some(all) = micros.checked_mul(1_000).and_then(|all| all.checked_add(nanos))
    {
        return Ok(ScalarValue::TimestampNanosecond(Some(all), zone));
    }
    Ok(ScalarValue::TimestampMicrosecond(Some(micros), zone))
}

/// A list of values of one type, or of types that have one in common.
fn list(values: &Bound<'_, PyAny>, depth: usize) -> PyResult<ScalarValue> {
    let values = values.try_iter()?.map(|value| nested(&value?, depth)).collect::<PyResult<Vec<_>>>()?;
    let types: Vec<DataType> =
        values.iter().map(ScalarValue::data_type).filter(|data_type| *data_type != DataType::Null).collect();
    let common = match types.split_first() {
        None => DataType::Null,
        Some((first, rest)) if rest.iter().all(|other| other == first) => first.clone(),
        Some(_) => type_union_resolution(&types)
            .ok_or_else(|| DataError::new_err("the values of a list have no type in common"))?,
    };
    let refused = |e: datafusion::error::DataFusionError| DataError::new_err(e.to_string());
    let values = values.iter().map(|value| value.cast_to(&common)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &common)))
}

fn structure(given: &Bound<'_, PyDict>, depth: usize) -> PyResult<ScalarValue> {
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for (name, value) in given.iter() {
        let name =
            name.extract::<String>().map_err(|_| DataError::new_err("the keys of a dict parameter are texts"))?;
        let value = nested(&value, depth)?;
        fields.push(Field::new(name, value.data_type(), true));
        columns.push(value.to_array_of_size(1).map_err(|e| DataError::new_err(e.to_string()))?);
    }
    if fields.is_empty() {
        return Err(DataError::new_err("a dict parameter has no key"));
    }
    let array = StructArray::try_new(fields.into(), columns, None).map_err(|e| DataError::new_err(e.to_string()))?;
    Ok(ScalarValue::Struct(Arc::new(array)))
}
