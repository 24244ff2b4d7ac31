//! Values as JSON.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use datafusion_common::{DataFusionError, Result, exec_err};

use super::quoted;

/// `to_json(x)`.
pub(super) fn to_json(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [value] = args else { return exec_err!("to_json: takes one value") };
    let mut out = StringBuilder::new();
    let mut text = String::new();
    for row in 0..value.len() {
        // NULL is no value; within one it is written.
        if value.is_null(row) || value.data_type() == &DataType::Null {
            out.append_null();
            continue;
        }
        text.clear();
        write(&mut text, value, row)?;
        out.append_value(&text);
    }
    Ok(Arc::new(out.finish()))
}

fn write(out: &mut String, array: &ArrayRef, row: usize) -> Result<()> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => out.push_str("null"),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::List(_) => list(out, &array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(out, &array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(out, &array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            out.push('{');
            for (at, (field, column)) in fields.iter().zip(array.as_struct().columns()).enumerate() {
                if at > 0 {
                    out.push(',');
                }
                quoted(out, field.name());
                out.push(':');
                write(out, column, row)?;
            }
            out.push('}');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            out.push('{');
            for at in 0..entries.len() {
                if at > 0 {
                    out.push(',');
                }
                quoted(out, &formatted(keys, at)?);
                out.push(':');
                write(out, values, at)?;
            }
            out.push('}');
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let text = formatted(array, row)?;
            // JSON has no such numbers.
            if text.contains(['n', 'N', 'f']) { out.push_str("null") } else { out.push_str(&text) }
        }
        other if other.is_numeric() => {
            let _ = write!(out, "{}", formatted(array, row)?);
        }
        DataType::Dictionary(_, value) => {
            let plain = arrow_cast::cast(&array.slice(row, 1), value)?;
            write(out, &plain, 0)?;
        }
        _ => quoted(out, &formatted(array, row)?),
    }
    Ok(())
}

fn list(out: &mut String, values: &ArrayRef) -> Result<()> {
    out.push('[');
    for at in 0..values.len() {
        if at > 0 {
            out.push(',');
        }
        write(out, values, at)?;
    }
    out.push(']');
    Ok(())
}

fn formatted(array: &ArrayRef, row: usize) -> Result<String> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    formatter.value(row).try_to_string().map_err(DataFusionError::from)
}
