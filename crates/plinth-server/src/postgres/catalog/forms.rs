//! Values in the forms that PostgreSQL gives them: sizes, vectors, objects of JSON.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::common::exec_err;
use datafusion::error::{DataFusionError, Result};

/// A number of bytes in the unit of which it has more than ten, as PostgreSQL writes it.
pub(super) fn size(bytes: i64) -> String {
    if bytes.abs() < 10 << 10 {
        return format!("{bytes} bytes");
    }
    // Twice the number of units, for rounding.
    let mut halves = bytes / 512;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves.abs() < (20 << 10) - 1 {
            return format!("{} {unit}", (halves + halves.signum()) / 2);
        }
        halves /= 1024;
    }
    format!("{} PB", (halves + halves.signum()) / 2)
}

/// Lists of numbers with spaces between these.
pub(super) fn vectors(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let Some(lists) = args.first().and_then(|lists| lists.as_list_opt::<i32>()) else {
        return exec_err!("a vector is made of a list");
    };
    let text = |list: ArrayRef| {
        let numbers = cast(&list, &DataType::Utf8)?;
        Ok::<_, DataFusionError>(numbers.as_string::<i32>().iter().flatten().collect::<Vec<_>>().join(" "))
    };
    let texts = lists.iter().map(|list| list.map(text).transpose());
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// Objects of JSON, of names and values in turn.
pub(super) fn objects(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if !args.len().is_multiple_of(2) {
        return exec_err!("json_build_object takes a value for each name");
    }
    let members = args.chunks_exact(2).map(|member| match member {
        [names, values] => Ok((cast(names, &DataType::Utf8)?, texts(values)?)),
        _ => exec_err!("json_build_object takes a value for each name"),
    });
    let members = members.collect::<Result<Vec<_>>>()?;
    let object = |row: usize| {
        let members = members.iter().map(|(names, values)| match names.is_null(row) {
            true => exec_err!("json_build_object: a name is NULL"),
            false => {
                let value = if values.is_null(row) { "null" } else { values.value(row) };
                Ok(format!("{} : {value}", serde_json::Value::from(names.as_string::<i32>().value(row))))
            }
        });
        Ok::<_, DataFusionError>(format!("{{{}}}", members.collect::<Result<Vec<_>>>()?.join(", ")))
    };
    Ok(Arc::new((0..rows).map(|row| object(row).map(Some)).collect::<Result<StringArray>>()?))
}

/// Values as JSON has them.
fn texts(values: &ArrayRef) -> Result<StringArray> {
    let of = values.data_type();
    if of.is_nested() {
        return exec_err!("json_build_object: {of} is no value of one row here; to_json makes JSON of it");
    }
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    if of.is_numeric() || *of == DataType::Boolean {
        return Ok(texts.clone());
    }
    Ok(texts.iter().map(|text| text.map(|text| serde_json::Value::from(text).to_string())).collect())
}
